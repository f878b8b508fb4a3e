//! `ff worker show`: a worker and what it holds.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{Api, Output, OutputArgs, ServerArgs, segment, text, time};
use crate::view::{View, WatchArgs};

/// How many of its executions are shown.
const HELD_MAX: &str = "100";

/// Shows a worker and the executions it holds. An unknown instance exits 4.
#[derive(Args)]
pub struct Show {
    /// The worker's instance.
    #[arg(value_name = "INSTANCE")]
    instance: String,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    /// Prints the worker; with `-o ids` the executions it holds.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let reply = api.get(&format!("/v1/workers/{}", segment(&self.instance)), &[]).await?.accepted()?;
            if output == Output::Json {
                return View::raw(&reply.bytes);
            }
            let query = [("worker", self.instance.clone()), ("limit", HELD_MAX.to_owned())];
            let held = api.get("/v1/executions", &query).await?.accepted()?.json()?;
            let held = held["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            Ok(match output {
                Output::Ids => View::lines(held.iter().map(|item| text(&item["execution_id"]))),
                Output::Table | Output::Json => View::lines(table(&reply.json()?, held)),
            })
        };
        self.watch.show(&api, output, &[], look).await
    }
}

fn table(worker: &Value, held: &[Value]) -> Vec<String> {
    let list = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    for (name, value) in [
        ("instance", text(&worker["instance"])),
        ("worker", text(&worker["worker_id"])),
        ("state", text(&worker["state"])),
        ("namespace", text(&worker["namespace"])),
        ("lanes", list(&worker["lanes"])),
        ("capabilities", list(&worker["capabilities"])),
        ("slots", format!("{}, {} in use", text(&worker["slots"]), held.len())),
        ("registered", time(&worker["registered_at"])),
        ("alive until", time(&worker["expires_at"])),
    ] {
        if !value.is_empty() {
            lines.push(format!("{name:16} {value}"));
        }
    }
    for item in held {
        lines.push(format!("{:16} {}  {}", "holds", text(&item["execution_id"]), text(&item["kind"])));
    }
    lines
}
