//! The encoding of values: msgpack as `cmsgpack` reads and writes it.
//!
//! Bytes and text are both of the str family, the only one that `cmsgpack` reads. Absent fields are left out. An empty
//! Lua table arrives as an empty array, so a map or struct accepts one as well.

mod core_types;
pub(crate) mod declare;
mod reader;
mod values;

pub use reader::Reader;
pub use values::Bytes;

/// A value that can be written as an argument and read from a reply.
pub trait Wire: Sized {
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads the next value; the error has the place and the reason.
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// The value of a missing field; `None` if the field is required.
    fn when_absent() -> Option<Self> {
        None
    }

    /// True if the field is left out when written.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A reply that does not match its contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", self.place())]
pub struct DecodeError {
    /// The path to the field, outermost first.
    path: Vec<String>,
    problem: String,
}

impl DecodeError {
    /// An error at the current value.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { path: Vec::new(), problem: problem.into() }
    }

    /// The same error, with its place inside `field`.
    #[must_use]
    pub fn within(mut self, field: impl Into<String>) -> Self {
        self.path.insert(0, field.into());
        self
    }

    fn place(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}: ", self.path.join(".")) }
    }
}

/// Reads exactly one value.
pub fn parse<T: Wire>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut input = Reader::new(bytes);
    let value = T::read(&mut input)?;
    input.finish()?;
    Ok(value)
}

/// A decoded field, or the value for an absent one.
pub(crate) fn present<T: Wire>(field: Option<T>, name: &'static str) -> Result<T, DecodeError> {
    field.or_else(T::when_absent).ok_or_else(|| DecodeError::new("is missing").within(name))
}

/// A field of a map. A nil counts as absent.
pub(crate) fn field<T: Wire>(input: &mut Reader<'_>, name: &'static str) -> Result<Option<T>, DecodeError> {
    if input.nil() { Ok(None) } else { T::read(input).map(Some).map_err(|error| error.within(name)) }
}

/// Writes the header of a map with this many entries.
pub fn write_map_len(out: &mut Vec<u8>, len: usize) {
    rmp::encode::write_map_len(out, u32::try_from(len).expect("a map holds fewer than 2^32 entries"))
        .expect("writing to memory cannot fail");
}

/// Writes the header of a list with this many items.
pub fn write_array_len(out: &mut Vec<u8>, len: usize) {
    rmp::encode::write_array_len(out, u32::try_from(len).expect("a list holds fewer than 2^32 items"))
        .expect("writing to memory cannot fail");
}

/// Writes text or bytes in the str family.
pub fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("a value is shorter than 4 GiB");
    rmp::encode::write_str_len(out, len).expect("writing to memory cannot fail");
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
