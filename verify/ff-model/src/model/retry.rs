//! The retry policy of an execution, and its decision after a failure.

use ff_script::generated::{Backoff, BackoffType, Jitter, Retry};

/// A policy with every default filled in.
#[derive(Clone, Debug)]
pub struct Policy {
    pub max_attempts: i64,
    pub wait: Wait,
    pub jitter: Jitter,
    pub retry_on: Option<Vec<String>>,
    pub never_on: Option<Vec<String>>,
}

/// The delay before jitter.
#[derive(Clone, Debug)]
pub enum Wait {
    Fixed { delay_ms: i64 },
    Exponential { initial_ms: i64, factor: i64, max_ms: i64 },
}

impl Policy {
    /// The submission's policy, else the lane's, else the engine's default.
    pub fn of(given: Option<&Retry>, of_lane: Option<&Retry>) -> Policy {
        let pick = |field: fn(&Retry) -> Option<i64>| given.and_then(field).or(of_lane.and_then(field));
        let backoff = given.and_then(|r| r.backoff.as_ref()).or(of_lane.and_then(|r| r.backoff.as_ref()));
        let wait = match backoff {
            Some(Backoff { r#type: BackoffType::Fixed, delay_ms, .. }) => {
                Wait::Fixed { delay_ms: delay_ms.unwrap_or(1_000) }
            }
            Some(backoff) => Wait::Exponential {
                initial_ms: backoff.initial_ms.unwrap_or(1_000),
                factor: backoff.factor.unwrap_or(2),
                max_ms: backoff.max_ms.unwrap_or(60_000),
            },
            None => Wait::Exponential { initial_ms: 1_000, factor: 2, max_ms: 60_000 },
        };
        let list =
            |field: fn(&Retry) -> Option<&Vec<String>>| given.and_then(field).or(of_lane.and_then(field)).cloned();
        Policy {
            max_attempts: pick(|r| r.max_attempts).unwrap_or(3),
            wait,
            jitter: given.and_then(|r| r.jitter).or(of_lane.and_then(|r| r.jitter)).unwrap_or(Jitter::Full),
            retry_on: list(|r| r.retry_on.as_ref()),
            never_on: list(|r| r.never_on.as_ref()),
        }
    }

    /// Whether another attempt follows the `failures`-th failure.
    pub fn allows(&self, failures: i64, category: &str) -> bool {
        failures < self.max_attempts
            && !self.never_on.as_ref().is_some_and(|list| list.iter().any(|c| c == category))
            && self.retry_on.as_ref().is_none_or(|list| list.iter().any(|c| c == category))
    }

    /// The delay after the `failures`-th failure; `draw` is the caller's random number, 0 to 1000.
    pub fn wait_ms(&self, failures: i64, draw: i64) -> i64 {
        let whole = match self.wait {
            Wait::Fixed { delay_ms } => delay_ms,
            Wait::Exponential { initial_ms, factor, max_ms } => {
                let mut wait = i128::from(initial_ms);
                for _ in 1..failures {
                    wait = (wait * i128::from(factor)).min(i128::from(max_ms));
                }
                i64::try_from(wait.min(i128::from(max_ms))).expect("bounded by max_ms")
            }
        };
        match self.jitter {
            Jitter::Full => whole * draw / 1_000,
            Jitter::None => whole,
        }
    }
}

impl From<&Policy> for Retry {
    fn from(policy: &Policy) -> Retry {
        let backoff = match policy.wait {
            Wait::Fixed { delay_ms } => Backoff { delay_ms: Some(delay_ms), ..Backoff::new(BackoffType::Fixed) },
            Wait::Exponential { initial_ms, factor, max_ms } => Backoff {
                initial_ms: Some(initial_ms),
                factor: Some(factor),
                max_ms: Some(max_ms),
                ..Backoff::new(BackoffType::Exponential)
            },
        };
        Retry {
            max_attempts: Some(policy.max_attempts),
            backoff: Some(backoff),
            jitter: Some(policy.jitter),
            retry_on: policy.retry_on.clone(),
            never_on: policy.never_on.clone(),
        }
    }
}
