//! Streams behind `ff server`.

use std::time::Duration;

use async_trait::async_trait;
use ff_api::streams::{AppendFrames, FrameBody, FramesBody, GetAttemptSummary, GetSummary, ReadStream, StreamQuery};
use ff_api::{Ask, Payload};
use ff_core::types::{AttemptIndex, ExecutionId, TimestampMs};
use uuid::Uuid;

use super::http::{Http, millis};
use super::{Appended, FramePlace, FrameSpan, Frames, LeaseRef};
use crate::SdkError;
use crate::streams::{FrameId, NewFrame, StreamCursor, StreamFrame, StreamFrames};
use crate::waits::unexpected;

fn frame_body(frame: &NewFrame) -> FrameBody {
    let (payload, payload_encoding) = Payload::of(frame.payload.clone()).sent();
    FrameBody {
        r#type: frame.frame_type.clone(),
        payload: Some(payload),
        payload_encoding,
        correlation_id: frame.correlation_id.clone(),
        mode: Some(frame.mode),
    }
}

fn frame(frame: ff_api::streams::Frame) -> Result<StreamFrame, SdkError> {
    let payload = Payload::read("payload", frame.payload.as_deref(), frame.payload_encoding)
        .map_err(|invalid| unexpected(&format!("a frame of which {invalid}")))?;
    Ok(StreamFrame {
        id: frame.id,
        sequence: frame.sequence.unsigned_abs(),
        frame_type: frame.r#type,
        payload: payload.map(|payload| payload.bytes).unwrap_or_default(),
        correlation_id: frame.correlation_id,
        mode: frame.mode,
        at: TimestampMs(frame.at),
    })
}

impl Http {
    async fn frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        after: Option<FrameId>,
        block: Duration,
        limit: usize,
    ) -> Result<StreamFrames, SdkError> {
        let query = StreamQuery {
            after: after.map(|after| after.to_string()),
            limit: Some(i64::try_from(limit).unwrap_or(i64::MAX)),
            block_ms: Some(i64::try_from(millis(block)).unwrap_or(i64::MAX)),
        };
        let page = self.ask(&Ask::<ReadStream>::by((id, attempt.get()), query), block).await?;
        Ok(StreamFrames {
            frames: page.frames.into_iter().map(frame).collect::<Result<_, _>>()?,
            next: StreamCursor::from_beginning(),
            closed_at: page.closed_at.map(TimestampMs),
            closed_reason: page.closed_reason.map(|state| state.to_string()),
        })
    }
}

#[async_trait]
impl Frames for Http {
    async fn append_frames(
        &self,
        lease: LeaseRef,
        frames: &[NewFrame],
        first_sequence: Option<u64>,
        request_id: Uuid,
    ) -> Result<Appended, SdkError> {
        let body = FramesBody {
            fence: lease.fence(),
            frames: frames.iter().map(frame_body).collect(),
            first_sequence,
            request_id: Some(request_id.to_string()),
        };
        let appended = self.ask(&Ask::<AppendFrames>::with(lease.execution_id, body), Duration::ZERO).await?;
        Ok(Appended { ids: appended.ids, next_sequence: appended.next_sequence })
    }

    async fn read_frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        span: FrameSpan,
        limit: usize,
    ) -> Result<StreamFrames, SdkError> {
        let mut page = self.frames(id, attempt, span.from.and_then(FrameId::before), Duration::ZERO, limit).await?;
        if let Some(to) = span.to {
            let within = |frame: &StreamFrame| FrameId::read(&frame.id, 0).is_ok_and(|id| id <= to);
            page.frames.retain(within);
        }
        Ok(page)
    }

    async fn tail_frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        after: FramePlace,
        block: Duration,
        limit: usize,
    ) -> Result<StreamFrames, SdkError> {
        self.frames(id, attempt, Some(after.0), block, limit).await
    }

    async fn summary(&self, id: ExecutionId, attempt: Option<AttemptIndex>) -> Result<Option<Vec<u8>>, SdkError> {
        let summary = match attempt {
            Some(attempt) => self.ask(&Ask::<GetAttemptSummary>::at((id, attempt.get())), Duration::ZERO).await?,
            None => self.ask(&Ask::<GetSummary>::at(id), Duration::ZERO).await?,
        };
        Ok(summary.document.map(|document| document.get().as_bytes().to_vec()))
    }
}
