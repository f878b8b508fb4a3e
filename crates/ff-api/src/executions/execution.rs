//! An execution as it stands, with its attempts. A lease shows its holder, never its fence.

use std::collections::BTreeMap;

use ff_core::types::{AttemptId, AttemptIndex, ExecutionId, FlowId, LaneId, LeaseEpoch, Namespace, TimestampMs};
use ff_script::generated::{
    self, AttemptState, AttemptType, BlockingReason, BudgetRef, Failure, Inbound, LifecyclePhase, OpenWaitpoint,
    OperatorAction, Outcome, PastSuspension, Progress, PublicState, QuotaRef, Retry, WebhookStatus,
};
use serde::{Deserialize, Serialize};

use crate::payload::{Encoding, Payload, with_payloads};
use crate::suspensions::Suspension;

pub use ff_script::generated::Summary as ExecutionSummary;

with_payloads! {
    /// Everything about one execution.
    pub struct Execution {
        /// The execution.
        execution_id: ExecutionId,
        /// Its namespace.
        #[schema(value_type = String)]
        namespace: Namespace,
        /// Its lane.
        #[schema(value_type = String)]
        lane: LaneId,
        /// What it is.
        kind: String,
        /// What a user calls its state.
        state: PublicState,
        /// Runnable, active, suspended or terminal.
        lifecycle_phase: LifecyclePhase,
        /// Why it cannot start, when it cannot.
        blocking_reason: Option<BlockingReason>,
        /// The facts behind the reason.
        #[schema(value_type = Option<BTreeMap<String, String>>)]
        #[serde(with = "crate::executions::execution::facts")]
        blocking_detail: BTreeMap<String, String>,
        /// Since when it cannot start.
        #[schema(value_type = Option<i64>)]
        blocked_since: Option<TimestampMs>,
        /// How it ended.
        outcome: Option<Outcome>,
        /// Higher comes first.
        priority: i64,
        /// When it was submitted.
        #[schema(value_type = i64)]
        created_at: TimestampMs,
        /// When it changed last.
        #[schema(value_type = i64)]
        updated_at: TimestampMs,
        /// When it ended.
        #[schema(value_type = Option<i64>)]
        ended_at: Option<TimestampMs>,
        /// When it is removed.
        #[schema(value_type = Option<i64>)]
        retire_at: Option<TimestampMs>,
        /// Until when it waits.
        #[schema(value_type = Option<i64>)]
        delay_until: Option<TimestampMs>,
        /// When it expires if it has not ended.
        #[schema(value_type = Option<i64>)]
        deadline_at: Option<TimestampMs>,
        /// When it expires if it has not started.
        #[schema(value_type = Option<i64>)]
        start_by: Option<TimestampMs>,
        /// What to find it by.
        tags: BTreeMap<String, String>,
        /// What its worker must be able to do.
        requires: Vec<String>,
        /// What its worker had better be able to do.
        prefers: Vec<String>,
        /// Executions of one key share their turn in a fair lane.
        fairness_key: Option<String>,
    }
    payloads {
        /// What the worker gets; empty when nothing was given.
        input: Vec<u8> as input_encoding (required = true),
        /// The result of a success.
        result: Option<Vec<u8>> as result_encoding (required = false),
    }
    then {
        /// Why it failed.
        failure: Option<Failure>,
        /// Its attempts, the oldest first.
        attempts: Vec<Attempt>,
        /// Older attempts that `/history` and `/attempts/{n}` show.
        attempts_omitted: u64,
        /// The lease of the running attempt.
        lease: Option<Lease>,
        /// How far the running attempt is.
        progress: Option<Progress>,
        /// What it waits for while it is suspended.
        suspension: Option<Suspension>,
        /// Open waitpoints, those of a running attempt included.
        waitpoints: Vec<OpenWaitpoint>,
        /// Suspensions that have ended.
        past_suspensions: Vec<PastSuspension>,
        /// How many signals came.
        signals: u64,
        /// The flow it is a member of.
        flow_id: Option<FlowId>,
        /// The execution that spawned it.
        parent_id: Option<ExecutionId>,
        /// The schedule that submitted it, in its namespace.
        schedule: Option<String>,
        /// The time of the schedule that it belongs to.
        nominal_at: Option<i64>,
        /// When the schedule fired.
        fired_at: Option<i64>,
        /// Its name in its flow, or for its parent.
        key: Option<String>,
        /// When it may run, in a flow.
        inbound: Option<Inbound>,
        /// The flow that runs in its place.
        nested_flow_id: Option<FlowId>,
        /// How many children it has.
        children: ChildCounts,
        /// How many steps its handler has recorded; `/steps` shows them.
        #[serde(default)]
        steps: u64,
        /// The execution whose steps it started with.
        #[serde(default)]
        forked_from: Option<ExecutionId>,
        /// The newest forks of it, the oldest first.
        #[serde(default)]
        forks: Vec<ExecutionId>,
        /// What its budgets accepted, by dimension; `/usage` shows the ledger.
        #[schema(value_type = BTreeMap<String, i64>)]
        usage: BTreeMap<String, u64>,
        /// How often a lease was lost in a row.
        reclaim_count: u64,
        /// How often it was replayed.
        replay_count: u64,
        /// When a failed attempt is tried again.
        retry: Retry,
        /// How long one attempt may take.
        attempt_timeout_ms: Option<i64>,
        /// How often a lost lease is tried again.
        max_reclaims: i64,
        /// How often it may be replayed.
        max_replays: i64,
        /// Which of its fallbacks the next attempt uses.
        fallback_index: Option<i64>,
        /// What it spends from.
        budgets: Vec<BudgetRef>,
        /// What it counts against.
        quotas: Vec<QuotaRef>,
        /// How long it is kept once it has ended.
        retention_ms: i64,
        /// The trace it belongs to.
        trace_parent: Option<String>,
        /// Told when it has ended.
        completion_webhook: Option<String>,
        /// How far the webhook of its last end is.
        webhook: Option<WebhookStatus>,
    }
}

/// Facts that are null when there are none.
pub(crate) mod facts {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(facts: &BTreeMap<String, String>, serializer: S) -> Result<S::Ok, S::Error> {
        Some(facts).filter(|facts| !facts.is_empty()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or_default())
    }
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attempt {
    /// Which one it is, counted from 0.
    #[cfg_attr(feature = "openapi", schema(value_type = i64, minimum = 0))]
    pub index: AttemptIndex,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Why there is this attempt.
    #[serde(rename = "type")]
    pub kind: AttemptType,
    /// Where it stands.
    pub state: AttemptState,
    /// The process that ran it.
    pub worker_instance: String,
    /// When it started.
    #[cfg_attr(feature = "openapi", schema(value_type = i64))]
    pub started_at: TimestampMs,
    /// When it ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>))]
    pub ended_at: Option<TimestampMs>,
    /// The epoch of its last lease.
    #[cfg_attr(feature = "openapi", schema(value_type = i64, minimum = 0))]
    pub lease_epoch: LeaseEpoch,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// How many frames it has written.
    pub frames: u64,
}

/// A lease as others than its holder see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lease {
    /// The kind of worker.
    pub worker_id: String,
    /// The process that holds it.
    pub worker_instance: String,
    /// Its epoch.
    #[cfg_attr(feature = "openapi", schema(value_type = i64, minimum = 0))]
    pub lease_epoch: LeaseEpoch,
    /// When it runs out without a renewal.
    #[cfg_attr(feature = "openapi", schema(value_type = i64))]
    pub expires_at: TimestampMs,
    /// The worker is asked to end the attempt.
    pub cancel_requested: bool,
    /// The worker is asked to hand the execution back.
    pub yield_requested: bool,
}

/// How many children an execution has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildCounts {
    /// Spawned.
    pub total: i64,
    /// Of them, those that have not ended.
    pub open: i64,
}

/// What happened to an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct History {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its attempts, the oldest first.
    pub attempts: Vec<Attempt>,
    /// What it waits for while it is suspended.
    pub suspension: Option<Suspension>,
    /// Suspensions that have ended.
    pub past_suspensions: Vec<PastSuspension>,
    /// What operators did.
    pub operator_actions: Vec<OperatorAction>,
}

with_payloads! {
    /// How an execution ended.
    pub struct ExecutionResult {
        /// The execution.
        execution_id: ExecutionId,
        /// The outcome.
        outcome: Outcome,
    }
    payloads {
        /// The result of a success.
        result: Option<Vec<u8>> as result_encoding (required = false),
    }
    then {
        /// Why it failed.
        failure: Option<Failure>,
    }
}

/// Where an execution stands that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResultPending {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its state.
    pub state: PublicState,
}

/// How an execution ended, or where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ResultAnswer {
    /// It has ended.
    Ended(ExecutionResult),
    /// It has not.
    Pending(ResultPending),
}

impl<'de> Deserialize<'de> for ResultAnswer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::{Error as _, IgnoredAny};
        #[derive(Deserialize)]
        struct Sign {
            outcome: Option<IgnoredAny>,
        }
        // As text first: serde would lose the text of the result on the way through an untagged enum.
        let text = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
        let sign: Sign = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(match sign.outcome {
            Some(_) => Self::Ended(serde_json::from_str(text.get()).map_err(D::Error::custom)?),
            None => Self::Pending(serde_json::from_str(text.get()).map_err(D::Error::custom)?),
        })
    }
}

with_payloads! {
    /// What became of a child.
    pub struct Child {
        /// The child's execution.
        execution_id: ExecutionId,
        /// The name its parent knows it by.
        key: Option<String>,
        /// What a user calls its state.
        state: PublicState,
        /// How it ended.
        outcome: Option<Outcome>,
    }
    payloads {
        /// The result of a success.
        result: Option<Vec<u8>> as result_encoding (required = false),
    }
    then {
        /// Why it failed.
        failure: Option<Failure>,
    }
}

impl Child {
    /// True when it ended as a success.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.outcome == Some(Outcome::Success)
    }
}

/// A stored result and how it is shown.
fn result(bytes: Option<ff_script::Bytes>, encoding: Option<&str>) -> (Option<Vec<u8>>, Option<Encoding>) {
    let payload = bytes.map(|bytes| Payload::stored(bytes.0, encoding.unwrap_or("json")));
    payload.map(|payload| (payload.bytes, payload.encoding)).unzip()
}

impl From<generated::Execution> for Execution {
    fn from(execution: generated::Execution) -> Self {
        // An input that was not given is shown without an encoding; the JSON value null has one.
        let input = Payload::stored(execution.input.0, &execution.input_encoding);
        let given = !input.bytes.is_empty() || execution.input_encoding != "json";
        let (result, result_encoding) = result(execution.result, execution.result_encoding.as_deref());
        let mut usage: BTreeMap<String, u64> = BTreeMap::new();
        let ledger = execution.usage.map(|usage| usage.ledger).unwrap_or_default();
        for line in ledger.into_iter().filter(|line| line.accepted > 0) {
            let sum = usage.entry(line.dimension).or_default();
            *sum = sum.saturating_add(line.accepted.unsigned_abs());
        }
        Self {
            execution_id: execution.execution_id,
            namespace: Namespace::new(execution.namespace),
            lane: LaneId::new(execution.lane),
            kind: execution.kind,
            state: execution.state,
            lifecycle_phase: execution.phase,
            blocking_reason: execution.blocking_reason,
            blocking_detail: execution.blocking_detail.unwrap_or_default(),
            blocked_since: execution.blocked_since.map(TimestampMs),
            outcome: execution.outcome,
            priority: execution.priority,
            created_at: TimestampMs(execution.created_at),
            updated_at: TimestampMs(execution.updated_at),
            ended_at: execution.ended_at.map(TimestampMs),
            retire_at: execution.retire_at.map(TimestampMs),
            delay_until: execution.delay_until.map(TimestampMs),
            deadline_at: execution.deadline_at.map(TimestampMs),
            start_by: execution.start_by.map(TimestampMs),
            tags: execution.tags,
            requires: execution.requires,
            prefers: execution.prefers,
            fairness_key: execution.fairness_key,
            input: input.bytes,
            input_encoding: given.then_some(input.encoding),
            result,
            result_encoding,
            failure: execution.failure,
            attempts: execution.attempts.into_iter().map(Attempt::from).collect(),
            attempts_omitted: execution.attempts_spilled.unsigned_abs(),
            lease: execution.lease.map(Lease::from),
            progress: execution.progress,
            suspension: execution.suspension.map(Suspension::from),
            waitpoints: execution.waitpoints,
            past_suspensions: execution.past_suspensions,
            signals: execution.signals.unsigned_abs(),
            flow_id: execution.flow_id,
            parent_id: execution.parent_id,
            nominal_at: execution.fired.as_ref().map(|fired| fired.nominal_at),
            fired_at: execution.fired.as_ref().map(|fired| fired.fired_at),
            schedule: execution.fired.map(|fired| fired.schedule),
            key: execution.key,
            inbound: execution.inbound,
            nested_flow_id: execution.nested,
            children: ChildCounts { total: execution.children, open: execution.children_open },
            steps: execution.steps.unsigned_abs(),
            forked_from: execution.forked_from,
            forks: execution.forks,
            usage,
            reclaim_count: execution.reclaim_count.unsigned_abs(),
            replay_count: execution.replay_count.unsigned_abs(),
            retry: execution.retry,
            attempt_timeout_ms: execution.attempt_timeout_ms,
            max_reclaims: execution.max_reclaims,
            max_replays: execution.max_replays,
            fallback_index: execution.fallback_index,
            budgets: execution.budgets,
            quotas: execution.quotas,
            retention_ms: execution.retention_ms,
            trace_parent: execution.trace_parent,
            completion_webhook: execution.completion_webhook,
            webhook: None,
        }
    }
}

impl From<generated::Attempt> for Attempt {
    fn from(attempt: generated::Attempt) -> Self {
        Self {
            index: AttemptIndex::new(u32::try_from(attempt.index).unwrap_or(u32::MAX)),
            attempt_id: attempt.attempt_id,
            kind: attempt.r#type,
            state: attempt.state,
            worker_instance: attempt.worker_instance,
            started_at: TimestampMs(attempt.started_at),
            ended_at: attempt.ended_at.map(TimestampMs),
            lease_epoch: LeaseEpoch::new(attempt.lease_epoch.unsigned_abs()),
            failure: attempt.failure,
            frames: attempt.frames.unsigned_abs(),
        }
    }
}

impl From<generated::Lease> for Lease {
    fn from(lease: generated::Lease) -> Self {
        Self {
            worker_id: lease.worker_id,
            worker_instance: lease.worker_instance,
            lease_epoch: LeaseEpoch::new(lease.lease_epoch.unsigned_abs()),
            expires_at: TimestampMs(lease.expires_at),
            cancel_requested: lease.cancel_requested,
            yield_requested: lease.yield_requested,
        }
    }
}

impl From<generated::Child> for Child {
    fn from(child: generated::Child) -> Self {
        let (result, result_encoding) = result(child.result, child.result_encoding.as_deref());
        Self {
            execution_id: child.execution_id,
            key: child.key,
            state: child.state,
            outcome: child.outcome,
            result,
            result_encoding,
            failure: child.failure,
        }
    }
}

impl ResultAnswer {
    /// What the store says about the end of an execution.
    #[must_use]
    pub fn new(execution_id: ExecutionId, reply: generated::AwaitResultReply) -> Self {
        match reply {
            generated::AwaitResultReply::Ended { failure, outcome, result: bytes, result_encoding } => {
                let (result, result_encoding) = result(bytes, result_encoding.as_deref());
                Self::Ended(ExecutionResult { execution_id, outcome, result, result_encoding, failure })
            }
            generated::AwaitResultReply::Waiting { state } => Self::Pending(ResultPending { execution_id, state }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_script::Bytes;

    fn ended(result: Option<&[u8]>, encoding: Option<&str>) -> ResultAnswer {
        let reply = generated::AwaitResultReply::Ended {
            failure: None,
            outcome: Outcome::Success,
            result: result.map(|bytes| Bytes(bytes.to_vec())),
            result_encoding: encoding.map(str::to_owned),
        };
        ResultAnswer::new(ExecutionId::mint(), reply)
    }

    #[test]
    fn a_result_comes_back_as_the_bytes_it_was() {
        let results: [(Option<&[u8]>, Option<&str>); 5] = [
            (None, None),
            (Some(br#"{"z":1,"a":12345678901234567890123}"#), None),
            (Some(b"null"), Some("json")),
            (Some(b"\xff\x00"), Some("base64")),
            (Some(b""), Some("base64")),
        ];
        for (bytes, encoding) in results {
            let answer = ended(bytes, encoding);
            let text = serde_json::to_string(&answer).expect("an answer is JSON");
            let read: ResultAnswer = serde_json::from_str(&text).expect("what was written is read");
            assert_eq!(read, answer, "{text}");
            let ResultAnswer::Ended(ended) = read else { panic!("it has ended") };
            assert_eq!(ended.result.as_deref(), bytes);
        }
    }

    #[test]
    fn json_keeps_its_text_and_other_bytes_are_base64() {
        let shown = |answer: ResultAnswer| serde_json::to_string(&answer).expect("an answer is JSON");
        assert!(
            shown(ended(Some(br#"{"z":1, "a":2}"#), None))
                .contains(r#""result":{"z":1, "a":2},"result_encoding":"json""#)
        );
        assert!(shown(ended(Some(b"\xff"), Some("json"))).contains(r#""result":"/w==","result_encoding":"base64""#));
    }
}
