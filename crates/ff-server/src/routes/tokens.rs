//! Access tokens: made, listed and revoked by an admin.

use axum::extract::{Request, State};
use axum::response::Response;
use ff_api::tokens::{CreateToken, ListTokens, RevokeToken};
use ff_engine::Handle;

use crate::access::Caller;
use crate::answering::{asked, written};
use crate::app::App;
use crate::openapi::Described;
use crate::problem::Answer;

pub fn routes() -> Described {
    Described::new().answering::<ListTokens>().answering::<CreateToken>().serving::<RevokeToken, _>(revoke)
}

/// When it answers, this server refuses the token; others do once they hear of it.
async fn revoke(State(app): State<App>, caller: Caller, request: Request) -> Answer<Response> {
    let revoked = app.service.handle(&caller, asked::<RevokeToken>(request).await?).await?;
    app.guard.forget();
    written::<RevokeToken>(&revoked)
}
