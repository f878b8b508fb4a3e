//! What operator verbs share: one request for each execution that is named, or bulk requests for all that match filters.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use ff_core::state::PublicState;
use serde_json::{Map, Value};

use crate::client::{Api, Output, ServerArgs, for_each, pair, read_ids, say, say_raw, segment, text, words};
use crate::progress::Progress;

/// How many executions one bulk request acts on.
const BULK: u64 = 500;

/// Posts `/v1/executions/{id}/{verb}` for each id; a refusal is said and the others go on.
pub async fn act(
    server: &ServerArgs,
    ids: Vec<String>,
    verb: &str,
    body: &Value,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let api = &Api::new(server)?;
    let body = &body.to_string();
    for_each(ids, |id| async move {
        let reply = api.post(&format!("/v1/executions/{}/{verb}", segment(&id)), body.clone()).await?.accepted()?;
        match output {
            Output::Json => say_raw(&reply.bytes),
            Output::Ids => say(&text(&reply.json()?["execution_id"])),
            Output::Table => say(&format!("{id}  {}", text(&reply.json()?["outcome"]))),
        }
    })
    .await
}

/// Which executions a verb is about: by their ids, or all that match filters.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("filters").multiple(true))]
pub struct BulkArgs {
    /// Execution ids; `-` reads them from stdin.
    #[arg(required_unless_present = "filters", conflicts_with = "filters", value_name = "ID")]
    ids: Vec<String>,
    /// Instead of ids: those of this namespace. Filters narrow each other.
    #[arg(long, group = "filters", help_heading = "Filters")]
    namespace: Option<String>,
    /// Instead of ids: those of this lane.
    #[arg(long, group = "filters", help_heading = "Filters")]
    lane: Option<String>,
    /// Instead of ids: those of this kind.
    #[arg(long, group = "filters", help_heading = "Filters")]
    kind: Option<String>,
    /// Instead of ids: those in this state.
    #[arg(long, group = "filters", help_heading = "Filters", value_parser = words(PublicState::ALL))]
    state: Option<String>,
    /// Instead of ids: those with this tag.
    #[arg(long, group = "filters", help_heading = "Filters", value_parser = pair, value_name = "KEY=VALUE")]
    tag: Option<(String, String)>,
    /// Instead of ids: members of this flow.
    #[arg(long = "flow", alias = "flow-id", group = "filters", help_heading = "Filters", value_name = "ID")]
    flow_id: Option<String>,
    /// Instead of ids: those leased by this worker instance.
    #[arg(long, group = "filters", help_heading = "Filters")]
    worker: Option<String>,
    /// Instead of ids: those created after this time, in epoch milliseconds.
    #[arg(long, group = "filters", help_heading = "Filters")]
    created_after: Option<i64>,
    /// Instead of ids: those created before this time, in epoch milliseconds.
    #[arg(long, group = "filters", help_heading = "Filters")]
    created_before: Option<i64>,
}

impl BulkArgs {
    /// The fields of a bulk request.
    fn fields(&self) -> Map<String, Value> {
        let tag = self.tag.as_ref().map(|(key, value)| format!("{key}:{value}"));
        let texts = [
            ("namespace", self.namespace.clone()),
            ("lane", self.lane.clone()),
            ("kind", self.kind.clone()),
            ("state", self.state.clone()),
            ("tag", tag),
            ("flow_id", self.flow_id.clone()),
            ("worker", self.worker.clone()),
        ];
        let times = [("created_after", self.created_after), ("created_before", self.created_before)];
        texts
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), text?.into())))
            .chain(times.into_iter().filter_map(|(name, time)| Some((name.to_owned(), time?.into()))))
            .collect()
    }

    /// Acts on the ids, or on everything that matches.
    pub async fn act(
        &self,
        server: &ServerArgs,
        verb: &str,
        doing: &'static str,
        body: &Value,
        output: Output,
    ) -> anyhow::Result<ExitCode> {
        if self.ids.is_empty() {
            return self.act_on_matches(server, verb, doing, body, output).await;
        }
        act(server, read_ids(&self.ids)?, verb, body, output).await
    }

    /// Request by request, and then says what became of all.
    async fn act_on_matches(
        &self,
        server: &ServerArgs,
        verb: &str,
        doing: &'static str,
        body: &Value,
        output: Output,
    ) -> anyhow::Result<ExitCode> {
        let api = Api::new(server)?;
        let mut sums: Map<String, Value> = Map::new();
        let mut progress = Progress::new(doing, None);
        let mut cursor = Value::Null;
        loop {
            let mut fields = self.fields();
            fields.extend(body.as_object().cloned().unwrap_or_default());
            fields.insert("limit".to_owned(), BULK.into());
            fields.insert("cursor".to_owned(), cursor);
            let path = format!("/v1/executions:{verb}");
            let answer = api.post(&path, Value::Object(fields).to_string()).await?.accepted()?.json()?;
            for (name, count) in answer.as_object().into_iter().flatten() {
                if let Some(count) = count.as_u64() {
                    let before = sums.get(name).and_then(Value::as_u64).unwrap_or(0);
                    sums.insert(name.clone(), (before + count).into());
                }
            }
            progress.advance(answer["matched"].as_u64().unwrap_or(0));
            cursor = answer["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        drop(progress);
        let refused = sums.get("refused").and_then(Value::as_u64).unwrap_or(0);
        match output {
            Output::Json => say(&Value::Object(sums).to_string())?,
            Output::Ids | Output::Table => {
                let matched = sums.get("matched").map(text).unwrap_or_default();
                let said: Vec<String> = sums
                    .iter()
                    .filter(|(name, count)| *name != "matched" && **count != 0)
                    .map(|(name, count)| format!("{count} {name}"))
                    .collect();
                let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
                say(&format!("{matched} matched{said}"))?;
            }
        }
        Ok(if refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
