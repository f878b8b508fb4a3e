//! The worker thread: takes every queued call, runs them in one transaction, commits, passes messages on and answers.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ff_script::contents::Command;
use ff_script::{HostError, Invocation, Route, WakeUp};
use tokio::sync::{broadcast, oneshot};

use crate::directory::DirectoryLock;
use crate::environment::{Flags, Library};
use crate::faults::{Fault, Faults};
use crate::options::Options;
use crate::reserve::Reserve;
use crate::store::{Call, Published, Session, Store, StoreError, Txn};

/// The most calls that share one commit: bounds the time the first of them waits.
const GROUP_MAX: usize = 512;

/// A call that waits for its answer.
pub(crate) struct Pending {
    pub invocation: Invocation,
    /// The arguments with the envelope.
    pub args: Vec<u8>,
    pub answer: oneshot::Sender<Answer>,
}

pub(crate) type Answer = Result<Vec<u8>, HostError>;

pub(crate) enum Request {
    Call(Box<Pending>),
    /// Commands from outside the library, all in one transaction: an import.
    Load(Vec<Command>, oneshot::Sender<Result<(), HostError>>),
    Close,
}

/// What the worker and the host both look at.
pub(crate) struct Shared {
    /// Gone once the host is closed.
    pub store: Mutex<Option<Arc<Store>>>,
    pub healthy: AtomicBool,
    /// A write was refused for want of room on the disk, and none was seen since.
    pub full: AtomicBool,
    pub listening: AtomicBool,
    pub commands: AtomicU64,
    /// Something was committed that a relaxed store has not flushed yet.
    pub unflushed: AtomicBool,
    pub watched: RwLock<HashSet<Route>>,
    pub wake_ups: broadcast::Sender<WakeUp>,
    pub faults: Faults,
}

impl Shared {
    pub fn store(&self) -> Option<Arc<Store>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take_store(&self) -> Option<Arc<Store>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

pub(crate) struct Worker {
    /// Absent between a failure that closed the environment and the next attempt to open it.
    store: Option<Arc<Store>>,
    library: Library,
    shared: Arc<Shared>,
    options: Options,
    reserve: Reserve,
    /// Outlives the store, so that the directory stays ours while the store is opened again.
    lock: Arc<DirectoryLock>,
}

/// The process was killed, as far as anyone outside can tell.
struct Died;

/// How a group ended.
enum Group {
    Done(Vec<Answer>, Vec<Published>),
    /// The store failed; the call at this index met the failure, when one did.
    Lost(Option<usize>, StoreError),
}

impl Worker {
    pub fn new(store: Arc<Store>, shared: Arc<Shared>, options: Options) -> Result<Worker, HostError> {
        let library = Library::load(&options.library, options.instructions_max, options.strict)
            .map_err(|detail| HostError::Refused { detail: format!("the library does not load: {detail}") })?;
        tracing::debug!(functions = library.len(), "library loaded");
        let (lock, reserve) = (store.lock(), Reserve::take(&options.directory, options.reserve_bytes));
        shared.full.store(!reserve.is_held(), Ordering::SeqCst);
        Ok(Worker { store: Some(store), library, shared, options, reserve, lock })
    }

    /// Serves requests until the host is closed or dies.
    pub fn run(mut self, requests: &Receiver<Request>) {
        let served = catch_unwind(AssertUnwindSafe(|| self.serve(requests)));
        // From here on the host is closed: the store goes first, so that the directory is free when the last answer is out.
        let clean = matches!(served, Ok(Ok(())));
        if let Err(panic) = served {
            let reason =
                panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            tracing::error!(
                reason = reason.unwrap_or("unknown"),
                "the embedded store's thread panicked; the host is closed"
            );
            self.shared.healthy.store(false, Ordering::SeqCst);
        }
        if clean
            && let Some(store) = &self.store
            && let Err(error) = store.sync()
        {
            tracing::error!(%error, "the last flush failed");
        }
        drop(self.shared.take_store());
    }

    fn serve(&mut self, requests: &Receiver<Request>) -> Result<(), Died> {
        let mut group = Vec::new();
        let mut loads = Vec::new();
        let mut open = true;
        while open {
            let Ok(first) = requests.recv() else {
                return Ok(());
            };
            let mut next = Some(first);
            while let Some(request) = next {
                match request {
                    Request::Call(pending) => group.push(*pending),
                    Request::Load(commands, answer) => loads.push((commands, answer)),
                    Request::Close => open = false,
                }
                next = if open && group.len() < GROUP_MAX { requests.try_recv().ok() } else { None };
            }
            if !group.is_empty() {
                self.serve_group(std::mem::take(&mut group))?;
            }
            for (commands, answer) in loads.drain(..) {
                // Whoever asked may have gone; what was loaded stays.
                let _ = answer.send(self.load(&commands).map_err(StoreError::into_host));
            }
        }
        Ok(())
    }

    /// True for a call that ends, frees or renews, or only reads: a full store runs it too.
    fn goes_on_when_full(&self, pending: &Pending) -> bool {
        self.library.flags(pending.invocation.function).is_none_or(|flags| flags.allow_oom || flags.no_writes)
    }

    /// Looks whether a full disk has room again. While it has none, answers every call of the group that must wait for some.
    fn refuse_for_want_of_room(&mut self, group: Vec<Pending>) -> Vec<Pending> {
        let writes = group.iter().any(|pending| !pending.invocation.read_only);
        if !writes || !self.shared.full.load(Ordering::SeqCst) {
            return group;
        }
        if self.reserve.regain() {
            if self.reserve.has_room() {
                self.shared.full.store(false, Ordering::SeqCst);
                tracing::info!("the disk has room again");
            }
            return group;
        }
        let (go_on, wait): (Vec<Pending>, Vec<Pending>) =
            group.into_iter().partition(|pending| self.goes_on_when_full(pending));
        for pending in wait {
            let _ = pending.answer.send(Err(StoreError::Full("no space left on the disk".to_owned()).into_host()));
        }
        go_on
    }

    fn serve_group(&mut self, group: Vec<Pending>) -> Result<(), Died> {
        let group = self.refuse_for_want_of_room(group);
        if group.is_empty() {
            return Ok(());
        }
        let Some(store) = self.store.clone().or_else(|| self.reopen()) else {
            self.fail(group, StoreError::Unavailable("the store failed and cannot be opened again".to_owned()));
            return Ok(());
        };
        let outcome = self.run_group(&store, &group);
        drop(store);
        let outcome = match outcome {
            // A full disk answers with many errors: LMDB takes a short write for a broken disk.
            Group::Lost(culprit, StoreError::Io(detail)) if !self.reserve.has_room() => {
                Group::Lost(culprit, StoreError::Full(format!("no space left on the disk ({detail})")))
            }
            outcome => outcome,
        };
        match outcome {
            Group::Done(answers, published) => self.finish(group, answers, published),
            Group::Lost(_, StoreError::Injected(Fault::Crash)) => Err(Died),
            Group::Lost(_, error @ StoreError::Poisoned(_)) => {
                // Whether the commit that poisoned the environment reached the disk is unknown, so nothing is run again.
                self.fail(group, error);
                self.store = None;
                self.reopen();
                Ok(())
            }
            Group::Lost(_, StoreError::Full(_))
                if group.len() == 1 && self.goes_on_when_full(&group[0]) && self.reserve.release() =>
            {
                self.shared.full.store(true, Ordering::SeqCst);
                self.serve_group(group)
            }
            Group::Lost(_, error) if group.len() == 1 => {
                self.fail(group, error);
                Ok(())
            }
            Group::Lost(culprit, error) => {
                // Nobody was answered: each call runs again on its own, so that only those the store refuses are refused.
                let injected = matches!(error, StoreError::Injected(_));
                for (index, pending) in group.into_iter().enumerate() {
                    if injected && culprit == Some(index) {
                        self.fail(vec![pending], error.clone());
                    } else {
                        self.serve_group(vec![pending])?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Runs commands that come from no function, all of them or none.
    fn load(&mut self, commands: &[Command]) -> Result<(), StoreError> {
        let lost = || StoreError::Unavailable("the store failed and cannot be opened again".to_owned());
        let store = self.store.clone().or_else(|| self.reopen()).ok_or_else(lost)?;
        let txn = Txn::Write(store.env().write_txn()?);
        let mut session = Session::new(&store, txn, &self.shared.faults, &self.shared.commands, false);
        session.begin(Call { route: Route::Config, tag: None, read_only: false, now_us: self.options.clock.now_us() });
        for command in commands {
            let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            if let Err(refusal) = session.run(&args) {
                return Err(session.lost.take().unwrap_or(StoreError::Unavailable(refusal)));
            }
        }
        session.keep();
        session.commit()?;
        self.shared.unflushed.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Opens the store again after a failure LMDB does not go on from. Fails while someone still reads the old one.
    fn reopen(&mut self) -> Option<Arc<Store>> {
        let old = self.shared.take_store();
        if let Some(old) = old
            && let Err(old) = Arc::try_unwrap(old)
        {
            *self.shared.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(old);
            return None;
        }
        match Store::open_locked(&self.options, Arc::clone(&self.lock)) {
            Ok(store) => {
                let store = Arc::new(store);
                tracing::warn!("the store was opened again after a failure");
                *self.shared.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&store));
                self.store = Some(Arc::clone(&store));
                Some(store)
            }
            Err(error) => {
                tracing::error!(%error, "the store cannot be opened again");
                None
            }
        }
    }

    fn fail(&self, group: Vec<Pending>, error: StoreError) {
        tracing::error!(%error, "the store refused a call");
        if group.iter().any(|pending| !pending.invocation.read_only) {
            self.shared.healthy.store(false, Ordering::SeqCst);
        }
        if matches!(error, StoreError::Full(_)) {
            self.shared.full.store(true, Ordering::SeqCst);
        }
        for pending in group {
            let _ = pending.answer.send(Err(error.clone().into_host()));
        }
    }

    /// Passes on what was published, then answers. Both come after the commit, so a message is never ahead of the state it speaks of;
    /// the message comes first, so whoever is answered can rely on its having left.
    fn finish(&self, group: Vec<Pending>, answers: Vec<Answer>, published: Vec<Published>) -> Result<(), Died> {
        if self.shared.faults.dies_after_commit() {
            return Err(Died);
        }
        if !published.is_empty() {
            let watched = self.shared.watched.read().unwrap_or_else(PoisonError::into_inner);
            for (channel, payload) in published {
                if let Some(route) = std::str::from_utf8(&channel).ok().and_then(Route::from_channel)
                    && watched.contains(&route)
                {
                    let _ = self.shared.wake_ups.send(WakeUp::Message { route, payload });
                }
            }
        }
        for (pending, answer) in group.into_iter().zip(answers) {
            // A caller that gave up is no reason to stop.
            let _ = pending.answer.send(answer);
        }
        Ok(())
    }

    fn run_group(&self, store: &Store, group: &[Pending]) -> Group {
        let writes = group.iter().any(|pending| !pending.invocation.read_only);
        if writes && self.shared.faults.poisons() {
            return Group::Lost(None, StoreError::Poisoned("fatal error of the environment (injected)".to_owned()));
        }
        let env = store.env();
        let txn = if writes { env.write_txn().map(Txn::Write) } else { env.read_txn().map(Txn::Read) };
        let txn = match txn {
            Ok(txn) => txn,
            Err(error) => return Group::Lost(None, error.into()),
        };
        let mut session = Session::new(store, txn, &self.shared.faults, &self.shared.commands, self.options.strict);
        let mut answers = Vec::with_capacity(group.len());
        for (index, pending) in group.iter().enumerate() {
            answers.push(self.run_call(&mut session, pending));
            if let Some(error) = session.lost.take() {
                return Group::Lost(Some(index), error);
            }
        }
        let wrote = session.group_wrote;
        match session.commit() {
            Ok(published) => {
                if wrote {
                    self.shared.healthy.store(true, Ordering::SeqCst);
                    self.shared.unflushed.store(true, Ordering::SeqCst);
                }
                Group::Done(answers, published)
            }
            Err(error) => Group::Lost(None, error),
        }
    }

    fn run_call(&self, session: &mut Session<'_>, pending: &Pending) -> Answer {
        let invocation = &pending.invocation;
        let function = invocation.function;
        let Some(Flags { no_writes, .. }) = self.library.flags(function) else {
            return Err(HostError::Refused { detail: format!("the library has no function {function}") });
        };
        if invocation.read_only && !no_writes {
            return Err(HostError::Refused { detail: format!("{function} writes and cannot be called read-only") });
        }
        session.begin(Call {
            route: invocation.route,
            tag: invocation.route.tag(),
            read_only: no_writes,
            now_us: invocation.now_ms.map_or_else(|| self.options.clock.now_us(), |ms| ms.saturating_mul(1_000)),
        });
        let result = self.library.call(session, function, &invocation.route.to_string(), &pending.args);
        let raised = |detail: String| Err(HostError::Raised { function: function.to_owned(), detail });
        let wrote = session.wrote;
        let verdict = match result {
            Err(detail) if wrote => raised(format!("{detail} (after a write, which was taken back)")),
            Err(detail) => raised(detail),
            Ok(_) if self.options.strict && session.violation.is_some() => {
                raised(session.violation.take().unwrap_or_default())
            }
            Ok(reply) if self.options.strict && wrote && is_refusal(&reply) => {
                raised("it refused after a write".to_owned())
            }
            Ok(reply) => Ok(reply),
        };
        match verdict {
            Ok(_) => session.keep(),
            Err(_) => session.take_back(),
        }
        verdict
    }
}

/// True when the reply is a map with `err`: a refusal.
fn is_refusal(reply: &[u8]) -> bool {
    let map_len = match reply.first() {
        Some(first @ 0x80..=0x8f) => first & 0x0f,
        _ => return false,
    };
    // `{err=, detail=, calls=}` in any order: the name of the field stands in the first bytes of one of the entries.
    let mut rest = &reply[1..];
    for _ in 0..map_len {
        let Ok(key) = rmp_skip::text(&mut rest) else {
            return false;
        };
        if key == b"err" {
            return true;
        }
        if rmp_skip::value(&mut rest).is_err() {
            return false;
        }
    }
    false
}

/// Walks over msgpack without building it.
mod rmp_skip {
    pub struct Malformed;

    fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = rest.split_at_checked(len).ok_or(Malformed)?;
        *rest = tail;
        Ok(head)
    }

    fn number(rest: &mut &[u8], width: usize) -> Result<usize, Malformed> {
        Ok(take(rest, width)?.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }

    pub fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
        let len = match take(rest, 1)?[0] {
            tag @ 0xa0..=0xbf => usize::from(tag & 0x1f),
            0xd9 => number(rest, 1)?,
            0xda => number(rest, 2)?,
            0xdb => number(rest, 4)?,
            _ => return Err(Malformed),
        };
        take(rest, len)
    }

    pub fn value(rest: &mut &[u8]) -> Result<(), Malformed> {
        let mut left = 1usize;
        while left > 0 {
            left -= 1;
            let (bytes, values) = match take(rest, 1)?[0] {
                tag @ 0x80..=0x8f => (0, 2 * usize::from(tag & 0x0f)),
                tag @ 0x90..=0x9f => (0, usize::from(tag & 0x0f)),
                tag @ 0xa0..=0xbf => (usize::from(tag & 0x1f), 0),
                0xd9 | 0xc4 => (number(rest, 1)?, 0),
                0xda | 0xc5 => (number(rest, 2)?, 0),
                0xdb | 0xc6 => (number(rest, 4)?, 0),
                0xcc | 0xd0 => (1, 0),
                0xcd | 0xd1 => (2, 0),
                0xca | 0xce | 0xd2 => (4, 0),
                0xcb | 0xcf | 0xd3 => (8, 0),
                0xdc => (0, number(rest, 2)?),
                0xdd => (0, number(rest, 4)?),
                0xde => (0, 2 * number(rest, 2)?),
                0xdf => (0, 2 * number(rest, 4)?),
                0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => return Err(Malformed),
                _ => (0, 0),
            };
            take(rest, bytes)?;
            left = left.saturating_add(values);
        }
        Ok(())
    }
}
