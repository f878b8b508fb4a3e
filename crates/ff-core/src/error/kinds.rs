//! The kinds of each error variant, and how a refusal is converted to one of them.

use std::fmt;

use super::{Class, Detail, EngineError};
use crate::error_code::ErrorCode;
use crate::state::{LifecyclePhase, Outcome};
use crate::text_enum::text_enum;
use crate::types::{AttemptId, LeaseEpoch};

/// A refusal with nothing for a program to act on but its code and facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: ErrorCode,
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
    CapabilityMismatch { missing: Vec<String> },
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

/// A conflict: another caller won, or something has to change before the same request succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentionKind {
    /// The execution is not running under the presented lease. It has ended, or waits.
    ExecutionNotActive {
        /// The outcome that won; `None` while it has not ended.
        terminal_outcome: Option<Outcome>,
        /// Epoch of its latest lease.
        lease_epoch: Option<LeaseEpoch>,
        lifecycle_phase: LifecyclePhase,
        attempt_id: Option<AttemptId>,
    },
    /// Another temporary conflict, by its code.
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
    IdempotencyConflict { detail: Detail },
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

/// Why the state of the record does not allow the operation.
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
    /// How a call of the store failed; the words are the stable codes.
    TransportKind as "transport failure" {
        /// The store cannot be reached or did not respond in time. The call may or may not have been executed.
        Unavailable = "store_unavailable",
        /// The store has no room; nothing was written.
        Full = "store_full",
        /// The store refuses this program: version, permissions, another library.
        Refused = "store_refused",
        /// The library raised, or its reply cannot be read: a defect.
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

/// The entity of a not-found code: `execution_not_found` → `execution`.
pub(super) fn entity(code: ErrorCode) -> &'static str {
    if code == ErrorCode::WaitpointNotOpen {
        // Named differently from an operator's waitpoint, because the error must not show whether there is one.
        return "open waitpoint";
    }
    let text = code.as_str();
    text.split_once("_not_").map_or(text, |(entity, _)| entity)
}

/// The error for a code with its facts.
pub(super) fn read(code: ErrorCode, detail: Detail) -> EngineError {
    match typed(code, &detail) {
        Ok(Some(error)) => error,
        Ok(None) => by_class(code, detail),
        Err(field) => EngineError::Corrupt { key: format!("detail of {code}"), field: field.to_owned() },
    }
}

/// The codes with their own data. `Err` names the fact that is missing or unreadable.
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
            // The library describes the problem in words.
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
