//! Continuations: bytes with the encoding they were sent in, so that they come back as they came.

use ff_script::Bytes;
use serde_json::value::RawValue;

use crate::payload::{self, Encoding};
use crate::problem::Answer;

/// The largest continuation.
const CONTINUATION_MAX: usize = ff_core::limits::CONTINUATION_BYTES_MAX;

/// The bytes to keep, and the name of their encoding.
pub fn taken(value: Option<Box<RawValue>>, encoding: Option<Encoding>) -> Answer<(Option<Vec<u8>>, Option<String>)> {
    let (bytes, encoding) = payload::taken("continuation", value, encoding, CONTINUATION_MAX)?;
    let encoding = bytes.is_some().then(|| encoding.unwrap_or_else(|| "json".to_owned()));
    Ok((bytes.map(|Bytes(bytes)| bytes), encoding))
}

/// A kept continuation as a field and its encoding. A worker that is no client of this server says none: what is JSON is
/// shown as JSON, anything else as base64.
pub fn shown(kept: &[u8], encoding: Option<&str>) -> (Box<RawValue>, &'static str) {
    match encoding {
        Some(encoding) => payload::shown(kept, encoding),
        None if serde_json::from_slice::<&RawValue>(kept).is_ok() => payload::shown(kept, "json"),
        None => payload::shown(kept, "base64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_comes_back() {
        for (json, encoding) in [
            (r#"{"z":12345678901234567890,"a":[1.0]}"#, Encoding::Json),
            ("null", Encoding::Json),
            (r#""text""#, Encoding::Json),
            (r#""AAH/""#, Encoding::Base64),
            (r#""""#, Encoding::Base64),
            (r#""MQ==""#, Encoding::Base64),
        ] {
            let value: Option<Box<RawValue>> = Some(RawValue::from_string(json.to_owned()).unwrap());
            let (kept, named) = taken(value, Some(encoding)).unwrap();
            let (shown, shown_encoding) = shown(&kept.unwrap(), named.as_deref());
            let expected = if encoding == Encoding::Json { "json" } else { "base64" };
            assert_eq!((shown.get(), shown_encoding), (json, expected));
        }
        assert_eq!(taken(None, None).unwrap(), (None, None));
    }

    #[test]
    fn what_others_wrote_is_json_when_it_is() {
        assert_eq!(shown(br#"{"step":3}"#, None).0.get(), r#"{"step":3}"#);
        assert_eq!(shown(b"\xff\x00", None).1, "base64");
        assert_eq!(shown(b"", None).1, "base64");
    }
}
