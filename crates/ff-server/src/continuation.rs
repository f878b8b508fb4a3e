//! Continuations as the store keeps them: plain bytes, whoever wrote them.
//!
//! A continuation that is JSON text is shown as JSON, any other as base64. Bytes that were sent as base64 and happen to be
//! JSON text are marked, so that they come back as they were sent.

use ff_script::Bytes;
use serde_json::value::RawValue;

use crate::payload::{self, Encoding};
use crate::problem::Answer;

/// The largest continuation.
const CONTINUATION_MAX: usize = 256 * 1024;
/// No JSON text begins like this.
const BYTES: &[u8] = b"\0base64\0";

/// The bytes to keep.
pub fn taken(value: Option<Box<RawValue>>, encoding: Option<Encoding>) -> Answer<Option<Vec<u8>>> {
    let (bytes, encoding) = payload::taken("continuation", value, encoding, CONTINUATION_MAX)?;
    Ok(bytes.map(|Bytes(bytes)| {
        let ambiguous = bytes.is_empty() || bytes.starts_with(BYTES) || is_json(&bytes);
        if encoding.is_some() && ambiguous { [BYTES, &bytes].concat() } else { bytes }
    }))
}

/// A kept continuation as a field and its encoding.
pub fn shown(kept: &[u8]) -> (Box<RawValue>, &'static str) {
    match kept.strip_prefix(BYTES) {
        Some(bytes) => payload::shown(bytes, "base64"),
        None if is_json(kept) => payload::shown(kept, "json"),
        None => payload::shown(kept, "base64"),
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).is_ok()
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
            (r#""AGJhc2U2NAAx""#, Encoding::Base64),
        ] {
            let value: Option<Box<RawValue>> = Some(RawValue::from_string(json.to_owned()).unwrap());
            let kept = taken(value, Some(encoding)).unwrap().unwrap();
            let (shown, shown_encoding) = shown(&kept);
            let expected = if encoding == Encoding::Json { "json" } else { "base64" };
            assert_eq!((shown.get(), shown_encoding), (json, expected));
        }
        assert_eq!(taken(None, None).unwrap(), None);
    }

    #[test]
    fn what_others_wrote_is_json_when_it_is() {
        assert_eq!(shown(br#"{"step":3}"#).0.get(), r#"{"step":3}"#);
        assert_eq!(shown(b"\xff\x00").1, "base64");
        assert_eq!(taken(Some(RawValue::from_string("1".to_owned()).unwrap()), None).unwrap().unwrap(), b"1");
    }
}
