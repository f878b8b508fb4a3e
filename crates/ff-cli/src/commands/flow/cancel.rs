//! `ff flow cancel`: ends a flow.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::state::counts;
use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, segment, text};

/// The exit code when the flow had not ended in time.
const NOT_ENDED: u8 = 5;

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
    fn word(self) -> &'static str {
        match self {
            Self::CancelAll => "cancel_all",
            Self::CancelPending => "cancel_pending",
            Self::LetActiveFinish => "let_active_finish",
        }
    }
}

impl Cancel {
    /// Prints what became of the flow.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = serde_json::json!({ "reason": self.reason, "policy": self.policy.word(), "wait": self.wait });
        let path = format!("/v1/flows/{}/cancel", segment(&self.id));
        let reply = Api::new(&self.server)?.post(&path, body.to_string()).await?.accepted()?;
        let late = reply.status == reqwest::StatusCode::ACCEPTED;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&reply.json()?["flow_id"]))?,
            Output::Table => {
                let answer = reply.json()?;
                let already = if answer["outcome"] == "already" { " already" } else { "" };
                say(&format!("{} {}{already}: {}", self.id, text(&answer["state"]), counts(&answer)))?;
            }
        }
        if late {
            eprintln!("ff: the flow is cancelled, but some of it still runs; `ff flow show {}` says what", self.id);
        }
        Ok(if late { ExitCode::from(NOT_ENDED) } else { ExitCode::SUCCESS })
    }
}
