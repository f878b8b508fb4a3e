//! `GET /v1/events`: the feed as server-sent events or NDJSON, from a cursor on.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ff_api::events::{Event, EventsQuery, ReadEvents};
use ff_engine::{Delivered, Feed};
use futures::stream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::Caller;
use crate::app::App;
use crate::form::Form;
use crate::metrics::Held;
use crate::openapi::Described;
use crate::problem::{Answer, Problem};
use crate::query::Query;

pub fn routes() -> Described {
    Described::new().serving::<ReadEvents, _>(events)
}

async fn events(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<EventsQuery>,
) -> Answer<Response> {
    let last_seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let left = match query.limit.map(u64::try_from) {
        None => u64::MAX,
        Some(Ok(limit @ 1..)) => limit,
        Some(_) => return Err(Problem::invalid("limit", "must be at least 1")),
    };
    let (follow, form) = (query.follow.unwrap_or(true), Form::accepted(&headers));
    let query = EventsQuery { after: last_seen.map(str::to_owned).or(query.after), ..query };
    let mut feed = app.service.events(&caller, query).await?;
    // The first look happens before the answer begins, so that a cursor that is too old is a problem and no stream.
    let first = feed.next(Duration::ZERO).await?;
    let first = Some(first);
    let (stop, spoke, _open) = (app.stop.clone(), Instant::now(), app.metrics.process.stream());
    let keep_alive = app.times.keep_alive;
    let reader = Reader { feed, form, left, follow, first, keep_alive, stop, spoke, over: false, _open };
    let body = Body::from_stream(stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<Bytes, Infallible>(chunk), reader))
    }));
    Ok(([(header::CONTENT_TYPE, form.content_type())], body).into_response())
}

struct Reader {
    feed: Feed,
    form: Form,
    left: u64,
    follow: bool,
    first: Option<Vec<Delivered>>,
    keep_alive: Duration,
    stop: CancellationToken,
    /// When the stream said something last.
    spoke: Instant,
    over: bool,
    _open: Held,
}

impl Reader {
    /// The next piece of the stream; nothing when it is over.
    async fn next(&mut self) -> Option<Bytes> {
        let piece = self.piece().await;
        self.spoke = Instant::now();
        piece
    }

    async fn piece(&mut self) -> Option<Bytes> {
        if self.over || self.left == 0 {
            return None;
        }
        if let Some(first) = self.first.take() {
            let text = self.write(first);
            // The head of the answer goes out at once, with a comment where there is no event yet.
            return Some(if text.is_empty() { self.silence() } else { text.into() });
        }
        loop {
            // Events that nobody asked for do not keep the stream alive.
            let silent_for = self.keep_alive.saturating_sub(self.spoke.elapsed());
            let delivered = tokio::select! {
                () = self.stop.cancelled() => return None,
                delivered = self.feed.next(if self.follow { silent_for } else { Duration::ZERO }) => delivered,
            };
            match delivered {
                Ok(none) if none.is_empty() && !self.follow => {
                    if self.feed.is_caught_up() {
                        return None;
                    }
                }
                Ok(some) if some.is_empty() => return Some(self.silence()),
                Ok(some) => return Some(self.write(some).into()),
                Err(error) => {
                    self.over = true;
                    return Some(self.form.failed(&Problem::from(error)));
                }
            }
        }
    }

    /// A sign of life. Everything so far was written or not wanted: a reader that comes back goes on from here.
    fn silence(&self) -> Bytes {
        match self.form {
            Form::Sse => format!(":\nid: {}\n\n", self.feed.cursor()).into(),
            Form::Ndjson => Bytes::from_static(b"\n"),
        }
    }

    fn write(&mut self, delivered: Vec<Delivered>) -> String {
        let mut text = String::new();
        for one in delivered {
            let Some(left) = self.left.checked_sub(1) else { break };
            self.left = left;
            let event = Event::new(one.event, one.cursor.to_string());
            let json = serde_json::to_string(&event).expect("texts and numbers become JSON");
            match self.form {
                Form::Sse => text.push_str(&format!("id: {}\nevent: {}\ndata: {json}\n\n", event.cursor, event.r#type)),
                Form::Ndjson => {
                    text.push_str(&json);
                    text.push('\n');
                }
            }
        }
        text
    }
}
