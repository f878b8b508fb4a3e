//! `POST /v1/waitpoints/{id}/signals`: an answer from outside, under a waitpoint token and no other credential.
//!
//! The token is verified before the store is asked. Whatever keeps a genuine token from being accepted is answered with the
//! same body: whoever holds one learns nothing about waitpoints that are not theirs.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use ff_core::types::{ExecutionId, SignalId, WaitpointToken};
use ff_engine::{NewSignal, SignalOutcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::submit::idempotency_key;
use crate::access::{Peer, unauthorized};
use crate::app::{App, Waitpoint};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::payload::{self, Encoding};
use crate::problem::{Answer, Problem};

/// The largest payload of a signal.
const SIGNAL_MAX: usize = ff_core::limits::SIGNAL_PAYLOAD_BYTES_MAX;
const SCHEME: &str = "Waitpoint";

pub fn routes() -> Described {
    Described::new().with(routes!(answered))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignalBody {
    execution_id: ExecutionId,
    #[schema(value_type = vocabulary::SignalName)]
    name: String,
    #[schema(value_type = vocabulary::Payload, required = false)]
    payload: Option<Box<RawValue>>,
    payload_encoding: Option<Encoding>,
    #[schema(value_type = Option<vocabulary::Source>)]
    source: Option<String>,
    #[schema(value_type = Option<vocabulary::Source>)]
    source_identity: Option<String>,
    #[schema(value_type = Option<vocabulary::Source>)]
    category: Option<String>,
    #[schema(value_type = Option<vocabulary::CorrelationId>)]
    correlation_id: Option<String>,
    #[schema(value_type = Option<vocabulary::IdempotencyKey>)]
    idempotency_key: Option<String>,
    /// The same in every repetition.
    signal_id: Option<SignalId>,
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>)]
    token: Option<WaitpointToken>,
}

fn secret<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<WaitpointToken>, D::Error> {
    // What is wrong with it is not repeated: it may be a token in the wrong clothes.
    Option::<String>::deserialize(value)
        .map(|text| text.map(WaitpointToken::new))
        .map_err(|_| serde::de::Error::custom("must be text"))
}

#[derive(Serialize, ToSchema)]
#[schema(as = SignalDelivered)]
struct Delivered {
    outcome: &'static str,
    signal_id: SignalId,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'static str>,
}

/// Delivers a signal under the token of a waitpoint.
#[utoipa::path(
    post,
    path = "/v1/waitpoints/{waitpoint}/signals",
    params(Waitpoint, ff_api::parts::IdempotencyKey),
    request_body = SignalBody,
    responses((status = 200, body = Delivered)),
    extensions(("x-ff-codes" = json!("waitpoint_not_open invalid_token signal_not_allowed signals_full keys_unavailable"))),
)]
async fn answered(
    State(app): State<App>,
    Waitpoint(waitpoint_id): Waitpoint,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Body(mut body): Body<SignalBody>,
) -> Response {
    let answer = match token(&headers, body.token.take()) {
        // First of all: nothing about the rest of the request is said to whoever has no token of ours.
        Ok(token) if app.waitpoints.keys().verify(token.as_str()).is_err() => {
            return app.guard.failed(peer.map(|Extension(peer)| peer), Problem::invalid_token(), SCHEME);
        }
        Ok(token) => deliver(&app, waitpoint_id, &headers, &token, body).await,
        Err(problem) => Err(problem),
    };
    match answer {
        Ok(delivered) => Json(delivered).into_response(),
        Err(problem) if problem.code() == "invalid_token" => unauthorized(problem, SCHEME),
        Err(problem) => problem.into_response(),
    }
}

async fn deliver(
    app: &App,
    waitpoint_id: ff_core::types::WaitpointId,
    headers: &HeaderMap,
    token: &WaitpointToken,
    body: SignalBody,
) -> Answer<Delivered> {
    let (payload, payload_encoding) = payload::taken("payload", body.payload, body.payload_encoding, SIGNAL_MAX)?;
    let signal = NewSignal {
        signal_id: body.signal_id,
        name: body.name,
        payload: payload.map(|bytes| bytes.0),
        payload_encoding,
        category: body.category,
        source: body.source,
        source_identity: body.source_identity,
        correlation_id: body.correlation_id,
        idempotency_key: idempotency_key(headers, body.idempotency_key)?,
    };
    // The problem is not said to be about anything: it must be the same whatever the reason.
    Ok(match app.waitpoints.deliver(body.execution_id, waitpoint_id, token, signal).await? {
        SignalOutcome::Accepted { signal_id, effect } => {
            Delivered { outcome: "accepted", signal_id, effect: Some(effect.as_str()) }
        }
        SignalOutcome::TriggeredResume { signal_id } => {
            Delivered { outcome: "triggered_resume", signal_id, effect: Some("counted") }
        }
        SignalOutcome::Duplicate { signal_id } => Delivered { outcome: "duplicate", signal_id, effect: None },
    })
}

/// The token of the body, or of `Authorization: Waitpoint <token>`. Other credentials are none here.
fn token(headers: &HeaderMap, body: Option<WaitpointToken>) -> Answer<WaitpointToken> {
    let sent = headers.get_all(header::AUTHORIZATION).iter().find_map(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case(SCHEME).then(|| WaitpointToken::new(token.trim()))
    });
    match (sent, body) {
        (Some(sent), Some(body)) if sent.as_str() != body.as_str() => {
            Err(Problem::invalid("token", "differs from the Authorization header"))
        }
        (Some(token), _) | (None, Some(token)) => Ok(token),
        (None, None) => Err(Problem::invalid_token()),
    }
}
