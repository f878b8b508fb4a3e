//! Stream commands. Ids come from the call's clock or from the caller and always increase. An empty stream stays until
//! it is deleted.

use std::ops::Bound;

use super::commands::is_word;
use super::fields::{Packed, pack_pair};
use super::layout::{Corruption, TreeKey};
use super::number::parse_integer;
use super::overlay::{Record, StreamMeta, View};
use super::session::{Session, Tables, Undo};
use super::{Failure, refused, wrong_type};

type EntryId = (u64, u64);

const LAST_ID: EntryId = (u64::MAX, u64::MAX);
const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";

/// The limit of an approximate trim, as in Valkey, so that one call never trims a whole long stream.
const TRIM_MAX: usize = 10_000;

/// The entry id of an entry of the `entries` tree.
pub(super) fn entry_id(key: &[u8]) -> Result<EntryId, Corruption> {
    let part = |range: std::ops::Range<usize>| {
        key.get(range)
            .and_then(|b| <[u8; 8]>::try_from(b).ok())
            .map(u64::from_be_bytes)
            .ok_or(Corruption("a stream entry has no id"))
    };
    Ok((part(8..16)?, part(16..24)?))
}

fn parse_id(text: &[u8], missing_sequence: u64) -> Result<EntryId, Failure> {
    let number = |text: &str| -> Option<u64> { if text.starts_with('+') { None } else { text.parse().ok() } };
    let parsed = std::str::from_utf8(text).ok().and_then(|text| match text.split_once('-') {
        None => Some((number(text)?, missing_sequence)),
        Some((ms, sequence)) => Some((number(ms)?, number(sequence)?)),
    });
    match parsed {
        Some(id) => Ok(id),
        None => refused(INVALID_ID),
    }
}

fn next_id(id: EntryId) -> Option<EntryId> {
    match id {
        LAST_ID => None,
        (ms, u64::MAX) => Some((ms + 1, 0)),
        (ms, sequence) => Some((ms, sequence + 1)),
    }
}

fn previous_id(id: EntryId) -> Option<EntryId> {
    match id {
        (0, 0) => None,
        (ms, 0) => Some((ms - 1, u64::MAX)),
        (ms, sequence) => Some((ms, sequence - 1)),
    }
}

/// The ends of a range, both inclusive.
fn parse_range(start: &[u8], end: &[u8]) -> Result<(EntryId, EntryId), Failure> {
    let exclusive = |text: &'_ [u8]| text.first() == Some(&b'(');
    let from = match start {
        b"-" => (0, 0),
        b"+" => LAST_ID,
        _ if exclusive(start) => match next_id(parse_id(&start[1..], 0)?) {
            Some(id) => id,
            None => return refused("ERR invalid start ID for the interval"),
        },
        _ => parse_id(start, 0)?,
    };
    let to = match end {
        b"+" => LAST_ID,
        b"-" => (0, 0),
        _ if exclusive(end) => match previous_id(parse_id(&end[1..], u64::MAX)?) {
            Some(id) => id,
            None => return refused("ERR invalid end ID for the interval"),
        },
        _ => parse_id(end, u64::MAX)?,
    };
    Ok((from, to))
}

fn format_id(id: EntryId) -> String {
    format!("{}-{}", id.0, id.1)
}

impl Tables<'_> {
    fn stream(&self, key: &[u8]) -> Result<Option<StreamMeta>, Failure> {
        match self.view(key)? {
            View::Absent => Ok(None),
            View::Stream(meta) => Ok(Some(meta)),
            _ => wrong_type(),
        }
    }

    /// Removes up to `max` entries before `until` from the front. Returns their number.
    fn trim(&mut self, meta: &mut StreamMeta, until: EntryId, max: usize) -> Result<usize, Failure> {
        let from = TreeKey::edge(meta.id);
        let to = TreeKey::entry(meta.id, until);
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(&from), Bound::Excluded(&to));
        let mut old = Vec::new();
        for item in self.store.entries.range(self.read(), &bounds)?.take(max) {
            let (key, packed) = item?;
            old.push((entry_id(key)?, packed.to_vec()));
        }
        let count = old.len();
        for (entry, packed) in old {
            self.put_entry(meta.id, entry, None)?;
            self.undo.push(Undo::Entry { id: meta.id, entry, old: Some(packed) });
        }
        meta.len = meta.len.saturating_sub(count as u64);
        Ok(count)
    }
}

impl Session<'_> {
    pub(super) fn xlen(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let len = self.tables.stream(args[1])?.map_or(0, |meta| meta.len);
        self.reply.integer(len as i64);
        Ok(())
    }

    pub(super) fn xadd(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let mut rest = &args[2..];
        let mut length_max = None;
        if is_word(rest[0], "MAXLEN") {
            rest = &rest[1..];
            if matches!(rest.first(), Some(&b"~" | &b"=")) {
                rest = &rest[1..];
            }
            match rest.first().and_then(|text| parse_integer(text)) {
                Some(n) if n >= 0 => length_max = Some(n as u64),
                _ => return refused("ERR value is not an integer or out of range"),
            }
            rest = &rest[1..];
        }
        let given = match rest.first() {
            Some(&b"*") => None,
            Some(text) => Some(parse_id(text, 0)?),
            None => return refused(INVALID_ID),
        };
        rest = &rest[1..];
        if rest.is_empty() || !rest.len().is_multiple_of(2) {
            return refused("ERR wrong number of arguments for 'xadd' command");
        }
        let now_ms = (self.call.now_us / 1_000).max(0) as u64;
        let tables = &mut self.tables;
        let slot = tables.slot(args[1])?;
        let mut meta = match tables.record(slot) {
            Record::Absent => StreamMeta { id: tables.fresh_id()?, len: 0, last: (0, 0) },
            Record::Stream(meta) => *meta,
            _ => return wrong_type(),
        };
        let entry = match given {
            Some((0, 0)) => return refused("ERR The ID specified in XADD must be greater than 0-0"),
            Some(id) if id <= meta.last => {
                return refused("ERR The ID specified in XADD is equal or smaller than the target stream top item");
            }
            Some(id) => Some(id),
            None if now_ms > meta.last.0 => Some((now_ms, 0)),
            None => next_id(meta.last),
        };
        let Some(entry) = entry else {
            return refused("ERR The stream has exhausted the last possible ID, unable to add more items");
        };
        let mut packed = Vec::with_capacity(rest.iter().map(|piece| piece.len() + 2).sum());
        for pair in rest.chunks_exact(2) {
            pack_pair(&mut packed, pair[0], pair[1]);
        }
        tables.put_entry(meta.id, entry, Some(&packed))?;
        tables.undo.push(Undo::Entry { id: meta.id, entry, old: None });
        meta.len += 1;
        meta.last = entry;
        if let Some(length_max) = length_max
            && meta.len > length_max
        {
            let excess = (meta.len - length_max).min(TRIM_MAX as u64) as usize;
            tables.trim(&mut meta, LAST_ID, excess)?;
        }
        tables.replace(slot, Record::Stream(meta));
        self.reply.bulk(format_id(entry).as_bytes());
        Ok(())
    }

    pub(super) fn xdel(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let Some(mut meta) = self.tables.stream(args[1])? else {
            self.reply.integer(0);
            return Ok(());
        };
        let mut ids = Vec::with_capacity(args.len() - 2);
        for text in &args[2..] {
            ids.push(parse_id(text, 0)?);
        }
        let tables = &mut self.tables;
        let mut removed = 0;
        for entry in ids {
            let old = tables.store.entries.get(tables.read(), &TreeKey::entry(meta.id, entry))?.map(<[u8]>::to_vec);
            if old.is_some() {
                tables.put_entry(meta.id, entry, None)?;
                tables.undo.push(Undo::Entry { id: meta.id, entry, old });
                meta.len = meta.len.saturating_sub(1);
                removed += 1;
            }
        }
        if removed > 0 {
            let slot = tables.slot(args[1])?;
            tables.replace(slot, Record::Stream(meta));
        }
        self.reply.integer(removed);
        Ok(())
    }

    pub(super) fn xtrim(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let mut rest = &args[2..];
        if !is_word(rest[0], "MINID") {
            return refused("ERR syntax error");
        }
        rest = &rest[1..];
        let approximate = rest[0] == b"~";
        if rest.len() > 1 && (approximate || rest[0] == b"=") {
            rest = &rest[1..];
        }
        let [id] = rest else {
            return refused("ERR syntax error");
        };
        let until = parse_id(id, 0)?;
        let Some(mut meta) = self.tables.stream(args[1])? else {
            self.reply.integer(0);
            return Ok(());
        };
        let tables = &mut self.tables;
        let removed = tables.trim(&mut meta, until, if approximate { TRIM_MAX } else { usize::MAX })?;
        if removed > 0 {
            let slot = tables.slot(args[1])?;
            tables.replace(slot, Record::Stream(meta));
        }
        self.reply.integer(removed as i64);
        Ok(())
    }

    pub(super) fn xrange(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        self.range(args, args[2], args[3], false)
    }

    pub(super) fn xrevrange(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        self.range(args, args[3], args[2], true)
    }

    fn range(&mut self, args: &[&[u8]], start: &[u8], end: &[u8], reverse: bool) -> Result<(), Failure> {
        let (from, to) = parse_range(start, end)?;
        let count = match &args[4..] {
            [] => usize::MAX,
            [word, n] if is_word(word, "COUNT") => match parse_integer(n) {
                Some(n) => n.max(0) as usize,
                None => return refused("ERR value is not an integer or out of range"),
            },
            _ => return refused("ERR syntax error"),
        };
        let tables = &self.tables;
        let Some(meta) = tables.stream(args[1])? else {
            self.reply.array(0);
            return Ok(());
        };
        if count == 0 {
            self.reply.nil();
            return Ok(());
        }
        let open = self.reply.open();
        if from > to {
            return Ok(());
        }
        let (from, to) = (TreeKey::entry(meta.id, from), TreeKey::entry(meta.id, to));
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(&from), Bound::Included(&to));
        let reply = &mut self.reply;
        let mut entry = |(key, packed): (&[u8], &[u8])| -> Result<(), Failure> {
            reply.array(2);
            reply.bulk(format_id(entry_id(key)?).as_bytes());
            let open = reply.open();
            let mut pieces = 0;
            for pair in Packed(packed) {
                let (field, value) = pair?;
                reply.bulk(field);
                reply.bulk(value);
                pieces += 2;
            }
            reply.close(open, pieces);
            Ok(())
        };
        let mut found = 0;
        if reverse {
            for item in tables.store.entries.rev_range(tables.read(), &bounds)?.take(count) {
                entry(item?)?;
                found += 1;
            }
        } else {
            for item in tables.store.entries.range(tables.read(), &bounds)?.take(count) {
                entry(item?)?;
                found += 1;
            }
        }
        self.reply.close(open, found);
        Ok(())
    }
}
