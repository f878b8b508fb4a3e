//! `ff submit`: one execution.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::client::{Api, Output, OutputArgs, ServerArgs, WrongUsage, amount, pair, say, say_raw, text};

/// Submits one execution, or with --batch many. Flags are the API's fields.
#[derive(Args)]
#[command(after_help = "Example:
  ff submit --kind greet --input '{\"name\":\"ann\"}' --tag team=a
  jq -c '.[] | {kind: \"import\", input: .}' rows.json | ff submit --batch -")]
pub struct Submit {
    /// What the execution is: workers choose their handler by it.
    #[arg(long, required_unless_present = "batch")]
    kind: Option<String>,
    /// Many executions instead of one: a file with one JSON object per line, fields as in the API; - for stdin.
    #[arg(long, value_name = "FILE", conflicts_with = "kind")]
    batch: Option<String>,
    /// Its namespace; default unless said.
    #[arg(long)]
    namespace: Option<String>,
    /// Its lane; default unless said.
    #[arg(long)]
    lane: Option<String>,
    /// A JSON value, @file, or - for stdin.
    #[arg(long)]
    input: Option<String>,
    /// How the input is carried; with base64 a file or stdin may hold any bytes.
    #[arg(long, value_enum, default_value_t)]
    input_encoding: InputEncoding,
    /// 0 to 9000.
    #[arg(long)]
    priority: Option<i64>,
    /// key=value; may be repeated.
    #[arg(long = "tag", value_parser = pair, value_name = "KEY=VALUE")]
    tags: Vec<(String, String)>,
    /// Submitting again under this key answers the first execution.
    #[arg(long)]
    idempotency_key: Option<String>,
    /// For how long the key is known; a day unless said.
    #[arg(long)]
    idempotency_ttl_ms: Option<i64>,
    /// Its id, a UUID; minted unless said.
    #[arg(long)]
    execution_id: Option<String>,
    /// Starts no sooner than so much from now.
    #[arg(long)]
    delay_ms: Option<i64>,
    /// Starts no sooner than this, in milliseconds since 1970.
    #[arg(long, conflicts_with = "delay_ms")]
    delay_until: Option<i64>,
    /// Is expired when it has not ended so much from now.
    #[arg(long)]
    deadline_ms: Option<i64>,
    /// Is expired when it has not ended by then, in milliseconds since 1970.
    #[arg(long, conflicts_with = "deadline_ms")]
    deadline_at: Option<i64>,
    /// Is expired when it has not started so much from now.
    #[arg(long)]
    start_within_ms: Option<i64>,
    /// Ends an attempt that runs for longer; the retry policy decides what follows.
    #[arg(long)]
    attempt_timeout_ms: Option<i64>,
    /// How many workers in a row may be lost with it; 5 unless said.
    #[arg(long)]
    max_reclaims: Option<i64>,
    /// How often it may be replayed; 10 unless said.
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
    /// Whose turn it takes in a lane that is fair, e.g. a tenant.
    #[arg(long)]
    fairness_key: Option<String>,
    /// A budget it is admitted against, with what it will use; may be repeated.
    #[arg(long = "budget", value_parser = budget, value_name = "ID[:DIMENSION=N,…]", conflicts_with = "budgets")]
    budget: Vec<Value>,
    /// Budgets as JSON.
    #[arg(long)]
    budgets: Option<String>,
    /// A quota it is admitted against, under a key; a number at the end is its weight. May be repeated.
    #[arg(long = "quota", value_parser = quota, value_name = "ID:KEY[:WEIGHT]", conflicts_with = "quotas")]
    quota: Vec<Value>,
    /// Quotas as JSON.
    #[arg(long)]
    quotas: Option<String>,
    /// Fallback tiers as a JSON array.
    #[arg(long)]
    fallbacks: Option<String>,
    /// For how long it is kept after its end; 7 days unless said.
    #[arg(long)]
    retention_ms: Option<i64>,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum InputEncoding {
    #[default]
    Json,
    Base64,
}

impl Submit {
    /// Prints the id, or the API's answer.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        if let Some(file) = &self.batch {
            if let Some((name, _)) = self.fields()?.first_key_value() {
                let flag = name.replace('_', "-");
                bail!(WrongUsage(format!("--{flag} says nothing about a batch: every line of it has its own fields")));
            }
            return super::batch::submit(&api, file, self.output.output).await;
        }
        let reply = api.post("/v1/executions", serde_json::to_string(&self.fields()?)?).await?.accepted()?;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&reply.json()?["execution_id"]))?,
            Output::Table => {
                let answer = reply.json()?;
                let again = if answer["duplicate"] == true { "  (submitted before)" } else { "" };
                say(&format!("{}  {}{again}", text(&answer["execution_id"]), text(&answer["state"])))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn fields(&self) -> anyhow::Result<BTreeMap<&'static str, Box<RawValue>>> {
        let mut fields: BTreeMap<&'static str, Box<RawValue>> = BTreeMap::new();
        let mut put = |name, value: Box<RawValue>| {
            fields.insert(name, value);
        };
        for (name, value) in [
            ("kind", &self.kind),
            ("namespace", &self.namespace),
            ("lane", &self.lane),
            ("idempotency_key", &self.idempotency_key),
            ("execution_id", &self.execution_id),
            ("fairness_key", &self.fairness_key),
            ("trace_parent", &self.trace_parent),
            ("completion_webhook", &self.completion_webhook),
        ] {
            if let Some(value) = value {
                put(name, raw(value));
            }
        }
        for (name, value) in [
            ("priority", self.priority),
            ("idempotency_ttl_ms", self.idempotency_ttl_ms),
            ("delay_ms", self.delay_ms),
            ("delay_until", self.delay_until),
            ("deadline_ms", self.deadline_ms),
            ("deadline_at", self.deadline_at),
            ("start_within_ms", self.start_within_ms),
            ("attempt_timeout_ms", self.attempt_timeout_ms),
            ("max_reclaims", self.max_reclaims),
            ("max_replays", self.max_replays),
            ("retention_ms", self.retention_ms),
        ] {
            if let Some(value) = value {
                put(name, raw(&value));
            }
        }
        for (name, value) in [
            ("retry", &self.retry),
            ("budgets", &self.budgets),
            ("quotas", &self.quotas),
            ("fallbacks", &self.fallbacks),
        ] {
            if let Some(value) = value {
                let json = RawValue::from_string(value.clone());
                put(name, json.with_context(|| WrongUsage(format!("--{name} is not JSON")))?);
            }
        }
        for (name, value) in [("budgets", &self.budget), ("quotas", &self.quota)] {
            if !value.is_empty() {
                put(name, raw(value));
            }
        }
        for (name, value) in [("requires", &self.requires), ("prefers", &self.prefers)] {
            if !value.is_empty() {
                put(name, raw(value));
            }
        }
        if !self.tags.is_empty() {
            put("tags", raw(&self.tags.iter().cloned().collect::<BTreeMap<String, String>>()));
        }
        if let Some(input) = &self.input {
            let input = read_input(input, self.input_encoding)?;
            // A field that is null says nothing unless it is called JSON.
            let is_null = input.get().trim() == "null";
            put("input", input);
            match self.input_encoding {
                InputEncoding::Base64 => put("input_encoding", raw(&"base64")),
                InputEncoding::Json if is_null => put("input_encoding", raw(&"json")),
                InputEncoding::Json => {}
            }
        }
        Ok(fields)
    }
}

/// `ID[:DIMENSION=N,…]` as the API takes a budget.
fn budget(text: &str) -> Result<Value, String> {
    let Some((id, amounts)) = text.split_once(':') else { return Ok(json!({ "budget_id": text })) };
    let mut estimate = Map::new();
    for one in amounts.split(',') {
        let (name, n) = amount(one)?;
        if estimate.insert(name.clone(), json!(n)).is_some() {
            return Err(format!("{name} is given twice"));
        }
    }
    Ok(json!({ "budget_id": id, "estimate": estimate }))
}

/// `ID:KEY[:WEIGHT]` as the API takes a quota; a key may hold colons.
fn quota(text: &str) -> Result<Value, String> {
    let (id, rest) = text.split_once(':').ok_or_else(|| format!("{text} is not ID:KEY"))?;
    let (key, weight) = match rest.rsplit_once(':').and_then(|(key, n)| Some((key, n.parse::<i64>().ok()?))) {
        Some((key, weight)) => (key, Some(weight)),
        None => (rest, None),
    };
    if key.is_empty() {
        return Err(format!("{text} names no key"));
    }
    Ok(json!({ "quota_id": id, "key": key, "weight": weight }))
}

fn raw<T: Serialize>(value: &T) -> Box<RawValue> {
    to_raw_value(value).expect("texts, numbers and maps of them become JSON")
}

/// The input's bytes as the field carries them; JSON keeps its text.
fn read_input(input: &str, encoding: InputEncoding) -> anyhow::Result<Box<RawValue>> {
    let mut bytes = Vec::new();
    match input.strip_prefix('@') {
        Some(path) => {
            bytes = std::fs::read(path).with_context(|| WrongUsage(format!("cannot read the input from {path}")))?;
        }
        None if input == "-" => {
            std::io::stdin().read_to_end(&mut bytes).context("cannot read the input from stdin")?;
        }
        None if encoding == InputEncoding::Base64 => return Ok(raw(&input)),
        None => bytes.extend_from_slice(input.as_bytes()),
    }
    if encoding == InputEncoding::Base64 {
        return Ok(raw(&STANDARD.encode(bytes)));
    }
    let json = String::from_utf8(bytes).ok().and_then(|json| RawValue::from_string(json.trim().to_owned()).ok());
    match json {
        Some(json) => Ok(json),
        None => {
            bail!(WrongUsage(
                "the input is not JSON; quote plain text as JSON does, or send bytes with --input-encoding base64"
                    .to_owned()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_and_quotas_are_written_in_one_word() {
        assert_eq!(budget("b1"), Ok(json!({ "budget_id": "b1" })));
        let estimate = json!({ "budget_id": "b1", "estimate": { "tokens": 5, "usd": 2 } });
        assert_eq!(budget("b1:tokens=5,usd=2"), Ok(estimate));
        for wrong in ["b1:", "b1:tokens", "b1:tokens=x", "b1:tokens=1,tokens=2"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
        assert_eq!(quota("q1:openai"), Ok(json!({ "quota_id": "q1", "key": "openai", "weight": null })));
        assert_eq!(quota("q1:tenant:a:3"), Ok(json!({ "quota_id": "q1", "key": "tenant:a", "weight": 3 })));
        for wrong in ["q1", "q1:", "q1::3"] {
            assert!(quota(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_input_keeps_its_text() {
        let json = read_input(r#" {"b":12345678901234567890,"a":1} "#, InputEncoding::Json).unwrap();
        assert_eq!(json.get(), r#"{"b":12345678901234567890,"a":1}"#);
        assert!(read_input("hello", InputEncoding::Json).is_err());
        assert_eq!(read_input("AAE=", InputEncoding::Base64).unwrap().get(), r#""AAE=""#);
    }
}
