//! Quotas: how much may start, run and weigh under a key.

use ff_core::types::QuotaPolicyId;
use ff_script::generated::{self, QuotaEntry, QuotaKeyState, QuotaRate, QuotaWeights, RateMode, Role};
use serde::{Deserialize, Serialize};

use crate::Made;
use crate::access::{Access, LOOK, STEER, WORK};
use crate::blocked::BlockedPage;
use crate::operation::{Nothing, fenced, operations};
use crate::page::Listed;
use crate::parts::{self, Id};
use crate::tasks::Fence;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// So many starts in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct QuotaRateBody {
    /// How many.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    pub limit: i64,
    /// How long the window is.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::WindowMs))]
    pub window_ms: i64,
    /// Anywhere in the window or evenly spaced; the default is `sliding`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<RateMode>,
}

impl From<QuotaRateBody> for QuotaRate {
    fn from(body: QuotaRateBody) -> Self {
        let QuotaRateBody { limit, window_ms, mode } = body;
        Self { limit, window_ms, mode: mode.unwrap_or(RateMode::Sliding) }
    }
}

/// A quota to make. It has a rate, a concurrency or a weighted part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateQuotaBody {
    /// Its id; minted by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_id: Option<QuotaPolicyId>,
    /// The namespace it belongs to; the default is `default`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Namespace>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// How many may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<QuotaRateBody>,
    /// How many may run at once.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<i64>,
    /// How much weight may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weighted: Option<QuotaWeights>,
    /// Suspended work keeps its place among what runs; the default is `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_while_suspended: Option<bool>,
}

impl From<CreateQuotaBody> for generated::Quota {
    fn from(body: CreateQuotaBody) -> Self {
        Self {
            rate: body.rate.map(QuotaRate::from),
            concurrency: body.concurrency,
            weighted: body.weighted,
            ..Self::new(
                body.quota_id.unwrap_or_else(QuotaPolicyId::mint),
                body.namespace.unwrap_or_else(|| "default".to_owned()),
                body.hold_while_suspended.unwrap_or(false),
            )
        }
    }
}

/// A change of a quota. What is absent stays, and `null` takes a part away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeQuotaBody {
    /// How many may start.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<QuotaRateBody>))]
    #[serde(default, deserialize_with = "ff_core::json::named", skip_serializing_if = "Option::is_none")]
    pub rate: Option<Option<QuotaRateBody>>,
    /// How many may run at once.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000))]
    #[serde(default, deserialize_with = "ff_core::json::named", skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Option<i64>>,
    /// How much weight may start.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<QuotaWeights>))]
    #[serde(default, deserialize_with = "ff_core::json::named", skip_serializing_if = "Option::is_none")]
    pub weighted: Option<Option<QuotaWeights>>,
    /// Suspended work keeps its place among what runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_while_suspended: Option<bool>,
}

impl ChangeQuotaBody {
    /// Changes a quota.
    pub fn apply(&self, quota: &mut generated::Quota) {
        if let Some(rate) = self.rate {
            quota.rate = rate.map(QuotaRate::from);
        }
        if let Some(concurrency) = self.concurrency {
            quota.concurrency = concurrency;
        }
        if let Some(weighted) = self.weighted {
            quota.weighted = weighted;
        }
        if let Some(hold) = self.hold_while_suspended {
            quota.hold_while_suspended = hold;
        }
    }
}

/// A quota and, where they were asked for, how far its keys are used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Quota {
    /// The quota.
    pub quota_id: QuotaPolicyId,
    /// The namespace it belongs to.
    pub namespace: String,
    /// Counts its changes.
    pub version: i64,
    /// When it was made.
    pub created_at: i64,
    /// How many may start.
    pub rate: Option<QuotaRate>,
    /// How many may run at once.
    pub concurrency: Option<i64>,
    /// How much weight may start.
    pub weighted: Option<QuotaWeights>,
    /// Suspended work keeps its place among what runs.
    pub hold_while_suspended: bool,
    /// How many keys are in use.
    pub keys_in_use: i64,
    /// The key that was asked for, or those in use. Shown for one quota, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<QuotaKeyState>>,
}

impl Quota {
    /// How far a key is used, where that was asked for.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<&QuotaKeyState> {
        self.keys.iter().flatten().find(|state| state.key == key)
    }
}

impl From<QuotaEntry> for Quota {
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

/// Which quotas to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct QuotasQuery {
    /// Those of a namespace.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
    /// How many; the default is 100.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Which key of a quota to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct QuotaQuery {
    /// The key; the default is the first hundred in use.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::QuotaKey>))]
    pub key: Option<String>,
}

/// Which waiting executions of a quota to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct QuotaBlockedQuery {
    /// The key under which they wait.
    #[cfg_attr(feature = "openapi", param(value_type = vocabulary::QuotaKey))]
    pub key: String,
    /// How many; at most 64 come at once.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// A key under which nothing may start for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ThrottleBody {
    /// The key.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::QuotaKey))]
    pub key: String,
    /// Until when nothing starts; a time that has passed changes nothing, 0 ends the throttle.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::TimeMs))]
    pub until: i64,
}

/// A key that a provider refuses for a while. One of `until` and `retry_after_ms` is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ThrottleForTaskBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// The quota.
    pub quota_id: QuotaPolicyId,
    /// The key.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::QuotaKey))]
    pub key: String,
    /// Until when nothing starts; a time that has passed changes nothing, 0 ends the throttle.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(alias = "until_ms", skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// For how long, as a provider's `Retry-After` says it.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<i64>,
    /// Taken and not used: a repetition throttles the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A key and until when nothing starts under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Throttled {
    /// The quota.
    pub quota_id: QuotaPolicyId,
    /// The key.
    pub key: String,
    /// Until when nothing starts; `null` without a throttle.
    pub throttled_until: Option<i64>,
}

/// What a running attempt really weighed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WeightBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// The quota.
    pub quota_id: QuotaPolicyId,
    /// The key.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::QuotaKey))]
    pub key: String,
    /// The weight.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Count))]
    pub weight: i64,
    /// Taken and not used: a repetition settles the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What became of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WeightSettled {
    /// Whether it counts.
    pub outcome: WeightOutcome,
}

/// Whether a weight counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WeightOutcome {
    /// It counts.
    Ok,
    /// Its window is over, or the execution weighs nothing under this key.
    Gone,
}

operations! {
    /// Makes a quota; it has a rate, a concurrency or a weighted part.
    CreateQuota quota_create: post "/v1/quotas", STEER;
    takes CreateQuotaBody;
    returns Made<Quota>: (status = 201, description = "It is new.", body = Quota), (status = 200, description = "It was there already: the same id with the same definition.", body = Quota);
    status Made::status;
    fails &["quota_version_conflict"];

    /// One page of quotas.
    ListQuotas quota_list: get "/v1/quotas", LOOK;
    asks QuotasQuery;
    returns Listed<Quota>: (status = 200, body = Listed<Quota>);

    /// A quota and how far its keys are used: the one asked for, or the first hundred.
    GetQuota quota_get: get "/v1/quotas/{quota}", LOOK;
    at (parts::Quota);
    asks QuotaQuery;
    returns Quota: (status = 200, body = Quota);
    fails &["quota_not_found"];

    /// Changes a quota; what is absent stays, `null` takes a part away.
    ChangeQuota quota_change: patch "/v1/quotas/{quota}", STEER;
    at (parts::Quota);
    takes ChangeQuotaBody;
    returns Quota: (status = 200, body = Quota);
    fails &["quota_not_found", "quota_version_conflict"];

    /// Deletes a quota; nothing starts that names it.
    DeleteQuota quota_delete: delete "/v1/quotas/{quota}", STEER;
    at (parts::Quota);
    returns Nothing: (status = 204, description = "It is gone.");
    fails &["quota_not_found"];

    /// The executions that wait under a key, the next to be called first.
    ListBlockedOnQuota quota_list_blocked: get "/v1/quotas/{quota}/blocked", LOOK;
    at (parts::Quota);
    asks QuotaBlockedQuery;
    returns BlockedPage: (status = 200, body = BlockedPage);
    fails &["quota_not_found"];

    /// Lets nothing start under a key until a time.
    ThrottleQuota quota_throttle: post "/v1/quotas/{quota}/throttle", Access::Roles(&[Role::Worker, Role::Operator]);
    at (parts::Quota);
    takes ThrottleBody;
    returns Throttled: (status = 200, body = Throttled);
    fails &["quota_not_found"];

    /// A provider had enough: nothing starts under the key until it recovers.
    ThrottleForTask task_throttle: post "/v1/tasks/{id}/throttle", WORK;
    at (Id);
    takes ThrottleForTaskBody;
    returns Throttled: (status = 200, body = Throttled);
    fails fenced!["quota_not_found", "hard_breach"];

    /// Says what the attempt really weighed under a key: more or less than it was admitted with.
    SettleWeight task_settle_weight: post "/v1/tasks/{id}/weight", WORK;
    at (Id);
    takes WeightBody;
    returns WeightSettled: (status = 200, body = WeightSettled);
    fails fenced!["quota_not_found", "hard_breach"];
}
