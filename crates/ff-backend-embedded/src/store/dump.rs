//! Reads the committed store from outside the worker: pages of keys, and everything at once.

use std::collections::BTreeMap;
use std::ops::Bound;

use ff_script::{Content, ScanCursor, ScanPage};
use heed::RoTxn;

use super::fields::Packed;
use super::layout::{TreeKey, is_digest};
use super::overlay::View;
use super::{Store, StoreError};

/// The id of a stream entry: milliseconds and a sequence number.
pub type StreamId = (u64, u64);

/// One stream entry: its id, and its fields in their original order.
pub type DumpEntry = (StreamId, Vec<(Vec<u8>, Vec<u8>)>);

/// The full content of a store key.
#[derive(Clone, Debug, PartialEq)]
pub enum DumpValue {
    /// Fields and values.
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    /// Members and scores.
    Zset(BTreeMap<Vec<u8>, f64>),
    /// Bytes.
    String(Vec<u8>),
    /// Entries in id order.
    Stream(Vec<DumpEntry>),
}

impl Store {
    /// One page of the keys that start with `ff:`.
    pub fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, StoreError> {
        let after = match cursor {
            ScanCursor::Start => None,
            ScanCursor::After(key) => Some(key),
            ScanCursor::End => return Ok(ScanPage { keys: Vec::new(), next: ScanCursor::End }),
        };
        let txn = self.env.read_txn()?;
        let from: Bound<&[u8]> = match &after {
            None => Bound::Included(b"ff:"),
            Some(key) => Bound::Excluded(key),
        };
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (from, Bound::Excluded(b"ff;"));
        let mut page = ScanPage { keys: Vec::new(), next: ScanCursor::End };
        let mut last = Vec::new();
        for item in self.keys.range(&txn, &bounds)? {
            let (tree_key, value) = item?;
            if page.keys.len() >= limit.max(1) {
                page.next = ScanCursor::After(last);
                break;
            }
            last = tree_key.to_vec();
            page.keys.push(original_key(tree_key, value)?);
        }
        Ok(page)
    }

    /// The content of every key.
    pub fn dump(&self) -> Result<BTreeMap<Vec<u8>, DumpValue>, StoreError> {
        let txn = self.env.read_txn()?;
        let mut all = BTreeMap::new();
        for item in self.keys.iter(&txn)? {
            let (tree_key, value) = item?;
            let (view, _) = View::decode(tree_key, value)?;
            all.insert(original_key(tree_key, value)?, self.dump_value(&txn, view)?);
        }
        Ok(all)
    }

    /// The committed content of these keys.
    pub fn contents(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Content>>, StoreError> {
        let txn = self.env.read_txn()?;
        let mut contents = Vec::with_capacity(keys.len());
        for key in keys {
            let tree_key = TreeKey::name(key);
            let Some(value) = self.keys.get(&txn, &tree_key)? else {
                contents.push(None);
                continue;
            };
            let (view, _) = View::decode(&tree_key, value)?;
            let last = if let View::Stream(meta) = &view { meta.last } else { (0, 0) };
            contents.push(Some(match self.dump_value(&txn, view)? {
                DumpValue::Hash(fields) => Content::Hash(fields.into_iter().collect()),
                DumpValue::Zset(members) => Content::Zset(members.into_iter().collect()),
                DumpValue::String(text) => Content::Text(text),
                DumpValue::Stream(entries) => Content::Stream { entries, last },
            }));
        }
        Ok(contents)
    }

    fn dump_value(&self, txn: &RoTxn<'_>, view: View<'_>) -> Result<DumpValue, StoreError> {
        let owned = |(first, second): (&[u8], &[u8])| (first.to_vec(), second.to_vec());
        Ok(match view {
            View::Absent | View::Hash(_) => unreachable!("the tree holds neither"),
            View::Text(text) => DumpValue::String(text.to_vec()),
            View::Packed(packed) => {
                let pairs: Result<_, _> = Packed(packed).map(|pair| pair.map(owned)).collect();
                DumpValue::Hash(pairs?)
            }
            View::LargeHash(large) => {
                let mut fields = BTreeMap::new();
                for item in self.fields.prefix_iter(txn, &TreeKey::edge(large.id))? {
                    let (field, value) = super::hash::large_field(item?)?;
                    fields.insert(field.to_vec(), value.to_vec());
                }
                DumpValue::Hash(fields)
            }
            View::Zset(zset) => {
                let mut members = BTreeMap::new();
                for item in self.order.prefix_iter(txn, &TreeKey::edge(zset.id))? {
                    let (member, score) = super::zset::ordered(item?)?;
                    members.insert(member.to_vec(), score);
                }
                DumpValue::Zset(members)
            }
            View::Stream(meta) => {
                let mut entries = Vec::new();
                for item in self.entries.prefix_iter(txn, &TreeKey::edge(meta.id))? {
                    let (key, packed) = item?;
                    let pairs: Result<_, _> = Packed(packed).map(|pair| pair.map(owned)).collect();
                    entries.push((super::stream::entry_id(key)?, pairs?));
                }
                DumpValue::Stream(entries)
            }
        })
    }

    /// The number of entries in the trees behind the keys. A leak would raise it.
    pub fn entries_behind_keys(&self) -> Result<u64, StoreError> {
        let txn = self.env.read_txn()?;
        let mut total = 0;
        for tree in [&self.members, &self.order, &self.entries, &self.fields] {
            total += tree.len(&txn)?;
        }
        Ok(total)
    }
}

/// The original store key of a tree key.
fn original_key(tree_key: &[u8], value: &[u8]) -> Result<Vec<u8>, StoreError> {
    if !is_digest(tree_key.len()) {
        return Ok(tree_key.to_vec());
    }
    let (_, original) = View::decode(tree_key, value)?;
    original.map(<[u8]>::to_vec).ok_or_else(|| StoreError::Corrupt("a long key has no original".to_owned()))
}
