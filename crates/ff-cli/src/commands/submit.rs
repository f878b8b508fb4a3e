//! `ff submit`: one execution.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use ff_api::executions::{SubmitBody, SubmitExecution};
use ff_api::{Ask, Encoding};
use ff_core::types::ExecutionId;
use ff_script::generated::{BudgetRef, QuotaRef};
use serde_json::value::{RawValue, to_raw_value};

use super::result::Waiting;
use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::problem::WrongUsage;
use crate::times::{duration, time};
use crate::values::{amount, json, pair};

/// Submits one execution, or with --batch many. With --wait it prints the result and exits as `ff result` does.
#[derive(Args)]
#[command(after_help = "Example:
  ff submit --kind greet --input '{\"name\":\"ann\"}' --tag team=a --wait
  jq -c '.[] | {kind: \"import\", input: .}' rows.json | ff submit --batch -")]
pub struct Submit {
    /// What the execution is: workers choose their handler by it.
    #[arg(long, required_unless_present = "batch")]
    kind: Option<String>,
    /// Many executions instead of one: a file with one JSON object per line, fields as in the API; - for stdin.
    #[arg(long, value_name = "FILE", conflicts_with = "kind")]
    batch: Option<String>,
    /// Waits until it has ended, or for this long at most, and prints its result.
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1, require_equals = true, default_missing_value = "365d", hide_default_value = true, conflicts_with = "batch")]
    wait: Option<i64>,
    /// Its namespace (default: default).
    #[arg(long)]
    namespace: Option<String>,
    /// Its lane (default: default).
    #[arg(long)]
    lane: Option<String>,
    /// A JSON value, @file, or - for stdin.
    #[arg(long)]
    input: Option<String>,
    /// How the input is carried; with base64 a file or stdin may hold any bytes.
    #[arg(long, value_parser = ["json", "base64"], default_value = "json")]
    input_encoding: String,
    /// 0 to 9000; higher comes first.
    #[arg(long)]
    priority: Option<i64>,
    /// A tag to find it by; may be repeated.
    #[arg(long = "tag", value_parser = pair, value_name = "KEY=VALUE")]
    tags: Vec<(String, String)>,
    /// Submitting again under this key returns the first execution.
    #[arg(long)]
    idempotency_key: Option<String>,
    /// How long the key is known (default: 1d).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    idempotency_ttl: Option<i64>,
    /// Its id, a UUID (default: a new one).
    #[arg(long, value_name = "ID")]
    execution_id: Option<ExecutionId>,
    /// Starts no sooner than this long from now, e.g. 5m.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    delay: Option<i64>,
    /// Starts no sooner than this time, e.g. 2026-11-20T09:00.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "delay")]
    delay_until: Option<i64>,
    /// Expires when it has not ended this long from now.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    deadline: Option<i64>,
    /// Expires when it has not ended by this time.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "deadline")]
    deadline_at: Option<i64>,
    /// Expires when it has not started this long from now.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    start_within: Option<i64>,
    /// Ends an attempt that runs for longer; the retry policy decides what follows.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    attempt_timeout: Option<i64>,
    /// How many workers in a row may be lost with it (default: 5).
    #[arg(long)]
    max_reclaims: Option<i64>,
    /// How often it may be replayed (default: 10).
    #[arg(long)]
    max_replays: Option<i64>,
    /// The retry policy as JSON.
    #[arg(long)]
    retry: Option<String>,
    /// A capability a worker must have; may be repeated.
    #[arg(long)]
    requires: Vec<String>,
    /// A capability a worker should have; may be repeated.
    #[arg(long)]
    prefers: Vec<String>,
    /// In a fair lane, keys take turns: the tenant, for example.
    #[arg(long)]
    fairness_key: Option<String>,
    /// A budget it is admitted against, with what it will use; may be repeated.
    #[arg(long = "budget", value_parser = budget, value_name = "ID[:DIMENSION=N,…]", conflicts_with = "budgets")]
    budget: Vec<BudgetRef>,
    /// Budgets as JSON.
    #[arg(long)]
    budgets: Option<String>,
    /// A quota it is admitted against, under a key; a number at the end is its weight. May be repeated.
    #[arg(long = "quota", value_parser = quota, value_name = "ID:KEY[:WEIGHT]", conflicts_with = "quotas")]
    quota: Vec<QuotaRef>,
    /// Quotas as JSON.
    #[arg(long)]
    quotas: Option<String>,
    /// Fallback tiers as a JSON array.
    #[arg(long)]
    fallbacks: Option<String>,
    /// How long it is kept after its end (default: 7d).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retention: Option<i64>,
    /// The W3C trace it belongs to.
    #[arg(long)]
    trace_parent: Option<String>,
    /// Tells this https:// address when it has ended.
    #[arg(long, visible_alias = "webhook", value_name = "URL")]
    completion_webhook: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Submit {
    /// Prints the id, the API's answer, or with --wait the result.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        if let Some(file) = &self.batch {
            let body = serde_json::to_value(self.body()?)?;
            // The kind of a batch is the empty text: every line has its own.
            let named = body.as_object().into_iter().flatten().map(|(name, _)| name).find(|name| *name != "kind");
            if let Some(name) = named {
                let flag = name.trim_end_matches("_ms").replace('_', "-");
                bail!(WrongUsage(format!("--{flag} says nothing about a batch: every line of it has its own fields")));
            }
            return super::batch::submit(&api, file, output).await;
        }
        let Answered { value, bytes, .. } = api.ask(&Ask::<SubmitExecution>::with((), self.body()?)).await?;
        if let Some(wait) = self.wait {
            if output == Output::Table {
                eprintln!("{}", value.execution_id);
            }
            return Waiting::within(wait).show(&api, value.execution_id, output).await;
        }
        match output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => say(&value.execution_id.to_string())?,
            Output::Table => {
                let state = value.state.map_or("removed", |state| state.as_str());
                let again = if value.duplicate { "  (submitted before)" } else { "" };
                say(&format!("{}  {state}{again}", value.execution_id))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn body(&self) -> anyhow::Result<SubmitBody> {
        let some = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
        let (input, input_encoding) = match &self.input {
            Some(input) => {
                let (value, encoding) = read_input(input, self.input_encoding == "base64")?;
                // A null without an encoding would be no input at all.
                let named = encoding == Encoding::Base64 || value.get() == "null";
                (Some(value), named.then_some(encoding))
            }
            None => (None, None),
        };
        Ok(SubmitBody {
            kind: self.kind.clone().unwrap_or_default(),
            execution_id: self.execution_id,
            namespace: self.namespace.clone(),
            lane: self.lane.clone(),
            input,
            input_encoding,
            tags: (!self.tags.is_empty()).then(|| self.tags.iter().cloned().collect()),
            priority: self.priority,
            delay_until: self.delay_until,
            delay_ms: self.delay,
            deadline_at: self.deadline_at,
            deadline_ms: self.deadline,
            start_within_ms: self.start_within,
            idempotency_key: self.idempotency_key.clone(),
            idempotency_ttl_ms: self.idempotency_ttl,
            retry: json("retry", self.retry.as_deref())?,
            attempt_timeout_ms: self.attempt_timeout,
            max_reclaims: self.max_reclaims,
            max_replays: self.max_replays,
            requires: some(&self.requires),
            prefers: some(&self.prefers),
            fairness_key: self.fairness_key.clone(),
            budgets: match json("budgets", self.budgets.as_deref())? {
                None => (!self.budget.is_empty()).then(|| self.budget.clone()),
                given => given,
            },
            quotas: match json("quotas", self.quotas.as_deref())? {
                None => (!self.quota.is_empty()).then(|| self.quota.clone()),
                given => given,
            },
            fallbacks: json("fallbacks", self.fallbacks.as_deref())?,
            retention_ms: self.retention,
            stream: None,
            trace_parent: self.trace_parent.clone(),
            completion_webhook: self.completion_webhook.clone(),
        })
    }
}

/// `ID[:DIMENSION=N,…]` as the API takes a budget.
fn budget(text: &str) -> Result<BudgetRef, String> {
    let (id, amounts) = text.split_once(':').map_or((text, None), |(id, amounts)| (id, Some(amounts)));
    let budget_id = id.parse().map_err(|_| format!("{id:?} is not the id of a budget: it must be a UUID"))?;
    let Some(amounts) = amounts else { return Ok(BudgetRef { budget_id, estimate: None }) };
    let mut estimate = BTreeMap::new();
    for one in amounts.split(',') {
        let (name, n) = amount(one)?;
        if estimate.insert(name.clone(), n).is_some() {
            return Err(format!("{name} is given twice"));
        }
    }
    Ok(BudgetRef { budget_id, estimate: Some(estimate) })
}

/// `ID:KEY[:WEIGHT]` as the API takes a quota; a key may hold colons.
fn quota(text: &str) -> Result<QuotaRef, String> {
    let (id, rest) = text.split_once(':').ok_or_else(|| format!("{text} is not ID:KEY"))?;
    let (key, weight) = match rest.rsplit_once(':').and_then(|(key, n)| Some((key, n.parse::<i64>().ok()?))) {
        Some((key, weight)) => (key, Some(weight)),
        None => (rest, None),
    };
    if key.is_empty() {
        return Err(format!("{text} names no key"));
    }
    let quota_id = id.parse().map_err(|_| format!("{id:?} is not the id of a quota: it must be a UUID"))?;
    Ok(QuotaRef { quota_id, key: key.to_owned(), weight })
}

fn raw(text: &str) -> Box<RawValue> {
    to_raw_value(text).expect("a text becomes JSON")
}

/// The input as its field carries it; JSON keeps its text.
fn read_input(input: &str, base64: bool) -> anyhow::Result<(Box<RawValue>, Encoding)> {
    let mut bytes = Vec::new();
    match input.strip_prefix('@') {
        Some(path) => {
            bytes = std::fs::read(path).with_context(|| WrongUsage(format!("cannot read the input from {path}")))?;
        }
        None if input == "-" => {
            std::io::stdin().read_to_end(&mut bytes).context("cannot read the input from stdin")?;
        }
        None if base64 => return Ok((raw(input), Encoding::Base64)),
        None => bytes.extend_from_slice(input.as_bytes()),
    }
    if base64 {
        return Ok((raw(&STANDARD.encode(bytes)), Encoding::Base64));
    }
    let json = String::from_utf8(bytes).ok().and_then(|json| RawValue::from_string(json.trim().to_owned()).ok());
    let json = json.with_context(|| {
        WrongUsage(
            "the input is not JSON; quote plain text as JSON does, or send bytes with --input-encoding base64"
                .to_owned(),
        )
    })?;
    Ok((json, Encoding::Json))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0192f3a0-0000-7000-8000-00000000000a";

    #[test]
    fn budgets_and_quotas_are_written_in_one_word() {
        let id = ID.parse().expect("an id");
        assert_eq!(budget(ID), Ok(BudgetRef { budget_id: id, estimate: None }));
        let estimate = BTreeMap::from([("tokens".to_owned(), 5), ("usd".to_owned(), 2)]);
        assert_eq!(budget(&format!("{ID}:tokens=5,usd:2")), Ok(BudgetRef { budget_id: id, estimate: Some(estimate) }));
        for wrong in ["b1", ":tokens", &format!("{ID}:"), &format!("{ID}:tokens=x"), &format!("{ID}:tokens=1,tokens=2")]
        {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
        let taken = |key: &str, weight| Ok(QuotaRef { quota_id: id, key: key.to_owned(), weight });
        assert_eq!(quota(&format!("{ID}:openai")), taken("openai", None));
        assert_eq!(quota(&format!("{ID}:tenant:a:3")), taken("tenant:a", Some(3)));
        for wrong in [ID, "q1:a", &format!("{ID}:"), &format!("{ID}::3")] {
            assert!(quota(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_input_keeps_its_text() {
        let (json, encoding) = read_input(r#" {"b":12345678901234567890,"a":1} "#, false).unwrap();
        assert_eq!((json.get(), encoding), (r#"{"b":12345678901234567890,"a":1}"#, Encoding::Json));
        assert!(read_input("hello", false).is_err());
        assert_eq!(read_input("AAE=", true).unwrap().0.get(), r#""AAE=""#);
    }
}
