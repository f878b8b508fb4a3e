//! `ff flow result`: what became of a flow, waiting for its end when asked to.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ff_api::Ask;
use ff_api::executions::{ExecutionResult, GetResult, ResultAnswer, ResultQuery};
use ff_api::graph::{FlowQuery, FlowShown, GetFlow, GetFlowGraph, Member};
use ff_api::payload::Payload;
use ff_core::types::FlowId;
use ff_script::generated::{FlowState, MemberState};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::client::{Answered, Api, ServerArgs};
use crate::commands::result::{NOT_ENDED, Waiting};
use crate::ids::id;
use crate::output::{Output, OutputArgs, say};
use crate::states::counts;
use crate::times::duration;

/// Prints the results of the members that nothing follows, by their keys; of a single one its result alone. Exits 0 when the
/// flow has completed, 1 when it has not, 4 for an unknown id, 5 when it has not ended.
#[derive(Args)]
#[command(after_help = "Example:
  ff flow result 0192f3a0-… --wait
  ff flow result 0192f3a0-… --member render")]
pub struct ResultCommand {
    /// The flow's id.
    #[arg(value_name = "ID")]
    id: String,
    /// The result of this member instead; may be repeated.
    #[arg(long = "member", value_name = "KEY")]
    members: Vec<String>,
    /// Waits until the flow has ended, or for this long at most.
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1, require_equals = true, default_missing_value = "365d", hide_default_value = true)]
    wait: Option<i64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ResultCommand {
    /// Prints the results.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, id) = (Api::new(&self.server)?, id("a flow", &self.id)?);
        show(&api, id, self.wait.unwrap_or(0), &self.members, self.output.output).await
    }
}

/// Waits for the end of a flow and prints its results: those of the members that are named, or of those that nothing follows.
pub async fn show(api: &Api, id: FlowId, wait: i64, named: &[String], output: Output) -> anyhow::Result<ExitCode> {
    let ask = async |wait: Duration| {
        let query = FlowQuery { wait_ms: i64::try_from(wait.as_millis()).ok(), members: Some(false) };
        api.ask_within(&Ask::<GetFlow>::by(id, query), wait).await
    };
    let Answered { value, .. } =
        Waiting::within(wait).until(ask, |shown| shown.value.flow.finished_at.is_some()).await?;
    let FlowShown { flow, .. } = &value;
    if flow.finished_at.is_none() {
        eprintln!("{id} has not ended, it is {}: {}; wait with --wait", flow.state, counts(flow));
        return Ok(ExitCode::from(NOT_ENDED));
    }
    let graph = api.ask(&Ask::<GetFlowGraph>::at(id)).await?.value;
    if let Some(unknown) = named.iter().find(|key| graph.nodes.iter().all(|node| node.key != **key)) {
        anyhow::bail!("the flow has no member {unknown}; `ff flow show {id}` lists those it has");
    }
    let chosen = |member: &&Member| if named.is_empty() { member.edges_out == 0 } else { named.contains(&member.key) };
    let mut results = BTreeMap::new();
    for member in graph.nodes.iter().filter(chosen) {
        if member.state == MemberState::Completed {
            let ask = Ask::<GetResult>::by(member.execution_id, ResultQuery::default());
            if let ResultAnswer::Ended(ended) = api.ask(&ask).await?.value {
                results.insert(member.key.clone(), (member.execution_id, written(ended)));
            }
        } else if output == Output::Table {
            eprintln!("{}  {} {}", member.execution_id, member.key, member.state);
        }
    }
    match output {
        Output::Json => {
            let results = results.into_iter().map(|(key, (_, result))| (key, result)).collect();
            say(&serde_json::to_string(&Ended { flow_id: id, state: flow.state, results })?)?;
        }
        Output::Ids => results.values().try_for_each(|(execution_id, _)| say(&execution_id.to_string()))?,
        Output::Table if results.len() == 1 && (named.len() == 1 || graph.nodes.iter().filter(chosen).count() == 1) => {
            results.values().try_for_each(|(_, result)| say(result.get()))?;
        }
        Output::Table => results.iter().try_for_each(|(key, (_, result))| say(&format!("{key}  {}", result.get())))?,
    }
    if flow.state != FlowState::Completed {
        eprintln!("{id} ended {}: {}", flow.state, counts(flow));
    }
    Ok(if flow.state == FlowState::Completed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The results of a flow, with `-o json`.
#[derive(Serialize)]
struct Ended {
    flow_id: FlowId,
    state: FlowState,
    results: BTreeMap<String, Box<RawValue>>,
}

/// A result as JSON: its own text, or base64 in quotes; null when none was given.
fn written(ended: ExecutionResult) -> Box<RawValue> {
    match (ended.result, ended.result_encoding) {
        (Some(bytes), Some(encoding)) => Payload { bytes, encoding }.written().0,
        _ => RawValue::NULL.to_owned(),
    }
}
