//! The decoded records that a group of calls has touched. They are written to the tree once, at the end of the group.

use std::collections::HashMap;

use super::fields::Fields;
use super::layout::{Corruption, TreeKey, is_digest, read_u64};

/// The content of a store key.
#[derive(Debug)]
pub(crate) enum Record {
    Absent,
    Text(Vec<u8>),
    Hash(Fields),
    /// A hash with too many fields for one value.
    LargeHash(Counted),
    Zset(Counted),
    Stream(StreamMeta),
}

/// The id of a member tree, and its number of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub id: u64,
    pub len: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamMeta {
    pub id: u64,
    pub len: u64,
    pub last: (u64, u64),
}

/// A record read in place.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    Absent,
    Text(&'a [u8]),
    Packed(&'a [u8]),
    Hash(&'a Fields),
    LargeHash(Counted),
    Zset(Counted),
    Stream(StreamMeta),
}

const TEXT: u8 = 1;
const HASH: u8 = 2;
const LARGE_HASH: u8 = 3;
const ZSET: u8 = 4;
const STREAM: u8 = 5;

impl<'a> View<'a> {
    /// Reads a record of the `keys` tree. For a long key, the record begins with the original.
    pub fn decode(tree_key: &[u8], value: &'a [u8]) -> Result<(View<'a>, Option<&'a [u8]>), Corruption> {
        let mut rest = value;
        let mut original = None;
        if is_digest(tree_key.len()) {
            let len = read_u64(&mut rest)? as usize;
            if len > rest.len() {
                return Err(Corruption("a long key ends early"));
            }
            let (key, tail) = rest.split_at(len);
            original = Some(key);
            rest = tail;
        }
        let Some((&tag, mut body)) = rest.split_first() else {
            return Err(Corruption("a record is empty"));
        };
        let view = match tag {
            TEXT => View::Text(body),
            HASH => View::Packed(body),
            LARGE_HASH => View::LargeHash(Counted { id: read_u64(&mut body)?, len: read_u64(&mut body)? }),
            ZSET => View::Zset(Counted { id: read_u64(&mut body)?, len: read_u64(&mut body)? }),
            STREAM => View::Stream(StreamMeta {
                id: read_u64(&mut body)?,
                len: read_u64(&mut body)?,
                last: (read_u64(&mut body)?, read_u64(&mut body)?),
            }),
            _ => return Err(Corruption("a record has an unknown type")),
        };
        Ok((view, original))
    }

    pub fn to_record(self) -> Result<Record, Corruption> {
        Ok(match self {
            View::Absent => Record::Absent,
            View::Text(text) => Record::Text(text.to_vec()),
            View::Packed(packed) => Record::Hash(Fields::unpack(packed)?),
            View::Hash(_) => unreachable!("only records of the tree are loaded"),
            View::LargeHash(counted) => Record::LargeHash(counted),
            View::Zset(counted) => Record::Zset(counted),
            View::Stream(meta) => Record::Stream(meta),
        })
    }
}

impl Record {
    pub fn view(&self) -> View<'_> {
        match self {
            Record::Absent => View::Absent,
            Record::Text(text) => View::Text(text),
            Record::Hash(fields) => View::Hash(fields),
            Record::LargeHash(counted) => View::LargeHash(*counted),
            Record::Zset(counted) => View::Zset(*counted),
            Record::Stream(meta) => View::Stream(*meta),
        }
    }

    /// Appends the tree's form of this record; nothing if it is absent.
    fn encode(&self, out: &mut Vec<u8>) {
        let counted = |out: &mut Vec<u8>, tag: u8, counted: &Counted| {
            out.push(tag);
            out.extend_from_slice(&counted.id.to_be_bytes());
            out.extend_from_slice(&counted.len.to_be_bytes());
        };
        match self {
            Record::Absent => {}
            Record::Text(text) => {
                out.push(TEXT);
                out.extend_from_slice(text);
            }
            Record::Hash(fields) => {
                out.push(HASH);
                fields.pack(out);
            }
            Record::LargeHash(c) => counted(out, LARGE_HASH, c),
            Record::Zset(c) => counted(out, ZSET, c),
            Record::Stream(meta) => {
                out.push(STREAM);
                for n in [meta.id, meta.len, meta.last.0, meta.last.1] {
                    out.extend_from_slice(&n.to_be_bytes());
                }
            }
        }
    }
}

pub(crate) struct Slot {
    key: Box<[u8]>,
    pub record: Record,
    pub dirty: bool,
}

impl Slot {
    /// The tree key and the record for it; `None` removes it.
    pub fn encode(&self, out: &mut Vec<u8>) -> (TreeKey, bool) {
        let tree_key = TreeKey::name(&self.key);
        out.clear();
        if matches!(self.record, Record::Absent) {
            return (tree_key, false);
        }
        if is_digest(tree_key.len()) {
            out.extend_from_slice(&(self.key.len() as u64).to_be_bytes());
            out.extend_from_slice(&self.key);
        }
        self.record.encode(out);
        (tree_key, true)
    }
}

/// The touched records of a group. Slots are never removed within a group, so slot numbers stay valid.
#[derive(Default)]
pub(crate) struct Overlay {
    index: HashMap<Box<[u8]>, usize>,
    pub slots: Vec<Slot>,
}

impl Overlay {
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        self.index.get(key).copied()
    }

    pub fn add(&mut self, key: &[u8], record: Record) -> usize {
        let number = self.slots.len();
        self.index.insert(key.into(), number);
        self.slots.push(Slot { key: key.into(), record, dirty: false });
        number
    }
}
