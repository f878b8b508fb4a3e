//! What goes wrong with keys and tokens, as problems. No text here holds a token or a key.

use ff_engine::WaitpointsError;

use crate::problem::Problem;

impl From<WaitpointsError> for Problem {
    fn from(error: WaitpointsError) -> Self {
        ff_api::Problem::from(error).into()
    }
}

impl From<ff_keys::Error> for Problem {
    fn from(error: ff_keys::Error) -> Self {
        ff_engine::keys_problem(error).into()
    }
}

impl Problem {
    /// The token was not signed with one of this server's keys, or there is none.
    pub fn invalid_token() -> Self {
        ff_engine::invalid_token().into()
    }
}
