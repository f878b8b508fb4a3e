//! Reads request bodies: bounded, strict, with the name of the field that is wrong.

use std::time::Duration;

use axum::body::BodyDataStream;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use bytes::{Bytes, BytesMut};
use ff_api::json;
pub use ff_api::json::unrepeated;
use futures::StreamExt;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::problem::{Answer, Problem};
use crate::times::Times;

const KIB: usize = 1024;
/// Submit and complete: one payload and what describes it.
pub const PAYLOAD: usize = 2 * KIB * KIB;
/// Batches and results.
pub const BATCH: usize = 64 * KIB * KIB;
/// Everything else.
pub const SMALL: usize = 512 * KIB;
/// How much of a body that is too large is read before the refusal, and for how long.
const DISCARD_MAX: usize = BATCH;
const DISCARD_TIME: Duration = Duration::from_secs(5);
/// How fast a body must come that takes longer than it may.
const BYTES_PER_SECOND: u64 = 32 * KIB as u64;

/// How long the body of a request may take.
#[derive(Clone, Copy)]
pub struct BodyTime(pub Duration);

/// A JSON body of at most `MAX` bytes; an empty one is `{}`.
pub struct Body<T, const MAX: usize = SMALL>(pub T);

impl<T: DeserializeOwned, S: Send + Sync, const MAX: usize> FromRequest<S> for Body<T, MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Answer<Self> {
        Ok(Self(read(&whole(request, MAX).await?)?))
    }
}

/// The bytes of a body, if there are not too many of them.
pub async fn whole(request: Request, max: usize) -> Answer<Bytes> {
    let said = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let time = request.extensions().get::<BodyTime>().map_or(Times::default().body, |BodyTime(time)| *time);
    // A client that asks first has not sent anything yet.
    let asks_first = request.headers().contains_key(EXPECT);
    let mut chunks = request.into_body().into_data_stream();
    if said.is_some_and(|length| length > max) {
        if !asks_first {
            discard(&mut chunks).await;
        }
        return Err(Problem::too_large("body", max));
    }
    // What a client announces is not there yet: room for it comes with it.
    let mut bytes = BytesMut::with_capacity(said.unwrap_or(0).min(SMALL));
    let began = Instant::now();
    loop {
        let earned = Duration::from_secs(u64::try_from(bytes.len()).unwrap_or(u64::MAX) / BYTES_PER_SECOND);
        let Ok(chunk) = timeout_at(began + time + earned, chunks.next()).await else {
            return Err(Problem::too_slow(bytes.len(), began.elapsed()));
        };
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|error| Problem::invalid("body", format!("did not arrive whole: {error}")))?;
        if bytes.len() + chunk.len() > max {
            discard(&mut chunks).await;
            return Err(Problem::too_large("body", max));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

/// Reads on for a while and keeps nothing: a client that sends its whole body before it listens must get to the answer,
/// and a connection closed on unread bytes is reset before the answer is read.
async fn discard(chunks: &mut BodyDataStream) {
    let mut left = DISCARD_MAX;
    let reading = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                break;
            }
        }
    };
    // Out of time is out of patience: the answer goes out either way.
    let _ = tokio::time::timeout(DISCARD_TIME, reading).await;
}

/// Reads a JSON object; nothing at all is an empty one.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    Ok(json::read(bytes)?)
}

/// Reads any JSON.
pub fn read_any<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    Ok(json::read_any(bytes)?)
}
