//! Results of many tasks in one request, with the worker's next claim.

use std::fmt;
use std::marker::PhantomData;

use ff_core::types::ExecutionId;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::access::WORK;
use crate::claims::{ClaimBody, Task};
use crate::operation::{BATCH_BODY, operations};
use crate::parts::Instance;
use crate::payload::{self, Encoding, Payload};
use crate::problem::Facts;
use crate::tasks::{Fence, TaskDone};
use crate::{Invalid, Problem, json};

/// The most results of one request.
pub const RESULTS_MAX: usize = 4_096;

/// An end of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskResult {
    /// The task's execution.
    pub execution_id: ExecutionId,
    /// The fence of the lease.
    pub fence: Fence,
    /// How the attempt ends.
    pub end: TaskEnd,
    /// The lane of the task, when its worker says so: the claim looks there first. It is not sent over HTTP.
    pub lane: Option<String>,
}

/// How an attempt ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// With a result.
    Complete {
        /// The result, when there is one.
        result: Option<Payload>,
    },
    /// With a failure.
    Fail {
        /// Why, for people.
        reason: String,
        /// What kind of failure it is; retry policies go by it.
        category: String,
        /// `false` ends the execution, whatever its policy.
        retryable: Option<bool>,
        /// How long to wait before the next attempt, in place of the policy's backoff.
        retry_after_ms: Option<i64>,
    },
}

/// The fields of a result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    execution_id: ExecutionId,
    fence: Fence,
    op: Op,
    result: Option<Box<RawValue>>,
    result_encoding: Option<Encoding>,
    reason: Option<String>,
    category: Option<String>,
    retryable: Option<bool>,
    retry_after_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Complete,
    Fail,
}

impl Fields {
    fn end(self) -> Result<TaskEnd, Invalid> {
        let none = |field: &str, given: bool, op: &str| match given {
            true => Err(Invalid::new(field, format!("is not a field of {op}"))),
            false => Ok(()),
        };
        let missing = |field: &'static str| move || Invalid::new(field, "is missing");
        match self.op {
            Op::Complete => {
                none("reason", self.reason.is_some(), "complete")?;
                none("category", self.category.is_some(), "complete")?;
                none("retryable", self.retryable.is_some(), "complete")?;
                none("retry_after_ms", self.retry_after_ms.is_some(), "complete")?;
                let result = Payload::read("result", self.result.as_deref(), self.result_encoding)?;
                Ok(TaskEnd::Complete { result })
            }
            Op::Fail => {
                none("result", self.result.is_some() || self.result_encoding.is_some(), "fail")?;
                Ok(TaskEnd::Fail {
                    reason: self.reason.ok_or_else(missing("reason"))?,
                    category: self.category.ok_or_else(missing("category"))?,
                    retryable: self.retryable,
                    retry_after_ms: self.retry_after_ms,
                })
            }
        }
    }
}

impl Serialize for TaskResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("TaskResult", 4)?;
        shown.serialize_field("execution_id", &self.execution_id)?;
        shown.serialize_field("fence", &self.fence)?;
        match &self.end {
            TaskEnd::Complete { result } => {
                shown.serialize_field("op", &Op::Complete)?;
                if let Some(Payload { bytes, encoding }) = result {
                    let (value, encoding) = payload::shown(bytes, *encoding);
                    shown.serialize_field("result", &value)?;
                    shown.serialize_field("result_encoding", &encoding)?;
                }
            }
            TaskEnd::Fail { reason, category, retryable, retry_after_ms } => {
                shown.serialize_field("op", &Op::Fail)?;
                shown.serialize_field("reason", reason)?;
                shown.serialize_field("category", category)?;
                shown.serialize_field("retryable", retryable)?;
                shown.serialize_field("retry_after_ms", retry_after_ms)?;
            }
        }
        shown.end()
    }
}

/// One item of a request: a result, or why it cannot be read as one.
#[derive(Clone, Debug)]
pub enum ResultItem {
    /// A result.
    Said(TaskResult),
    /// It is refused alone.
    Refused(ResultRefused),
}

impl From<TaskResult> for ResultItem {
    fn from(result: TaskResult) -> Self {
        Self::Said(result)
    }
}

impl Serialize for ResultItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Said(result) => result.serialize(serializer),
            Self::Refused(refused) => refused.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ResultItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let read = json::read::<Fields>(text.get().as_bytes()).and_then(|fields| {
            let (execution_id, fence) = (fields.execution_id, fields.fence);
            Ok(TaskResult { execution_id, fence, end: fields.end()?, lane: None })
        });
        Ok(match read {
            Ok(result) => Self::Said(result),
            Err(invalid) => {
                // Just the id of an item that is wrong otherwise.
                #[derive(Deserialize)]
                struct IdOnly {
                    execution_id: Option<ExecutionId>,
                }
                let execution_id = serde_json::from_str::<IdOnly>(text.get()).ok().and_then(|only| only.execution_id);
                Self::Refused(ResultRefused { execution_id, problem: Problem::from(invalid).facts().clone() })
            }
        })
    }
}

/// The results, and the claim that goes with them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ResultsBody {
    /// The results. Each has `execution_id`, `fence` and `op`, which is `complete` or `fail`, with what the request of that name
    /// takes. One that cannot be used is refused alone.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>, max_items = 4_096))]
    pub results: AtMost<ResultItem, RESULTS_MAX>,
    /// The claim; it never waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimBody>,
    /// The process that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
    /// Taken and not used: each fence makes a repetition safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The results with a claim, or their bare list.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum ResultsOrList {
    /// The results with a claim.
    With(ResultsBody),
    /// Their bare list.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    Bare(AtMost<ResultItem, RESULTS_MAX>),
}

impl From<ResultsOrList> for ResultsBody {
    fn from(sent: ResultsOrList) -> Self {
        match sent {
            ResultsOrList::With(body) => body,
            ResultsOrList::Bare(results) => Self { results, claim: None, incarnation: None, request_id: None },
        }
    }
}

/// What became of each result, in their order, and what the claim brought.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResultsAnswered {
    /// What became of each result.
    pub results: Vec<ResultAnswer>,
    /// What the claim brought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<Task>>,
    /// Why the claim brought nothing; the results stand all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_error: Option<Facts>,
}

/// What became of one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum ResultAnswer {
    /// The attempt has ended.
    Done(TaskDone),
    /// The result was not taken.
    Refused(ResultRefused),
}

/// A result that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResultRefused {
    /// The execution, when the result names one.
    pub execution_id: Option<ExecutionId>,
    /// Why.
    #[serde(flatten)]
    pub problem: Facts,
}

/// The first items of a list, and how many it has. Items beyond `MAX` are counted and not kept.
#[derive(Clone, Debug)]
pub struct AtMost<T, const MAX: usize> {
    /// The items that are kept.
    pub items: Vec<T>,
    /// How many there are.
    pub count: usize,
}

impl<T, const MAX: usize> From<Vec<T>> for AtMost<T, MAX> {
    fn from(items: Vec<T>) -> Self {
        Self { count: items.len(), items }
    }
}

impl<T: Serialize, const MAX: usize> Serialize for AtMost<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for AtMost<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Reader<T, MAX> {
            type Value = AtMost<T, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while items.len() < MAX
                    && let Some(item) = list.next_element()?
                {
                    items.push(item);
                }
                let mut count = items.len();
                while count >= MAX && list.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(AtMost { items, count })
            }
        }
        deserializer.deserialize_seq(Reader(PhantomData))
    }
}

operations! {
    /// Ends many tasks at once, each answered on its own; the body may ask for the next claim.
    SendResults worker_results: post "/v1/workers/{name}/results", WORK;
    at (Instance);
    takes ResultsOrList, up to BATCH_BODY;
    returns ResultsAnswered: (status = 200, body = ResultsAnswered);
    fails &["worker_not_registered", "instance_in_use"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_many_is_counted_and_not_kept() {
        for (json, kept, count) in [("[]", 0, 0), ("[1]", 1, 1), ("[1,2]", 2, 2), ("[1,2,[3],{},5]", 2, 5)] {
            let list: AtMost<i64, 2> = serde_json::from_str(json).unwrap();
            assert_eq!((list.items.len(), list.count), (kept, count), "{json}");
        }
    }

    #[test]
    fn an_answer_is_a_task_that_ended_or_a_problem() {
        let id = ExecutionId::mint();
        let read = |json: &str| serde_json::from_str::<ResultAnswer>(json).unwrap();
        let done = format!(r#"{{"execution_id":"{id}","outcome":"completed","replayed":false}}"#);
        assert!(matches!(read(&done), ResultAnswer::Done(done) if done.execution_id == id));
        let refused = r#"{"execution_id":null,"status":409,"code":"stale_lease","detail":"x","retryable":false}"#;
        assert!(matches!(read(refused), ResultAnswer::Refused(refused) if refused.problem.code == "stale_lease"));
    }
}
