//! What happens to a suspension that takes too long.

use std::fmt;
use std::str::FromStr;

use ff_script::generated;

/// What happens when a suspension takes longer than it may.
///
/// ```
/// use ff_sdk::task::TimeoutBehavior;
/// assert_eq!(TimeoutBehavior::AutoResume.as_str(), "auto_resume_with_timeout_signal");
/// assert_eq!("auto_resume".parse(), Ok(TimeoutBehavior::AutoResume));
/// assert!("shrug".parse::<TimeoutBehavior>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeoutBehavior {
    /// The execution fails.
    #[default]
    Fail,
    /// The execution is cancelled.
    Cancel,
    /// The execution expires.
    Expire,
    /// The attempt goes on, with a signal named `timeout`.
    AutoResume,
    /// It stays suspended, without a timeout, and waits for an operator.
    Escalate,
}

impl TimeoutBehavior {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Fail, Self::Cancel, Self::Expire, Self::AutoResume, Self::Escalate];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Cancel => "cancel",
            Self::Expire => "expire",
            Self::AutoResume => "auto_resume_with_timeout_signal",
            Self::Escalate => "escalate",
        }
    }
}

impl fmt::Display for TimeoutBehavior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no timeout behavior.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown timeout behavior {0:?}")]
pub struct UnknownTimeoutBehavior(pub String);

impl FromStr for TimeoutBehavior {
    type Err = UnknownTimeoutBehavior;

    fn from_str(word: &str) -> Result<Self, UnknownTimeoutBehavior> {
        if word == "auto_resume" {
            return Ok(Self::AutoResume);
        }
        let found = Self::ALL.into_iter().find(|behavior| behavior.as_str() == word);
        found.ok_or_else(|| UnknownTimeoutBehavior(word.to_owned()))
    }
}

impl From<TimeoutBehavior> for generated::TimeoutBehavior {
    fn from(behavior: TimeoutBehavior) -> Self {
        match behavior {
            TimeoutBehavior::Fail => Self::Fail,
            TimeoutBehavior::Cancel => Self::Cancel,
            TimeoutBehavior::Expire => Self::Expire,
            TimeoutBehavior::AutoResume => Self::AutoResumeWithTimeoutSignal,
            TimeoutBehavior::Escalate => Self::Escalate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_behavior_has_the_engines_word_and_is_read_from_it() {
        for behavior in TimeoutBehavior::ALL {
            assert_eq!(behavior.as_str(), generated::TimeoutBehavior::from(behavior).as_str());
            assert_eq!(behavior.as_str().parse(), Ok(behavior));
        }
        let error = "Fail".parse::<TimeoutBehavior>().unwrap_err();
        assert_eq!(error.to_string(), "unknown timeout behavior \"Fail\"");
    }
}
