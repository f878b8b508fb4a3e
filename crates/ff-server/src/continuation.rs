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

#[cfg(test)]
mod tests {
    use ff_api::Payload;

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
            let (shown, shown_encoding) = Payload::kept(kept.unwrap(), named.as_deref()).written();
            assert_eq!((shown.get(), shown_encoding), (json, encoding));
        }
        assert_eq!(taken(None, None).unwrap(), (None, None));
    }
}
