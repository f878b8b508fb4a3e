//! Bytes in JSON: any JSON value as the text it came with, or base64.

use ff_api::Payload;
use ff_script::Bytes;
use serde_json::value::RawValue;

use crate::problem::{Answer, Problem};

pub use ff_api::Encoding;
pub use ff_core::limits::INPUT_BYTES_MAX as PAYLOAD_MAX;

/// The bytes of a field and the name of their encoding, as stored. Nothing said is nothing stored; null that is called JSON
/// is the JSON value null.
pub fn taken(
    field: &str,
    value: Option<Box<RawValue>>,
    encoding: Option<Encoding>,
    max: usize,
) -> Answer<(Option<Bytes>, Option<String>)> {
    let payload = Payload::read(field, value.as_deref(), encoding)?;
    if payload.as_ref().is_some_and(|payload| payload.bytes.len() > max) {
        return Err(Problem::too_large(field, max));
    }
    let named = encoding.filter(|encoding| *encoding == Encoding::Base64);
    Ok((payload.map(|payload| Bytes(payload.bytes)), named.map(|encoding| encoding.as_str().to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8], encoding: &str) -> (Box<RawValue>, Encoding) {
        Payload::stored(bytes.to_vec(), encoding).written()
    }

    fn there_and_back(json: &str, encoding: Option<Encoding>) -> (String, &'static str) {
        let raw: Option<Box<RawValue>> = serde_json::from_str(json).unwrap();
        let (bytes, stored) = taken("input", raw, encoding, PAYLOAD_MAX).unwrap();
        let (shown, encoding) = written(&bytes.unwrap_or(Bytes(Vec::new())).0, stored.as_deref().unwrap_or("json"));
        (shown.get().to_owned(), encoding.as_str())
    }

    #[test]
    fn json_comes_back_as_it_was_written() {
        for json in [r#"{"b":1,"a":12345678901234567890}"#, "1e400", r#""é""#, "[]", "false", "-0.0"] {
            assert_eq!(there_and_back(json, None), (json.to_owned(), "json"));
        }
        assert_eq!(there_and_back("null", None), ("null".to_owned(), "json"));
    }

    #[test]
    fn bytes_come_back_as_base64() {
        for json in [r#""""#, r#""AAH/""#, r#""eyJhIjoxfQ==""#] {
            assert_eq!(there_and_back(json, Some(Encoding::Base64)), (json.to_owned(), "base64"));
        }
        let input = |bytes: &[u8], encoding| {
            let (field, encoding) = Payload::input(bytes.to_vec(), encoding);
            (field.get().to_owned(), encoding.map(Encoding::as_str))
        };
        assert_eq!(input(b"null", "json"), ("null".to_owned(), Some("json")), "null itself is something");
        assert_eq!(input(b"", "json"), ("null".to_owned(), None));
        assert_eq!(input(b"", "base64"), (r#""""#.to_owned(), Some("base64")));
        assert_eq!(written(b"\xff", "json").1, Encoding::Base64);
        assert_eq!(written(b"not json", "json").1, Encoding::Base64);
    }
}
