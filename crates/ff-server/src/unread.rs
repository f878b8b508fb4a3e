//! What a request still sends when it has been answered.
//!
//! An answer often goes out before the whole body has come in, most of all a refusal. The next request on the connection must
//! not be taken for the rest of that body, so the rest is read and dropped as long as it is small; else the answer says
//! `Connection: close`, and the client opens another connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, Version};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// How much of a body is read after its answer is known, and for how long.
const READ_MAX: usize = 512 * 1024;
const READ_TIME: Duration = Duration::from_secs(1);

/// The rest of a request's body, once nobody reads it any more.
pub struct Unread {
    rest: Arc<Mutex<Option<Body>>>,
    /// Reading it would ask the client to send it.
    asks_first: bool,
}

/// Keeps an eye on the body of a request; nothing to do for one without.
pub fn watch(request: Request) -> (Request, Option<Unread>) {
    if request.body().is_end_stream() || request.version() > Version::HTTP_11 {
        return (request, None);
    }
    let rest = Arc::<Mutex<Option<Body>>>::default();
    let unread = Unread { rest: Arc::clone(&rest), asks_first: request.headers().contains_key(EXPECT) };
    let (head, body) = request.into_parts();
    (Request::from_parts(head, Body::new(Watched { body: Some(body), rest })), Some(unread))
}

impl Unread {
    /// Reads what is left, or tells the client that the connection ends with this answer.
    pub async fn settle(self, answer: &mut Response) {
        let Some(rest) = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        if self.asks_first || !read_out(rest).await {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// True when the body came to its end.
async fn read_out(body: Body) -> bool {
    let (mut chunks, mut left) = (body.into_data_stream(), READ_MAX);
    let reading = async {
        while let Some(chunk) = chunks.next().await {
            match chunk.map(|chunk| left.checked_sub(chunk.len())) {
                Ok(Some(less)) => left = less,
                Ok(None) | Err(_) => return false,
            }
        }
        true
    };
    tokio::time::timeout(READ_TIME, reading).await.unwrap_or(false)
}

/// A body that leaves what was not read of it behind.
struct Watched {
    body: Option<Body>,
    rest: Arc<Mutex<Option<Body>>>,
}

impl Watched {
    fn body(&mut self) -> Pin<&mut Body> {
        Pin::new(self.body.as_mut().expect("it is taken by drop alone"))
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.body().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}
