//! Who follows which streams: one announcement wakes every reader of an execution, and readers at one place share a read.
//!
//! A reader looks, and only then waits. It waits on nothing but what is announced, so it waits only after a look that
//! began when the store already announced everything: a look before that is repeated.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::types::ExecutionId;
use ff_script::generated::FollowStream;
use ff_script::{Error, HostError, Wake};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::news::{Listener, News};
use crate::operations::Operations;
use crate::streams::{FrameRange, StreamPage, read};

/// How long a read may be shared: an announcement that is lost without a word stays unnoticed no longer than a wait.
const SHARED_FOR: Duration = Duration::from_secs(1);
/// The most reads of one execution that are kept to be shared.
const SHARED_READS_MAX: usize = 64;
/// Larger pages go to those who wait for them and are not kept for others.
const SHARED_BYTES_MAX: usize = 256 * 1024;
/// How long an execution nobody follows stays known: most readers come back for what is next.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// With fewer executions than this nobody is forgotten.
const REMEMBERED_MIN: usize = 1_024;

/// A place in an attempt's stream where a reader stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    /// The attempt.
    pub(crate) attempt: u32,
    /// The last frame seen of it.
    pub(crate) after: Option<String>,
    /// How many frames are asked for.
    pub(crate) limit: usize,
}

/// Everyone in this process who follows a stream.
pub(crate) struct Following {
    operations: Operations,
    followed: Mutex<Table>,
    /// Nothing is heard any more.
    deaf: CancellationToken,
}

struct Table {
    entries: HashMap<ExecutionId, Followed>,
    /// How many entries there may be before those nobody needs are forgotten.
    most: usize,
}

/// An execution someone follows, or did until a moment ago.
struct Followed {
    readers: usize,
    left_at: Instant,
    /// Rises with every announcement.
    heard: watch::Sender<u64>,
    /// The store announces the ends and starts of its attempts, too.
    marked: bool,
    marking: Option<Asked<()>>,
    /// Reads begun since the last announcement.
    reads: HashMap<Spot, Read>,
}

#[derive(Clone)]
struct Read {
    begun: Instant,
    /// It began when the store already announced ends and starts.
    marked: bool,
    page: Asked<Arc<StreamPage>>,
}

/// A call on its way, which goes on whatever becomes of those who wait for it.
type Asked<T> = Shared<BoxFuture<'static, Result<T, Error>>>;

fn ask<T: Clone + Send + Sync + 'static>(call: impl Future<Output = Result<T, Error>> + Send + 'static) -> Asked<T> {
    tokio::spawn(call).map(|joined| joined.unwrap_or(Err(Error::Host(HostError::Closed)))).boxed().shared()
}

impl Following {
    pub(crate) fn start(operations: Operations, tasks: &mut JoinSet<()>, stop: CancellationToken) -> Arc<Self> {
        let mut news = Listener::new(operations.client().host().as_ref());
        let deaf = CancellationToken::new();
        let table = Table { entries: HashMap::new(), most: REMEMBERED_MIN };
        let following = Arc::new(Self { operations, followed: Mutex::new(table), deaf: deaf.clone() });
        let hearing = Arc::clone(&following);
        tasks.spawn(async move {
            let _deaf_afterwards = deaf.drop_guard();
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    heard = news.next() => match heard {
                        Some(heard) => hearing.hear(&heard),
                        None => return,
                    },
                }
            }
        });
        following
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, heard: &[News]) {
        let mut followed = self.lock();
        for item in heard {
            match item {
                News::Said(_, Wake::Frames { execution_id }) => {
                    if let Some(entry) = followed.entries.get_mut(execution_id) {
                        entry.announced();
                    }
                }
                News::Said(..) => {}
                News::Lost(routes) => {
                    let client = self.operations.client();
                    let lost = followed.entries.iter_mut().filter(|(id, _)| routes.contains(&client.route_of(id)));
                    lost.for_each(|(_, entry)| entry.lost());
                }
                News::LostAny => followed.entries.values_mut().for_each(Followed::lost),
            }
        }
    }

    /// The page at a spot as soon as it is `ready`, or as it is when `block` is over or the engine stops.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        id: ExecutionId,
        spot: &Spot,
        block: Duration,
        ready: impl Fn(&StreamPage) -> bool,
    ) -> Result<Arc<StreamPage>, Error> {
        if self.deaf.is_cancelled() {
            return Err(Error::Host(HostError::Closed));
        }
        let until = Instant::now() + block;
        let mut place = Place::take(self, id);
        loop {
            place.heard.borrow_and_update();
            let Read { page, marked, .. } = self.read(id, spot);
            let page = page.await?;
            if ready(&page) || Instant::now() >= until {
                return Ok(page);
            }
            // A stream may end without a frame. What happened before the store knew that someone waits was not announced.
            if !marked {
                self.mark(id).await?;
                continue;
            }
            // When the time is over the loop ends with one more look, in case an announcement was lost without a word.
            tokio::select! {
                () = self.deaf.cancelled() => return Ok(page),
                _ = tokio::time::timeout_at(until, place.heard.changed()) => {}
            }
        }
    }

    /// One read for all who are at the same spot since the last announcement.
    fn read(self: &Arc<Self>, id: ExecutionId, spot: &Spot) -> Read {
        let mut followed = self.lock();
        let entry = followed.entries.get_mut(&id).expect("who reads has a place, and an entry with readers stays");
        let now = Instant::now();
        let fresh = |read: &Read| now.duration_since(read.begun) < SHARED_FOR && (read.marked || !entry.marked);
        if let Some(read) = entry.reads.get(spot).filter(|read| fresh(read)) {
            return read.clone();
        }
        let (following, asked) = (Arc::clone(self), spot.clone());
        let page = ask(async move {
            let Spot { attempt, after, limit } = asked.clone();
            let range = FrameRange { after, ..FrameRange::default() };
            let page = read(&following.operations, id, Some(attempt), range, limit).await.map(Arc::new);
            match &page {
                Ok(page) if page.bytes() <= SHARED_BYTES_MAX => {}
                Ok(_) => following.forget_read(id, &asked, now, false),
                Err(_) => following.forget_read(id, &asked, now, true),
            }
            page
        });
        let read = Read { begun: now, marked: entry.marked, page };
        if entry.reads.len() >= SHARED_READS_MAX {
            entry.reads.retain(|_, read| now.duration_since(read.begun) < SHARED_FOR);
        }
        if entry.reads.len() < SHARED_READS_MAX {
            entry.reads.insert(spot.clone(), read.clone());
        }
        read
    }

    /// A read that failed, or is too large to keep, is not for those who come later.
    fn forget_read(&self, id: ExecutionId, spot: &Spot, begun: Instant, failed: bool) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            if entry.reads.get(spot).is_some_and(|read| read.begun == begun) {
                entry.reads.remove(spot);
            }
            // It may have failed because the execution is gone; one with its id that comes later was not marked.
            entry.marked &= !failed;
        }
    }

    /// Makes the store announce ends and starts, with one call however many ask.
    async fn mark(self: &Arc<Self>, id: ExecutionId) -> Result<(), Error> {
        let marking = {
            let mut followed = self.lock();
            let entry = followed.entries.get_mut(&id).expect("who reads has a place, and an entry with readers stays");
            if entry.marked {
                return Ok(());
            }
            let operations = self.operations.clone();
            let call = async move {
                let client = operations.client();
                client.call(client.route_of(&id), &FollowStream { execution_id: id }).await.map(|_| ())
            };
            entry.marking.get_or_insert_with(|| ask(call)).clone()
        };
        let outcome = marking.clone().await;
        if let Some(entry) = self.lock().entries.get_mut(&id)
            // Not when something was lost meanwhile: the store may be another one, which was never told.
            && entry.marking.as_ref().is_some_and(|current| current.ptr_eq(&marking))
        {
            entry.marking = None;
            entry.marked = outcome.is_ok();
        }
        outcome
    }
}

impl Followed {
    fn announced(&mut self) {
        self.reads.clear();
        self.heard.send_modify(|count| *count += 1);
    }

    /// Announcements may have been lost, and a failover may have lost that someone follows: everyone looks and asks again.
    fn lost(&mut self) {
        (self.marked, self.marking) = (false, None);
        self.announced();
    }
}

impl Table {
    /// Forgets executions nobody has followed for a while, when there are twice as many as after the last time.
    fn prune(&mut self) {
        if self.entries.len() >= self.most {
            self.entries.retain(|_, entry| entry.readers > 0 || entry.left_at.elapsed() < REMEMBERED_FOR);
            self.most = (2 * self.entries.len()).max(REMEMBERED_MIN);
        }
    }
}

/// A place among the followers of an execution, given up on drop.
struct Place<'a> {
    following: &'a Following,
    id: ExecutionId,
    heard: watch::Receiver<u64>,
}

impl<'a> Place<'a> {
    fn take(following: &'a Following, id: ExecutionId) -> Self {
        let mut followed = following.lock();
        followed.prune();
        let entry = followed.entries.entry(id).or_insert_with(|| Followed {
            readers: 0,
            left_at: Instant::now(),
            heard: watch::Sender::new(0),
            marked: false,
            marking: None,
            reads: HashMap::new(),
        });
        if entry.readers == 0 && entry.left_at.elapsed() >= REMEMBERED_FOR {
            entry.marked = false;
        }
        entry.readers += 1;
        Self { following, id, heard: entry.heard.subscribe() }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.following.lock().entries.get_mut(&self.id) {
            entry.readers -= 1;
            if entry.readers == 0 {
                entry.left_at = Instant::now();
                entry.reads.clear();
            }
        }
    }
}
