//! The keys that sign waitpoint tokens: their names and times, never the keys.

use serde::{Deserialize, Serialize};

use crate::access::RULE;
use crate::operation::operations;
use crate::page::Listed;
use crate::parts;

/// A key by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SigningKey {
    /// Its name.
    pub key_id: String,
    /// When it was made.
    pub made_at: i64,
    /// Signs new tokens; the others are only accepted.
    pub signs: bool,
    /// Until when its tokens are accepted; null without an end.
    pub accepted_until: Option<i64>,
}

/// How long tokens of the old key are still accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = RotateBody))]
pub struct RotateBody {
    /// The default is a day.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 315_360_000_000_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// The keys after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeysChanged {
    /// The key that signs now.
    pub key_id: String,
    /// Every key, the one that signs first.
    pub keys: Vec<SigningKey>,
}

operations! {
    /// The signing key first; none before the first token is needed.
    ListKeys key_list: get "/v1/admin/keys", RULE;
    returns Listed<SigningKey>: (status = 200, body = Listed<SigningKey>);

    /// Signs with a new key from now on; tokens of the old one are accepted until the grace is over.
    RotateKeys key_rotate: post "/v1/admin/keys/rotate", RULE;
    takes RotateBody;
    returns KeysChanged: (status = 200, body = KeysChanged);
    fails &["keys_fixed", "keys_unavailable"];

    /// Accepts no token of this key any more; if it signs, a new one is made.
    RevokeKey key_revoke: post "/v1/admin/keys/{key}/revoke", RULE;
    at (parts::Key);
    returns KeysChanged: (status = 200, body = KeysChanged);
    fails &["key_not_found", "keys_fixed", "keys_unavailable"];
}
