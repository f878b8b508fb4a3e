//! `GET /metrics`: everything that is counted, for Prometheus and what reads its text.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::access::Caller;
use crate::app::App;
use crate::metrics::Form;
use crate::problem::{Answer, Problem};

pub fn routes() -> Router<App> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Answer<Response> {
    // The page speaks of every lane at once.
    if caller.is_scoped() {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "metrics are of the whole store: they take a token without namespaces and lanes",
        ));
    }
    let form = Form::asked(&headers);
    let facts = app.operations.client().host().facts();
    let page = app.metrics.page(&app.operations, &facts, form).await;
    Ok(([(header::CONTENT_TYPE, form.content_type())], page).into_response())
}
