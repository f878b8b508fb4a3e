//! A store's whole content as plain values, for comparing hosts in tests.

use std::collections::BTreeMap;

/// Every key of a store and what it holds.
pub type Dump = BTreeMap<String, DumpValue>;

/// What one key holds.
#[derive(Debug, Clone, PartialEq)]
pub enum DumpValue {
    /// Fields and values.
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    /// Members and scores.
    Zset(BTreeMap<Vec<u8>, f64>),
    /// Plain bytes.
    String(Vec<u8>),
    /// Entries in order: id, then fields and values in the order they were added.
    Stream(Vec<StreamEntry>),
}

/// An entry of a stream: its id, then fields and values.
pub type StreamEntry = (String, Vec<(Vec<u8>, Vec<u8>)>);
