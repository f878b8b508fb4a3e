//! Executions, found, read and steered: the service answers. The wait for a result ends when the server stops.

use axum::extract::{Request, State};
use axum::response::Response;
use ff_api::Ask;
use ff_api::executions::{
    CancelExecution, CancelExecutions, ChangeExecution, DeleteExecution, GetAttempt, GetExecution, GetHistory,
    GetResult, HoldExecution, ListChildren, ListExecutions, ReleaseExecution, ReplayExecution, ReplayExecutions,
    ResultQuery, RevokeLease,
};
use ff_engine::Handle as _;

use crate::access::Caller;
use crate::answering::{asked, written};
use crate::app::App;
use crate::openapi::Described;
use crate::problem::Answer;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListExecutions>()
        .answering::<CancelExecutions>()
        .answering::<ReplayExecutions>()
        .answering::<GetExecution>()
        .answering::<ChangeExecution>()
        .answering::<DeleteExecution>()
        .serving::<GetResult, _>(result)
        .answering::<GetHistory>()
        .answering::<GetAttempt>()
        .answering::<ListChildren>()
        .answering::<CancelExecution>()
        .answering::<ReplayExecution>()
        .answering::<HoldExecution>()
        .answering::<ReleaseExecution>()
        .answering::<RevokeLease>()
}

async fn result(State(app): State<App>, caller: Caller, request: Request) -> Answer<Response> {
    let ask = asked::<GetResult>(request).await?;
    let waits = ask.query.wait_ms.is_some_and(|wait_ms| wait_ms > 0);
    let _open = waits.then(|| app.metrics.process.long_poll());
    let at_once = Ask::<GetResult>::by(ask.at, ResultQuery::default());
    let answer = tokio::select! {
        answer = app.service.handle(&caller, ask) => answer,
        () = app.stop.cancelled() => app.service.handle(&caller, at_once).await,
    };
    written::<GetResult>(&answer?)
}
