//! Submitting: ids, digests, and telling partitions about lanes they have not seen.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use ff_core::error::EngineError;
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_script::generated::{BudgetRef, QuotaRef, Submission, SubmitExecution, SubmitExecutionReply};
use ff_script::wire::Wire;
use ff_script::{Call, Client, Error, Route};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::places::of_submission;
use super::{Operations, refused_with};

/// A lane may have to be installed and its depth counted before a submission passes.
const TRIES: usize = 4;
/// A partition that moves to another server asks for a moment.
const WHILE_MOVING: Duration = Duration::from_millis(50);

type Answer = Result<SubmitExecutionReply, Error>;

/// An execution to submit: everything a submitter may say, with an id minted unless one is proposed.
///
/// ```
/// use ff_engine::NewExecution;
/// let mut new = NewExecution::new("default", "reports", "render");
/// new.fields.priority = Some(10);
/// new.fields.input = Some(br#"{"page":1}"#.to_vec().into());
/// ```
#[derive(Clone, Debug)]
pub struct NewExecution {
    /// The fields of the submission; the engine fills in the digest and the lane's depth.
    pub fields: Submission,
}

impl NewExecution {
    /// A submission to a lane of a namespace.
    #[must_use]
    pub fn new(namespace: impl Into<String>, lane: impl Into<String>, kind: impl Into<String>) -> Self {
        let fields = Submission::new(ExecutionId::mint(), namespace.into(), lane.into(), kind.into(), String::new());
        Self { fields }
    }

    /// Proposes an id; with an idempotency key it is ignored.
    #[must_use]
    pub fn with_id(mut self, id: ExecutionId) -> Self {
        self.fields.execution_id = id;
        self
    }

    /// Tells this address when it has ended.
    #[must_use]
    pub fn completion_webhook(mut self, url: impl Into<String>) -> Self {
        self.fields.completion_webhook = Some(url.into());
        self
    }

    /// Starts it only while something is left of a budget.
    #[must_use]
    pub fn budget(mut self, budget: &BudgetId) -> Self {
        let named = BudgetRef { budget_id: *budget.as_uuid(), estimate: None };
        self.fields.budgets.get_or_insert_default().push(named);
        self
    }

    /// Starts it only when this much fits into a budget, and holds that for it.
    #[must_use]
    pub fn estimate(mut self, budget: &BudgetId, dimensions: &[(&str, u64)]) -> Self {
        let amount = |(name, n): &(&str, u64)| ((*name).to_owned(), i64::try_from(*n).unwrap_or(i64::MAX));
        let estimate = Some(dimensions.iter().map(amount).collect());
        self.fields.budgets.get_or_insert_default().push(BudgetRef { budget_id: *budget.as_uuid(), estimate });
        self
    }

    /// Counts it against a quota, under a key.
    #[must_use]
    pub fn quota(mut self, quota: &QuotaPolicyId, key: impl Into<String>) -> Self {
        let named = QuotaRef { quota_id: *quota.as_uuid(), key: key.into(), weight: None };
        self.fields.quotas.get_or_insert_default().push(named);
        self
    }

    /// Counts it against a quota, under a key, with a weight.
    #[must_use]
    pub fn weighing(mut self, quota: &QuotaPolicyId, key: impl Into<String>, weight: u64) -> Self {
        let weight = Some(i64::try_from(weight).unwrap_or(i64::MAX));
        let named = QuotaRef { quota_id: *quota.as_uuid(), key: key.into(), weight };
        self.fields.quotas.get_or_insert_default().push(named);
        self
    }

    /// The submission as the library takes it: the digest of its body, and with a key an id on the key's partition.
    fn prepared(self) -> Submission {
        let mut fields = self.fields;
        if let Some(key) = &fields.idempotency_key {
            fields.execution_id = ExecutionId::mint_with_seed(seed_of(&fields.namespace, key));
        }
        fields.body_digest = body_digest(&fields);
        fields
    }
}

/// The partition seed that an idempotency key gives: every submission with the key meets there.
fn seed_of(namespace: &str, key: &str) -> u16 {
    let digest = Sha256::new().chain_update(namespace).chain_update("/").chain_update(key).finalize();
    u16::from_be_bytes([digest[0], digest[1]])
}

/// The digest of what was submitted, without what may differ between two sendings of the same thing.
pub(super) fn body_digest(fields: &Submission) -> String {
    let body = Submission {
        execution_id: ExecutionId::from_uuid(Uuid::nil()),
        idempotency_key: None,
        idempotency_ttl_ms: None,
        trace_parent: None,
        lane_depth: None,
        // A time that is fired again is submitted again, whenever that is.
        fired: None,
        body_digest: String::new(),
        ..fields.clone()
    };
    let mut bytes = Vec::new();
    body.write(&mut bytes);
    hex::encode(&Sha256::digest(&bytes)[..16])
}

/// A way to the store for submissions.
#[async_trait]
pub trait Submitter: Send + Sync {
    /// Sends a submission to its partition.
    async fn send(&self, route: Route, call: &SubmitExecution) -> Result<SubmitExecutionReply, Error>;
}

#[async_trait]
impl Submitter for Client {
    async fn send(&self, route: Route, call: &SubmitExecution) -> Result<SubmitExecutionReply, Error> {
        self.call(route, call).await
    }
}

impl Operations {
    /// Submits one execution: accepted whole or refused whole.
    pub async fn submit(&self, new: NewExecution) -> Result<SubmitExecutionReply, Error> {
        self.submit_by(new, &self.client).await
    }

    /// Submits one execution, by a caller that has a way of its own to the store.
    pub async fn submit_by(&self, new: NewExecution, submitter: &dyn Submitter) -> Result<SubmitExecutionReply, Error> {
        let mut submission = new.prepared();
        self.attach_budgets(&mut submission, &[]).await?;
        self.check_webhook(|| "completion_webhook".to_owned(), submission.completion_webhook.as_deref())?;
        self.check_quotas(&submission.namespace, submission.quotas.as_deref()).await?;
        let route = self.client.route_of(&submission.execution_id);
        let mut call = SubmitExecution { submission };
        let mut tries = 1;
        loop {
            match submitter.send(route, &call).await {
                Err(error) if tries < TRIES && self.make_way(route, &mut call.submission, &error).await? => tries += 1,
                answer => return answer,
            }
        }
    }

    /// Fails when a submission would be refused whenever it came: a bound is broken, or what it names is not there.
    pub(crate) async fn check_new(&self, new: NewExecution) -> Result<(), Error> {
        let submission = new.prepared();
        self.check_budgets(&submission.namespace, submission.budgets.as_deref()).await?;
        self.check_webhook(|| "completion_webhook".to_owned(), submission.completion_webhook.as_deref())?;
        self.check_quotas(&submission.namespace, submission.quotas.as_deref()).await?;
        let checked = SubmitExecution { submission }.check().map_err(EngineError::from);
        checked.map_err(|error| of_submission(error.into()))
    }

    /// Tells the partition what it asked for; false when the refusal is the answer.
    async fn make_way(&self, route: Route, submission: &mut Submission, error: &Error) -> Result<bool, Error> {
        match refused_with(error) {
            Some(ErrorCode::LaneUnseen) => {
                self.show_lane(route, &submission.namespace, &submission.lane).await?;
                Ok(true)
            }
            Some(ErrorCode::LaneDepthNeeded) => {
                let depth = self.lane_depth(&submission.namespace, &submission.lane).await?;
                submission.lane_depth = Some(depth);
                Ok(true)
            }
            Some(ErrorCode::TryAgain) => {
                tokio::time::sleep(WHILE_MOVING).await;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Submits many; each is answered on its own, in the order given. Those of one partition are accepted in that order too.
    pub async fn submit_many(&self, new: Vec<NewExecution>) -> Result<Vec<Result<SubmitExecutionReply, Error>>, Error> {
        let mut answers: Vec<Option<Answer>> = (0..new.len()).map(|_| None).collect();
        let (mut calls, mut places) = (Vec::new(), Vec::new());
        for (index, one) in new.into_iter().enumerate() {
            let mut submission = one.prepared();
            let mut fits =
                self.check_webhook(|| "completion_webhook".to_owned(), submission.completion_webhook.as_deref());
            if fits.is_ok() {
                fits = self.check_quotas(&submission.namespace, submission.quotas.as_deref()).await;
            }
            if fits.is_ok() {
                fits = self.attach_budgets(&mut submission, &[]).await;
            }
            match fits {
                Ok(()) => {
                    calls.push((self.client.route_of(&submission.execution_id), SubmitExecution { submission }));
                    places.push(index);
                }
                Err(error) => answers[index] = Some(Err(error)),
            }
        }
        // Those whose refusal asks for something go again, together, once their partition was told.
        for tries in 1..=TRIES {
            let replies = self.client.call_all(&calls).await;
            let (mut again, mut again_places) = (Vec::new(), Vec::new());
            let mut shown: BTreeSet<(Route, String, String)> = BTreeSet::new();
            for (((route, mut call), index), answer) in calls.into_iter().zip(places).zip(replies) {
                let repeats = match &answer {
                    Err(error) if tries < TRIES => {
                        let submission = &mut call.submission;
                        let unseen = refused_with(error) == Some(ErrorCode::LaneUnseen);
                        let lane = || (route, submission.namespace.clone(), submission.lane.clone());
                        if unseen && !shown.insert(lane()) {
                            Ok(true)
                        } else {
                            self.make_way(route, submission, error).await
                        }
                    }
                    _ => Ok(false),
                };
                match repeats {
                    Ok(true) => {
                        again.push((route, call));
                        again_places.push(index);
                    }
                    Ok(false) => answers[index] = Some(answer),
                    Err(error) => answers[index] = Some(Err(error)),
                }
            }
            (calls, places) = (again, again_places);
            if calls.is_empty() {
                break;
            }
        }
        Ok(answers.into_iter().map(|answer| answer.expect("every submission was refused or answered")).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> NewExecution {
        let mut new = NewExecution::new("default", "mail", "send");
        new.fields.input = Some(b"{}".to_vec().into());
        new
    }

    #[test]
    fn the_digest_covers_the_body_and_not_the_sending() {
        let first = sample().prepared();
        let mut again = sample();
        again.fields.trace_parent = Some("00-1".to_owned());
        assert_eq!(again.prepared().body_digest, first.body_digest);

        let mut keyed = sample();
        keyed.fields.idempotency_key = Some("k".to_owned());
        keyed.fields.idempotency_ttl_ms = Some(5);
        assert_eq!(keyed.prepared().body_digest, first.body_digest);

        let mut other = sample();
        other.fields.priority = Some(1);
        assert_ne!(other.prepared().body_digest, first.body_digest);
    }

    #[test]
    fn a_key_decides_the_seed_whatever_id_is_proposed() {
        let seeds: std::collections::BTreeSet<u16> = (0..3)
            .map(|_| {
                let mut new = sample().with_id(ExecutionId::mint());
                new.fields.idempotency_key = Some("order-7".to_owned());
                new.prepared().execution_id.seed()
            })
            .collect();
        assert_eq!(seeds.len(), 1);
    }
}
