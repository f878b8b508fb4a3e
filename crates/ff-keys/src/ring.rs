//! The keys themselves: one signs, and older ones are still accepted.

use std::fmt;
use std::time::Duration;

use ff_core::types::{TimestampMs, WaitpointToken};
use zeroize::Zeroizing;

use crate::claims::fill_random;
use crate::token::{self, Unchecked};
use crate::{Claims, Error, InvalidToken, KeyId, WebhookKey};

/// The length of a secret in bytes.
pub(crate) const SECRET_LEN: usize = 32;

/// The secret of a key; wiped when dropped, never printed.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    fn random() -> Self {
        let mut bytes = Zeroizing::new(vec![0; SECRET_LEN]);
        fill_random(&mut bytes);
        Self(bytes)
    }

    /// The secret with these bytes; `None` if the length is wrong.
    pub(crate) fn from_bytes(bytes: Zeroizing<Vec<u8>>) -> Option<Self> {
        (bytes.len() == SECRET_LEN).then_some(Self(bytes))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("redacted")
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) id: KeyId,
    pub(crate) made_at: TimestampMs,
    pub(crate) secret: Secret,
}

impl Key {
    /// A new key with an unused id.
    fn random(now: TimestampMs, taken: &[KeyId]) -> Self {
        let mut id = KeyId::random();
        while taken.contains(&id) {
            id = KeyId::random();
        }
        Self { id, made_at: now, secret: Secret::random() }
    }
}

/// A key that no longer signs but is accepted during its grace period.
#[derive(Clone, Debug)]
pub(crate) struct Retiring {
    pub(crate) key: Key,
    pub(crate) until: TimestampMs,
}

/// The keys of a store's processes: one signs, others are still accepted.
///
/// Its `Debug` shows ids and times, never a secret.
///
/// ```
/// use ff_core::types::{ExecutionId, WaitpointId};
/// use ff_keys::{Claims, KeyRing, fresh_nonce};
///
/// let ring = KeyRing::generate();
/// let claims = Claims {
///     namespace: "default".to_owned(),
///     execution_id: ExecutionId::mint(),
///     waitpoint_id: WaitpointId::mint(),
///     approver: Some("ann".to_owned()),
///     expires_at: None,
///     uses: Some(1),
///     nonce: fresh_nonce(),
/// };
/// let token = ring.mint(&claims).unwrap();
/// assert_eq!(ring.verify(token.as_str()), Ok(claims));
/// assert!(KeyRing::generate().verify(token.as_str()).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct KeyRing {
    pub(crate) signing: Key,
    pub(crate) accepted: Vec<Retiring>,
}

/// The public facts of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFacts {
    pub id: KeyId,
    /// When the key was created.
    pub made_at: TimestampMs,
    /// Until when its tokens are accepted; `None` for the signing key.
    pub until: Option<TimestampMs>,
}

/// The result of a check. It tells whether another place could have the key.
pub(crate) enum Verdict {
    Genuine(Claims),
    UnknownKey,
    Invalid,
}

impl KeyRing {
    /// A ring with one new key.
    #[must_use]
    pub fn generate() -> Self {
        Self { signing: Key::random(TimestampMs::now(), &[]), accepted: Vec::new() }
    }

    /// Signs the claims with the signing key. Fails if a namespace or approver is too long.
    pub fn mint(&self, claims: &Claims) -> Result<WaitpointToken, Error> {
        token::sign(self.signing.secret.as_bytes(), &self.signing.id, claims)
    }

    /// Returns the claims of a token that was signed with a key of this ring. Retiring keys expire by this process's
    /// clock.
    ///
    /// Expired, used or replaced tokens are not detected here.
    pub fn verify(&self, token: &str) -> Result<Claims, InvalidToken> {
        self.verify_at(token, TimestampMs::now())
    }

    /// Like [`KeyRing::verify`], at another time.
    pub fn verify_at(&self, token: &str, now: TimestampMs) -> Result<Claims, InvalidToken> {
        match self.judge(token, now) {
            Verdict::Genuine(claims) => Ok(claims),
            Verdict::UnknownKey | Verdict::Invalid => Err(InvalidToken),
        }
    }

    pub(crate) fn judge(&self, token: &str, now: TimestampMs) -> Verdict {
        let Some(token) = Unchecked::read(token) else { return Verdict::Invalid };
        let Some(key) = self.live(now).find(|key| key.id.as_str() == token.key_id) else { return Verdict::UnknownKey };
        token.check(key.secret.as_bytes()).map_or(Verdict::Invalid, Verdict::Genuine)
    }

    /// The keys whose tokens are accepted, the signing one first.
    fn live(&self, now: TimestampMs) -> impl Iterator<Item = &Key> {
        let accepted = self.accepted.iter().filter(move |retiring| now < retiring.until);
        std::iter::once(&self.signing).chain(accepted.map(|retiring| &retiring.key))
    }

    /// The ids of the keys whose tokens are accepted, the signing one first.
    #[must_use]
    pub fn key_ids(&self) -> Vec<KeyId> {
        self.live(TimestampMs::now()).map(|key| key.id.clone()).collect()
    }

    /// The keys that sign the webhooks of a namespace, the signing one first. They are derived from the keys whose
    /// tokens are accepted.
    #[must_use]
    pub fn webhook_keys(&self, namespace: &str) -> Vec<WebhookKey> {
        let now = TimestampMs::now();
        let accepted = self.accepted.iter().filter(|retiring| now < retiring.until);
        let accepted = accepted.map(|old| WebhookKey::derive(&old.key, Some(old.until), namespace));
        std::iter::once(WebhookKey::derive(&self.signing, None, namespace)).chain(accepted).collect()
    }

    /// The public facts of every key, the signing one first.
    #[must_use]
    pub fn facts(&self) -> Vec<KeyFacts> {
        let facts = |key: &Key, until| KeyFacts { id: key.id.clone(), made_at: key.made_at, until };
        let accepted = self.accepted.iter().map(|retiring| facts(&retiring.key, Some(retiring.until)));
        std::iter::once(facts(&self.signing, None)).chain(accepted).collect()
    }

    /// Signs with a new key from now on, and accepts tokens of the old one during the grace period.
    ///
    /// Keys whose grace period is over are dropped.
    pub fn rotate(&mut self, grace: Duration) -> KeyId {
        self.rotate_at(grace, TimestampMs::now())
    }

    /// Like [`KeyRing::rotate`], at another time.
    pub fn rotate_at(&mut self, grace: Duration, now: TimestampMs) -> KeyId {
        let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
        let until = TimestampMs::from_millis(now.as_millis().saturating_add(grace_ms));
        let old = self.replace_signing(now);
        self.accepted.push(Retiring { key: old, until });
        self.accepted.retain(|retiring| now < retiring.until);
        self.signing.id.clone()
    }

    /// Revokes a key. If it was the signing key, a new one is created.
    ///
    /// Returns false if the ring has no such key.
    pub fn revoke(&mut self, id: &KeyId) -> bool {
        if self.signing.id == *id {
            self.replace_signing(TimestampMs::now());
            return true;
        }
        let before = self.accepted.len();
        self.accepted.retain(|retiring| retiring.key.id != *id);
        self.accepted.len() < before
    }

    fn replace_signing(&mut self, now: TimestampMs) -> Key {
        let taken: Vec<KeyId> = self.facts().into_iter().map(|facts| facts.id).collect();
        std::mem::replace(&mut self.signing, Key::random(now, &taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fresh_nonce;
    use ff_core::types::{ExecutionId, WaitpointId};

    fn claims() -> Claims {
        Claims {
            namespace: "default".to_owned(),
            execution_id: ExecutionId::mint(),
            waitpoint_id: WaitpointId::mint(),
            approver: None,
            expires_at: None,
            uses: None,
            nonce: fresh_nonce(),
        }
    }

    const fn at(ms: i64) -> TimestampMs {
        TimestampMs::from_millis(ms)
    }

    #[test]
    fn a_reissued_token_differs_from_the_first() {
        let ring = KeyRing::generate();
        let first = claims();
        let second = Claims { nonce: fresh_nonce(), ..first.clone() };
        assert_ne!(ring.mint(&first).unwrap(), ring.mint(&second).unwrap());
    }

    #[test]
    fn the_old_key_is_accepted_until_the_grace_is_over() {
        let mut ring = KeyRing::generate();
        let old = ring.mint(&claims()).unwrap();
        let old_id = ring.signing.id.clone();
        let new_id = ring.rotate_at(Duration::from_millis(500), at(1_000));
        assert_ne!(old_id, new_id);
        assert!(ring.verify_at(old.as_str(), at(1_499)).is_ok());
        assert!(ring.verify_at(old.as_str(), at(1_500)).is_err());

        let new = ring.mint(&claims()).unwrap();
        assert!(ring.verify_at(new.as_str(), at(1_000_000)).is_ok());
        assert!(new.as_str().starts_with(&format!("wp1.{new_id}.")));

        // A later rotation drops expired keys, and a grace period of zero ends the old key at once.
        let newest = ring.rotate_at(Duration::ZERO, at(1_500));
        assert_eq!(ring.facts().into_iter().map(|facts| facts.id).collect::<Vec<_>>(), [newest]);
        assert!(ring.verify_at(new.as_str(), at(1_500)).is_err());
    }

    #[test]
    fn the_longest_grace_does_not_overflow() {
        let mut ring = KeyRing::generate();
        let old = ring.mint(&claims()).unwrap();
        ring.rotate(Duration::MAX);
        assert!(ring.verify(old.as_str()).is_ok());
    }

    #[test]
    fn a_revoked_key_is_refused_at_once() {
        let mut ring = KeyRing::generate();
        let first = ring.mint(&claims()).unwrap();
        let first_id = ring.signing.id.clone();
        ring.rotate(Duration::from_secs(3_600));
        let second = ring.mint(&claims()).unwrap();
        let second_id = ring.signing.id.clone();
        assert_eq!(ring.key_ids(), [second_id.clone(), first_id.clone()]);

        assert!(ring.revoke(&first_id));
        assert!(!ring.revoke(&first_id));
        assert!(ring.verify(first.as_str()).is_err());
        assert!(ring.verify(second.as_str()).is_ok());

        assert!(ring.revoke(&second_id));
        assert!(ring.verify(second.as_str()).is_err());
        let third = ring.mint(&claims()).unwrap();
        assert!(ring.verify(third.as_str()).is_ok());
        assert_eq!(ring.key_ids().len(), 1);
        assert_ne!(ring.key_ids(), [second_id]);
    }

    #[test]
    fn expiry_is_left_to_the_store() {
        let ring = KeyRing::generate();
        let claims = Claims { expires_at: Some(at(1)), uses: Some(0), ..claims() };
        assert_eq!(ring.verify(ring.mint(&claims).unwrap().as_str()), Ok(claims));
    }
}
