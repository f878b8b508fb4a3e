//! Operations with something about HTTP in them: headers that count as fields of the body, and long polls, which are counted.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use ff_api::children::SpawnChildren;
use ff_api::executions::GetResult;
use ff_api::flows::{AddMembers, CancelFlow, SubmitFlow};
use ff_api::graph::GetFlow;
use ff_api::streams::ReadStream;
use ff_api::workers::AttendWorker;
use ff_api::{Ask, Operation};
use ff_engine::{Handle, Service};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access::Caller;
use crate::answering::{asked, written};
use crate::app::App;
use crate::problem::Answer;
use crate::routes::submit::{idempotency_key, trace_of};

/// What a request for an operation says in HTTP alone.
pub trait Carried: Operation + Sized {
    /// Takes over what the headers say.
    fn with_headers(_ask: &mut Ask<Self>, _headers: &HeaderMap) -> Answer<()> {
        Ok(())
    }

    /// True when this request waits for something: it is a long poll.
    fn waits(_ask: &Ask<Self>) -> bool {
        false
    }
}

/// Answers a request for such an operation.
pub async fn answer<O>(State(app): State<App>, caller: Caller, request: Request) -> Answer<Response>
where
    O: Carried<Query: DeserializeOwned, Body: DeserializeOwned, Answer: Serialize>,
    Service: Handle<O>,
{
    let headers = request.headers().clone();
    let mut ask = asked::<O>(request).await?;
    O::with_headers(&mut ask, &headers)?;
    let _open = O::waits(&ask).then(|| app.metrics.process.long_poll());
    written::<O>(&app.service.handle(&caller, ask).await?)
}

impl Carried for AttendWorker {
    fn waits(ask: &Ask<Self>) -> bool {
        ask.body.wait_ms.is_some_and(|wait_ms| wait_ms > 0)
    }
}

impl Carried for GetResult {
    fn waits(ask: &Ask<Self>) -> bool {
        ask.query.wait_ms.is_some_and(|wait_ms| wait_ms > 0)
    }
}

impl Carried for GetFlow {
    fn waits(ask: &Ask<Self>) -> bool {
        ask.query.wait_ms.is_some_and(|wait_ms| wait_ms > 0)
    }
}

impl Carried for CancelFlow {
    fn waits(ask: &Ask<Self>) -> bool {
        ask.body.wait == Some(true)
    }
}

impl Carried for SubmitFlow {
    fn with_headers(ask: &mut Ask<Self>, headers: &HeaderMap) -> Answer<()> {
        ask.body.idempotency_key = idempotency_key(headers, ask.body.idempotency_key.take())?;
        if let Some(trace) = trace_of(headers) {
            ask.body.trace(&trace);
        }
        Ok(())
    }
}

impl Carried for AddMembers {
    fn with_headers(ask: &mut Ask<Self>, headers: &HeaderMap) -> Answer<()> {
        if let Some(trace) = trace_of(headers) {
            ask.body.trace(&trace);
        }
        Ok(())
    }
}

impl Carried for SpawnChildren {
    fn with_headers(ask: &mut Ask<Self>, headers: &HeaderMap) -> Answer<()> {
        if let Some(trace) = trace_of(headers) {
            for child in &mut ask.body.children {
                child.trace_parent.get_or_insert_with(|| trace.clone());
            }
        }
        Ok(())
    }
}

impl Carried for ReadStream {
    fn waits(ask: &Ask<Self>) -> bool {
        ask.query.block_ms.is_some_and(|block_ms| block_ms > 0)
    }
}
