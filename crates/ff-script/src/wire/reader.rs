//! Reads consecutive msgpack values directly into types.

use rmp::Marker;

use super::DecodeError;

/// The unread rest of a sequence of msgpack values.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// The kind of the next value, for error messages.
fn kind(marker: Marker) -> &'static str {
    match marker {
        Marker::Null | Marker::Reserved => "nil",
        Marker::True | Marker::False => "a boolean",
        Marker::FixPos(_)
        | Marker::FixNeg(_)
        | Marker::U8
        | Marker::U16
        | Marker::U32
        | Marker::U64
        | Marker::I8
        | Marker::I16
        | Marker::I32
        | Marker::I64 => "an integer",
        Marker::F32 | Marker::F64 => "a fraction",
        Marker::FixStr(_)
        | Marker::Str8
        | Marker::Str16
        | Marker::Str32
        | Marker::Bin8
        | Marker::Bin16
        | Marker::Bin32 => "text",
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => "a list",
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => "a map",
        _ => "an extension",
    }
}

fn cut_short() -> DecodeError {
    DecodeError::new("not msgpack: cut short")
}

impl<'a> Reader<'a> {
    /// The values in these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// True if nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails if something is left.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::new(format!("{} bytes after the value", self.rest.len())))
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, tail) = self.rest.split_at_checked(len).ok_or_else(cut_short)?;
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or_else(cut_short)?;
        self.rest = tail;
        Ok(*head)
    }

    fn length(&mut self, width: usize) -> Result<usize, DecodeError> {
        Ok(self.take(width)?.iter().fold(0, |n, byte| (n << 8) | usize::from(*byte)))
    }

    fn peek(&self) -> Result<Marker, DecodeError> {
        self.rest.first().map(|byte| Marker::from_u8(*byte)).ok_or_else(cut_short)
    }

    fn marker(&mut self) -> Result<Marker, DecodeError> {
        let marker = self.peek()?;
        self.rest = &self.rest[1..];
        Ok(marker)
    }

    /// The error for a next value that is not a `wanted`.
    pub(crate) fn unexpected(&self, wanted: &str) -> DecodeError {
        match self.peek() {
            Ok(marker) => DecodeError::new(format!("expected {wanted}, got {}", kind(marker))),
            Err(error) => error,
        }
    }

    /// Takes the next value if it is nil, and tells whether it was.
    pub fn nil(&mut self) -> bool {
        let is_nil = matches!(self.peek(), Ok(Marker::Null));
        if is_nil {
            self.rest = &self.rest[1..];
        }
        is_nil
    }

    /// Takes the next value if it is nil or false, and tells whether it was. These stand for an absent value in a
    /// group.
    pub(crate) fn absent(&mut self) -> bool {
        let is_absent = matches!(self.peek(), Ok(Marker::Null | Marker::False));
        if is_absent {
            self.rest = &self.rest[1..];
        }
        is_absent
    }

    pub fn boolean(&mut self) -> Result<bool, DecodeError> {
        let before = *self;
        match self.marker()? {
            Marker::True => Ok(true),
            Marker::False => Ok(false),
            _ => Err(before.unexpected("a boolean")),
        }
    }

    pub fn integer(&mut self) -> Result<i64, DecodeError> {
        let before = *self;
        Ok(match self.marker()? {
            Marker::FixPos(n) => i64::from(n),
            Marker::FixNeg(n) => i64::from(n),
            Marker::U8 => i64::from(u8::from_be_bytes(self.array()?)),
            Marker::U16 => i64::from(u16::from_be_bytes(self.array()?)),
            Marker::U32 => i64::from(u32::from_be_bytes(self.array()?)),
            Marker::U64 => {
                let n = u64::from_be_bytes(self.array()?);
                i64::try_from(n).map_err(|_| DecodeError::new(format!("integer {n} is out of range")))?
            }
            Marker::I8 => i64::from(i8::from_be_bytes(self.array()?)),
            Marker::I16 => i64::from(i16::from_be_bytes(self.array()?)),
            Marker::I32 => i64::from(i32::from_be_bytes(self.array()?)),
            Marker::I64 => i64::from_be_bytes(self.array()?),
            _ => return Err(before.unexpected("an integer")),
        })
    }

    /// A number, whole or not.
    pub fn number(&mut self) -> Result<f64, DecodeError> {
        let before = *self;
        match self.marker()? {
            Marker::F32 => Ok(f64::from(f32::from_be_bytes(self.array()?))),
            Marker::F64 => Ok(f64::from_be_bytes(self.array()?)),
            _ => {
                *self = before;
                #[expect(clippy::cast_precision_loss, reason = "numbers of the library are below 2^53")]
                self.integer().map(|n| n as f64).map_err(|_| before.unexpected("a number"))
            }
        }
    }

    /// Text or bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        self.bytes_or("bytes")
    }

    fn bytes_or(&mut self, wanted: &str) -> Result<&'a [u8], DecodeError> {
        let before = *self;
        let len = match self.marker()? {
            Marker::FixStr(len) => usize::from(len),
            Marker::Str8 | Marker::Bin8 => self.length(1)?,
            Marker::Str16 | Marker::Bin16 => self.length(2)?,
            Marker::Str32 | Marker::Bin32 => self.length(4)?,
            _ => return Err(before.unexpected(wanted)),
        };
        self.take(len)
    }

    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.bytes_or("text")?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::new("text is not UTF-8"))
    }

    /// Reads the header of a list and returns its number of items.
    pub fn list(&mut self) -> Result<usize, DecodeError> {
        let before = *self;
        match self.marker()? {
            Marker::FixArray(len) => Ok(usize::from(len)),
            Marker::Array16 => self.length(2),
            Marker::Array32 => self.length(4),
            _ => Err(before.unexpected("a list")),
        }
    }

    /// Reads the header of a map and returns its number of entries. An empty Lua table is packed as an empty list.
    pub fn map(&mut self) -> Result<usize, DecodeError> {
        let before = *self;
        match self.marker()? {
            Marker::FixMap(len) => Ok(usize::from(len)),
            Marker::Map16 => self.length(2),
            Marker::Map32 => self.length(4),
            Marker::FixArray(0) => Ok(0),
            _ => Err(before.unexpected("a map")),
        }
    }

    pub fn skip(&mut self) -> Result<(), DecodeError> {
        let mut values = 1_usize;
        while values > 0 {
            values -= 1;
            let len = match self.marker()? {
                Marker::Null | Marker::True | Marker::False | Marker::FixPos(_) | Marker::FixNeg(_) => 0,
                Marker::U8 | Marker::I8 => 1,
                Marker::U16 | Marker::I16 => 2,
                Marker::U32 | Marker::I32 | Marker::F32 => 4,
                Marker::U64 | Marker::I64 | Marker::F64 => 8,
                Marker::FixStr(len) => usize::from(len),
                Marker::Str8 | Marker::Bin8 => self.length(1)?,
                Marker::Str16 | Marker::Bin16 => self.length(2)?,
                Marker::Str32 | Marker::Bin32 => self.length(4)?,
                Marker::FixArray(len) => {
                    values += usize::from(len);
                    0
                }
                Marker::Array16 => {
                    values += self.length(2)?;
                    0
                }
                Marker::Array32 => {
                    values += self.length(4)?;
                    0
                }
                Marker::FixMap(len) => {
                    values += 2 * usize::from(len);
                    0
                }
                Marker::Map16 => {
                    values += 2 * self.length(2)?;
                    0
                }
                Marker::Map32 => {
                    values += 2 * self.length(4)?;
                    0
                }
                _ => return Err(DecodeError::new("not msgpack: an unknown kind of value")),
            };
            self.take(len)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_passed_over_one_after_the_other() {
        let mut bytes = Vec::new();
        let values = [
            rmpv::Value::from(7),
            rmpv::Value::from(-300),
            rmpv::Value::Map(vec![("a".into(), vec![rmpv::Value::Nil, 1.5.into()].into())]),
            rmpv::Value::from("text"),
            rmpv::Value::from(true),
        ];
        for value in &values {
            rmpv::encode::write_value(&mut bytes, value).unwrap();
        }
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.integer().unwrap(), reader.integer().unwrap()), (7, -300));
        reader.skip().unwrap();
        assert_eq!(reader.text().unwrap(), "text");
        assert!(reader.boolean().unwrap());
        assert!(reader.is_empty());
        let mut again = Reader::new(&bytes);
        for _ in &values {
            again.skip().unwrap();
        }
        again.finish().unwrap();
    }

    #[test]
    fn what_is_cut_short_or_of_another_kind_is_refused() {
        assert_eq!(Reader::new(&[0xa5, b'a']).text().unwrap_err().to_string(), "not msgpack: cut short");
        assert_eq!(Reader::new(&[0xc3]).integer().unwrap_err().to_string(), "expected an integer, got a boolean");
        assert_eq!(Reader::new(&[0xa1, 0xff]).text().unwrap_err().to_string(), "text is not UTF-8");
        assert_eq!(
            Reader::new(&[0xca, 0, 0, 0, 0]).integer().unwrap_err().to_string(),
            "expected an integer, got a fraction"
        );
        assert!(Reader::new(&[0x92, 0x02]).skip().is_err());
        assert!(Reader::new(&[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).integer().is_err());
    }
}
