//! How a task fails, and how that is found in whatever error a handler returns.

use std::error::Error;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::backend::Failing;

/// How a task fails: the reason is for people, its [`FailureClass`] for retry policies.
///
/// A handler that returns one as its error decides the class itself. It may be wrapped on the way: by `anyhow` with or without
/// context, by a variant of another error, in a box. The runtime looks for it along the chain of sources.
///
/// ```
/// use ff_sdk::middleware::TaskError;
///
/// let refused = TaskError::new("the model refuses this text", "content_policy").fatal();
/// assert_eq!((refused.category.as_str(), refused.retryable), ("content_policy", Some(false)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError {
    /// Why, for people.
    pub reason: String,
    class: FailureClass,
}

/// What a retry policy goes by. It is the source of every [`TaskError`], so that one can be found in an error that wraps it, even
/// one that passes its sources through without showing itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailureClass {
    /// What kind of failure.
    pub category: String,
    /// `Some(false)` ends the execution whatever its policy.
    pub retryable: Option<bool>,
    /// Overrides the policy's backoff.
    pub retry_after_ms: Option<u64>,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Error for TaskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.class)
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "category {}", self.category)
    }
}

impl Error for FailureClass {}

impl Deref for TaskError {
    type Target = FailureClass;
    fn deref(&self) -> &FailureClass {
        &self.class
    }
}

impl DerefMut for TaskError {
    fn deref_mut(&mut self) -> &mut FailureClass {
        &mut self.class
    }
}

impl TaskError {
    /// The handler returned an error.
    pub const HANDLER: &'static str = "handler_error";
    /// The handler panicked.
    pub const PANIC: &'static str = "handler_panic";
    /// The handler took longer than a [`super::TimeoutLayer`] allows.
    pub const TIMEOUT: &'static str = "handler_timeout";
    /// A handler takes state that the runtime was not given.
    pub const MISSING_STATE: &'static str = "extractor_missing_state";
    /// The input is not what the handler takes.
    pub const PAYLOAD_DECODE: &'static str = "extractor_payload_decode";
    /// The handler suspended its execution: its run is over, and no failure.
    pub const SUSPENDED: &'static str = "suspended";
    /// The handler passed over that a step had set its attempt aside.
    pub const SWALLOWED: &'static str = "set_aside_swallowed";
    /// No handler takes executions of this kind: layers see it, and the task is given back.
    pub const NO_HANDLER: &'static str = "runtime_no_handler";

    /// A failure with this reason and category.
    pub fn new(reason: impl Into<String>, category: impl Into<String>) -> Self {
        let class = FailureClass { category: category.into(), retryable: None, retry_after_ms: None };
        Self { reason: reason.into(), class }
    }

    /// True when the runtime has no handler for the kind.
    pub(crate) fn is_no_handler(&self) -> bool {
        self.class.category == Self::NO_HANDLER
    }

    /// The same failure, final whatever the policy.
    #[must_use]
    pub fn fatal(mut self) -> Self {
        self.class.retryable = Some(false);
        self
    }

    /// The same failure, to be tried again no sooner than this.
    #[must_use]
    pub fn retry_after_ms(mut self, ms: u64) -> Self {
        self.class.retry_after_ms = Some(ms);
        self
    }

    /// What a retry policy goes by.
    pub(crate) fn class(&self) -> &FailureClass {
        &self.class
    }

    /// A handler's own error with the errors that caused it, of the class of the first [`TaskError`] among them.
    pub(crate) fn of_handler(error: Box<dyn Error + Send + Sync>) -> Self {
        Self::described(&*error)
    }

    /// The same of an error that stays where it is.
    pub(crate) fn described(error: &(dyn Error + 'static)) -> Self {
        let (mut reason, mut class) = (error.to_string(), None);
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref::<FailureClass>() {
                class = class.or(Some(found));
            } else {
                let text = error.to_string();
                if !reason.ends_with(&text) {
                    reason = format!("{reason}: {text}");
                }
            }
            cause = error.source();
        }
        match class {
            Some(class) => Self { reason, class: class.clone() },
            None => Self::new(reason, Self::HANDLER),
        }
    }
}

impl From<TaskError> for Failing {
    fn from(error: TaskError) -> Self {
        let TaskError { reason, class: FailureClass { category, retryable, retry_after_ms } } = error;
        Failing { reason, category, retryable, retry_after_ms }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_failure_says_what_caused_it() {
        let io = std::io::Error::other("disk gone");
        assert_eq!(TaskError::of_handler(Box::new(io)), TaskError::new("disk gone", "handler_error"));
        assert_eq!(TaskError::of_handler("plain".into()), TaskError::new("plain", "handler_error"));
        let wrapped = anyhow::Error::from(std::io::Error::other("disk gone")).context("saving");
        assert_eq!(TaskError::of_handler(wrapped.into()), TaskError::new("saving: disk gone", "handler_error"));
    }

    #[derive(Debug, thiserror::Error)]
    enum Own {
        #[error("while charging")]
        Charging(#[source] TaskError),
        #[error(transparent)]
        Task(#[from] TaskError),
        #[error(transparent)]
        Any(#[from] anyhow::Error),
    }

    #[test]
    fn a_class_is_found_however_the_failure_is_wrapped() {
        let own = TaskError::new("slow down", "rate_limited").retry_after_ms(5_000).fatal();
        let boxed = |error: TaskError| -> Box<dyn Error + Send + Sync> { Box::new(error) };
        let any = || anyhow::Error::from(own.clone());
        for (error, reason) in [
            (boxed(own.clone()), "slow down"),
            (any().into(), "slow down"),
            (any().context("asking the model").into(), "asking the model: slow down"),
            (any().context("asking").context("once more").into(), "once more: asking: slow down"),
            (Own::Charging(own.clone()).into(), "while charging: slow down"),
            (Own::Task(own.clone()).into(), "slow down"),
            (Own::from(any().context("asking")).into(), "asking: slow down"),
            (anyhow::Error::from(Own::Task(own.clone())).context("outside").into(), "outside: slow down"),
            (Err::<(), _>(own.clone()).context("by extension").unwrap_err().into(), "by extension: slow down"),
        ] {
            let expected = TaskError { reason: reason.to_owned(), class: own.class.clone() };
            assert_eq!(TaskError::of_handler(error), expected);
        }
    }
}
