//! The kinds of each error variant, and how a refusal becomes one of them.

use std::fmt;

use super::{Class, Detail, EngineError};
use crate::error_code::ErrorCode;
use crate::state::{LifecyclePhase, Outcome};
use crate::text_enum::text_enum;
use crate::types::{AttemptId, LeaseEpoch};

/// A refusal a program has no data to act on beyond its code and facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The stable code.
    pub code: ErrorCode,
    /// The facts that came with it.
    pub detail: Detail,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.as_str())?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

/// Which rule a request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidationKind {
    /// An argument is missing, unknown, mistyped or out of bounds.
    InvalidArgument {
        /// The argument, e.g. `retry.max_attempts`.
        field: String,
    },
    /// The worker lacks capabilities the execution requires.
    CapabilityMismatch {
        /// The tokens it lacks.
        missing: Vec<String>,
    },
    /// Another rule, by its code.
    Refused(ErrorCode),
}

impl ValidationKind {
    pub(super) fn error_code(&self) -> ErrorCode {
        match self {
            ValidationKind::InvalidArgument { .. } => ErrorCode::InvalidArgument,
            ValidationKind::CapabilityMismatch { .. } => ErrorCode::NotCapable,
            ValidationKind::Refused(code) => *code,
        }
    }
}

impl fmt::Display for ValidationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValidationKind::InvalidArgument { field } => write!(f, "invalid argument {field}"),
            ValidationKind::CapabilityMismatch { missing } => {
                write!(f, "worker lacks required capabilities {}", missing.join(", "))
            }
            ValidationKind::Refused(code) => f.write_str(code.as_str()),
        }
    }
}

/// Who was first, or what has to change before the same request succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentionKind {
    /// The execution is not running under the presented lease: it ended, or waits.
    ExecutionNotActive {
        /// The outcome that won, once there is one.
        terminal_outcome: Option<Outcome>,
        /// The epoch of its latest lease.
        lease_epoch: Option<LeaseEpoch>,
        /// Where it stands.
        lifecycle_phase: LifecyclePhase,
        /// Its latest attempt.
        attempt_id: Option<AttemptId>,
    },
    /// Another moment that passes, by its code.
    Refused(Refused),
}

impl ContentionKind {
    pub(super) fn error_code(&self) -> ErrorCode {
        match self {
            ContentionKind::ExecutionNotActive { .. } => ErrorCode::ExecutionNotActive,
            ContentionKind::Refused(refused) => refused.code,
        }
    }
}

impl fmt::Display for ContentionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentionKind::ExecutionNotActive { terminal_outcome, lease_epoch, lifecycle_phase, .. } => {
                write!(f, "execution not active: it is {lifecycle_phase}")?;
                if let Some(outcome) = terminal_outcome {
                    write!(f, ", outcome {outcome}")?;
                }
                if let Some(epoch) = lease_epoch {
                    write!(f, ", epoch {epoch}")?;
                }
                Ok(())
            }
            ContentionKind::Refused(refused) => refused.fmt(f),
        }
    }
}

/// What the request contradicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// The same key or id was submitted with a different body.
    IdempotencyConflict {
        /// The facts about the first submission.
        detail: Detail,
    },
    /// Another conflict, by its code.
    Refused(Refused),
}

impl ConflictKind {
    pub(super) fn error_code(&self) -> ErrorCode {
        match self {
            ConflictKind::IdempotencyConflict { .. } => ErrorCode::IdempotencyConflict,
            ConflictKind::Refused(refused) => refused.code,
        }
    }
}

impl fmt::Display for ConflictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConflictKind::IdempotencyConflict { detail } => {
                write!(f, "the same key or id was submitted with a different body")?;
                if detail.is_empty() { Ok(()) } else { write!(f, ": {detail}") }
            }
            ConflictKind::Refused(refused) => refused.fmt(f),
        }
    }
}

/// Why the state of the record does not allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// A newer lease exists.
    StaleLease,
    /// The lease ran out before the call arrived.
    LeaseExpired,
    /// An operator took the lease away.
    LeaseRevoked,
    /// Another state, by its code.
    Refused(Refused),
}

impl StateKind {
    pub(super) fn error_code(&self) -> ErrorCode {
        match self {
            StateKind::StaleLease => ErrorCode::StaleLease,
            StateKind::LeaseExpired => ErrorCode::LeaseExpired,
            StateKind::LeaseRevoked => ErrorCode::LeaseRevoked,
            StateKind::Refused(refused) => refused.code,
        }
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateKind::StaleLease => f.write_str("stale lease: a newer one exists"),
            StateKind::LeaseExpired => f.write_str("lease expired before the call arrived"),
            StateKind::LeaseRevoked => f.write_str("lease revoked by an operator"),
            StateKind::Refused(refused) => refused.fmt(f),
        }
    }
}

text_enum! {
    /// How asking the store failed; the words are the stable codes.
    TransportKind as "transport failure" {
        /// It cannot be reached or did not answer in time; the call may or may not have happened.
        Unavailable = "store_unavailable",
        /// It has no room; nothing was written.
        Full = "store_full",
        /// It will not serve us: version, permissions, another library.
        Refused = "store_refused",
        /// The library raised or its answer cannot be read: a defect.
        Defect = "internal",
        /// This process closed its connection.
        Closed = "closed",
    }
}

impl TransportKind {
    pub(super) fn class(self) -> Class {
        match self {
            TransportKind::Unavailable | TransportKind::Full => Class::Retryable,
            TransportKind::Refused | TransportKind::Defect | TransportKind::Closed => Class::Terminal,
        }
    }
}

/// What a not-found code looked for: `execution_not_found` → `execution`.
pub(super) fn entity(code: ErrorCode) -> &'static str {
    if code == ErrorCode::WaitpointNotOpen {
        // Not the same as a waitpoint an operator looks for: this says nothing about whether there is one.
        return "open waitpoint";
    }
    let text = code.as_str();
    text.split_once("_not_").map_or(text, |(entity, _)| entity)
}

/// The error that a code with its facts means.
pub(super) fn read(code: ErrorCode, detail: Detail) -> EngineError {
    match typed(code, &detail) {
        Ok(Some(error)) => error,
        Ok(None) => by_class(code, detail),
        Err(field) => EngineError::Corrupt { key: format!("detail of {code}"), field: field.to_owned() },
    }
}

/// The codes with data of their own; `Err` names the fact that is missing or unreadable.
fn typed(code: ErrorCode, detail: &Detail) -> Result<Option<EngineError>, &'static str> {
    Ok(Some(match code {
        ErrorCode::ExecutionNotActive => EngineError::Contention(ContentionKind::ExecutionNotActive {
            terminal_outcome: detail.parse("terminal_outcome")?,
            lease_epoch: detail.parse::<u64>("lease_epoch")?.map(LeaseEpoch::new),
            lifecycle_phase: detail.parse("lifecycle_phase")?.ok_or("lifecycle_phase")?,
            attempt_id: detail.parse("attempt_id")?,
        }),
        ErrorCode::StaleLease => EngineError::State(StateKind::StaleLease),
        ErrorCode::LeaseExpired => EngineError::State(StateKind::LeaseExpired),
        ErrorCode::LeaseRevoked => EngineError::State(StateKind::LeaseRevoked),
        ErrorCode::IdempotencyConflict => {
            EngineError::Conflict(ConflictKind::IdempotencyConflict { detail: detail.clone() })
        }
        ErrorCode::InvalidArgument => EngineError::Validation {
            kind: ValidationKind::InvalidArgument { field: detail.get("field").ok_or("field")?.to_owned() },
            // The library says what is wrong in words.
            detail: detail.get("problem").map_or_else(|| detail.to_string(), str::to_owned),
        },
        ErrorCode::NotCapable => EngineError::Validation {
            kind: ValidationKind::CapabilityMismatch {
                missing: detail
                    .get("missing")
                    .map(|tokens| tokens.split(',').map(str::to_owned).collect())
                    .unwrap_or_default(),
            },
            detail: detail.to_string(),
        },
        ErrorCode::CorruptRecord => EngineError::Corrupt {
            key: detail.get("key").ok_or("key")?.to_owned(),
            field: detail.get("field").ok_or("field")?.to_owned(),
        },
        _ => return Ok(None),
    }))
}

fn by_class(code: ErrorCode, detail: Detail) -> EngineError {
    match code.class() {
        Class::NotFound => EngineError::NotFound { entity: entity(code) },
        Class::Invalid => EngineError::Validation { kind: ValidationKind::Refused(code), detail: detail.to_string() },
        Class::Retryable => EngineError::Contention(ContentionKind::Refused(Refused { code, detail })),
        Class::Conflict => EngineError::Conflict(ConflictKind::Refused(Refused { code, detail })),
        Class::Terminal | Class::Corrupt => EngineError::State(StateKind::Refused(Refused { code, detail })),
    }
}
