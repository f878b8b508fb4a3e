//! `ff approvals`: the inbox of open waitpoints.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::client::{Api, Output, OutputArgs, ServerArgs, now_ms, span, text};
use crate::view::{View, WatchArgs};

/// Lists open waitpoints, oldest first: who is asked, how far each wait is, and when it ends by itself.
#[derive(Args)]
#[command(after_help = "Example:
  ff approvals --namespace payments
  ff approvals --watch")]
pub struct Approvals {
    #[arg(long)]
    namespace: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    limit: u64,
    /// Where an earlier list stopped.
    #[arg(long)]
    cursor: Option<String>,
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
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let (items, next) = self.page(&api).await?;
            let mut view = match output {
                Output::Json => View::of(format!("{}\n", json!({ "items": items, "next_cursor": next }))),
                Output::Ids => View::lines(items.iter().map(|item| text(&item["waitpoint_id"]))),
                Output::Table => View::lines(table(&items)).about(json!(items).to_string()),
            };
            view.note = next.map(|cursor| format!("more with --cursor {cursor}"));
            Ok(view)
        };
        self.watch.show(&api, output, &[("types", "waitpoint.,execution.".to_owned())], look).await
    }

    /// As many as asked for; a page of the server may be short while more follows.
    async fn page(&self, api: &Api) -> anyhow::Result<(Vec<Value>, Option<String>)> {
        let (mut items, mut cursor) = (Vec::new(), self.cursor.clone());
        loop {
            let left = self.limit - items.len() as u64;
            let mut query = vec![("state", "open".to_owned()), ("limit", left.to_string())];
            query.extend(self.namespace.clone().map(|namespace| ("namespace", namespace)));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let page = api.get("/v1/waitpoints", &query).await?.accepted()?.json()?;
            items.extend(page["items"].as_array().cloned().unwrap_or_default());
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() || items.len() as u64 >= self.limit {
                return Ok((items, cursor));
            }
        }
    }
}

fn table(items: &[Value]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:36}  {:20}  {:36}  {:20}  {:>8}  {:>8}  {:24}  {}",
        "WAITPOINT", "KEY", "EXECUTION", "KIND", "AGE", "LEFT", "WHO", "PROGRESS"
    )];
    let now = now_ms();
    for item in items {
        let who: Vec<String> = item["approvers"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| {
                let name = one["approver"].as_str().unwrap_or("anyone");
                if one["answered"] == true { format!("{name} ✓") } else { name.to_owned() }
            })
            .collect();
        lines.push(format!(
            "{:36}  {:20}  {:36}  {:20}  {:>8}  {:>8}  {:24}  {}",
            text(&item["waitpoint_id"]),
            text(&item["key"]),
            text(&item["execution_id"]),
            text(&item["kind"]),
            span(item["created_at"].as_i64().map(|at| now - at)),
            span(item["expires_at"].as_i64().map(|at| at - now)),
            if who.is_empty() { "-".to_owned() } else { who.join(", ") },
            if item["state"] == "pending" { "not waited for yet".to_owned() } else { text(&item["progress"]) }
        ));
    }
    lines
}
