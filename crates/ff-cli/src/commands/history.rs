//! `ff history`: what happened to an execution, in the order of time.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{Api, IdArgs, Output, OutputArgs, ServerArgs, for_each, say, say_raw, segment, text, time};

/// Shows the attempts, suspensions and operator actions of executions, in the order of time. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff history 0192f3a0-…
  ff events --execution 0192f3a0-… --after start    every event, as long as they are kept")]
pub struct History {
    #[command(flatten)]
    ids: IdArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl History {
    /// Prints one history for each; with `-o ids` the ids of its attempts.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = &Api::new(&self.server)?;
        let output = self.output.output;
        for_each(self.ids.read()?, |id| async move {
            let reply = api.get(&format!("/v1/executions/{}/history", segment(&id)), &[]).await?.accepted()?;
            match output {
                Output::Json => say_raw(&reply.bytes),
                Output::Ids => {
                    let history = reply.json()?;
                    each(&history["attempts"]).try_for_each(|attempt| say(&text(&attempt["attempt_id"])))
                }
                Output::Table => {
                    let history = reply.json()?;
                    say(&text(&history["execution_id"]))?;
                    for (at, what) in told(&history) {
                        say(&format!("{}  {what}", time(&at.into())))?;
                    }
                    Ok(())
                }
            }
        })
        .await
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// What happened and when.
fn told(history: &Value) -> Vec<(i64, String)> {
    let mut told = Vec::new();
    let mut tell = |at: &Value, what: String| {
        if let Some(at) = at.as_i64() {
            told.push((at, what));
        }
    };
    for attempt in each(&history["attempts"]) {
        let (index, kind) = (text(&attempt["index"]), text(&attempt["type"]));
        let worker = text(&attempt["worker_instance"]);
        tell(&attempt["started_at"], format!("attempt {index} ({kind}) started on {worker}"));
        let failure = &attempt["failure"];
        let why = match failure["reason"].as_str() {
            Some(reason) => format!(": {}: {reason}", text(&failure["category"])),
            None => String::new(),
        };
        tell(&attempt["ended_at"], format!("attempt {index} {}{why}", text(&attempt["state"])));
    }
    for past in each(&history["past_suspensions"]) {
        let by = past["actor"].as_str().map(|actor| format!(" by {actor}")).unwrap_or_default();
        tell(&past["suspended_at"], format!("suspended: {}", text(&past["reason"])));
        tell(&past["ended_at"], format!("suspension ended by {}{by}", text(&past["cause"])));
    }
    let suspension = &history["suspension"];
    tell(
        &suspension["suspended_at"],
        format!("suspended: {}, {}", text(&suspension["reason"]), text(&suspension["progress"])),
    );
    for action in each(&history["operator_actions"]) {
        let why = action["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
        tell(&action["at"], format!("{} by {}{why}", text(&action["action"]), text(&action["actor"])));
    }
    // What happened in the same millisecond stays in the order it is told in.
    told.sort_by_key(|(at, _)| *at);
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_told_in_the_order_of_time() {
        let history = json!({
            "attempts": [
                {"index": 0, "type": "initial", "state": "failed", "worker_instance": "w-1", "started_at": 10, "ended_at": 20,
                 "failure": {"category": "oops", "reason": "no"}},
                {"index": 1, "type": "retry", "state": "started", "worker_instance": "w-2", "started_at": 40, "ended_at": null},
            ],
            "suspension": null,
            "past_suspensions": [{"reason": "approval", "suspended_at": 12, "ended_at": 14, "cause": "operator", "actor": "ann"}],
            "operator_actions": [{"action": "replay", "actor": "local", "at": 30, "reason": "again"}],
        });
        let lines: Vec<String> = told(&history).into_iter().map(|(at, what)| format!("{at} {what}")).collect();
        assert_eq!(
            lines,
            [
                "10 attempt 0 (initial) started on w-1",
                "12 suspended: approval",
                "14 suspension ended by operator by ann",
                "20 attempt 0 failed: oops: no",
                "30 replay by local: again",
                "40 attempt 1 (retry) started on w-2",
            ]
        );
    }
}
