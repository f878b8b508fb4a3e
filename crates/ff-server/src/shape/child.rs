//! The children an execution waits for.

use ff_api::executions::ChildCounts;
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{Child, PublicState};
use serde::Serialize;
use utoipa::ToSchema;

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
