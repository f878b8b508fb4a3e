//! What goes wrong with keys and tokens, as problems. No text here holds a token or a key.

use axum::http::StatusCode;
use ff_engine::WaitpointsError;

use crate::problem::Problem;

impl From<WaitpointsError> for Problem {
    fn from(error: WaitpointsError) -> Self {
        match error {
            WaitpointsError::Engine(error) => error.into(),
            WaitpointsError::Keys(error) => error.into(),
            WaitpointsError::InvalidToken(_) => Self::invalid_token(),
        }
    }
}

impl Problem {
    /// The token was not signed with one of this server's keys, or there is none.
    pub fn invalid_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "invalid_token", "the waitpoint token is missing or not genuine")
    }
}

impl From<ff_keys::Error> for Problem {
    /// What the caller can change is the caller's; the rest waits for an operator, who is told what to do.
    fn from(error: ff_keys::Error) -> Self {
        use ff_keys::Error;
        let text = error.to_string();
        match error {
            Error::ClaimTooLong { field, .. } => Self::invalid(field, text),
            Error::Fixed => Self::new(StatusCode::CONFLICT, "keys_fixed", text),
            Error::UnknownKey { .. } => Self::new(StatusCode::NOT_FOUND, "key_not_found", text),
            Error::Malformed { .. }
            | Error::OpenToOthers { .. }
            | Error::Missing { .. }
            | Error::Exists { .. }
            | Error::Io { .. }
            | Error::TwoPlaces
            | Error::NoDataDir
            | Error::ForeignRing { .. } => {
                tracing::error!(error = text, "no token can be signed");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "keys_unavailable", text)
            }
        }
    }
}
