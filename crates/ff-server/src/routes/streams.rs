//! Streams: frames are appended and read, and all attempts are followed in one stream as server-sent events or NDJSON.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ff_api::streams::{AppendFrames, GetAttemptSummary, GetSummary, ReadStream, TailQuery, TailStream};
use ff_engine::MergedCursor;
use futures::stream;

use crate::app::{App, Id};
use crate::form::Form;
use crate::openapi::Described;
use crate::problem::{Answer, Problem};
use crate::query::Query;
use crate::tails::Piece;

pub fn routes() -> Described {
    Described::new()
        .answering::<AppendFrames>()
        .carrying::<ReadStream>()
        .answering::<GetAttemptSummary>()
        .answering::<GetSummary>()
        .serving::<TailStream, _>(tail)
}

/// Where a reader stands.
enum Reader {
    Came(Piece),
    At(MergedCursor),
    Done,
}

async fn tail(
    State(app): State<App>,
    Id(id): Id,
    headers: HeaderMap,
    Query(query): Query<TailQuery>,
) -> Answer<Response> {
    let last_seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let after = last_seen.map(str::to_owned).or(query.after);
    let cursor: MergedCursor = match after {
        None => MergedCursor::default(),
        Some(after) => after.parse().map_err(Problem::from)?,
    };
    let form = Form::accepted(&headers);
    let first = app.tails.first(id, &cursor, form).await.map_err(|error| Problem::from(error).about(id))?;
    let tails = (std::sync::Arc::clone(&app.tails), app.metrics.process.stream());
    let body = Body::from_stream(stream::unfold((Reader::Came(first), tails), move |(reader, tails)| async move {
        let piece = match reader {
            Reader::Came(piece) => piece,
            Reader::At(cursor) => tails.0.next(id, &cursor, form).await?,
            Reader::Done => return None,
        };
        let reader = piece.next.map_or(Reader::Done, Reader::At);
        Some((Ok::<Bytes, Infallible>(piece.bytes), (reader, tails)))
    }));
    Ok(([(header::CONTENT_TYPE, form.content_type())], body).into_response())
}
