//! One error for every refusal of the engine. Its variant tells who can act on it, and its code is stable.

mod detail;
mod kinds;

pub use detail::Detail;
pub use kinds::{ConflictKind, ContentionKind, Refused, StateKind, TransportKind, ValidationKind};

use crate::error_code::ErrorCode;
use crate::text_enum::text_enum;

text_enum! {
    /// What a caller can do about an error.
    Class as "error class" {
        /// The same request may succeed later.
        Retryable = "Retryable",
        /// Another caller won, or the state differs from the expected one: read again before the next try.
        Conflict = "Conflict",
        /// Repeating the request changes nothing.
        Terminal = "Terminal",
        /// The request itself is wrong.
        Invalid = "Invalid",
        /// The thing named does not exist.
        NotFound = "NotFound",
        /// Stored data cannot be read; an operator has to look.
        Corrupt = "Corrupt",
    }
}

/// Why the engine refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The thing named does not exist.
    #[error("{entity} not found")]
    NotFound {
        /// The missing entity, e.g. `execution`.
        entity: &'static str,
    },
    /// The request is wrong.
    #[error("{kind}: {detail}")]
    Validation {
        kind: ValidationKind,
        /// The field, the limit and the value.
        detail: String,
    },
    /// Another caller was first, or the state is temporarily wrong.
    #[error("{0}")]
    Contention(ContentionKind),
    /// The request contradicts what is stored.
    #[error("{0}")]
    Conflict(ConflictKind),
    /// The record is not in a state that allows the operation.
    #[error("{0}")]
    State(StateKind),
    /// A stored field cannot be read.
    #[error("corrupt record: field {field} of {key}")]
    Corrupt { key: String, field: String },
    /// The call of the store failed.
    #[error("{kind}: {detail}")]
    Transport {
        kind: TransportKind,
        /// The message of the store or the network.
        detail: String,
    },
}

impl EngineError {
    /// The error for a refusal of the library.
    ///
    /// If the detail lacks a fact of its code, the reply is corrupt data and reported as such.
    #[must_use]
    pub fn from_refusal(code: ErrorCode, detail: Detail) -> Self {
        kinds::read(code, detail)
    }

    /// The code of the refusal, if it came from the library.
    #[must_use]
    pub fn error_code(&self) -> Option<ErrorCode> {
        match self {
            EngineError::NotFound { entity } => ErrorCode::ALL
                .iter()
                .copied()
                .find(|code| code.class() == Class::NotFound && kinds::entity(*code) == *entity),
            EngineError::Validation { kind, .. } => Some(kind.error_code()),
            EngineError::Contention(kind) => Some(kind.error_code()),
            EngineError::Conflict(kind) => Some(kind.error_code()),
            EngineError::State(kind) => Some(kind.error_code()),
            EngineError::Corrupt { .. } => Some(ErrorCode::CorruptRecord),
            EngineError::Transport { .. } => None,
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match (self, self.error_code()) {
            (_, Some(code)) => code.class(),
            (EngineError::Transport { kind, .. }, None) => kind.class(),
            (_, None) => Class::NotFound,
        }
    }

    /// The stable code, e.g. `stale_lease`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match (self, self.error_code()) {
            (_, Some(code)) => code.as_str(),
            (EngineError::Transport { kind, .. }, None) => kind.as_str(),
            (_, None) => "not_found",
        }
    }

    /// True if the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.class() == Class::Retryable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{LifecyclePhase, Outcome};
    use crate::types::{AttemptId, LeaseEpoch};

    fn detail(pairs: &[(&str, &str)]) -> Detail {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_code_keeps_its_code_and_class() {
        for &code in ErrorCode::ALL {
            let whole = detail(&[
                ("lifecycle_phase", "terminal"),
                ("terminal_outcome", "success"),
                ("lease_epoch", "4"),
                ("key", "k"),
                ("field", "f"),
            ]);
            let error = EngineError::from_refusal(code, whole);
            assert_eq!(error.code(), code.as_str());
            assert_eq!(error.class(), code.class());
            assert_eq!(error.error_code(), Some(code));
            assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn execution_not_active_says_which_outcome_won() {
        let attempt_id = AttemptId::mint();
        let error = EngineError::from_refusal(
            ErrorCode::ExecutionNotActive,
            detail(&[
                ("lifecycle_phase", "terminal"),
                ("terminal_outcome", "cancelled"),
                ("lease_epoch", "1700000000000001"),
                ("attempt_id", &attempt_id.to_string()),
            ]),
        );
        assert_eq!(
            error,
            EngineError::Contention(ContentionKind::ExecutionNotActive {
                terminal_outcome: Some(Outcome::Cancelled),
                lease_epoch: Some(LeaseEpoch::new(1_700_000_000_000_001)),
                lifecycle_phase: LifecyclePhase::Terminal,
                attempt_id: Some(attempt_id),
            })
        );
        assert_eq!(error.class(), Class::Conflict);
    }

    #[test]
    fn a_detail_without_what_its_code_promises_is_corrupt() {
        let error = EngineError::from_refusal(ErrorCode::ExecutionNotActive, detail(&[("lifecycle_phase", "resting")]));
        assert_eq!(
            error,
            EngineError::Corrupt {
                key: "detail of execution_not_active".to_owned(),
                field: "lifecycle_phase".to_owned()
            }
        );
    }

    #[test]
    fn a_capability_mismatch_carries_the_missing_tokens() {
        let error = EngineError::from_refusal(ErrorCode::NotCapable, detail(&[("missing", "gpu,cuda-12")]));
        let EngineError::Validation { kind: ValidationKind::CapabilityMismatch { missing }, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(missing, &["gpu", "cuda-12"]);
        assert_eq!(error.to_string(), "worker lacks required capabilities gpu, cuda-12: missing gpu,cuda-12");
    }

    #[test]
    fn what_was_not_found_is_named() {
        let error = EngineError::from_refusal(ErrorCode::WorkerNotRegistered, Detail::new());
        assert_eq!(error, EngineError::NotFound { entity: "worker" });
        assert_eq!(error.code(), "worker_not_registered");
    }

    #[test]
    fn an_unreachable_store_may_be_asked_again_and_a_defect_may_not() {
        let table = [
            (TransportKind::Unavailable, "store_unavailable", Class::Retryable),
            (TransportKind::Full, "store_full", Class::Retryable),
            (TransportKind::Refused, "store_refused", Class::Terminal),
            (TransportKind::Defect, "internal", Class::Terminal),
            (TransportKind::Closed, "closed", Class::Terminal),
        ];
        for (kind, code, class) in table {
            let error = EngineError::Transport { kind, detail: "x".to_owned() };
            assert_eq!((error.code(), error.class()), (code, class));
        }
    }
}
