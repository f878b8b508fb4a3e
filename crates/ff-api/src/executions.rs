//! Executions: submitted, read and steered.

use ff_core::types::ExecutionId;
use ff_script::generated::{PublicState, SubmitExecutionReply};
use serde::{Deserialize, Serialize};

use crate::access::PUT_IN;
use crate::operation::{PAYLOAD_BODY, operations};
use crate::submission::submission;
#[cfg(feature = "openapi")]
use crate::{
    parts::{IdempotencyKey, TraceParent},
    vocabulary,
};

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
