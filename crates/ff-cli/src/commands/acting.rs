//! What operator verbs share: one request for each execution that is named, or bulk requests for all that match filters.

use std::process::ExitCode;

use clap::Args;
use ff_api::executions::{ActionOutcome, BulkCounts, ExecutionDone, ExecutionFilter};
use ff_api::{Ask, Operation};
use ff_core::types::ExecutionId;
use serde::Serialize;

use super::filters::FilterArgs;
use crate::client::{Answered, Api, ServerArgs};
use crate::ids::{for_each, id, read_ids};
use crate::output::{Output, say, say_raw};
use crate::progress::Progress;

/// How many executions one bulk request acts on.
const BULK: i64 = 500;

/// What an action on one execution returns.
pub trait Done {
    /// The execution.
    fn execution_id(&self) -> ExecutionId;
    /// What happened, in a word.
    fn outcome(&self) -> String;
}

impl Done for ExecutionDone {
    fn execution_id(&self) -> ExecutionId {
        self.execution_id
    }

    fn outcome(&self) -> String {
        let word = match self.outcome {
            ActionOutcome::Cancelled => "cancelled",
            ActionOutcome::Requested => "its worker is asked to end",
            ActionOutcome::Already => match self.terminal_outcome {
                Some(outcome) => return format!("had ended already: {outcome}"),
                None => "it was so already",
            },
            ActionOutcome::Replayed => "replayed",
            ActionOutcome::Held => "held",
            ActionOutcome::Released => "released",
            ActionOutcome::Revoked => "its lease is taken away",
        };
        word.to_owned()
    }
}

impl Done for ff_api::suspensions::SuspensionEnded {
    fn execution_id(&self) -> ExecutionId {
        self.execution_id
    }

    fn outcome(&self) -> String {
        match self.outcome {
            ff_api::suspensions::SuspensionOutcome::Resumed => "resumed".to_owned(),
            ff_api::suspensions::SuspensionOutcome::Failed => "failed".to_owned(),
        }
    }
}

/// Asks for an operation on each execution; a refusal is said and the others go on.
pub async fn act<O>(server: &ServerArgs, ids: Vec<String>, body: &O::Body, output: Output) -> anyhow::Result<ExitCode>
where
    O: Operation<
            At = ExecutionId,
            Query = ff_api::Nothing,
            Body: Serialize + Clone,
            Answer: Done + serde::de::DeserializeOwned,
        >,
{
    let api = &Api::new(server)?;
    for_each(ids, |name| async move {
        let ask = Ask::<O>::with(id("an execution", &name)?, body.clone());
        let Answered { value, bytes, .. } = api.ask(&ask).await?;
        match output {
            Output::Json => say_raw(&bytes),
            Output::Ids => say(&value.execution_id().to_string()),
            Output::Table => say(&format!("{}  {}", value.execution_id(), value.outcome())),
        }
    })
    .await
}

/// Which executions a verb is about: by their ids, or all that match filters.
#[derive(Args, Clone, Debug)]
pub struct BulkArgs {
    /// Execution ids; `-` reads them from stdin. Instead of ids: filters.
    #[arg(required_unless_present = "filters", conflicts_with = "filters", value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filters: FilterArgs,
}

impl BulkArgs {
    /// Acts on the ids, or on everything that matches.
    pub async fn act<One, Many>(
        &self,
        server: &ServerArgs,
        doing: &'static str,
        body: &One::Body,
        many: impl Fn(ExecutionFilter, Option<String>) -> Many::Body,
        output: Output,
    ) -> anyhow::Result<ExitCode>
    where
        One: Operation<At = ExecutionId, Query = ff_api::Nothing, Body: Serialize + Clone, Answer = ExecutionDone>,
        Many: Operation<At = (), Query: Serialize + Default, Body: Serialize, Answer = BulkCounts>,
    {
        if !self.ids.is_empty() {
            return act::<One>(server, read_ids(&self.ids)?, body, output).await;
        }
        let api = Api::new(server)?;
        let (mut sum, mut progress) = (BulkCounts::default(), Progress::new(doing, None));
        for filter in self.filters.each() {
            let mut cursor = None;
            loop {
                let body = many(filter.clone(), cursor);
                let ask = Ask::<Many> { at: (), query: Many::Query::default(), body };
                let counts = api.ask(&ask).await?.value;
                progress.advance(counts.matched);
                add(&mut sum, &counts);
                cursor = counts.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        drop(progress);
        match output {
            Output::Json => say(&serde_json::to_string(&sum)?)?,
            Output::Ids | Output::Table => say(&told(&sum))?,
        }
        Ok(if sum.refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// How many one request acts on.
pub const fn bulk_limit() -> Option<i64> {
    Some(BULK)
}

fn add(sum: &mut BulkCounts, counts: &BulkCounts) {
    let BulkCounts { matched, cancelled, requested, replayed, unchanged, refused, next_cursor: _ } = counts;
    sum.matched += matched;
    for (sum, count) in
        [(&mut sum.cancelled, cancelled), (&mut sum.requested, requested), (&mut sum.replayed, replayed)]
    {
        if let Some(count) = count {
            *sum.get_or_insert(0) += count;
        }
    }
    sum.unchanged += unchanged;
    sum.refused += refused;
}

fn told(sum: &BulkCounts) -> String {
    let counted = [
        ("cancelled", sum.cancelled.unwrap_or(0)),
        ("asked to end", sum.requested.unwrap_or(0)),
        ("replayed", sum.replayed.unwrap_or(0)),
        ("unchanged", sum.unchanged),
        ("refused", sum.refused),
    ];
    let said: Vec<String> =
        counted.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
    format!("{} matched{said}", sum.matched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_many_requests_add_up() {
        let mut sum = BulkCounts::default();
        let page = BulkCounts { matched: 3, cancelled: Some(2), unchanged: 1, ..BulkCounts::default() };
        add(&mut sum, &page);
        add(&mut sum, &page);
        assert_eq!(told(&sum), "6 matched: 4 cancelled, 2 unchanged");
        assert_eq!(told(&BulkCounts::default()), "0 matched");
    }
}
