//! How values travel: msgpack as `cmsgpack` reads and writes it.
//!
//! Bytes and text are both of the str family, the only one `cmsgpack` reads. What is absent is left out. An empty Lua
//! table arrives as an empty array, so a map or struct reads from one as well.

mod core_types;
pub(crate) mod declare;
mod values;

use rmpv::ValueRef;

pub use values::Bytes;

/// A value that can be written as an argument and read from a reply.
pub trait Wire: Sized {
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);

    /// The value, or where and why there is none.
    fn read(value: &ValueRef<'_>) -> Result<Self, DecodeError>;

    /// What a missing field means; nothing, unless the field is optional.
    fn when_absent() -> Option<Self> {
        None
    }

    /// True when the field is to be left out.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A reply that does not have the shape its contract promises.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", self.place())]
pub struct DecodeError {
    /// The way to the field, outermost first.
    path: Vec<String>,
    /// What is wrong there.
    problem: String,
}

impl DecodeError {
    /// What is wrong with the value at hand.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { path: Vec::new(), problem: problem.into() }
    }

    /// A value of another kind than `wanted`.
    pub(crate) fn unexpected(wanted: &str, got: &ValueRef<'_>) -> Self {
        let kind = match got {
            ValueRef::Nil => "nil",
            ValueRef::Boolean(_) => "a boolean",
            ValueRef::Integer(_) => "an integer",
            ValueRef::F32(_) | ValueRef::F64(_) => "a fraction",
            ValueRef::String(_) | ValueRef::Binary(_) => "text",
            ValueRef::Array(_) => "a list",
            ValueRef::Map(_) => "a map",
            ValueRef::Ext(..) => "an extension",
        };
        Self::new(format!("expected {wanted}, got {kind}"))
    }

    /// The same problem, seen from the record that holds `field`.
    #[must_use]
    pub fn within(mut self, field: impl Into<String>) -> Self {
        self.path.insert(0, field.into());
        self
    }

    fn place(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}: ", self.path.join(".")) }
    }
}

/// Reads one msgpack value and nothing after it.
pub fn parse(bytes: &[u8]) -> Result<ValueRef<'_>, DecodeError> {
    let mut rest = bytes;
    let value =
        rmpv::decode::read_value_ref(&mut rest).map_err(|error| DecodeError::new(format!("not msgpack: {error}")))?;
    if rest.is_empty() { Ok(value) } else { Err(DecodeError::new(format!("{} bytes after the value", rest.len()))) }
}

/// The fields of a map or struct.
pub struct Fields<'a, 'v>(&'a [(ValueRef<'v>, ValueRef<'v>)]);

impl<'a, 'v> Fields<'a, 'v> {
    /// The fields of this value; an empty array has none.
    pub fn of(value: &'a ValueRef<'v>) -> Result<Self, DecodeError> {
        match value {
            ValueRef::Map(entries) => Ok(Self(entries)),
            ValueRef::Array(items) if items.is_empty() => Ok(Self(&[])),
            other => Err(DecodeError::unexpected("a map", other)),
        }
    }

    /// The raw value of a field; nil counts as absent.
    pub fn get(&self, name: &str) -> Option<&'a ValueRef<'v>> {
        self.0
            .iter()
            .find(|(key, _)| text_bytes(key) == Some(name.as_bytes()))
            .map(|(_, value)| value)
            .filter(|value| !matches!(value, ValueRef::Nil))
    }

    /// The value of a field. Fields nobody asks for are ignored: a newer library may send more.
    pub fn read<T: Wire>(&self, name: &'static str) -> Result<T, DecodeError> {
        match self.get(name) {
            Some(value) => T::read(value),
            None => T::when_absent().ok_or_else(|| DecodeError::new("is missing")),
        }
        .map_err(|error| error.within(name))
    }

    pub(crate) fn entries(&self) -> &'a [(ValueRef<'v>, ValueRef<'v>)] {
        self.0
    }
}

/// The bytes of a text or byte value.
pub(crate) fn text_bytes<'a>(value: &'a ValueRef<'_>) -> Option<&'a [u8]> {
    match value {
        ValueRef::String(text) => Some(text.as_bytes()),
        ValueRef::Binary(bytes) => Some(bytes),
        _ => None,
    }
}

/// Writes the header of a map with this many entries.
pub fn write_map_len(out: &mut Vec<u8>, len: usize) {
    rmp::encode::write_map_len(out, u32::try_from(len).expect("a map holds fewer than 2^32 entries"))
        .expect("writing to memory does not fail");
}

/// Writes the header of a list with this many items.
pub fn write_array_len(out: &mut Vec<u8>, len: usize) {
    rmp::encode::write_array_len(out, u32::try_from(len).expect("a list holds fewer than 2^32 items"))
        .expect("writing to memory does not fail");
}

/// Writes text or bytes in the str family.
pub fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("a value is shorter than 4 GiB");
    rmp::encode::write_str_len(out, len).expect("writing to memory does not fail");
    out.extend_from_slice(bytes);
}

/// Whether two texts are equal, decided at compile time.
#[must_use]
pub(crate) const fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}
