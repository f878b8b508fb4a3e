//! `ff show`: everything about an execution.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use ff_api::events::EventsQuery;
use ff_api::executions::{Attempt, Execution, GetExecution};
use ff_api::payload::{Encoding, Payload};
use ff_api::steps::ListSteps;
use ff_api::{Ask, Listed, PageQuery};
use ff_core::types::ExecutionId;
use ff_script::generated::{PastSuspension, WebhookStatus};

use super::list::age_of;
use super::waterfall;
use crate::client::{Answered, Api, ServerArgs};
use crate::ids::{IdArgs, for_each, id};
use crate::output::{Output, OutputArgs};
use crate::problem::WrongUsage;
use crate::sheet::Sheet;
use crate::times::{length, moment, now_ms};
use crate::view::{View, WatchArgs};

/// Shows everything about executions. An unknown id exits 4.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    ids: IdArgs,
    /// Draws the steps that its handler has recorded, each over the time it took.
    #[arg(long)]
    steps: bool,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    /// Prints each execution.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output, watch) = (&Api::new(&self.server)?, self.output.output, self.watch);
        let ids = self.ids.read()?;
        if watch.is_on() && ids.len() > 1 {
            bail!(WrongUsage("--watch shows one execution; `ff list --watch` shows many".to_owned()));
        }
        let steps = self.steps;
        for_each(ids, |name| async move {
            let id: ExecutionId = id("an execution", &name)?;
            let about = EventsQuery { execution_id: Some(id), ..EventsQuery::default() };
            let look = async || {
                if steps {
                    return steps_of(api, id, output).await;
                }
                let Answered { value, bytes, .. } = api.ask(&Ask::<GetExecution>::at(id)).await?;
                match output {
                    Output::Json => View::raw(&bytes),
                    Output::Ids => Ok(View::lines([value.execution_id.to_string()])),
                    Output::Table => Ok(View::lines(sheet(&value))),
                }
            };
            watch.show(api, output, &about, look).await.map(|_| ())
        })
        .await
    }
}

/// Every step of an execution: as the API has them, by name, or drawn.
async fn steps_of(api: &Api, id: ExecutionId, output: Output) -> anyhow::Result<View> {
    let (mut steps, mut cursor) = (Vec::new(), None);
    loop {
        let query = PageQuery { limit: Some(1_000), cursor };
        let page = api.ask(&Ask::<ListSteps>::by(id, query)).await?.value;
        steps.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    match output {
        Output::Json => View::raw(&serde_json::to_vec(&Listed { items: steps, next_cursor: None })?),
        Output::Ids => Ok(View::lines(steps.into_iter().map(|step| step.name))),
        Output::Table => Ok(View::lines(waterfall::lines(&steps, now_ms()))),
    }
}

/// How far a webhook is, in a line.
pub fn told(webhook: &WebhookStatus) -> String {
    let after = if webhook.tries == 1 { "1 try".to_owned() } else { format!("{} tries", webhook.tries) };
    let next = webhook.next_at.filter(|_| webhook.tries > 0).map(|at| format!(", next {}", moment(at)));
    let error = webhook.error.as_ref().map(|error| format!(": {error}"));
    format!("{} after {after}{}{}", webhook.state, next.unwrap_or_default(), error.unwrap_or_default())
}

fn sheet(execution: &Execution) -> Vec<String> {
    let mut sheet = Sheet::default();
    sheet.fact("execution", execution.execution_id);
    sheet.fact("state", execution.state);
    sheet.maybe(
        "blocked",
        execution.blocking_reason.map(|reason| {
            let since = execution.blocked_since.map(|at| format!(" since {}", moment(at.0)));
            format!("{reason}{}", since.unwrap_or_default())
        }),
    );
    sheet.maybe("outcome", execution.outcome);
    sheet.fact("kind", &execution.kind);
    sheet.fact("lane", format!("{}/{}", execution.namespace, execution.lane));
    sheet.fact("priority", execution.priority);
    sheet.fact("created", moment(execution.created_at.0));
    sheet.fact("updated", moment(execution.updated_at.0));
    sheet.maybe(
        "ended",
        execution
            .ended_at
            .map(|at| format!("{}, {} after its submission", moment(at.0), age_of(at.0 - execution.created_at.0))),
    );
    sheet.maybe("delayed until", execution.delay_until.map(|at| moment(at.0)));
    sheet.maybe("deadline", execution.deadline_at.map(|at| moment(at.0)));
    sheet.maybe("must start by", execution.start_by.map(|at| moment(at.0)));
    sheet.list("tags", execution.tags.iter().map(|(key, value)| format!("{key}={value}")));
    sheet.list("requires", &execution.requires);
    sheet.list("prefers", &execution.prefers);
    sheet.maybe("fairness key", execution.fairness_key.as_ref());
    if let Some(lease) = &execution.lease {
        sheet.fact("lease", format!("{} until {}", lease.worker_instance, moment(lease.expires_at.0)));
    }
    if let Some(suspension) = &execution.suspension {
        let since = moment(suspension.suspended_at.0);
        sheet.fact("waits", format!("{}, {} since {since}", suspension.reason, suspension.progress));
        sheet.maybe("times out", suspension.timeout_at.map(|at| moment(at.0)));
    }
    for waitpoint in &execution.waitpoints {
        sheet.fact("waitpoint", format!("{} {} {}", waitpoint.waitpoint_id, waitpoint.key, waitpoint.state));
    }
    if execution.steps > 0 {
        sheet.fact("steps", format!("{}: `ff show --steps` draws them", execution.steps));
    }
    sheet.maybe("forked from", execution.forked_from);
    for fork in &execution.forks {
        sheet.fact("fork", fork);
    }
    sheet.maybe("flow", execution.flow_id);
    sheet.maybe("parent", execution.parent_id);
    sheet.maybe("key", execution.key.as_ref());
    sheet.maybe("runs as flow", execution.nested_flow_id);
    if execution.children.total > 0 {
        sheet.fact("children", format!("{}, {} open", execution.children.total, execution.children.open));
    }
    if let Some(progress) = &execution.progress {
        sheet.fact("progress", format!("{} % {}", progress.pct, progress.message.as_deref().unwrap_or_default()));
    }
    sheet.maybe("attempt timeout", execution.attempt_timeout_ms.map(length));
    sheet.list("used", execution.usage.iter().map(|(dimension, n)| format!("{n} {dimension}")));
    sheet.maybe(
        "failure",
        execution.failure.as_ref().map(|failure| format!("{}: {}", failure.category, failure.reason)),
    );
    sheet.maybe("webhook", execution.webhook.as_ref().map(told));
    sheet.maybe("input", payload(Some(&execution.input), execution.input_encoding));
    sheet.maybe("result", payload(execution.result.as_ref(), execution.result_encoding));
    for past in &execution.past_suspensions {
        sheet.fact("waited", waited(past));
    }
    if execution.attempts_omitted > 0 {
        sheet.fact("attempts", format!("{} older ones: `ff history` shows them", execution.attempts_omitted));
    }
    for one in &execution.attempts {
        sheet.fact("attempt", attempt(one));
    }
    let mut lines = sheet.lines();
    lines.push(String::new());
    lines
}

/// A payload as JSON: its own text, or base64 in quotes; none when none was given.
fn payload(bytes: Option<&Vec<u8>>, encoding: Option<Encoding>) -> Option<String> {
    let payload = Payload { bytes: bytes?.clone(), encoding: encoding? };
    Some(payload.written().0.get().to_owned())
}

fn waited(past: &PastSuspension) -> String {
    let (from, to) = (moment(past.suspended_at), moment(past.ended_at));
    format!("{} {from} to {to}, ended by {}", past.reason, past.cause)
}

fn attempt(attempt: &Attempt) -> String {
    let Attempt { index, kind, state, worker_instance, started_at, .. } = attempt;
    let took = attempt.ended_at.map(|at| format!(" for {}", age_of(at.0 - started_at.0)));
    let why = attempt.failure.as_ref().map(|failure| format!(": {}", failure.reason));
    let (took, why) = (took.unwrap_or_default(), why.unwrap_or_default());
    format!("{index} {kind} {state} on {worker_instance} from {}{took}{why}", moment(started_at.0))
}
