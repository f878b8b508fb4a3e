//! The file of an export: a magic word, a version, and one msgpack record per key, each with a checksum that hangs on the one before.
//!
//! **Invariant:** a file that was cut, changed or put together differently is refused: every record's checksum is seeded with its
//! predecessor's, and the last record counts them all.

use std::io::{Read, Write};

use anyhow::{Context, bail};
use ff_script::Content;
use ff_script::contents::Entry;
use rmp::{decode, encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: &[u8; 8] = b"ffexport";
const VERSION: u8 = 1;
/// A record that claims to be larger is damage, not data.
const RECORD_MAX: u32 = 1 << 30;

const HASH: u8 = 1;
const ZSET: u8 = 2;
const TEXT: u8 = 3;
const STREAM: u8 = 4;
const END: u8 = 0;

/// Writes an export.
pub struct Writer<W> {
    to: W,
    seed: u64,
    keys: u64,
}

impl<W: Write> Writer<W> {
    /// Begins the file.
    pub fn new(mut to: W) -> anyhow::Result<Self> {
        to.write_all(MAGIC)?;
        to.write_all(&[VERSION])?;
        Ok(Self { to, seed: u64::from(VERSION), keys: 0 })
    }

    /// One key and what it holds.
    pub fn key(&mut self, key: &[u8], content: &Content) -> anyhow::Result<()> {
        let mut record = Vec::new();
        match content {
            Content::Hash(pairs) => {
                head(&mut record, HASH, key)?;
                encode::write_array_len(&mut record, len(pairs.len())?)?;
                write_pairs(&mut record, pairs)?;
            }
            Content::Zset(members) => {
                head(&mut record, ZSET, key)?;
                encode::write_array_len(&mut record, len(members.len())?)?;
                for (member, score) in members {
                    encode::write_bin(&mut record, member)?;
                    encode::write_f64(&mut record, *score)?;
                }
            }
            Content::Text(text) => {
                head(&mut record, TEXT, key)?;
                encode::write_bin(&mut record, text)?;
            }
            Content::Stream { entries, last } => {
                head(&mut record, STREAM, key)?;
                encode::write_uint(&mut record, last.0)?;
                encode::write_uint(&mut record, last.1)?;
                encode::write_array_len(&mut record, len(entries.len())?)?;
                for ((ms, seq), pairs) in entries {
                    encode::write_uint(&mut record, *ms)?;
                    encode::write_uint(&mut record, *seq)?;
                    encode::write_array_len(&mut record, len(pairs.len())?)?;
                    write_pairs(&mut record, pairs)?;
                }
            }
        }
        self.keys += 1;
        self.record(&record)
    }

    /// Ends the file; answers how many keys it has.
    pub fn finish(mut self) -> anyhow::Result<(W, u64)> {
        let mut record = Vec::new();
        encode::write_uint(&mut record, u64::from(END))?;
        encode::write_uint(&mut record, self.keys)?;
        self.record(&record)?;
        self.to.flush()?;
        Ok((self.to, self.keys))
    }

    fn record(&mut self, record: &[u8]) -> anyhow::Result<()> {
        self.seed = xxh3_64_with_seed(record, self.seed);
        self.to.write_all(&len(record.len())?.to_be_bytes())?;
        self.to.write_all(record)?;
        self.to.write_all(&self.seed.to_be_bytes())?;
        Ok(())
    }
}

fn len(len: usize) -> anyhow::Result<u32> {
    u32::try_from(len).ok().filter(|len| *len <= RECORD_MAX).context("a key holds more than an export can carry")
}

fn head(record: &mut Vec<u8>, kind: u8, key: &[u8]) -> anyhow::Result<()> {
    encode::write_uint(record, u64::from(kind))?;
    encode::write_bin(record, key)?;
    Ok(())
}

fn write_pairs(record: &mut Vec<u8>, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
    for (first, second) in pairs {
        encode::write_bin(record, first)?;
        encode::write_bin(record, second)?;
    }
    Ok(())
}

/// Reads an export.
pub struct Reader<R> {
    from: R,
    seed: u64,
    keys: u64,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Begins to read; what is no export is refused here.
    pub fn new(mut from: R) -> anyhow::Result<Self> {
        let mut begin = [0; MAGIC.len() + 1];
        from.read_exact(&mut begin).context("this is not an export: it is too short")?;
        if !begin.starts_with(MAGIC) {
            bail!("this is not an export of `ff export`");
        }
        let version = begin[MAGIC.len()];
        if version != VERSION {
            bail!(
                "this export has version {version}, and this ff reads {VERSION}; use the ff that wrote it, or a newer one"
            );
        }
        Ok(Self { from, seed: u64::from(VERSION), keys: 0, ended: false })
    }

    /// The next key; nothing behind the last. Damage is an error.
    pub fn next(&mut self) -> anyhow::Result<Option<(Vec<u8>, Content)>> {
        if self.ended {
            return Ok(None);
        }
        let place = self.keys;
        let damaged = || format!("the export is damaged behind {place} keys");
        let mut size = [0; 4];
        self.from.read_exact(&mut size).with_context(damaged)?;
        let size = u32::from_be_bytes(size);
        if size > RECORD_MAX {
            bail!("{}: a record of {size} bytes", damaged());
        }
        let mut record = Vec::new();
        let read = (&mut self.from).take(u64::from(size)).read_to_end(&mut record).with_context(damaged)?;
        let mut sum = [0; 8];
        self.from.read_exact(&mut sum).with_context(damaged)?;
        self.seed = xxh3_64_with_seed(&record, self.seed);
        if read != size as usize || u64::from_be_bytes(sum) != self.seed {
            bail!("{}: its checksum is wrong", damaged());
        }
        let mut rest = record.as_slice();
        let kind: u8 = decode::read_int(&mut rest)?;
        if kind == END {
            let keys: u64 = decode::read_int(&mut rest)?;
            if keys != self.keys {
                bail!("the export is damaged: it has {} keys and should have {keys}", self.keys);
            }
            if self.from.read(&mut [0])? > 0 {
                bail!("the export is damaged: something follows its end");
            }
            self.ended = true;
            return Ok(None);
        }
        self.keys += 1;
        let key = bin(&mut rest)?;
        let content = content(kind, &mut rest).with_context(damaged)?;
        Ok(Some((key, content)))
    }
}

fn content(kind: u8, rest: &mut &[u8]) -> anyhow::Result<Content> {
    Ok(match kind {
        HASH => Content::Hash(read_pairs(rest)?),
        TEXT => Content::Text(bin(rest)?),
        ZSET => {
            let mut members = Vec::new();
            for _ in 0..decode::read_array_len(rest)? {
                members.push((bin(rest)?, decode::read_f64(rest)?));
            }
            Content::Zset(members)
        }
        STREAM => {
            let last = (decode::read_int(rest)?, decode::read_int(rest)?);
            let mut entries: Vec<Entry> = Vec::new();
            for _ in 0..decode::read_array_len(rest)? {
                let id = (decode::read_int(rest)?, decode::read_int(rest)?);
                entries.push((id, read_pairs(rest)?));
            }
            Content::Stream { entries, last }
        }
        other => bail!("a record of an unknown kind {other}"),
    })
}

fn read_pairs(rest: &mut &[u8]) -> anyhow::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut pairs = Vec::new();
    for _ in 0..decode::read_array_len(rest)? {
        pairs.push((bin(rest)?, bin(rest)?));
    }
    Ok(pairs)
}

fn bin(rest: &mut &[u8]) -> anyhow::Result<Vec<u8>> {
    let len = decode::read_bin_len(rest)? as usize;
    let (bytes, after) = rest.split_at_checked(len).context("a record ends too early")?;
    *rest = after;
    Ok(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<(Vec<u8>, Content)> {
        let pair = |a: &str, b: &[u8]| (a.as_bytes().to_vec(), b.to_vec());
        vec![
            (b"ff:config:partitions".to_vec(), Content::Hash(vec![pair("executions", b"8"), pair("", b"\0\xff")])),
            (
                b"ff:z".to_vec(),
                Content::Zset(vec![(b"m".to_vec(), 1_794_781_129_219.25), (b"n".to_vec(), f64::INFINITY)]),
            ),
            (b"ff:t".to_vec(), Content::Text(vec![0; 70_000])),
            (b"ff:s".to_vec(), Content::Stream { entries: vec![((1, u64::MAX), vec![pair("f", b"v")])], last: (7, 0) }),
            (b"ff:e".to_vec(), Content::Stream { entries: Vec::new(), last: (7, 0) }),
        ]
    }

    fn written() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).expect("it begins");
        for (key, content) in sample() {
            writer.key(&key, &content).expect("it is written");
        }
        writer.finish().expect("it ends").0
    }

    fn read(bytes: &[u8]) -> anyhow::Result<Vec<(Vec<u8>, Content)>> {
        let mut reader = Reader::new(bytes)?;
        let mut all = Vec::new();
        while let Some(one) = reader.next()? {
            all.push(one);
        }
        Ok(all)
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&written()).expect("it is whole"), sample());
    }

    #[test]
    fn damage_is_refused_wherever_it_is() {
        let whole = written();
        for end in (0..whole.len()).step_by(1_001).chain([whole.len() - 1]) {
            assert!(read(&whole[..end]).is_err(), "cut at {end}");
        }
        for at in (0..whole.len()).step_by(997).chain([0, 8, 12, whole.len() - 1]) {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert!(read(&changed).is_err(), "changed at {at}");
        }
        let mut longer = whole;
        longer.push(0);
        assert!(read(&longer).is_err());
        assert!(format!("{:#}", read(b"hello, this is a text").expect_err("no export")).contains("not an export"));
    }
}
