//! Durable steps: stored, read and listed; rests; forks.

use ff_api::claims::Resume;
use ff_api::steps::{
    ForkExecution, Forked, GetTaskStep, ListSteps, PutStep, PutStepBody, PutStepOutcome, SleepOutcome, SleepTask,
    Slept, Step, StepFound, StepPut, check_name,
};
use ff_api::{Ask, Listed, Payload, Problem, page};
use ff_core::limits::{
    CONTINUATION_BYTES_MAX, DURATION_MS_MAX, INPUT_BYTES_MAX, REASON_BYTES_MAX, STEP_RESULT_BYTES_MAX, TIME_MS_MAX,
};
use ff_core::types::ExecutionId;
use ff_script::generated::{NoteStep, NoteStepReply, SleepExecution, StoreStep, StoreStepReply};

use super::{about, bounded, stored};
use crate::operations::Fork;
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// Fails when a number is outside of its bounds.
fn within(field: &str, number: Option<i64>, max: i64) -> Result<(), Problem> {
    match number {
        Some(number) if !(0..=max).contains(&number) => {
            Err(Problem::invalid(field, format!("must be in 0..={max}, got {number}")))
        }
        _ => Ok(()),
    }
}

/// What a step failed with, as a call.
fn noted(id: ExecutionId, name: String, body: PutStepBody) -> Result<NoteStep, Problem> {
    let PutStepBody { fence, input_digest, started_at, tries, failure, retry_at, .. } = body;
    let failure = failure.ok_or_else(|| Problem::invalid("failure", "is missing"))?;
    if body.result.is_some() || body.rerun.is_some() {
        let field = if body.result.is_some() { "result" } else { "rerun" };
        return Err(Problem::invalid(field, "must be absent beside a failure"));
    }
    bounded("failure.reason", Some(&failure.reason), REASON_BYTES_MAX)?;
    if failure.category.is_empty() {
        return Err(Problem::invalid("failure.category", "must be 1 to 128 bytes"));
    }
    Ok(NoteStep {
        input_digest,
        retry_at,
        started_at,
        ..NoteStep::new(failure.category, id, fence, name, failure.reason, tries.unwrap_or(1))
    })
}

/// What was said about a step, as a call.
enum Said {
    Note(NoteStep),
    Store(StoreStep),
}

fn said(id: ExecutionId, name: String, body: PutStepBody) -> Result<Said, Problem> {
    within("started_at", body.started_at, TIME_MS_MAX)?;
    within("retry_at", body.retry_at, TIME_MS_MAX)?;
    if body.failure.is_some() {
        return noted(id, name, body).map(Said::Note);
    }
    if body.retry_at.is_some() {
        return Err(Problem::invalid("retry_at", "belongs to a failure"));
    }
    let payload = Payload::read("result", body.result.as_deref(), body.result_encoding)?;
    let (result, result_encoding) = stored("result", payload, STEP_RESULT_BYTES_MAX)?;
    Ok(Said::Store(StoreStep {
        input_digest: body.input_digest,
        rerun: body.rerun,
        result,
        result_encoding,
        started_at: body.started_at,
        tries: body.tries,
        ..StoreStep::new(id, body.fence, name)
    }))
}

impl Handle<PutStep> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<PutStep>) -> Result<StepPut, Problem> {
        let Ask { at: (id, name), body, .. } = ask;
        let fence = body.fence;
        let (given, given_encoding) = (body.result.clone(), body.result_encoding);
        let said = said(id, name, body)?;
        let plain = |outcome| StepPut { outcome, result: None, result_encoding: None, input_digest: None };
        let known = |result, encoding: Option<String>, input_digest| {
            let (result, result_encoding) = Payload::shown(result, encoding.as_deref());
            StepPut { outcome: PutStepOutcome::Known, result, result_encoding, input_digest }
        };
        let client = self.operations.client();
        let call = async {
            match &said {
                Said::Note(call) => match client.call(client.route_of(&id), call).await.map_err(about(id))? {
                    NoteStepReply::Noted => Ok(plain(PutStepOutcome::Noted)),
                    NoteStepReply::Known => {
                        let found = self.operations.step(id, &call.name).await.map_err(about(id))?;
                        Ok(known(found.result, found.result_encoding, found.step.input_digest))
                    }
                },
                Said::Store(call) => match client.call(client.route_of(&id), call).await.map_err(about(id))? {
                    StoreStepReply::Stored => {
                        Ok(StepPut { result: given, result_encoding: given_encoding, ..plain(PutStepOutcome::Stored) })
                    }
                    StoreStepReply::Known { result, result_encoding, input_digest } => {
                        Ok(known(result.map(|bytes| bytes.0), result_encoding, input_digest))
                    }
                },
            }
        };
        self.fenced(by, id, fence, |_| false, call).await
    }
}

impl Handle<GetTaskStep> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetTaskStep>) -> Result<StepFound, Problem> {
        let (id, name) = ask.at;
        let found = self.operations.step(id, &name).await.map_err(about(id))?;
        let (result, result_encoding) = Payload::shown(found.result, found.result_encoding.as_deref());
        Ok(StepFound { step: found.step, result, result_encoding, resume: found.resume.map(Resume::from) })
    }
}

impl Handle<SleepTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<SleepTask>) -> Result<Slept, Problem> {
        let Ask { at: id, body, .. } = ask;
        if body.until.is_some() == body.ms.is_some() {
            return Err(Problem::invalid("until", "or ms must be given, not both"));
        }
        within("until", body.until, TIME_MS_MAX)?;
        within("ms", body.ms, DURATION_MS_MAX)?;
        if let Some(step) = &body.step {
            check_name("step", step)?;
        }
        let continuation = Payload::read("continuation", body.continuation.as_deref(), body.continuation_encoding)?;
        let (continuation, encoding) = stored("continuation", continuation, CONTINUATION_BYTES_MAX)?;
        let call = SleepExecution {
            continuation_encoding: continuation.is_some().then(|| encoding.unwrap_or_else(|| "json".to_owned())),
            continuation,
            step: body.step,
            wake_at: body.until,
            wake_in_ms: body.ms,
            ..SleepExecution::new(id, body.fence)
        };
        let client = self.operations.client();
        let rest = async { client.call(client.route_of(&id), &call).await.map(Slept::from).map_err(about(id)) };
        self.fenced(by, id, body.fence, |slept| slept.outcome == SleepOutcome::Resting, rest).await
    }
}

impl Handle<ListSteps> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListSteps>) -> Result<Listed<Step>, Problem> {
        let limit = i64::try_from(page::length(ask.query.limit)?).unwrap_or(i64::MAX);
        let after = page::offset(ask.query.cursor.as_deref())?;
        let page = self.operations.steps(ask.at, after, limit).await;
        let (items, more) = page.map_err(about(ask.at))?;
        let next_cursor = items.last().filter(|_| more).map(|step| step.number.to_string());
        Ok(Listed { items, next_cursor })
    }
}

impl Handle<ForkExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ForkExecution>) -> Result<Forked, Problem> {
        let Ask { at: id, body, .. } = ask;
        if let Some(step) = &body.from_step {
            check_name("from_step", step)?;
        }
        if body.idempotency_key.as_deref().is_some_and(|key| !(1..=KEY_BYTES_MAX).contains(&key.len())) {
            return Err(Problem::invalid("idempotency_key", "must be 1 to 256 bytes long"));
        }
        if let Some(lane) = &body.lane
            && by.is_scoped()
        {
            by.check(&self.operations.describe(id).await.map_err(about(id))?.namespace, Some(lane))?;
        }
        let input = Payload::read("input", body.input.as_deref(), body.input_encoding)?;
        let (input, input_encoding) = stored("input", input, INPUT_BYTES_MAX)?;
        let fork = Fork {
            from_step: body.from_step,
            input: input.map(|bytes| bytes.0),
            input_encoding,
            lane: body.lane,
            priority: body.priority,
            tags: body.tags,
            idempotency_key: body.idempotency_key,
        };
        let (fork_id, reply) = self.operations.fork(id, fork, by.name()).await.map_err(about(id))?;
        Ok(Forked::new(fork_id, &reply))
    }
}

/// The longest idempotency key.
const KEY_BYTES_MAX: usize = 256;
