//! Plain values: numbers, text, bytes, options, lists, maps.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use super::{DecodeError, Reader, Wire, write_bytes, write_map_len};

/// A payload: any bytes, never converted to UTF-8.
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
    /// Prints the length only, because payloads are large and may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.0.len())
    }
}

impl Wire for Bytes {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(out, &self.0);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.bytes().map(Self::from)
    }
}

impl Wire for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(out, self.as_bytes());
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.text().map(str::to_owned)
    }
}

impl Wire for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        rmp::encode::write_sint(out, *self).expect("writing to memory cannot fail");
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.integer()
    }
}

impl Wire for bool {
    fn write(&self, out: &mut Vec<u8>) {
        rmp::encode::write_bool(out, *self).expect("writing to memory cannot fail");
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        input.boolean()
    }
}

impl Wire for uuid::Uuid {
    fn write(&self, out: &mut Vec<u8>) {
        let mut buffer = uuid::Uuid::encode_buffer();
        write_bytes(out, self.as_hyphenated().encode_lower(&mut buffer).as_bytes());
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let text = input.text()?;
        uuid::Uuid::try_parse(text).map_err(|_| DecodeError::new(format!("{text:?} is not a UUID")))
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => rmp::encode::write_nil(out).expect("writing to memory cannot fail"),
        }
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if input.nil() { Ok(None) } else { T::read(input).map(Some) }
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
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = input.list()?;
        let mut items = Vec::with_capacity(len.min(1_024));
        for index in 0..len {
            items.push(T::read(input).map_err(|error| error.within(format!("[{index}]")))?);
        }
        Ok(items)
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
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut map = BTreeMap::new();
        for _ in 0..input.map()? {
            let at = *input;
            let name = K::read(input).map_err(|error| error.within("key"))?;
            let place = || String::from_utf8_lossy(at.clone().bytes().unwrap_or_default()).into_owned();
            let value = V::read(input).map_err(|error| error.within(place()))?;
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
            assert_eq!(parse::<Bytes>(&out).unwrap().0, bytes);
        }
    }

    #[test]
    fn an_empty_array_reads_as_an_empty_map() {
        assert!(parse::<BTreeMap<String, i64>>(&[0x90]).unwrap().is_empty());
        assert!(parse::<BTreeMap<String, i64>>(&[0x91, 0x01]).is_err());
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        let out = encoded(&BTreeMap::from([("a".to_owned(), vec!["x".to_owned()])]));
        let error = parse::<BTreeMap<String, Vec<i64>>>(&out).unwrap_err();
        assert_eq!(error.to_string(), "a.[0]: expected an integer, got text");
    }

    #[test]
    fn nothing_may_follow_a_value() {
        assert!(parse::<i64>(&[0x01, 0x02]).is_err(), "trailing bytes");
        assert!(parse::<Vec<i64>>(&[0x92, 0x02]).is_err(), "cut short");
    }
}
