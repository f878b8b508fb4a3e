//! Bytes in JSON. JSON keeps the text it has; anything else is base64.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Invalid;

/// Standard base64; padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How a field carries bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// The field holds any JSON value.
    Json,
    /// The field holds base64 text.
    Base64,
}

impl Encoding {
    /// The word that stands for it on the wire and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Base64 => "base64",
        }
    }

    /// The encoding of stored bytes, by the name it is stored under; the default is JSON.
    #[must_use]
    pub fn of_stored(name: Option<&str>) -> Self {
        match name {
            None | Some("json") => Self::Json,
            Some(_) => Self::Base64,
        }
    }
}

/// Bytes, and whether they are JSON. In JSON a payload is two fields: `input` with its `input_encoding`, for example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The bytes; JSON as the text it was written in.
    pub bytes: Vec<u8>,
    /// How they are shown.
    pub encoding: Encoding,
}

impl Payload {
    /// Bytes that are JSON when they are one whole JSON value, with no space around it.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        let encoding = if is_json(&bytes) { Encoding::Json } else { Encoding::Base64 };
        Self { bytes, encoding }
    }

    /// Stored bytes under the stored name of their encoding. Bytes that are called JSON and are none become base64.
    #[must_use]
    pub fn stored(bytes: Vec<u8>, encoding: &str) -> Self {
        let text = |bytes: &[u8]| serde_json::from_slice::<&RawValue>(bytes).is_ok();
        let encoding =
            if encoding == "json" && (bytes.is_empty() || text(&bytes)) { Encoding::Json } else { Encoding::Base64 };
        Self { bytes, encoding }
    }

    /// Stored bytes whose encoding may not have been said: they are JSON when they can be read as it.
    #[must_use]
    pub fn kept(bytes: Vec<u8>, encoding: Option<&str>) -> Self {
        match encoding {
            Some(encoding) => Self::stored(bytes, encoding),
            None if bytes.is_empty() => Self { bytes, encoding: Encoding::Base64 },
            None => Self::stored(bytes, Encoding::Json.as_str()),
        }
    }

    /// The encoding of a stored input. One that was not given has none.
    #[must_use]
    pub fn of_input(bytes: &[u8], encoding: &str) -> Option<Encoding> {
        let encoding = Encoding::of_stored(Some(encoding));
        (!bytes.is_empty() || encoding != Encoding::Json).then_some(encoding)
    }

    /// Reads the two fields of a request or an answer. A null without an encoding is nothing; a null that is called JSON is the
    /// JSON value null.
    pub fn read(field: &str, value: Option<&RawValue>, encoding: Option<Encoding>) -> Result<Option<Self>, Invalid> {
        let bytes = match (value, encoding) {
            (None, None | Some(Encoding::Base64)) => return Ok(None),
            (None, Some(Encoding::Json)) => b"null".to_vec(),
            (Some(value), None | Some(Encoding::Json)) => value.get().as_bytes().to_vec(),
            (Some(value), Some(Encoding::Base64)) => {
                let text: String =
                    serde_json::from_str(value.get()).map_err(|_| Invalid::new(field, "must be base64 text"))?;
                BASE64.decode(text).map_err(|error| Invalid::new(field, format!("is not base64: {error}")))?
            }
        };
        Ok(Some(Self { bytes, encoding: encoding.unwrap_or(Encoding::Json) }))
    }

    /// Stored bytes as the two fields of an answer; neither when nothing is stored.
    #[must_use]
    pub fn shown(bytes: Option<Vec<u8>>, encoding: Option<&str>) -> (Option<Box<RawValue>>, Option<Encoding>) {
        let encoding = encoding.unwrap_or(Encoding::Json.as_str());
        bytes.map(|bytes| Self::stored(bytes, encoding).written()).unzip()
    }

    /// The two fields of a request, where JSON other than null needs no encoding beside it.
    #[must_use]
    pub fn sent(&self) -> (Box<RawValue>, Option<Encoding>) {
        let (value, encoding) = self.written();
        let named = encoding == Encoding::Base64 || value.get() == "null";
        (value, named.then_some(encoding))
    }

    /// The two fields of an answer or a request.
    #[must_use]
    pub fn written(&self) -> (Box<RawValue>, Encoding) {
        if self.encoding == Encoding::Json {
            if self.bytes.is_empty() {
                return (RawValue::NULL.to_owned(), Encoding::Json);
            }
            let text = std::str::from_utf8(&self.bytes).ok();
            if let Some(json) = text.and_then(|text| RawValue::from_string(text.to_owned()).ok()) {
                return (json, Encoding::Json);
            }
        }
        let text = format!("\"{}\"", BASE64.encode(&self.bytes));
        (RawValue::from_string(text).expect("base64 in quotes is JSON"), Encoding::Base64)
    }
}

/// How a struct holds the bytes of a payload: as bytes that may be missing, or as bytes that are empty then.
pub(crate) trait Held: Sized {
    /// The bytes, when there is a payload.
    fn bytes(&self) -> Option<&[u8]>;
    /// Holds these.
    fn held(bytes: Option<Vec<u8>>) -> Self;
}

impl Held for Option<Vec<u8>> {
    fn bytes(&self) -> Option<&[u8]> {
        self.as_deref()
    }

    fn held(bytes: Option<Vec<u8>>) -> Self {
        bytes
    }
}

impl Held for Vec<u8> {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn held(bytes: Option<Vec<u8>>) -> Self {
        bytes.unwrap_or_default()
    }
}

/// The value of a field that carries bytes.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Value<'a> {
    /// JSON as it was written.
    Json(&'a RawValue),
    /// Base64 text.
    Base64(String),
}

/// The two fields that show bytes.
pub(crate) fn shown(bytes: &[u8], encoding: Encoding) -> (Value<'_>, Encoding) {
    if encoding == Encoding::Json {
        if bytes.is_empty() {
            return (Value::Json(RawValue::NULL), Encoding::Json);
        }
        if let Ok(json) = serde_json::from_slice(bytes) {
            return (Value::Json(json), Encoding::Json);
        }
    }
    (Value::Base64(BASE64.encode(bytes)), Encoding::Base64)
}

/// The two fields that show a payload. Empty bytes without an encoding are none.
pub(crate) fn fields(held: &impl Held, encoding: Option<Encoding>) -> (Option<Value<'_>>, Option<Encoding>) {
    match (held.bytes(), encoding) {
        (None, _) | (Some([]), None) => (None, None),
        (Some(bytes), encoding) => {
            let (value, encoding) = shown(bytes, encoding.unwrap_or(Encoding::Json));
            (Some(value), Some(encoding))
        }
    }
}

/// A field of bytes that are JSON, without an encoding beside it.
pub(crate) mod json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::value::RawValue;

    use super::{Encoding, shown};

    pub(crate) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        bytes.as_deref().map(|bytes| shown(bytes, Encoding::Json).0).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<Box<RawValue>>::deserialize(deserializer)?;
        Ok(text.map(|text| text.get().as_bytes().to_vec()))
    }
}

/// Declares a struct with payloads. In Rust a payload is bytes beside their encoding. In JSON the same two fields carry it: JSON keeps
/// its text, and anything else is base64.
macro_rules! with_payloads {
    (
        $( #[doc = $what:literal] )+
        pub struct $name:ident {
            $( $( #[doc = $doc:literal] )+ $( #[schema($($schema:tt)*)] )? $( #[serde($($serde:tt)*)] )? $field:ident: $type:ty, )*
        }
        payloads {
            $( $( #[doc = $about:literal] )+ $payload:ident: $held:ty as $encoding:ident (required = $required:literal), )+
        }
        then {
            $( $( #[doc = $then_doc:literal] )+ $( #[schema($($then_schema:tt)*)] )? $( #[serde($($then_serde:tt)*)] )? $then:ident: $then_type:ty, )*
        }
    ) => {
        $( #[doc = $what] )+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $( #[doc = $doc] )+ pub $field: $type, )*
            $(
                $( #[doc = $about] )+
                pub $payload: $held,
                #[doc = concat!("How JSON carries `", stringify!($payload), "`; absent when there is none.")]
                pub $encoding: Option<$crate::Encoding>,
            )+
            $( $( #[doc = $then_doc] )+ pub $then: $then_type, )*
        }

        const _: () = {
            /// The struct as JSON shows it.
            #[derive(serde::Serialize)]
            struct Shown<'a> {
                $( $( #[serde($($serde)*)] )? $field: &'a $type, )*
                $( $payload: Option<$crate::payload::Value<'a>>, $encoding: Option<$crate::Encoding>, )+
                $( $( #[serde($($then_serde)*)] )? $then: &'a $then_type, )*
            }

            $( #[doc = $what] )+
            #[derive(serde::Deserialize)]
            #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
            struct Json {
                $(
                    $( #[doc = $doc] )+
                    $( #[cfg_attr(feature = "openapi", schema($($schema)*))] )?
                    $( #[serde($($serde)*)] )?
                    $field: $type,
                )*
                $(
                    $( #[doc = $about] )+
                    #[cfg_attr(feature = "openapi", schema(value_type = $crate::vocabulary::Payload, required = $required))]
                    $payload: Option<Box<serde_json::value::RawValue>>,
                    #[doc = concat!("How `", stringify!($payload), "` carries its bytes; absent when there is none.")]
                    $encoding: Option<$crate::Encoding>,
                )+
                $(
                    $( #[doc = $then_doc] )+
                    $( #[cfg_attr(feature = "openapi", schema($($then_schema)*))] )?
                    $( #[serde($($then_serde)*)] )?
                    $then: $then_type,
                )*
            }

            impl serde::Serialize for $name {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    $( let ($payload, $encoding) = $crate::payload::fields(&self.$payload, self.$encoding); )+
                    let shown = Shown {
                        $( $field: &self.$field, )*
                        $( $payload, $encoding, )+
                        $( $then: &self.$then, )*
                    };
                    shown.serialize(serializer)
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let json = Json::deserialize(deserializer)?;
                    $(
                        let $payload = $crate::Payload::read(stringify!($payload), json.$payload.as_deref(), json.$encoding)
                            .map_err(serde::de::Error::custom)?;
                    )+
                    Ok(Self {
                        $( $field: json.$field, )*
                        $(
                            $payload: $crate::payload::Held::held($payload.map(|payload| payload.bytes)),
                            $encoding: json.$encoding,
                        )+
                        $( $then: json.$then, )*
                    })
                }
            }

            #[cfg(feature = "openapi")]
            impl utoipa::PartialSchema for $name {
                fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                    <Json as utoipa::PartialSchema>::schema()
                }
            }

            #[cfg(feature = "openapi")]
            impl utoipa::ToSchema for $name {
                fn schemas(shapes: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
                    <Json as utoipa::ToSchema>::schemas(shapes);
                }
            }
        };
    };
}

pub(crate) use with_payloads;

/// True when bytes are one JSON value with nothing around it, so that they can be shown as they are.
#[must_use]
pub fn is_json(bytes: &[u8]) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii_whitespace());
    edge(bytes.first()) && edge(bytes.last()) && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(payload: &Payload) -> Payload {
        let (field, encoding) = payload.written();
        let field: Option<Box<RawValue>> = serde_json::from_str(field.get()).unwrap();
        Payload::read("input", field.as_deref(), Some(encoding)).unwrap().unwrap()
    }

    #[test]
    fn bytes_come_back_as_they_were_and_json_stays_readable() {
        let json = [r#"{"b":1,"a":12345678901234567890}"#, "1e400", r#""é""#, "[]", "false", "-0.0", "null", "{ }"];
        for text in json {
            let payload = Payload::of(text.into());
            assert_eq!(payload.encoding, Encoding::Json, "{text}");
            assert_eq!(payload.written().0.get(), text);
            assert_eq!(there_and_back(&payload), payload);
        }
        for bytes in [b"".as_slice(), b" {}", b"{}\n", b"{} {}", b"hello", &[0, 159, 146, 150]] {
            let payload = Payload::of(bytes.to_vec());
            assert_eq!(payload.encoding, Encoding::Base64, "{bytes:?}");
            assert_eq!(there_and_back(&payload), payload);
        }
    }

    #[test]
    fn nothing_and_null_differ() {
        assert_eq!(Payload::read("input", None, None), Ok(None));
        assert_eq!(Payload::read("input", None, Some(Encoding::Base64)), Ok(None));
        let null = Payload::read("input", None, Some(Encoding::Json)).unwrap().unwrap();
        assert_eq!(null.bytes, b"null");
    }

    #[test]
    fn an_input_that_was_not_given_has_no_encoding() {
        let shown = |bytes: &[u8], encoding| {
            let named = Payload::of_input(bytes, encoding);
            let bytes = bytes.to_vec();
            let (value, shown) = fields(&bytes, named);
            assert_eq!(shown, named);
            serde_json::to_string(&value).unwrap()
        };
        assert_eq!(shown(b"null", "json"), "null");
        assert_eq!(Payload::of_input(b"null", "json"), Some(Encoding::Json), "null itself is something");
        assert_eq!((shown(b"", "json").as_str(), Payload::of_input(b"", "json")), ("null", None));
        assert_eq!(shown(b"", "base64"), r#""""#);
    }

    #[test]
    fn a_field_that_is_no_base64_is_named() {
        let wrong = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            Payload::read("result", Some(&raw), Some(Encoding::Base64)).unwrap_err().to_string()
        };
        assert_eq!(wrong("7"), "result must be base64 text");
        assert!(wrong("\"%\"").starts_with("result is not base64: "));
    }

    #[test]
    fn bytes_that_are_called_json_and_are_none_are_base64() {
        assert_eq!(Payload::stored(b"not json".to_vec(), "json").encoding, Encoding::Base64);
        assert_eq!(Payload::stored(Vec::new(), "json").written().0.get(), "null");
    }

    #[test]
    fn bytes_without_an_encoding_are_json_when_they_can_be_read_as_it() {
        let shown = |bytes: &[u8]| Payload::kept(bytes.to_vec(), None).written();
        let (json, encoding) = shown(br#"{"step":3}"#);
        assert_eq!((json.get(), encoding), (r#"{"step":3}"#, Encoding::Json));
        assert_eq!(shown(b"\xff\x00").1, Encoding::Base64);
        assert_eq!(shown(b"").1, Encoding::Base64);
        assert_eq!(Payload::kept(b"7".to_vec(), Some("base64")).encoding, Encoding::Base64);
    }
}
