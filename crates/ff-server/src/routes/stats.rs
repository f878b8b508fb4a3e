//! `GET /v1/stats` and `/v1/capabilities`: what the store holds, and what this server can do.

use axum::Json;
use axum::extract::State;
use ff_api::Ask;
use ff_api::server::{GetCapabilities, GetStats, ServerCapabilities};
use ff_engine::Handle as _;

use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new().answering::<GetStats>().serving::<GetCapabilities, _>(capabilities)
}

async fn capabilities(State(app): State<App>, caller: Caller) -> JsonAnswer<ServerCapabilities> {
    let of_service = app.service.handle(&caller, Ask::<GetCapabilities>::at(())).await?;
    Ok(Json(ServerCapabilities { authentication: app.guard.authentication().to_owned(), ..of_service }))
}
