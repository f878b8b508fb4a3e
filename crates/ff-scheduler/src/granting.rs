//! Reserves, then admits: the way of work that counts against a limit, a quota or a budget.
//!
//! A grant names the holder sets its execution must enter. Those that do not fit go back to their place; what the grant's
//! own end owes (slots it was given) is returned by the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ff_core::EngineError;
use ff_core::error::Detail;
use ff_core::error_code::ErrorCode;
use ff_engine::Operations;
use ff_engine::operations::Room;
use ff_script::generated::{
    BlockExecution, Candidate, Grant, GrantReclaim, GrantReclaimReply, IssueGrants, IssueGrantsReply, ReleaseGrant,
};
use ff_script::{Error, Route};
use uuid::Uuid;

use crate::admission::{Admission, Admitted};

/// For whom grants are issued, and of which lane.
#[derive(Clone, Debug)]
pub(crate) struct Grantee {
    pub namespace: String,
    pub lane: String,
    pub instance: String,
    pub capabilities: Vec<String>,
}

/// What an issue brought.
#[derive(Debug, Default)]
pub(crate) struct Issued {
    /// Reserved and admitted.
    pub grants: Vec<Grant>,
    /// The best score left in the partition, what was given back included.
    pub next_score: Option<i64>,
    /// How full the lane is, when it is limited.
    pub room: Option<Room>,
}

/// Issues grants and has them admitted.
#[derive(Clone)]
pub(crate) struct Granting {
    pub operations: Operations,
    pub admission: Arc<dyn Admission>,
}

/// Who of some grants was taken in by every holder set it names.
#[derive(Default)]
struct Entered {
    refused: BTreeSet<Uuid>,
    room: Option<Room>,
}

impl Granting {
    /// Reserves up to `max` of the best executions of a lane in one partition, as far as they are admitted.
    pub async fn issue(&self, route: Route, who: &Grantee, max: u16, ttl_ms: i64) -> Result<Issued, Error> {
        let call = IssueGrants {
            capabilities: who.capabilities.clone(),
            grant_ids: (0..max).map(|_| Uuid::now_v7()).collect(),
            instance: who.instance.clone(),
            lane: who.lane.clone(),
            max: i64::from(max),
            namespace: who.namespace.clone(),
            ttl_ms,
        };
        let (grants, mut next_score) = match self.operations.client().call(route, &call).await? {
            IssueGrantsReply::Granted { grants, next_score } => (grants, next_score),
            IssueGrantsReply::Paused { .. } => return Ok(Issued::default()),
        };
        let entered = match self.enter(&grants).await {
            Ok(entered) => entered,
            Err(error) => {
                for grant in &grants {
                    self.give_back(route, grant, None).await;
                }
                return Err(error);
            }
        };
        let mut admitted = Vec::new();
        for grant in grants {
            if entered.refused.contains(&grant.grant_id) {
                // In one set alone a refusal says that no slot was taken.
                let alone = grant.holder_sets.as_ref().is_some_and(|sets| sets.len() == 1);
                self.give_back(route, &grant, Some(alone)).await;
                next_score = Some(next_score.map_or(grant.score, |next| next.min(grant.score)));
            } else if self.admit(route, &grant).await? {
                admitted.push(grant);
            }
        }
        Ok(Issued { grants: admitted, next_score, room: entered.room })
    }

    /// Hands an interrupted execution to a worker, if there is room for it.
    pub async fn reclaim(&self, call: &GrantReclaim) -> Result<Grant, Error> {
        let client = self.operations.client();
        let route = client.route_of(&call.execution_id);
        let GrantReclaimReply::Granted { grant } = client.call(route, call).await?;
        let entered = self.enter(std::slice::from_ref(&grant)).await;
        match entered {
            Ok(entered) if entered.refused.is_empty() => Ok(grant),
            Ok(_) => {
                self.give_back(route, &grant, None).await;
                let sets = grant.holder_sets.unwrap_or_default().join(",");
                let detail = Detail::from_iter([("set".to_owned(), sets)]);
                Err(Error::Engine(EngineError::from_refusal(ErrorCode::AtCapacity, detail)))
            }
            Err(error) => {
                self.give_back(route, &grant, None).await;
                Err(error)
            }
        }
    }

    /// Enters the executions into the holder sets their grants name, each set in one call.
    async fn enter(&self, grants: &[Grant]) -> Result<Entered, Error> {
        let mut by_set: BTreeMap<&str, Vec<Candidate>> = BTreeMap::new();
        for grant in grants {
            let candidate =
                Candidate { execution_id: grant.execution_id, expires_at: grant.expires_at, holder_id: grant.grant_id };
            for set in grant.holder_sets.iter().flatten() {
                by_set.entry(set).or_default().push(candidate.clone());
            }
        }
        let mut entered = Entered::default();
        for (set, holders) in by_set {
            let asked: Vec<Uuid> = holders.iter().map(|holder| holder.holder_id).collect();
            let admitted = self.operations.admit_holders(set, holders).await?;
            entered.refused.extend(asked.into_iter().filter(|id| !admitted.holder_ids.contains(id)));
            entered.room = Some(admitted.room);
        }
        Ok(entered)
    }

    /// Quotas and budgets decide; what they refuse waits with the reason, and what cannot be decided goes back.
    async fn admit(&self, route: Route, grant: &Grant) -> Result<bool, Error> {
        let (execution_id, grant_id) = (grant.execution_id, grant.grant_id);
        match self.admission.admit(grant).await {
            Ok(Admitted::Yes) => Ok(true),
            Ok(Admitted::No { reason, detail }) => {
                let call = BlockExecution { unheld: None, detail, execution_id, grant_id, reason };
                self.operations.client().call(route, &call).await?;
                Ok(false)
            }
            Err(error) => {
                tracing::warn!(%error, execution = %execution_id, "admission failed; the grant is given back");
                self.give_back(route, grant, None).await;
                Ok(false)
            }
        }
    }

    /// Gives a grant back. One that cannot be given back runs out.
    async fn give_back(&self, route: Route, grant: &Grant, unheld: Option<bool>) {
        let call = ReleaseGrant { execution_id: grant.execution_id, grant_id: grant.grant_id, unheld };
        if let Err(error) = self.operations.client().call(route, &call).await {
            tracing::debug!(%error, execution = %grant.execution_id, "a grant is left to run out");
        }
    }
}
