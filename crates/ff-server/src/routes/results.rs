//! `POST /v1/workers/{instance}/results`: many ends at once, and the next claim with them.

use axum::Json;
use axum::extract::{Request, State};
use ff_core::types::ExecutionId;
use ff_script::generated::{CompleteExecution, CompleteExecutionReply};
use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;
use uuid::Uuid;

use super::tasks::{TaskDone, fail_with, failure};
use super::worker_protocol::{ClaimBody, claim_after};
use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body::{self, AtMost};
use crate::openapi::{Described, vocabulary};
use crate::payload::{self, Encoding};
use crate::problem::{Answer, ItemProblem, Problem};
use crate::shape::task::{FenceBody, TaskShape};

const RESULTS_MAX: usize = 4_096;
const AT_ONCE: usize = 32;

pub fn routes() -> Described {
    Described::new().with(routes!(results))
}

/// An end of one task.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResultBody {
    execution_id: ExecutionId,
    fence: FenceBody,
    op: Op,
    #[schema(value_type = vocabulary::Payload, required = false)]
    result: Option<Box<RawValue>>,
    result_encoding: Option<Encoding>,
    #[schema(value_type = Option<vocabulary::Reason>)]
    reason: Option<String>,
    #[schema(value_type = Option<vocabulary::Category>)]
    category: Option<String>,
    retryable: Option<bool>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    retry_after_ms: Option<i64>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ResultOp)]
enum Op {
    Complete,
    Fail,
}

/// The results, and the claim that goes with them.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResultsBody {
    #[schema(value_type = Vec<Object>, max_items = 4_096)]
    results: AtMost<Box<RawValue>, RESULTS_MAX>,
    claim: Option<ClaimBody>,
    incarnation: Option<Uuid>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// The results with a claim, or their bare list.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what is read item by item")]
enum ResultsOrList {
    With(ResultsBody),
    #[schema(value_type = Vec<Object>)]
    Bare(Vec<Box<RawValue>>),
}

#[derive(Serialize, ToSchema)]
#[schema(as = ResultsAnswered)]
struct Answered {
    results: Vec<ItemAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<Vec<TaskShape>>,
    /// Why the claim brought nothing; the results stand all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    claim_error: Option<ItemProblem>,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ResultAnswer)]
enum ItemAnswer {
    Done(TaskDone),
    Refused {
        execution_id: Option<ExecutionId>,
        #[serde(flatten)]
        problem: ItemProblem,
    },
}

/// What a result asks for.
enum Wish {
    Complete(CompleteExecution),
    Fail(FenceBody, ff_script::generated::FailExecution),
}

impl Wish {
    /// The same, when its fence is one the caller may present.
    async fn of(self, app: &App, caller: &Caller) -> Answer<Self> {
        let (id, lease) = match &self {
            Self::Complete(completion) => (completion.execution_id, completion.fence.lease_id),
            Self::Fail(fence, call) => (call.execution_id, fence.lease_id),
        };
        app.check_fence(caller, id, lease).await.map(|()| self)
    }
}

impl ResultBody {
    fn wish(self) -> Answer<Wish> {
        let named =
            |field: &'static str, text: Option<String>| text.ok_or_else(|| Problem::invalid(field, "is missing"));
        match self.op {
            Op::Complete => {
                for (field, said) in [
                    ("reason", self.reason.is_some()),
                    ("category", self.category.is_some()),
                    ("retryable", self.retryable.is_some()),
                    ("retry_after_ms", self.retry_after_ms.is_some()),
                ] {
                    if said {
                        return Err(Problem::invalid(field, "is not a field of complete"));
                    }
                }
                let (result, result_encoding) =
                    payload::taken("result", self.result, self.result_encoding, payload::PAYLOAD_MAX)?;
                Ok(Wish::Complete(CompleteExecution {
                    execution_id: self.execution_id,
                    fence: self.fence.into(),
                    result,
                    result_encoding,
                }))
            }
            Op::Fail => {
                if self.result.is_some() || self.result_encoding.is_some() {
                    return Err(Problem::invalid("result", "is not a field of fail"));
                }
                let (reason, category) = (named("reason", self.reason)?, named("category", self.category)?);
                let call =
                    failure(self.execution_id, self.fence, reason, category, self.retryable, self.retry_after_ms)?;
                Ok(Wish::Fail(self.fence, call))
            }
        }
    }
}

/// Just the id of an item that is wrong otherwise.
#[derive(Deserialize)]
struct IdOnly {
    execution_id: Option<ExecutionId>,
}

/// Ends many tasks at once, each answered on its own; the body may ask for the next claim.
#[utoipa::path(
    post,
    path = "/v1/workers/{name}/results",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    request_body = ResultsOrList,
    responses((status = 200, body = Answered)),
    extensions(("x-ff-codes" = json!("worker_not_registered instance_in_use"))),
)]
async fn results(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    request: Request,
) -> JsonAnswer<Answered> {
    let bytes = body::whole(request, body::BATCH).await?;
    let body = if bytes.trim_ascii_start().first() == Some(&b'[') {
        ResultsBody { results: body::read_any(&bytes)?, claim: None, incarnation: None, _request_id: None }
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
    let mut answers: Vec<Option<ItemAnswer>> = items.iter().map(|_| None).collect();
    let (mut completions, mut failures) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let wish = match body::read::<ResultBody>(item.get().as_bytes()).and_then(ResultBody::wish) {
            Ok(wish) => wish.of(&app, &caller).await,
            Err(problem) => Err(problem),
        };
        match wish {
            Ok(Wish::Complete(completion)) => completions.push((index, completion)),
            Ok(Wish::Fail(fence, call)) => failures.push((index, fence, call)),
            Err(problem) => {
                let execution_id = serde_json::from_str::<IdOnly>(item.get()).ok().and_then(|only| only.execution_id);
                answers[index] = Some(ItemAnswer::Refused { execution_id, problem: app.refused_item(&problem) });
            }
        }
    }
    let client = app.operations.client();
    let (places, completions): (Vec<usize>, Vec<_>) =
        completions.into_iter().map(|(index, call)| (index, (client.route_of(&call.execution_id), call))).unzip();
    let carried = app.engine.waiting().carry(completions.iter().map(|(_, call)| call.execution_id));
    let (replies, claimed) = match body.claim {
        None => (client.call_all(&completions).await, None),
        Some(claim) => {
            let (replies, claimed) = claim_after(&app, &caller, &instance, claim, completions.clone()).await;
            (replies, Some(claimed))
        }
    };
    for ((index, (_, completion)), reply) in places.into_iter().zip(completions).zip(replies) {
        let (id, reply) = (completion.execution_id, reply.map_err(Problem::from));
        if matches!(reply, Ok(CompleteExecutionReply::Completed)) {
            carried.completed(&completion);
        }
        if reply.as_ref().err().is_none_or(Problem::ends_lease) {
            app.fleet.ended(completion.fence.lease_id);
        }
        answers[index] = Some(match reply {
            Ok(reply) => {
                let replayed = reply == CompleteExecutionReply::Replayed;
                ItemAnswer::Done(TaskDone::new(id, "completed", replayed))
            }
            Err(problem) => ItemAnswer::Refused { execution_id: Some(id), problem: app.refused_item(&problem) },
        });
    }
    drop(carried);
    let (app_ref, caller_ref) = (&app, &caller);
    let mut failed = stream::iter(failures)
        .map(|(index, fence, call)| async move {
            let id = call.execution_id;
            (index, id, fail_with(app_ref, caller_ref, fence, call).await)
        })
        .buffer_unordered(AT_ONCE);
    while let Some((index, id, answer)) = failed.next().await {
        answers[index] = Some(match answer {
            Ok(done) => ItemAnswer::Done(done),
            Err(problem) => ItemAnswer::Refused { execution_id: Some(id), problem: app.refused_item(&problem) },
        });
    }
    let (tasks, claim_error) = match claimed {
        None => (None, None),
        Some(Ok(tasks)) => (Some(tasks.into_iter().map(TaskShape::from).collect()), None),
        Some(Err(problem)) => (None, Some(app.refused_item(&problem))),
    };
    Ok(Json(Answered { results: answers.into_iter().flatten().collect(), tasks, claim_error }))
}
