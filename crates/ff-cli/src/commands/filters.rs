//! Which executions a command is about: the filters of lists and of bulk requests.

use clap::{ArgGroup, Args};
use ff_api::executions::ExecutionFilter;
use ff_core::types::FlowId;
use ff_script::generated::PublicState;

use crate::times::{since, time};
use crate::values::{pair, words};

/// Filters; all of them must match.
#[derive(Args, Clone, Debug, Default)]
#[command(group = ArgGroup::new("filters").multiple(true))]
pub struct FilterArgs {
    /// Only executions of this namespace.
    #[arg(long, group = "filters", help_heading = "Filters")]
    namespace: Option<String>,
    /// Only executions of this lane.
    #[arg(long, group = "filters", help_heading = "Filters")]
    lane: Option<String>,
    /// Only executions of this kind.
    #[arg(long, group = "filters", help_heading = "Filters")]
    kind: Option<String>,
    /// Only executions with this tag.
    #[arg(long, group = "filters", help_heading = "Filters", value_parser = pair, value_name = "KEY=VALUE")]
    tag: Option<(String, String)>,
    /// Only members of this flow.
    #[arg(long = "flow", alias = "flow-id", group = "filters", help_heading = "Filters", value_name = "ID")]
    flow_id: Option<FlowId>,
    /// Only executions leased by this worker instance.
    #[arg(long, group = "filters", help_heading = "Filters")]
    worker: Option<String>,
    /// Only executions submitted in this time, e.g. 1h, or since this time.
    #[arg(long, group = "filters", help_heading = "Filters", value_parser = since, value_name = "DURATION|TIME", conflicts_with = "created_after")]
    since: Option<i64>,
    /// Only executions submitted at this time or later, e.g. 2026-11-20T09:00.
    #[arg(long, group = "filters", help_heading = "Filters", value_parser = time, value_name = "TIME")]
    created_after: Option<i64>,
    /// Only executions submitted at this time or earlier.
    #[arg(long, group = "filters", help_heading = "Filters", value_parser = time, value_name = "TIME")]
    created_before: Option<i64>,
    /// Only executions in this state; may be repeated, or several with commas between them.
    #[arg(long, group = "filters", help_heading = "Filters", value_parser = words(PublicState::ALL), value_delimiter = ',')]
    state: Vec<PublicState>,
}

impl FilterArgs {
    /// The filters without the states.
    fn others(&self) -> ExecutionFilter {
        ExecutionFilter {
            namespace: self.namespace.clone(),
            lane: self.lane.clone(),
            kind: self.kind.clone(),
            state: None,
            tag: self.tag.clone(),
            flow_id: self.flow_id,
            worker: self.worker.clone(),
            created_after: self.created_after.or(self.since),
            created_before: self.created_before,
        }
    }

    /// The filters; one for each state when several are named.
    pub fn each(&self) -> Vec<ExecutionFilter> {
        match self.state.as_slice() {
            [] => vec![self.others()],
            states => states.iter().map(|state| ExecutionFilter { state: Some(*state), ..self.others() }).collect(),
        }
    }
}
