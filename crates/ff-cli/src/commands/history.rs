//! `ff history`: what happened to an execution, in the order of time.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::executions::{Execution, GetExecution, GetHistory, History as Told};
use ff_core::types::ExecutionId;

use crate::client::{Answered, Api, ServerArgs};
use crate::ids::{IdArgs, for_each, id};
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::times::moment;

/// Shows the submission, the attempts, suspensions and operator actions of executions, in the order of time. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff history 0192f3a0-…
  ff events --execution 0192f3a0-… --after start    every event, as long as they are kept")]
pub struct History {
    #[command(flatten)]
    ids: IdArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl History {
    /// Prints one history for each; with `-o ids` the ids of its attempts.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = &Api::new(&self.server)?;
        let output = self.output.output;
        for_each(self.ids.read()?, |name| async move {
            let id: ExecutionId = id("an execution", &name)?;
            let Answered { value, bytes, .. } = api.ask(&Ask::<GetHistory>::at(id)).await?;
            match output {
                Output::Json => say_raw(&bytes),
                Output::Ids => value.attempts.iter().try_for_each(|attempt| say(&attempt.attempt_id.to_string())),
                Output::Table => {
                    let execution = api.ask(&Ask::<GetExecution>::at(id)).await?.value;
                    say(&id.to_string())?;
                    let told = told(beginning(&execution), &value, end(&execution));
                    told.iter().try_for_each(|(at, what)| say(&format!("{}  {what}", moment(*at))))
                }
            }
        })
        .await
    }
}

/// The submission, and until when it was told to wait.
fn beginning(execution: &Execution) -> Vec<(i64, String)> {
    let submitted = format!("submitted: {} in lane {}", execution.kind, execution.lane);
    // A delay that an attempt asked for is not one of the submission.
    let delay = execution.delay_until.filter(|_| execution.attempts.is_empty());
    let delay = delay.map(|at| format!(", not before {}", moment(at.0))).unwrap_or_default();
    vec![(execution.created_at.0, submitted + &delay)]
}

/// How it ended, where no attempt says so.
fn end(execution: &Execution) -> Option<(i64, String)> {
    let (at, outcome) = (execution.ended_at?.0, execution.outcome?);
    let running = execution.attempts.iter().any(|attempt| attempt.ended_at.is_some_and(|ended| ended.0 == at));
    (!running).then(|| (at, format!("ended: {outcome}")))
}

/// What happened and when.
fn told(mut told: Vec<(i64, String)>, history: &Told, end: Option<(i64, String)>) -> Vec<(i64, String)> {
    let mut tell = |at: Option<i64>, what: String| told.extend(at.map(|at| (at, what)));
    for attempt in &history.attempts {
        let (index, kind, worker) = (attempt.index, attempt.kind, &attempt.worker_instance);
        tell(Some(attempt.started_at.0), format!("attempt {index} ({kind}) started on {worker}"));
        let why = attempt.failure.as_ref().map(|failure| format!(": {}: {}", failure.category, failure.reason));
        tell(attempt.ended_at.map(|at| at.0), format!("attempt {index} {}{}", attempt.state, why.unwrap_or_default()));
    }
    for past in &history.past_suspensions {
        let by = past.actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
        tell(Some(past.suspended_at), format!("suspended: {}", past.reason));
        tell(Some(past.ended_at), format!("suspension ended by {}{by}", past.cause));
    }
    if let Some(suspension) = &history.suspension {
        let what = format!("suspended: {}, {}", suspension.reason, suspension.progress);
        tell(Some(suspension.suspended_at.0), what);
    }
    for action in &history.operator_actions {
        let why = action.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        tell(Some(action.at), format!("{} by {}{why}", action.action, action.actor));
    }
    told.extend(end);
    // What happened in the same millisecond stays in the order it is told in.
    told.sort_by_key(|(at, _)| *at);
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_told_in_the_order_of_time() {
        let id = |n: u32| format!("0192f3a0-0000-7000-8000-0000000000{n:02}");
        let attempt = |index: u32, kind: &str, state: &str, worker: &str, started: i64, ended: Option<i64>| {
            json!({"index": index, "attempt_id": id(10 + index), "type": kind, "state": state, "worker_instance": worker,
                "started_at": started, "ended_at": ended, "lease_epoch": 1, "frames": 0,
                "failure": ended.map(|_| json!({"category": "oops", "reason": "no"}))})
        };
        let history: Told = serde_json::from_value(json!({
            "execution_id": id(1),
            "attempts": [
                attempt(0, "initial", "failed", "w-1", 10, Some(20)),
                attempt(1, "retry", "started", "w-2", 40, None),
            ],
            "suspension": null,
            "past_suspensions": [{"suspension_id": id(2), "attempt_index": 0, "reason": "waiting_for_approval",
                "suspended_at": 12, "ended_at": 14, "cause": "operator", "actor": "ann"}],
            "operator_actions": [{"action": "replay", "actor": "local", "at": 30, "reason": "again"}],
        }))
        .expect("a history");
        let lines = told(vec![(5, "submitted: send in lane mail".to_owned())], &history, None);
        let lines: Vec<String> = lines.into_iter().map(|(at, what)| format!("{at} {what}")).collect();
        assert_eq!(
            lines,
            [
                "5 submitted: send in lane mail",
                "10 attempt 0 (initial) started on w-1",
                "12 suspended: waiting_for_approval",
                "14 suspension ended by operator by ann",
                "20 attempt 0 failed: oops: no",
                "30 replay by local: again",
                "40 attempt 1 (retry) started on w-2",
            ]
        );
    }
}
