//! Streams of attempts: frames written under a lease, read by anyone, from any place.
//!
//! Frames belong to one attempt and are numbered from 0. A durable frame stays; a live one may be trimmed first; a summary frame
//! holds a JSON merge patch that is folded into the attempt's document as well.

mod cursor;
mod frame;
mod read;
mod write;

pub(crate) use cursor::FrameId;
pub use cursor::{InvalidCursor, StreamCursor};
pub use frame::{AppendFrameOutcome, NewFrame, StreamFrame, StreamFrames};
pub(crate) use read::read;
pub use read::{AsBackend, MAX_TAIL_BLOCK_MS, STREAM_READ_HARD_CAP, read_stream, stream_summary, tail_stream};
pub(crate) use write::Writer;

pub use ff_script::generated::FrameMode;
