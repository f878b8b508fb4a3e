//! `ff show`: everything about an execution.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{Api, IdArgs, Output, OutputArgs, ServerArgs, WrongUsage, for_each, segment, text, time};
use crate::view::{View, WatchArgs};

/// Shows everything about executions. An unknown id exits 4.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    ids: IdArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    /// Prints each execution.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output, watch) = (&Api::new(&self.server)?, self.output.output, self.watch);
        let ids = self.ids.read()?;
        if watch.is_on() && ids.len() > 1 {
            bail!(WrongUsage("--watch shows one execution; `ff list --watch` shows many".to_owned()));
        }
        for_each(ids, |id| async move {
            let about = [("execution_id", id.clone())];
            let look = async || {
                let reply = api.get(&format!("/v1/executions/{}", segment(&id)), &[]).await?.accepted()?;
                match output {
                    Output::Json => View::raw(&reply.bytes),
                    Output::Ids => Ok(View::lines([text(&reply.json()?["execution_id"])])),
                    Output::Table => Ok(View::lines(table(&reply.json()?, &serde_json::from_slice(&reply.bytes)?))),
                }
            };
            watch.show(api, output, &about, look).await.map(|_| ())
        })
        .await
    }
}

/// Payloads with the text they came with.
#[derive(Deserialize)]
struct Payloads<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// How far a webhook is, in a line.
pub fn told(webhook: &Value) -> String {
    let tries = webhook["tries"].as_i64().unwrap_or_default();
    let after = if tries == 1 { "1 try".to_owned() } else { format!("{tries} tries") };
    let next = time(&webhook["next_at"]);
    let next = if next.is_empty() || tries == 0 { String::new() } else { format!(", next {next}") };
    let error = webhook["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
    format!("{} after {after}{next}{error}", text(&webhook["state"]))
}

fn table(execution: &Value, payloads: &Payloads) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{name:16} {value}"));
        }
    };
    line("execution", text(&execution["execution_id"]));
    line("state", text(&execution["state"]));
    let since = time(&execution["blocked_since"]);
    let since = if since.is_empty() { since } else { format!(" since {since}") };
    line("blocked", format!("{}{since}", text(&execution["blocking_reason"])));
    line("outcome", text(&execution["outcome"]));
    line("kind", text(&execution["kind"]));
    line("lane", format!("{}/{}", text(&execution["namespace"]), text(&execution["lane"])));
    line("priority", text(&execution["priority"]));
    for name in ["created_at", "updated_at", "ended_at", "delay_until", "deadline_at"] {
        line(name.trim_end_matches("_at"), time(&execution[name]));
    }
    for name in ["tags", "requires"] {
        line(
            name,
            Some(&execution[name])
                .filter(|value| **value != serde_json::json!({}) && **value != serde_json::json!([]))
                .map(text)
                .unwrap_or_default(),
        );
    }
    let lease = &execution["lease"];
    if !lease.is_null() {
        line("lease", format!("{} until {}", text(&lease["worker_instance"]), time(&lease["expires_at"])));
    }
    let suspension = &execution["suspension"];
    if !suspension.is_null() {
        let what = format!("{}, {}", text(&suspension["reason"]), text(&suspension["progress"]));
        line("waits", format!("{what} since {}", time(&suspension["suspended_at"])));
        line("times out", time(&suspension["timeout_at"]));
    }
    for waitpoint in execution["waitpoints"].as_array().into_iter().flatten() {
        let (id, key) = (text(&waitpoint["waitpoint_id"]), text(&waitpoint["key"]));
        line("waitpoint", format!("{id} {key} {}", text(&waitpoint["state"])));
    }
    line("flow", text(&execution["flow_id"]));
    line("parent", text(&execution["parent_id"]));
    line("key", text(&execution["key"]));
    line("runs as flow", text(&execution["nested_flow_id"]));
    let children = &execution["children"];
    if children["total"].as_i64().is_some_and(|total| total > 0) {
        line("children", format!("{}, {} open", text(&children["total"]), text(&children["open"])));
    }
    let progress = &execution["progress"];
    if !progress.is_null() {
        line("progress", format!("{} % {}", text(&progress["pct"]), text(&progress["message"])));
    }
    let used: Vec<String> = execution["usage"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(dimension, n)| format!("{} {dimension}", text(n)))
        .collect();
    line("used", used.join(", "));
    let failure = &execution["failure"];
    if !failure.is_null() {
        line("failure", format!("{}: {}", text(&failure["category"]), text(&failure["reason"])));
    }
    let webhook = &execution["webhook"];
    if !webhook.is_null() {
        line("webhook", told(webhook));
    }
    for (name, payload) in [("input", payloads.input), ("result", payloads.result)] {
        line(name, payload.map(|payload| payload.get().to_owned()).unwrap_or_default());
    }
    for past in execution["past_suspensions"].as_array().into_iter().flatten() {
        let (from, to) = (time(&past["suspended_at"]), time(&past["ended_at"]));
        line("waited", format!("{} {from} to {to}, ended by {}", text(&past["reason"]), text(&past["cause"])));
    }
    for attempt in execution["attempts"].as_array().into_iter().flatten() {
        line(
            "attempt",
            format!(
                "{} {} {} on {} from {} {}",
                text(&attempt["index"]),
                text(&attempt["type"]),
                text(&attempt["state"]),
                text(&attempt["worker_instance"]),
                time(&attempt["started_at"]),
                text(&attempt["failure"]["reason"])
            )
            .trim_end()
            .to_owned(),
        );
    }
    lines.push(String::new());
    lines
}
