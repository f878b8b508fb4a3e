//! Frames as they are written and read.

use ff_core::types::TimestampMs;
use ff_script::generated::FrameMode;

use super::StreamCursor;

/// A frame to append.
///
/// ```
/// use ff_sdk::task::{FrameMode, NewFrame};
/// let token = NewFrame::new("token", "hello").live();
/// assert_eq!((token.frame_type.as_str(), token.mode), ("token", FrameMode::Live));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFrame {
    /// What kind of frame, 1 to 64 bytes.
    pub frame_type: String,
    /// What it holds, at most 64 KiB; a JSON merge patch in a summary frame.
    pub payload: Vec<u8>,
    /// What it belongs to elsewhere.
    pub correlation_id: Option<String>,
    /// How it is kept.
    pub mode: FrameMode,
}

impl NewFrame {
    /// A durable frame.
    pub fn new(frame_type: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        let (frame_type, payload) = (frame_type.into(), payload.into());
        Self { frame_type, payload, correlation_id: None, mode: FrameMode::Durable }
    }

    /// The same frame, trimmed before any durable one.
    #[must_use]
    pub fn live(mut self) -> Self {
        self.mode = FrameMode::Live;
        self
    }

    /// The same frame, folded into the attempt's document too.
    #[must_use]
    pub fn summary(mut self) -> Self {
        self.mode = FrameMode::Summary;
        self
    }

    /// The same frame, with a word on what it belongs to.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }
}

/// Where an appended frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendFrameOutcome {
    /// Its id, which is a cursor too: `<ms>-<seq>`.
    pub id: String,
    /// How many frames the attempt had written with it.
    pub frame_count: u64,
}

/// A frame as readers get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFrame {
    /// Its id, which is a cursor too: `<ms>-<seq>`.
    pub id: String,
    /// Its number within the attempt, from 0.
    pub sequence: u64,
    /// What kind of frame.
    pub frame_type: String,
    /// What it holds.
    pub payload: Vec<u8>,
    /// What it belongs to elsewhere: the metadata of [`crate::ClaimedTask::append_frame`].
    pub correlation_id: Option<String>,
    /// How it is kept.
    pub mode: FrameMode,
    /// When it was written.
    pub at: TimestampMs,
}

/// Frames of one attempt, in order, and whether more can come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFrames {
    /// The frames.
    pub frames: Vec<StreamFrame>,
    /// Where to go on: after the last frame, or where the read began when there is none.
    pub next: StreamCursor,
    /// When the stream was closed; said to a reader who has come to its end.
    pub closed_at: Option<TimestampMs>,
    /// How its attempt ended, e.g. `succeeded`.
    pub closed_reason: Option<String>,
}

impl StreamFrames {
    /// True when nothing comes after these frames.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed_at.is_some()
    }
}
