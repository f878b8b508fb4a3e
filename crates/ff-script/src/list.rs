//! Lists of operations: one call of the store carries many, and each has its own reply.

use rmp::Marker;

use crate::generated::{ENDING, READING};
use crate::host::{HostError, Invocation, Visits};
use crate::wire::{Reader, Wire, write_bytes};

/// The maximum total weight of a list. A heavier operation travels alone.
pub const LIST_MAX: usize = 64;
/// The maximum bytes of arguments of one list. A larger operation travels alone.
pub const LIST_BYTES_MAX: usize = 512 * 1024;

/// An operation that ends or takes up work and is larger than this waits for room like any other.
pub const END_BYTES_MAX: usize = 64 * 1024;

/// What a list may do; it decides which registered function runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It only reads.
    Read,
    /// It writes.
    Run,
    /// It ends, frees or takes up work, so a full store runs it too.
    End,
}

impl Class {
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

    /// The class of a list of operations with these classes.
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

/// What a host tells the library about a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The flush touches its keys before it writes. Needed where slots can move.
    pub guard: bool,
    /// Events have a reader, so they are announced.
    pub listen: bool,
    /// Disables fast paths; only the test library uses it.
    pub step_by_step: bool,
    /// The number of the library whose rules the arguments passed.
    pub checked_by: Option<u32>,
    /// Operations may visit other partitions. Not on a cluster, where a call reaches only one.
    pub visits: Option<Visits>,
}

impl Marks {
    /// The same marks for a list of these operations. It counts as checked, or as visiting, only if each operation
    /// does.
    #[must_use]
    pub fn of<'a>(self, operations: impl IntoIterator<Item = &'a Invocation>) -> Self {
        let mut terms = operations.into_iter().map(|operation| operation.terms);
        let Some(first) = terms.next() else { return self };
        let (mut checked_by, mut step_by_step) = (first.checked_by, first.step_by_step);
        let mut visits = first.visits.filter(|_| !self.guard);
        for one in terms {
            checked_by = checked_by.filter(|_| one.checked_by == checked_by);
            visits = visits.filter(|_| one.visits == visits);
            step_by_step |= one.step_by_step;
        }
        Self { checked_by, step_by_step, visits, ..self }
    }
}

/// Fails if the arguments are not a msgpack map, before the operation joins a list with others.
pub fn checked(invocation: &Invocation) -> Result<(), HostError> {
    match invocation.args.first().map(|first| Marker::from_u8(*first)) {
        // An empty Lua table is packed as an array.
        Some(Marker::FixMap(_) | Marker::Map16 | Marker::Map32 | Marker::FixArray(0)) => Ok(()),
        _ => Err(HostError::Refused { detail: "the arguments of a call must be a msgpack map".to_owned() }),
    }
}

/// The head of a list: the first argument of its function.
#[must_use]
pub fn write_head(marks: Marks) -> Vec<u8> {
    let mut out = Vec::with_capacity(8);
    (i64::from(marks.guard) + 2 * i64::from(marks.listen) + 4 * i64::from(marks.step_by_step)).write(&mut out);
    i64::from(marks.checked_by.unwrap_or(0)).write(&mut out);
    if let Some(visits) = marks.visits {
        i64::from(visits.executions).write(&mut out);
        i64::from(visits.budgets).write(&mut out);
        i64::from(visits.quotas).write(&mut out);
    }
    out
}

/// One operation: an argument of the list's function.
#[must_use]
pub fn write_operation(operation: &Invocation) -> Vec<u8> {
    let mut out = Vec::with_capacity(operation.args.len() + 64);
    write_bytes(&mut out, operation.function.as_bytes());
    write_bytes(&mut out, operation.route.to_string().as_bytes());
    out.extend_from_slice(&operation.args);
    if operation.now_ms.is_some() || operation.count_calls {
        operation.now_ms.write(&mut out);
        operation.count_calls.write(&mut out);
    }
    out
}

/// The result of one operation of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its reply: a success or a refusal.
    Reply(Vec<u8>),
    /// It raised, and wrote nothing.
    Raised(String),
    /// The library has no such operation.
    Unknown,
}

impl Answer {
    /// Reads the result of one operation from its position in the reply.
    #[must_use]
    pub fn read(bytes: Vec<u8>) -> Self {
        let mut input = Reader::new(&bytes);
        if !input.nil() {
            return Self::Reply(bytes);
        }
        match input.text() {
            Ok("unknown") => Self::Unknown,
            Ok("raised") => Self::Raised(String::from_utf8_lossy(input.bytes().unwrap_or_default()).into_owned()),
            _ => Self::Reply(bytes),
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
            terms: crate::host::Terms::default(),
        }
    }

    #[test]
    fn a_list_is_its_marks_and_its_operations() {
        let head = write_head(Marks { guard: true, listen: true, checked_by: Some(7), ..Marks::default() });
        assert_eq!(head, [3, 7]);
        let packed = write_operation(&operation("ff_one", false, &[0x81, 0xa1, b'a', 0x07]));
        let mut input = Reader::new(&packed);
        assert_eq!((input.text().unwrap(), input.text().unwrap()), ("ff_one", "ff:{p:3}"));
        assert_eq!((input.map().unwrap(), input.text().unwrap(), input.integer().unwrap()), (1, "a", 7));
        assert_eq!((input.integer().unwrap(), input.boolean().unwrap()), (1_700_000_000_000, true));
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
        let packed = |text: &str| {
            let mut out = vec![0xc0];
            "raised".to_owned().write(&mut out);
            text.to_owned().write(&mut out);
            out
        };
        assert_eq!(Answer::read(packed("boom")), Answer::Raised("boom".to_owned()));
        assert_eq!(Answer::read(b"\xc0\xa7unknown\xa4ff_x".to_vec()), Answer::Unknown);
        let long = "x".repeat(300);
        assert_eq!(Answer::read(packed(&long)), Answer::Raised(long));
        let reply = b"\xc2\xabstale_lease\x90".to_vec();
        assert_eq!(Answer::read(reply.clone()), Answer::Reply(reply));
    }
}
