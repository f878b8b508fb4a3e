//! What an operator does with a suspended execution: resume it, or end it as failed.

use ff_api::suspensions::{FailSuspension, ResumeExecution, SuspensionEnded, SuspensionOutcome};
use ff_api::{Ask, Problem};
use ff_core::limits::REASON_BYTES_MAX;
use ff_script::generated::PublicState;

use super::bounded;
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// The default category of a failure that an operator decided.
const CATEGORY: &str = "operator";

impl Handle<ResumeExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ResumeExecution>) -> Result<SuspensionEnded, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let resumed = self.operations.resume(id, by.name(), body.reason.as_deref()).await;
        let state = resumed.map_err(|error| Problem::from(error).about(id))?;
        Ok(SuspensionEnded { execution_id: id, outcome: SuspensionOutcome::Resumed, state })
    }
}

impl Handle<FailSuspension> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<FailSuspension>) -> Result<SuspensionEnded, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", Some(&body.reason), REASON_BYTES_MAX)?;
        let category = body.category.as_deref().unwrap_or(CATEGORY);
        let failed = self.operations.fail_suspension(id, by.name(), &body.reason, category).await;
        failed.map_err(|error| Problem::from(error).about(id))?;
        Ok(SuspensionEnded { execution_id: id, outcome: SuspensionOutcome::Failed, state: PublicState::Failed })
    }
}
