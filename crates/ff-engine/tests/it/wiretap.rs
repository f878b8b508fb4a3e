//! A host that counts the calls that go through it, and loses announcements when told to.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ff_script::{Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, WakeUp, Watch};
use tokio::sync::broadcast::{self, error::RecvError};

pub struct Wiretap {
    inner: Arc<dyn Host>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    announcements: broadcast::Sender<WakeUp>,
    muted: AtomicBool,
    /// A function that is not answered any more after so many calls.
    cut: Mutex<Option<(&'static str, usize)>>,
    /// A function that is never answered.
    hung: Mutex<Option<&'static str>>,
}

impl Wiretap {
    pub fn on(inner: Arc<dyn Host>) -> Arc<Self> {
        let mut heard = inner.watch();
        let (announcements, _) = broadcast::channel(4_096);
        let tap = Arc::new(Self {
            inner,
            calls: Mutex::default(),
            announcements,
            muted: AtomicBool::new(false),
            cut: Mutex::default(),
            hung: Mutex::default(),
        });
        let passing = Arc::downgrade(&tap);
        tokio::spawn(async move {
            loop {
                let wake_up = match heard.recv().await {
                    Ok(wake_up) => wake_up,
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                };
                let Some(tap) = passing.upgrade() else { return };
                if !tap.muted.load(Ordering::SeqCst) {
                    let _ = tap.announcements.send(wake_up);
                }
            }
        });
        tap
    }

    /// From now on nothing that is announced arrives, or it does again.
    pub fn mute(&self, muted: bool) {
        self.muted.store(muted, Ordering::SeqCst);
    }

    /// The function is answered so many times, and then no more.
    pub fn cut_after(&self, function: &'static str, calls: usize) {
        *self.cut.lock().unwrap() = Some((function, calls));
    }

    /// The function is not answered from now on, nor refused.
    pub fn hang(&self, function: &'static str) {
        *self.hung.lock().unwrap() = Some(function);
    }

    /// Says that announcements of these routes may have been lost.
    pub fn say_lost(&self, routes: Vec<Route>) {
        let _ = self.announcements.send(WakeUp::Resubscribed { routes });
    }

    /// How often this function was called so far.
    pub fn calls(&self, function: &str) -> usize {
        self.calls.lock().unwrap().get(function).copied().unwrap_or_default()
    }
}

#[async_trait]
impl Host for Wiretap {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        *self.calls.lock().unwrap().entry(invocation.function).or_default() += 1;
        let hung = *self.hung.lock().unwrap();
        if hung == Some(invocation.function) {
            std::future::pending::<()>().await;
        }
        let cut = *self.cut.lock().unwrap();
        if let Some((function, calls)) = cut
            && invocation.function == function
            && self.calls(function) > calls
        {
            return Err(HostError::Unavailable { detail: "cut".to_owned() });
        }
        self.inner.call(invocation).await
    }

    fn watch(&self) -> Watch {
        self.announcements.subscribe()
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
