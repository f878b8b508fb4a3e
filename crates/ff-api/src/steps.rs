//! Durable steps: what a handler has done, or waits for, under names. Later runs of the handler find it again.

use ff_core::limits::STEP_NAME_BYTES_MAX;
use ff_core::types::ExecutionId;
use ff_script::generated::{self, Failure, PublicState, StepKind, StepRecord, StepState};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Invalid;
use crate::access::{FOLLOW, STEER, WORK};
use crate::claims::Resume;
use crate::operation::{PAYLOAD_BODY, fenced, operations};
use crate::page::{Listed, PageQuery};
use crate::parts::{Id, StepName};
use crate::payload::{Encoding, Payload};
use crate::tasks::Fence;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// A step as the reader of an execution sees it.
pub use ff_script::generated::Step;

/// A step as a claimed task carries it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskStep {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: StepKind,
    /// What became of it. A sleep stays `waiting` here: it is over at `due_at`.
    pub state: StepState,
    /// What it returned. Absent above 4 KiB, and of a step that is no `run`: read it apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    pub result: Option<Box<RawValue>>,
    /// How `result` carries its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_encoding: Option<Encoding>,
    /// What the handler made of the step's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<String>,
    /// How often it was tried.
    pub tries: i64,
    /// When a sleep ends, or when a failed step is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<i64>,
}

impl PartialEq for TaskStep {
    fn eq(&self, other: &Self) -> bool {
        let facts = |step: &Self| (step.kind, step.state, step.result_encoding, step.tries, step.due_at);
        let texts = |step: &Self| {
            let result = step.result.as_deref().map(|result| result.get().to_owned());
            (step.name.clone(), result, step.input_digest.clone())
        };
        facts(self) == facts(other) && texts(self) == texts(other)
    }
}

impl Eq for TaskStep {}

impl From<StepRecord> for TaskStep {
    fn from(step: StepRecord) -> Self {
        let encoding = step.result_in.as_deref().unwrap_or("json");
        let stored = (step.kind == StepKind::Run).then_some(step.result).flatten();
        let (result, result_encoding) = stored.map(|bytes| Payload::stored(bytes.0, encoding).written()).unzip();
        Self {
            name: step.name,
            kind: step.kind,
            state: step.state,
            result,
            result_encoding,
            input_digest: step.digest,
            tries: step.tries.unwrap_or(1),
            due_at: step.due,
        }
    }
}

/// What became of a step: its result, or with `failure` how its last try failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PutStepBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// The result, at most 1 MiB; absent for none.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// How `result` carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_encoding: Option<Encoding>,
    /// A digest of the step's input: a later run that has another one learns so.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepDigest>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<String>,
    /// A result that was stored with another `input_digest` is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun: Option<bool>,
    /// When it began, by the worker's clock.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// How often it was tried, this time included; the default is 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<i64>,
    /// The last try has failed; there is no result then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<StepFailure>,
    /// When a failed step is tried again.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<i64>,
}

impl PutStepBody {
    /// A step without a result.
    #[must_use]
    pub fn new(fence: Fence) -> Self {
        Self {
            fence,
            result: None,
            result_encoding: None,
            input_digest: None,
            rerun: None,
            started_at: None,
            tries: None,
            failure: None,
            retry_at: None,
        }
    }
}

/// How a try of a step failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StepFailure {
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Reason))]
    pub reason: String,
    /// What kind of failure it is.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Category))]
    pub category: String,
}

impl From<StepFailure> for Failure {
    fn from(failure: StepFailure) -> Self {
        Self { reason: failure.reason, category: failure.category }
    }
}

/// What a worker's word about a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PutStepOutcome {
    /// The result is stored.
    Stored,
    /// The step was done already, and keeps its first result.
    Known,
    /// The failed try is noted.
    Noted,
}

/// What a worker's word about a step did, and the result that counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepPut {
    /// What happened.
    pub outcome: PutStepOutcome,
    /// The result that is stored: of a known step the first one, whatever was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    pub result: Option<Box<RawValue>>,
    /// How `result` carries its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_encoding: Option<Encoding>,
    /// The digest that a known step was stored with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<String>,
}

/// A step with its result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepFound {
    /// The step.
    pub step: Step,
    /// What it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    pub result: Option<Box<RawValue>>,
    /// How `result` carries its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_encoding: Option<Encoding>,
    /// What a wait that is over came to: its signals or children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

/// A rest until a time. One of `until` and `ms` is given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SleepBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Until when.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// How long from now.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<i64>,
    /// Names the sleep: its first call sets the time, and a call after that time keeps the lease.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What the run that continues the attempt gets back, at most 256 KiB.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Box<RawValue>>,
    /// How `continuation` carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_encoding: Option<Encoding>,
    /// Taken and not used: the fence makes a repetition safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What a sleep did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SleepOutcome {
    /// The lease is released, and the attempt goes on at that time.
    Resting,
    /// The time has come: the worker keeps the lease.
    Done,
}

/// What became of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Slept {
    /// What happened.
    pub outcome: SleepOutcome,
    /// When the sleep ends, or ended.
    pub until: i64,
}

impl From<generated::SleepExecutionReply> for Slept {
    fn from(reply: generated::SleepExecutionReply) -> Self {
        match reply {
            generated::SleepExecutionReply::Resting { wake_at, .. } => {
                Self { outcome: SleepOutcome::Resting, until: wake_at }
            }
            generated::SleepExecutionReply::Done { wake_at } => Self { outcome: SleepOutcome::Done, until: wake_at },
        }
    }
}

/// How an ended execution is run again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReplayBody {
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Reason>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where it goes on: the default keeps every finished step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ReplayFrom>,
}

/// Where a replay goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplayFrom {
    /// At the start: every step is forgotten.
    Start,
    /// At this step: the steps recorded before it are kept.
    Step(String),
}

/// What a fork changes. What is absent is as at the origin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ForkBody {
    /// The fork starts with copies of the finished steps before this one; the default is all of them.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_step: Option<String>,
    /// Another input.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<RawValue>>,
    /// How `input` carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_encoding: Option<Encoding>,
    /// Another lane.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LaneName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Another priority.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Other tags, in place of all it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<std::collections::BTreeMap<String, String>>,
    /// The same key for the same origin forks once.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::IdempotencyKey>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// An execution that was forked off another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Forked {
    /// The fork.
    pub execution_id: ExecutionId,
    /// Its state.
    pub state: Option<PublicState>,
    /// How many steps it has: at first those that were copied.
    pub steps: i64,
    /// The same key had forked it before.
    pub duplicate: bool,
}

impl Forked {
    /// The fork with this id.
    #[must_use]
    pub fn new(execution_id: ExecutionId, reply: &generated::ForkExecutionReply) -> Self {
        let generated::ForkExecutionReply::Forked { duplicate, state, steps } = *reply;
        Self { execution_id, state, steps, duplicate }
    }
}

/// Fails when a text cannot be the name of a step.
pub fn check_name(field: &str, name: &str) -> Result<(), Invalid> {
    let printable = !name.chars().any(char::is_control);
    if (1..=STEP_NAME_BYTES_MAX).contains(&name.len()) && printable && name != "." && name != ".." {
        return Ok(());
    }
    let problem = format!("must be 1 to {STEP_NAME_BYTES_MAX} printable bytes and neither . nor ..");
    Err(Invalid::new(field, problem))
}

operations! {
    /// Stores what a step of the running attempt returned, or notes that its last try failed. A step keeps its first result,
    /// which is returned whatever is sent later.
    PutStep step_put: put "/v1/tasks/{id}/steps/{step}", WORK;
    at (Id, StepName);
    takes PutStepBody, up to PAYLOAD_BODY;
    returns StepPut: (status = 200, body = StepPut);
    fails fenced!["step_changed", "steps_full"];

    /// A step with its result, or with what its wait came to.
    GetTaskStep step_get: get "/v1/tasks/{id}/steps/{step}", WORK;
    at (Id, StepName);
    returns StepFound: (status = 200, body = StepFound);
    fails &["execution_not_found", "step_not_found"];

    /// Gives the lease back until a time; the attempt goes on by itself then.
    SleepTask task_sleep: post "/v1/tasks/{id}/sleep", WORK;
    at (Id);
    takes SleepBody;
    returns Slept: (status = 200, body = Slept);
    fails fenced!["step_changed", "steps_full"];

    /// The steps of an execution, in the order in which they were first recorded.
    ListSteps step_list: get "/v1/executions/{id}/steps", FOLLOW;
    at (Id);
    asks PageQuery;
    returns Listed<Step>: (status = 200, body = Listed<Step>);
    fails &["execution_not_found"];

    /// Submits a new execution that starts with copies of this one's finished steps.
    ForkExecution execution_fork: post "/v1/executions/{id}/fork", STEER;
    at (Id);
    takes ForkBody, up to PAYLOAD_BODY;
    returns Forked: (status = 201, description = "It is new.", body = Forked), (status = 200, description = "The same key had forked it before.", body = Forked);
    status |forked| if forked.duplicate { 200 } else { 201 };
    fails &["execution_not_found", "step_not_found", "idempotency_conflict", "lane_disabled", "lane_full", "budget_not_found"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_printable_and_can_stand_in_a_path() {
        for good in ["a", "charge #2", "ä/ö", "a.b", "...", &"x".repeat(256)] {
            check_name("name", good).unwrap();
        }
        for bad in ["", ".", "..", "a\nb", &"x".repeat(257)] {
            assert_eq!(check_name("name", bad).unwrap_err().field, "name", "{bad:?}");
        }
    }
}
