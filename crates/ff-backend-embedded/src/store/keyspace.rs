//! Commands on whole keys (strings, existence, removal), time, and publishing.

use super::layout::TreeKey;
use super::overlay::{Record, View};
use super::session::{Session, Tables, Undo};
use super::{Failure, StoreError, refused, wrong_type};

impl Session<'_> {
    pub(super) fn time(&mut self, _: &[&[u8]]) -> Result<(), Failure> {
        let now_us = self.call.now_us;
        self.reply.array(2);
        self.reply.bulk((now_us / 1_000_000).to_string().as_bytes());
        self.reply.bulk((now_us % 1_000_000).to_string().as_bytes());
        Ok(())
    }

    pub(super) fn exists(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let mut found = 0;
        for key in &args[1..] {
            found += i64::from(!matches!(self.tables.view(key)?, View::Absent));
        }
        self.reply.integer(found);
        Ok(())
    }

    pub(super) fn get(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        match self.tables.view(args[1])? {
            View::Absent => self.reply.nil(),
            View::Text(text) => self.reply.bulk(text),
            _ => return wrong_type(),
        }
        Ok(())
    }

    /// A key of another type reads as absent.
    pub(super) fn mget(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        self.reply.array(args.len() - 1);
        for key in &args[1..] {
            match self.tables.view(key)? {
                View::Text(text) => self.reply.bulk(text),
                _ => self.reply.nil(),
            }
        }
        Ok(())
    }

    pub(super) fn set(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let slot = self.tables.slot(args[1])?;
        self.tables.remove(slot)?;
        self.tables.replace(slot, Record::Text(args[2].to_vec()));
        self.reply.ok();
        Ok(())
    }

    pub(super) fn mset(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        if args.len().is_multiple_of(2) {
            return refused("ERR wrong number of arguments for 'mset' command");
        }
        for pair in args[1..].chunks(2) {
            let slot = self.tables.slot(pair[0])?;
            self.tables.remove(slot)?;
            self.tables.replace(slot, Record::Text(pair[1].to_vec()));
        }
        self.reply.ok();
        Ok(())
    }

    pub(super) fn incrby(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let integer = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        let before = match self.tables.view(args[1])? {
            View::Absent => Some(0),
            View::Text(text) => integer(text),
            _ => return wrong_type(),
        };
        let sum = before.zip(integer(args[2])).and_then(|(before, by)| before.checked_add(by));
        let Some(sum) = sum else { return refused("ERR value is not an integer or out of range") };
        let slot = self.tables.slot(args[1])?;
        self.tables.replace(slot, Record::Text(sum.to_string().into_bytes()));
        self.reply.integer(sum);
        Ok(())
    }

    pub(super) fn del(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let mut removed = 0;
        for key in &args[1..] {
            if matches!(self.tables.view(key)?, View::Absent) {
                continue;
            }
            let slot = self.tables.slot(key)?;
            self.tables.remove(slot)?;
            removed += 1;
        }
        self.reply.integer(removed);
        Ok(())
    }

    /// The message leaves after the commit, so the number of receivers is always 0 here.
    pub(super) fn spublish(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        self.published.push((args[1].to_vec(), args[2].to_vec()));
        self.reply.integer(0);
        Ok(())
    }
}

type Pair = (Vec<u8>, Vec<u8>);

impl Tables<'_> {
    /// Removes a key and everything under its id.
    pub fn remove(&mut self, slot: usize) -> Result<(), Failure> {
        match self.record(slot) {
            Record::Absent => return Ok(()),
            Record::Text(_) | Record::Hash(_) => {}
            Record::Zset(zset) => {
                let id = zset.id;
                let members = self.collect_zset(id)?;
                for (member, score) in members {
                    self.place(id, &member, Some(score), None)?;
                    self.undo.push(Undo::Member { id, member, old: Some(score) });
                }
            }
            Record::Stream(meta) => {
                let id = meta.id;
                let mut entries = Vec::new();
                for item in self.store.entries.prefix_iter(self.read(), &TreeKey::edge(id))? {
                    let (key, packed) = item?;
                    entries.push((super::stream::entry_id(key)?, packed.to_vec()));
                }
                for (entry, packed) in entries {
                    self.put_entry(id, entry, None)?;
                    self.undo.push(Undo::Entry { id, entry, old: Some(packed) });
                }
            }
            Record::LargeHash(large) => {
                let id = large.id;
                let fields = self.collect_large_hash(id)?;
                for (field, value) in fields {
                    self.put_large_field(id, &field, None)?;
                    self.undo.push(Undo::LargeField { id, field, old: Some(value) });
                }
            }
        }
        self.replace(slot, Record::Absent);
        Ok(())
    }

    fn collect_zset(&self, id: u64) -> Result<Vec<(Vec<u8>, f64)>, StoreError> {
        let mut members = Vec::new();
        for item in self.store.order.prefix_iter(self.read(), &TreeKey::edge(id))? {
            let (member, score) = super::zset::ordered(item?)?;
            members.push((member.to_vec(), score));
        }
        Ok(members)
    }

    fn collect_large_hash(&self, id: u64) -> Result<Vec<Pair>, StoreError> {
        let mut fields = Vec::new();
        for item in self.store.fields.prefix_iter(self.read(), &TreeKey::edge(id))? {
            let (field, value) = super::hash::large_field(item?)?;
            fields.push((field.to_vec(), value.to_vec()));
        }
        Ok(fields)
    }
}
