//! `POST /v1/workers/{instance}/results`: many ends at once, and the next claim with them.

use axum::Json;
use axum::extract::{Request, State};
use ff_api::results::{
    AtMost, RESULTS_MAX, ResultAnswer, ResultBody, ResultOp, ResultRefused, ResultsAnswered, ResultsBody, SendResults,
};
use ff_core::types::{ExecutionId, LeaseId};
use ff_engine::fleet::{End, Ends};
use ff_script::generated::CompleteExecution;
use serde::Deserialize;

use super::tasks::failure;
use super::worker_protocol::claim_after;
use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body;
use crate::openapi::Described;
use crate::payload;
use crate::problem::{Answer, Problem};

pub fn routes() -> Described {
    Described::new().serving::<SendResults, _>(results)
}

/// What became of a result before the store was asked.
enum Item {
    Sent(ExecutionId, LeaseId),
    Refused(ResultAnswer),
}

fn refused(app: &App, execution_id: Option<ExecutionId>, problem: &Problem) -> ResultAnswer {
    ResultAnswer::Refused(ResultRefused { execution_id, problem: app.refused_item(problem) })
}

/// The end that a result asks for.
fn end_of(said: ResultBody) -> Answer<End> {
    let named = |field: &'static str, text: Option<String>| text.ok_or_else(|| Problem::invalid(field, "is missing"));
    match said.op {
        ResultOp::Complete => {
            for (field, given) in [
                ("reason", said.reason.is_some()),
                ("category", said.category.is_some()),
                ("retryable", said.retryable.is_some()),
                ("retry_after_ms", said.retry_after_ms.is_some()),
            ] {
                if given {
                    return Err(Problem::invalid(field, "is not a field of complete"));
                }
            }
            let (result, result_encoding) =
                payload::taken("result", said.result, said.result_encoding, payload::PAYLOAD_MAX)?;
            Ok(End::Complete(CompleteExecution {
                execution_id: said.execution_id,
                fence: said.fence,
                result,
                result_encoding,
            }))
        }
        ResultOp::Fail => {
            if said.result.is_some() || said.result_encoding.is_some() {
                return Err(Problem::invalid("result", "is not a field of fail"));
            }
            let (reason, category) = (named("reason", said.reason)?, named("category", said.category)?);
            let call = failure(said.execution_id, said.fence, reason, category, said.retryable, said.retry_after_ms)?;
            Ok(End::Fail(call))
        }
    }
}

/// The same, when its fence is one the caller may present.
async fn checked(app: &App, caller: &Caller, said: ResultBody) -> Answer<(ExecutionId, LeaseId, End)> {
    let (id, lease) = (said.execution_id, said.fence.lease_id);
    let end = end_of(said)?;
    app.check_fence(caller, id, lease).await?;
    Ok((id, lease, end))
}

/// Just the id of an item that is wrong otherwise.
#[derive(Deserialize)]
struct IdOnly {
    execution_id: Option<ExecutionId>,
}

async fn results(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    request: Request,
) -> JsonAnswer<ResultsAnswered> {
    let bytes = body::whole(request, body::BATCH).await?;
    let body = if bytes.trim_ascii_start().first() == Some(&b'[') {
        ResultsBody { results: body::read_any(&bytes)?, claim: None, incarnation: None, request_id: None }
    } else {
        body::read(&bytes)?
    };
    let AtMost { items, count } = body.results;
    if count > RESULTS_MAX {
        return Err(Problem::invalid("results", format!("must hold at most {RESULTS_MAX} items, got {count}")));
    }
    // A result is worth taking from a worker whose registration ran out; its fence is what counts.
    match app.fleet.worker(&instance, body.incarnation).await {
        Err(problem) if problem.code() != "worker_not_registered" => return Err(problem.into()),
        _ => {}
    }
    let mut ends = Vec::with_capacity(items.len());
    let mut asked = Vec::with_capacity(items.len());
    for item in &items {
        let end = match body::read::<ResultBody>(item.get().as_bytes()) {
            Ok(said) => checked(&app, &caller, said).await,
            Err(problem) => Err(problem),
        };
        asked.push(match end {
            Ok((id, lease, end)) => {
                ends.push(end);
                Item::Sent(id, lease)
            }
            Err(problem) => {
                let execution_id = serde_json::from_str::<IdOnly>(item.get()).ok().and_then(|only| only.execution_id);
                Item::Refused(refused(&app, execution_id, &problem))
            }
        });
    }
    let send = |ends: Ends| async {
        match body.claim {
            None => (app.operations.client().run(ends.list).await, None),
            Some(claim) => {
                let (answers, claimed) = claim_after(&app, &caller, &instance, claim, ends).await;
                (answers, Some(claimed))
            }
        }
    };
    let (done, claimed) = app.engine.finish(ends, send).await;
    let mut done = done.into_iter();
    let answered = |item| match item {
        Item::Refused(answer) => answer,
        Item::Sent(id, lease) => {
            let done = done.next().expect("each end has an answer");
            let done = done.map_err(|error| Problem::from(error).about(id));
            if done.as_ref().err().is_none_or(Problem::ends_lease) {
                app.fleet.ended(lease);
            }
            done.map_or_else(|problem| refused(&app, Some(id), &problem), ResultAnswer::Done)
        }
    };
    let results = asked.into_iter().map(answered).collect();
    let (tasks, claim_error) = match claimed {
        None => (None, None),
        Some(Ok(tasks)) => (Some(tasks.into_iter().map(Into::into).collect()), None),
        Some(Err(problem)) => (None, Some(app.refused_item(&problem))),
    };
    Ok(Json(ResultsAnswered { results, tasks, claim_error }))
}
