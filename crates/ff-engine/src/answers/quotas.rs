//! Quotas: made, listed and changed by operators, throttled by workers as well.

use ff_api::blocked::BlockedPage;
use ff_api::quotas::{
    ChangeQuota, CreateQuota, DeleteQuota, GetQuota, ListBlockedOnQuota, ListQuotas, Quota, SettleWeight,
    ThrottleForTask, ThrottleQuota, Throttled, WeightOutcome, WeightSettled,
};
use ff_api::{Ask, Listed, Made, Nothing, Problem, page};
use ff_core::limits::TIME_MS_MAX;
use ff_script::generated;

use super::about;
use crate::operations::ThrottleUntil;
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// How many keys a quota shows when none is asked for.
const KEYS_SHOWN: usize = 100;
/// The longest a key is throttled at once.
const THROTTLE_MAX_MS: i64 = 86_400_000;

impl Handle<CreateQuota> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CreateQuota>) -> Result<Made<Quota>, Problem> {
        let quota = generated::Quota::from(ask.body);
        by.check(&quota.namespace, None)?;
        let (entry, new) = self.operations.create_quota(quota, by.name()).await?;
        Ok(Made { thing: entry.into(), new })
    }
}

impl Handle<ListQuotas> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListQuotas>) -> Result<Listed<Quota>, Problem> {
        let limit = page::length(ask.query.limit)?;
        let offset = page::offset(ask.query.cursor.as_deref())?;
        let offset = usize::try_from(offset).expect("an offset is not below 0");
        let all = self.operations.quotas(by.namespace(ask.query.namespace)?.as_deref()).await?;
        let more = all.len() > offset.saturating_add(limit);
        let items = all.into_iter().skip(offset).take(limit).map(Quota::from).collect();
        Ok(Listed { items, next_cursor: more.then(|| (offset + limit).to_string()) })
    }
}

impl Handle<GetQuota> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetQuota>) -> Result<Quota, Problem> {
        let id = ask.at;
        let found = self.operations.quota(id, ask.query.key.as_deref()).await;
        let (entry, state) = found.map_err(|error| Problem::from(error).about(id))?;
        let keys = match state {
            Some(state) => vec![state],
            None => self.operations.quota_keys(id, KEYS_SHOWN).await?.into_iter().map(|key| key.state).collect(),
        };
        Ok(Quota { keys: Some(keys), ..entry.into() })
    }
}

impl Handle<ChangeQuota> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ChangeQuota>) -> Result<Quota, Problem> {
        let changed = self.operations.change_quota(ask.at, &ask.body, by.name()).await;
        Ok(changed.map_err(|error| Problem::from(error).about(ask.at))?.into())
    }
}

impl Handle<DeleteQuota> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<DeleteQuota>) -> Result<Nothing, Problem> {
        let deleted = self.operations.delete_quota(ask.at, by.name()).await;
        deleted.map_err(|error| Problem::from(error).about(ask.at))?;
        Ok(Nothing {})
    }
}

impl Handle<ListBlockedOnQuota> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListBlockedOnQuota>) -> Result<BlockedPage, Problem> {
        let limit = page::length(ask.query.limit)?;
        let after = ask.query.cursor.as_deref().map(str::parse).transpose()?;
        let page = self.operations.blocked_on_quota(ask.at, &ask.query.key, after, limit).await;
        page.map_err(|error| Problem::from(error).about(ask.at))
    }
}

impl Handle<ThrottleQuota> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ThrottleQuota>) -> Result<Throttled, Problem> {
        let Ask { at: quota_id, body, .. } = ask;
        let throttled = self.operations.throttle_quota(quota_id, &body.key, body.until, Some(by.name())).await;
        let throttled_until = throttled.map_err(|error| Problem::from(error).about(quota_id))?;
        Ok(Throttled { quota_id, key: body.key, throttled_until })
    }
}

impl Handle<ThrottleForTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ThrottleForTask>) -> Result<Throttled, Problem> {
        let Ask { at: id, body, .. } = ask;
        let throttling = async {
            self.check_quota(by, body.quota_id).await?;
            let until = match (body.until, body.retry_after_ms) {
                (Some(at), None) => ThrottleUntil::Time(at),
                (None, Some(ms)) if (1..=THROTTLE_MAX_MS).contains(&ms) => ThrottleUntil::For(ms),
                (None, Some(ms)) => {
                    let problem = format!("must be in 1..={THROTTLE_MAX_MS}, got {ms}");
                    return Err(Problem::invalid("retry_after_ms", problem));
                }
                _ => return Err(Problem::invalid("until", "or retry_after_ms must be given, not both")),
            };
            let throttled = self.operations.throttle_under_lease(id, &body.fence, body.quota_id, &body.key, until);
            throttled.await.map_err(about(id))
        };
        let throttled_until = self.fenced(by, id, body.fence, |_| false, throttling).await?;
        Ok(Throttled { quota_id: body.quota_id, key: body.key, throttled_until })
    }
}

impl Handle<SettleWeight> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<SettleWeight>) -> Result<WeightSettled, Problem> {
        let Ask { at: id, body, .. } = ask;
        let settling = async {
            self.check_quota(by, body.quota_id).await?;
            if !(0..=TIME_MS_MAX).contains(&body.weight) {
                return Err(Problem::invalid("weight", format!("must be in 0..={TIME_MS_MAX}, got {}", body.weight)));
            }
            let settled = self.operations.settle_weight(id, &body.fence, body.quota_id, &body.key, body.weight);
            settled.await.map_err(about(id))
        };
        let counts = self.fenced(by, id, body.fence, |_| false, settling).await?;
        Ok(WeightSettled { outcome: if counts { WeightOutcome::Ok } else { WeightOutcome::Gone } })
    }
}
