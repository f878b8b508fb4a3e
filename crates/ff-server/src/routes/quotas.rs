//! Quotas: made, read, changed and deleted by operators, and a key throttled.

use ff_api::quotas::{ChangeQuota, CreateQuota, DeleteQuota, GetQuota, ListBlockedOnQuota, ListQuotas, ThrottleQuota};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListQuotas>()
        .answering::<CreateQuota>()
        .answering::<GetQuota>()
        .answering::<ChangeQuota>()
        .answering::<DeleteQuota>()
        .answering::<ListBlockedOnQuota>()
        .answering::<ThrottleQuota>()
}
