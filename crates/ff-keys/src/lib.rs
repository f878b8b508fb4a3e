//! Signs and checks waitpoint tokens and webhooks, finds, makes and rotates their keys; and makes bearer tokens.
//!
//! A token is `wp1.<key id>.<claims>.<mac>` ([`KeyRing::mint`], [`KeyRing::verify`]): whoever holds it can read its
//! claims, its mac can be made only with the key. One process keeps its ring in [`Keys`], which finds it where
//! [`Source::find`] says and follows the file when another process rotates it.
//!
//! **Invariant:** a secret is never printed: not in `Debug`, not in an error, not in a log. The one way out is
//! [`KeyRing::to_text`], which is what the file holds. A [`WebhookKey`] is derived and cannot be turned back; it is shown to
//! whoever receives webhooks.
//!
//! Deliberately absent: the life of a token. Its expiry, its uses and whether it was replaced are judged by the store,
//! inside the call that uses it.

mod bearer;
mod claims;
mod token;

mod key_id;
mod ring;
mod text;

mod file;
mod place;

mod keys;

mod webhook;

mod error;

pub use bearer::{BearerToken, Made, known_root_token, root_token};
pub use claims::{CLAIM_BYTES_MAX, Claims, fresh_nonce};
pub use error::{BadKeys, Error, InvalidToken};
pub use key_id::{InvalidKeyId, KeyId};
pub use keys::Keys;
pub use place::{Places, Source, data_dir};
pub use ring::{KeyFacts, KeyRing};
pub use token::{TOKEN_BYTES_MAX, digest};
pub use webhook::{InvalidWebhook, WEBHOOK_TOLERANCE_MS, WebhookHeaders, WebhookKey, sign_webhook, verify_webhook};
