//! Ways to the engine that lose one answer: a TCP proxy, and a host for the engine in this process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ff_script::{Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, Watch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What to lose, and how often it was.
#[derive(Clone, Default)]
pub struct Loss {
    needle: Arc<Mutex<Option<String>>>,
    lost: Arc<AtomicUsize>,
}

impl Loss {
    /// Loses the next answer to something that mentions this.
    pub fn lose_next(&self, needle: &str) {
        *self.needle.lock().unwrap() = Some(needle.to_owned());
    }

    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }

    fn takes(&self, bytes: &[u8]) -> bool {
        let mut needle = self.needle.lock().unwrap();
        let hit = needle.as_ref().is_some_and(|text| bytes.windows(text.len()).any(|window| window == text.as_bytes()));
        if hit {
            *needle = None;
            self.lost.fetch_add(1, Ordering::SeqCst);
        }
        hit
    }
}

/// Starts a proxy to a port of this machine; its own port.
pub async fn proxy(to: u16, loss: Loss) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
            tokio::spawn(pass(client, server, loss.clone()));
        }
    });
    port
}

async fn pass(mut client: TcpStream, mut server: TcpStream, loss: Loss) {
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(count) if count > 0 => {
                    let asked = &from_client[..count];
                    if server.write_all(asked).await.is_err() {
                        return;
                    }
                    if loss.takes(asked) {
                        // The answer shows that it was done; nobody hears it.
                        let _ = server.read(&mut from_server).await;
                        return;
                    }
                }
                _ => return,
            },
            read = server.read(&mut from_server) => match read {
                Ok(count) if count > 0 => {
                    if client.write_all(&from_server[..count]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

/// A host that makes a call and says that it does not know what came of it.
pub struct LossyHost {
    pub inner: Arc<dyn Host>,
    pub loss: Loss,
}

#[async_trait]
impl Host for LossyHost {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        let lost = self.loss.takes(invocation.function.as_bytes());
        let answer = self.inner.call(invocation).await;
        if lost { Err(HostError::Unavailable { detail: "the answer was lost".to_owned() }) } else { answer }
    }

    fn watch(&self) -> Watch {
        self.inner.watch()
    }

    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError> {
        self.inner.subscribe(routes).await
    }

    async fn hear_out(&self) -> Result<(), HostError> {
        self.inner.hear_out().await
    }

    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError> {
        self.inner.scan(cursor, limit).await
    }

    fn set_listening(&self, on: bool) {
        self.inner.set_listening(on);
    }

    async fn store_commands(&self) -> Result<u64, HostError> {
        self.inner.store_commands().await
    }

    fn facts(&self) -> HostFacts {
        self.inner.facts()
    }
}
