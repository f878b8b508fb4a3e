//! Telling the fleet about a provider: that it has enough, and what a call of it really weighed.

use std::time::Duration;

use ff_api::Ask;
use ff_api::quotas::{SettleWeight, ThrottleForTask, ThrottleForTaskBody, WeightBody, WeightOutcome};
use ff_core::types::{QuotaPolicyId, TimestampMs};

use crate::runtime::Ctx;
use crate::task::TaskCore;
use crate::{ClaimedTask, SdkError};

impl TaskCore {
    pub(crate) async fn throttle(
        &self,
        quota: &QuotaPolicyId,
        key: &str,
        until: TimestampMs,
    ) -> Result<Option<TimestampMs>, SdkError> {
        self.throttled(quota, key, Some(until.as_millis()), None).await
    }

    pub(crate) async fn throttle_for(
        &self,
        quota: &QuotaPolicyId,
        key: &str,
        wait: Duration,
    ) -> Result<Option<TimestampMs>, SdkError> {
        let ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX).max(1);
        self.throttled(quota, key, None, Some(ms)).await
    }

    async fn throttled(
        &self,
        quota: &QuotaPolicyId,
        key: &str,
        until: Option<i64>,
        retry_after_ms: Option<i64>,
    ) -> Result<Option<TimestampMs>, SdkError> {
        let ask = Ask::<ThrottleForTask>::with(
            self.lease.at.execution_id,
            ThrottleForTaskBody {
                fence: self.lease.at.fence(),
                quota_id: *quota,
                key: key.to_owned(),
                until,
                retry_after_ms,
                request_id: None,
            },
        );
        let reach = self.backend.reach();
        let throttled = self.repeat(|| reach.ask(ask.clone())).await?;
        Ok(throttled.throttled_until.map(TimestampMs))
    }

    pub(crate) async fn settle_weight(&self, quota: &QuotaPolicyId, key: &str, weight: u64) -> Result<bool, SdkError> {
        let ask = Ask::<SettleWeight>::with(
            self.lease.at.execution_id,
            WeightBody {
                fence: self.lease.at.fence(),
                quota_id: *quota,
                key: key.to_owned(),
                weight: i64::try_from(weight).unwrap_or(i64::MAX),
                request_id: None,
            },
        );
        let reach = self.backend.reach();
        Ok(self.repeat(|| reach.ask(ask.clone())).await?.outcome == WeightOutcome::Ok)
    }
}

/// Quotas.
impl ClaimedTask {
    /// A provider has enough: nothing starts under this key of a quota until then, wherever it would run. A later time wins over
    /// an earlier one; one that has passed changes nothing, 0 ends the throttle. Answers until when the key is throttled.
    pub async fn throttle(
        &self,
        quota: &QuotaPolicyId,
        key: &str,
        until: TimestampMs,
    ) -> Result<Option<TimestampMs>, SdkError> {
        self.core().throttle(quota, key, until).await
    }

    /// Like [`ClaimedTask::throttle`], for as long as a provider's `Retry-After` says, by the engine's clock.
    pub async fn throttle_for(
        &self,
        quota: &QuotaPolicyId,
        key: &str,
        wait: Duration,
    ) -> Result<Option<TimestampMs>, SdkError> {
        self.core().throttle_for(quota, key, wait).await
    }

    /// Says what this task really weighed under a key of a weighted quota it was submitted with. It may be more than the limit:
    /// later work waits for it. False when its window is over, or when it does not count under this key.
    pub async fn settle_weight(&self, quota: &QuotaPolicyId, key: &str, weight: u64) -> Result<bool, SdkError> {
        self.core().settle_weight(quota, key, weight).await
    }
}

/// Quotas; see [`ClaimedTask::throttle`].
impl Ctx {
    /// A provider has enough: nothing starts under this key until then.
    pub async fn throttle(
        &self,
        quota: &QuotaPolicyId,
        key: &str,
        until: TimestampMs,
    ) -> Result<Option<TimestampMs>, SdkError> {
        self.0.throttle(quota, key, until).await
    }

    /// A provider has enough: nothing starts under this key for a while.
    pub async fn throttle_for(
        &self,
        quota: &QuotaPolicyId,
        key: &str,
        wait: Duration,
    ) -> Result<Option<TimestampMs>, SdkError> {
        self.0.throttle_for(quota, key, wait).await
    }

    /// Says what this task really weighed under a key.
    pub async fn settle_weight(&self, quota: &QuotaPolicyId, key: &str, weight: u64) -> Result<bool, SdkError> {
        self.0.settle_weight(quota, key, weight).await
    }
}
