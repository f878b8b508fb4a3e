//! The id of a key, which its tokens carry.

use std::fmt;
use std::str::FromStr;

use crate::claims::fill_random;

/// 32 letters and digits that are not easily confused.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const LEN: usize = 8;
const LEN_MAX: usize = 32;

/// The id of a key; not a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(String);

/// The text is not a valid key id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key id is 1 to {LEN_MAX} of A-Z a-z 0-9 _ -")]
pub struct InvalidKeyId;

impl KeyId {
    pub(crate) fn random() -> Self {
        let mut bytes = [0; LEN];
        fill_random(&mut bytes);
        Self(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyId {
    type Err = InvalidKeyId;
    fn from_str(text: &str) -> Result<Self, InvalidKeyId> {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if plain && (1..=LEN_MAX).contains(&text.len()) { Ok(Self(text.to_owned())) } else { Err(InvalidKeyId) }
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for KeyId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_id_is_short_and_plain() {
        let id = KeyId::random();
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_ne!(id, KeyId::random());
        for bad in ["", "a.b", "a b", "é", "a=", &"x".repeat(33)] {
            assert_eq!(bad.parse::<KeyId>(), Err(InvalidKeyId), "{bad:?}");
        }
    }
}
