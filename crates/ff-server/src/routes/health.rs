//! `/livez`, `/readyz`, `/healthz`: one word, without credentials.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use utoipa_axum::routes;

use crate::app::App;
use crate::door::Said;
use crate::openapi::Described;

const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

pub fn routes() -> Described {
    Described::new().with(routes!(live)).with(routes!(ready)).with(routes!(healthy))
}

/// The process runs.
#[utoipa::path(get, path = "/livez", responses((status = 200, body = String, content_type = "text/plain")))]
async fn live() -> &'static str {
    "ok"
}

/// Ready while the store answers and has room for new work, and the server is not stopping.
#[utoipa::path(get, path = "/readyz", responses(
    (status = 200, description = "`ok`", body = String, content_type = "text/plain"),
    (status = 503, description = "`unavailable`, `store_full` or `stopping`", body = String, content_type = "text/plain"),
))]
async fn ready(app: State<App>) -> Response {
    state(app).await
}

/// The same as `/readyz`.
#[utoipa::path(get, path = "/healthz", responses(
    (status = 200, description = "`ok`", body = String, content_type = "text/plain"),
    (status = 503, description = "`unavailable`, `store_full` or `stopping`", body = String, content_type = "text/plain"),
))]
async fn healthy(app: State<App>) -> Response {
    state(app).await
}

async fn state(State(app): State<App>) -> Response {
    if app.stop.is_cancelled() {
        return word(StatusCode::SERVICE_UNAVAILABLE, "stopping");
    }
    match tokio::time::timeout(STORE_ANSWERS_WITHIN, app.operations.now()).await {
        Ok(Ok(_)) if app.operations.facts().full => word(StatusCode::SERVICE_UNAVAILABLE, "store_full"),
        Ok(Ok(_)) => word(StatusCode::OK, "ok"),
        Ok(Err(_)) | Err(_) => word(StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    }
}

fn word(status: StatusCode, word: &'static str) -> Response {
    let mut response = (status, word).into_response();
    response.extensions_mut().insert(Said);
    response
}
