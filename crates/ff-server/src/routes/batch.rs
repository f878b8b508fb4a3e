//! `POST /v1/executions:batch`: many submissions as NDJSON or an array, each answered on its own line, in order.

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use ff_api::json;
use ff_engine::new_execution;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;

use ff_api::executions::{SubmitBody, Submitted};
use ff_api::results::AtMost;

use super::submit::trace_of;
use crate::access::Caller;
use crate::app::App;
use crate::body;
use crate::openapi::Described;
use crate::problem::{Answer, ItemProblem, Problem};

const ITEMS_MAX: usize = 10_000;

pub fn routes() -> Described {
    Described::new().with(routes!(batch)).showing::<Line>()
}

/// An array of executions as `POST /v1/executions` takes them, or one of them.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what is read item by item")]
enum BatchBody {
    /// Each is answered on its own, so that a wrong one is refused alone.
    #[schema(value_type = Vec<Object>)]
    Array(Vec<Box<RawValue>>),
    /// One alone.
    #[schema(value_type = Object)]
    One(Box<RawValue>),
}

/// One line of the answer.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = BatchLine)]
enum Line {
    Submitted(Submitted),
    Refused { error: ItemProblem },
}

/// Submits many executions: an array, or one per line; each is answered on its own line, in order.
///
/// A wrong item does not keep the others from being submitted.
#[utoipa::path(
    post,
    path = "/v1/executions:batch",
    request_body(content((BatchBody = "application/json"), (String = "application/x-ndjson"))),
    responses((status = 200, description = "One line per item.", body = String, content_type = "application/x-ndjson")),
    extensions(("x-ff-item" = json!("BatchLine"))),
)]
async fn batch(State(app): State<App>, caller: Caller, request: Request) -> Answer<impl IntoResponse> {
    let trace = trace_of(request.headers());
    let bytes = body::whole(request, body::BATCH).await?;
    let (items, count) = items(&bytes)?;
    if count > ITEMS_MAX {
        return Err(Problem::invalid("body", format!("must hold at most {ITEMS_MAX} executions, got {count}")));
    }
    let read = items.into_iter().map(|item| {
        let mut new = new_execution(json::read::<SubmitBody>(item)?)?;
        new.fields.trace_parent = new.fields.trace_parent.or_else(|| trace.clone());
        Ok(new)
    });
    let answers = app.submit_many(&caller, read.collect()).await?;
    let mut text = Vec::new();
    for answer in answers {
        let line = match answer {
            Ok(submitted) => Line::Submitted(submitted),
            Err(problem) => Line::Refused { error: app.refused_item(&problem) },
        };
        serde_json::to_writer(&mut text, &line).expect("texts and numbers become JSON");
        text.push(b'\n');
    }
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], text))
}

/// The items as they were written, elements of one array or one per line, as far as they may go, and how many there are.
fn items(bytes: &[u8]) -> Answer<(Vec<&[u8]>, usize)> {
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        let AtMost { items, count }: AtMost<&RawValue, ITEMS_MAX> = serde_json::from_slice(bytes)
            .map_err(|error| Problem::invalid("body", format!("is not a JSON array: {error}")))?;
        return Ok((items.into_iter().map(|item| item.get().as_bytes()).collect(), count));
    }
    if let Some(first) = bytes.trim_ascii_start().first().filter(|first| **first != b'{') {
        let problem = format!("must be an array or lines of objects, begins with {:?}", char::from(*first));
        return Err(Problem::invalid("body", problem));
    }
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let items: Vec<&[u8]> = lines.by_ref().take(ITEMS_MAX).collect();
    let count = items.len() + lines.count();
    Ok((items, count))
}
