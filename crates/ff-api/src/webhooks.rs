//! What a receiver checks webhooks with.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::access::STEER;
use crate::lanes::NamespaceQuery;
use crate::operation::operations;

/// The keys of a namespace: every webhook is signed with each of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookKeys {
    /// The namespace.
    pub namespace: String,
    /// The newest first; one is enough for a receiver.
    pub keys: Vec<WebhookKey>,
}

/// A key of a namespace.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookKey {
    /// Its name.
    pub key_id: String,
    /// A secret: its holder can also make webhooks.
    pub key: String,
    /// Until when it signs beside a newer one.
    pub signs_until: Option<i64>,
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookKey").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

operations! {
    /// What a receiver checks webhooks with.
    GetWebhookKeys webhook_get_keys: get "/v1/webhooks/key", STEER;
    asks NamespaceQuery;
    returns WebhookKeys: (status = 200, body = WebhookKeys);
    fails &["keys_unavailable"];
}
