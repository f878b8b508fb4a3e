//! An LMDB tree whose values carry a checksum over key and value, so that damage causes an error instead of wrong data.

use std::io::Write;
use std::ops::Bound;

use heed::types::Bytes;
use heed::{Database, Env, RoTxn, RwTxn, WithoutTls};
use xxhash_rust::xxh3::xxh3_64;

use super::StoreError;

/// The names of all trees. A store has exactly these.
pub(crate) const NAMES: [&str; 6] = ["entries", "fields", "keys", "members", "meta", "order"];

const SUM_LEN: usize = 4;

/// A tree of checked values.
pub(crate) struct Tree(Database<Bytes, Bytes>);

pub(crate) type Range<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);
type Item<'t> = Result<(&'t [u8], &'t [u8]), StoreError>;

fn sum(key: &[u8], value: &[u8]) -> [u8; SUM_LEN] {
    let both = xxh3_64(key).rotate_left(17).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ xxh3_64(value);
    ((both >> 32) as u32).to_be_bytes()
}

/// The value after its checksum; `None` if the checksum does not match.
pub(crate) fn unseal<'t>(key: &[u8], sealed: &'t [u8]) -> Option<&'t [u8]> {
    let (stored, value) = sealed.split_first_chunk::<SUM_LEN>()?;
    (*stored == sum(key, value)).then_some(value)
}

fn checked<'t>(key: &[u8], sealed: &'t [u8]) -> Result<&'t [u8], StoreError> {
    unseal(key, sealed).ok_or_else(|| {
        StoreError::Corrupt(format!("the checksum of {:?} does not match", String::from_utf8_lossy(key)))
    })
}

fn checked_item<'t>(item: heed::Result<(&'t [u8], &'t [u8])>) -> Item<'t> {
    let (key, sealed) = item?;
    Ok((key, checked(key, sealed)?))
}

impl Tree {
    pub fn open(env: &Env<WithoutTls>, txn: &mut RwTxn<'_>, name: &'static str) -> Result<Tree, StoreError> {
        assert!(NAMES.contains(&name), "{name} is not on the list of trees");
        Ok(Tree(env.create_database(txn, Some(name))?))
    }

    pub fn get<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<&'t [u8]>, StoreError> {
        match self.0.get(txn, key)? {
            None => Ok(None),
            Some(sealed) => Ok(Some(checked(key, sealed)?)),
        }
    }

    pub fn put(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let sum = sum(key, value);
        self.0.put_reserved(txn, key, SUM_LEN + value.len(), |space| {
            space.write_all(&sum)?;
            space.write_all(value)
        })?;
        Ok(())
    }

    pub fn delete(&self, txn: &mut RwTxn<'_>, key: &[u8]) -> Result<(), StoreError> {
        self.0.delete(txn, key)?;
        Ok(())
    }

    pub fn range<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        range: &Range<'_>,
    ) -> Result<impl Iterator<Item = Item<'t>> + use<'t>, StoreError> {
        Ok(self.0.range(txn, range)?.map(checked_item))
    }

    pub fn rev_range<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        range: &Range<'_>,
    ) -> Result<impl Iterator<Item = Item<'t>> + use<'t>, StoreError> {
        Ok(self.0.rev_range(txn, range)?.map(checked_item))
    }

    pub fn prefix_iter<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Item<'t>> + use<'t>, StoreError> {
        Ok(self.0.prefix_iter(txn, prefix)?.map(checked_item))
    }

    pub fn iter<'t>(&self, txn: &'t RoTxn<'_>) -> Result<impl Iterator<Item = Item<'t>> + use<'t>, StoreError> {
        Ok(self.0.iter(txn)?.map(checked_item))
    }

    pub fn len(&self, txn: &RoTxn<'_>) -> Result<u64, StoreError> {
        Ok(self.0.len(txn)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_bit_of_key_or_value_is_noticed() {
        let sealed = [&sum(b"key", b"value")[..], b"value"].concat();
        assert_eq!(unseal(b"key", &sealed), Some(&b"value"[..]));
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(b"key", &damaged), None);
        }
        assert_eq!(unseal(b"kez", &sealed), None);
        assert_eq!(unseal(b"key", b"abc"), None);
    }
}
