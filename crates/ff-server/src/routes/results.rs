//! `POST /v1/workers/{instance}/results`: many ends at once, and the next claim with them.

use axum::Json;
use axum::extract::{Request, State};
use ff_api::tasks::{Fence, TaskDone, TaskOutcome};
use ff_core::types::ExecutionId;
use ff_engine::waiting::Completing;
use ff_script::Answers;
use ff_script::client::Asked;
use ff_script::generated::{CompleteExecution, CompleteExecutionReply, FailExecution};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;
use uuid::Uuid;

use super::tasks::failure;
use super::worker_protocol::{ClaimBody, claim_after};
use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body::{self, AtMost};
use crate::fleet::Ends;
use crate::openapi::{Described, vocabulary};
use crate::payload::{self, Encoding};
use crate::problem::{Answer, ItemProblem, Problem};
use crate::shape::task::TaskShape;

const RESULTS_MAX: usize = 4_096;

pub fn routes() -> Described {
    Described::new().with(routes!(results))
}

/// An end of one task.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResultBody {
    execution_id: ExecutionId,
    fence: Fence,
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
    Fail(FailExecution),
}

/// What became of an item before the store was asked.
enum Item {
    Complete(Asked<CompleteExecution>, CompleteExecution),
    Fail(Asked<FailExecution>, FailExecution),
    Refused(ItemAnswer),
}

impl Item {
    /// The execution it completes.
    fn completes(&self) -> Option<ExecutionId> {
        match self {
            Self::Complete(_, call) => Some(call.execution_id),
            Self::Fail(..) | Self::Refused(_) => None,
        }
    }

    fn answer(self, app: &App, replies: &mut Answers, carried: &Completing) -> ItemAnswer {
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
            Ok(done) => ItemAnswer::Done(done),
            Err(problem) => ItemAnswer::Refused { execution_id: Some(id), problem: app.refused_item(&problem) },
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
                    fence: self.fence,
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
    let client = app.operations.client();
    let mut ends = Ends::default();
    let mut asked = Vec::with_capacity(items.len());
    for item in &items {
        let wish = match body::read::<ResultBody>(item.get().as_bytes()).and_then(ResultBody::wish) {
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
                Item::Refused(ItemAnswer::Refused { execution_id, problem: app.refused_item(&problem) })
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
        Some(Ok(tasks)) => (Some(tasks.into_iter().map(TaskShape::from).collect()), None),
        Some(Err(problem)) => (None, Some(app.refused_item(&problem))),
    };
    Ok(Json(Answered { results, tasks, claim_error }))
}
