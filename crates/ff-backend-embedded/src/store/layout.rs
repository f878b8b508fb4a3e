//! Maps store keys, members and scores to LMDB keys that sort in the order the commands need.

use sha2::{Digest, Sha256};

/// Stored data that this program cannot have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Corruption(pub &'static str);

/// The longest name that is stored unchanged in a tree key. A longer name is stored as its first bytes and a digest.
/// The two forms differ in length and sort together; the value holds the original.
pub(crate) const INLINE_MAX: usize = 440;
const DIGEST_LEN: usize = 32;
const KEY_MAX: usize = 16 + INLINE_MAX + DIGEST_LEN;

/// A tree key on the stack.
pub(crate) struct TreeKey {
    bytes: [u8; KEY_MAX],
    len: usize,
}

impl TreeKey {
    fn new() -> Self {
        TreeKey { bytes: [0; KEY_MAX], len: 0 }
    }

    fn push(&mut self, piece: &[u8]) {
        self.bytes[self.len..self.len + piece.len()].copy_from_slice(piece);
        self.len += piece.len();
    }

    fn push_name(&mut self, name: &[u8]) {
        if name.len() <= INLINE_MAX {
            self.push(name);
        } else {
            self.push(&name[..INLINE_MAX]);
            self.push(&Sha256::digest(name));
        }
    }

    /// A store key.
    pub fn name(name: &[u8]) -> Self {
        let mut key = TreeKey::new();
        key.push_name(name);
        key
    }

    /// A member of a sorted set or a field of a large hash.
    pub fn member(id: u64, member: &[u8]) -> Self {
        let mut key = TreeKey::new();
        key.push(&id.to_be_bytes());
        key.push_name(member);
        key
    }

    /// A member in score order.
    pub fn order(id: u64, score: f64, member: &[u8]) -> Self {
        let mut key = TreeKey::order_edge(id, encode_score(score));
        key.push_name(member);
        key
    }

    /// The position before every member with this score.
    pub fn order_edge(id: u64, encoded_score: u64) -> Self {
        let mut key = TreeKey::new();
        key.push(&id.to_be_bytes());
        key.push(&encoded_score.to_be_bytes());
        key
    }

    /// An entry of a stream.
    pub fn entry(id: u64, entry: (u64, u64)) -> Self {
        let mut key = TreeKey::new();
        key.push(&id.to_be_bytes());
        key.push(&entry.0.to_be_bytes());
        key.push(&entry.1.to_be_bytes());
        key
    }

    /// The position before everything that belongs to this id.
    pub fn edge(id: u64) -> Self {
        let mut key = TreeKey::new();
        key.push(&id.to_be_bytes());
        key
    }
}

impl std::ops::Deref for TreeKey {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// True if a name of this length in a tree key stands for a longer original.
pub(crate) fn is_digest(name_len: usize) -> bool {
    name_len > INLINE_MAX
}

/// Maps scores to integers with the same order. Negative zero counts as zero.
pub(crate) fn encode_score(score: f64) -> u64 {
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

pub(crate) fn decode_score(encoded: u64) -> f64 {
    f64::from_bits(if encoded >> 63 == 1 { encoded & !(1 << 63) } else { !encoded })
}

pub(crate) fn write_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

pub(crate) fn read_varint(bytes: &mut &[u8]) -> Result<u64, Corruption> {
    let mut n = 0u64;
    for shift in (0..).step_by(7) {
        let Some((&first, rest)) = bytes.split_first() else {
            return Err(Corruption("a length ends early"));
        };
        *bytes = rest;
        if shift > 56 {
            return Err(Corruption("a length is too long"));
        }
        n |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    Ok(n)
}

/// Reads eight bytes from the front as an integer.
pub(crate) fn read_u64(bytes: &mut &[u8]) -> Result<u64, Corruption> {
    let (head, tail) = bytes.split_first_chunk::<8>().ok_or(Corruption("a record ends early"))?;
    *bytes = tail;
    Ok(u64::from_be_bytes(*head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_scores_sort_like_scores() {
        let scores = [
            f64::NEG_INFINITY,
            -1e300,
            -2.5,
            -1.0,
            -1e-300,
            0.0,
            1e-300,
            1.0,
            1.5,
            1e12,
            9007199254740993.0,
            f64::INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(encode_score(pair[0]) < encode_score(pair[1]), "{pair:?}");
        }
        for score in scores {
            assert_eq!(decode_score(encode_score(score)), score);
        }
        assert_eq!(encode_score(-0.0), encode_score(0.0));
    }

    #[test]
    fn long_names_stay_within_the_key_limit_and_apart() {
        let long = vec![b'x'; 5_000];
        let mut other = long.clone();
        other[4_999] = b'y';
        let (a, b) = (TreeKey::order(1, 2.0, &long), TreeKey::order(1, 2.0, &other));
        assert!(a.len() <= 511 && is_digest(a.len() - 16));
        assert_ne!(&*a, &*b);
        assert!(!is_digest(TreeKey::name(&vec![b'x'; INLINE_MAX]).len()));
    }

    #[test]
    fn varints_round_trip() {
        for n in [0, 1, 127, 128, 300, 1 << 20, 1 << 40] {
            let mut out = Vec::new();
            write_varint(&mut out, n);
            assert_eq!(read_varint(&mut out.as_slice()), Ok(n));
        }
        assert!(read_varint(&mut [0xff; 12].as_slice()).is_err());
        assert!(read_varint(&mut [0x80].as_slice()).is_err());
    }
}
