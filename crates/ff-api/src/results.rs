//! Results of many tasks in one request, with the worker's next claim.

use std::fmt;
use std::marker::PhantomData;

use ff_core::types::ExecutionId;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::access::WORK;
use crate::claims::{ClaimBody, Task};
use crate::operation::{BATCH_BODY, operations};
use crate::parts::Instance;
use crate::payload::Encoding;
use crate::problem::Facts;
use crate::tasks::{Fence, TaskDone};

/// The most results of one request.
pub const RESULTS_MAX: usize = 4_096;

/// An end of one task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultBody {
    /// The task's execution.
    pub execution_id: ExecutionId,
    /// The fence of the lease.
    pub fence: Fence,
    /// How the attempt ends.
    pub op: ResultOp,
    /// The result of one that completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// How `result` carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_encoding: Option<Encoding>,
    /// Why one fails, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What kind of failure it is; retry policies go by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// `false` ends the execution, whatever its policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// How long to wait before the next attempt, in place of the policy's backoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<i64>,
}

/// How an attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultOp {
    /// With a result.
    Complete,
    /// With a failure.
    Fail,
}

/// The results, and the claim that goes with them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ResultsBody {
    /// The results. Each has `execution_id`, `fence` and `op`, which is `complete` or `fail`, with what the request of that name
    /// takes. One that cannot be used is refused alone.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>, max_items = 4_096))]
    pub results: AtMost<Box<RawValue>, RESULTS_MAX>,
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
    Bare(AtMost<Box<RawValue>, RESULTS_MAX>),
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
