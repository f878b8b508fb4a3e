//! The seam to storage: an implementation of [`Host`] runs each call of the library atomically.

use std::fmt;

use async_trait::async_trait;
use tokio::sync::broadcast;

/// Where a call goes: a partition of a family, the fleet, or the configuration record.
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
    /// The hash tag of all keys of this route. The configuration record has none.
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

    /// The channel on which the partition announces ready and due work.
    pub fn channel(self) -> Option<String> {
        self.tag().map(|tag| format!("ff:wake:{tag}"))
    }

    /// The route of this channel.
    pub fn from_channel(channel: &str) -> Option<Route> {
        Self::from_tag(channel.strip_prefix("ff:wake:")?)
    }

    /// The route with this name.
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
    /// Whether the contract carries `no-writes`.
    pub read_only: bool,
    /// The arguments as one msgpack map, without envelope fields.
    pub args: Vec<u8>,
    /// Virtual time in milliseconds; only the test bundle uses it.
    pub now_ms: Option<i64>,
    /// Whether the reply should contain the number of store calls.
    pub count_calls: bool,
    /// How it may share a list.
    pub terms: Terms,
}

/// How an operation may share a list with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The number of the library whose rules its arguments passed. That library need not check them again.
    pub checked_by: Option<u32>,
    /// Its weight in a list.
    pub weight: usize,
    /// Background work, which leaves most of a list to other work.
    pub background: bool,
    /// The partitions it may visit, if all of them share a store.
    pub visits: Option<Visits>,
    /// Disables the library's fast paths; only the test bundle uses it.
    pub step_by_step: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { checked_by: None, weight: 1, background: false, visits: None, step_by_step: false }
    }
}

/// The number of partitions that an operation may visit, by family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visits {
    pub executions: u16,
    pub budgets: u16,
    pub quotas: u16,
}

/// An announcement of a partition, or the news that announcements may have been lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeUp {
    /// A message of one partition.
    Message {
        /// The partition that announced it.
        route: Route,
        /// The msgpack array of entries; see [`crate::wake`].
        payload: Vec<u8>,
    },
    /// The subscription of these routes is new. Earlier messages may be lost.
    Resubscribed {
        /// The routes to read at once.
        routes: Vec<Route>,
    },
}

/// A receiver of wake-ups. If it lags, it has lost messages and must read everything once.
pub type Watch = broadcast::Receiver<WakeUp>;

/// The position of a scan over the store's keys.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ScanCursor {
    /// From the beginning.
    #[default]
    Start,
    /// After an earlier page.
    After(Vec<u8>),
    /// There are no more keys.
    End,
}

#[derive(Clone, Debug)]
pub struct ScanPage {
    /// Keys that start with `ff:`; a key may appear on two pages.
    pub keys: Vec<Vec<u8>>,
    /// The position of the next page.
    pub next: ScanCursor,
}

/// What a host reports about itself.
#[derive(Clone, Debug)]
pub struct HostFacts {
    /// `embedded`, `valkey` or `valkey-cluster`.
    pub kind: &'static str,
    /// The durability in force, e.g. `fsync`.
    pub durability: String,
    /// What a crash may cost, as text.
    pub loss_window: String,
    /// False while the store refuses writes or is unreachable.
    pub healthy: bool,
    /// True while the store has no room for new work. Calls that end or free work still succeed.
    pub full: bool,
}

/// Why a host could not run a call.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum HostError {
    /// The store is unreachable or did not respond within the deadline. The call may or may not have been executed.
    #[error("store unavailable: {detail}")]
    Unavailable {
        /// The message of the store or the network.
        detail: String,
    },
    /// The store has no room; nothing was written.
    #[error("store full: {detail}")]
    Full { detail: String },
    /// The store refuses this program: version, permissions, another library.
    #[error("store refused: {detail}")]
    Refused {
        /// The required change.
        detail: String,
    },
    /// The function raised, which is a defect of the library. Nothing was written.
    #[error("{function} raised: {detail}")]
    Raised { function: String, detail: String },
    /// Stored data cannot be read.
    #[error("store corrupt: {detail}")]
    Corrupt {
        /// The place and the reason.
        detail: String,
    },
    /// The host was closed.
    #[error("host closed")]
    Closed,
}

/// Runs the library's functions, each call atomically, and passes on the announcements of partitions.
///
/// Calls that wait at the same time share lists; see [`crate::list`].
///
/// There are two implementations, and nothing above this trait knows which one it uses.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Runs one function and returns its raw reply.
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError>;

    /// Runs several functions in as few lists as possible. Each has its own reply, whatever happens to the others.
    /// Writes in one partition run in this order; reads may run before writes.
    async fn run(&self, operations: Vec<Invocation>) -> Vec<Result<Vec<u8>, HostError>> {
        let mut answers = Vec::with_capacity(operations.len());
        for operation in operations {
            answers.push(self.call(operation).await);
        }
        answers
    }

    /// A receiver of all announcements of the subscribed partitions from now on.
    fn watch(&self) -> Watch;

    /// Adds these routes to the subscription. Each receiver gets `Resubscribed` for the new ones.
    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError>;

    /// Returns when receivers have got everything that was announced before this call.
    async fn hear_out(&self) -> Result<(), HostError>;

    /// One page of the store's keys, for fsck and export.
    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError>;

    /// Sets whether a reader of events exists, so that calls announce them.
    fn set_listening(&self, on: bool);

    /// The number of commands that the store has processed, including inner ones.
    async fn store_commands(&self) -> Result<u64, HostError>;

    /// What this host is and guarantees.
    fn facts(&self) -> HostFacts;
}
