//! Whether a caller may still be answered: tokens expire and are revoked while streams and long polls go on.
//!
//! A revocation is announced to every server, so an answer under way looks its token up again at once. Should the announcement
//! be lost, it does so every four seconds anyway; all answers under way ask at the same moments, and one lookup serves all
//! that go by the same token.

use std::pin::Pin;
use std::sync::LazyLock;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::MatchedPath;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use tokio::time::Instant;

use super::Caller;
use super::guard::{UNKNOWN_TOKEN, unauthorized};
use crate::app::App;
use crate::form::Form;
use crate::problem::{Answer, Problem};

/// How often a token is looked up while an answer goes on.
const LOOK_EVERY: Duration = Duration::from_secs(4);
/// How old a lookup may be that an answer under way relies on.
const LOOK_AGE_MAX: Duration = Duration::from_millis(500);
/// What the moments of [`LOOK_EVERY`] are counted from.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl App {
    /// Refuses a caller whose token has expired or was revoked since its request came in.
    ///
    /// A store that does not answer refuses nobody here: whatever the caller asks for next meets it.
    pub async fn check_standing(&self, caller: &Caller) -> Answer<()> {
        let Some(digest) = caller.token() else { return Ok(()) };
        match self.guard.credentials.find_again(&self.operations, digest, LOOK_AGE_MAX).await {
            Ok(None) => Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", UNKNOWN_TOKEN)),
            Ok(Some(_)) => Ok(()),
            Err(error) => {
                tracing::debug!(%error, "whether a token is still good is not known");
                Ok(())
            }
        }
    }

    /// Returns when the caller's token is no longer good; never for one that cannot be revoked.
    async fn standing_lost(&self, caller: &Caller) -> Problem {
        if caller.token().is_none() {
            return std::future::pending().await;
        }
        let mut revoked = self.guard.revoked.subscribe();
        loop {
            let periods = BEGAN.elapsed().as_nanos() / LOOK_EVERY.as_nanos() + 1;
            let next = *BEGAN + LOOK_EVERY * u32::try_from(periods).unwrap_or(u32::MAX);
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                // The sender lives as long as the app.
                _ = revoked.changed() => {}
            }
            if let Err(problem) = self.check_standing(caller).await {
                return problem;
            }
        }
    }
}

/// True for routes that wait or stream: their answers may outlast the caller's rights.
pub fn may_last(request: &Parts) -> bool {
    let path = request.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    request.method == Method::GET || ["/claim", "/attend", "/results"].iter().any(|end| path.ends_with(end))
}

/// The answer, given up with 401 when the caller's token ends first; a stream ends with an error instead.
pub async fn while_good(app: App, caller: Caller, answer: impl Future<Output = Response>) -> Response {
    if caller.token().is_none() {
        return answer.await;
    }
    let answer = tokio::select! {
        answer = answer => answer,
        problem = app.standing_lost(&caller) => return unauthorized(problem, "Bearer"),
    };
    match Form::of(&answer) {
        None => answer,
        Some(form) => {
            let (head, body) = answer.into_parts();
            let rest = Rest { app, caller, form, pieces: body.into_data_stream(), over: false };
            Response::from_parts(head, Body::from_stream(watched(rest)))
        }
    }
}

/// What is left of a stream.
struct Rest {
    app: App,
    caller: Caller,
    form: Form,
    pieces: BodyDataStream,
    over: bool,
}

fn watched(rest: Rest) -> impl Stream<Item = Result<Bytes, axum::Error>> {
    let lost: Pin<Box<dyn Future<Output = Problem> + Send>> = {
        let (app, caller) = (rest.app.clone(), rest.caller.clone());
        Box::pin(async move { app.standing_lost(&caller).await })
    };
    stream::unfold((rest, lost), |(mut rest, mut lost)| async move {
        if rest.over {
            return None;
        }
        let piece = tokio::select! {
            // The end of the caller's rights comes before whatever is ready to be sent.
            biased;
            problem = &mut lost => {
                rest.over = true;
                Ok(rest.form.failed(&problem))
            }
            piece = rest.pieces.next() => piece?,
        };
        Some((piece, (rest, lost)))
    })
}
