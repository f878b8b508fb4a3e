//! The host that programs use. It queues calls for the worker, and reads the committed store in parallel.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use ff_script::contents::Command;
use ff_script::list::{self, Class};
use ff_script::{
    Content, Contents, Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, WakeUp, Watch,
};
use tokio::sync::{broadcast, oneshot};

use crate::faults::Faults;
use crate::options::{Durability, Options};
use crate::store::dump::DumpValue;
use crate::store::{Store, StoreError};
use crate::worker::{Pending, Request, Shared, Worker};

/// A receiver that is this many messages behind has lost some, and is told so.
const WAKE_UPS_KEPT: usize = 8_192;

/// How long a relaxed store keeps committed writes unflushed.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// The library over an LMDB directory that only this process holds.
///
/// Dropping it finishes the queued calls and releases the directory.
pub struct Embedded {
    shared: Arc<Shared>,
    requests: Sender<Request>,
    durability: Durability,
    worker: Mutex<Option<JoinHandle<()>>>,
    flusher: Mutex<Option<Flusher>>,
}

/// The thread that flushes a relaxed store; it ends when its sender is dropped.
type Flusher = (Sender<()>, JoinHandle<()>);

impl Embedded {
    /// Takes the directory, opens the store and loads the library.
    ///
    /// Fails with `Refused` and the pid if another process holds the directory. Fails with `Corrupt` if the file is not a
    /// store, and with `Refused` if the library does not load.
    pub fn open(options: Options) -> Result<Embedded, HostError> {
        let store = Arc::new(Store::open(&options)?);
        let record =
            store.contents(&[Route::Config.to_string().into_bytes()]).map_err(StoreError::into_host)?.pop().flatten();
        if let Some(Content::Hash(fields)) = record {
            let fields = fields.iter().map(|(field, value)| (field.as_slice(), value.as_slice()));
            if let Some(detail) = ff_script::library::format_refusal(fields) {
                return Err(HostError::Refused { detail });
            }
        }
        let shared = Arc::new(Shared {
            store: Mutex::new(Some(Arc::clone(&store))),
            healthy: AtomicBool::new(true),
            full: AtomicBool::new(false),
            listening: AtomicBool::new(false),
            commands: AtomicU64::new(0),
            unflushed: AtomicBool::new(false),
            watched: RwLock::new(HashSet::new()),
            wake_ups: broadcast::channel(WAKE_UPS_KEPT).0,
            faults: Faults::default(),
        });
        let durability = options.durability;
        let (requests, queue) = mpsc::channel();
        let (ready, loaded) = mpsc::channel();
        let worker = {
            let (store, shared) = (Arc::clone(&store), Arc::clone(&shared));
            spawn("ff-store", move || match Worker::new(store, shared, options) {
                Ok(worker) => {
                    let _ = ready.send(Ok(()));
                    worker.run(&queue);
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            })?
        };
        let flusher = match durability {
            Durability::Fsync => None,
            Durability::Relaxed => Some(spawn_flusher(Arc::clone(&shared))?),
        };
        drop(store);
        let host =
            Embedded { shared, requests, durability, worker: Mutex::new(Some(worker)), flusher: Mutex::new(flusher) };
        match loaded.recv() {
            Ok(Ok(())) => Ok(host),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(HostError::Closed),
        }
    }

    /// Failures to inject, for tests.
    pub fn faults(&self) -> Faults {
        self.shared.faults.clone()
    }

    /// Copies the committed state into `directory`, which is then a complete store. Calls continue meanwhile.
    pub async fn backup(&self, directory: impl AsRef<Path>) -> Result<PathBuf, HostError> {
        let directory = directory.as_ref().to_owned();
        self.beside(move |store| store.backup(&directory)).await
    }

    /// Flushes all acknowledged writes, whatever the durability.
    pub async fn flush(&self) -> Result<(), HostError> {
        self.beside(|store| store.sync()).await
    }

    /// Checks every page and checksum of the committed state. `Corrupt` describes the damage. Calls continue meanwhile.
    pub async fn verify(&self) -> Result<(), HostError> {
        self.beside(|store| store.verify()).await
    }

    /// Every key with its full committed content.
    pub async fn dump(&self) -> Result<BTreeMap<String, DumpValue>, HostError> {
        let all = self.beside(|store| store.dump()).await?;
        all.into_iter()
            .map(|(key, value)| match String::from_utf8(key) {
                Ok(key) => Ok((key, value)),
                Err(error) => Err(HostError::Corrupt { detail: format!("key {:?} is not text", error.as_bytes()) }),
            })
            .collect()
    }

    /// The number of entries behind the keys of the store: members twice, stream entries, fields of large hashes.
    pub async fn entries_behind_keys(&self) -> Result<u64, HostError> {
        self.beside(|store| store.entries_behind_keys()).await
    }

    /// Finishes the queued calls, flushes, and releases the directory. Later calls fail with `Closed`.
    pub async fn close(&self) {
        let (worker, flusher) = self.stop();
        // Joining waits for at most one commit. A failed join means that the thread panicked, which it has logged.
        let _ = tokio::task::spawn_blocking(move || join(worker, flusher)).await;
    }

    fn stop(&self) -> (Option<JoinHandle<()>>, Option<Flusher>) {
        let _ = self.requests.send(Request::Close);
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        let flusher = self.flusher.lock().unwrap_or_else(PoisonError::into_inner).take();
        (worker, flusher)
    }

    /// Reads the committed store, away from the worker and from the async threads.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, HostError> {
        let store = self.shared.store().ok_or(HostError::Closed)?;
        let result = tokio::task::spawn_blocking(move || work(&store)).await;
        match result {
            Ok(result) => result.map_err(StoreError::into_host),
            Err(error) => Err(HostError::Unavailable { detail: error.to_string() }),
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, HostError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| HostError::Unavailable { detail: format!("cannot start thread {name}: {error}") })
}

fn spawn_flusher(shared: Arc<Shared>) -> Result<Flusher, HostError> {
    let (stop, stopped) = mpsc::channel();
    let thread = spawn("ff-flush", move || {
        while stopped.recv_timeout(FLUSH_EVERY) == Err(RecvTimeoutError::Timeout) {
            if shared.unflushed.swap(false, Ordering::SeqCst)
                && let Some(store) = shared.store()
                && let Err(error) = store.sync()
            {
                tracing::error!(%error, "a background flush failed");
                shared.healthy.store(false, Ordering::SeqCst);
                shared.unflushed.store(true, Ordering::SeqCst);
            }
        }
    })?;
    Ok((stop, thread))
}

fn join(worker: Option<JoinHandle<()>>, flusher: Option<Flusher>) {
    if let Some((stop, thread)) = flusher {
        drop(stop);
        let _ = thread.join();
    }
    if let Some(worker) = worker {
        let _ = worker.join();
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let (worker, flusher) = self.stop();
        join(worker, flusher);
    }
}

#[async_trait]
impl Contents for Embedded {
    async fn read_keys(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Content>>, HostError> {
        self.beside(move |store| store.contents(&keys)).await
    }

    async fn write_keys(&self, keys: Vec<(Vec<u8>, Content)>) -> Result<(), HostError> {
        self.load(keys.iter().flat_map(|(key, content)| content.commands(key)).collect()).await
    }

    async fn remove_keys(&self, keys: Vec<Vec<u8>>) -> Result<(), HostError> {
        self.load(keys.into_iter().map(|key| vec![b"DEL".to_vec(), key]).collect()).await
    }
}

impl Embedded {
    /// Runs commands that come from no function, all or none.
    async fn load(&self, commands: Vec<Command>) -> Result<(), HostError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Load(commands, answer)).map_err(|_| HostError::Closed)?;
        answered.await.unwrap_or(Err(HostError::Closed))
    }
}

#[async_trait]
impl Host for Embedded {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        list::checked(&invocation)?;
        let (answer, answered) = oneshot::channel();
        let class = Class::of(&invocation);
        self.requests.send(Request::Run(vec![Pending { invocation, class, answer }])).map_err(|_| HostError::Closed)?;
        answered.await.unwrap_or(Err(HostError::Closed))
    }

    async fn run(&self, operations: Vec<Invocation>) -> Vec<Result<Vec<u8>, HostError>> {
        let (mut waiting, mut queued) = (Vec::with_capacity(operations.len()), Vec::with_capacity(operations.len()));
        for invocation in operations {
            if let Err(refusal) = list::checked(&invocation) {
                waiting.push(Err(refusal));
                continue;
            }
            let (answer, answered) = oneshot::channel();
            let class = Class::of(&invocation);
            queued.push(Pending { invocation, class, answer });
            waiting.push(Ok(answered));
        }
        // A closed host drops the requests, which fails them.
        let _ = self.requests.send(Request::Run(queued));
        let mut answers = Vec::with_capacity(waiting.len());
        for one in waiting {
            answers.push(match one {
                Ok(answered) => answered.await.unwrap_or(Err(HostError::Closed)),
                Err(refusal) => Err(refusal),
            });
        }
        answers
    }

    fn watch(&self) -> Watch {
        self.shared.wake_ups.subscribe()
    }

    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError> {
        if self.shared.store().is_none() {
            return Err(HostError::Closed);
        }
        let fresh: Vec<Route> = {
            let mut watched = self.shared.watched.write().unwrap_or_else(PoisonError::into_inner);
            routes.iter().copied().filter(|route| watched.insert(*route)).collect()
        };
        if !fresh.is_empty() {
            // Having no receiver yet is fine: a new watcher reads everything once anyway.
            let _ = self.shared.wake_ups.send(WakeUp::Resubscribed { routes: fresh });
        }
        Ok(())
    }

    async fn hear_out(&self) -> Result<(), HostError> {
        // A call gets its reply after its announcements were passed on.
        Ok(())
    }

    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError> {
        self.beside(move |store| store.scan(cursor, limit)).await
    }

    fn set_listening(&self, on: bool) {
        self.shared.listening.store(on, Ordering::Relaxed);
    }

    async fn store_commands(&self) -> Result<u64, HostError> {
        Ok(self.shared.commands.load(Ordering::Relaxed))
    }

    fn facts(&self) -> HostFacts {
        let (durability, loss_window) = match self.durability {
            Durability::Fsync => ("fsync", "nothing that was answered"),
            Durability::Relaxed => (
                "relaxed",
                "nothing when the process is killed; up to 2 s of answered writes on a power failure, after which the store may have to be \
                 restored from a backup",
            ),
        };
        HostFacts {
            kind: "embedded",
            durability: durability.to_owned(),
            loss_window: loss_window.to_owned(),
            healthy: self.shared.healthy.load(Ordering::SeqCst) && self.shared.store().is_some(),
            full: self.shared.full.load(Ordering::SeqCst),
        }
    }
}
