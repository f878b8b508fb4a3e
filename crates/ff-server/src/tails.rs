//! Followers of merged streams: what comes next at a place is waited for, read and written down once for all who wait there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use ff_api::streams::{StreamEvent, StreamItem, StreamLine};
use ff_core::types::ExecutionId;
use ff_engine::{Merged, MergedCursor, Streams};
use ff_script::{Error, HostError};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio_util::sync::CancellationToken;

use crate::form::Form;
use crate::problem::Problem;

/// Frames read at a time.
const PAGE: usize = 256;

/// A piece of a stream, and where it goes on.
#[derive(Clone, Debug)]
pub struct Piece {
    /// What is sent.
    pub bytes: Bytes,
    /// The place behind it; nothing follows when there is none.
    pub next: Option<MergedCursor>,
}

/// Everyone who follows a merged stream on this server.
pub struct Tails {
    streams: Arc<Streams>,
    keep_alive: Duration,
    stop: CancellationToken,
    coming: Mutex<HashMap<Place, Coming>>,
}

/// Where readers stand, how they are written to, and what they ask for.
type Place = (ExecutionId, String, Form, Look);
/// A piece on its way; none when the server stops.
type Coming = Shared<BoxFuture<'static, Result<Option<Piece>, Error>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Look {
    /// What is there.
    Now,
    /// What comes.
    Next,
}

impl Tails {
    pub fn new(streams: Arc<Streams>, keep_alive: Duration, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self { streams, keep_alive, stop, coming: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Coming>> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is at a place now, for someone who comes; an unknown execution is a problem and no stream.
    pub async fn first(self: &Arc<Self>, id: ExecutionId, cursor: &MergedCursor, form: Form) -> Result<Piece, Error> {
        self.look(id, cursor, form, Look::Now).await?.ok_or(Error::Host(HostError::Closed))
    }

    /// What comes next at a place, or that nothing came for a while; none when the server stops.
    pub async fn next(self: &Arc<Self>, id: ExecutionId, cursor: &MergedCursor, form: Form) -> Option<Piece> {
        match self.look(id, cursor, form, Look::Next).await {
            Ok(piece) => piece,
            Err(error) => Some(Piece { bytes: form.failed(&Problem::from(error)), next: None }),
        }
    }

    async fn look(
        self: &Arc<Self>,
        id: ExecutionId,
        cursor: &MergedCursor,
        form: Form,
        look: Look,
    ) -> Result<Option<Piece>, Error> {
        let place = (id, cursor.to_string(), form, look);
        let coming = self.lock().entry(place.clone()).or_insert_with(|| self.ask(place, cursor.clone())).clone();
        coming.await
    }

    /// Goes on whatever becomes of those who wait for it, and is forgotten as soon as it came.
    fn ask(self: &Arc<Self>, place: Place, cursor: MergedCursor) -> Coming {
        let tails = Arc::clone(self);
        let asked = tokio::spawn(async move {
            let (id, form, look) = (place.0, place.2, place.3);
            // Even when something here panics: whoever comes next asks anew.
            let _forgotten = Forget { tails: Arc::clone(&tails), place };
            let block = match look {
                Look::Now => Duration::ZERO,
                Look::Next => tails.keep_alive,
            };
            let (merged, next) = tokio::select! {
                () = tails.stop.cancelled() => return Ok(None),
                merged = tails.streams.merged(id, cursor, PAGE, block) => merged?,
            };
            Ok(Some(written(merged, next, form)))
        });
        asked.map(|joined| joined.unwrap_or(Ok(None))).boxed().shared()
    }
}

struct Forget {
    tails: Arc<Tails>,
    place: Place,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.tails.lock().remove(&self.place);
    }
}

fn written(merged: Vec<Merged>, next: MergedCursor, form: Form) -> Piece {
    let (mut text, mut over) = (String::new(), false);
    for one in merged {
        let end = |closed: Option<(i64, ff_core::state::AttemptState)>| {
            let (closed_at, closed_reason) = closed.unzip();
            StreamItem::End { closed_at, closed_reason }
        };
        let line = match one {
            Merged::Frame { attempt, frame } => StreamLine {
                event: StreamEvent::Frame,
                cursor: MergedCursor { attempt, after: Some(frame.id.clone()) }.to_string(),
                attempt_index: Some(attempt),
                item: StreamItem::Frame(frame.into()),
            },
            Merged::Superseded { attempt, closed } => StreamLine {
                event: StreamEvent::AttemptSuperseded,
                cursor: next.to_string(),
                attempt_index: Some(attempt),
                item: end(closed),
            },
            Merged::Closed { attempt, closed } => {
                over = true;
                StreamLine {
                    event: StreamEvent::Closed,
                    cursor: next.to_string(),
                    attempt_index: attempt,
                    item: end(closed),
                }
            }
        };
        // A payload keeps its text, but it must not end the line; in JSON a line break is white space or escaped.
        let json = serde_json::to_string(&line).expect("texts and numbers become JSON").replace(['\n', '\r'], " ");
        match form {
            Form::Sse => {
                text.push_str(&format!("id: {}\nevent: {}\ndata: {json}\n\n", line.cursor, line.event.as_str()))
            }
            Form::Ndjson => {
                text.push_str(&json);
                text.push('\n');
            }
        }
    }
    // Silence is said too: the head of an answer goes out at once, and a dead connection is noticed.
    let bytes = match form {
        _ if !text.is_empty() => text.into(),
        Form::Sse => Bytes::from_static(b":\n\n"),
        Form::Ndjson => Bytes::from_static(b"\n"),
    };
    Piece { bytes, next: (!over).then_some(next) }
}
