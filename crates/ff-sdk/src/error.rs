//! Why a call of the SDK failed, by who can act on it.

use std::error::Error;

use ff_core::error::{ConflictKind, TransportKind};
use ff_core::{EngineError, ErrorCode};

/// Why a call of the SDK failed.
///
/// ```
/// use ff_sdk::SdkError;
/// fn worth_another_try(error: &SdkError) -> bool {
///     error.is_retryable()
/// }
/// # assert!(!worth_another_try(&SdkError::WorkerAtCapacity));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum SdkError {
    /// A setting or an argument is wrong; nothing was sent.
    #[error("{context}: {}{message}", field.as_ref().map(|field| format!("{field} ")).unwrap_or_default())]
    Config {
        /// What was being done, e.g. `connect`.
        context: String,
        /// The setting or parameter at fault.
        field: Option<String>,
        /// What is wrong with it.
        message: String,
    },
    /// Every concurrency permit is taken; nothing was consumed.
    #[error("worker at capacity: every concurrency permit is taken")]
    WorkerAtCapacity,
    /// The engine refused.
    #[error(transparent)]
    Engine(Box<EngineError>),
    /// The engine could not be asked, or its answer was lost.
    #[error("{context}: {source}")]
    Transport {
        /// What went wrong.
        source: Box<dyn Error + Send + Sync>,
        /// What was being done.
        context: String,
    },
    /// The server answered with something that is no refusal of the engine.
    #[error("server answered {status}{}: {detail}", code.as_ref().map(|code| format!(" {code}")).unwrap_or_default())]
    Http {
        /// The HTTP status.
        status: u16,
        /// The stable code of the problem, when it carries one.
        code: Option<String>,
        /// What the server said.
        detail: String,
        /// The server says that the same request may succeed later.
        retryable: bool,
    },
}

impl SdkError {
    pub(crate) fn config(context: &str, field: &str, message: impl Into<String>) -> Self {
        SdkError::Config { context: context.to_owned(), field: Some(field.to_owned()), message: message.into() }
    }

    pub(crate) fn unsupported(context: &str, message: impl Into<String>) -> Self {
        SdkError::Config { context: context.to_owned(), field: None, message: message.into() }
    }

    /// The refusal of the engine, if it is one.
    #[must_use]
    pub fn engine(&self) -> Option<&EngineError> {
        match self {
            SdkError::Engine(error) => Some(error),
            SdkError::Transport { source, .. } => source.downcast_ref(),
            _ => None,
        }
    }

    /// True when the question or its answer was lost on the way: the call may or may not have happened.
    #[must_use]
    pub fn is_transport(&self) -> bool {
        match self {
            SdkError::Transport { .. } => true,
            SdkError::Http { status, .. } => *status == 429 || *status >= 500,
            SdkError::Engine(error) => matches!(**error, EngineError::Transport { .. }),
            SdkError::Config { .. } | SdkError::WorkerAtCapacity => false,
        }
    }

    /// True when the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            SdkError::Engine(error) => error.is_retryable(),
            SdkError::Transport { source, .. } => match source.downcast_ref::<EngineError>() {
                Some(error) => error.is_retryable(),
                None => true,
            },
            SdkError::Http { retryable, .. } => *retryable,
            SdkError::Config { .. } | SdkError::WorkerAtCapacity => false,
        }
    }

    /// True when another live process holds the worker instance id.
    pub(crate) fn is_instance_in_use(&self) -> bool {
        matches!(self, SdkError::Engine(error)
            if matches!(&**error, EngineError::Conflict(ConflictKind::Refused(refused)) if refused.code == ErrorCode::InstanceInUse))
    }
}

impl From<EngineError> for SdkError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Transport { .. } => {
                SdkError::Transport { source: Box::new(error), context: "asking the store".to_owned() }
            }
            refusal => SdkError::Engine(Box::new(refusal)),
        }
    }
}

impl From<ff_api::Problem> for SdkError {
    /// The refusal of the engine that a problem stands for; a problem of the server alone stays one.
    fn from(problem: ff_api::Problem) -> Self {
        match problem.refusal() {
            Some(error) => error.into(),
            None => {
                let facts = problem.facts().clone();
                let (status, retryable) = (facts.status, facts.retryable);
                SdkError::Http { status, code: Some(facts.code.into_owned()), detail: facts.detail, retryable }
            }
        }
    }
}

impl From<ff_script::Error> for SdkError {
    fn from(error: ff_script::Error) -> Self {
        EngineError::from(error).into()
    }
}

impl From<ff_script::HostError> for SdkError {
    fn from(error: ff_script::HostError) -> Self {
        EngineError::from(ff_script::Error::from(error)).into()
    }
}

impl SdkError {
    /// The same error for another one it befell.
    pub(crate) fn again(&self) -> SdkError {
        match self {
            SdkError::Http { status, code, detail, retryable } => {
                SdkError::Http { status: *status, code: code.clone(), detail: detail.clone(), retryable: *retryable }
            }
            SdkError::Engine(error) => SdkError::Engine(error.clone()),
            SdkError::Transport { context, source } => {
                SdkError::Transport { context: context.clone(), source: source.to_string().into() }
            }
            other => EngineError::Transport { kind: TransportKind::Unavailable, detail: other.to_string() }.into(),
        }
    }
}

/// A transport failure that is worth repeating with the same fence.
pub(crate) fn worth_repeating(error: &SdkError) -> bool {
    let closed = matches!(
        error.engine(),
        Some(EngineError::Transport {
            kind: TransportKind::Closed | TransportKind::Refused | TransportKind::Defect,
            ..
        })
    );
    error.is_transport() && !closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_was_done_and_the_field() {
        let error = SdkError::config("connect", "lanes", "must name at least one lane");
        assert_eq!(error.to_string(), "connect: lanes must name at least one lane");
        assert_eq!(SdkError::unsupported("claim", "no").to_string(), "claim: no");
    }

    #[test]
    fn a_lost_answer_is_worth_repeating_and_a_refusal_is_not() {
        let lost = SdkError::from(EngineError::Transport { kind: TransportKind::Unavailable, detail: "gone".into() });
        assert!(lost.is_transport() && lost.is_retryable() && worth_repeating(&lost));
        let closed = SdkError::from(EngineError::Transport { kind: TransportKind::Closed, detail: "closed".into() });
        assert!(closed.is_transport() && !worth_repeating(&closed));
        let stale = SdkError::from(EngineError::State(ff_core::error::StateKind::StaleLease));
        assert!(!stale.is_transport() && !worth_repeating(&stale));
    }
}
