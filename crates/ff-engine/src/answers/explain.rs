//! Why an execution, or the work of a lane, is not running.

use ff_api::explain::{ExplainExecution, Explanation};
use ff_api::explain_lane::{ExplainLane, LaneExplanation};
use ff_api::{Ask, Problem};

use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Handle<ExplainExecution> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ExplainExecution>) -> Result<Explanation, Problem> {
        let explained = self.operations.explain(ask.at).await;
        explained.map_err(|error| Problem::from(error).about(ask.at))
    }
}

impl Handle<ExplainLane> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ExplainLane>) -> Result<LaneExplanation, Problem> {
        let (lane, namespace) = (ask.at, ask.query.or_default());
        by.check(&namespace, Some(&lane))?;
        let explained = self.operations.explain_lane(&namespace, &lane).await;
        explained.map_err(|error| Problem::from(error).about(&lane))
    }
}
