//! Why an operation failed, as both transports carry it: a stable code, a sentence, and what is wrong by field.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Display};

use ff_core::error::{ConflictKind, ContentionKind, Detail, EngineError, StateKind, TransportKind, ValidationKind};
use ff_core::{ErrorCode, error::Class};
use ff_script::Error;
use serde::{Deserialize, Serialize};

use crate::Invalid;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(Box<Facts>);

/// A problem as it is written, that of one item of a batch for example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ItemProblem))]
pub struct Facts {
    /// The status of an answer about this alone.
    #[cfg_attr(feature = "openapi", schema(minimum = 400, maximum = 599))]
    pub status: u16,
    /// What happened, for programs: it never changes its meaning.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Cow<'static, str>,
    /// What happened, for people.
    pub detail: String,
    /// What is wrong, by field of the request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// What the code says more precisely, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// True when asking again later, the same way, may succeed.
    pub retryable: bool,
}

/// Codes beside those of the library, with their status and what they mean.
pub const OWN: &[(&str, u16, &str)] = &[
    ("unauthenticated", 401, "A token is missing, unknown, revoked or expired."),
    ("forbidden", 403, "The token's roles or scope do not cover this, or another site asks."),
    ("not_found", 404, "There is nothing at this path."),
    ("key_not_found", 404, "No signing key has this name."),
    ("method_not_allowed", 405, "This path does not take this method."),
    ("too_slow", 408, "The body came too slowly to wait for the rest of it."),
    ("keys_fixed", 409, "The signing keys come from the environment and are changed there."),
    ("cursor_expired", 410, "Events behind this cursor are no longer kept."),
    ("too_large", 413, "The body or a field is larger than its limit."),
    ("wrong_host", 421, "The Host header names another server."),
    ("too_many_failures", 429, "Too many failed credentials from this address."),
    ("internal", 500, "The server made a mistake; its log has the details."),
    ("store_refused", 500, "The store refuses this server's commands."),
    ("closed", 503, "The server is stopping."),
    ("keys_unavailable", 503, "No token can be signed: the keys cannot be used."),
    ("too_many_connections", 503, "The server holds as many connections as it may."),
    ("store_unavailable", 503, "The store does not answer."),
    ("store_full", 507, "The store has no room for more."),
];

/// Every code with its status and what it means.
pub fn meanings() -> impl Iterator<Item = (&'static str, u16, &'static str)> {
    let library = ErrorCode::ALL.iter().map(|code| (code.as_str(), status_of(code.as_str(), code.class()), code.doc()));
    library.chain(OWN.iter().copied())
}

/// The code itself, its status and what it means; `None` for an unknown code.
#[must_use]
pub fn meaning(code: &str) -> Option<(&'static str, u16, &'static str)> {
    meanings().find(|(known, _, _)| *known == code)
}

/// The status of a stable code. What a user can bring about is never a 5xx.
fn status_of(code: &str, class: Class) -> u16 {
    match code {
        "lane_full" | "at_capacity" => return 429,
        "invalid_token" => return 401,
        "store_full" => return 507,
        "store_unavailable" | "closed" | "try_again" => return 503,
        "not_capable" => return 409,
        _ => {}
    }
    match class {
        Class::Invalid => 400,
        Class::NotFound => 404,
        Class::Conflict => 409,
        Class::Retryable => 503,
        Class::Terminal | Class::Corrupt => 500,
    }
}

/// Arguments of the library whose fields are those of a request's body.
const ARGUMENTS: [&str; 5] = ["submission.", "waitpoint.", "budget.", "quota.", "report."];

/// How problems of a field begin that are sentences of their own; others begin with the verb that goes with the field.
const SENTENCES: [&str; 4] = ["give ", "a ", "there ", "tag_key "];

impl Problem {
    /// A problem with a code of its own.
    pub fn new(status: u16, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self(Box::new(Facts {
            status,
            code: code.into(),
            detail: detail.into(),
            fields: BTreeMap::new(),
            facts: BTreeMap::new(),
            retryable: matches!(status, 408 | 429 | 503 | 507),
        }))
    }

    /// A field of the request is wrong.
    pub fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        let joint = if SENTENCES.iter().any(|begin| problem.starts_with(begin)) { ": " } else { " " };
        let mut made = Self::new(400, "invalid_argument", format!("{field}{joint}{problem}"));
        made.0.fields.insert(field, problem);
        made
    }

    /// A field or a body is larger than its limit.
    #[must_use]
    pub fn too_large(field: &str, max: usize) -> Self {
        let mut made = Self::new(413, "too_large", format!("{field} is larger than {max} bytes"));
        made.0.fields.insert(field.to_owned(), format!("must be at most {max} bytes"));
        made
    }

    /// The caller's token does not cover this.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(403, "forbidden", detail)
    }

    /// What a code of the library means by itself.
    #[must_use]
    pub fn of_code(code: ErrorCode) -> Self {
        Self::new(status_of(code.as_str(), code.class()), code.as_str(), code.doc())
    }

    /// The same, said about this thing.
    #[must_use]
    pub fn about(mut self, what: impl Display) -> Self {
        self.0.detail = format!("{what}: {}", self.0.detail);
        self
    }

    /// The same, with a fact more.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Display) -> Self {
        self.0.facts.insert(name.to_owned(), value.to_string());
        self
    }

    /// The same, with a fact more unless it says one of this name.
    #[must_use]
    pub fn fact_or(mut self, name: &str, value: impl Display) -> Self {
        self.0.facts.entry(name.to_owned()).or_insert_with(|| value.to_string());
        self
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The status of an HTTP answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// True when asking again later, the same way, may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Everything it says.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.0
    }

    /// True when the lease presented is over, whatever was asked under it.
    #[must_use]
    pub fn ends_lease(&self) -> bool {
        matches!(
            self.code(),
            "stale_lease"
                | "lease_expired"
                | "lease_revoked"
                | "execution_not_active"
                | "execution_not_found"
                | "hard_breach"
        )
    }

    /// The engine's refusal that it stands for, when it stands for one.
    #[must_use]
    pub fn refusal(&self) -> Option<EngineError> {
        let facts = &self.0;
        let transport = |kind| EngineError::Transport { kind, detail: facts.detail.clone() };
        match facts.code.as_ref() {
            "store_unavailable" => return Some(transport(TransportKind::Unavailable)),
            "store_full" => return Some(transport(TransportKind::Full)),
            _ => {}
        }
        let code: ErrorCode = facts.code.parse().ok()?;
        let mut detail = facts.facts.clone();
        if let Some((field, wrong)) = facts.fields.iter().next() {
            detail.entry("field".to_owned()).or_insert_with(|| field.clone());
            detail.entry("problem".to_owned()).or_insert_with(|| wrong.clone());
        }
        Some(EngineError::from_refusal(code, Detail::from(detail)))
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.detail, self.0.code)
    }
}

impl std::error::Error for Problem {}

impl From<Facts> for Problem {
    fn from(facts: Facts) -> Self {
        Self(Box::new(facts))
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        match invalid.too_large {
            Some(max) => Self::too_large(&invalid.field, max),
            None => Self::invalid(invalid.field, invalid.problem),
        }
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

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        if let EngineError::Validation { kind: ValidationKind::InvalidArgument { field }, detail } = &error {
            // The library's argument is the request's body.
            let argument = ARGUMENTS.into_iter().find_map(|argument| field.strip_prefix(argument));
            return Self::invalid(argument.unwrap_or(field), detail);
        }
        let mut problem = Self::new(status_of(error.code(), error.class()), error.code(), error.to_string());
        problem.0.facts = facts_of(&error);
        problem.0.retryable = error.is_retryable();
        problem
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::from(EngineError::from(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_library_has_the_status_of_the_api() {
        for &code in ErrorCode::ALL {
            let detail = [("lifecycle_phase", "terminal"), ("key", "k"), ("field", "f")];
            let detail = detail.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let problem = Problem::from(EngineError::from_refusal(code, detail));
            let expected = match code {
                ErrorCode::InvalidArgument | ErrorCode::CapabilityInvalid | ErrorCode::CycleDetected => 400,
                ErrorCode::InvalidToken => 401,
                ErrorCode::LaneFull | ErrorCode::AtCapacity => 429,
                ErrorCode::TryAgain
                | ErrorCode::LaneUnseen
                | ErrorCode::LaneDepthNeeded
                | ErrorCode::CapacityUnknown
                | ErrorCode::FlowChanged
                | ErrorCode::UsagePending
                | ErrorCode::SummaryChanged => 503,
                ErrorCode::CorruptRecord | ErrorCode::PartitionMismatch | ErrorCode::ImportUnfinished => 500,
                code if code.class() == Class::NotFound => 404,
                _ => 409,
            };
            assert_eq!(problem.status(), expected, "{code}");
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
            assert_eq!(Problem::invalid(field, problem).detail(), detail);
        }
    }
}
