//! Quotas: how much may start, run and weigh under a key. Each lives in the partition its id says.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ff_api::quotas::ChangeQuotaBody;
use ff_core::EngineError;
use ff_core::error::{Detail, ValidationKind};
use ff_core::error_code::ErrorCode;
use ff_core::types::{ExecutionId, QuotaPolicyId};
use ff_script::Error;
use ff_script::generated::{
    AdmitQuota, AdmitQuotaReply, DeleteQuota, Fence, GetQuota, GetQuotaReply, ListQuotaKeys, ListQuotaKeysReply,
    ListQuotas, ListQuotasReply, PutQuota, PutQuotaReply, Quota, QuotaAnswer, QuotaCandidate, QuotaEntry, QuotaHolder,
    QuotaHolderReply, QuotaKeyState, QuotaKeyUse, QuotaRef, SettleQuota, SettleQuotaReply, ThrottleQuota,
    ThrottleQuotaReply,
};
use tokio::time::Instant;
use uuid::Uuid;

use super::{Operations, refused_with};

const PAGE: i64 = 500;
const KEYS_PAGE: i64 = 64;
/// How long a quota that was seen counts as there.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// How often a change is made anew when another came in between.
const TRIES: usize = 8;

/// Quotas seen lately, with their namespaces.
#[derive(Default)]
pub(super) struct KnownQuotas {
    seen: Mutex<HashMap<Uuid, (Instant, String)>>,
    /// One looks, and all who came meanwhile have seen it.
    looking: tokio::sync::Mutex<()>,
}

impl KnownQuotas {
    fn namespace_of(&self, id: Uuid) -> Option<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&id).filter(|(at, _)| at.elapsed() < KNOWN_FOR).map(|(_, namespace)| namespace.clone())
    }
}

/// How long a key is throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleUntil {
    /// Until this time of the store; one that has passed changes nothing, 0 ends the throttle.
    Time(i64),
    /// For so many milliseconds from now.
    For(i64),
}

impl Operations {
    /// Creates a quota; the same definition again answers the one that is there. The second value says that it is new.
    pub async fn create_quota(&self, quota: Quota, actor: &str) -> Result<(QuotaEntry, bool), Error> {
        let route = self.client.route_of_quota(&quota.quota_id);
        match self.client.call(route, &PutQuota { actor: Some(actor.to_owned()), quota, version: None }).await? {
            PutQuotaReply::Created { entry } => Ok((entry, true)),
            PutQuotaReply::Duplicate { entry } | PutQuotaReply::Replaced { entry } => Ok((entry, false)),
        }
    }

    /// Changes what is named of a quota and leaves the rest; made anew when another change came in between.
    pub async fn change_quota(
        &self,
        id: QuotaPolicyId,
        change: &ChangeQuotaBody,
        actor: &str,
    ) -> Result<QuotaEntry, Error> {
        let route = self.client.route_of_quota(&id);
        let mut tries = 1;
        loop {
            let (QuotaEntry { mut quota, version, .. }, _) = self.quota(id, None).await?;
            change.apply(&mut quota);
            let call = PutQuota { actor: Some(actor.to_owned()), quota, version: Some(version) };
            match self.client.call(route, &call).await {
                Err(error) if refused_with(&error) == Some(ErrorCode::QuotaVersionConflict) && tries < TRIES => {
                    tries += 1;
                }
                answer => {
                    return answer.map(|reply| match reply {
                        PutQuotaReply::Created { entry }
                        | PutQuotaReply::Duplicate { entry }
                        | PutQuotaReply::Replaced { entry } => entry,
                    });
                }
            }
        }
    }

    /// A quota and, of a key, how far it is used.
    pub async fn quota(
        &self,
        id: QuotaPolicyId,
        key: Option<&str>,
    ) -> Result<(QuotaEntry, Option<QuotaKeyState>), Error> {
        let call = GetQuota { key: key.map(str::to_owned), quota_id: id };
        let GetQuotaReply::Quota { entry, state, .. } =
            self.client.call(self.client.route_of_quota(&id), &call).await?;
        Ok((entry, state))
    }

    /// Every quota, of one namespace when it is named; the newest first.
    pub async fn quotas(&self, namespace: Option<&str>) -> Result<Vec<QuotaEntry>, Error> {
        let mut all = Vec::new();
        for route in self.client.quota_routes() {
            let mut after = None;
            loop {
                let call = ListQuotas { after, limit: PAGE, namespace: namespace.map(str::to_owned) };
                let ListQuotasReply::Page { items, last, more } = self.client.call(route, &call).await?;
                all.extend(items);
                after = last;
                if !more || after.is_none() {
                    break;
                }
            }
        }
        all.sort_by_key(|entry| std::cmp::Reverse((entry.created_at, entry.quota.quota_id)));
        Ok(all)
    }

    /// The keys of a quota that are in use, with their holder sets; at most `max`, in the order of their first use.
    pub async fn quota_keys(&self, id: QuotaPolicyId, max: usize) -> Result<Vec<QuotaKeyUse>, Error> {
        let mut all = Vec::new();
        let mut after = 0;
        loop {
            let call = ListQuotaKeys { after, limit: KEYS_PAGE, quota_id: id };
            let ListQuotaKeysReply::Page { items, next } =
                self.client.call(self.client.route_of_quota(&id), &call).await?;
            all.extend(items);
            match next {
                Some(next) if all.len() < max => after = next,
                _ => break,
            }
        }
        all.truncate(max);
        Ok(all)
    }

    /// Deletes a quota: nothing that names it starts any more.
    pub async fn delete_quota(&self, id: QuotaPolicyId, actor: &str) -> Result<(), Error> {
        let call = DeleteQuota { actor: Some(actor.to_owned()), quota_id: id };
        self.client.call(self.client.route_of_quota(&id), &call).await?;
        self.known_quotas.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(id.as_uuid());
        Ok(())
    }

    /// Nothing starts under a key until this time; one that has passed changes nothing, and 0 ends a throttle. Answers until
    /// when.
    pub async fn throttle_quota(
        &self,
        id: QuotaPolicyId,
        key: &str,
        until: i64,
        actor: Option<&str>,
    ) -> Result<Option<i64>, Error> {
        let call = ThrottleQuota { actor: actor.map(str::to_owned), key: key.to_owned(), quota_id: id, until };
        match self.client.call(self.client.route_of_quota(&id), &call).await? {
            ThrottleQuotaReply::Throttled { until } => Ok(Some(until)),
            ThrottleQuotaReply::Cleared => Ok(None),
        }
    }

    /// Says what an admitted execution really weighed; false when its window is over.
    pub async fn settle_quota(
        &self,
        id: QuotaPolicyId,
        key: &str,
        execution_id: ExecutionId,
        holder_id: Uuid,
        weight: i64,
    ) -> Result<bool, Error> {
        let call = SettleQuota { execution_id, holder_id, key: key.to_owned(), quota_id: id, weight };
        let reply = self.client.call(self.client.route_of_quota(&id), &call).await?;
        Ok(matches!(reply, SettleQuotaReply::Settled { .. }))
    }

    /// A running attempt met the limit of a provider: nothing starts under the key for so long, or until a time.
    pub async fn throttle_under_lease(
        &self,
        execution_id: ExecutionId,
        fence: &Fence,
        id: QuotaPolicyId,
        key: &str,
        until: ThrottleUntil,
    ) -> Result<Option<i64>, Error> {
        let (_, now) = self.quota_holder(execution_id, fence, id, key).await?;
        let until = match until {
            ThrottleUntil::Time(at) => at,
            ThrottleUntil::For(ms) => now.saturating_add(ms),
        };
        self.throttle_quota(id, key, until, Some(&format!("execution {execution_id}"))).await
    }

    /// Says what a running attempt really weighed under a key of a quota it was submitted with; false when its window is
    /// over, or when it weighs nothing there.
    pub async fn settle_weight(
        &self,
        execution_id: ExecutionId,
        fence: &Fence,
        id: QuotaPolicyId,
        key: &str,
        weight: i64,
    ) -> Result<bool, Error> {
        match self.quota_holder(execution_id, fence, id, key).await? {
            (Some(holder_id), _) => self.settle_quota(id, key, execution_id, holder_id, weight).await,
            (None, _) => Ok(false),
        }
    }

    /// Who a running attempt is to a quota, and the store's time.
    async fn quota_holder(
        &self,
        execution_id: ExecutionId,
        fence: &Fence,
        quota_id: QuotaPolicyId,
        key: &str,
    ) -> Result<(Option<Uuid>, i64), Error> {
        let call = QuotaHolder { execution_id, fence: *fence, key: key.to_owned(), quota_id };
        Ok(match self.client.call(self.client.route_of(&execution_id), &call).await? {
            QuotaHolderReply::Held { holder_id, now } => (Some(holder_id), now),
            QuotaHolderReply::Free { now } => (None, now),
        })
    }

    /// Asks a quota for executions, in order.
    pub async fn admit_quota(
        &self,
        id: QuotaPolicyId,
        candidates: Vec<QuotaCandidate>,
    ) -> Result<Vec<QuotaAnswer>, Error> {
        let call = AdmitQuota { candidates, quota_id: id };
        let AdmitQuotaReply::Answered { items } = self.client.call(self.client.route_of_quota(&id), &call).await?;
        Ok(items)
    }

    /// Refuses quotas that are not there, or belong to another namespace. One that was seen counts as there for a second.
    pub(super) async fn check_quotas(&self, namespace: &str, refs: Option<&[QuotaRef]>) -> Result<(), Error> {
        let refs = refs.unwrap_or_default();
        for (at, named) in refs.iter().enumerate() {
            if refs[..at].iter().any(|other| (other.quota_id, &other.key) == (named.quota_id, &named.key)) {
                let kind = ValidationKind::InvalidArgument { field: format!("quotas[{at}].key") };
                return Err(EngineError::Validation { kind, detail: "is named twice".to_owned() }.into());
            }
        }
        let ids: BTreeSet<Uuid> = refs.iter().map(|quota| quota.quota_id).collect();
        for id in ids {
            let owner = match self.known_quotas.namespace_of(id) {
                Some(owner) => owner,
                None => self.namespace_of_quota(id).await?,
            };
            if owner != namespace {
                let detail = Detail::from_iter([("quota_id".to_owned(), id.to_string())]);
                return Err(Error::Engine(EngineError::from_refusal(ErrorCode::QuotaNotFound, detail)));
            }
        }
        Ok(())
    }

    async fn namespace_of_quota(&self, id: Uuid) -> Result<String, Error> {
        let _one = self.known_quotas.looking.lock().await;
        if let Some(namespace) = self.known_quotas.namespace_of(id) {
            return Ok(namespace);
        }
        let (entry, _) = self.quota(QuotaPolicyId::from_uuid(id), None).await?;
        let namespace = entry.quota.namespace;
        let mut known = self.known_quotas.seen.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (at, _)| at.elapsed() < KNOWN_FOR);
        known.insert(id, (Instant::now(), namespace.clone()));
        Ok(namespace)
    }
}
