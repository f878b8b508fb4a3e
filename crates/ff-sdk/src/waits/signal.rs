//! Signals: what whoever holds a waitpoint's token has to say.

use std::time::Duration;

use ff_core::types::{ExecutionId, SignalId, WaitpointId, WaitpointToken};
use ff_script::generated::SignalEffect;

use crate::backend::Reach;
use crate::error::worth_repeating;
use crate::{FlowFabricAdminClient, FlowFabricWorker, SdkError};

/// A signal to deliver.
///
/// ```
/// use ff_core::types::WaitpointToken;
/// use ff_sdk::task::Signal;
///
/// let signal = Signal {
///     signal_name: "approved".to_owned(),
///     signal_category: "approval".to_owned(),
///     payload: Some(br#"{"by":"ann"}"#.to_vec()),
///     source_type: "mail".to_owned(),
///     source_identity: "ann@example.org".to_owned(),
///     idempotency_key: Some("mail-4711".to_owned()),
///     waitpoint_token: WaitpointToken::new("wp1.…"),
/// };
/// assert!(!format!("{signal:?}").contains("wp1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What it says.
    pub signal_name: String,
    /// The kind of signal; empty when there is nothing to say about it.
    pub signal_category: String,
    /// What it brings, at most 256 KiB.
    pub payload: Option<Vec<u8>>,
    /// Where it comes from; may be empty.
    pub source_type: String,
    /// Who sends it, by their own account; may be empty. Approvals go by token, never by this.
    pub source_identity: String,
    /// The same key at the same waitpoint within a day is the same signal.
    pub idempotency_key: Option<String>,
    /// The right to signal this waitpoint.
    pub waitpoint_token: WaitpointToken,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOutcome {
    /// It was kept.
    Accepted {
        /// Its id.
        signal_id: SignalId,
        /// Whether it counted, waits for the suspend, or was not asked for.
        effect: SignalEffect,
    },
    /// It was the last the execution waited for.
    TriggeredResume {
        /// Its id.
        signal_id: SignalId,
    },
    /// It had been delivered before.
    Duplicate {
        /// The id it got then.
        existing_signal_id: SignalId,
    },
}

/// How often a delivery is tried, and how long after the first the second comes.
const DELIVERIES: u32 = 4;
const DELIVER_AGAIN: Duration = Duration::from_millis(100);

async fn deliver(
    reach: &Reach,
    execution_id: ExecutionId,
    waitpoint_id: WaitpointId,
    signal: &Signal,
) -> Result<SignalOutcome, SdkError> {
    let signal_id = SignalId::mint();
    let (mut pause, mut tries) = (DELIVER_AGAIN, 1);
    loop {
        match reach.deliver_signal(execution_id, waitpoint_id, signal_id, signal).await {
            Err(error) if tries < DELIVERIES && worth_repeating(&error) => {
                tracing::debug!(%error, %waitpoint_id, "a signal was lost on the way and is repeated");
                tokio::time::sleep(pause).await;
                (pause, tries) = (pause * 2, tries + 1);
            }
            answer => return answer,
        }
    }
}

impl FlowFabricWorker {
    /// Delivers a signal to a waitpoint of an execution.
    ///
    /// The token alone gives the right to. One that was not signed with this store's keys is refused as
    /// `invalid_token`; a genuine one that the waitpoint does not take (closed, expired, spent, of another execution) as
    /// `waitpoint_not_open`. A call that is lost on the way is repeated a few times as the same signal; give it an idempotency key to
    /// repeat it later.
    pub async fn deliver_signal(
        &self,
        execution_id: &ExecutionId,
        waitpoint_id: &WaitpointId,
        signal: Signal,
    ) -> Result<SignalOutcome, SdkError> {
        deliver(&self.backend().reach(), *execution_id, *waitpoint_id, &signal).await
    }
}

impl FlowFabricAdminClient {
    /// Delivers a signal, as [`FlowFabricWorker::deliver_signal`] does.
    pub async fn deliver_signal(
        &self,
        execution_id: &ExecutionId,
        waitpoint_id: &WaitpointId,
        signal: Signal,
    ) -> Result<SignalOutcome, SdkError> {
        deliver(&self.backend().reach(), *execution_id, *waitpoint_id, &signal).await
    }
}
