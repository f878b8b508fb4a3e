//! Every refusal and failure as `application/problem+json` with a stable code.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ff_api::problem::Facts;
use ff_core::error::EngineError;
use ff_engine::FeedError;
use ff_script::Error;
use serde::Serialize;
use utoipa::ToSchema;

pub use ff_api::problem::Facts as ItemProblem;

/// What a handler answers.
pub type Answer<T> = Result<T, Problem>;

/// A refusal on its way to the client; the door writes its body, which names the request.
#[derive(Clone, Debug)]
pub struct Problem(ff_api::Problem);

/// The body of a problem.
#[derive(Serialize, ToSchema)]
pub struct Document<'a> {
    /// A name for the code that is unique beyond this API.
    r#type: String,
    /// What the code means.
    title: &'a str,
    status: u16,
    /// What happened, for programs: it never changes its meaning.
    code: &'a str,
    /// What happened, for people.
    detail: &'a str,
    /// What is wrong, by field of the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    fields: &'a BTreeMap<String, String>,
    /// What the code says more precisely, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    facts: &'a BTreeMap<String, String>,
    /// True when asking again later, the same way, may succeed.
    retryable: bool,
    request_id: &'a str,
}

/// The code itself, its status and what it means; nothing when it is none.
pub fn meaning(code: &str) -> Option<(&'static str, StatusCode, &'static str)> {
    ff_api::problem::meaning(code).map(|(code, status, meaning)| (code, status_of(status), meaning))
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("problems have statuses of HTTP")
}

impl Problem {
    /// A problem with a code of its own.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self(ff_api::Problem::new(status.as_u16(), code, detail))
    }

    /// A field of the request is wrong.
    pub fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self(ff_api::Problem::invalid(field, problem))
    }

    /// A field or a body is larger than its limit.
    pub fn too_large(field: &str, max: usize) -> Self {
        Self(ff_api::Problem::too_large(field, max))
    }

    /// A body did not arrive in the time it may take.
    pub fn too_slow(bytes: usize, within: Duration) -> Self {
        let took = within.as_secs();
        let detail =
            format!("only {bytes} bytes of the body arrived within {took} s: send it again, faster or in parts");
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail)
    }

    /// The problem a status without a body means.
    pub fn of_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("not_found", "there is nothing at this path"),
            StatusCode::METHOD_NOT_ALLOWED => ("method_not_allowed", "this path does not take this method"),
            StatusCode::INTERNAL_SERVER_ERROR => ("internal", "the server made a mistake; its log has the details"),
            _ => ("invalid_argument", "the request cannot be read"),
        };
        Self::new(status, code, detail)
    }

    /// The same, said about this thing.
    pub fn about(self, what: impl Display) -> Self {
        Self(self.0.about(what))
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        self.0.code()
    }

    /// What is wrong, in words.
    pub fn detail(&self) -> &str {
        self.0.detail()
    }

    /// True when the lease presented is over, whatever was asked under it.
    pub fn ends_lease(&self) -> bool {
        self.0.ends_lease()
    }

    /// The same problem of one item of a batch.
    pub fn of_item(&self) -> ItemProblem {
        self.0.facts().clone()
    }

    /// The body, with the request it answers.
    pub fn document(&self, request_id: &str) -> Vec<u8> {
        let Facts { status, code, detail, fields, facts, retryable } = self.0.facts();
        let title = meaning(code).map_or("A problem", |(_, _, meaning)| meaning);
        let document = Document {
            r#type: format!("urn:flowfabric:error:{code}"),
            title,
            status: *status,
            code,
            detail,
            fields,
            facts,
            retryable: *retryable,
            request_id,
        };
        serde_json::to_vec(&document).expect("texts and numbers become JSON")
    }
}

impl IntoResponse for Problem {
    /// Headers only: the door writes the body, since only it knows the request's id.
    fn into_response(self) -> Response {
        let status = status_of(self.0.status());
        let mut response = status.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ff_api::Problem> for Problem {
    fn from(problem: ff_api::Problem) -> Self {
        if problem.status() == 500 {
            tracing::error!(%problem, "a request failed");
        }
        Self(problem)
    }
}

impl From<Problem> for ff_api::Problem {
    fn from(problem: Problem) -> Self {
        problem.0
    }
}

impl From<ff_api::Invalid> for Problem {
    fn from(invalid: ff_api::Invalid) -> Self {
        Self(invalid.into())
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        ff_api::Problem::from(error).into()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        ff_api::Problem::from(error).into()
    }
}

impl From<FeedError> for Problem {
    fn from(error: FeedError) -> Self {
        Self(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_names_the_field_and_the_request() {
        let text = String::from_utf8(Problem::invalid("priority", "must be in 0..=9000").document("r-1")).unwrap();
        for part in [
            r#""code":"invalid_argument""#,
            r#""fields":{"priority":"must be in 0..=9000"}"#,
            r#""request_id":"r-1""#,
            r#""status":400"#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
