//! `GET /v1/webhooks/key`: what a receiver checks webhooks with. No cache keeps it.

use axum::extract::{Request, State};
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use ff_api::webhooks::GetWebhookKeys;
use ff_engine::Handle;

use crate::access::Caller;
use crate::answering::{asked, written};
use crate::app::App;
use crate::openapi::Described;
use crate::problem::Answer;

pub fn routes() -> Described {
    Described::new().serving::<GetWebhookKeys, _>(keys)
}

async fn keys(State(app): State<App>, caller: Caller, request: Request) -> Answer<Response> {
    let keys = app.service.handle(&caller, asked::<GetWebhookKeys>(request).await?).await?;
    Ok(([(CACHE_CONTROL, "no-store")], written::<GetWebhookKeys>(&keys)?).into_response())
}
