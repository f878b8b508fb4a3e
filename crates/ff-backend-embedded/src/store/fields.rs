//! A small hash as one value: packed on disk; in memory an arena with sorted spans.

use super::layout::{Corruption, read_varint, write_varint};

/// The packed pairs of a hash or of a stream entry, read in place.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a>(pub &'a [u8]);

impl<'a> Iterator for Packed<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Corruption>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let mut piece = || -> Result<&'a [u8], Corruption> {
            let len = read_varint(&mut self.0)? as usize;
            if len > self.0.len() {
                return Err(Corruption("a packed value ends early"));
            }
            let (head, tail) = self.0.split_at(len);
            self.0 = tail;
            Ok(head)
        };
        let pair = piece().and_then(|first| Ok((first, piece()?)));
        if pair.is_err() {
            self.0 = &[];
        }
        Some(pair)
    }
}

/// Appends one pair in packed form.
pub(crate) fn pack_pair(out: &mut Vec<u8>, first: &[u8], second: &[u8]) {
    write_varint(out, first.len() as u64);
    out.extend_from_slice(first);
    write_varint(out, second.len() as u64);
    out.extend_from_slice(second);
}

/// A range of bytes in an arena; valid until the arena is compacted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    at: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    field: Span,
    value: Span,
}

/// A hash in memory. Old values stay in the arena, so undoing a write only restores a span.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    live: usize,
}

impl Fields {
    pub fn unpack(packed: &[u8]) -> Result<Fields, Corruption> {
        let mut fields = Fields { arena: packed.to_vec(), entries: Vec::new(), live: packed.len() };
        let base = packed.as_ptr() as usize;
        let span = |piece: &[u8]| Span { at: (piece.as_ptr() as usize - base) as u32, len: piece.len() as u32 };
        let mut last: Option<&[u8]> = None;
        for pair in Packed(packed) {
            let (field, value) = pair?;
            if last.is_some_and(|last| last >= field) {
                return Err(Corruption("the fields of a hash are out of order"));
            }
            last = Some(field);
            fields.entries.push(Entry { field: span(field), value: span(value) });
        }
        Ok(fields)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn bytes(&self, span: Span) -> &[u8] {
        &self.arena[span.at as usize..span.at as usize + span.len as usize]
    }

    fn find(&self, field: &[u8]) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| self.bytes(entry.field).cmp(field))
    }

    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        let at = self.find(field).ok()?;
        Some(self.bytes(self.entries[at].value))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| (self.bytes(entry.field), self.bytes(entry.value)))
    }

    fn push(&mut self, bytes: &[u8]) -> Span {
        let span = Span { at: self.arena.len() as u32, len: bytes.len() as u32 };
        self.arena.extend_from_slice(bytes);
        span
    }

    /// Sets a field. Returns the span of its name and its old value.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> (Span, Option<Span>) {
        let value = self.push(value);
        match self.find(field) {
            Ok(at) => {
                let old = std::mem::replace(&mut self.entries[at].value, value);
                (self.entries[at].field, Some(old))
            }
            Err(at) => {
                let field = self.push(field);
                self.entries.insert(at, Entry { field, value });
                (field, None)
            }
        }
    }

    /// Removes a field. Returns the span of its name and its old value.
    pub fn remove(&mut self, field: &[u8]) -> Option<(Span, Span)> {
        let at = self.find(field).ok()?;
        let entry = self.entries.remove(at);
        Some((entry.field, entry.value))
    }

    /// Undoes a `set` or a `remove`.
    pub fn restore(&mut self, field: Span, old: Option<Span>) {
        match (self.find(self.bytes(field)), old) {
            (Ok(at), Some(value)) => self.entries[at].value = value,
            (Err(at), Some(value)) => self.entries.insert(at, Entry { field, value }),
            (Ok(at), None) => {
                self.entries.remove(at);
            }
            (Err(_), None) => {}
        }
    }

    pub fn pack(&self, out: &mut Vec<u8>) {
        for (field, value) in self.iter() {
            pack_pair(out, field, value);
        }
    }

    /// Drops old values once they outweigh the live ones. Spans returned before become invalid.
    pub fn compact(&mut self) {
        if self.arena.len() > 2 * self.live + (64 << 10) {
            let mut packed = Vec::with_capacity(self.live);
            self.pack(&mut packed);
            *self = Fields::unpack(&packed).expect("packed bytes can be unpacked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(fields: &Fields) -> Vec<(String, String)> {
        let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
        fields.iter().map(|(f, v)| (text(f), text(v))).collect()
    }

    #[test]
    fn undoing_in_reverse_gives_back_what_was_there() {
        let mut fields = Fields::default();
        fields.set(b"b", b"1");
        fields.set(b"a", b"2");
        let before = shown(&fields);
        let (f1, o1) = fields.set(b"a", b"3");
        let (f2, o2) = fields.remove(b"b").unwrap();
        let (f3, o3) = fields.set(b"c", b"4");
        assert_eq!(shown(&fields), vec![("a".into(), "3".into()), ("c".into(), "4".into())]);
        fields.restore(f3, o3);
        fields.restore(f2, Some(o2));
        fields.restore(f1, o1);
        assert_eq!(shown(&fields), before);
    }

    #[test]
    fn packing_round_trips_and_damage_is_noticed() {
        let mut fields = Fields::default();
        for i in 0..100u8 {
            fields.set(&[i, 255 - i], &vec![i; usize::from(i) * 3]);
        }
        let mut packed = Vec::new();
        fields.pack(&mut packed);
        assert_eq!(shown_raw(&Fields::unpack(&packed).unwrap()), shown_raw(&fields));
        assert!(Fields::unpack(&packed[..packed.len() - 1]).is_err());
        let mut swapped = Vec::new();
        pack_pair(&mut swapped, b"b", b"");
        pack_pair(&mut swapped, b"a", b"");
        assert!(Fields::unpack(&swapped).is_err());
    }

    fn shown_raw(fields: &Fields) -> Vec<(Vec<u8>, Vec<u8>)> {
        fields.iter().map(|(f, v)| (f.to_vec(), v.to_vec())).collect()
    }

    #[test]
    fn a_hot_field_does_not_grow_the_arena_for_ever() {
        let mut fields = Fields::default();
        for _ in 0..10_000 {
            fields.set(b"hot", &[7; 1_000]);
            fields.compact();
        }
        assert!(fields.arena.len() < 200_000, "arena holds {} bytes", fields.arena.len());
    }
}
