//! The HTTP client of `ff server`: requests for the operations of the API, and streams of lines.
//!
//! Workers, the admin client and the command line all ask through this one.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ff_api::problem::Facts;
use ff_api::{Ask, Nothing, Operation, Problem};
use ff_core::EngineError;
use ff_core::error::TransportKind;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::SdkError;
use crate::config::Secret;

/// How long a request of a worker may take beyond what it asks the server to wait.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How much of an answer that is not the API's is repeated.
const FOREIGN_MAX: usize = 200;

/// Where a server is, and how it is asked.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where it listens, e.g. `http://127.0.0.1:7433`.
    pub url: String,
    /// The bearer token, unless the server runs without credentials.
    pub token: Option<Secret>,
    /// The certificate that signed the server's, as PEM, when the system does not know it; needs the feature `tls`.
    pub ca_cert: Option<PathBuf>,
    /// Requests go through the proxy that the environment names. The default is straight to the server.
    pub through_proxy: bool,
    /// How long a request may take beyond what it asks the server to wait; the default is 15 s.
    pub limit: Duration,
}

impl HttpOptions {
    /// A server at this URL, without credentials.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None, ca_cert: None, through_proxy: false, limit: REQUEST_LIMIT }
    }
}

/// A client of one server; cheap to clone.
#[derive(Clone)]
pub struct HttpClient {
    client: reqwest::Client,
    base: String,
    token: Option<Secret>,
    limit: Duration,
}

/// An answer: what it means, and the bytes it came as.
#[derive(Clone, Debug)]
pub struct Answered<T> {
    /// What it means.
    pub value: T,
    /// The body.
    pub bytes: Vec<u8>,
    /// The HTTP status.
    pub status: u16,
}

/// How a server is.
#[derive(Clone, Debug)]
pub struct Health {
    /// It takes requests and reaches its store.
    pub ready: bool,
    /// What it said.
    pub said: String,
    /// Its clock as the `Date` header has it, in whole seconds.
    pub date: Option<String>,
}

/// Why a request was not answered as it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The server refused the request.
    #[error(transparent)]
    Refused(#[from] Problem),
    /// Whatever answered is no FlowFabric server, or stands in front of one.
    #[error("{asked} was answered with {status} by no FlowFabric server: {said}")]
    Foreign {
        /// The method and the path.
        asked: String,
        /// The HTTP status.
        status: u16,
        /// How the answer begins.
        said: String,
    },
    /// There was no answer, or only a part of it.
    #[error("{asked}: {source}")]
    Lost {
        /// The method and the path.
        asked: String,
        /// Why, as far as it can be told.
        cause: Lost,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer is not what this version knows.
    #[error("the answer of {asked} cannot be read: {source}")]
    Unreadable {
        /// The method and the path.
        asked: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// Nobody listens there.
    Absent,
    /// The server's certificate is not trusted, for this reason.
    Untrusted(String),
    /// The server expects `https://` instead of `http://`, or the reverse.
    OtherScheme,
    /// The connection broke, or the time was over.
    Cut,
}

impl From<HttpError> for SdkError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Refused(problem) => problem.into(),
            HttpError::Foreign { status, said, .. } => {
                let retryable = status >= 500 || status == StatusCode::TOO_MANY_REQUESTS.as_u16();
                SdkError::Http { status, code: None, detail: said, retryable }
            }
            HttpError::Lost { asked, source, .. } => SdkError::Transport { context: asked, source },
            unreadable @ HttpError::Unreadable { .. } => {
                EngineError::Transport { kind: TransportKind::Defect, detail: unreadable.to_string() }.into()
            }
        }
    }
}

/// A client that trusts the servers whose certificates this one signed.
#[cfg(feature = "tls")]
fn trusting(client: reqwest::ClientBuilder, file: &Path) -> Result<reqwest::ClientBuilder, SdkError> {
    let refuse = |message: String| SdkError::config("connect", "ca_cert", message);
    let unusable = |error: &dyn std::fmt::Display| refuse(format!("cannot be used: {}: {error}", file.display()));
    let pem = std::fs::read(file).map_err(|error| unusable(&error))?;
    let certificate = reqwest::Certificate::from_pem(&pem).map_err(|error| unusable(&error))?;
    Ok(client.add_root_certificate(certificate))
}

#[cfg(not(feature = "tls"))]
fn trusting(_: reqwest::ClientBuilder, _: &Path) -> Result<reqwest::ClientBuilder, SdkError> {
    Err(SdkError::config("connect", "ca_cert", "needs the feature `tls`"))
}

impl HttpClient {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// When the URL or the certificate cannot be used.
    pub fn new(options: HttpOptions) -> Result<Self, SdkError> {
        let HttpOptions { url, token, ca_cert, through_proxy, limit } = options;
        let refuse = |message: String| SdkError::config("connect", "backend", message);
        let parsed = reqwest::Url::parse(&url).map_err(|error| refuse(format!("is no URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(refuse(format!("must be an http:// or https:// URL, got {url:?}")));
        }
        if parsed.scheme() == "https" && !cfg!(feature = "tls") {
            return Err(refuse("needs the feature `tls` for an https:// URL".to_owned()));
        }
        let mut client = reqwest::Client::builder().connect_timeout(CONNECT_LIMIT);
        if !through_proxy {
            client = client.no_proxy();
        }
        // Reading all authorities the system trusts takes a while, and nothing in the clear needs them.
        #[cfg(feature = "tls")]
        {
            client = client.tls_built_in_root_certs(parsed.scheme() == "https");
        }
        if let Some(file) = &ca_cert {
            client = trusting(client, file)?;
        }
        let client = client.build().map_err(|error| refuse(format!("cannot be used: {error}")))?;
        Ok(Self { client, base: url.trim_end_matches('/').to_owned(), token, limit })
    }

    /// The server's address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.base
    }

    /// Carries one operation; the server may take `wait` longer than usual.
    ///
    /// # Errors
    /// When the server refuses, or does not answer as this version expects.
    pub async fn ask<O>(&self, ask: &Ask<O>, wait: Duration) -> Result<Answered<O::Answer>, HttpError>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
    {
        let path = O::url(&ask.at, &ask.query);
        // An empty body is left out.
        let body = (size_of::<O::Body>() > 0).then(|| serde_json::to_vec(&ask.body).expect("a body is JSON"));
        let (status, bytes) = self.send(method_of(O::METHOD), &path, body, wait).await?;
        Ok(Answered { value: read(&path, &bytes)?, bytes, status })
    }

    /// Submits many executions: one JSON object per line, each answered on a line of its own, in order.
    ///
    /// # Errors
    /// When the request is refused as a whole, or not answered.
    pub async fn submit_lines(&self, lines: Vec<u8>) -> Result<Vec<u8>, HttpError> {
        self.send(Method::POST, BATCH, Some(lines), Duration::ZERO).await.map(|(_, answer)| answer)
    }

    /// How the server is; an answer that it is not ready is no error.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn health(&self) -> Result<Health, HttpError> {
        let asked = "GET /readyz".to_owned();
        let request = self.request(Method::GET, "/readyz").timeout(self.limit);
        let answer = request.send().await.map_err(|error| lost(asked.clone(), error))?;
        let date = answer.headers().get("date").and_then(|date| date.to_str().ok()).map(str::to_owned);
        let ready = answer.status().is_success();
        let said = answer.text().await.map_err(|error| lost(asked, error))?.trim().to_owned();
        Ok(Health { ready, said, date })
    }

    /// Opens the stream of an operation, one JSON object per line; nothing limits how long it goes on.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub async fn lines<O>(&self, ask: &Ask<O>) -> Result<Lines, HttpError>
    where
        O: Operation<Query: Serialize, Body = Nothing>,
    {
        let path = O::url(&ask.at, &ask.query);
        let (asked, request) = (format!("GET {path}"), self.request(Method::GET, &path));
        let answer = request.header("accept", "application/x-ndjson").send().await;
        let answer = answer.map_err(|error| lost(asked.clone(), error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(Lines { answer, asked, buffer: Vec::new(), read: 0 });
        }
        let body = answer.bytes().await.map_err(|error| lost(asked.clone(), error))?;
        Err(refused(asked, status, &body))
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.as_str());
        }
        if let Some(trace) = crate::trace::current() {
            request = request.header("traceparent", trace);
        }
        request
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        wait: Duration,
    ) -> Result<(u16, Vec<u8>), HttpError> {
        let asked = || format!("{method} {path}");
        let mut request = self.request(method.clone(), path).timeout(wait + self.limit);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let answer = request.send().await.map_err(|error| lost(asked(), error))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| lost(asked(), error))?.to_vec();
        if status.is_success() { Ok((status.as_u16(), body)) } else { Err(refused(asked(), status, &body)) }
    }
}

/// Where many executions are submitted at once.
const BATCH: &str = "/v1/executions:batch";

fn method_of(method: ff_api::operation::Method) -> Method {
    use ff_api::operation::Method as Declared;
    match method {
        Declared::Get => Method::GET,
        Declared::Post => Method::POST,
        Declared::Put => Method::PUT,
        Declared::Patch => Method::PATCH,
        Declared::Delete => Method::DELETE,
    }
}

/// Reads an answer, or one line of it; no text at all is an empty object.
pub(crate) fn read<T: DeserializeOwned>(path: &str, body: &[u8]) -> Result<T, HttpError> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|source| HttpError::Unreadable { asked: path.to_owned(), source })
}

/// The error behind an answer that is no success.
pub(crate) fn refused(asked: String, status: StatusCode, body: &[u8]) -> HttpError {
    match serde_json::from_slice::<Facts>(body) {
        Ok(facts) => HttpError::Refused(facts.into()),
        Err(_) => {
            let said = String::from_utf8_lossy(body).chars().take(FOREIGN_MAX).collect();
            HttpError::Foreign { asked, status: status.as_u16(), said }
        }
    }
}

fn lost(asked: String, error: reqwest::Error) -> HttpError {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        causes.push(inner.to_string());
        cause = inner.source();
    }
    let said = |text: &str| causes.iter().any(|cause| cause.contains(text));
    // A server that speaks TLS answers plain text with an alert, which is no HTTP.
    let other_scheme = said("invalid HTTP version") || said("InvalidContentType");
    let cause = match causes.last().filter(|last| last.contains("certificate")) {
        Some(problem) => Lost::Untrusted(problem.clone()),
        None if other_scheme => Lost::OtherScheme,
        None if error.is_connect() => Lost::Absent,
        None => Lost::Cut,
    };
    HttpError::Lost { asked, cause, source: Box::new(error.without_url()) }
}

/// A stream of lines.
pub struct Lines {
    answer: reqwest::Response,
    asked: String,
    buffer: Vec<u8>,
    /// How much of the buffer has been given out.
    read: usize,
}

impl Lines {
    /// The next line that is not blank, and `None` after the last one. Nothing is lost when the call is given up.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        loop {
            let rest = &self.buffer[self.read..];
            let line = match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let line = rest[..end].trim_ascii().to_vec();
                    self.read += end + 1;
                    line
                }
                None => {
                    self.buffer.drain(..self.read);
                    self.read = 0;
                    match self.answer.chunk().await {
                        Ok(Some(chunk)) => self.buffer.extend_from_slice(&chunk),
                        Ok(None) if self.buffer.trim_ascii().is_empty() => return Ok(None),
                        Ok(None) => return Ok(Some(std::mem::take(&mut self.buffer).trim_ascii().to_vec())),
                        Err(error) => return Err(lost(self.asked.clone(), error)),
                    }
                    continue;
                }
            };
            // The server keeps a stream alive with blank lines.
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(status: StatusCode, body: &[u8]) -> SdkError {
        refused("GET /".to_owned(), status, body).into()
    }

    #[test]
    fn a_problem_is_the_refusal_it_carries() {
        let body = json!({ "status": 409, "code": "execution_not_active", "detail": "x", "retryable": false, "facts": { "lifecycle_phase": "terminal", "terminal_outcome": "success" } });
        let error = problem(StatusCode::CONFLICT, body.to_string().as_bytes());
        assert_eq!(error.engine().map(EngineError::code), Some("execution_not_active"));

        let body = json!({ "status": 409, "code": "instance_in_use", "detail": "x", "retryable": false });
        assert!(problem(StatusCode::CONFLICT, body.to_string().as_bytes()).is_instance_in_use());

        let body = json!({ "status": 503, "code": "store_unavailable", "detail": "x", "retryable": true });
        assert!(problem(StatusCode::SERVICE_UNAVAILABLE, body.to_string().as_bytes()).is_transport());

        let body = json!({ "status": 400, "code": "invalid_argument", "detail": "x", "retryable": false, "fields": { "pct": "must be 0 to 100" } });
        let error = problem(StatusCode::BAD_REQUEST, body.to_string().as_bytes());
        assert_eq!(error.to_string(), "invalid argument pct: must be 0 to 100");

        let error = problem(StatusCode::BAD_GATEWAY, b"<html>");
        assert!(matches!(error, SdkError::Http { status: 502, code: None, retryable: true, .. }));
    }

    #[test]
    fn an_answer_that_lacks_a_field_is_an_error_and_not_an_empty_text() {
        let renamed = br#"{"execution":"0192f3a0-0000-7000-8000-000000000001","outcome":"success"}"#;
        let error = read::<ff_api::executions::ResultAnswer>("/x", renamed).expect_err("the id has another name");
        assert!(error.to_string().contains("execution_id"), "{error}");
    }
}
