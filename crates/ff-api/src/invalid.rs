//! A value that cannot be used.

use std::fmt;

/// A field that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field, as the request names it.
    pub field: String,
    /// What is wrong with it; a sentence that follows the field's name.
    pub problem: String,
    /// The most bytes the field may have, when it has more.
    pub too_large: Option<usize>,
}

impl Invalid {
    /// The field is wrong.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into(), too_large: None }
    }

    /// The field has more bytes than it may.
    pub fn too_large(field: impl Into<String>, max: usize) -> Self {
        Self { field: field.into(), problem: format!("must be at most {max} bytes"), too_large: Some(max) }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}

impl std::error::Error for Invalid {}
