//! Signing of webhooks: a key per namespace, derived from each key of the ring, and the signatures made with it.

use std::fmt;

use ff_core::types::TimestampMs;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::KeyId;
use crate::claims::push_field;
use crate::ring::Key;

/// Prefix of the derivation, so that nothing else that the ring signs can equal such a key.
const LABEL: &[u8] = b"ff-webhook-key-1";
/// Prefix of a key's text, so that a leaked key is recognised.
const PREFIX: &str = "whk_";
/// Prefix of each signature in a header.
const VERSION: &str = "v1=";
/// The most signatures of one header that are checked.
const SIGNATURES_MAX: usize = 16;

/// The largest difference between the time of a webhook and the receiver's clock: five minutes. Beyond it, the webhook
/// counts as a replayed old one.
pub const WEBHOOK_TOLERANCE_MS: i64 = 300_000;

/// A key for the webhooks of one namespace. Its holder can verify them, and also forge them.
pub struct WebhookKey {
    id: KeyId,
    until: Option<TimestampMs>,
    text: Zeroizing<String>,
}

impl WebhookKey {
    pub(crate) fn derive(key: &Key, until: Option<TimestampMs>, namespace: &str) -> Self {
        let mut input = Vec::with_capacity(128);
        push_field(&mut input, LABEL);
        push_field(&mut input, namespace.as_bytes());
        let mut mac = hmac(key.secret.as_bytes());
        mac.update(&input);
        let derived = Zeroizing::new(hex::encode(mac.finalize().into_bytes()));
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + derived.len()));
        text.push_str(PREFIX);
        text.push_str(&derived);
        Self { id: key.id.clone(), until, text }
    }

    /// The key of the ring it is derived from.
    #[must_use]
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// Until when it signs beside a newer key; `None` for the newest key.
    #[must_use]
    pub fn until(&self) -> Option<TimestampMs> {
        self.until
    }

    /// The key in the form a receiver needs. The bytes of this text are the key of the HMAC.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookKey({}, redacted)", self.id)
    }
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do")
}

/// The HMAC-SHA256 of `<id>.<timestamp>.<body>`.
fn mac(key: &[u8], id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = hmac(key);
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac
}

/// The value of the signature header: one signature per key. So a receiver with an older key can verify webhooks during
/// the grace period.
#[must_use]
pub fn sign_webhook(keys: &[WebhookKey], id: &str, timestamp: &str, body: &[u8]) -> String {
    let one = |key: &WebhookKey| {
        let mac = mac(key.expose().as_bytes(), id, timestamp, body).finalize().into_bytes();
        format!("{VERSION}{}", hex::encode(mac))
    };
    keys.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The headers of a webhook.
#[derive(Clone, Copy, Debug)]
pub struct WebhookHeaders<'a> {
    /// `FF-Webhook-Id`: the same in every try.
    pub id: &'a str,
    /// `FF-Webhook-Timestamp`: milliseconds since the epoch, by the sender's clock.
    pub timestamp: &'a str,
    /// `FF-Webhook-Signature`: `v1=<hex>`, several separated by commas.
    pub signature: &'a str,
}

/// The webhook was not sent by this store, was changed in transit, or is a replayed old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWebhook {
    /// No signature matches the key.
    #[error("the webhook was not signed with this key, or was changed on the way")]
    Signature,
    /// It was signed too long ago, or the clocks differ too much.
    #[error("the webhook was signed more than {WEBHOOK_TOLERANCE_MS} ms from now")]
    Time,
}

/// Verifies a webhook as its receiver does. Needs the key of its namespace (`ff webhook key`), its headers, and the
/// unchanged bytes of its body.
///
/// Signatures are compared in constant time. The same webhook may arrive more than once, with the same id.
///
/// ```
/// use ff_keys::{InvalidWebhook, WebhookHeaders, verify_webhook};
/// let headers = WebhookHeaders {
///     id: "0192d5f2-6f3c-8a70-a3f1-0242ac120002",
///     timestamp: "1700000000000",
///     signature: "v1=c0ffee",
/// };
/// assert_eq!(verify_webhook("whk_…", &headers, b"{}", 1_700_000_000_500), Err(InvalidWebhook::Signature));
/// ```
pub fn verify_webhook(key: &str, headers: &WebhookHeaders<'_>, body: &[u8], now_ms: i64) -> Result<(), InvalidWebhook> {
    let genuine = headers.signature.split(',').take(SIGNATURES_MAX).any(|signature| {
        let Some(signature) = signature.trim().strip_prefix(VERSION).and_then(|text| hex::decode(text).ok()) else {
            return false;
        };
        mac(key.as_bytes(), headers.id, headers.timestamp, body).verify_slice(&signature).is_ok()
    });
    if !genuine {
        return Err(InvalidWebhook::Signature);
    }
    let signed_at: i64 = headers.timestamp.parse().map_err(|_| InvalidWebhook::Time)?;
    if now_ms.abs_diff(signed_at) > WEBHOOK_TOLERANCE_MS.unsigned_abs() {
        return Err(InvalidWebhook::Time);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::KeyRing;

    const NOW: i64 = 1_700_000_000_000;

    fn check(key: &WebhookKey, id: &str, timestamp: &str, signature: &str, body: &[u8]) -> Result<(), InvalidWebhook> {
        verify_webhook(key.expose(), &WebhookHeaders { id, timestamp, signature }, body, NOW)
    }

    #[test]
    fn what_was_signed_is_accepted_and_nothing_else() {
        let keys = KeyRing::generate().webhook_keys("default");
        let (time, body) = (NOW.to_string(), br#"{"a":1}"#.as_slice());
        let signature = sign_webhook(&keys, "id", &time, body);
        assert_eq!(signature.len(), 3 + 64);
        assert_eq!(check(&keys[0], "id", &time, &signature, body), Ok(()));
        assert_eq!(check(&keys[0], "id", &time, &format!("v0=00, {signature}"), body), Ok(()));
        let other = KeyRing::generate().webhook_keys("default");
        for refused in [
            check(&keys[0], "other", &time, &signature, body),
            check(&keys[0], "id", &(NOW + 1).to_string(), &signature, body),
            check(&keys[0], "id", &time, &signature, b"{}"),
            check(&keys[0], "id", &time, &signature.replace("v1=", "v2="), body),
            check(&keys[0], "id", &time, &signature[..60], body),
            check(&keys[0], "id", &time, "", body),
            check(&other[0], "id", &time, &signature, body),
        ] {
            assert_eq!(refused, Err(InvalidWebhook::Signature));
        }
    }

    #[test]
    fn a_webhook_of_long_ago_is_refused() {
        let keys = KeyRing::generate().webhook_keys("default");
        for (at, answer) in [
            (NOW - WEBHOOK_TOLERANCE_MS, Ok(())),
            (NOW + WEBHOOK_TOLERANCE_MS, Ok(())),
            (NOW - WEBHOOK_TOLERANCE_MS - 1, Err(InvalidWebhook::Time)),
            (NOW + WEBHOOK_TOLERANCE_MS + 1, Err(InvalidWebhook::Time)),
            (i64::MIN, Err(InvalidWebhook::Time)),
        ] {
            let signature = sign_webhook(&keys, "id", &at.to_string(), b"");
            assert_eq!(check(&keys[0], "id", &at.to_string(), &signature, b""), answer, "{at}");
        }
    }

    #[test]
    fn each_namespace_has_a_key_of_its_own_that_stays() {
        let ring = KeyRing::generate();
        let text = |namespace: &str| ring.webhook_keys(namespace)[0].expose().to_owned();
        assert_eq!(text("a"), text("a"));
        assert_ne!(text("a"), text("b"));
        assert!(text("a").starts_with("whk_") && text("a").len() == 68, "{}", text("a"));
        let reread = KeyRing::from_text(&ring.to_text()).unwrap();
        assert_eq!(reread.webhook_keys("a")[0].expose(), text("a"));
        assert!(!format!("{:?}", ring.webhook_keys("a")).contains(&text("a")[4..]));
    }

    #[test]
    fn the_key_of_this_secret_is_this_text() {
        // Computed with another program: a changed derivation would break every receiver.
        let text = "flowfabric keys 1\nsign k1k1k1k1 made_at=1 secret=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n";
        let keys = KeyRing::from_text(text).unwrap().webhook_keys("default");
        assert_eq!(keys[0].expose(), "whk_47d5cdd65e444fdad476e5a7347e197d41d770473035a1ae7c3c5e0e80536221");
        let signature = sign_webhook(&keys, "0192d5f2-6f3c-8a70-a3f1-0242ac120002", "1700000000000", br#"{"a":1}"#);
        assert_eq!(signature, "v1=bdb47637612b3271dae508d4cdd14f4c5a8d2fca1d7f1963c918010b725b41a7");
    }

    #[test]
    fn during_a_rotation_both_keys_sign_and_a_revoked_one_does_not() {
        let mut ring = KeyRing::generate();
        let old = ring.webhook_keys("default");
        ring.rotate(Duration::from_secs(3_600));
        let both = ring.webhook_keys("default");
        assert_eq!((both.len(), both[0].until().is_none(), both[1].until().is_some()), (2, true, true));
        assert_eq!(both[1].expose(), old[0].expose());
        let (time, signature) = (NOW.to_string(), sign_webhook(&both, "id", &NOW.to_string(), b"x"));
        for key in &both {
            assert_eq!(check(key, "id", &time, &signature, b"x"), Ok(()));
        }
        assert!(ring.revoke(old[0].id()));
        assert_eq!(ring.webhook_keys("default").len(), 1);
    }
}
