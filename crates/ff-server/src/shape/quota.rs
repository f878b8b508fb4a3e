//! A quota and how far its keys are used.

use ff_core::types::QuotaPolicyId;
use ff_script::generated::{QuotaEntry, QuotaKeyState, QuotaRate, QuotaWeights};
use serde::Serialize;
use utoipa::ToSchema;

/// A quota's definition and, where they were asked for, its keys.
#[derive(Serialize, ToSchema)]
pub struct QuotaShape {
    quota_id: QuotaPolicyId,
    namespace: String,
    version: i64,
    created_at: i64,
    rate: Option<QuotaRate>,
    concurrency: Option<i64>,
    weighted: Option<QuotaWeights>,
    hold_while_suspended: bool,
    /// How many keys are in use.
    keys_in_use: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<QuotaKeyState>>,
}

impl QuotaShape {
    /// With these keys.
    pub fn with(mut self, keys: Vec<QuotaKeyState>) -> Self {
        self.keys = Some(keys);
        self
    }
}

impl From<QuotaEntry> for QuotaShape {
    fn from(entry: QuotaEntry) -> Self {
        let quota = entry.quota;
        Self {
            quota_id: quota.quota_id,
            namespace: quota.namespace,
            version: entry.version,
            created_at: entry.created_at,
            rate: quota.rate,
            concurrency: quota.concurrency,
            weighted: quota.weighted,
            hold_while_suspended: quota.hold_while_suspended,
            keys_in_use: entry.keys,
            keys: None,
        }
    }
}
