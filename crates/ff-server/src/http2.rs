//! One connection of HTTP/2: many requests at once, an idle limit for all of them, and an end without lost answers.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::Request;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::access::Peer;
use crate::body::BodyTime;
use crate::line::{Line, Patience, Phase};
use crate::times::Times;

/// Requests one connection may have in service at once.
const STREAMS_MAX: u32 = 256;

/// Answers the requests of one connection until it ends, is idle for too long, or the server stops.
pub async fn talk(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    router: Router,
    peer: Peer,
    stop: CancellationToken,
    times: Times,
) {
    let phase = Phase::default();
    let line = Line::new(stream, phase.clone(), Patience { head: times.head, reader: times.reader });
    let routed = TowerToHyperService::new(router);
    let (in_service, mut changes) = watch::channel(0_usize);
    let service = service_fn(move |mut request: Request<Incoming>| {
        phase.shared();
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(BodyTime(times.body));
        let (counted, answer) = (Counted::new(&in_service), routed.call(request));
        async move {
            let answer: Result<Response, Infallible> = answer.await;
            answer.map(|answer| answer.map(|body| Body::new(InService { body, _counted: counted })))
        }
    });
    let mut connection = pin!(
        http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .keep_alive_interval(times.keep_alive)
            .keep_alive_timeout(times.reader)
            .serve_connection(TokioIo::new(line), service)
    );
    let mut is_ending = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = stop.cancelled(), if !is_ending => {}
            () = idle(&mut changes, times.idle), if !is_ending => {}
        }
        connection.as_mut().graceful_shutdown();
        is_ending = true;
    }
}

/// Returns once no request has been in service for the time.
async fn idle(in_service: &mut watch::Receiver<usize>, time: Duration) {
    loop {
        let is_busy = *in_service.borrow_and_update() > 0;
        match is_busy {
            true if in_service.changed().await.is_err() => return,
            true => {}
            false => match tokio::time::timeout(time, in_service.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            },
        }
    }
}

/// One request in service.
struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(in_service: &watch::Sender<usize>) -> Self {
        in_service.send_modify(|count| *count += 1);
        Self(in_service.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The body of an answer; its request is in service until the body has been sent.
struct InService {
    body: Body,
    _counted: Counted,
}

impl HttpBody for InService {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
