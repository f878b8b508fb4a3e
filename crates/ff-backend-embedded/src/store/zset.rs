//! Sorted set commands, over two trees: member to score, and members in score order.

use std::ops::Bound;

use super::commands::is_word;
use super::layout::{Corruption, TreeKey, decode_score, encode_score, is_digest};
use super::number::{format_double, parse_double, parse_integer};
use super::overlay::{Counted, Record, View};
use super::session::{Session, Tables, Undo};
use super::{Failure, refused, wrong_type};

/// The member and score of an entry of the `order` tree.
pub(super) fn ordered<'t>((key, value): (&'t [u8], &'t [u8])) -> Result<(&'t [u8], f64), Corruption> {
    let member = key.get(16..).ok_or(Corruption("a member has no score"))?;
    let score =
        key.get(8..16).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).ok_or(Corruption("a member has no score"))?;
    let score = decode_score(u64::from_be_bytes(score));
    Ok((if is_digest(member.len()) { value } else { member }, score))
}

/// A range of scores as tree positions; the end is exclusive.
struct ScoreRange {
    from: u64,
    /// `None`: up to the end of the set.
    until: Option<u64>,
}

impl ScoreRange {
    fn parse(min: &[u8], max: &[u8]) -> Result<ScoreRange, Failure> {
        let edge = |text: &[u8]| -> Result<(f64, bool), Failure> {
            let (text, exclusive) = match text.split_first() {
                Some((b'(', rest)) => (rest, true),
                _ => (text, false),
            };
            match parse_double(text) {
                Some(score) => Ok((score, exclusive)),
                None => refused("ERR min or max is not a float"),
            }
        };
        let (min, min_exclusive) = edge(min)?;
        let (max, max_exclusive) = edge(max)?;
        Ok(ScoreRange {
            from: encode_score(min) + u64::from(min_exclusive),
            until: if max_exclusive { Some(encode_score(max)) } else { encode_score(max).checked_add(1) },
        })
    }

    fn is_empty(&self) -> bool {
        self.until.is_some_and(|until| until <= self.from)
    }
}

impl Tables<'_> {
    fn zset(&self, key: &[u8]) -> Result<Option<Counted>, Failure> {
        match self.view(key)? {
            View::Absent => Ok(None),
            View::Zset(zset) => Ok(Some(zset)),
            _ => wrong_type(),
        }
    }

    /// Up to `take` members after the first `skip`, from either end of a range of scores.
    fn members_by_score(
        &self,
        zset: Counted,
        range: &ScoreRange,
        reverse: bool,
        skip: usize,
        take: usize,
    ) -> Result<Vec<(&[u8], f64)>, Failure> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let from = TreeKey::order_edge(zset.id, range.from);
        let until = match range.until {
            Some(until) => TreeKey::order_edge(zset.id, until),
            None => TreeKey::edge(zset.id + 1),
        };
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(&from), Bound::Excluded(&until));
        let mut members = Vec::new();
        if reverse {
            for item in self.store.order.rev_range(self.read(), &bounds)?.skip(skip).take(take) {
                members.push(item?);
            }
        } else {
            for item in self.store.order.range(self.read(), &bounds)?.skip(skip).take(take) {
                members.push(item?);
            }
        }
        members.into_iter().map(|item| Ok(ordered(item)?)).collect()
    }
}

const EVERYTHING: ScoreRange = ScoreRange { from: 0, until: None };

impl Session<'_> {
    pub(super) fn zscore(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let score = match self.tables.zset(args[1])? {
            None => None,
            Some(zset) => self.tables.score(zset.id, args[2])?,
        };
        match score {
            None => self.reply.nil(),
            Some(score) => self.reply.bulk(format_double(score).as_bytes()),
        }
        Ok(())
    }

    pub(super) fn zmscore(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let zset = self.tables.zset(args[1])?;
        self.reply.array(args.len() - 2);
        for member in &args[2..] {
            let score = zset.as_ref().map(|zset| self.tables.score(zset.id, member)).transpose()?.flatten();
            match score {
                None => self.reply.nil(),
                Some(score) => self.reply.bulk(format_double(score).as_bytes()),
            }
        }
        Ok(())
    }

    pub(super) fn zcard(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let len = self.tables.zset(args[1])?.map_or(0, |zset| zset.len);
        self.reply.integer(len as i64);
        Ok(())
    }

    pub(super) fn zcount(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let range = ScoreRange::parse(args[2], args[3])?;
        let count = match self.tables.zset(args[1])? {
            None => 0,
            Some(zset)
                if range.from <= encode_score(f64::NEG_INFINITY)
                    && range.until.is_none_or(|u| u > encode_score(f64::INFINITY)) =>
            {
                zset.len as usize
            }
            Some(zset) => self.tables.members_by_score(zset, &range, false, 0, usize::MAX)?.len(),
        };
        self.reply.integer(count as i64);
        Ok(())
    }

    /// Counts the members before this one: linear in its rank.
    pub(super) fn zrank(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let tables = &self.tables;
        let Some(zset) = tables.zset(args[1])? else {
            self.reply.nil();
            return Ok(());
        };
        let Some(score) = tables.score(zset.id, args[2])? else {
            self.reply.nil();
            return Ok(());
        };
        let from = TreeKey::edge(zset.id);
        let until = TreeKey::order(zset.id, score, args[2]);
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(&from), Bound::Excluded(&until));
        let mut rank = 0;
        for item in tables.store.order.range(tables.read(), &bounds)? {
            item?;
            rank += 1;
        }
        self.reply.integer(rank);
        Ok(())
    }

    pub(super) fn zrange(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let (mut by_score, mut reverse, mut with_scores, mut limit) = (false, false, false, None);
        let mut rest = args[4..].iter();
        while let Some(word) = rest.next() {
            if is_word(word, "BYSCORE") {
                by_score = true;
            } else if is_word(word, "REV") {
                reverse = true;
            } else if is_word(word, "WITHSCORES") {
                with_scores = true;
            } else if is_word(word, "LIMIT") {
                let (Some(offset), Some(count)) = (rest.next(), rest.next()) else {
                    return refused("ERR syntax error");
                };
                let (Some(offset), Some(count)) = (parse_integer(offset), parse_integer(count)) else {
                    return refused("ERR value is not an integer or out of range");
                };
                limit = Some((offset, count));
            } else {
                return refused("ERR syntax error");
            }
        }
        // A count of -1 means "no limit", and the server also ignores it here.
        if limit.is_some_and(|(_, count)| count != -1) && !by_score {
            return refused("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
        }
        let tables = &self.tables;
        let mut backwards = false;
        let members = if by_score {
            let (min, max) = if reverse { (args[3], args[2]) } else { (args[2], args[3]) };
            let range = ScoreRange::parse(min, max)?;
            let (offset, count) = limit.unwrap_or((0, -1));
            match tables.zset(args[1])? {
                Some(zset) if offset >= 0 => {
                    let take = usize::try_from(count).unwrap_or(usize::MAX);
                    tables.members_by_score(zset, &range, reverse, offset as usize, take)?
                }
                _ => Vec::new(),
            }
        } else {
            let (Some(start), Some(stop)) = (parse_integer(args[2]), parse_integer(args[3])) else {
                return refused("ERR value is not an integer or out of range");
            };
            match tables.zset(args[1])? {
                None => Vec::new(),
                Some(zset) => {
                    let len = zset.len as i64;
                    let from_end = |index: i64| if index < 0 { len.saturating_add(index) } else { index };
                    let (start, stop) = (from_end(start).max(0), from_end(stop).min(len - 1));
                    if start > stop {
                        Vec::new()
                    } else {
                        // Starts from the nearer end.
                        backwards = start > len - 1 - stop;
                        let skip = if backwards { len - 1 - stop } else { start };
                        tables.members_by_score(
                            zset,
                            &EVERYTHING,
                            reverse != backwards,
                            skip as usize,
                            (stop - start + 1) as usize,
                        )?
                    }
                }
            }
        };
        self.reply.array(members.len() * if with_scores { 2 } else { 1 });
        for index in 0..members.len() {
            let (member, score) = members[if backwards { members.len() - 1 - index } else { index }];
            self.reply.bulk(member);
            if with_scores {
                self.reply.bulk(format_double(score).as_bytes());
            }
        }
        Ok(())
    }

    pub(super) fn zadd(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let pairs = &args[2..];
        if !pairs.len().is_multiple_of(2) {
            return refused("ERR syntax error");
        }
        let mut scores = Vec::with_capacity(pairs.len() / 2);
        for pair in pairs.chunks_exact(2) {
            match parse_double(pair[0]) {
                Some(score) => scores.push(score),
                None => return refused("ERR value is not a valid float"),
            }
        }
        let tables = &mut self.tables;
        let slot = tables.slot(args[1])?;
        let (mut zset, mut changed) = match tables.record(slot) {
            Record::Absent => (Counted { id: tables.fresh_id()?, len: 0 }, true),
            Record::Zset(zset) => (*zset, false),
            _ => return wrong_type(),
        };
        let mut added = 0;
        for (pair, score) in pairs.chunks_exact(2).zip(scores) {
            let member = pair[1];
            let old = if zset.len == 0 { None } else { tables.score(zset.id, member)? };
            if old == Some(score) {
                continue;
            }
            tables.place(zset.id, member, old, Some(score))?;
            tables.undo.push(Undo::Member { id: zset.id, member: member.to_vec(), old });
            if old.is_none() {
                added += 1;
                zset.len += 1;
                changed = true;
            }
        }
        if changed {
            tables.replace(slot, Record::Zset(zset));
        }
        self.reply.integer(added);
        Ok(())
    }

    pub(super) fn zrem(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let Some(mut zset) = self.tables.zset(args[1])? else {
            self.reply.integer(0);
            return Ok(());
        };
        let tables = &mut self.tables;
        let mut removed = 0;
        for member in &args[2..] {
            if let Some(score) = tables.score(zset.id, member)? {
                tables.place(zset.id, member, Some(score), None)?;
                tables.undo.push(Undo::Member { id: zset.id, member: member.to_vec(), old: Some(score) });
                removed += 1;
                zset.len = zset.len.saturating_sub(1);
            }
        }
        if removed > 0 {
            let slot = tables.slot(args[1])?;
            tables.replace(slot, if zset.len == 0 { Record::Absent } else { Record::Zset(zset) });
        }
        self.reply.integer(removed);
        Ok(())
    }
}
