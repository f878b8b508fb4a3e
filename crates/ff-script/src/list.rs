//! Lists of operations, as a store takes them: one call carries many, each answered on its own.

use rmp::Marker;

use crate::generated::{ENDING, READING};
use crate::host::{HostError, Invocation};
use crate::wire::{Wire, write_array_len, write_bytes};

/// The most operations of one list.
pub const LIST_MAX: usize = 64;
/// The most bytes of arguments of one list; a larger operation travels alone.
pub const LIST_BYTES_MAX: usize = 512 * 1024;

/// What ends or takes up work and is larger than this waits for room like anything else.
pub const END_BYTES_MAX: usize = 64 * 1024;

/// What a list may do, which is what the function it is carried by says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Only reads.
    Read,
    /// Writes.
    Run,
    /// Ends, frees or takes up work: a full store runs it too.
    End,
}

impl Class {
    /// The class of an operation.
    #[must_use]
    pub fn of(invocation: &Invocation) -> Self {
        if invocation.read_only || READING.binary_search(&invocation.function).is_ok() {
            Self::Read
        } else if ENDING.binary_search(&invocation.function).is_ok() && invocation.args.len() <= END_BYTES_MAX {
            Self::End
        } else {
            Self::Run
        }
    }

    /// The class of a list of operations of these classes.
    pub fn of_all(classes: impl IntoIterator<Item = Self>) -> Self {
        let mut all = classes.into_iter();
        let Some(first) = all.next() else {
            return Self::Read;
        };
        all.fold(first, |one, other| if one == other { one } else { Self::Run })
    }

    /// The registered function that runs a list of this class.
    #[must_use]
    pub const fn function(self) -> &'static str {
        match self {
            Self::Read => "ff_read",
            Self::Run => "ff_run",
            Self::End => "ff_end",
        }
    }
}

/// What a host tells the library beside the operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// A commit touches its keys before it writes: needed where slots move.
    pub guard: bool,
    /// Someone reads events: announce them.
    pub listen: bool,
}

/// Refuses an operation whose arguments are no msgpack map, before it is put into a list with others.
pub fn checked(invocation: &Invocation) -> Result<(), HostError> {
    match invocation.args.first().map(|first| Marker::from_u8(*first)) {
        // An empty Lua table is packed as an array.
        Some(Marker::FixMap(_) | Marker::Map16 | Marker::Map32 | Marker::FixArray(0)) => Ok(()),
        _ => Err(HostError::Refused { detail: "the arguments of a call must be a msgpack map".to_owned() }),
    }
}

/// The argument of a list's function.
#[must_use]
pub fn write<'a>(marks: Marks, operations: impl ExactSizeIterator<Item = &'a Invocation> + Clone) -> Vec<u8> {
    let size: usize = operations.clone().map(|operation| operation.args.len() + 64).sum();
    let mut out = Vec::with_capacity(size + 8);
    write_array_len(&mut out, operations.len() + 1);
    (i64::from(marks.guard) + 2 * i64::from(marks.listen)).write(&mut out);
    for operation in operations {
        write_array_len(&mut out, 5);
        write_bytes(&mut out, operation.function.as_bytes());
        write_bytes(&mut out, operation.route.to_string().as_bytes());
        out.extend_from_slice(&operation.args);
        match operation.now_ms {
            Some(now_ms) => now_ms.write(&mut out),
            None => out.push(Marker::Null.to_u8()),
        }
        operation.count_calls.write(&mut out);
    }
    out
}

/// What became of one operation of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its reply: accepted or refused.
    Reply(Vec<u8>),
    /// It raised; it wrote nothing.
    Raised(String),
    /// The library does not have it.
    Unknown,
}

impl Answer {
    /// Reads the bytes that stand in the operation's place of the answers.
    #[must_use]
    pub fn read(bytes: Vec<u8>) -> Self {
        const RAISED: &[u8] = b"\x81\xa6raised";
        const UNKNOWN: &[u8] = b"\x81\xa7unknown";
        if bytes.starts_with(UNKNOWN) {
            return Self::Unknown;
        }
        match bytes.strip_prefix(RAISED) {
            None => Self::Reply(bytes),
            Some(mut rest) => {
                let text = rmp::decode::read_str_len(&mut rest).ok().and_then(|len| rest.get(..len as usize));
                Self::Raised(String::from_utf8_lossy(text.unwrap_or_default()).into_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Route;

    fn operation(function: &'static str, read_only: bool, args: &[u8]) -> Invocation {
        Invocation {
            route: Route::Execution(3),
            function,
            read_only,
            args: args.to_vec(),
            now_ms: Some(1_700_000_000_000),
            count_calls: true,
        }
    }

    #[test]
    fn a_list_is_its_marks_and_its_operations() {
        let args = [0x81, 0xa1, b'a', 0x07];
        let operations = [operation("ff_one", false, &args), operation("ff_two", true, &[0x90])];
        let packed = write(Marks { guard: true, listen: true }, operations.iter());
        let value = rmpv::decode::read_value(&mut packed.as_slice()).unwrap();
        let list = value.as_array().unwrap();
        assert_eq!((list.len(), list[0].as_i64()), (3, Some(3)));
        let one = list[1].as_array().unwrap();
        assert_eq!((one[0].as_str(), one[1].as_str()), (Some("ff_one"), Some("ff:{p:3}")));
        assert_eq!(one[2].as_map().unwrap()[0].1.as_i64(), Some(7));
        assert_eq!((one[3].as_i64(), one[4].as_bool()), (Some(1_700_000_000_000), Some(true)));
    }

    #[test]
    fn arguments_are_a_map_or_refused() {
        for args in [&[0x80][..], &[0x90], &[0xde, 0, 0], &[0xdf, 0, 0, 0, 0]] {
            assert_eq!(checked(&operation("ff_one", false, args)), Ok(()));
        }
        for args in [&[][..], &[0xc0], &[0x91, 0x01]] {
            assert!(matches!(checked(&operation("ff_one", false, args)), Err(HostError::Refused { .. })));
        }
    }

    #[test]
    fn the_class_of_a_list_is_the_one_all_share() {
        assert!(ENDING.is_sorted() && READING.is_sorted());
        let class = |function| Class::of(&operation(function, false, &[0x80]));
        assert_eq!(class("ff_complete_execution"), Class::End);
        assert_eq!(class("ff_submit_execution"), Class::Run);
        let large = operation("ff_complete_execution", false, &[0x80; END_BYTES_MAX + 1]);
        assert_eq!(Class::of(&large), Class::Run);
        assert_eq!(class("ff_describe_execution"), Class::Read);
        assert_eq!(Class::of_all([Class::End, Class::End]), Class::End);
        assert_eq!(Class::of_all([Class::End, Class::Run]), Class::Run);
        assert_eq!(Class::of_all([Class::Read, Class::End]), Class::Run);
        assert_eq!(Class::of_all([Class::Read]), Class::Read);
    }

    #[test]
    fn answers_are_replies_raises_or_unknown() {
        let packed = |name: &str, text: &str| {
            let mut out = Vec::new();
            let map = rmpv::Value::Map(vec![(name.into(), text.into())]);
            rmpv::encode::write_value(&mut out, &map).unwrap();
            out
        };
        assert_eq!(Answer::read(packed("raised", "boom")), Answer::Raised("boom".to_owned()));
        assert_eq!(Answer::read(packed("unknown", "ff_x")), Answer::Unknown);
        let long = "x".repeat(300);
        assert_eq!(Answer::read(packed("raised", &long)), Answer::Raised(long));
        let reply = packed("err", "stale_lease");
        assert_eq!(Answer::read(reply.clone()), Answer::Reply(reply));
    }
}
