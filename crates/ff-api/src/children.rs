//! Children of an execution.

use ff_core::types::ExecutionId;
use serde::{Deserialize, Serialize};

use crate::access::WORK;
use crate::operation::{BATCH_BODY, fenced, operations};
use crate::parts::Id;
use crate::tasks::{Fence, SpawnBody};
#[cfg(feature = "openapi")]
use crate::vocabulary;

pub use crate::executions::Child;

/// A child that was spawned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SpawnedChild {
    /// The child.
    pub execution_id: ExecutionId,
    /// The same child had been spawned before.
    pub duplicate: bool,
}

/// The children that were spawned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Spawned {
    /// The children, in their order.
    pub children: Vec<SpawnedChild>,
}

/// A wait for every child to end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WaitChildrenBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Lets go of the lease even when all children have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<bool>,
    /// Makes it a step: once it is done, a later call with this name answers the same outcomes and keeps the lease.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The same id waits once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What became of a wait for children.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "outcome", rename_all = "lowercase", try_from = "WaitedFields")]
pub enum WaitedForChildren {
    /// The lease is released, and the execution waits.
    Waiting {
        /// How many have not ended.
        open: i64,
    },
    /// All have ended.
    Ended {
        /// What became of them, in the order they were spawned.
        children: Vec<Child>,
        /// Their results are too much for one answer: the others are read with `GET /v1/executions/{id}/children`.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        more_children: bool,
    },
}

/// The fields of both answers. An enum with a tag cannot be read directly: serde would lose the text of payloads.
#[derive(Deserialize)]
struct WaitedFields {
    outcome: WaitOutcome,
    open: Option<i64>,
    children: Option<Vec<Child>>,
    #[serde(default)]
    more_children: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WaitOutcome {
    Waiting,
    Ended,
}

impl TryFrom<WaitedFields> for WaitedForChildren {
    type Error = &'static str;

    fn try_from(fields: WaitedFields) -> Result<Self, Self::Error> {
        let WaitedFields { outcome, open, children, more_children } = fields;
        Ok(match outcome {
            WaitOutcome::Waiting => Self::Waiting { open: open.ok_or("missing field `open`")? },
            WaitOutcome::Ended => Self::Ended { children: children.ok_or("missing field `children`")?, more_children },
        })
    }
}

operations! {
    /// Spawns children in the parent's namespace and lane unless they say others. The same request again answers the same
    /// children; without a request id, the same children under the same lease are the same request.
    SpawnChildren task_spawn: post "/v1/tasks/{id}/spawn", WORK;
    at (Id);
    takes SpawnBody, up to BATCH_BODY;
    returns Spawned: (status = 200, body = Spawned);
    fails fenced![
        "flow_full", "idempotency_conflict", "lane_disabled", "lane_full", "capability_invalid", "budget_not_found",
        "quota_not_found", "step_changed", "steps_full",
    ];

    /// Sets the attempt aside until its children have ended; when they have already, the lease stays.
    WaitForChildren task_wait_children: post "/v1/tasks/{id}/wait-children", WORK;
    at (Id);
    takes WaitChildrenBody;
    returns WaitedForChildren: (status = 200, body = WaitedForChildren);
    fails fenced!["step_changed", "steps_full"];
}
