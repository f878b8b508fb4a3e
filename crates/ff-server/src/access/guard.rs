//! What stands between a matched route and its handler: who asks, and whether the table and the scope let them.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ff_keys::BearerToken;
use tokio::sync::watch;

use super::failures::Failures;
use super::table::{access_to, methods_of};
use super::{Access, Caller, Credentials, Principal};
use super::{scope, standing};
use crate::app::App;
use crate::problem::{Answer, Problem};

pub(super) const UNKNOWN_TOKEN: &str = "the token is unknown, was revoked or has expired";

/// The address a request came from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Who is let through.
pub struct Guard {
    pub(super) credentials: Credentials,
    failures: Failures,
    /// Rises when a token may have been revoked: answers under way look theirs up again.
    pub(super) revoked: watch::Sender<u64>,
}

impl Guard {
    /// Lets those through who have these credentials.
    pub fn new(credentials: Credentials) -> Self {
        Self { credentials, failures: Failures::default(), revoked: watch::Sender::new(0) }
    }

    /// What a request has to show.
    pub fn authentication(&self) -> &'static str {
        match self.credentials {
            Credentials::NotAsked => "none",
            Credentials::Asked { .. } => "bearer",
        }
    }

    /// Forgets the tokens it has seen, because one of them was revoked.
    pub fn forget(&self) {
        self.credentials.forget();
        self.revoked.send_modify(|generation| *generation += 1);
    }

    /// A refusal of credentials that were shown and are nobody's; too many of one address are put off.
    pub fn failed(&self, peer: Option<Peer>, problem: Problem, scheme: &'static str) -> Response {
        match peer.and_then(|Peer(address)| self.failures.note(address, Instant::now())) {
            None => unauthorized(problem, scheme),
            Some(wait) => {
                let detail = "too many failed credentials from this address";
                let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", detail);
                let mut response = problem.into_response();
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
                response
            }
        }
    }
}

/// A refusal that says which credentials are asked for.
pub fn unauthorized(problem: Problem, scheme: &'static str) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
    response
}

/// Runs the handler for a caller who may ask it.
pub async fn pass(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut request, body) = request.into_parts();
    match admit(&app, &mut request).await {
        Ok(caller) => {
            let lasting = standing::may_last(&request).then(|| caller.clone());
            request.extensions.insert(caller);
            let answer = next.run(Request::from_parts(request, body));
            match lasting {
                Some(caller) => standing::while_good(app, caller, answer).await,
                None => answer.await,
            }
        }
        Err(refused) => refused,
    }
}

async fn admit(app: &App, request: &mut Parts) -> Result<Caller, Response> {
    let path = request.extensions.get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let roles = match access_to(request.method.as_str(), &path) {
        Some(Access::Open | Access::WaitpointToken) => return Ok(Caller::for_good(Principal::nobody())),
        Some(Access::Roles(roles)) => roles,
        // The path is served for other methods, which the router would say; what the table does not know is not run.
        None => return Err(wrong_method(&path)),
    };
    let caller = authenticate(app, request).await?;
    if !caller.has_any(roles) {
        let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        let detail =
            format!("{} may not do this; it takes one of the roles {}, admin", caller.name(), names.join(", "));
        return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail).into_response());
    }
    scope::check(app, &caller, &path, request).await.map_err(IntoResponse::into_response)?;
    Ok(caller)
}

fn wrong_method(path: &str) -> Response {
    let mut response = Problem::of_status(StatusCode::METHOD_NOT_ALLOWED).into_response();
    let allowed = HeaderValue::from_str(&methods_of(path).join(", ")).expect("methods are printable ASCII");
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

async fn authenticate(app: &App, request: &Parts) -> Result<Caller, Response> {
    // Who is not asked may show anything.
    let shown = match app.guard.credentials {
        Credentials::NotAsked => Ok(None),
        Credentials::Asked { .. } => bearer(&request.headers),
    };
    let shown = match shown {
        Ok(shown) => shown,
        Err(problem) => return Err(failed(app, request, problem)),
    };
    match app.guard.credentials.find(&app.operations, shown.as_ref()).await {
        Ok(Some(who)) => Ok(who),
        Ok(None) => {
            let detail = match shown {
                Some(_) => UNKNOWN_TOKEN,
                None => {
                    "a token is missing: send it as Authorization: Bearer <token>; the server's data directory has the root token in the file root-token"
                }
            };
            Err(failed(app, request, Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)))
        }
        Err(error) => Err(Problem::from(error).into_response()),
    }
}

/// The bearer token of a request; none when it shows none.
fn bearer(headers: &HeaderMap) -> Answer<Option<BearerToken>> {
    let unreadable = || {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "the Authorization header cannot be read: it must be Bearer <token>",
        )
    };
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let text = value.to_str().map_err(|_| unreadable())?;
    let (scheme, token) = text.split_once(' ').ok_or_else(unreadable)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unreadable());
    }
    // What cannot be a token is one that nobody has.
    let unknown = || Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", UNKNOWN_TOKEN);
    BearerToken::parse(token).map(Some).ok_or_else(unknown)
}

/// A refusal for want of credentials.
fn failed(app: &App, request: &Parts, problem: Problem) -> Response {
    // A request that shows nothing is no guess.
    let guessed = request.headers.contains_key(header::AUTHORIZATION);
    let peer = request.extensions.get::<Peer>().copied().filter(|_| guessed);
    app.guard.failed(peer, problem, "Bearer")
}
