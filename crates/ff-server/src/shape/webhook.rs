//! How far a webhook is.

use ff_script::generated::WebhookStatus;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The webhook of the last end of an execution or a flow.
#[derive(Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookShape {
    delivery_id: Uuid,
    state: &'static str,
    /// Tries that have ended.
    tries: i64,
    owed_at: i64,
    updated_at: i64,
    /// When it is tried next.
    next_at: Option<i64>,
    /// What the receiver answered last.
    status: Option<i64>,
    /// What went wrong last.
    error: Option<String>,
}

impl From<WebhookStatus> for WebhookShape {
    fn from(status: WebhookStatus) -> Self {
        Self {
            delivery_id: status.delivery_id,
            state: status.state.as_str(),
            tries: status.tries,
            owed_at: status.owed_at,
            updated_at: status.updated_at,
            next_at: status.next_at,
            status: status.status,
            error: status.error,
        }
    }
}
