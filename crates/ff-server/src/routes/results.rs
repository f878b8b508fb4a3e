//! `POST /v1/workers/{instance}/results`: many ends at once, and the next claim with them.

use axum::Json;
use axum::extract::{Request, State};
use ff_api::results::{
    AtMost, RESULTS_MAX, ResultAnswer, ResultBody, ResultOp, ResultRefused, ResultsAnswered, ResultsBody, SendResults,
};
use ff_api::tasks::{TaskDone, TaskOutcome};
use ff_core::types::ExecutionId;
use ff_engine::waiting::Completing;
use ff_script::Answers;
use ff_script::client::Asked;
use ff_script::generated::{CompleteExecution, CompleteExecutionReply, FailExecution};
use serde::Deserialize;

use super::tasks::failure;
use super::worker_protocol::claim_after;
use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body;
use crate::fleet::Ends;
use crate::openapi::Described;
use crate::payload;
use crate::problem::{Answer, Problem};

pub fn routes() -> Described {
    Described::new().serving::<SendResults, _>(results)
}

/// What a result asks for.
enum Wish {
    Complete(CompleteExecution),
    Fail(FailExecution),
}

/// What became of an item before the store was asked.
enum Item {
    Complete(Asked<CompleteExecution>, CompleteExecution),
    Fail(Asked<FailExecution>, FailExecution),
    Refused(ResultAnswer),
}

impl Item {
    /// The execution it completes.
    fn completes(&self) -> Option<ExecutionId> {
        match self {
            Self::Complete(_, call) => Some(call.execution_id),
            Self::Fail(..) | Self::Refused(_) => None,
        }
    }

    fn answer(self, app: &App, replies: &mut Answers, carried: &Completing) -> ResultAnswer {
        let (id, lease, done) = match self {
            Self::Refused(answer) => return answer,
            Self::Complete(asked, call) => {
                let reply = replies.take(asked);
                if let Ok(CompleteExecutionReply::Completed) = reply {
                    carried.completed(&call);
                }
                let id = call.execution_id;
                let done = reply
                    .map(|reply| TaskDone::new(id, TaskOutcome::Completed, reply == CompleteExecutionReply::Replayed));
                (id, call.fence.lease_id, done)
            }
            Self::Fail(asked, call) => {
                let id = call.execution_id;
                (id, call.fence.lease_id, replies.take(asked).map(|reply| TaskDone::failed(id, reply)))
            }
        };
        let done = done.map_err(|error| Problem::from(error).about(id));
        if done.as_ref().err().is_none_or(Problem::ends_lease) {
            app.fleet.ended(lease);
        }
        match done {
            Ok(done) => ResultAnswer::Done(done),
            Err(problem) => refused(app, Some(id), &problem),
        }
    }
}

impl Wish {
    /// The same, when its fence is one the caller may present.
    async fn of(self, app: &App, caller: &Caller) -> Answer<Self> {
        let (id, lease) = match &self {
            Self::Complete(completion) => (completion.execution_id, completion.fence.lease_id),
            Self::Fail(call) => (call.execution_id, call.fence.lease_id),
        };
        app.check_fence(caller, id, lease).await.map(|()| self)
    }
}

fn refused(app: &App, execution_id: Option<ExecutionId>, problem: &Problem) -> ResultAnswer {
    ResultAnswer::Refused(ResultRefused { execution_id, problem: app.refused_item(problem) })
}

impl TryFrom<ResultBody> for Wish {
    type Error = Problem;

    fn try_from(said: ResultBody) -> Answer<Self> {
        let named =
            |field: &'static str, text: Option<String>| text.ok_or_else(|| Problem::invalid(field, "is missing"));
        match said.op {
            ResultOp::Complete => {
                for (field, said) in [
                    ("reason", said.reason.is_some()),
                    ("category", said.category.is_some()),
                    ("retryable", said.retryable.is_some()),
                    ("retry_after_ms", said.retry_after_ms.is_some()),
                ] {
                    if said {
                        return Err(Problem::invalid(field, "is not a field of complete"));
                    }
                }
                let (result, result_encoding) =
                    payload::taken("result", said.result, said.result_encoding, payload::PAYLOAD_MAX)?;
                Ok(Wish::Complete(CompleteExecution {
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
                let call =
                    failure(said.execution_id, said.fence, reason, category, said.retryable, said.retry_after_ms)?;
                Ok(Wish::Fail(call))
            }
        }
    }
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
        Err(problem) if problem.code() != "worker_not_registered" => return Err(problem),
        _ => {}
    }
    let client = app.operations.client();
    let mut ends = Ends::default();
    let mut asked = Vec::with_capacity(items.len());
    for item in &items {
        let wish = match body::read::<ResultBody>(item.get().as_bytes()).and_then(Wish::try_from) {
            Ok(wish) => wish.of(&app, &caller).await,
            Err(problem) => Err(problem),
        };
        asked.push(match wish {
            Ok(Wish::Complete(call)) => {
                Item::Complete(ends.add(client, client.route_of(&call.execution_id), &call), call)
            }
            Ok(Wish::Fail(call)) => Item::Fail(ends.add(client, client.route_of(&call.execution_id), &call), call),
            Err(problem) => {
                let execution_id = serde_json::from_str::<IdOnly>(item.get()).ok().and_then(|only| only.execution_id);
                Item::Refused(refused(&app, execution_id, &problem))
            }
        });
    }
    let carried = app.engine.waiting().carry(asked.iter().filter_map(Item::completes));
    let (mut replies, claimed) = match body.claim {
        None => (client.run(ends.list).await, None),
        Some(claim) => {
            let (replies, claimed) = claim_after(&app, &caller, &instance, claim, ends).await;
            (replies, Some(claimed))
        }
    };
    let results = asked.into_iter().map(|item| item.answer(&app, &mut replies, &carried)).collect();
    drop(carried);
    let (tasks, claim_error) = match claimed {
        None => (None, None),
        Some(Ok(tasks)) => (Some(tasks.into_iter().map(Into::into).collect()), None),
        Some(Err(problem)) => (None, Some(app.refused_item(&problem))),
    };
    Ok(Json(ResultsAnswered { results, tasks, claim_error }))
}
