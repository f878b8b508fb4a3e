//! Streams behind `ff server`.

use std::time::Duration;

use async_trait::async_trait;
use ff_core::types::{AttemptIndex, ExecutionId, TimestampMs};
use ff_script::generated::FrameMode;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::http::{Http, fence, read};
use super::http_waits::{shown, taken};
use super::{Appended, FramePlace, FrameSpan, Frames, LeaseRef};
use crate::SdkError;
use crate::streams::{FrameId, NewFrame, StreamCursor, StreamFrame, StreamFrames};
use crate::waits::unexpected;

#[derive(Serialize)]
struct FrameBody<'a> {
    r#type: &'a str,
    payload: Box<RawValue>,
    payload_encoding: &'static str,
    correlation_id: Option<&'a str>,
    mode: &'static str,
}

impl<'a> From<&'a NewFrame> for FrameBody<'a> {
    fn from(frame: &'a NewFrame) -> Self {
        let (payload, payload_encoding) = shown(&frame.payload);
        Self {
            r#type: &frame.frame_type,
            payload,
            payload_encoding,
            correlation_id: frame.correlation_id.as_deref(),
            mode: frame.mode.as_str(),
        }
    }
}

#[derive(Serialize)]
struct FramesBody<'a> {
    fence: Value,
    frames: Vec<FrameBody<'a>>,
    first_sequence: Option<u64>,
    request_id: Uuid,
}

#[derive(Deserialize)]
struct AppendedShape {
    ids: Vec<String>,
    next_sequence: u64,
}

#[derive(Deserialize)]
struct FrameShape {
    id: String,
    sequence: u64,
    r#type: String,
    at: i64,
    payload: Option<Box<RawValue>>,
    payload_encoding: Option<String>,
    correlation_id: Option<String>,
    mode: String,
}

impl FrameShape {
    fn frame(self) -> Result<StreamFrame, SdkError> {
        let payload = taken("payload", self.payload.as_deref(), self.payload_encoding.as_deref())?;
        Ok(StreamFrame {
            id: self.id,
            sequence: self.sequence,
            frame_type: self.r#type,
            payload: payload.unwrap_or_default(),
            correlation_id: self.correlation_id,
            mode: self.mode.parse::<FrameMode>().map_err(|_| unexpected("a frame of an unknown mode"))?,
            at: TimestampMs(self.at),
        })
    }
}

#[derive(Deserialize)]
struct StreamShape {
    frames: Vec<FrameShape>,
    closed_at: Option<i64>,
    closed_reason: Option<String>,
}

#[derive(Deserialize)]
struct SummaryShape {
    document: Option<Box<RawValue>>,
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
        let after = after.map_or_else(|| "start".to_owned(), |after| after.to_string());
        let (attempt, block_ms) = (attempt.get(), block.as_millis());
        let path =
            format!("/v1/executions/{id}/attempts/{attempt}/stream?after={after}&limit={limit}&block_ms={block_ms}");
        let (_, body) = self.request(Method::GET, &path, None, block).await?;
        let shape: StreamShape = read(&path, &body)?;
        Ok(StreamFrames {
            frames: shape.frames.into_iter().map(FrameShape::frame).collect::<Result<_, _>>()?,
            next: StreamCursor::from_beginning(),
            closed_at: shape.closed_at.map(TimestampMs),
            closed_reason: shape.closed_reason,
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
        let frames = frames.iter().map(FrameBody::from).collect();
        let body = FramesBody { fence: fence(lease), frames, first_sequence, request_id };
        let appended: AppendedShape = self.post_as(&format!("/v1/tasks/{}/frames", lease.execution_id), &body).await?;
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
        let path = match attempt {
            Some(attempt) => format!("/v1/executions/{id}/attempts/{}/stream/summary", attempt.get()),
            None => format!("/v1/executions/{id}/stream/summary"),
        };
        let shape: SummaryShape = self.get(&path).await?;
        Ok(shape.document.map(|document| document.get().as_bytes().to_vec()))
    }
}
