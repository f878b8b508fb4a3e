//! The mortal backend's waits and streams.

use std::time::Duration;

use async_trait::async_trait;
use ff_core::types::{AttemptIndex, ExecutionId, SignalId, WaitpointId};
use ff_engine::{OpenedWaitpoint, WaitpointSpec};
use uuid::Uuid;

use super::crash::{Call, Mortal};
use crate::SdkError;
use crate::backend::{Appended, FramePlace, FrameSpan, Frames, LeaseRef, Suspended, Suspending, Waits};
use crate::streams::{NewFrame, StreamFrames};
use crate::waits::{ResumeSignal, Signal, SignalOutcome};

#[async_trait]
impl Waits for Mortal {
    async fn suspend(&self, lease: LeaseRef, suspending: &Suspending) -> Result<Suspended, SdkError> {
        self.through(Call::Suspend, self.inner.suspend(lease, suspending)).await
    }

    async fn create_waitpoint(
        &self,
        lease: LeaseRef,
        namespace: &str,
        spec: &WaitpointSpec,
        request_id: Uuid,
    ) -> Result<OpenedWaitpoint, SdkError> {
        self.through(Call::Waitpoint, self.inner.create_waitpoint(lease, namespace, spec, request_id)).await
    }

    async fn resume_signals(&self, lease: LeaseRef) -> Result<Vec<ResumeSignal>, SdkError> {
        self.alive()?;
        self.inner.resume_signals(lease).await
    }

    async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint_id: WaitpointId,
        signal_id: SignalId,
        signal: &Signal,
    ) -> Result<SignalOutcome, SdkError> {
        self.through(Call::Signal, self.inner.deliver_signal(execution_id, waitpoint_id, signal_id, signal)).await
    }
}

#[async_trait]
impl Frames for Mortal {
    async fn append_frames(
        &self,
        lease: LeaseRef,
        frames: &[NewFrame],
        first_sequence: Option<u64>,
        request_id: Uuid,
    ) -> Result<Appended, SdkError> {
        self.through(Call::Frames, self.inner.append_frames(lease, frames, first_sequence, request_id)).await
    }

    async fn read_frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        span: FrameSpan,
        limit: usize,
    ) -> Result<StreamFrames, SdkError> {
        self.alive()?;
        self.inner.read_frames(id, attempt, span, limit).await
    }

    async fn tail_frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        after: FramePlace,
        block: Duration,
        limit: usize,
    ) -> Result<StreamFrames, SdkError> {
        self.alive()?;
        self.inner.tail_frames(id, attempt, after, block, limit).await
    }

    async fn summary(&self, id: ExecutionId, attempt: Option<AttemptIndex>) -> Result<Option<Vec<u8>>, SdkError> {
        self.alive()?;
        self.inner.summary(id, attempt).await
    }
}
