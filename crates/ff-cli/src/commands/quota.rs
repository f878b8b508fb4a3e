//! `ff quota`: how much may start, run and weigh under a key.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::budget::{more, waiting_view};
use crate::client::{Api, Output, OutputArgs, Reply, ServerArgs, WrongUsage, say, say_raw, segment, text, time};
use crate::view::{View, WatchArgs};

/// Quotas.
#[derive(Args)]
pub struct QuotaCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Makes a quota and prints its id.
    #[command(after_help = "Example:
  ff quota create --concurrency 4 --rate-limit 100 --rate-window-ms 60000
  ff submit --kind call --quota 0192f3a1-…:openai")]
    Create(Create),
    /// Shows a quota and the keys in use, or one key. An unknown id exits 4.
    #[command(after_help = "Example:
  ff quota show 0192f3a1-… --key openai")]
    Show(Show),
    /// Lists quotas, newest first.
    List(List),
    /// Changes a quota; what is not named stays. Running work is never stopped by a lower limit.
    #[command(after_help = "Example:
  ff quota set 0192f3a1-… --concurrency 8 --no-rate")]
    Set(Set),
    /// Starts nothing under a key for a while.
    #[command(after_help = "Example:
  ff quota throttle 0192f3a1-… --key openai --for-ms 30000
  ff quota throttle 0192f3a1-… --key openai --clear")]
    Throttle(Throttle),
    /// Lists the executions that wait under a key, the next to be called first.
    Blocked(Blocked),
    /// Deletes a quota: nothing that names it starts any more.
    Delete(Delete),
}

#[derive(Args)]
struct Where {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
struct Parts {
    /// How many may start in a window.
    #[arg(long, requires = "rate_window_ms")]
    rate_limit: Option<i64>,
    /// How long the window is.
    #[arg(long, requires = "rate_limit")]
    rate_window_ms: Option<i64>,
    /// Anywhere in the window, or evenly spaced.
    #[arg(long, requires = "rate_limit", value_parser = ["sliding", "smooth"])]
    rate_mode: Option<String>,
    /// How many may run at once.
    #[arg(long)]
    concurrency: Option<i64>,
    /// How much weight may start in a window.
    #[arg(long, requires = "weighted_window_ms")]
    weighted_limit: Option<i64>,
    /// How long that window is.
    #[arg(long, requires = "weighted_limit")]
    weighted_window_ms: Option<i64>,
    /// Whether a suspended execution keeps its slot.
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    hold_while_suspended: Option<bool>,
}

#[derive(Args)]
struct Create {
    /// The quota's id; minted unless said.
    #[arg(long)]
    quota_id: Option<String>,
    /// The namespace of the executions that may name it.
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Show {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    /// One key of it.
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct List {
    /// Only those of a namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// Where the list goes on: next_cursor of an earlier answer.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Set {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    #[command(flatten)]
    parts: Parts,
    /// Takes the rate away.
    #[arg(long, conflicts_with = "rate_limit")]
    no_rate: bool,
    /// Takes the concurrency away.
    #[arg(long, conflicts_with = "concurrency")]
    no_concurrency: bool,
    /// Takes the weighted part away.
    #[arg(long, conflicts_with = "weighted_limit")]
    no_weighted: bool,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Throttle {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    /// The key nothing starts under.
    #[arg(long)]
    key: String,
    /// For how long from now.
    #[arg(long, conflicts_with_all = ["until", "clear"])]
    for_ms: Option<i64>,
    /// Until when, in milliseconds since 1970.
    #[arg(long, conflicts_with = "clear")]
    until: Option<i64>,
    /// Ends the throttle.
    #[arg(long)]
    clear: bool,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Blocked {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    /// The key they wait under.
    #[arg(long)]
    key: String,
    /// How many at most.
    #[arg(long, default_value_t = 64)]
    limit: u32,
    /// Where the list goes on: next_cursor of an earlier answer.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Delete {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    #[command(flatten)]
    server: ServerArgs,
}

impl Parts {
    fn body(self) -> Map<String, Value> {
        let mut body = Map::new();
        if let (Some(limit), Some(window_ms)) = (self.rate_limit, self.rate_window_ms) {
            body.insert("rate".into(), json!({ "limit": limit, "window_ms": window_ms, "mode": self.rate_mode }));
        }
        if let Some(concurrency) = self.concurrency {
            body.insert("concurrency".into(), json!(concurrency));
        }
        if let (Some(limit), Some(window_ms)) = (self.weighted_limit, self.weighted_window_ms) {
            body.insert("weighted".into(), json!({ "limit": limit, "window_ms": window_ms }));
        }
        if let Some(hold) = self.hold_while_suspended {
            body.insert("hold_while_suspended".into(), json!(hold));
        }
        body
    }
}

fn path(quota: &str) -> String {
    format!("/v1/quotas/{}", segment(quota))
}

impl QuotaCommand {
    /// Prints the quota, or what the verb asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (at, reply) = match self.verb {
            Verb::Create(Create { quota_id, namespace, parts, at }) => {
                let mut body = parts.body();
                body.extend(quota_id.map(|id| ("quota_id".to_owned(), json!(id))));
                body.extend(namespace.map(|name| ("namespace".to_owned(), json!(name))));
                let reply = Api::new(&at.server)?.post("/v1/quotas", Value::Object(body).to_string()).await?;
                (at, reply)
            }
            Verb::Show(Show { quota, key, watch, at }) => {
                let query: Vec<(&str, String)> = key.into_iter().map(|key| ("key", key)).collect();
                return look_at(&at, watch, &path(&quota), &query, view).await;
            }
            Verb::List(List { namespace, limit, cursor, watch, at }) => {
                let mut query = vec![("limit", limit.to_string())];
                query.extend(namespace.map(|name| ("namespace", name)));
                query.extend(cursor.map(|cursor| ("cursor", cursor)));
                return look_at(&at, watch, "/v1/quotas", &query, view).await;
            }
            Verb::Set(Set { quota, parts, no_rate, no_concurrency, no_weighted, at }) => {
                let mut body = parts.body();
                for (gone, name) in [(no_rate, "rate"), (no_concurrency, "concurrency"), (no_weighted, "weighted")] {
                    body.extend(gone.then(|| (name.to_owned(), Value::Null)));
                }
                let reply = Api::new(&at.server)?.patch(&path(&quota), Value::Object(body).to_string()).await?;
                (at, reply)
            }
            Verb::Throttle(throttle) => return throttle.run().await,
            Verb::Blocked(Blocked { quota, key, limit, cursor, watch, at }) => {
                let mut query = vec![("key", key), ("limit", limit.to_string())];
                query.extend(cursor.map(|cursor| ("cursor", cursor)));
                return look_at(&at, watch, &format!("{}/blocked", path(&quota)), &query, waiting_view).await;
            }
            Verb::Delete(Delete { quota, server }) => {
                Api::new(&server)?.delete(&path(&quota)).await?.accepted()?;
                eprintln!("deleted");
                return Ok(ExitCode::SUCCESS);
            }
        };
        view(&reply.accepted()?, at.output.output)?.print()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints what a path answers, once or on every change.
async fn look_at(
    at: &Where,
    watch: WatchArgs,
    path: &str,
    query: &[(&str, String)],
    view: fn(&Reply, Output) -> anyhow::Result<View>,
) -> anyhow::Result<ExitCode> {
    let (api, output) = (Api::new(&at.server)?, at.output.output);
    watch.show(&api, output, &[], async || view(&api.get(path, query).await?.accepted()?, output)).await
}

/// One quota with its keys, or a page of quotas.
fn view(reply: &Reply, output: Output) -> anyhow::Result<View> {
    if output == Output::Json {
        return View::raw(&reply.bytes);
    }
    let answer = reply.json()?;
    let quotas = answer["items"].as_array().cloned().unwrap_or_else(|| vec![answer.clone()]);
    let lines = match output {
        Output::Ids => quotas.iter().map(|quota| text(&quota["quota_id"])).collect(),
        Output::Table | Output::Json => table(&quotas, &answer["keys"]),
    };
    Ok(View { note: more(&answer), ..View::lines(lines) })
}

impl Throttle {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let until = match (self.until, self.for_ms, self.clear) {
            (Some(until), _, _) => until,
            (None, Some(for_ms), _) => now_ms()?.saturating_add(for_ms),
            (None, None, true) => 0,
            (None, None, false) => bail!(WrongUsage("say until when: --for-ms, --until or --clear".to_owned())),
        };
        let body = json!({ "key": self.key, "until": until }).to_string();
        let reply =
            Api::new(&self.at.server)?.post(&format!("{}/throttle", path(&self.quota)), body).await?.accepted()?;
        match self.at.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&self.quota)?,
            Output::Table => match time(&reply.json()?["throttled_until"]) {
                until if until.is_empty() => say("not throttled")?,
                until => say(&format!("nothing starts under {} until {until}", self.key))?,
            },
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn now_ms() -> anyhow::Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    i64::try_from(since.as_millis()).context("the clock stands too far in the future")
}

/// A part with a window, as `limit/window_ms`.
fn windowed(part: &Value) -> String {
    if part.is_null() {
        return "-".to_owned();
    }
    let mode = part["mode"].as_str().map(|mode| format!(" {mode}")).unwrap_or_default();
    format!("{} in {} ms{mode}", text(&part["limit"]), text(&part["window_ms"]))
}

fn table(quotas: &[Value], keys: &Value) -> Vec<String> {
    let head = format!("{:36}  {:12}  {:28}  {:6}  {:24}  {}", "QUOTA", "NAMESPACE", "RATE", "SLOTS", "WEIGHT", "KEYS");
    let mut lines = vec![head];
    for quota in quotas {
        let slots = if quota["concurrency"].is_null() { "-".to_owned() } else { text(&quota["concurrency"]) };
        lines.push(format!(
            "{:36}  {:12}  {:28}  {:6}  {:24}  {}",
            text(&quota["quota_id"]),
            text(&quota["namespace"]),
            windowed(&quota["rate"]),
            slots,
            windowed(&quota["weighted"]),
            text(&quota["keys_in_use"])
        ));
    }
    for key in keys.as_array().into_iter().flatten() {
        let used = key["parts"].as_array().into_iter().flatten().map(|part| {
            let next = time(&part["next_at"]);
            let next = if next.is_empty() { next } else { format!(" until {next}") };
            format!("{} {}/{}{next}", text(&part["part"]), text(&part["used"]), text(&part["limit"]))
        });
        let throttled = time(&key["throttled_until"]);
        let throttled = if throttled.is_empty() { throttled } else { format!(", throttled until {throttled}") };
        lines.push(format!(
            "  {}: {}, {} hold it, {} wait{throttled}",
            text(&key["key"]),
            used.collect::<Vec<_>>().join(", "),
            text(&key["held"]),
            text(&key["waiting"])
        ));
    }
    lines
}
