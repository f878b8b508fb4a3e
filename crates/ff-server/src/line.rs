//! One connection: how long the head of a request and the reader of an answer may take, and how many a single address may hold.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

/// What a connection is doing: nothing, sending the head of a request, or being served. A new one is expected to send a head.
#[derive(Clone, Debug)]
pub struct Phase(Arc<AtomicU8>);

impl Default for Phase {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(HEAD)))
    }
}

impl Phase {
    /// A request has arrived on a connection that carries many at once: their heads have no limit of their own.
    pub fn shared(&self) {
        self.0.store(BUSY, Ordering::Relaxed);
    }

    /// The head has arrived and the request is being served, until the guard goes.
    pub fn serving(&self) -> Serving {
        self.0.store(BUSY, Ordering::Relaxed);
        Serving(self.clone())
    }
}

/// A request in service.
pub struct Serving(Phase);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.0.store(IDLE, Ordering::Relaxed);
    }
}

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the head of a request: the first one from the connection's begin, later ones from their first byte.
    pub head: Duration,
    /// To take anything at all of an answer that waits for it.
    pub reader: Duration,
}

/// A stream that fails when the head of a request takes longer than it may, or when nobody reads what is written.
///
/// A client that says nothing between two requests is the business of the connection's idle limit.
pub struct Line<S> {
    stream: S,
    phase: Phase,
    patience: Patience,
    deadline: Pin<Box<Sleep>>,
    /// Until when something must be taken; only while something waits to be.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Line<S> {
    /// Watches over a stream.
    pub fn new(stream: S, phase: Phase, patience: Patience) -> Self {
        let deadline = Box::pin(tokio::time::sleep(patience.head));
        Self { stream, phase, patience, deadline, stalled: None }
    }

    /// Passes on what a write came to; one that waits too long fails.
    fn written<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.patience.reader;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads the answer"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Line<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if matches!(read, Poll::Ready(Ok(()))) && buf.filled().len() > before {
            let began = self.phase.0.compare_exchange(IDLE, HEAD, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            if began {
                let at = Instant::now() + self.patience.head;
                self.deadline.as_mut().reset(at);
            }
        }
        // Whether the byte that was read ends the head is known at the next read: a served request is not in its head any more.
        if read.is_pending()
            && self.phase.0.load(Ordering::Relaxed) == HEAD
            && self.deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head of a request took too long")));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Line<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, written)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Counts connections by address.
#[derive(Clone, Debug, Default)]
pub struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl Addresses {
    /// A place for one more connection of an address; nothing when it holds `max` already.
    pub fn enter(&self, address: IpAddr, max: usize) -> Option<Place> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Place { addresses: self.clone(), address })
    }
}

/// One connection of an address.
pub struct Place {
    addresses: Addresses,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(100);
    const PATIENCE: Patience = Patience { head: LIMIT, reader: Duration::from_secs(1) };

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_limit_and_so_has_the_silence_before_the_first() {
        for said in [&b""[..], b"GET"] {
            let (mut client, server) = tokio::io::duplex(64);
            let mut line = Line::new(server, Phase::default(), PATIENCE);
            client.write_all(said).await.unwrap();
            let (mut buf, began) = ([0; 16], Instant::now());
            if !said.is_empty() {
                assert_eq!(line.read(&mut buf).await.unwrap(), said.len());
            }
            let error = line.read(&mut buf).await.unwrap_err();
            assert_eq!((error.kind(), began.elapsed()), (io::ErrorKind::TimedOut, LIMIT), "after {said:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_between_requests_is_not_cut_off_and_the_next_head_is() {
        let (mut client, server) = tokio::io::duplex(64);
        let phase = Phase::default();
        let mut line = Line::new(server, phase.clone(), PATIENCE);
        drop(phase.serving());
        let mut buf = [0; 16];
        assert!(tokio::time::timeout(LIMIT * 4, line.read(&mut buf)).await.is_err());
        client.write_all(b"GET").await.unwrap();
        assert_eq!(line.read(&mut buf).await.unwrap(), 3);
        assert_eq!(line.read(&mut buf).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_service_is_not_cut_off() {
        let (mut client, server) = tokio::io::duplex(64);
        let phase = Phase::default();
        let mut line = Line::new(server, phase.clone(), PATIENCE);
        let mut buf = [0; 16];
        client.write_all(b"head").await.unwrap();
        assert_eq!(line.read(&mut buf).await.unwrap(), 4);
        let serving = phase.serving();
        assert!(tokio::time::timeout(LIMIT * 4, line.read(&mut buf)).await.is_err());
        drop(serving);
        assert!(tokio::time::timeout(LIMIT * 4, line.read(&mut buf)).await.is_err(), "idle again");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_nobody_reads_fails_and_one_that_is_read_slowly_does_not() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut line = Line::new(server, Phase::default(), PATIENCE);
        let slowly = tokio::spawn(async move {
            let mut buf = [0; 16];
            for _ in 0..16 {
                tokio::time::sleep(LIMIT).await;
                client.read_exact(&mut buf).await.unwrap();
            }
            client
        });
        // All of it takes longer than any part of it may.
        line.write_all(&[7; 16 * 16]).await.unwrap();
        let client = slowly.await.unwrap();
        let error = line.write_all(&[7; 256]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }

    #[test]
    fn an_address_holds_so_many_connections_and_no_more() {
        let addresses = Addresses::default();
        let [one, two] = [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)));
        let places: Vec<_> = (0..3).map(|_| addresses.enter(one, 3).unwrap()).collect();
        assert!(addresses.enter(one, 3).is_none());
        assert!(addresses.enter(two, 3).is_some());
        drop(places);
        assert!(addresses.enter(one, 1).is_some());
    }
}
