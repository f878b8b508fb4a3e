//! Hash commands. A small hash is one value. Beyond [`SMALL_MAX`] fields it becomes a tree of fields, and stays one
//! until it is removed.

use super::fields::{Fields, Packed};
use super::layout::{Corruption, TreeKey, is_digest, read_u64};
use super::overlay::{Counted, Record, View};
use super::session::{Session, Tables, Undo};
use super::{Failure, StoreError, refused, wrong_type};

/// Above this many fields, rewriting the whole hash for one field costs more than a tree of fields.
const SMALL_MAX: usize = 256;

/// Looks up one field.
fn lookup<'t>(tables: &'t Tables<'_>, view: View<'t>, field: &[u8]) -> Result<Option<&'t [u8]>, Failure> {
    match view {
        View::Absent => Ok(None),
        View::Hash(fields) => Ok(fields.get(field)),
        View::Packed(packed) => {
            for pair in Packed(packed) {
                let (name, value) = pair?;
                match name.cmp(field) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => return Ok(Some(value)),
                    std::cmp::Ordering::Greater => break,
                }
            }
            Ok(None)
        }
        View::LargeHash(large) => Ok(tables.large_field(large.id, field)?),
        _ => wrong_type(),
    }
}

/// The field and value of an entry of the `fields` tree.
pub(super) fn large_field<'t>((key, value): (&'t [u8], &'t [u8])) -> Result<(&'t [u8], &'t [u8]), Corruption> {
    let name = key.get(8..).ok_or(Corruption("a field has no id"))?;
    let (original, value) = split_large(name.len(), value)?;
    Ok((original.unwrap_or(name), value))
}

/// The original name of a field stored as a digest, and the value.
fn split_large(name_len: usize, value: &[u8]) -> Result<(Option<&[u8]>, &[u8]), Corruption> {
    if !is_digest(name_len) {
        return Ok((None, value));
    }
    let mut rest = value;
    let len = read_u64(&mut rest)? as usize;
    let (original, value) = rest.split_at_checked(len).ok_or(Corruption("a long field ends early"))?;
    Ok((Some(original), value))
}

impl Tables<'_> {
    fn large_field(&self, id: u64, field: &[u8]) -> Result<Option<&[u8]>, StoreError> {
        let key = TreeKey::member(id, field);
        match self.store.fields.get(self.read(), &key)? {
            None => Ok(None),
            Some(value) => Ok(Some(split_large(key.len() - 8, value)?.1)),
        }
    }

    /// Moves the fields of a hash that is too large for one value into the tree.
    fn enlarge(&mut self, slot: usize) -> Result<(), Failure> {
        let Record::Hash(fields) = self.record(slot) else {
            return Ok(());
        };
        let pairs: Vec<_> = fields.iter().map(|(f, v)| (f.to_vec(), v.to_vec())).collect();
        let large = Counted { id: self.fresh_id()?, len: pairs.len() as u64 };
        for (field, value) in pairs {
            self.put_large_field(large.id, &field, Some(&value))?;
            self.undo.push(Undo::LargeField { id: large.id, field, old: None });
        }
        self.replace(slot, Record::LargeHash(large));
        Ok(())
    }
}

impl Session<'_> {
    pub(super) fn hget(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let view = self.tables.view(args[1])?;
        match lookup(&self.tables, view, args[2])? {
            None => self.reply.nil(),
            Some(value) => self.reply.bulk(value),
        }
        Ok(())
    }

    pub(super) fn hmget(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let view = self.tables.view(args[1])?;
        self.reply.array(args.len() - 2);
        for field in &args[2..] {
            match lookup(&self.tables, view, field)? {
                None => self.reply.nil(),
                Some(value) => self.reply.bulk(value),
            }
        }
        Ok(())
    }

    pub(super) fn hgetall(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let open = self.reply.open();
        let mut count = 0;
        let mut pair = |(field, value): (&[u8], &[u8])| {
            self.reply.bulk(field);
            self.reply.bulk(value);
            count += 2;
        };
        match self.tables.view(args[1])? {
            View::Absent => {}
            View::Hash(fields) => fields.iter().for_each(pair),
            View::Packed(packed) => {
                for item in Packed(packed) {
                    pair(item?);
                }
            }
            View::LargeHash(large) => {
                for item in self.tables.store.fields.prefix_iter(self.tables.read(), &TreeKey::edge(large.id))? {
                    pair(large_field(item?)?);
                }
            }
            _ => return wrong_type(),
        }
        self.reply.close(open, count);
        Ok(())
    }

    pub(super) fn hlen(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let len = match self.tables.view(args[1])? {
            View::Absent => 0,
            View::Hash(fields) => fields.len(),
            View::Packed(packed) => {
                let mut count = 0;
                for item in Packed(packed) {
                    item?;
                    count += 1;
                }
                count
            }
            View::LargeHash(large) => large.len as usize,
            _ => return wrong_type(),
        };
        self.reply.integer(len as i64);
        Ok(())
    }

    pub(super) fn hexists(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let view = self.tables.view(args[1])?;
        let found = lookup(&self.tables, view, args[2])?.is_some();
        self.reply.integer(i64::from(found));
        Ok(())
    }

    pub(super) fn hset(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let pairs = &args[2..];
        if !pairs.len().is_multiple_of(2) {
            return refused("ERR wrong number of arguments for 'hset' command");
        }
        let tables = &mut self.tables;
        let slot = tables.slot(args[1])?;
        match tables.record(slot) {
            Record::Absent => tables.replace(slot, Record::Hash(Fields::default())),
            Record::Hash(_) | Record::LargeHash(_) => {}
            _ => return wrong_type(),
        }
        let mut added = 0;
        let mut pairs = pairs.chunks_exact(2);
        let slot_ref = &mut tables.overlay.slots[slot];
        if let Record::Hash(fields) = &mut slot_ref.record {
            slot_ref.dirty = true;
            for pair in pairs.by_ref() {
                let (field, old) = fields.set(pair[0], pair[1]);
                added += i64::from(old.is_none());
                tables.undo.push(Undo::Field { slot, field, old });
                if fields.len() > SMALL_MAX {
                    break;
                }
            }
            if fields.len() > SMALL_MAX {
                tables.enlarge(slot)?;
            }
        }
        if let Record::LargeHash(large) = tables.record(slot) {
            let mut large = *large;
            for pair in pairs {
                let old = tables.large_field(large.id, pair[0])?.map(<[u8]>::to_vec);
                large.len += u64::from(old.is_none());
                added += i64::from(old.is_none());
                tables.put_large_field(large.id, pair[0], Some(pair[1]))?;
                tables.undo.push(Undo::LargeField { id: large.id, field: pair[0].to_vec(), old });
            }
            tables.replace(slot, Record::LargeHash(large));
        }
        self.reply.integer(added);
        Ok(())
    }

    pub(super) fn hdel(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let tables = &mut self.tables;
        match tables.view(args[1])? {
            View::Absent => {
                self.reply.integer(0);
                return Ok(());
            }
            View::Hash(_) | View::Packed(_) | View::LargeHash(_) => {}
            _ => return wrong_type(),
        }
        let slot = tables.slot(args[1])?;
        let mut removed = 0;
        let slot_ref = &mut tables.overlay.slots[slot];
        match &mut slot_ref.record {
            Record::Hash(fields) => {
                for name in &args[2..] {
                    if let Some((field, old)) = fields.remove(name) {
                        slot_ref.dirty = true;
                        removed += 1;
                        tables.undo.push(Undo::Field { slot, field, old: Some(old) });
                    }
                }
                if fields.is_empty() {
                    tables.replace(slot, Record::Absent);
                }
            }
            Record::LargeHash(large) => {
                let mut large = *large;
                for name in &args[2..] {
                    if let Some(old) = tables.large_field(large.id, name)?.map(<[u8]>::to_vec) {
                        removed += 1;
                        large.len = large.len.saturating_sub(1);
                        tables.put_large_field(large.id, name, None)?;
                        tables.undo.push(Undo::LargeField { id: large.id, field: name.to_vec(), old: Some(old) });
                    }
                }
                if removed > 0 {
                    tables.replace(slot, if large.len == 0 { Record::Absent } else { Record::LargeHash(large) });
                }
            }
            other => unreachable!("a hash was loaded as {other:?}"),
        }
        self.reply.integer(removed);
        Ok(())
    }
}
