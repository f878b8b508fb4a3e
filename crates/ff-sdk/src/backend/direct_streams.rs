//! Streams of an engine in reach.

use std::time::Duration;

use async_trait::async_trait;
use ff_core::types::{AttemptIndex, ExecutionId, TimestampMs};
use ff_engine::{FrameRange, StreamPage};
use ff_script::{Bytes, generated};
use uuid::Uuid;

use super::direct::{Direct, fence};
use super::{Appended, FramePlace, FrameSpan, Frames, LeaseRef, is_json};
use crate::SdkError;
use crate::streams::{NewFrame, StreamCursor, StreamFrames};

fn new_frame(frame: &NewFrame) -> generated::NewFrame {
    generated::NewFrame {
        r#type: frame.frame_type.clone(),
        payload: Some(Bytes(frame.payload.clone())),
        payload_encoding: (!is_json(&frame.payload)).then(|| "base64".to_owned()),
        correlation_id: frame.correlation_id.clone(),
        mode: frame.mode,
    }
}

fn frames(page: StreamPage) -> StreamFrames {
    let (closed_at, closed_reason) = page.closed.unzip();
    StreamFrames {
        frames: page.frames.into_iter().map(Into::into).collect(),
        next: StreamCursor::from_beginning(),
        closed_at: closed_at.map(TimestampMs),
        closed_reason: closed_reason.map(|state| state.to_string()),
    }
}

#[async_trait]
impl Frames for Direct {
    async fn append_frames(
        &self,
        lease: LeaseRef,
        frames: &[NewFrame],
        first_sequence: Option<u64>,
        request_id: Uuid,
    ) -> Result<Appended, SdkError> {
        let frames = frames.iter().map(new_frame).collect();
        let streams = self.engine().streams();
        let appended =
            streams.append(lease.execution_id, fence(lease), frames, first_sequence, Some(request_id)).await?;
        Ok(Appended { ids: appended.ids, next_sequence: appended.next_sequence })
    }

    async fn read_frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        span: FrameSpan,
        limit: usize,
    ) -> Result<StreamFrames, SdkError> {
        let text = |id: crate::streams::FrameId| id.to_string();
        let range = FrameRange { after: None, from: span.from.map(text), to: span.to.map(text) };
        Ok(frames(self.engine().streams().read(id, Some(attempt.get()), range, limit).await?))
    }

    async fn tail_frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        after: FramePlace,
        block: Duration,
        limit: usize,
    ) -> Result<StreamFrames, SdkError> {
        let after = Some(after.0.to_string());
        Ok(frames(self.engine().streams().tail(id, attempt.get(), after, limit, block).await?))
    }

    async fn summary(&self, id: ExecutionId, attempt: Option<AttemptIndex>) -> Result<Option<Vec<u8>>, SdkError> {
        Ok(self.engine().streams().summary(id, attempt.map(AttemptIndex::get)).await?)
    }
}
