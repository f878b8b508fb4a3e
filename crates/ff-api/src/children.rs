//! Children of an execution.

use ff_core::types::ExecutionId;
use ff_script::generated::{self, Failure, Outcome, PublicState};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::payload::{Encoding, Payload};
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// What became of a child.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Child {
    /// The child.
    pub execution_id: ExecutionId,
    /// The name its parent knows it by.
    pub key: Option<String>,
    /// Its state.
    pub state: PublicState,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// The result of a success.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    pub result: Option<Box<RawValue>>,
    /// How `result` carries its bytes.
    pub result_encoding: Option<Encoding>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

impl From<generated::Child> for Child {
    fn from(child: generated::Child) -> Self {
        let encoding = child.result_encoding.as_deref().unwrap_or("json");
        let (result, result_encoding) = child.result.map(|bytes| Payload::stored(bytes.0, encoding).written()).unzip();
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
