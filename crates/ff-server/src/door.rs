//! What every request passes on its way in and out: its id, who may ask this server from where, and the body of problems.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use uuid::Uuid;

use crate::problem::{Answer, Problem};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_MAX: usize = 128;
const PART_SHOWN_MAX: usize = 64;

/// Knows the address this server listens on, and the names it goes by.
#[derive(Clone, Debug)]
pub struct Door {
    address: SocketAddr,
    hosts: Arc<[String]>,
}

/// Lets a request in, runs it, and gives every answer its id.
pub async fn pass(State(door): State<Door>, request: Request, next: Next) -> Response {
    let request_id = request_id(request.headers());
    let (method, path) = (request.method().clone(), shown(request.uri().path()));
    let answer = match door.admit(&request) {
        // A handler that panics has changed nothing it has not committed; the next request starts afresh.
        Ok(()) => AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(%method, path, request_id, "a handler panicked");
            Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR).into_response()
        }),
        Err(problem) => problem.into_response(),
    };
    tracing::debug!(%method, path, request_id, status = answer.status().as_u16(), "answered");
    finish(answer, &request_id)
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

/// A path for the log. No name in it is this long, but a token that was put in the wrong place is.
fn shown(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').map(|part| if part.len() > PART_SHOWN_MAX { "…" } else { part }).collect();
    parts.join("/")
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
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Marks a failing answer that has its own body.
#[derive(Clone, Copy)]
pub struct Said;

impl Door {
    /// The door of a server that listens here and is called by these names.
    pub fn new(address: SocketAddr, hosts: Vec<String>) -> Self {
        Self { address, hosts: hosts.into() }
    }

    /// Refuses other hosts' names (a page that resolved its name to this address) and state changes from other sites.
    fn admit(&self, request: &Request) -> Answer<()> {
        if matches!(request.uri().path(), "/livez" | "/readyz" | "/healthz") {
            return Ok(());
        }
        let headers = request.headers();
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).or_else(|| request.uri().host());
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
        let door = Door::new("127.0.0.1:7433".parse().unwrap(), Vec::new());
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
