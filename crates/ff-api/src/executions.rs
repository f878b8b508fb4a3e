//! Executions: submitted, read and steered.

mod actions;
mod execution;
mod filter;

use ff_core::types::ExecutionId;
use ff_script::generated::{PublicState, SubmitExecutionReply};
use serde::{Deserialize, Serialize};

use crate::access::{FOLLOW, PUT_IN, STEER};
use crate::operation::{Nothing, PAYLOAD_BODY, operations};
use crate::page::{Listed, PageQuery};
use crate::parts::{Id, Number};
use crate::steps::ReplayBody;
use crate::submission::submission;
#[cfg(feature = "openapi")]
use crate::{
    parts::{IdempotencyKey, TraceParent},
    vocabulary,
};

pub use actions::{
    ActionOutcome, BulkCounts, CancelBody, ChangeBody, ExecutionChanged, ExecutionDone, ReasonBody, ReclaimBody,
    Reclaimed, ResultQuery, RevokeBody,
};
pub use execution::{
    Attempt, Child, ChildCounts, Execution, ExecutionResult, ExecutionSummary, History, Lease, ResultAnswer,
    ResultPending,
};
pub use filter::{BulkCancelBody, BulkQuery, BulkReplayBody, ExecutionFilter, ListQuery};

submission! {
    /// Everything a submitter may say about an execution.
    pub struct SubmitBody {
        /// What it is; a worker's handlers go by it.
        #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Kind))]
        kind: String,
    }
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Submitted {
    /// The execution; the first one's when it was there already.
    pub execution_id: ExecutionId,
    /// Its state; null when the first one is gone.
    pub state: Option<PublicState>,
    /// The same id or key had been submitted before.
    pub duplicate: bool,
}

impl From<SubmitExecutionReply> for Submitted {
    fn from(reply: SubmitExecutionReply) -> Self {
        match reply {
            SubmitExecutionReply::Created { execution_id, state } => {
                Self { execution_id, state: Some(state), duplicate: false }
            }
            SubmitExecutionReply::Duplicate { execution_id, state } => Self { execution_id, state, duplicate: true },
        }
    }
}

/// The codes that a submission fails with.
pub const SUBMISSION: &[&str] = &[
    "execution_not_found",
    "idempotency_conflict",
    "lane_disabled",
    "lane_full",
    "capability_invalid",
    "budget_not_found",
    "quota_not_found",
];

operations! {
    /// Submits one execution: accepted whole or refused whole.
    SubmitExecution execution_submit: post "/v1/executions", PUT_IN;
    takes SubmitBody, up to PAYLOAD_BODY;
    reads (IdempotencyKey, TraceParent);
    returns Submitted: (status = 201, description = "It is new.", body = Submitted), (status = 200, description = "It was there already: the same id or key with the same body.", body = Submitted);
    status |submitted| if submitted.duplicate { 200 } else { 201 };
    fails SUBMISSION;

    /// One page of the executions that match, newest first.
    ListExecutions execution_list: get "/v1/executions", FOLLOW;
    asks ListQuery;
    returns Listed<ExecutionSummary>: (status = 200, body = Listed<ExecutionSummary>);

    /// Cancels what matches the filters and has not ended, a bounded number per request.
    CancelExecutions execution_cancel_all: post "/v1/executions:cancel", STEER;
    takes BulkCancelBody;
    asks BulkQuery;
    returns BulkCounts: (status = 200, body = BulkCounts);

    /// Replays what matches the filters and has ended, a bounded number per request.
    ReplayExecutions execution_replay_all: post "/v1/executions:replay", STEER;
    takes BulkReplayBody;
    asks BulkQuery;
    returns BulkCounts: (status = 200, body = BulkCounts);

    /// Everything about one execution.
    GetExecution execution_get: get "/v1/executions/{id}", FOLLOW;
    at (Id);
    returns Execution: (status = 200, body = Execution);
    fails &["execution_not_found"];

    /// Changes what is named.
    ChangeExecution execution_change: patch "/v1/executions/{id}", STEER;
    at (Id);
    takes ChangeBody;
    returns ExecutionChanged: (status = 200, body = ExecutionChanged);
    fails &["execution_not_found", "execution_not_runnable", "execution_terminal", "lane_disabled"];

    /// Removes an ended execution.
    DeleteExecution execution_delete: delete "/v1/executions/{id}", STEER;
    at (Id);
    returns Nothing: (status = 204, description = "It is gone.");
    fails &["execution_not_found", "execution_not_terminal", "flow_not_terminal"];

    /// The outcome; waits for it when asked to, and says where the execution stands when it has none yet.
    GetResult execution_result: get "/v1/executions/{id}/result", FOLLOW;
    at (Id);
    asks ResultQuery;
    returns ResultAnswer: (status = 200, description = "It has ended.", body = ExecutionResult), (status = 202, description = "It has not ended yet.", body = ResultPending);
    status |answer| match answer { ResultAnswer::Ended(_) => 200, ResultAnswer::Pending(_) => 202 };
    fails &["execution_not_found"];

    /// What happened to an execution: its attempts, suspensions and what operators did.
    GetHistory execution_history: get "/v1/executions/{id}/history", FOLLOW;
    at (Id);
    returns History: (status = 200, body = History);
    fails &["execution_not_found", "attempt_not_found"];

    /// One attempt.
    GetAttempt execution_attempt: get "/v1/executions/{id}/attempts/{n}", FOLLOW;
    at (Id, Number);
    returns Attempt: (status = 200, body = Attempt);
    fails &["execution_not_found", "attempt_not_found"];

    /// Children in the order they were spawned.
    ListChildren execution_children: get "/v1/executions/{id}/children", FOLLOW;
    at (Id);
    asks PageQuery;
    returns Listed<Child>: (status = 200, body = Listed<Child>);
    fails &["execution_not_found"];

    /// Cancels an execution. A running attempt ends at once, or within `grace_ms` after its worker was asked.
    CancelExecution execution_cancel: post "/v1/executions/{id}/cancel", PUT_IN;
    at (Id);
    takes CancelBody;
    returns ExecutionDone: (status = 200, body = ExecutionDone);
    fails &["execution_not_found"];

    /// Runs an ended execution again with a new attempt. It keeps its steps, or with `from` those before that place.
    ReplayExecution execution_replay: post "/v1/executions/{id}/replay", STEER;
    at (Id);
    takes ReplayBody;
    returns ExecutionDone: (status = 200, body = ExecutionDone);
    fails &["execution_not_found", "execution_not_terminal", "max_replays", "flow_terminal", "step_not_found"];

    /// Keeps an execution from starting until it is released.
    HoldExecution execution_hold: post "/v1/executions/{id}/hold", STEER;
    at (Id);
    takes ReasonBody;
    returns ExecutionDone: (status = 200, body = ExecutionDone);
    fails &["execution_not_found", "execution_not_runnable"];

    /// Ends a hold.
    ReleaseExecution execution_release: post "/v1/executions/{id}/release", STEER;
    at (Id);
    takes ReasonBody;
    returns ExecutionDone: (status = 200, body = ExecutionDone);
    fails &["execution_not_found", "execution_not_runnable"];

    /// Takes the lease away: at once, or by asking the worker to yield when `grace` is set.
    RevokeLease execution_revoke_lease: post "/v1/executions/{id}/revoke-lease", STEER;
    at (Id);
    takes RevokeBody;
    returns ExecutionDone: (status = 200, body = ExecutionDone);
    fails &["execution_not_found", "execution_not_active"];

    /// Hands an interrupted execution to a chosen worker of its lane, which gets it with its next claim.
    ReclaimExecution execution_reclaim: post "/v1/executions/{id}/reclaim", STEER;
    at (Id);
    takes ReclaimBody;
    returns Reclaimed: (status = 200, body = Reclaimed);
    fails &["execution_not_found", "execution_not_runnable", "worker_not_registered", "not_capable", "at_capacity"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_script::Bytes;
    use ff_script::generated::Submission;

    #[test]
    fn a_tier_that_is_not_json_is_named() {
        let mut fields =
            Submission::new(ExecutionId::mint(), String::new(), String::new(), "work".into(), String::new());
        fields.fallbacks = Some(vec![Bytes(b"{}".to_vec()), Bytes(vec![0xff])]);
        let error = SubmitBody::of(fields).expect_err("a tier of bytes cannot be sent");
        assert_eq!(error.to_string(), "fallbacks[1] must be JSON");
    }
}
