//! `ff lane show`: a lane and what it holds.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::LaneArgs;
use crate::client::{Api, Output, OutputArgs, ServerArgs, text, time};
use crate::view::{View, WatchArgs};

/// Shows a lane and what it holds. An unknown lane exits 4.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    lane: LaneArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    /// Prints the lane.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let about = [("namespace", self.lane.namespace.clone()), ("lane", self.lane.lane.clone())];
        let look = async || {
            let reply = api.get(&self.lane.path(""), &[]).await?.accepted()?;
            match output {
                Output::Json => View::raw(&reply.bytes),
                Output::Ids => Ok(View::lines([text(&reply.json()?["lane"])])),
                Output::Table => Ok(View::lines(table(&reply.json()?))),
            }
        };
        self.watch.show(&api, output, &about, look).await
    }
}

fn table(lane: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{name:26} {value}"));
        }
    };
    line("lane", format!("{}/{}", text(&lane["namespace"]), text(&lane["lane"])));
    for name in [
        "state",
        "weight",
        "priority_weight",
        "fairness",
        "fairness_weights",
        "max_depth",
        "max_active",
        "retry",
        "attempt_timeout_ms",
        "lease_ttl_ms",
        "retention_ms",
    ] {
        line(name, text(&lane[name]));
    }
    let counts = &lane["counts"];
    for name in ["eligible", "granted", "active", "delayed", "suspended", "terminal"] {
        line(name, text(&counts[name]));
    }
    for (reason, count) in counts["blocked"].as_object().into_iter().flatten().filter(|(_, count)| **count != 0) {
        line(reason, text(count));
    }
    line("oldest eligible since", time(&counts["oldest_eligible_at"]));
    lines
}
