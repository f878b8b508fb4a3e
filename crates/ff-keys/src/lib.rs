//! Signs and verifies waitpoint tokens and webhooks; finds, creates and rotates their keys; creates bearer tokens.
//!
//! A token is `wp1.<key id>.<claims>.<mac>` ([`KeyRing::mint`], [`KeyRing::verify`]). Its holder can read the claims. The
//! mac can be computed only with the key. A process keeps its ring in [`Keys`]. [`Source::find`] says where the keys
//! file is, and `Keys` reads it again when another process rotates it.
//!
//! **Invariant:** a secret is never printed: not in `Debug`, not in an error, not in a log. Only [`KeyRing::to_text`]
//! returns secrets, as the content of the keys file. A [`WebhookKey`] is derived, and no secret can be computed from it.
//! The receivers of webhooks get it.
//!
//! Deliberately absent: the life of a token. The store checks its expiry, its uses and whether it was replaced, inside
//! the call that uses it.

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
pub use token::{TOKEN_BYTES_MAX, digest, read_claims};
pub use webhook::{InvalidWebhook, WEBHOOK_TOLERANCE_MS, WebhookHeaders, WebhookKey, sign_webhook, verify_webhook};
