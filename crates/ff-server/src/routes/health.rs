//! `/livez`, `/readyz`, `/healthz`: one word, without credentials.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ff_script::Route;
use ff_script::generated::NextDue;

use crate::app::App;
use crate::door::Said;

const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

pub fn routes() -> Router<App> {
    Router::new().route("/livez", get(async || "ok")).route("/readyz", get(ready)).route("/healthz", get(ready))
}

/// Ready while the store answers and the server is not stopping.
async fn ready(State(app): State<App>) -> Response {
    if app.stop.is_cancelled() {
        return word(StatusCode::SERVICE_UNAVAILABLE, "stopping");
    }
    let asked = app.operations.client().call(Route::Execution(0), &NextDue {});
    match tokio::time::timeout(STORE_ANSWERS_WITHIN, asked).await {
        Ok(Ok(_)) => word(StatusCode::OK, "ok"),
        Ok(Err(_)) | Err(_) => word(StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    }
}

fn word(status: StatusCode, word: &'static str) -> Response {
    let mut response = (status, word).into_response();
    response.extensions_mut().insert(Said);
    response
}
