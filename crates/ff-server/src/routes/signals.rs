//! `POST /v1/waitpoints/{id}/signals`: an answer from outside, under a waitpoint token and no other credential.
//!
//! The token is verified before the store is asked. Whatever keeps a genuine token from being accepted is answered with the
//! same body: whoever holds one learns nothing about waitpoints that are not theirs.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use ff_api::Ask;
use ff_api::waitpoints::{DeliverSignal, SignalBody, SignalDelivered};
use ff_core::types::{WaitpointId, WaitpointToken};
use ff_engine::{Handle as _, Principal};

use super::submit::idempotency_key;
use crate::access::{Peer, unauthorized};
use crate::app::{App, Waitpoint};
use crate::body::Body;
use crate::openapi::Described;
use crate::problem::{Answer, Problem};

const SCHEME: &str = "Waitpoint";

pub fn routes() -> Described {
    Described::new().serving::<DeliverSignal, _>(answered)
}

async fn answered(
    State(app): State<App>,
    Waitpoint(waitpoint_id): Waitpoint,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Body(mut body): Body<SignalBody>,
) -> Response {
    let known = token(&headers, body.token.take())
        .and_then(|token| Ok((app.waitpoints()?.keys().verify(token.as_str()), token)));
    let answer = match known {
        // First of all: a caller without a token of this store learns nothing about the rest of the request.
        Ok((Err(_), _)) => {
            return app.guard.failed(peer.map(|Extension(peer)| peer), Problem::invalid_token(), SCHEME);
        }
        Ok((Ok(_), token)) => deliver(&app, waitpoint_id, &headers, token, body).await,
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
    waitpoint_id: WaitpointId,
    headers: &HeaderMap,
    token: WaitpointToken,
    body: SignalBody,
) -> Answer<SignalDelivered> {
    let idempotency_key = idempotency_key(headers, body.idempotency_key)?;
    let ask = Ask::<DeliverSignal>::with(waitpoint_id, SignalBody { token: Some(token), idempotency_key, ..body });
    Ok(app.service.handle(&Principal::nobody(), ask).await?)
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
