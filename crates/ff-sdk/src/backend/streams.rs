//! Streams of attempts: frames written under a lease, and read by anyone.

use std::time::Duration;

use ff_api::streams::{
    AppendFrames, AppendedFrames, Frame, FrameBody, FramesBody, GetAttemptSummary, GetSummary, ReadStream, StreamQuery,
};
use ff_api::{Ask, Payload};
use ff_core::types::{AttemptIndex, ExecutionId, TimestampMs};
use uuid::Uuid;

use super::{LeaseRef, Reach};
use crate::SdkError;
use crate::streams::{FrameId, NewFrame, StreamCursor, StreamFrame, StreamFrames};

/// Which frames of an attempt are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameSpan {
    /// Those behind this place; all from the first one when absent.
    pub after: Option<FrameId>,
    /// Those up to this place; as far as there are frames when absent.
    pub to: Option<FrameId>,
    /// How long to wait for the first of them. The end of the stream ends the wait.
    pub block: Duration,
}

impl From<&NewFrame> for FrameBody {
    fn from(frame: &NewFrame) -> Self {
        let (payload, payload_encoding) = Payload::of(frame.payload.clone()).sent();
        Self {
            r#type: frame.frame_type.clone(),
            payload: Some(payload),
            payload_encoding,
            correlation_id: frame.correlation_id.clone(),
            mode: Some(frame.mode),
        }
    }
}

impl From<Frame> for StreamFrame {
    fn from(frame: Frame) -> Self {
        Self {
            id: frame.id,
            sequence: frame.sequence.unsigned_abs(),
            frame_type: frame.r#type,
            payload: frame.payload.unwrap_or_default(),
            correlation_id: frame.correlation_id,
            mode: frame.mode,
            at: TimestampMs(frame.at),
        }
    }
}

impl Reach {
    /// Appends frames to the leased attempt. The same first sequence, or the same request id, answers the ids of what was written.
    pub(crate) async fn append_frames(
        &self,
        lease: LeaseRef,
        frames: &[NewFrame],
        first_sequence: Option<u64>,
        request_id: Uuid,
    ) -> Result<AppendedFrames, SdkError> {
        let frames = frames.iter().map(FrameBody::from).collect();
        let request_id = Some(request_id.to_string());
        let body = FramesBody { fence: lease.fence(), frames, first_sequence, request_id };
        self.ask(Ask::<AppendFrames>::with(lease.execution_id, body)).await
    }

    /// Frames of an attempt within a span, oldest first; [`StreamFrames::next`] is the caller's to set.
    pub(crate) async fn frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        span: FrameSpan,
        limit: usize,
    ) -> Result<StreamFrames, SdkError> {
        let block_ms = (!span.block.is_zero()).then(|| i64::try_from(span.block.as_millis()).unwrap_or(i64::MAX));
        let query = StreamQuery {
            after: span.after.map(|after| after.to_string()),
            to: span.to.map(|to| to.to_string()),
            limit: Some(i64::try_from(limit).unwrap_or(i64::MAX)),
            block_ms,
        };
        let page = self.ask_within(Ask::<ReadStream>::by((id, attempt.get()), query), span.block).await?;
        Ok(StreamFrames {
            frames: page.frames.into_iter().map(StreamFrame::from).collect(),
            next: StreamCursor::from_beginning(),
            closed_at: page.closed_at.map(TimestampMs),
            closed_reason: page.closed_reason.map(|state| state.to_string()),
        })
    }

    /// The document that the summary frames of an attempt were folded into, of the latest attempt when none is named.
    pub(crate) async fn summary(
        &self,
        id: ExecutionId,
        attempt: Option<AttemptIndex>,
    ) -> Result<Option<Vec<u8>>, SdkError> {
        let summary = match attempt {
            Some(attempt) => self.ask(Ask::<GetAttemptSummary>::at((id, attempt.get()))).await?,
            None => self.ask(Ask::<GetSummary>::at(id)).await?,
        };
        Ok(summary.document.map(|document| document.get().as_bytes().to_vec()))
    }
}
