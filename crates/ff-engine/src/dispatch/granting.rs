//! Reserves, then admits: the way of work that counts against a limit, a quota or a budget.
//!
//! A grant names the holder sets its execution must enter. Those that do not fit go back to their place; what the grant's
//! own end owes (slots it was given) is returned by the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::Operations;
use crate::operations::{LeaseRequest, Room, lane_of_set};
use ff_core::EngineError;
use ff_core::error::Detail;
use ff_core::error_code::ErrorCode;
use ff_script::generated::{
    BlockExecution, Candidate, Grant, GrantReclaim, GrantReclaimReply, IssueGrants, IssueGrantsReply, KeepGrant,
    ReleaseGrant, Task,
};
use ff_script::{Error, Kinds, Route};
use uuid::Uuid;

use crate::dispatch::admission::{Admission, Admitted};

/// For whom grants are issued, and of which lane.
#[derive(Clone, Debug)]
pub(crate) struct Grantee {
    pub namespace: String,
    pub lane: String,
    pub instance: String,
    pub capabilities: Vec<String>,
    pub kinds: Option<Kinds>,
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
    /// Nothing was issued: the request had taken these leases already.
    pub replayed: Vec<Task>,
    /// Nothing was there to be issued.
    pub nothing: bool,
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
    /// Reserves up to `max` of the best executions of a lane in one partition, as far as they are admitted. Of a request that
    /// took leases there already, those are answered.
    pub async fn issue(
        &self,
        route: Route,
        who: &Grantee,
        max: u16,
        ttl_ms: i64,
        request_id: Option<Uuid>,
    ) -> Result<Issued, Error> {
        let call = IssueGrants {
            capabilities: who.capabilities.clone(),
            kinds: who.kinds.as_ref().map(Kinds::packed),
            grant_ids: (0..max).map(|_| Uuid::now_v7()).collect(),
            instance: who.instance.clone(),
            lane: who.lane.clone(),
            lease_ids: request_id.map(|request| LeaseRequest(request).ids(route, &who.lane, max)),
            max: i64::from(max),
            namespace: who.namespace.clone(),
            ttl_ms,
        };
        let (grants, mut next_score) = match self.operations.client().call(route, &call).await? {
            IssueGrantsReply::Granted { grants, next_score } => (grants, next_score),
            IssueGrantsReply::Paused { .. } => return Ok(Issued::default()),
            IssueGrantsReply::Replayed { tasks } => return Ok(Issued { replayed: tasks, ..Issued::default() }),
        };
        if grants.is_empty() {
            return Ok(Issued { next_score, nothing: next_score.is_none(), ..Issued::default() });
        }
        let entered = match self.enter(&grants).await {
            Ok(entered) => entered,
            Err(error) => {
                for grant in &grants {
                    self.give_back(route, grant, None).await;
                }
                return Err(error);
            }
        };
        let mut inside = Vec::new();
        let mut back = Vec::new();
        for grant in grants {
            if entered.refused.contains(&grant.grant_id) {
                next_score = Some(next_score.map_or(grant.score, |next| next.min(grant.score)));
                back.push(grant);
            } else {
                inside.push(grant);
            }
        }
        for grant in back {
            // No lane has taken it in, and nothing else was asked.
            self.give_back(route, &grant, Some(true)).await;
        }
        let (admitted, undecided) = self.admit(route, inside).await;
        next_score = next_score.into_iter().chain(undecided).min();
        Ok(Issued { grants: admitted, next_score, room: entered.room, ..Issued::default() })
    }

    /// Notes what is kept with grants that are handed on, so that it does not depend on who consumes them. One that could not be
    /// told is given back.
    pub async fn hand_on(&self, route: Route, grants: Vec<Grant>) -> Vec<Grant> {
        let mut told = Vec::new();
        for grant in grants {
            match self.keep(route, &grant).await {
                Ok(()) => told.push(grant),
                Err(error) => {
                    tracing::warn!(%error, execution = %grant.execution_id, "a grant could not be handed on and is given back");
                    self.give_back(route, &grant, None).await;
                }
            }
        }
        told
    }

    async fn keep(&self, route: Route, grant: &Grant) -> Result<(), Error> {
        let Some(sets) = grant.keep.clone() else { return Ok(()) };
        let call = KeepGrant { execution_id: grant.execution_id, grant_id: grant.grant_id, sets };
        self.operations.client().call(route, &call).await.map(|_| ())
    }

    /// Hands an interrupted execution to a worker, if there is room for it.
    pub async fn reclaim(&self, call: &GrantReclaim) -> Result<Grant, Error> {
        let client = self.operations.client();
        let route = client.route_of(&call.execution_id);
        let GrantReclaimReply::Granted { grant } = client.call(route, call).await?;
        let entered = self.enter(std::slice::from_ref(&grant)).await;
        match entered {
            Ok(entered) if entered.refused.is_empty() => self.admit_reclaim(route, grant).await,
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

    /// Quotas and budgets decide about a reclaim too; what they refuse stays where it was.
    async fn admit_reclaim(&self, route: Route, mut grant: Grant) -> Result<Grant, Error> {
        let answer = self.admission.admit(std::slice::from_ref(&grant)).await.pop();
        match answer.unwrap_or(Ok(Admitted::Yes { keep: Vec::new() })) {
            Ok(Admitted::Yes { keep }) => {
                grant.keep = (!keep.is_empty()).then_some(keep);
                match self.keep(route, &grant).await {
                    Ok(()) => Ok(grant),
                    Err(error) => {
                        self.give_back(route, &grant, None).await;
                        Err(error)
                    }
                }
            }
            Ok(Admitted::No { detail, .. }) => {
                self.give_back(route, &grant, None).await;
                let detail = Detail::from_iter(detail);
                Err(Error::Engine(EngineError::from_refusal(ErrorCode::AtCapacity, detail)))
            }
            Err(error) => {
                self.give_back(route, &grant, None).await;
                Err(error)
            }
        }
    }

    /// Enters the executions into the slots of their lanes, each lane in one call.
    async fn enter(&self, grants: &[Grant]) -> Result<Entered, Error> {
        let mut by_set: BTreeMap<&str, Vec<Candidate>> = BTreeMap::new();
        for grant in grants {
            let candidate =
                Candidate { execution_id: grant.execution_id, expires_at: grant.expires_at, holder_id: grant.grant_id };
            // Quotas and budgets are asked in a step of their own.
            let slots = grant.holder_sets.iter().flatten().filter(|set| lane_of_set(set).is_some());
            for set in slots {
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

    /// Quotas and budgets decide; what they refuse waits with the reason, and what cannot be decided goes back. Answers what
    /// may start, and the best score of what went back.
    async fn admit(&self, route: Route, grants: Vec<Grant>) -> (Vec<Grant>, Option<i64>) {
        let answers = self.admission.admit(&grants).await;
        let (mut admitted, mut refused, mut undecided) = (Vec::new(), Vec::new(), Vec::new());
        for (mut grant, answer) in grants.into_iter().zip(answers) {
            match answer {
                Ok(Admitted::Yes { keep }) => {
                    grant.keep = (!keep.is_empty()).then_some(keep);
                    admitted.push(grant);
                }
                Ok(Admitted::No { reason, detail, held }) => {
                    let slots = grant.holder_sets.iter().flatten().any(|set| lane_of_set(set).is_some());
                    refused.push(BlockExecution {
                        detail,
                        execution_id: grant.execution_id,
                        grant_id: grant.grant_id,
                        reason,
                        unheld: Some(!held && !slots),
                    });
                }
                Err(error) => {
                    let id = grant.execution_id;
                    tracing::warn!(%error, execution = %id, "admission failed; the grant is given back");
                    undecided.push(grant);
                }
            }
        }
        self.block(route, refused).await;
        for grant in &undecided {
            self.give_back(route, grant, None).await;
        }
        (admitted, undecided.iter().map(|grant| grant.score).min())
    }

    /// Records why executions wait. One that could not be told, or was called before it was, asks again by itself.
    async fn block(&self, route: Route, refusals: Vec<BlockExecution>) {
        let calls: Vec<_> = refusals.into_iter().map(|refusal| (route, refusal)).collect();
        let replies = self.operations.client().call_all(&calls).await;
        for ((_, refusal), reply) in calls.iter().zip(replies) {
            if let Err(error) = reply {
                tracing::debug!(%error, execution = %refusal.execution_id, "a refusal was not recorded");
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
