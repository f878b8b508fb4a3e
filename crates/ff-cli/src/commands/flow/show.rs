//! `ff flow show`: a flow and its members.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ff_api::Ask;
use ff_api::events::EventsQuery;
use ff_api::graph::{FlowQuery, FlowShown, GetFlow, Member};
use ff_core::types::FlowId;

use crate::client::{Answered, Api, ServerArgs};
use crate::commands::show::told;
use crate::ids::id;
use crate::output::{Output, OutputArgs};
use crate::sheet::Sheet;
use crate::states::counts;
use crate::table::{self, Field, Table, text};
use crate::times::{duration, moment};
use crate::view::{View, WatchArgs};

/// The longest wait of one request.
const WAIT_MS_MAX: i64 = 30_000;

/// Shows a flow and its members. An unknown id exits 4.
#[derive(Args)]
pub struct Show {
    /// The flow's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Waits for its end first, up to 30s.
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1, require_equals = true, default_missing_value = "30s", hide_default_value = true)]
    wait: Option<i64>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    /// Prints the flow.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let id: FlowId = id("a flow", &self.id)?;
        let wait_ms = self.wait.map(|wait| wait.min(WAIT_MS_MAX));
        let wait = Duration::from_millis(wait_ms.unwrap_or(0).unsigned_abs());
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let ask = Ask::<GetFlow>::by(id, FlowQuery { wait_ms, members: None });
            let Answered { value, bytes, .. } = api.ask_within(&ask, wait).await?;
            let mut view = match output {
                Output::Json => return View::raw(&bytes),
                Output::Ids => View::lines(value.members.iter().map(|member| member.execution_id.to_string())),
                Output::Table => View::lines(lines(&value)),
            };
            if value.members_next_cursor.is_some() {
                view.note = Some(format!("these are the first; `ff list --flow {id}` pages through all"));
            }
            Ok(view)
        };
        let about = EventsQuery { flow_id: Some(id), ..EventsQuery::default() };
        self.watch.show(&api, output, &about, look).await
    }
}

fn lines(shown: &FlowShown) -> Vec<String> {
    let flow = &shown.flow;
    let mut sheet = Sheet::default();
    sheet.fact("flow", flow.flow_id);
    sheet.fact("state", flow.state);
    sheet.fact("kind", &flow.kind);
    sheet.fact("namespace", &flow.namespace);
    sheet.fact("policy", flow.policy);
    sheet.fact("members", counts(flow));
    sheet.fact("created", moment(flow.created_at));
    sheet.maybe("sealed", flow.sealed_at.map(moment));
    sheet.maybe("deadline", flow.deadline_at.map(moment));
    sheet.maybe("finished", flow.finished_at.map(moment));
    if let Some(stop) = &flow.stop {
        let by = stop.actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
        let why = stop.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        sheet.fact("stopped", format!("{} {}{by}{why}", moment(stop.at), stop.policy));
    }
    sheet.maybe("in place of", flow.parent_id);
    sheet.maybe("webhook", flow.webhook.as_ref().map(told));
    let mut lines = sheet.lines();
    lines.push(String::new());
    lines.extend(members(&shown.members));
    lines
}

/// A row for each member.
pub fn members(members: &[Member]) -> Vec<String> {
    let mut table = Table::new(["EXECUTION", "STATE", "KIND", "KEY"]);
    for member in members {
        let nested = member.nested_flow_id.map(|flow| format!("  = flow {flow}")).unwrap_or_default();
        let key = text(format!("{}{nested}", member.key));
        table.row([table::id(member.execution_id), Field::State(member.state), text(&member.kind), key]);
    }
    table.lines()
}
