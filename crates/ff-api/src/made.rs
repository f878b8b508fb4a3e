//! What a request makes that is safe to repeat.

use serde::{Deserialize, Serialize};

/// What was made, or was there already. It travels as the thing itself; the status of the answer says which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Made<T> {
    /// The thing.
    pub thing: T,
    /// It is new. An answer that was read does not tell.
    #[serde(skip)]
    pub new: bool,
}

impl<T> Made<T> {
    /// 201 for what is new, 200 for what was there.
    #[must_use]
    pub fn status(&self) -> u16 {
        if self.new { 201 } else { 200 }
    }
}
