//! The seam to storage: whoever implements [`Host`] runs each call of the library atomically.

use std::fmt;

use async_trait::async_trait;
use tokio::sync::broadcast;

/// Where a call goes: a partition of one family, the fleet, or the configuration record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Route {
    /// Executions and flows: `{p:N}`.
    Execution(u16),
    /// Budgets: `{b:N}`.
    Budget(u16),
    /// Quotas: `{q:N}`.
    Quota(u16),
    /// Schedules: `{s:N}`.
    Schedule(u16),
    /// Workers, servers, lane definitions: `{w}`.
    Fleet,
    /// The record that fixes the partition counts.
    Config,
}

impl Route {
    /// The hash tag all keys of this route share; the configuration record has none.
    pub fn tag(self) -> Option<String> {
        match self {
            Route::Execution(n) => Some(format!("{{p:{n}}}")),
            Route::Budget(n) => Some(format!("{{b:{n}}}")),
            Route::Quota(n) => Some(format!("{{q:{n}}}")),
            Route::Schedule(n) => Some(format!("{{s:{n}}}")),
            Route::Fleet => Some("{w}".to_owned()),
            Route::Config => None,
        }
    }

    /// The channel on which the partition announces what became ready or due.
    pub fn channel(self) -> Option<String> {
        self.tag().map(|tag| format!("ff:wake:{tag}"))
    }

    /// The route whose channel this is.
    pub fn from_channel(channel: &str) -> Option<Route> {
        Self::from_tag(channel.strip_prefix("ff:wake:")?)
    }

    /// The route that is written so.
    pub fn from_name(name: &str) -> Option<Route> {
        Self::from_tag(name.strip_prefix("ff:")?)
    }

    fn from_tag(tag: &str) -> Option<Route> {
        let tag = tag.strip_prefix('{')?.strip_suffix('}')?;
        if tag == "w" {
            return Some(Route::Fleet);
        }
        let (family, number) = tag.split_once(':')?;
        let number = number.parse().ok()?;
        match family {
            "p" => Some(Route::Execution(number)),
            "b" => Some(Route::Budget(number)),
            "q" => Some(Route::Quota(number)),
            "s" => Some(Route::Schedule(number)),
            _ => None,
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag() {
            Some(tag) => write!(f, "ff:{tag}"),
            None => f.write_str("ff:config:partitions"),
        }
    }
}

/// One call of a library function.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The partition whose state the function reads and writes.
    pub route: Route,
    /// The function's name, e.g. `ff_complete_execution`.
    pub function: &'static str,
    /// The contract carries `no-writes`.
    pub read_only: bool,
    /// The arguments as one msgpack map, without envelope fields.
    pub args: Vec<u8>,
    /// Virtual time in milliseconds; honoured by the test bundle only.
    pub now_ms: Option<i64>,
    /// Ask the reply to carry the number of store calls it took.
    pub count_calls: bool,
    /// How it may travel.
    pub terms: Terms,
}

/// How an operation may travel with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The library whose rules its arguments were checked by; it need not check them again.
    pub checked_by: Option<u32>,
    /// How much of a list it takes up.
    pub weight: usize,
    /// Nobody waits for it: it leaves most of a list to others.
    pub background: bool,
    /// It may visit other partitions on its way, where all of them share a store.
    pub visits: Option<Visits>,
    /// The library takes no short ways; honoured by the test bundle only.
    pub step_by_step: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { checked_by: None, weight: 1, background: false, visits: None, step_by_step: false }
    }
}

/// How many partitions hold what an operation may visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visits {
    /// Partitions of executions.
    pub executions: u16,
    /// Partitions of budgets.
    pub budgets: u16,
    /// Partitions of quotas.
    pub quotas: u16,
}

/// What a partition announced, or the news that announcements may have been lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeUp {
    /// A message of one partition.
    Message {
        /// The partition that spoke.
        route: Route,
        /// The msgpack array of entries; see [`crate::wake`].
        payload: Vec<u8>,
    },
    /// The subscription of these routes is new: what was said before it may be lost.
    Resubscribed {
        /// The routes to look at once.
        routes: Vec<Route>,
    },
}

/// A receiver of wake-ups; one that lags has lost messages and looks at everything once.
pub type Watch = broadcast::Receiver<WakeUp>;

/// Where a scan of the store's keys goes on.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ScanCursor {
    /// From the beginning.
    #[default]
    Start,
    /// After an earlier page.
    After(Vec<u8>),
    /// Nothing is left.
    End,
}

/// One page of store keys.
#[derive(Clone, Debug)]
pub struct ScanPage {
    /// Keys that start with `ff:`; a key may appear on two pages.
    pub keys: Vec<Vec<u8>>,
    /// Where the next page begins.
    pub next: ScanCursor,
}

/// What a host says about itself.
#[derive(Clone, Debug)]
pub struct HostFacts {
    /// `embedded`, `valkey` or `valkey-cluster`.
    pub kind: &'static str,
    /// The durability in force, e.g. `fsync`.
    pub durability: String,
    /// What a crash may cost, in words.
    pub loss_window: String,
    /// False while the store refuses writes or cannot be reached.
    pub healthy: bool,
    /// True while the store has no room for new work; what ends or frees work is still accepted.
    pub full: bool,
}

/// Why a host could not run a call.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum HostError {
    /// The store cannot be reached or did not answer within the deadline; the call may or may not have happened.
    #[error("store unavailable: {detail}")]
    Unavailable {
        /// What the store or the network said.
        detail: String,
    },
    /// The store has no room; nothing was written.
    #[error("store full: {detail}")]
    Full {
        /// What is full.
        detail: String,
    },
    /// The store will not serve us: version, permissions, another library.
    #[error("store refused: {detail}")]
    Refused {
        /// What to change.
        detail: String,
    },
    /// The function raised: a defect of the library. Nothing was written.
    #[error("{function} raised: {detail}")]
    Raised {
        /// The function that raised.
        function: String,
        /// The message it raised with.
        detail: String,
    },
    /// The store's content cannot be read.
    #[error("store corrupt: {detail}")]
    Corrupt {
        /// Where and how.
        detail: String,
    },
    /// The host was closed.
    #[error("host closed")]
    Closed,
}

/// Runs the library's functions, each call atomically, and passes on what partitions announce.
///
/// Calls that wait at the same time share lists, as many as a store takes at once; see [`crate::list`].
///
/// Two implementations exist, and nothing above this trait knows which one it is talking to.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Runs one function and returns its raw reply.
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError>;

    /// Runs several, in as few lists as they fit into; each is answered on its own, whatever becomes of the others. Those that write in
    /// one partition run in this order; what only reads may run before what writes.
    async fn run(&self, operations: Vec<Invocation>) -> Vec<Result<Vec<u8>, HostError>> {
        let mut answers = Vec::with_capacity(operations.len());
        for operation in operations {
            answers.push(self.call(operation).await);
        }
        answers
    }

    /// A receiver of what the subscribed partitions announce from now on.
    fn watch(&self) -> Watch;

    /// Adds these routes to the watched ones; each receiver gets `Resubscribed` for the new ones.
    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError>;

    /// Returns when receivers have been passed everything that was announced before this call.
    async fn hear_out(&self) -> Result<(), HostError>;

    /// One page of the store's keys, for fsck and export.
    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError>;

    /// Says whether anyone reads events, so that calls announce them.
    fn set_listening(&self, on: bool);

    /// How many commands the store has processed, inner ones included.
    async fn store_commands(&self) -> Result<u64, HostError>;

    /// What this host is and promises.
    fn facts(&self) -> HostFacts;
}
