//! `POST /v1/tasks/{id}/frames`: a running attempt writes its stream.

use axum::Json;
use axum::extract::State;
use ff_api::Operation;
use ff_api::streams::{AppendFrames, AppendedFrames, FrameBody, FramesBody};
use ff_script::generated::{FrameMode, NewFrame};

use super::suspend::{request_of, settled};
use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::openapi::Described;
use crate::payload;
use crate::problem::{Answer, Problem};

/// The largest payload of a frame.
const FRAME_MAX: usize = ff_core::limits::FRAME_BYTES_MAX;
/// The most frames of one request.
const FRAMES_MAX: usize = 4_096;

pub fn routes() -> Described {
    Described::new().serving::<AppendFrames, _>(append)
}

fn new_frame(at: usize, frame: FrameBody) -> Answer<NewFrame> {
    let field = format!("frames[{at}].payload");
    let (payload, payload_encoding) = payload::taken(&field, frame.payload, frame.payload_encoding, FRAME_MAX)?;
    let mode = frame.mode.unwrap_or(FrameMode::Durable);
    Ok(NewFrame { r#type: frame.r#type, payload, payload_encoding, correlation_id: frame.correlation_id, mode })
}

async fn append(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<FramesBody, { AppendFrames::BODY_BYTES_MAX }>,
) -> JsonAnswer<AppendedFrames> {
    if !(1..=FRAMES_MAX).contains(&body.frames.len()) {
        return Err(Problem::invalid("frames", format!("must be 1 to {FRAMES_MAX} frames, got {}", body.frames.len())));
    }
    let frames: Vec<NewFrame> =
        body.frames.into_iter().enumerate().map(|(at, frame)| new_frame(at, frame)).collect::<Answer<_>>()?;
    let request_id = request_of(body.request_id.as_deref());
    let streams = app.engine.streams();
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let appended = streams.append(id, body.fence, frames, body.first_sequence, request_id).await;
    let appended = settled(&app, id, body.fence, appended.map_err(Problem::from), false)?;
    Ok(Json(AppendedFrames {
        execution_id: id,
        ids: appended.ids,
        next_sequence: appended.next_sequence,
        replayed: appended.replayed,
    }))
}
