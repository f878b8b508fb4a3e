//! `ff lane list`: lanes and what they hold.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::client::{Api, Output, OutputArgs, ServerArgs, now_ms, span, text};
use crate::view::{View, WatchArgs};

/// Lists lanes and what they hold. A lane nobody defined is listed while it holds something.
#[derive(Args)]
#[command(after_help = "Example:
  ff lane list
  ff lane list --watch")]
pub struct List {
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl List {
    /// Prints the lanes.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        self.watch.show(&api, self.output.output, &[], async || self.look(&api).await).await
    }

    async fn look(&self, api: &Api) -> anyhow::Result<View> {
        let lanes = self.defined(api).await?;
        if self.output.output == Output::Json {
            return Ok(View::of(format!("{}\n", json!({ "items": lanes, "next_cursor": null }))));
        }
        let stats = api.get("/v1/stats", &[]).await?.accepted()?.json()?;
        let rows = rows(&lanes, &stats, self.namespace.as_deref());
        Ok(match self.output.output {
            Output::Ids => View::lines(rows.into_keys().map(|(_, lane)| lane)),
            Output::Table | Output::Json => View::lines(table(&rows, now_ms())).about(format!("{rows:?}")),
        })
    }

    /// Every lane that is defined.
    async fn defined(&self, api: &Api) -> anyhow::Result<Vec<Value>> {
        let (mut lanes, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut query = vec![("limit", "1000".to_owned())];
            query.extend(self.namespace.clone().map(|namespace| ("namespace", namespace)));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let page = api.get("/v1/lanes", &query).await?.accepted()?.json()?;
            lanes.extend(page["items"].as_array().cloned().unwrap_or_default());
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(lanes);
            }
        }
    }
}

/// A lane's definition, where it has one, and its counts.
type Rows = BTreeMap<(String, String), (Value, Value)>;

fn rows(lanes: &[Value], stats: &Value, namespace: Option<&str>) -> Rows {
    let name = |lane: &Value| (text(&lane["namespace"]), text(&lane["lane"]));
    let mut rows = Rows::new();
    for lane in lanes {
        rows.entry(name(lane)).or_default().0 = lane.clone();
    }
    for lane in stats["lanes"].as_array().into_iter().flatten() {
        if namespace.is_none_or(|namespace| lane["namespace"] == namespace) {
            rows.entry(name(lane)).or_default().1 = lane["counts"].clone();
        }
    }
    rows
}

fn table(rows: &Rows, now: i64) -> Vec<String> {
    let mut lines = vec![format!(
        "{:24}  {:9}  {:>8}  {:>8}  {:>8}  {:>9}  {:>8}  {:>8}  {:>10}",
        "LANE", "STATE", "WAITING", "RUNNING", "DELAYED", "SUSPENDED", "BLOCKED", "OLDEST", "MAX ACTIVE"
    )];
    for ((namespace, lane), (definition, counts)) in rows {
        let of = |name: &str| counts[name].as_i64().unwrap_or(0);
        let blocked: i64 = counts["blocked"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_i64()).sum();
        let name = if namespace == "default" { lane.clone() } else { format!("{namespace}/{lane}") };
        lines.push(format!(
            "{name:24}  {:9}  {:>8}  {:>8}  {:>8}  {:>9}  {blocked:>8}  {:>8}  {:>10}",
            definition["state"].as_str().unwrap_or("active"),
            of("eligible") + of("granted"),
            of("active"),
            of("delayed"),
            of("suspended"),
            span(counts["oldest_eligible_at"].as_i64().map(|at| now - at)),
            definition["max_active"].as_i64().map_or_else(|| "-".to_owned(), |max| max.to_string())
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_only_hold_something_are_listed_too() {
        let lanes = [json!({"namespace": "default", "lane": "mail", "state": "paused", "max_active": 3})];
        let counts = json!({"eligible": 2, "granted": 1, "active": 1, "delayed": 4, "suspended": 0,
            "blocked": {"waiting_for_quota": 2, "held_by_operator": 1}, "oldest_eligible_at": 1_000});
        let stats = json!({"lanes": [{"namespace": "acme", "lane": "bulk", "counts": counts}]});
        let drawn = table(&rows(&lanes, &stats, None), 61_000).join("\n");
        assert_eq!(
            drawn,
            "\
LANE                      STATE       WAITING   RUNNING   DELAYED  SUSPENDED   BLOCKED    OLDEST  MAX ACTIVE
acme/bulk                 active            3         1         4          0         3       60s           -
mail                      paused            0         0         0          0         0         -           3"
        );
        assert_eq!(rows(&lanes, &stats, Some("default")).len(), 1);
    }
}
