//! The part of the seam that streams: frames written under a lease, and read by anyone.

use std::time::Duration;

use async_trait::async_trait;
use ff_core::types::{AttemptIndex, ExecutionId};
use uuid::Uuid;

use super::LeaseRef;
use crate::SdkError;
use crate::streams::{FrameId, NewFrame, StreamFrames};

/// What an append did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The id of each frame, in order.
    pub ids: Vec<String>,
    /// The number the next frame of the attempt gets.
    pub next_sequence: u64,
}

/// A range of frames, both ends included; without an end it goes as far as there are frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameSpan {
    pub(crate) from: Option<FrameId>,
    pub(crate) to: Option<FrameId>,
}

/// A place in a stream that does not move.
#[derive(Clone, Copy, Debug)]
pub struct FramePlace(pub(crate) FrameId);

/// Streams of attempts. Object safe; nothing has a default body.
#[async_trait]
pub trait Frames: Send + Sync + 'static {
    /// Appends frames to the leased attempt. The same first sequence, or the same request id, answers the ids of what was written.
    async fn append_frames(
        &self,
        lease: LeaseRef,
        frames: &[NewFrame],
        first_sequence: Option<u64>,
        request_id: Uuid,
    ) -> Result<Appended, SdkError>;

    /// Frames of an attempt within a range, oldest first; [`StreamFrames::next`] is the caller's to set.
    async fn read_frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        span: FrameSpan,
        limit: usize,
    ) -> Result<StreamFrames, SdkError>;

    /// Frames of an attempt after a place; waits up to `block` for the first. The end of the stream ends the wait.
    async fn tail_frames(
        &self,
        id: ExecutionId,
        attempt: AttemptIndex,
        after: FramePlace,
        block: Duration,
        limit: usize,
    ) -> Result<StreamFrames, SdkError>;

    /// The document that the summary frames of an attempt were folded into, of the latest attempt when none is named.
    async fn summary(&self, id: ExecutionId, attempt: Option<AttemptIndex>) -> Result<Option<Vec<u8>>, SdkError>;
}
