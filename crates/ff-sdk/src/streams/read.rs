//! Reading and following streams.

use std::sync::Arc;
use std::time::Duration;

use ff_core::types::{AttemptIndex, ExecutionId};

use super::{FrameId, StreamCursor, StreamFrames};
use crate::backend::{Backend, FrameSpan};
use crate::{ClaimedTask, FlowFabricAdminClient, FlowFabricWorker, SdkError};

/// The longest a tail waits for a frame, in milliseconds.
pub const MAX_TAIL_BLOCK_MS: u64 = 30_000;
/// The most frames one read answers.
pub const STREAM_READ_HARD_CAP: u64 = 10_000;

/// Whatever has a backend to read through: a worker, an admin client, or the backend itself.
pub trait AsBackend {
    /// The backend.
    fn as_backend(&self) -> &dyn Backend;
}

impl AsBackend for dyn Backend {
    fn as_backend(&self) -> &dyn Backend {
        self
    }
}

impl AsBackend for Arc<dyn Backend> {
    fn as_backend(&self) -> &dyn Backend {
        self.as_ref()
    }
}

impl AsBackend for FlowFabricWorker {
    fn as_backend(&self) -> &dyn Backend {
        self.backend().as_ref()
    }
}

impl AsBackend for FlowFabricAdminClient {
    fn as_backend(&self) -> &dyn Backend {
        self.backend().as_ref()
    }
}

fn check_limit(context: &str, limit: u64) -> Result<usize, SdkError> {
    if !(1..=STREAM_READ_HARD_CAP).contains(&limit) {
        return Err(SdkError::config(context, "limit", format!("must be 1 to {STREAM_READ_HARD_CAP}, got {limit}")));
    }
    Ok(usize::try_from(limit).expect("at most 10_000"))
}

/// A place at an end of a range; `seq` completes one that names a millisecond.
fn place(context: &str, field: &str, text: &str, seq: u64) -> Result<FrameId, SdkError> {
    FrameId::read(text, seq).map_err(|error| SdkError::config(context, field, error.to_string()))
}

/// Frames of an attempt between two places, both included, oldest first.
///
/// `limit` is 1 to [`STREAM_READ_HARD_CAP`]; fewer frames may come when they are large, and [`StreamFrames::next`] says where to go
/// on. Refuses a wrong argument with [`SdkError::Config`] before anything is asked.
pub async fn read_stream(
    backend: &(impl AsBackend + ?Sized),
    execution_id: &ExecutionId,
    attempt_index: AttemptIndex,
    from: StreamCursor,
    to: StreamCursor,
    limit: u64,
) -> Result<StreamFrames, SdkError> {
    read(backend.as_backend(), *execution_id, attempt_index, &from, &to, limit).await
}

pub(crate) async fn read(
    backend: &dyn Backend,
    id: ExecutionId,
    attempt: AttemptIndex,
    from: &StreamCursor,
    to: &StreamCursor,
    limit: u64,
) -> Result<StreamFrames, SdkError> {
    let context = "read_stream";
    let limit = check_limit(context, limit)?;
    let begin = match from {
        StreamCursor::Start => None,
        StreamCursor::At(text) => Some(place(context, "from", text, 0)?),
        // Beyond every frame.
        StreamCursor::End => Some(FrameId::LAST),
    };
    let end = match to {
        StreamCursor::End => None,
        StreamCursor::At(text) => Some(place(context, "to", text, u64::MAX)?),
        // Before every frame.
        StreamCursor::Start => Some(FrameId::FIRST),
    };
    let before = begin.and_then(FrameId::before);
    let span = FrameSpan { after: before, to: end, block: Duration::ZERO };
    let mut read = backend.reach().frames(id, attempt, span, limit).await?;
    if end.is_some() {
        // What lies behind the range is not for this reader to know.
        (read.closed_at, read.closed_reason) = (None, None);
    }
    read.next = match (read.frames.last(), before) {
        (Some(last), _) => StreamCursor::At(last.id.clone()),
        (None, Some(before)) => StreamCursor::At(before.to_string()),
        (None, None) => StreamCursor::from_beginning(),
    };
    Ok(read)
}

/// Frames of an attempt after a concrete place. Waits up to `block_ms` for the first; the end of the stream ends the wait.
///
/// `block_ms` is at most [`MAX_TAIL_BLOCK_MS`], `limit` 1 to [`STREAM_READ_HARD_CAP`], `after` a [`StreamCursor::At`];
/// [`StreamCursor::from_beginning`] sees everything. Refuses anything else with [`SdkError::Config`] before anything is asked.
pub async fn tail_stream(
    backend: &(impl AsBackend + ?Sized),
    execution_id: &ExecutionId,
    attempt_index: AttemptIndex,
    after: StreamCursor,
    block_ms: u64,
    limit: u64,
) -> Result<StreamFrames, SdkError> {
    tail(backend.as_backend(), *execution_id, attempt_index, &after, block_ms, limit).await
}

pub(crate) async fn tail(
    backend: &dyn Backend,
    id: ExecutionId,
    attempt: AttemptIndex,
    after: &StreamCursor,
    block_ms: u64,
    limit: u64,
) -> Result<StreamFrames, SdkError> {
    let context = "tail_stream";
    let limit = check_limit(context, limit)?;
    if block_ms > MAX_TAIL_BLOCK_MS {
        let message = format!("must be at most {MAX_TAIL_BLOCK_MS}, got {block_ms}");
        return Err(SdkError::config(context, "block_ms", message));
    }
    let StreamCursor::At(text) = after else {
        let message = format!("must be a concrete cursor, got {after}; from_beginning() sees everything");
        return Err(SdkError::config(context, "after", message));
    };
    let place = place(context, "after", text, u64::MAX)?;
    let span = FrameSpan { after: Some(place), to: None, block: Duration::from_millis(block_ms) };
    let mut read = backend.reach().frames(id, attempt, span, limit).await?;
    read.next = StreamCursor::At(read.frames.last().map_or_else(|| text.clone(), |last| last.id.clone()));
    Ok(read)
}

/// The JSON document that the summary frames of an attempt were folded into, of the latest attempt when none is named; nothing when
/// no summary was written.
pub async fn stream_summary(
    backend: &(impl AsBackend + ?Sized),
    execution_id: &ExecutionId,
    attempt_index: Option<AttemptIndex>,
) -> Result<Option<Vec<u8>>, SdkError> {
    backend.as_backend().reach().summary(*execution_id, attempt_index).await
}

impl ClaimedTask {
    /// Frames of this attempt between two places, both included; see [`read_stream`].
    pub async fn read_stream(
        &self,
        from: StreamCursor,
        to: StreamCursor,
        limit: u64,
    ) -> Result<StreamFrames, SdkError> {
        read(self.core().backend.as_ref(), *self.execution_id(), self.attempt_index(), &from, &to, limit).await
    }

    /// Frames of this attempt after a concrete place; see [`tail_stream`].
    pub async fn tail_stream(&self, after: StreamCursor, block_ms: u64, limit: u64) -> Result<StreamFrames, SdkError> {
        tail(self.core().backend.as_ref(), *self.execution_id(), self.attempt_index(), &after, block_ms, limit).await
    }
}
