//! The worker thread. It takes all queued calls, runs them in one transaction, commits, passes messages on, and
//! replies.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ff_script::contents::Command;
use ff_script::list::{self, Class, LIST_BYTES_MAX, LIST_MAX, Marks};
use ff_script::{HostError, Invocation, Route, WakeUp};
use tokio::sync::{broadcast, oneshot};

use crate::directory::DirectoryLock;
use crate::environment::Library;
use crate::faults::{Fault, Faults};
use crate::options::Options;
use crate::reserve::Reserve;
use crate::store::{Call, Published, Remark, Session, Store, StoreError, Txn};

/// The most calls that share one commit; it bounds how long the first of them waits.
const GROUP_MAX: usize = 512;

/// A call that waits for its reply.
pub(crate) struct Pending {
    pub invocation: Invocation,
    pub class: Class,
    pub answer: oneshot::Sender<Answer>,
}

pub(crate) type Answer = Result<Vec<u8>, HostError>;

pub(crate) enum Request {
    /// Operations that were sent together, in order.
    Run(Vec<Pending>),
    /// Commands from outside the library, all in one transaction: an import.
    Load(Vec<Command>, oneshot::Sender<Result<(), HostError>>),
    Close,
}

/// State shared by the worker and the host.
pub(crate) struct Shared {
    /// `None` once the host is closed.
    pub store: Mutex<Option<Arc<Store>>>,
    pub healthy: AtomicBool,
    /// A write failed because the disk is full, and no space was found since.
    pub full: AtomicBool,
    pub listening: AtomicBool,
    pub commands: AtomicU64,
    /// There are committed writes that a relaxed store has not flushed yet.
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
    /// `None` between a failure that closed the environment and the next attempt to open it.
    store: Option<Arc<Store>>,
    library: Library,
    shared: Arc<Shared>,
    options: Options,
    reserve: Reserve,
    /// Outlives the store, so that this process keeps the directory while the store is opened again.
    lock: Arc<DirectoryLock>,
}

/// The process counts as killed for every outside observer.
struct Died;

/// How a group ended.
enum Group {
    Done(Vec<Answer>, Vec<Published>),
    /// The store failed. The index is the call that met the failure, if any.
    Lost(Option<usize>, StoreError),
    /// A list raised as a whole: nothing counts, and each of its calls runs alone.
    Apart,
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
        // From here on the host is closed. The store is dropped first, so that the directory is free when the last
        // reply is sent.
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
                    Request::Run(pending) => group.extend(pending),
                    Request::Load(commands, answer) => loads.push((commands, answer)),
                    Request::Close => open = false,
                }
                next = if open && group.len() < GROUP_MAX { requests.try_recv().ok() } else { None };
            }
            // Reads get their reply first, without waiting for a flush.
            let (reads, writes): (Vec<Pending>, Vec<Pending>) =
                group.drain(..).partition(|pending: &Pending| pending.class == Class::Read);
            let mut writes = writes;
            // The writes of one partition are flushed together.
            writes.sort_by_key(|pending| pending.invocation.route);
            for some in [reads, writes] {
                if !some.is_empty() {
                    self.serve_group(some)?;
                }
            }
            for (commands, answer) in loads.drain(..) {
                // The caller may have gone; the loaded data stays.
                let _ = answer.send(self.load(&commands).map_err(StoreError::into_host));
            }
        }
        Ok(())
    }

    /// True for a call that ends, frees or renews, or only reads. A full store runs these too.
    fn goes_on_when_full(pending: &Pending) -> bool {
        pending.class != Class::Run
    }

    /// Checks whether a full disk has space again. While it has none, fails every call of the group that needs space.
    fn refuse_for_want_of_room(&mut self, group: Vec<Pending>) -> Vec<Pending> {
        let writes = group.iter().any(|pending| pending.class != Class::Read);
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
        let (go_on, wait): (Vec<Pending>, Vec<Pending>) = group.into_iter().partition(Self::goes_on_when_full);
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
            // A full disk causes many errors: LMDB takes a short write for a broken disk.
            Group::Lost(culprit, StoreError::Io(detail)) if !self.reserve.has_room() => {
                Group::Lost(culprit, StoreError::Full(format!("no space left on the disk ({detail})")))
            }
            outcome => outcome,
        };
        match outcome {
            Group::Done(answers, published) => self.finish(group, answers, published),
            Group::Apart => group.into_iter().try_for_each(|pending| self.serve_group(vec![pending])),
            Group::Lost(_, StoreError::Injected(Fault::Crash)) => Err(Died),
            Group::Lost(_, error @ StoreError::Poisoned(_)) => {
                // It is unknown whether the commit that poisoned the environment reached the disk, so nothing runs
                // again.
                self.fail(group, error);
                self.store = None;
                self.reopen();
                Ok(())
            }
            Group::Lost(_, StoreError::Full(_))
                if group.len() == 1 && Self::goes_on_when_full(&group[0]) && self.reserve.release() =>
            {
                self.shared.full.store(true, Ordering::SeqCst);
                self.serve_group(group)
            }
            Group::Lost(_, error) if group.len() == 1 => {
                self.fail(group, error);
                Ok(())
            }
            Group::Lost(culprit, error) => {
                // No caller has a reply yet. Each call runs again alone, so that only the calls that the store refuses
                // fail.
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

    /// Runs commands that come from no function, all or none.
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

    /// Opens the store again after a failure that LMDB cannot recover from. Fails while a reader still uses the old
    /// one.
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
        if group.iter().any(|pending| pending.class != Class::Read) {
            self.shared.healthy.store(false, Ordering::SeqCst);
        }
        if matches!(error, StoreError::Full(_)) {
            self.shared.full.store(true, Ordering::SeqCst);
        }
        for pending in group {
            let _ = pending.answer.send(Err(error.clone().into_host()));
        }
    }

    /// Publishes the messages, then replies. Both happen after the commit, so a message is never ahead of the state it
    /// describes. The message goes first, so a caller with a reply knows that it was sent.
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
        let writes = group.iter().any(|pending| pending.class != Class::Read);
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
        for list in lists(group) {
            let outcome = self.run_list(&mut session, list);
            if let Some(error) = session.lost.take() {
                return Group::Lost(Some(answers.len() + session.at), error);
            }
            match outcome {
                Ok(some) => answers.extend(some),
                // Running each call alone shows which one is at fault.
                Err(_) if group.len() > 1 => return Group::Apart,
                Err(detail) => answers.push(raised(&list[0], detail)),
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

    /// Runs one list and returns the replies of its operations. An error is one that the list itself raised.
    fn run_list(&self, session: &mut Session<'_>, operations: &[Pending]) -> Result<Vec<Answer>, String> {
        let now_us = self.options.clock.now_us();
        let call = |pending: &Pending| Call {
            route: pending.invocation.route,
            tag: pending.invocation.route.tag(),
            read_only: pending.class == Class::Read,
            now_us: pending.invocation.now_ms.map_or(now_us, |ms| ms.saturating_mul(1_000)),
        };
        session.start(operations.iter().map(call).collect(), now_us);
        let class = Class::of_all(operations.iter().map(|pending| pending.class));
        let marks = Marks { listen: self.shared.listening.load(Ordering::Relaxed), ..Marks::default() }
            .of(operations.iter().map(|pending| &pending.invocation));
        let head = std::iter::once(list::write_head(marks));
        let packed: Vec<Vec<u8>> =
            head.chain(operations.iter().map(|pending| list::write_operation(&pending.invocation))).collect();
        let answers = self.library.run(session, class, &packed)?;
        let remarks = session.remarks.drain(..);
        Ok(operations
            .iter()
            .zip(answers)
            .zip(remarks)
            .map(|((pending, bytes), remark)| answer(pending, bytes, remark))
            .collect())
    }
}

/// Splits a group into lists of the size that a store takes.
fn lists(group: &[Pending]) -> Vec<&[Pending]> {
    let (mut lists, mut from, mut bytes, mut weight) = (Vec::new(), 0, 0, 0);
    for (at, pending) in group.iter().enumerate() {
        let (size, heavy) = (pending.invocation.args.len(), pending.invocation.terms.weight);
        if at > from && (weight + heavy > LIST_MAX || bytes + size > LIST_BYTES_MAX) {
            lists.push(&group[from..at]);
            (from, bytes, weight) = (at, 0, 0);
        }
        bytes += size;
        weight += heavy;
    }
    lists.push(&group[from..]);
    lists
}

fn raised(pending: &Pending, detail: String) -> Answer {
    Err(HostError::Raised { function: pending.invocation.function.to_owned(), detail })
}

/// The reply of the operation, together with the store's remark.
fn answer(pending: &Pending, bytes: Vec<u8>, remark: Option<Remark>) -> Answer {
    match (list::Answer::read(bytes), remark) {
        (_, Some(Remark::Broke(rule))) => raised(pending, rule),
        (list::Answer::Raised(detail), Some(Remark::TakenBack)) => {
            raised(pending, format!("{detail} (after a write, which was taken back)"))
        }
        (list::Answer::Raised(detail), None) => raised(pending, detail),
        (list::Answer::Unknown, _) => {
            let detail = format!("the library has no function {}", pending.invocation.function);
            Err(HostError::Refused { detail })
        }
        (list::Answer::Reply(reply), _) => Ok(reply),
    }
}
