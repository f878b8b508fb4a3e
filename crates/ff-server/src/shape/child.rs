//! Children of an execution, and what upstream members pass to a task.

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{Child, Failure, Outcome, PassedValue, PublicState};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::openapi::vocabulary;
use crate::payload::{self, Encoding};

/// What became of a child.
#[derive(Serialize, ToSchema)]
pub struct ChildShape {
    execution_id: ExecutionId,
    key: Option<String>,
    state: PublicState,
    outcome: Option<Outcome>,
    #[schema(value_type = vocabulary::Payload, required = false)]
    result: Option<Box<RawValue>>,
    #[schema(value_type = Option<Encoding>)]
    result_encoding: Option<&'static str>,
    failure: Option<Failure>,
}

impl From<Child> for ChildShape {
    fn from(child: Child) -> Self {
        let encoding = child.result_encoding.as_deref().unwrap_or("json");
        let (result, result_encoding) = child.result.map(|result| payload::shown(&result.0, encoding)).unzip();
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

/// How many children an execution has.
#[derive(Serialize, ToSchema)]
pub struct ChildCounts {
    /// Spawned.
    pub total: i64,
    /// Of them, those that have not ended.
    pub open: i64,
}

/// The children an execution waits for, for whoever asks why it does not run.
#[derive(Serialize, ToSchema)]
pub struct OpenChildrenShape {
    #[serde(flatten)]
    pub counts: ChildCounts,
    /// The flow that runs in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_flow_id: Option<FlowId>,
    /// The first of those that have not ended.
    pub waits_for: Vec<OpenChildShape>,
}

/// A child that has not ended.
#[derive(Serialize, ToSchema)]
pub struct OpenChildShape {
    execution_id: ExecutionId,
    key: Option<String>,
    state: PublicState,
}

impl From<Child> for OpenChildShape {
    fn from(child: Child) -> Self {
        Self { execution_id: child.execution_id, key: child.key, state: child.state }
    }
}

impl OpenChildrenShape {
    /// The same in a few words.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        if let Some(flow) = self.nested_flow_id {
            return vec![("nested_flow_id", flow.to_string())];
        }
        let open: Vec<String> = self
            .waits_for
            .iter()
            .map(|child| {
                let name = child.key.clone().unwrap_or_else(|| child.execution_id.to_string());
                format!("{name} ({})", child.state)
            })
            .collect();
        vec![("open", format!("{} of {}", self.counts.open, self.counts.total)), ("waits_for", open.join(", "))]
    }
}

/// What an upstream member passes under a name: its result, or how it failed.
#[derive(Serialize, ToSchema)]
pub struct PassedShape {
    execution_id: ExecutionId,
    outcome: Outcome,
    #[schema(value_type = vocabulary::Payload, required = false)]
    value: Option<Box<RawValue>>,
    #[schema(value_type = Option<Encoding>)]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

impl From<PassedValue> for PassedShape {
    fn from(passed: PassedValue) -> Self {
        let encoding = passed.encoding.as_deref().unwrap_or("json");
        let (value, encoding) = passed.value.map(|value| payload::shown(&value.0, encoding)).unzip();
        Self { execution_id: passed.execution_id, outcome: passed.outcome, value, encoding, failure: passed.failure }
    }
}
