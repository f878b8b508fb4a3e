//! `GET /metrics`: everything that is counted, for Prometheus and what reads its text.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::App;
use crate::metrics::Form;
use crate::openapi::Described;
use crate::problem::{Answer, Problem};

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
