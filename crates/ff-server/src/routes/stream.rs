//! The stream of one attempt: a range of frames, a wait for the next, and the folded summary.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ff_api::Payload;
use ff_api::streams::{Frame, GetAttemptSummary, GetSummary, ReadStream, StreamPage, StreamQuery, StreamSummary};
use ff_core::types::ExecutionId;
use ff_engine::FrameRange;
use ff_script::generated::{ReadSummary, ReadSummaryReply};

use crate::app::{App, Id, JsonAnswer, Number};
use crate::openapi::Described;
use crate::problem::{Answer, Problem};
use crate::query::Query;

const BLOCK_MAX_MS: i64 = 30_000;
const LIMIT_MAX: i64 = ff_core::limits::STREAM_READ_MAX;

pub fn routes() -> Described {
    Described::new()
        .serving::<ReadStream, _>(read)
        .serving::<GetAttemptSummary, _>(attempt_summary)
        .serving::<GetSummary, _>(latest_summary)
}

async fn read(
    State(app): State<App>,
    Id(id): Id,
    Number(attempt): Number,
    Query(query): Query<StreamQuery>,
) -> JsonAnswer<StreamPage> {
    let after = after(query.after.as_deref())?;
    let limit = query.limit.unwrap_or(100);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid("limit", format!("must be in 1..={LIMIT_MAX}, got {limit}")));
    }
    let block_ms = query.block_ms.unwrap_or(0);
    if !(0..=BLOCK_MAX_MS).contains(&block_ms) {
        return Err(Problem::invalid("block_ms", format!("must be in 0..={BLOCK_MAX_MS}, got {block_ms}")));
    }
    let limit = usize::try_from(limit).unwrap_or(1);
    let block = Duration::from_millis(block_ms.unsigned_abs());
    let streams = app.engine.streams();
    let range = || FrameRange { after: after.clone(), ..FrameRange::default() };
    let page = if block.is_zero() {
        streams.read(id, Some(attempt), range(), limit).await
    } else {
        let _open = app.metrics.process.long_poll();
        tokio::select! {
            page = streams.tail(id, attempt, after.clone(), limit, block) => page,
            () = app.stop.cancelled() => streams.read(id, Some(attempt), range(), limit).await,
        }
    };
    let ff_engine::StreamPage { frames, closed, .. } = page.map_err(|error| Problem::from(error).about(id))?;
    let next = frames.last().map(|frame| frame.id.clone()).or(after).unwrap_or_else(|| "start".to_owned());
    let (closed_at, closed_reason) = closed.unzip();
    let frames = frames.into_iter().map(Frame::from).collect();
    Ok(Json(StreamPage { frames, next, closed_at, closed_reason }))
}

/// A cursor: `start`, the id of a frame, or a time, which stands behind every frame of that millisecond.
fn after(text: Option<&str>) -> Answer<Option<String>> {
    let is_number = |text: &str| (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match text {
        None | Some("" | "start") => Ok(None),
        Some(time) if is_number(time) => Ok(Some(format!("{time}-{}", u64::MAX))),
        Some(id) if id.split_once('-').is_some_and(|(time, n)| is_number(time) && n.parse::<u64>().is_ok()) => {
            Ok(Some(id.to_owned()))
        }
        Some(_) => Err(Problem::invalid("after", "must be start, the id of a frame or a time in milliseconds")),
    }
}

async fn attempt_summary(State(app): State<App>, Id(id): Id, Number(n): Number) -> JsonAnswer<StreamSummary> {
    summary(&app, id, Some(n)).await
}

async fn latest_summary(State(app): State<App>, Id(id): Id) -> JsonAnswer<StreamSummary> {
    summary(&app, id, None).await
}

async fn summary(app: &App, id: ExecutionId, attempt: Option<u32>) -> JsonAnswer<StreamSummary> {
    let client = app.operations.client();
    let call = ReadSummary { attempt_index: attempt.map(i64::from), execution_id: id };
    let reply = client.call(client.route_of(&id), &call).await.map_err(|error| Problem::from(error).about(id))?;
    let ReadSummaryReply::Summary { document, version, attempt_index } = reply;
    let document = document.map(|document| Payload::stored(document.0, "json").written().0);
    Ok(Json(StreamSummary { execution_id: id, attempt_index, document, version }))
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
        for wrong in ["-", "17-", "-3", "a", "17-3-4", "+1", "17 ", "99999999999999999-1"] {
            assert!(after(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
