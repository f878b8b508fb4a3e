//! `ff approvals`: the inbox of open waitpoints.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::waitpoints::{InboxQuery, InboxState, ListWaitpoints, Waitpoint};
use ff_script::generated::{ApproverState, WaitpointState};

use crate::client::{Api, ServerArgs};
use crate::output::OutputArgs;
use crate::pages::{PageArgs, Paged};
use crate::table::{Table, id, number, text};
use crate::times::{now_ms, span};
use crate::view::{View, WatchArgs, types};

/// Lists open waitpoints, oldest first: the approvers, how far each wait is, and when it ends by itself.
#[derive(Args)]
#[command(after_help = "Example:
  ff approvals --namespace payments
  ff approvals --watch")]
pub struct Approvals {
    /// Only those of this namespace.
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Approvals {
    /// Prints the list, once or on every change.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let namespace = self.namespace;
        let list = Paged::new(self.page, types("waitpoint.,execution."), |limit, cursor| {
            let (limit, namespace) = (Some(limit), namespace.clone());
            Ask::<ListWaitpoints>::by((), InboxQuery { state: Some(InboxState::Open), namespace, limit, cursor })
        });
        let api = Api::new(&self.server)?;
        let named = |item: &Waitpoint| item.waitpoint_id.to_string();
        list.show(&api, self.watch, self.output.output, named, |items| {
            let what = serde_json::to_string(items).expect("waitpoints are JSON");
            View::lines(table(items)).about(what)
        })
        .await
    }
}

fn table(items: &[Waitpoint]) -> Vec<String> {
    let mut table = Table::new(["WAITPOINT", "KEY", "EXECUTION", "KIND", "AGE", "LEFT", "APPROVERS", "PROGRESS"])
        .sparing(&["KIND", "AGE", "EXECUTION", "KEY"]);
    let now = now_ms();
    for item in items {
        let named = |one: &ApproverState| {
            let name = one.approver.as_deref().unwrap_or("anyone");
            if one.answered { format!("{name} ✓") } else { name.to_owned() }
        };
        let who: Vec<String> = item.approvers.iter().map(named).collect();
        let progress = match item.state {
            WaitpointState::Pending => "not waited for yet",
            _ => item.progress.as_deref().unwrap_or_default(),
        };
        table.row([
            id(item.waitpoint_id),
            text(&item.key),
            id(item.execution_id),
            text(&item.kind),
            number(span(Some(now - item.created_at))),
            number(span(item.expires_at.map(|at| at - now))),
            text(if who.is_empty() { "-".to_owned() } else { who.join(", ") }),
            text(progress),
        ]);
    }
    table.lines()
}
