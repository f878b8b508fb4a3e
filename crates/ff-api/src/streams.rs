//! Streams of attempts: frames written under a lease, and read by anyone.

use ff_core::state::AttemptState;
use ff_core::types::ExecutionId;
use ff_script::generated::{self, FrameMode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::access::{FOLLOW, WORK};
use crate::operation::{Nothing, fenced, operations};
#[cfg(feature = "openapi")]
use crate::parts::LastEventId;
use crate::parts::{Id, Number};
use crate::payload::{Encoding, Payload, with_payloads};
use crate::tasks::Fence;
#[cfg(feature = "openapi")]
use crate::vocabulary::{self, ServerSentEvent};

/// The largest body of an append.
const FRAMES_BODY: usize = 4 * 1024 * 1024;

/// A frame to write.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FrameBody {
    /// What it is.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::FrameType))]
    pub r#type: String,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    /// How `payload` carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_encoding: Option<Encoding>,
    /// What belongs together.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::CorrelationId>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// How it is kept; the default is `durable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<FrameMode>,
}

/// Frames to write, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FramesBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// The frames.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 4_096))]
    pub frames: Vec<FrameBody>,
    /// The number of the first of them; what is there already is not written again.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Count>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_sequence: Option<u64>,
    /// The same id writes the same frames once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What an append wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppendedFrames {
    /// The task's execution.
    pub execution_id: ExecutionId,
    /// The id of each frame, in order.
    pub ids: Vec<String>,
    /// The number the next frame of the attempt gets.
    pub next_sequence: u64,
    /// The same call had been made before; nothing was written twice.
    pub replayed: bool,
}

with_payloads! {
    /// A frame as readers get it.
    pub struct Frame {
        /// Where a reader that has seen it goes on.
        id: String,
        /// Its number in the attempt, counted from 0.
        sequence: i64,
        /// What it is.
        r#type: String,
        /// When it was written.
        at: i64,
    }
    payloads {
        /// What it says.
        payload: Option<Vec<u8>> as payload_encoding (required = false),
    }
    then {
        /// What belongs together.
        correlation_id: Option<String>,
        /// How it is kept.
        mode: FrameMode,
    }
}

impl From<generated::Frame> for Frame {
    fn from(frame: generated::Frame) -> Self {
        let encoding = Encoding::of_stored(frame.payload_encoding.as_deref());
        Self {
            id: frame.id,
            sequence: frame.sequence,
            r#type: frame.r#type,
            at: frame.at,
            payload_encoding: frame.payload.is_some().then_some(encoding),
            payload: frame.payload.map(|bytes| bytes.0),
            correlation_id: frame.correlation_id,
            mode: frame.mode,
        }
    }
}

/// Where to read, and how much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct StreamQuery {
    /// `start`, the id of a frame, or a time in milliseconds; the default is `start`.
    pub after: Option<String>,
    /// Nothing behind this frame or time; the default is everything. It cannot be waited for.
    pub to: Option<String>,
    /// How many; the default is 100.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 10_000))]
    pub limit: Option<i64>,
    /// How long to wait for the first one.
    #[cfg_attr(feature = "openapi", param(minimum = 0, maximum = 30_000))]
    pub block_ms: Option<i64>,
}

/// Frames of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StreamPage {
    /// The frames, oldest first.
    pub frames: Vec<Frame>,
    /// Where to go on.
    pub next: String,
    /// Set once everything up to the end was read.
    pub closed_at: Option<i64>,
    /// How the attempt ended.
    pub closed_reason: Option<AttemptState>,
}

/// The document that the summary frames of an attempt were folded into.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StreamSummary {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The attempt by its index; null when there is none yet.
    pub attempt_index: Option<i64>,
    /// The folded document; null when no summary was written.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    pub document: Option<Box<RawValue>>,
    /// Changes with every summary frame.
    pub version: i64,
}

/// Where a reader of all attempts begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct TailQuery {
    /// The `cursor` of the last line a reader has seen; the default is the beginning.
    pub after: Option<String>,
}

/// One line of the stream of all attempts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "Line")]
pub struct StreamLine {
    /// What it says.
    pub event: StreamEvent,
    /// Where a reader that has seen it goes on.
    pub cursor: String,
    /// The attempt by its index.
    pub attempt_index: Option<u32>,
    /// The frame, or the end.
    #[serde(flatten)]
    pub item: StreamItem,
}

/// What a line of a stream says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StreamEvent {
    /// A frame.
    Frame,
    /// The attempt has ended, and another one follows.
    AttemptSuperseded,
    /// The execution has ended: this is the last line.
    Closed,
}

impl StreamEvent {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::AttemptSuperseded => "attempt_superseded",
            Self::Closed => "closed",
        }
    }
}

/// What a line of a stream carries.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum StreamItem {
    /// A frame.
    Frame(Frame),
    /// The end of an attempt.
    End {
        /// When it ended.
        #[cfg_attr(feature = "openapi", schema(required))]
        closed_at: Option<i64>,
        /// How it ended.
        #[cfg_attr(feature = "openapi", schema(required))]
        closed_reason: Option<AttemptState>,
    },
}

/// A line as it is read: each field by its name, because a payload keeps its text only where nothing is flattened.
#[derive(Deserialize)]
struct Line {
    event: StreamEvent,
    cursor: String,
    attempt_index: Option<u32>,
    id: Option<String>,
    sequence: Option<i64>,
    r#type: Option<String>,
    at: Option<i64>,
    payload: Option<Box<RawValue>>,
    payload_encoding: Option<Encoding>,
    correlation_id: Option<String>,
    mode: Option<FrameMode>,
    closed_at: Option<i64>,
    closed_reason: Option<AttemptState>,
}

impl TryFrom<Line> for StreamLine {
    type Error = String;

    fn try_from(line: Line) -> Result<Self, String> {
        let Line { event, cursor, attempt_index, closed_at, closed_reason, .. } = line;
        let item = match (event, line.id, line.sequence, line.r#type, line.at, line.mode) {
            (StreamEvent::Frame, Some(id), Some(sequence), Some(r#type), Some(at), Some(mode)) => {
                let read = Payload::read("payload", line.payload.as_deref(), line.payload_encoding);
                let payload = read.map_err(|invalid| invalid.to_string())?.map(|payload| payload.bytes);
                let (payload_encoding, correlation_id) = (line.payload_encoding, line.correlation_id);
                StreamItem::Frame(Frame { id, sequence, r#type, at, payload, payload_encoding, correlation_id, mode })
            }
            (StreamEvent::Frame, ..) => return Err(format!("the frame at {cursor} lacks a field")),
            (StreamEvent::AttemptSuperseded | StreamEvent::Closed, ..) => StreamItem::End { closed_at, closed_reason },
        };
        Ok(Self { event, cursor, attempt_index, item })
    }
}

operations! {
    /// Appends in order; the same request, or the same first sequence, returns the ids of what was written.
    AppendFrames task_append_frames: post "/v1/tasks/{id}/frames", WORK;
    at (Id);
    takes FramesBody, up to FRAMES_BODY;
    returns AppendedFrames: (status = 200, body = AppendedFrames);
    fails fenced!["frames_missing"];

    /// Frames after a cursor; waits for the first of them when asked to.
    ReadStream stream_read: get "/v1/executions/{id}/attempts/{n}/stream", FOLLOW;
    at (Id, Number);
    asks StreamQuery;
    returns StreamPage: (status = 200, body = StreamPage);
    fails &["execution_not_found", "attempt_not_found"];

    /// The folded summary of an attempt's stream.
    GetAttemptSummary stream_get_attempt_summary: get "/v1/executions/{id}/attempts/{n}/stream/summary", FOLLOW;
    at (Id, Number);
    returns StreamSummary: (status = 200, body = StreamSummary);
    fails &["execution_not_found", "attempt_not_found"];

    /// The folded summary of the latest attempt's stream.
    GetSummary stream_get_summary: get "/v1/executions/{id}/stream/summary", FOLLOW;
    at (Id);
    returns StreamSummary: (status = 200, body = StreamSummary);
    fails &["execution_not_found", "attempt_not_found"];

    /// The frames of all attempts in one stream, as server-sent events or, when accepted, NDJSON; it ends with the execution.
    TailStream stream_tail: get "/v1/executions/{id}/stream", FOLLOW;
    at (Id);
    reads (LastEventId);
    asks TailQuery;
    returns Nothing: (status = 200, content((ServerSentEvent = "text/event-stream"), (String = "application/x-ndjson")));
    streams StreamLine;
    fails &["execution_not_found"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_read_is_the_line_that_was_written() {
        for text in [
            r#"{"event":"frame","cursor":"0:1-0","attempt_index":0,"id":"1-0","sequence":3,"type":"t","at":1,"payload":{"n":1e400},"payload_encoding":"json","correlation_id":null,"mode":"durable"}"#,
            r#"{"event":"closed","cursor":"0:1-0","attempt_index":null,"closed_at":7,"closed_reason":null}"#,
        ] {
            let line: StreamLine = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&line).unwrap(), text);
        }
        let lacking = r#"{"event":"frame","cursor":"0:1-0","attempt_index":0}"#;
        assert!(serde_json::from_str::<StreamLine>(lacking).unwrap_err().to_string().contains("lacks a field"));
    }
}
