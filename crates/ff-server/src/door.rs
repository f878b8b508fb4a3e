//! What every request passes on its way in and out: its id, who may ask this server from where, and the body of problems.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ff_keys::BearerToken;
use futures::FutureExt;
use tracing::field::Empty;
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::metrics::Process;
use crate::outside::Origin;
use crate::problem::{Answer, Problem};
use crate::unread;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_MAX: usize = 128;
const NAME_MAX: usize = 64;

/// Knows the address this server listens on, and the names it goes by.
#[derive(Clone, Debug)]
pub struct Door {
    address: SocketAddr,
    hosts: Arc<[String]>,
    origins: Arc<[Origin]>,
    process: Arc<Process>,
}

/// Lets a request in, runs it as a part of its trace, and gives every answer its id.
pub async fn pass(State(door): State<Door>, request: Request, next: Next) -> Response {
    let request_id = request_id(request.headers());
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let answering = door.process.request(request.method(), route.as_deref());
    let (request, unread) = unread::watch(request);
    let span = span_of(&request, route.as_deref(), &request_id);
    let passing = async {
        let answer = match door.admit(&request) {
            // A handler that panics has changed nothing it has not committed; the next request starts afresh.
            Ok(()) => AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!("a handler panicked");
                Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR).into_response()
            }),
            Err(problem) => problem.into_response(),
        };
        let problem = answer.extensions().get::<Problem>();
        if let Some(problem) = problem {
            door.process.refused(problem.code());
        }
        say(answer.status(), problem, answering.answered(answer.status().as_u16()));
        answer
    };
    let mut answer = finish(passing.instrument(span).await, &request_id);
    if let Some(unread) = unread {
        unread.settle(&mut answer).await;
    }
    answer
}

/// The span of a request: what is logged while it is served says which one it was. No part of it can hold a secret: of the path
/// it has the template and the ids.
fn span_of(request: &Request, route: Option<&str>, request_id: &str) -> Span {
    let named = route.unwrap_or("none");
    // Every line of the log, whatever its level, knows its request.
    let span = tracing::error_span!(
        "request",
        otel.kind = "server",
        request_id,
        method = %request.method(),
        route = named,
        namespace = Empty,
        lane = Empty,
        execution_id = Empty,
        flow_id = Empty,
        worker = Empty,
    );
    let traceparent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    ff_trace::follow(&span, traceparent);
    ff_trace::name(&span, || format!("{} {named}", request.method()));
    let of_worker = route.is_some_and(|route| route.starts_with("/v1/workers/"));
    for (name, value) in route.into_iter().flat_map(|route| route.split('/').zip(request.uri().path().split('/'))) {
        let is_id = value.parse::<Uuid>().is_ok();
        match name {
            "{id}" if is_id => span.record("execution_id", value),
            "{flow}" if is_id => span.record("flow_id", value),
            "{name}" if of_worker && is_name(value) => span.record("worker", value),
            _ => &span,
        };
    }
    span
}

/// One line per request; what is the server's own fault is a warning.
fn say(status: StatusCode, problem: Option<&Problem>, took: Duration) {
    let (code, status_code) = (problem.map(Problem::code), status.as_u16());
    let duration_ms = took.as_secs_f64() * 1_000.0;
    ff_trace::note(&Span::current(), "http.response.status_code", i64::from(status_code));
    if status.is_server_error() {
        ff_trace::fail(&Span::current());
        let detail = problem.map(Problem::detail);
        tracing::warn!(status = status_code, duration_ms, code, detail, "failed");
    } else if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
        tracing::info!(status = status_code, duration_ms, code, "turned away");
    } else {
        tracing::debug!(status = status_code, duration_ms, code, "answered");
    }
}

/// The id the client sent, when it is fit to be sent back, else a fresh one.
fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get(&REQUEST_ID).and_then(|id| id.to_str().ok());
    match sent {
        Some(id) if !id.is_empty() && id.len() <= REQUEST_ID_MAX && id.bytes().all(|byte| byte.is_ascii_graphic()) => {
            id.to_owned()
        }
        _ => Uuid::now_v7().to_string(),
    }
}

/// True for a name of a path that may be logged: not for a token that was put in the wrong place.
fn is_name(part: &str) -> bool {
    part.len() <= NAME_MAX && BearerToken::parse(part).is_none()
}

fn finish(mut answer: Response, request_id: &str) -> Response {
    let problem = answer.extensions_mut().remove::<Problem>();
    let failed = answer.status().is_client_error() || answer.status().is_server_error();
    let said = answer.extensions_mut().remove::<Said>().is_some();
    if let Some(problem) = problem {
        *answer.body_mut() = Body::from(problem.document(request_id));
    } else if failed && !said {
        // A path or a method nobody serves; the method's answer says which are.
        let allow = answer.headers_mut().remove(header::ALLOW);
        let problem = Problem::of_status(answer.status());
        answer = problem.clone().into_response();
        *answer.body_mut() = Body::from(problem.document(request_id));
        if let Some(allow) = allow {
            answer.headers_mut().insert(header::ALLOW, allow);
        }
    }
    let headers = answer.headers_mut();
    headers.insert(REQUEST_ID, HeaderValue::from_str(request_id).expect("an id is printable ASCII"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Marks a failing answer that has its own body.
#[derive(Clone, Copy)]
pub struct Said;

impl Door {
    /// The door of a server that listens here, is called by these names, and serves pages of these origins.
    pub fn new(address: SocketAddr, hosts: Vec<String>, origins: Vec<Origin>, process: Arc<Process>) -> Self {
        Self { address, hosts: hosts.into(), origins: origins.into(), process }
    }

    /// Refuses other hosts' names (a page that resolved its name to this address) and state changes from other sites.
    fn admit(&self, request: &Request) -> Answer<()> {
        if matches!(request.uri().path(), "/livez" | "/readyz" | "/healthz") {
            return Ok(());
        }
        let headers = request.headers();
        if headers.get_all(header::HOST).iter().nth(1).is_some() {
            return Err(Problem::invalid("Host", "is given twice"));
        }
        // A request may name its server in its first line; that name counts as much as the Host header's.
        let target = request.uri().authority().map(|authority| authority.as_str());
        if target.is_some_and(|target| !self.is_ours(target)) {
            return Err(Problem::invalid("target", "names another server"));
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).or(target);
        if !host.is_some_and(|host| self.is_ours(host)) {
            let status = StatusCode::MISDIRECTED_REQUEST;
            return Err(Problem::new(
                status,
                "wrong_host",
                format!("this server is not {}", host.unwrap_or("named by the request")),
            ));
        }
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("?"));
        if origin.is_some_and(|sent| self.origins.iter().any(|origin| origin.is(sent))) {
            return Ok(());
        }
        let own_origin = origin.is_none_or(|origin| {
            origin
                .parse::<Uri>()
                .ok()
                .and_then(|uri| uri.authority().map(|authority| self.is_ours(authority.as_str())))
                .unwrap_or(false)
        });
        if !own_origin || site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "forbidden",
                "state is not changed on behalf of another site",
            ));
        }
        Ok(())
    }

    fn is_ours(&self, authority: &str) -> bool {
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse::<u16>().ok()),
            _ => (authority, Some(80)),
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        // A page elsewhere can give its own name any address, but not its address another name: on a network every
        // address is ours.
        let ours = name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|host| name.eq_ignore_ascii_case(host))
            || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || !self.address.ip().is_loopback());
        // Behind a forwarded port the number differs; the name is what a rebinding attack cannot choose.
        ours && port.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_ours() {
        let door = Door::new("127.0.0.1:7433".parse().unwrap(), Vec::new(), Vec::new(), Process::begin());
        for ours in ["localhost", "localhost:7433", "127.0.0.1:7433", "[::1]:7433", "LOCALHOST:80"] {
            assert!(door.is_ours(ours), "{ours}");
        }
        for other in
            ["evil.example", "evil.example:7433", "localhost.evil.example:7433", "10.0.0.1:7433", "", "localhost:x"]
        {
            assert!(!door.is_ours(other), "{other}");
        }
    }
}
