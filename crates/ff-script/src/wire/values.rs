//! The plain values: numbers, text, bytes, options, lists, maps.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use rmpv::ValueRef;

use super::{DecodeError, Fields, Wire, text_bytes, write_bytes, write_map_len};

/// A payload: any bytes, never forced through UTF-8.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes(pub Vec<u8>);

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Self {
        bytes.0
    }
}

impl fmt::Debug for Bytes {
    /// The length only: payloads may hold secrets and are large.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.0.len())
    }
}

impl Wire for Bytes {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(out, &self.0);
    }
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError> {
        text_bytes(value).map(Self::from).ok_or_else(|| DecodeError::unexpected("bytes", value))
    }
}

impl Wire for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(out, self.as_bytes());
    }
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError> {
        text(value).map(str::to_owned)
    }
}

/// The text of a value.
pub(crate) fn text<'a>(value: &'a ValueRef<'_>) -> Result<&'a str, DecodeError> {
    let bytes = text_bytes(value).ok_or_else(|| DecodeError::unexpected("text", value))?;
    std::str::from_utf8(bytes).map_err(|_| DecodeError::new("text is not UTF-8"))
}

impl Wire for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        rmp::encode::write_sint(out, *self).expect("writing to memory does not fail");
    }
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError> {
        match value {
            ValueRef::Integer(integer) => {
                integer.as_i64().ok_or_else(|| DecodeError::new(format!("integer {integer} is out of range")))
            }
            other => Err(DecodeError::unexpected("an integer", other)),
        }
    }
}

impl Wire for bool {
    fn write(&self, out: &mut Vec<u8>) {
        rmp::encode::write_bool(out, *self).expect("writing to memory does not fail");
    }
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError> {
        match value {
            ValueRef::Boolean(value) => Ok(*value),
            other => Err(DecodeError::unexpected("a boolean", other)),
        }
    }
}

impl Wire for uuid::Uuid {
    fn write(&self, out: &mut Vec<u8>) {
        let mut buffer = uuid::Uuid::encode_buffer();
        write_bytes(out, self.as_hyphenated().encode_lower(&mut buffer).as_bytes());
    }
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError> {
        let text = text(value)?;
        uuid::Uuid::try_parse(text).map_err(|_| DecodeError::new(format!("{text:?} is not a UUID")))
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => rmp::encode::write_nil(out).expect("writing to memory does not fail"),
        }
    }
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError> {
        match value {
            ValueRef::Nil => Ok(None),
            value => T::read(value).map(Some),
        }
    }
    fn when_absent() -> Option<Self> {
        Some(None)
    }
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        super::write_array_len(out, self.len());
        for item in self {
            item.write(out);
        }
    }
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError> {
        match value {
            ValueRef::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| T::read(item).map_err(|error| error.within(format!("[{index}]"))))
                .collect(),
            other => Err(DecodeError::unexpected("a list", other)),
        }
    }
}

impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    fn write(&self, out: &mut Vec<u8>) {
        write_map_len(out, self.len());
        for (key, value) in self {
            key.write(out);
            value.write(out);
        }
    }
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError> {
        let mut map = BTreeMap::new();
        for (key, value) in Fields::of(value)?.entries() {
            let name = K::read(key).map_err(|error| error.within("key"))?;
            let value = V::read(value).map_err(|error| error.within(key.to_string()))?;
            map.insert(name, value);
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn encoded<T: Wire>(value: &T) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(&mut out);
        out
    }

    #[test]
    fn bytes_travel_in_the_str_family_whatever_they_hold() {
        for bytes in [vec![], vec![0xff, 0x00, 0xc3], vec![b'a'; 40], vec![0x80; 300], vec![1; 70_000]] {
            let out = encoded(&Bytes(bytes.clone()));
            assert!(matches!(out[0], 0xa0..=0xbf | 0xd9 | 0xda | 0xdb), "marker {:#x}", out[0]);
            assert_eq!(Bytes::read(&parse(&out).unwrap()).unwrap().0, bytes);
        }
    }

    #[test]
    fn an_empty_array_reads_as_an_empty_map() {
        let map = BTreeMap::<String, i64>::read(&parse(&[0x90]).unwrap()).unwrap();
        assert!(map.is_empty());
        assert!(BTreeMap::<String, i64>::read(&parse(&[0x91, 0x01]).unwrap()).is_err());
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        let out = encoded(&BTreeMap::from([("a".to_owned(), vec!["x".to_owned()])]));
        let error = BTreeMap::<String, Vec<i64>>::read(&parse(&out).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "\"a\".[0]: expected an integer, got text");
    }

    #[test]
    fn text_must_be_utf8_and_fractions_are_no_integers() {
        assert_eq!(String::read(&parse(&[0xa1, 0xff]).unwrap()).unwrap_err().to_string(), "text is not UTF-8");
        assert!(i64::read(&ValueRef::F64(1.5)).is_err());
        assert!(parse(&[0x01, 0x02]).is_err(), "trailing bytes");
        assert!(parse(&[0x92, 0x02]).is_err(), "cut short");
    }
}
