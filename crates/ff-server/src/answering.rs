//! Carries a declared operation: the request is read into its types, the service answers, the answer is written.

use axum::Json;
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ff_api::operation::Method;
use ff_api::{Ask, Operation};
use ff_engine::{Handle, Service};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access::Caller;
use crate::app::App;
use crate::body;
use crate::problem::{Answer, Problem};
use crate::query::Query;

/// What one request for an operation holds.
pub async fn asked<O>(request: Request) -> Answer<Ask<O>>
where
    O: Operation<Query: DeserializeOwned, Body: DeserializeOwned>,
{
    let (mut parts, body) = request.into_parts();
    let named = RawPathParams::from_request_parts(&mut parts, &()).await;
    let named = named.map_err(|_| Problem::invalid("path", "cannot be read"))?;
    let part = |name: &str| named.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
    let at = O::read_at(part)?;
    let Query(query) = Query::from_request_parts(&mut parts, &()).await?;
    // What only names something takes no body, and passes over one that comes all the same.
    let names_only = matches!(O::METHOD, Method::Get | Method::Delete) && size_of::<O::Body>() == 0;
    let body = match names_only {
        true => body::read(b"")?,
        false => body::read(&body::whole(Request::from_parts(parts, body), O::BODY_BYTES_MAX).await?)?,
    };
    Ok(Ask { at, query, body })
}

/// Answers a request for an operation.
pub async fn answer<O>(State(app): State<App>, caller: Caller, request: Request) -> Answer<Response>
where
    O: Operation<Query: DeserializeOwned, Body: DeserializeOwned, Answer: Serialize>,
    Service: Handle<O>,
{
    let answer = app.service.handle(&caller, asked::<O>(request).await?).await?;
    written::<O>(&answer)
}

/// The answer as a response.
pub fn written<O: Operation<Answer: Serialize>>(answer: &O::Answer) -> Answer<Response> {
    let status = StatusCode::from_u16(O::status(answer)).expect("operations declare statuses of HTTP");
    Ok(match status {
        StatusCode::NO_CONTENT => status.into_response(),
        status => (status, Json(answer)).into_response(),
    })
}
