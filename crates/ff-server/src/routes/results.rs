//! `POST /v1/workers/{instance}/results`: many ends at once, and the next claim with them.

use axum::Json;
use axum::extract::{Request, State};
use ff_api::results::{ResultAnswer, ResultsAnswered, ResultsBody, ResultsOrList, SendResults};

use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body;
use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new().serving::<SendResults, _>(results)
}

async fn results(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    request: Request,
) -> JsonAnswer<ResultsAnswered> {
    let bytes = body::whole(request, body::BATCH).await?;
    let body: ResultsBody = match bytes.trim_ascii_start().first() {
        Some(b'[') => ResultsOrList::Bare(body::read_any(&bytes)?).into(),
        _ => body::read(&bytes)?,
    };
    let answered = app.results(&caller, &instance, body, app.still_may(&caller)).await?;
    for answer in &answered.results {
        if let ResultAnswer::Refused(refused) = answer {
            app.metrics.process.refused(&refused.problem.code);
        }
    }
    if let Some(problem) = &answered.claim_error {
        app.metrics.process.refused(&problem.code);
    }
    Ok(Json(answered))
}
