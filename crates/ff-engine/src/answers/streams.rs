//! Streams of attempts: written under a lease, read, and followed.

use ff_api::streams::{
    AppendFrames, AppendedFrames, Frame, FrameBody, GetAttemptSummary, GetSummary, ReadStream, StreamPage,
    StreamSummary,
};
use ff_api::{Ask, Payload, Problem};
use ff_core::limits::{FRAME_BYTES_MAX, STREAM_READ_MAX};
use ff_core::types::ExecutionId;
use ff_script::generated::{FrameMode, NewFrame, ReadSummaryReply};

use super::{about, request_id_of, stored, wait_of};
use crate::principal::Principal;
use crate::service::{Handle, Service};
use crate::streams::FrameRange;

/// The most frames of one request.
const FRAMES_MAX: usize = 4_096;

impl Handle<AppendFrames> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<AppendFrames>) -> Result<AppendedFrames, Problem> {
        let Ask { at: id, body, .. } = ask;
        let count = body.frames.len();
        if !(1..=FRAMES_MAX).contains(&count) {
            return Err(Problem::invalid("frames", format!("must be 1 to {FRAMES_MAX} frames, got {count}")));
        }
        let frames = body.frames.into_iter().enumerate().map(|(at, frame)| new_frame(at, frame));
        let frames = frames.collect::<Result<Vec<_>, _>>()?;
        let request_id = request_id_of(body.request_id.as_deref());
        let streams = self.engine.streams();
        let appending = async {
            let appended = streams.append(id, body.fence, frames, body.first_sequence, request_id).await;
            appended.map_err(about(id))
        };
        let appended = self.fenced(by, id, body.fence, |_| false, appending).await?;
        Ok(AppendedFrames {
            execution_id: id,
            ids: appended.ids,
            next_sequence: appended.next_sequence,
            replayed: appended.replayed,
        })
    }
}

fn new_frame(at: usize, frame: FrameBody) -> Result<NewFrame, Problem> {
    let field = format!("frames[{at}].payload");
    let payload = Payload::read(&field, frame.payload.as_deref(), frame.payload_encoding)?;
    let (payload, payload_encoding) = stored(&field, payload, FRAME_BYTES_MAX)?;
    let mode = frame.mode.unwrap_or(FrameMode::Durable);
    Ok(NewFrame { r#type: frame.r#type, payload, payload_encoding, correlation_id: frame.correlation_id, mode })
}

impl Handle<ReadStream> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ReadStream>) -> Result<StreamPage, Problem> {
        let Ask { at: (id, attempt), query, .. } = ask;
        let (after, to) = (after(query.after.as_deref())?, up_to(query.to.as_deref())?);
        let limit = query.limit.unwrap_or(100);
        if !(1..=STREAM_READ_MAX).contains(&limit) {
            return Err(Problem::invalid("limit", format!("must be in 1..={STREAM_READ_MAX}, got {limit}")));
        }
        let limit = usize::try_from(limit).unwrap_or(1);
        let block = wait_of("block_ms", query.block_ms)?;
        if to.is_some() && !block.is_zero() {
            return Err(Problem::invalid("to", "cannot be given beside a block_ms"));
        }
        let streams = self.engine.streams();
        let now = || streams.read(id, Some(attempt), FrameRange { after: after.clone(), from: None, to }, limit);
        let page = if block.is_zero() {
            now().await
        } else {
            tokio::select! {
                page = streams.tail(id, attempt, after.clone(), limit, block) => page,
                () = self.stop.cancelled() => now().await,
            }
        };
        let page = page.map_err(about(id))?;
        let last = page.frames.last().map(|frame| frame.id.clone());
        let (closed_at, closed_reason) = page.closed.unzip();
        let frames = page.frames.into_iter().map(Frame::from).collect();
        let next = last.or(after).unwrap_or_else(|| "start".to_owned());
        Ok(StreamPage { frames, next, closed_at, closed_reason })
    }
}

impl Handle<GetAttemptSummary> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetAttemptSummary>) -> Result<StreamSummary, Problem> {
        self.summary(ask.at.0, Some(ask.at.1)).await
    }
}

impl Handle<GetSummary> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetSummary>) -> Result<StreamSummary, Problem> {
        self.summary(ask.at, None).await
    }
}

impl Service {
    async fn summary(&self, id: ExecutionId, attempt: Option<u32>) -> Result<StreamSummary, Problem> {
        let summary = self.engine.streams().read_summary(id, attempt).await.map_err(about(id))?;
        let ReadSummaryReply::Summary { document, version, attempt_index } = summary;
        let document = document.map(|document| Payload::stored(document.0, "json").written().0);
        Ok(StreamSummary { execution_id: id, attempt_index, document, version })
    }
}

/// Where a reader goes on: behind a place, or at the `start`.
fn after(text: Option<&str>) -> Result<Option<String>, Problem> {
    match text {
        None | Some("" | "start") => Ok(None),
        Some(text) => match place(text) {
            None => Err(Problem::invalid("after", "must be start, the id of a frame or a time in milliseconds")),
            place => Ok(place),
        },
    }
}

/// The last frame a reader wants.
fn up_to(text: Option<&str>) -> Result<Option<String>, Problem> {
    let wrong = || Problem::invalid("to", "must be the id of a frame or a time in milliseconds");
    text.map(|text| place(text).ok_or_else(wrong)).transpose()
}

/// The id of a frame, or a time: the place behind every frame of that millisecond.
fn place(text: &str) -> Option<String> {
    let is_number = |text: &str| (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('-') {
        None if is_number(text) => Some(format!("{text}-{}", u64::MAX)),
        Some((time, number)) if is_number(time) && number.parse::<u64>().is_ok() => Some(text.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_start_an_id_or_a_time() {
        for start in [None, Some(""), Some("start")] {
            assert_eq!(after(start).unwrap(), None);
        }
        assert_eq!(after(Some("17-3")).unwrap().as_deref(), Some("17-3"));
        assert_eq!(after(Some("17")).unwrap().as_deref(), Some("17-18446744073709551615"));
        assert_eq!(up_to(Some("17-3")).unwrap().as_deref(), Some("17-3"));
        assert!(up_to(Some("start")).is_err());
        for wrong in ["-", "17-", "-3", "a", "17-3-4", "+1", "17 ", "99999999999999999-1"] {
            assert!(after(Some(wrong)).is_err() && up_to(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
