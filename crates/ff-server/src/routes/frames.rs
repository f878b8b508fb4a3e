//! `POST /v1/tasks/{id}/frames`: a running attempt writes its stream.

use axum::Json;
use axum::extract::State;
use ff_core::types::ExecutionId;
use ff_script::generated::{FrameMode, NewFrame};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::suspend::{request_of, settled};
use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::payload::{self, Encoding};
use crate::problem::{Answer, Problem};
use crate::word::word;
use ff_script::generated::Fence;

/// The largest body.
const FRAMES_BODY: usize = 4 * 1024 * 1024;
/// The largest payload of a frame.
const FRAME_MAX: usize = ff_core::limits::FRAME_BYTES_MAX;
/// The most frames of one request.
const FRAMES_MAX: usize = 4_096;

pub fn routes() -> Described {
    Described::new().with(routes!(append))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FrameBody {
    #[schema(value_type = vocabulary::FrameType)]
    r#type: String,
    #[schema(value_type = vocabulary::Payload, required = false)]
    payload: Option<Box<RawValue>>,
    payload_encoding: Option<Encoding>,
    #[schema(value_type = Option<vocabulary::CorrelationId>)]
    correlation_id: Option<String>,
    #[schema(value_type = Option<FrameMode>)]
    mode: Option<String>,
}

impl FrameBody {
    fn into_new(self, at: usize) -> Answer<NewFrame> {
        let (payload, payload_encoding) =
            payload::taken(&format!("frames[{at}].payload"), self.payload, self.payload_encoding, FRAME_MAX)?;
        let mode = match self.mode {
            None => FrameMode::Durable,
            Some(mode) => word(&format!("frames[{at}].mode"), &mode)?,
        };
        Ok(NewFrame { r#type: self.r#type, payload, payload_encoding, correlation_id: self.correlation_id, mode })
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FramesBody {
    fence: Fence,
    #[schema(min_items = 1, max_items = 4_096)]
    frames: Vec<FrameBody>,
    #[schema(value_type = Option<vocabulary::Count>)]
    first_sequence: Option<u64>,
    request_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AppendedFrames)]
struct AppendedShape {
    execution_id: ExecutionId,
    ids: Vec<String>,
    next_sequence: u64,
    replayed: bool,
}

/// Appends in order; the same request, or the same first sequence, answers the ids of what was written.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/frames",
    params(Id),
    request_body = FramesBody,
    responses((status = 200, body = AppendedShape)),
    extensions(("x-ff-codes" = json!("fence frames_missing"))),
)]
async fn append(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<FramesBody, FRAMES_BODY>,
) -> JsonAnswer<AppendedShape> {
    if !(1..=FRAMES_MAX).contains(&body.frames.len()) {
        return Err(Problem::invalid("frames", format!("must be 1 to {FRAMES_MAX} frames, got {}", body.frames.len())));
    }
    let frames: Vec<NewFrame> =
        body.frames.into_iter().enumerate().map(|(at, frame)| frame.into_new(at)).collect::<Answer<_>>()?;
    let request_id = request_of(body.request_id.as_deref());
    let streams = app.engine.streams();
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let appended = streams.append(id, body.fence, frames, body.first_sequence, request_id).await;
    let appended = settled(&app, id, body.fence, appended.map_err(Problem::from), false)?;
    Ok(Json(AppendedShape {
        execution_id: id,
        ids: appended.ids,
        next_sequence: appended.next_sequence,
        replayed: appended.replayed,
    }))
}
