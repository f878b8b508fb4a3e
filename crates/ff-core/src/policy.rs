//! What follows a failed attempt.

use serde::{Deserialize, Serialize};

use crate::text_enum::text_enum;

/// Whether and when a failed attempt is followed by another.
///
/// Times are integer milliseconds. Reclaims after a lost lease are not counted here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Attempts in all; 1 means no retry.
    #[serde(default = "max_attempts_default")]
    pub max_attempts: u32,
    /// How long to wait before a retry.
    #[serde(default)]
    pub backoff: Backoff,
    /// Whether the wait is drawn at random below the backoff.
    #[serde(default)]
    pub jitter: Jitter,
    /// Retry only failures of these categories; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<Vec<String>>,
    /// Never retry failures of these categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_on: Option<Vec<String>>,
}

const fn max_attempts_default() -> u32 {
    3
}

impl Default for RetryPolicy {
    /// 3 attempts, exponential backoff, full jitter, any category.
    fn default() -> Self {
        Self {
            max_attempts: max_attempts_default(),
            backoff: Backoff::default(),
            jitter: Jitter::default(),
            retry_on: None,
            never_on: None,
        }
    }
}

/// How the wait before a retry grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Backoff {
    /// The same wait every time.
    Fixed {
        /// That wait.
        delay_ms: u64,
    },
    /// `initial_ms * factor^(retries so far)`, at most `max_ms`.
    Exponential {
        /// The wait before the first retry.
        #[serde(default = "initial_ms_default")]
        initial_ms: u64,
        /// What each wait is multiplied with to get the next.
        #[serde(default = "factor_default")]
        factor: u32,
        /// The longest wait.
        #[serde(default = "max_ms_default")]
        max_ms: u64,
    },
}

const fn initial_ms_default() -> u64 {
    1_000
}
const fn factor_default() -> u32 {
    2
}
const fn max_ms_default() -> u64 {
    60_000
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::Exponential { initial_ms: initial_ms_default(), factor: factor_default(), max_ms: max_ms_default() }
    }
}

text_enum! {
    /// Whether the wait before a retry is drawn at random.
    #[derive(Default)]
    Jitter as "jitter" {
        /// Uniformly between 0 and the backoff, so that failures of one moment do not come back in one moment.
        #[default]
        Full = "full",
        /// Exactly the backoff.
        None = "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_policy_is_the_default_one() {
        assert_eq!(serde_json::from_str::<RetryPolicy>("{}").unwrap(), RetryPolicy::default());
        let exponential = r#"{"backoff":{"type":"exponential"}}"#;
        assert_eq!(serde_json::from_str::<RetryPolicy>(exponential).unwrap(), RetryPolicy::default());
    }

    #[test]
    fn a_policy_reads_back_as_written() {
        let policy = RetryPolicy {
            max_attempts: 5,
            backoff: Backoff::Fixed { delay_ms: 250 },
            jitter: Jitter::None,
            retry_on: Some(vec!["provider_429".to_owned()]),
            never_on: None,
        };
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(
            json,
            r#"{"max_attempts":5,"backoff":{"type":"fixed","delay_ms":250},"jitter":"none","retry_on":["provider_429"]}"#
        );
        assert_eq!(serde_json::from_str::<RetryPolicy>(&json).unwrap(), policy);
    }

    #[test]
    fn unknown_fields_and_words_are_refused_by_name() {
        for (json, name) in [
            (r#"{"attempts":5}"#, "attempts"),
            (r#"{"jitter":"half"}"#, "half"),
            (r#"{"backoff":{"type":"linear"}}"#, "linear"),
        ] {
            let error = serde_json::from_str::<RetryPolicy>(json).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
