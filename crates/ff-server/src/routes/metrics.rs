//! `GET /metrics`: everything that is counted, for Prometheus and what reads its text.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use utoipa_axum::routes;

use crate::app::App;
use crate::metrics::Form;
use crate::openapi::Described;
use crate::problem::Answer;

pub fn routes() -> Described {
    Described::new().with(routes!(metrics))
}

/// Everything that is counted, for Prometheus and what reads its text.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((
        status = 200,
        description = "In the form that Accept asks for.",
        content((String = "text/plain"), (String = "application/openmetrics-text")),
    )),
)]
async fn metrics(State(app): State<App>, headers: HeaderMap) -> Answer<Response> {
    let form = Form::asked(&headers);
    let facts = app.operations.facts();
    let page = app.metrics.page(&app.operations, &facts, form).await;
    Ok(([(header::CONTENT_TYPE, form.content_type())], page).into_response())
}
