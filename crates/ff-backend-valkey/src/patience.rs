//! Retries temporary faults until a deadline.

use std::time::{Duration, Instant};

use ff_script::HostError;

use crate::backoff::Backoff;
use crate::fault::Fault;

/// The error of a call that was retried until its deadline.
pub(crate) fn gave_up(fault: Fault, function: &str, after: Duration) -> HostError {
    match fault.into_error(function) {
        HostError::Unavailable { detail } => {
            HostError::Unavailable { detail: format!("{function} got no reply within {after:.1?}: {detail}") }
        }
        other => other,
    }
}

/// Retries `attempt` while its fault may be temporary, until the deadline.
pub(crate) async fn patiently<T, F: Future<Output = Result<T, Fault>>>(
    deadline: Duration,
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, HostError> {
    let started = Instant::now();
    let mut backoff = Backoff::new();
    loop {
        let left = deadline.saturating_sub(started.elapsed());
        let fault = match tokio::time::timeout(left, attempt()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(fault @ (Fault::Lost(_) | Fault::Elsewhere(_)))) => fault,
            Ok(Err(fault)) => return Err(fault.into_error(what)),
            Err(_) => Fault::Lost("no answer".to_owned()),
        };
        let pause = backoff.next();
        if started.elapsed() + pause >= deadline {
            return Err(gave_up(fault, what, started.elapsed()));
        }
        tokio::time::sleep(pause).await;
    }
}
