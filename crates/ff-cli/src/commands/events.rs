//! `ff events`: what happened, and with --follow what happens.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde_json::Value;

use crate::client::{Api, Output, OutputArgs, Refused, ServerArgs, pair, say, text, time};
use crate::terminal;

/// How often a broken connection is opened anew before giving up.
const TRIES_MAX: u32 = 10;

/// Prints events in the order of time. Without --follow it prints those that are kept and ends; with it, it goes on with what
/// happens from now, or from --after.
#[derive(Args)]
#[command(after_help = "Example:
  ff events --follow
  ff events --types execution.failed,execution.retried --lane mail
  ff events --execution 0192f3a0-… -o json")]
pub struct Events {
    /// A cursor, `start` or `now`; `start` unless said, `now` with --follow.
    #[arg(long)]
    after: Option<String>,
    /// Types, separated by commas; `flow.` or `flow.*` means all of them.
    #[arg(long)]
    types: Option<String>,
    /// Those of a namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// Those of a lane.
    #[arg(long)]
    lane: Option<String>,
    /// Those of a kind.
    #[arg(long)]
    kind: Option<String>,
    /// key=value.
    #[arg(long, value_parser = pair, value_name = "KEY=VALUE")]
    tag: Option<(String, String)>,
    /// Those of an execution.
    #[arg(long = "execution", alias = "execution-id", value_name = "ID")]
    execution_id: Option<String>,
    /// Those of a flow and its members.
    #[arg(long = "flow", alias = "flow-id", value_name = "ID")]
    flow_id: Option<String>,
    /// Those of this worker instance.
    #[arg(long)]
    worker: Option<String>,
    /// Ends after so many.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Goes on with what happens, until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Events {
    /// Prints events as they come; with `-o ids` their cursors. A connection that breaks is opened anew behind the last event.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let begin = if self.follow { "now" } else { "start" };
        let mut after = self.after.clone().unwrap_or_else(|| begin.to_owned());
        let (mut left, mut tries) = (self.limit.unwrap_or(u64::MAX), 0);
        // Listens all the time: one made anew for each wait would miss a Ctrl-C between two of them.
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        loop {
            match api.lines("/v1/events", &self.query(&after, left)).await {
                Ok(mut answer) => {
                    let mut bytes: Vec<u8> = Vec::new();
                    let whole = loop {
                        let chunk = tokio::select! {
                            chunk = answer.chunk() => chunk,
                            _ = &mut interrupted => return Ok(ExitCode::SUCCESS),
                        };
                        let Ok(chunk) = chunk else { break false };
                        let Some(chunk) = chunk else { break true };
                        bytes.extend_from_slice(&chunk);
                        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                            let line: Vec<u8> = bytes.drain(..=end).collect();
                            if line.trim_ascii().is_empty() {
                                continue;
                            }
                            (tries, left) = (0, left.saturating_sub(1));
                            self.print(&line, &mut after)?;
                        }
                    };
                    if left == 0 || (whole && !self.follow) {
                        return Ok(ExitCode::SUCCESS);
                    }
                }
                Err(error) if tries == 0 || error.downcast_ref::<Refused>().is_some() => return Err(error),
                Err(_) => {}
            }
            tries += 1;
            if tries > TRIES_MAX {
                bail!("the server went away; go on with `ff events --after {after}` when it is back");
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(100 << tries.min(5))) => {}
                _ = &mut interrupted => return Ok(ExitCode::SUCCESS),
            }
        }
    }

    fn query(&self, after: &str, left: u64) -> Vec<(&'static str, String)> {
        let tag = self.tag.as_ref().map(|(key, value)| format!("{key}:{value}"));
        [
            ("after", Some(after.to_owned())),
            ("types", self.types.clone()),
            ("namespace", self.namespace.clone()),
            ("lane", self.lane.clone()),
            ("kind", self.kind.clone()),
            ("tag", tag),
            ("execution_id", self.execution_id.clone()),
            ("flow_id", self.flow_id.clone()),
            ("worker", self.worker.clone()),
            ("limit", (left < u64::MAX).then(|| left.to_string())),
            ("follow", (!self.follow).then(|| "false".to_owned())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }

    fn print(&self, line: &[u8], after: &mut String) -> anyhow::Result<()> {
        let line = std::str::from_utf8(line)?.trim_end();
        let event: Value = serde_json::from_str(line)?;
        if !event["error"].is_null() {
            bail!("the server cannot read on: {}", text(&event["error"]["detail"]));
        }
        if let Some(cursor) = event["cursor"].as_str() {
            cursor.clone_into(after);
        }
        match self.output.output {
            Output::Json => say(line),
            Output::Ids => say(after),
            Output::Table => {
                let shown = row(&event);
                say(&if terminal::is_live() { terminal::harmless(&shown) } else { shown })
            }
        }
    }
}

/// An event in one line.
fn row(event: &Value) -> String {
    let about = ["execution_id", "flow_id"].into_iter().find_map(|name| event[name].as_str()).unwrap_or("-");
    let mut said: Vec<String> = Vec::new();
    for name in ["lane", "kind"] {
        said.extend(event[name].as_str().map(str::to_owned));
    }
    said.extend(event["worker_instance"].as_str().map(|worker| format!("on {worker}")));
    let data = event["data"].as_object().into_iter().flatten();
    said.extend(data.map(|(name, value)| format!("{name}={}", text(value).replace(['\n', '\r'], " "))));
    format!("{}  {:24}  {about:36}  {}", time(&event["at"]), text(&event["type"]), said.join("  "))
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = json!({"type": "execution.failed", "at": 0, "lane": "mail", "kind": "send", "execution_id": "0192",
            "worker_instance": "w-1", "data": {"reason": "a\nb", "category": "oops"}});
        assert_eq!(
            row(&event),
            "1970-01-01 00:00:00.000  execution.failed          0192                                  mail  send  on w-1  category=oops  reason=a b"
        );
    }
}
