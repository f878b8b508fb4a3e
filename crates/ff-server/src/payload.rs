//! Bytes in JSON: any JSON value as the text it came with, or base64.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ff_script::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::problem::{Answer, Problem};

/// Standard base64; padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The largest input and result.
pub const PAYLOAD_MAX: usize = 1024 * 1024;

/// How a field carries bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// The field holds any JSON value.
    Json,
    /// The field holds base64 text.
    Base64,
}

/// The bytes of a field and the name of their encoding, as stored. Nothing said is nothing stored; null that is called JSON
/// is the JSON value null.
pub fn taken(
    field: &str,
    value: Option<Box<RawValue>>,
    encoding: Option<Encoding>,
    max: usize,
) -> Answer<(Option<Bytes>, Option<String>)> {
    let bytes = match (&value, encoding) {
        (None, None | Some(Encoding::Base64)) => None,
        (None, Some(Encoding::Json)) => Some(b"null".to_vec()),
        (Some(value), None | Some(Encoding::Json)) => Some(value.get().as_bytes().to_vec()),
        (Some(value), Some(Encoding::Base64)) => {
            let text: String =
                serde_json::from_str(value.get()).map_err(|_| Problem::invalid(field, "must be base64 text"))?;
            Some(BASE64.decode(text).map_err(|error| Problem::invalid(field, format!("is not base64: {error}")))?)
        }
    };
    if bytes.as_ref().is_some_and(|bytes| bytes.len() > max) {
        return Err(Problem::too_large(field, max));
    }
    let encoding = match encoding {
        Some(Encoding::Base64) => Some("base64".to_owned()),
        None | Some(Encoding::Json) => None,
    };
    Ok((bytes.map(Bytes), encoding))
}

/// A stored payload as a field and its encoding: JSON keeps its text, anything else is base64.
pub fn shown(bytes: &[u8], encoding: &str) -> (Box<RawValue>, &'static str) {
    if encoding == "json" {
        if bytes.is_empty() {
            return (RawValue::NULL.to_owned(), "json");
        }
        if let Some(json) = std::str::from_utf8(bytes).ok().and_then(|text| RawValue::from_string(text.to_owned()).ok())
        {
            return (json, "json");
        }
    }
    let text = format!("\"{}\"", BASE64.encode(bytes));
    (RawValue::from_string(text).expect("base64 in quotes is JSON"), "base64")
}

/// A stored input as a field and its encoding. One that was not given is null and has none; the JSON value null has one.
pub fn shown_input(bytes: &[u8], encoding: &str) -> (Box<RawValue>, Option<&'static str>) {
    let (field, shown_as) = shown(bytes, encoding);
    (field, (!bytes.is_empty() || encoding != "json").then_some(shown_as))
}

/// A text that must not be longer than `max` bytes.
pub fn bounded(field: &str, text: &Option<String>, max: usize) -> Answer<()> {
    match text {
        Some(text) if text.len() > max => Err(Problem::too_large(field, max)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(json: &str, encoding: Option<Encoding>) -> (String, &'static str) {
        let raw: Option<Box<RawValue>> = serde_json::from_str(json).unwrap();
        let (bytes, stored) = taken("input", raw, encoding, PAYLOAD_MAX).unwrap();
        let (shown, encoding) = shown(&bytes.unwrap_or(Bytes(Vec::new())).0, stored.as_deref().unwrap_or("json"));
        (shown.get().to_owned(), encoding)
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
        let input = |bytes, encoding| {
            let (field, encoding) = shown_input(bytes, encoding);
            (field.get().to_owned(), encoding)
        };
        assert_eq!(input(b"null", "json"), ("null".to_owned(), Some("json")), "null itself is something");
        assert_eq!(input(b"", "json"), ("null".to_owned(), None));
        assert_eq!(input(b"", "base64"), (r#""""#.to_owned(), Some("base64")));
        assert_eq!(shown(b"\xff", "json").1, "base64");
        assert_eq!(shown(b"not json", "json").1, "base64");
    }
}
