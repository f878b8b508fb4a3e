//! `ff flow cancel`: ends a flow.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use ff_api::Ask;
use ff_api::flows::{CancelFlow, CancelFlowBody, FlowCancelOutcome};
use ff_script::generated::CancelPolicy;

use crate::client::{Answered, Api, ServerArgs};
use crate::commands::result::{NOT_ENDED, POLL};
use crate::ids::id;
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::states::counts;

/// Cancels a flow: from now on nothing of it is claimed. An unknown id exits 4; with --wait, one that has not ended within
/// 30 s exits 5.
#[derive(Args)]
#[command(after_help = "Example:
  ff flow cancel 0192f3a0-… --reason 'wrong input' --wait
  ff flow cancel 0192f3a0-… --policy let-active-finish")]
pub struct Cancel {
    /// The flow's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Why; every member that is cancelled carries it.
    #[arg(long)]
    reason: Option<String>,
    /// What happens to attempts that run.
    #[arg(long, value_enum, default_value_t)]
    policy: Policy,
    /// Waits until the flow has ended.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Policy {
    /// They end at once.
    #[default]
    #[value(alias = "cancel_all")]
    CancelAll,
    /// They go on; the flow has ended without them.
    #[value(alias = "cancel_pending")]
    CancelPending,
    /// They go on; the flow ends with them.
    #[value(alias = "let_active_finish")]
    LetActiveFinish,
}

impl Policy {
    fn of_api(self) -> CancelPolicy {
        match self {
            Self::CancelAll => CancelPolicy::CancelAll,
            Self::CancelPending => CancelPolicy::CancelPending,
            Self::LetActiveFinish => CancelPolicy::LetActiveFinish,
        }
    }
}

impl Cancel {
    /// Prints what became of the flow.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = CancelFlowBody { reason: self.reason, policy: Some(self.policy.of_api()), wait: Some(self.wait) };
        let ask = Ask::<CancelFlow>::with(id("a flow", &self.id)?, body);
        let Answered { value, bytes, status } = Api::new(&self.server)?.ask_within(&ask, POLL).await?;
        let late = status == 202;
        match self.output.output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => say(&value.flow.flow_id.to_string())?,
            Output::Table => {
                let already = if value.outcome == FlowCancelOutcome::Already { " already" } else { "" };
                say(&format!("{} {}{already}: {}", value.flow.flow_id, value.flow.state, counts(&value.flow)))?;
            }
        }
        if late {
            eprintln!("ff: the flow is cancelled, but some of it still runs; `ff flow show {}` says what", self.id);
        }
        Ok(if late { ExitCode::from(NOT_ENDED) } else { ExitCode::SUCCESS })
    }
}
