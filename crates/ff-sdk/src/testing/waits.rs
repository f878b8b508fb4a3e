//! What a test does with executions that wait, and with what they write.

use std::time::Duration;

use ff_api::Ask;
use ff_api::waitpoints::{ReissueBody, ReissueToken};
use ff_core::types::{AttemptIndex, ExecutionId};
use ff_script::generated::{Waitpoint, WaitpointState};

use super::TestEngine;
use crate::SdkError;
use crate::streams::{STREAM_READ_HARD_CAP, StreamCursor, StreamFrame};
use crate::waits::{Signal, SignalOutcome};

impl TestEngine {
    /// The open waitpoints of an execution.
    pub async fn waitpoints(&self, id: &ExecutionId) -> Result<Vec<Waitpoint>, SdkError> {
        let mut waitpoints = self.engine().operations().waitpoints_of(*id).await?;
        waitpoints.retain(|waitpoint| waitpoint.state != WaitpointState::Closed);
        Ok(waitpoints)
    }

    /// Signals an open waitpoint of an execution, whoever has its token: a new token is issued for the purpose, and the old one
    /// dies. A test of the tokens themselves delivers with [`crate::FlowFabricWorker::deliver_signal`].
    ///
    /// # Panics
    /// When no open waitpoint has the key.
    pub async fn signal(
        &self,
        id: &ExecutionId,
        key: &str,
        name: &str,
        payload: &[u8],
    ) -> Result<SignalOutcome, SdkError> {
        self.signal_as(id, key, None, name, payload).await
    }

    /// Like [`TestEngine::signal`], as one of the waitpoint's approvers.
    ///
    /// # Panics
    /// When no open waitpoint has the key.
    pub async fn signal_as(
        &self,
        id: &ExecutionId,
        key: &str,
        approver: Option<&str>,
        name: &str,
        payload: &[u8],
    ) -> Result<SignalOutcome, SdkError> {
        let open = self.waitpoints(id).await?;
        let Some(waitpoint) = open.iter().find(|waitpoint| waitpoint.key == key) else {
            let keys: Vec<&str> = open.iter().map(|waitpoint| waitpoint.key.as_str()).collect();
            panic!("{id} has no open waitpoint {key:?}, only {keys:?}");
        };
        let body = ReissueBody { approver: approver.map(str::to_owned) };
        let reach = self.admin().backend().reach();
        let issued = reach.ask(Ask::<ReissueToken>::with(waitpoint.waitpoint_id, body)).await?;
        let signal = Signal {
            signal_name: name.to_owned(),
            signal_category: String::new(),
            payload: Some(payload.to_vec()),
            source_type: "test".to_owned(),
            source_identity: String::new(),
            idempotency_key: None,
            waitpoint_token: issued.token,
        };
        self.admin().deliver_signal(id, &waitpoint.waitpoint_id, signal).await
    }

    /// Moves the time to where the suspension of an execution takes too long, and lets happen what then happens.
    ///
    /// # Panics
    /// When it is not suspended with a timeout.
    pub async fn advance_past_timeout(&self, id: &ExecutionId) -> Result<(), SdkError> {
        let execution = self.engine().operations().describe(*id).await?;
        let timeout_at = execution.suspension.and_then(|suspension| suspension.timeout_at);
        let timeout_at = timeout_at.unwrap_or_else(|| panic!("{id} is not suspended with a timeout"));
        let left = (timeout_at - self.now_ms()).max(0).unsigned_abs();
        self.advance(Duration::from_millis(left)).await
    }

    /// The frames of an execution's latest attempt, from the first one kept.
    pub async fn frames(&self, id: &ExecutionId) -> Result<Vec<StreamFrame>, SdkError> {
        let attempts = self.describe(id).await?.attempts;
        let Some(attempt) = attempts.last().map(|attempt| attempt.index) else { return Ok(Vec::new()) };
        self.frames_of(id, attempt).await
    }

    /// The frames of one attempt.
    pub async fn frames_of(&self, id: &ExecutionId, attempt: AttemptIndex) -> Result<Vec<StreamFrame>, SdkError> {
        let (mut all, mut from) = (Vec::new(), StreamCursor::from_beginning());
        loop {
            let page = crate::streams::tail_stream(&self.admin(), id, attempt, from, 0, STREAM_READ_HARD_CAP).await?;
            if page.frames.is_empty() {
                return Ok(all);
            }
            all.extend(page.frames);
            from = page.next;
        }
    }
}
