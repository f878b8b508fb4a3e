//! `ff events`: what happened, and with --follow what happens.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::events::{Event, EventData, EventsQuery, ReadEvents};
use ff_core::types::{ExecutionId, FlowId};

use crate::client::{Api, ServerArgs, item};
use crate::follow::Follow;
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::terminal;
use crate::times::{moment, since};
use crate::values::pair;

/// Prints events in the order of time. Without --follow it prints those that are kept and ends; with it, it goes on with what
/// happens from now, or from --after.
#[derive(Args)]
#[command(after_help = "Example:
  ff events --follow
  ff events --types execution.failed,execution.retried --lane mail
  ff events --execution 0192f3a0-… -o json
  ff events --since 1h --types execution.failed")]
pub struct Events {
    /// A cursor, `start` or `now` (default: `start`, and `now` with --follow).
    #[arg(long)]
    after: Option<String>,
    /// Types, with commas between them; `flow.` or `flow.*` means all of them.
    #[arg(long)]
    types: Option<String>,
    /// Only those of this namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// Only those of this lane.
    #[arg(long)]
    lane: Option<String>,
    /// Only those of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Only those of executions with this tag.
    #[arg(long, value_parser = pair, value_name = "KEY=VALUE")]
    tag: Option<(String, String)>,
    /// Only those of this execution.
    #[arg(long = "execution", alias = "execution-id", value_name = "ID")]
    execution_id: Option<ExecutionId>,
    /// Only those of this flow and its members.
    #[arg(long = "flow", alias = "flow-id", value_name = "ID")]
    flow_id: Option<FlowId>,
    /// Only those of this worker instance.
    #[arg(long)]
    worker: Option<String>,
    /// Ends after this many events.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only what happened in this time, e.g. 1h, or since this time; from the oldest that is kept, and on with --follow.
    #[arg(long, value_parser = since, value_name = "DURATION|TIME", conflicts_with = "after")]
    since: Option<i64>,
    /// Goes on with what happens, until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Events {
    /// Prints events as they come; with `-o ids` their cursors. A connection that breaks is opened again behind the last event.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let begin = if self.follow && self.since.is_none() { "now" } else { "start" };
        let mut after = self.after.clone().unwrap_or_else(|| begin.to_owned());
        let mut left = self.limit.unwrap_or(u64::MAX);
        // What is printed counts, not what is read: earlier events are passed over here.
        let query = self.query();
        let mut stream = Follow::new(&api, !self.follow, |cursor: Option<&str>| {
            Ask::<ReadEvents>::by((), EventsQuery { after: cursor.map(str::to_owned), ..query.clone() })
        });
        // Listens all the time: one made anew for each wait would miss a Ctrl-C between two of them.
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        while left > 0 {
            let line = tokio::select! {
                line = stream.next(Some(&after)) => line?,
                _ = &mut interrupted => break,
            };
            let Some(line) = line else { break };
            let event: Event = item(&line)?;
            after.clone_from(&event.cursor);
            if self.since.is_none_or(|since| event.at >= since) {
                left -= 1;
                self.print(&line, &event)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn query(&self) -> EventsQuery {
        EventsQuery {
            after: None,
            types: self.types.clone(),
            namespace: self.namespace.clone(),
            lane: self.lane.clone(),
            kind: self.kind.clone(),
            tag: self.tag.as_ref().map(|(key, value)| format!("{key}:{value}")),
            flow_id: self.flow_id,
            execution_id: self.execution_id,
            worker: self.worker.clone(),
            limit: None,
            follow: (!self.follow).then_some(false),
        }
    }

    fn print(&self, line: &[u8], event: &Event) -> anyhow::Result<()> {
        match self.output.output {
            Output::Json => say_raw(line),
            Output::Ids => say(&event.cursor),
            Output::Table => {
                let shown = row(event);
                say(&if terminal::is_live() { terminal::harmless(&shown) } else { shown })
            }
        }
    }
}

/// An event in one line.
fn row(event: &Event) -> String {
    let execution = event.execution_id.map(|id| id.to_string());
    let about = execution.or_else(|| event.flow_id.map(|id| id.to_string())).unwrap_or_else(|| "-".to_owned());
    let mut said: Vec<String> = [&event.lane, &event.kind].into_iter().flatten().cloned().collect();
    said.extend(event.worker_instance.as_ref().map(|worker| format!("on {worker}")));
    said.extend(event.data.iter().map(|(name, value)| format!("{name}={}", datum(value).replace(['\n', '\r'], " "))));
    format!("{}  {:24}  {about:36}  {}", moment(event.at), event.r#type, said.join("  ")).trim_end().to_owned()
}

/// What an event says of one thing, as a text.
pub fn datum(value: &EventData) -> String {
    match value {
        EventData::Text(text) => text.clone(),
        EventData::Number(number) => number.to_string(),
        EventData::Flag(flag) => flag.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = json!({"cursor": "c", "type": "execution.failed", "at": 0, "namespace": "default", "lane": "mail",
            "kind": "send", "execution_id": "0192f3a0-0000-7000-8000-000000000001", "worker_instance": "w-1",
            "data": {"reason": "a\nb", "category": "oops"}});
        assert_eq!(
            row(&serde_json::from_value(event).expect("an event")),
            "1970-01-01 00:00:00.000  execution.failed          0192f3a0-0000-7000-8000-000000000001  mail  send  on w-1  category=oops  reason=a b"
        );
    }
}
