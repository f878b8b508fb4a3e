//! `ff approvals`: the inbox of open waitpoints.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::{Value, json};

use crate::client::{Api, Output, OutputArgs, ServerArgs, say, text};

/// How often --watch looks.
const LOOK_EVERY: Duration = Duration::from_secs(2);

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
    /// Shows the list again whenever it changes, until Ctrl-C.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Approvals {
    /// Prints the list, once or on every change.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let mut shown: Option<Vec<Value>> = None;
        loop {
            let (items, next) = self.page(&api).await?;
            if shown.as_ref() != Some(&items) {
                if shown.is_some() && self.output.output == Output::Table {
                    say("")?;
                }
                self.print(&items, next.as_deref())?;
                shown = Some(items);
            }
            if !self.watch {
                return Ok(ExitCode::SUCCESS);
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
            }
        }
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

    fn print(&self, items: &[Value], next: Option<&str>) -> anyhow::Result<()> {
        match self.output.output {
            Output::Json => say(&json!({ "items": items, "next_cursor": next }).to_string())?,
            Output::Ids => {
                for item in items {
                    say(&text(&item["waitpoint_id"]))?;
                }
            }
            Output::Table => table(items)?,
        }
        if let Some(cursor) = next {
            eprintln!("more with --cursor {cursor}");
        }
        Ok(())
    }
}

fn table(items: &[Value]) -> anyhow::Result<()> {
    say(&format!(
        "{:36}  {:20}  {:36}  {:20}  {:>8}  {:>8}  {:24}  {}",
        "WAITPOINT", "KEY", "EXECUTION", "KIND", "AGE", "LEFT", "WHO", "PROGRESS"
    ))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_millis());
    let now = i64::try_from(now).unwrap_or(i64::MAX);
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
        say(&format!(
            "{:36}  {:20}  {:36}  {:20}  {:>8}  {:>8}  {:24}  {}",
            text(&item["waitpoint_id"]),
            text(&item["key"]),
            text(&item["execution_id"]),
            text(&item["kind"]),
            span(item["created_at"].as_i64().map(|at| now - at)),
            span(item["expires_at"].as_i64().map(|at| at - now)),
            if who.is_empty() { "-".to_owned() } else { who.join(", ") },
            if item["state"] == "pending" { "not waited for yet".to_owned() } else { text(&item["progress"]) }
        ))?;
    }
    Ok(())
}

/// A duration in its largest unit.
fn span(ms: Option<i64>) -> String {
    let Some(seconds) = ms.map(|ms| ms.max(0) / 1_000) else { return "-".to_owned() };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_short() {
        for (ms, shown) in
            [(0, "0s"), (-5, "0s"), (119_999, "119s"), (120_000, "2m"), (7_200_000, "2h"), (172_800_000, "2d")]
        {
            assert_eq!(span(Some(ms)), shown);
        }
        assert_eq!(span(None), "-");
    }
}
