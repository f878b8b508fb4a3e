//! Every refusal and failure as `application/problem+json` with a stable code.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ff_core::error::{ConflictKind, ContentionKind, Detail, EngineError, StateKind, ValidationKind};
use ff_core::{ErrorCode, error::Class};
use ff_engine::FeedError;
use ff_script::Error;
use serde::Serialize;
use utoipa::ToSchema;

/// What a handler answers.
pub type Answer<T> = Result<T, Problem>;

/// A refusal on its way to the client; the door writes its body, which names the request.
#[derive(Clone, Debug)]
pub struct Problem(Box<Facts>);

#[derive(Clone, Debug)]
struct Facts {
    status: StatusCode,
    code: &'static str,
    detail: String,
    fields: BTreeMap<String, String>,
    facts: BTreeMap<String, String>,
    retryable: bool,
}

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

/// Codes of this server, with their status and what they mean. The library's have theirs from it.
pub const OWN: &[(&str, StatusCode, &str)] = &[
    ("unauthenticated", StatusCode::UNAUTHORIZED, "A token is missing, unknown, revoked or expired."),
    ("forbidden", StatusCode::FORBIDDEN, "The token's roles or scope do not cover this, or another site asks."),
    ("not_found", StatusCode::NOT_FOUND, "There is nothing at this path."),
    ("key_not_found", StatusCode::NOT_FOUND, "No signing key has this name."),
    ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED, "This path does not take this method."),
    ("too_slow", StatusCode::REQUEST_TIMEOUT, "The body came too slowly to wait for the rest of it."),
    ("keys_fixed", StatusCode::CONFLICT, "The signing keys come from the environment and are changed there."),
    ("cursor_expired", StatusCode::GONE, "Events behind this cursor are no longer kept."),
    ("too_large", StatusCode::PAYLOAD_TOO_LARGE, "The body or a field is larger than its limit."),
    ("wrong_host", StatusCode::MISDIRECTED_REQUEST, "The Host header names another server."),
    ("too_many_failures", StatusCode::TOO_MANY_REQUESTS, "Too many failed credentials from this address."),
    ("internal", StatusCode::INTERNAL_SERVER_ERROR, "The server made a mistake; its log has the details."),
    ("store_refused", StatusCode::INTERNAL_SERVER_ERROR, "The store refuses this server's commands."),
    ("closed", StatusCode::SERVICE_UNAVAILABLE, "The server is stopping."),
    ("keys_unavailable", StatusCode::SERVICE_UNAVAILABLE, "No token can be signed: the keys cannot be used."),
    ("too_many_connections", StatusCode::SERVICE_UNAVAILABLE, "The server holds as many connections as it may."),
    ("store_unavailable", StatusCode::SERVICE_UNAVAILABLE, "The store does not answer."),
    ("store_full", StatusCode::INSUFFICIENT_STORAGE, "The store has no room for more."),
];

/// Every code with its status and what it means.
pub fn meanings() -> impl Iterator<Item = (&'static str, StatusCode, &'static str)> {
    let library = ErrorCode::ALL.iter().map(|code| (code.as_str(), status_of(code.as_str(), code.class()), code.doc()));
    library.chain(OWN.iter().copied())
}

/// The code itself, its status and what it means; nothing when it is none.
pub fn meaning(code: &str) -> Option<(&'static str, StatusCode, &'static str)> {
    meanings().find(|(known, _, _)| *known == code)
}

/// A problem of one item of a batch.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ItemProblem {
    /// The status of an answer about this one alone.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    code: &'static str,
    detail: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    facts: BTreeMap<String, String>,
    retryable: bool,
}

impl From<ff_api::Invalid> for Problem {
    fn from(invalid: ff_api::Invalid) -> Self {
        match invalid.too_large {
            Some(max) => Self::too_large(&invalid.field, max),
            None => Self::invalid(invalid.field, invalid.problem),
        }
    }
}

impl Problem {
    /// A problem with a code of its own.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let retryable = matches!(
            status,
            StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::INSUFFICIENT_STORAGE
        );
        Self(Box::new(Facts {
            status,
            code,
            detail: detail.into(),
            fields: BTreeMap::new(),
            facts: BTreeMap::new(),
            retryable,
        }))
    }

    /// A field of the request is wrong.
    pub fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        let joint = if SENTENCES.iter().any(|begin| problem.starts_with(begin)) { ": " } else { " " };
        let mut made = Self::new(StatusCode::BAD_REQUEST, "invalid_argument", format!("{field}{joint}{problem}"));
        made.0.fields.insert(field, problem);
        made
    }

    /// A field or a body is larger than its limit.
    pub fn too_large(field: &str, max: usize) -> Self {
        let mut made =
            Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("{field} is larger than {max} bytes"));
        made.0.fields.insert(field.to_owned(), format!("must be at most {max} bytes"));
        made
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
    pub fn about(mut self, what: impl Display) -> Self {
        self.0.detail = format!("{what}: {}", self.0.detail);
        self
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// What is wrong, in words.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// True when asking again later, the same way, may succeed.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// True when the lease presented is over, whatever was asked under it.
    pub fn ends_lease(&self) -> bool {
        matches!(
            self.0.code,
            "stale_lease"
                | "lease_expired"
                | "lease_revoked"
                | "execution_not_active"
                | "execution_not_found"
                | "hard_breach"
        )
    }

    /// The same problem of one item of a batch.
    pub fn of_item(&self) -> ItemProblem {
        let facts = &self.0;
        ItemProblem {
            status: facts.status.as_u16(),
            code: facts.code,
            detail: facts.detail.clone(),
            fields: facts.fields.clone(),
            facts: facts.facts.clone(),
            retryable: facts.retryable,
        }
    }

    /// The body, with the request it answers.
    pub fn document(&self, request_id: &str) -> Vec<u8> {
        let facts = &self.0;
        let title = meaning(facts.code).map_or("A problem", |(_, _, meaning)| meaning);
        let document = Document {
            r#type: format!("urn:flowfabric:error:{}", facts.code),
            title,
            status: facts.status.as_u16(),
            code: facts.code,
            detail: &facts.detail,
            fields: &facts.fields,
            facts: &facts.facts,
            retryable: facts.retryable,
            request_id,
        };
        serde_json::to_vec(&document).expect("texts and numbers become JSON")
    }
}

impl IntoResponse for Problem {
    /// Headers only: the door writes the body, since only it knows the request's id.
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(self.0.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The status of a stable code. What a user can bring about is never a 5xx.
fn status_of(code: &str, class: Class) -> StatusCode {
    match code {
        "lane_full" | "at_capacity" => return StatusCode::TOO_MANY_REQUESTS,
        "invalid_token" => return StatusCode::UNAUTHORIZED,
        "store_full" => return StatusCode::INSUFFICIENT_STORAGE,
        "store_unavailable" | "closed" | "try_again" => return StatusCode::SERVICE_UNAVAILABLE,
        "not_capable" => return StatusCode::CONFLICT,
        _ => {}
    }
    match class {
        Class::Invalid => StatusCode::BAD_REQUEST,
        Class::NotFound => StatusCode::NOT_FOUND,
        Class::Conflict => StatusCode::CONFLICT,
        Class::Retryable => StatusCode::SERVICE_UNAVAILABLE,
        Class::Terminal | Class::Corrupt => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn facts_of(error: &EngineError) -> BTreeMap<String, String> {
    let named = |detail: &Detail| detail.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    match error {
        EngineError::Contention(ContentionKind::ExecutionNotActive {
            terminal_outcome,
            lease_epoch,
            lifecycle_phase,
            attempt_id,
        }) => {
            let facts = [
                ("lifecycle_phase", Some(lifecycle_phase.to_string())),
                ("terminal_outcome", terminal_outcome.map(|outcome| outcome.to_string())),
                ("lease_epoch", lease_epoch.map(|epoch| epoch.to_string())),
                ("attempt_id", attempt_id.map(|id| id.to_string())),
            ];
            facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
        }
        EngineError::Contention(ContentionKind::Refused(refused))
        | EngineError::Conflict(ConflictKind::Refused(refused))
        | EngineError::State(StateKind::Refused(refused)) => named(&refused.detail),
        EngineError::Conflict(ConflictKind::IdempotencyConflict { detail }) => named(detail),
        EngineError::Validation { kind: ValidationKind::CapabilityMismatch { missing }, .. } => {
            BTreeMap::from([("missing".to_owned(), missing.join(","))])
        }
        _ => BTreeMap::new(),
    }
}

/// Arguments of the library whose fields are those of a request's body.
const ARGUMENTS: [&str; 5] = ["submission.", "waitpoint.", "budget.", "quota.", "report."];

/// How problems of a field begin that are sentences of their own; others begin with the verb that goes with the field.
const SENTENCES: [&str; 4] = ["give ", "a ", "there ", "tag_key "];

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        if let EngineError::Validation { kind: ValidationKind::InvalidArgument { field }, detail } = &error {
            // The library's argument is the request's body.
            let argument = ARGUMENTS.into_iter().find_map(|argument| field.strip_prefix(argument));
            let field = argument.unwrap_or(field);
            return Self::invalid(field, detail);
        }
        let mut problem = Self::new(status_of(error.code(), error.class()), error.code(), error.to_string());
        problem.0.facts = facts_of(&error);
        problem.0.retryable = error.is_retryable();
        if problem.0.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(%error, "a request failed");
        }
        problem
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::from(EngineError::from(error))
    }
}

impl From<FeedError> for Problem {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::CursorExpired { oldest } => {
                let mut problem = Self::new(
                    StatusCode::GONE,
                    "cursor_expired",
                    "events behind this cursor are no longer kept; go on from the oldest cursor or from `start`",
                );
                problem.0.facts.insert("oldest".to_owned(), oldest.to_string());
                problem
            }
            FeedError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_library_has_the_status_of_the_api() {
        use StatusCode as S;
        for &code in ErrorCode::ALL {
            let detail = [("lifecycle_phase", "terminal"), ("key", "k"), ("field", "f")];
            let detail = detail.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let problem = Problem::from(EngineError::from_refusal(code, detail));
            let expected = match code {
                ErrorCode::InvalidArgument | ErrorCode::CapabilityInvalid | ErrorCode::CycleDetected => S::BAD_REQUEST,
                ErrorCode::InvalidToken => S::UNAUTHORIZED,
                ErrorCode::LaneFull | ErrorCode::AtCapacity => S::TOO_MANY_REQUESTS,
                ErrorCode::TryAgain
                | ErrorCode::LaneUnseen
                | ErrorCode::LaneDepthNeeded
                | ErrorCode::CapacityUnknown
                | ErrorCode::FlowChanged
                | ErrorCode::UsagePending
                | ErrorCode::SummaryChanged => S::SERVICE_UNAVAILABLE,
                ErrorCode::CorruptRecord | ErrorCode::PartitionMismatch | ErrorCode::ImportUnfinished => {
                    S::INTERNAL_SERVER_ERROR
                }
                code if code.class() == Class::NotFound => S::NOT_FOUND,
                _ => S::CONFLICT,
            };
            assert_eq!(problem.0.status, expected, "{code}");
            assert_eq!(problem.code(), code.as_str());
        }
    }

    #[test]
    fn a_field_and_its_problem_read_as_a_sentence() {
        for (field, problem, detail) in [
            ("limit", "must be in 1..=1000, got 5000", "limit must be in 1..=1000, got 5000"),
            ("delay_ms", "give delay_until or delay_ms, not both", "delay_ms: give delay_until or delay_ms, not both"),
            ("edges[1]", "there is another edge between these", "edges[1]: there is another edge between these"),
        ] {
            assert_eq!(Problem::invalid(field, problem).0.detail, detail);
        }
    }

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
