//! Why a typed call has no reply.

use ff_core::EngineError;
use ff_core::error::TransportKind;

use crate::host::HostError;

/// Why a call of the library has no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The host could not run the call.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The library refused the call.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The reply does not match its contract: library and binary do not fit together.
    #[error("cannot read the reply of {function}: {detail}")]
    Decode {
        /// The function that replied.
        function: &'static str,
        /// The place and the reason.
        detail: String,
    },
}

impl Error {
    /// True when the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Host(HostError::Unavailable { .. } | HostError::Full { .. }) => true,
            Error::Host(_) | Error::Decode { .. } => false,
            Error::Engine(error) => error.is_retryable(),
        }
    }
}

impl From<Error> for EngineError {
    /// Converts to the engine's error. A failure of the host or the codec is a transport failure.
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Engine(_) | Error::Host(HostError::Corrupt { .. } | HostError::Raised { .. }) => {
                TransportKind::Defect
            }
            Error::Host(HostError::Unavailable { .. }) => TransportKind::Unavailable,
            Error::Host(HostError::Full { .. }) => TransportKind::Full,
            Error::Host(HostError::Refused { .. }) => TransportKind::Refused,
            Error::Host(HostError::Closed) => TransportKind::Closed,
            Error::Decode { .. } => TransportKind::Defect,
        };
        match error {
            Error::Engine(error) => error,
            Error::Host(
                HostError::Unavailable { detail } | HostError::Full { detail } | HostError::Refused { detail },
            ) => EngineError::Transport { kind, detail },
            other => EngineError::Transport { kind, detail: other.to_string() },
        }
    }
}
