//! What the store holds, and what the server can do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::access::LOOK;
use crate::lanes::LaneCounts;
use crate::operation::operations;

/// What the caller's token covers. What is known of the whole store only is null for a token that does not cover it all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stats {
    /// How many executions there are.
    pub executions: i64,
    /// How many partitions hold them.
    pub partitions: usize,
    /// How many executions are in which state.
    pub counts: LaneCounts,
    /// The same by lane.
    pub lanes: Vec<LaneStats>,
    /// The workers that may run some of it.
    pub workers: WorkerStats,
    /// How many timers are set.
    pub timers: Option<i64>,
    /// When the first of them is due.
    pub next_timer_at: Option<i64>,
    /// How many events are kept.
    pub events: Option<i64>,
    /// How many messages one partition still owes another.
    pub outbox: Option<i64>,
    /// How many of these cannot be delivered.
    pub stuck: Option<i64>,
    /// How many flows there are.
    pub flows: Option<i64>,
    /// How many flows still owe their members a cancel.
    pub cancel_backlog: Option<i64>,
    /// How many members that is.
    pub pending_cancels: Option<i64>,
}

/// How many executions of a lane are in which state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneStats {
    /// The lane's namespace.
    pub namespace: String,
    /// The lane.
    pub lane: String,
    /// Its counts.
    pub counts: LaneCounts,
}

/// How many workers there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerStats {
    /// Those that take work.
    pub live: usize,
    /// Those that take nothing new.
    pub draining: usize,
    /// How many executions all of them run at once.
    pub slots: i64,
}

/// What a server can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServerCapabilities {
    /// The server's version.
    pub version: String,
    /// The library in its store.
    pub library: ServerLibrary,
    /// Its store.
    pub store: ServerStore,
    /// Which credentials it asks for.
    pub authentication: String,
    /// What it serves.
    pub features: Vec<String>,
    /// The bounds of requests.
    pub limits: ServerLimits,
    /// How many of the live workers that the caller's token covers have each capability.
    pub worker_capabilities: BTreeMap<String, usize>,
}

/// The library in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServerLibrary {
    /// Its number: later ones are higher.
    pub number: i64,
    /// The digest of its text.
    pub hash: String,
}

/// A server's store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServerStore {
    /// What it is.
    pub kind: String,
    /// When what was acknowledged is on disk.
    pub durability: String,
    /// How much of it a crash may lose.
    pub loss_window: String,
    /// How many partitions hold executions.
    pub partitions: u16,
}

/// The bounds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServerLimits {
    /// The largest input.
    pub input_bytes: usize,
    /// The largest result.
    pub result_bytes: usize,
    /// The longest reason.
    pub reason_bytes: usize,
    /// The most submissions of a batch.
    pub batch_items: usize,
    /// The most tasks of one claim.
    pub claim_max: usize,
    /// The longest long poll.
    pub wait_ms: usize,
    /// The longest page of a list.
    pub list_limit: usize,
}

operations! {
    /// How much the store holds, by lane and state.
    GetStats server_stats: get "/v1/stats", LOOK;
    returns Stats: (status = 200, body = Stats);

    /// What this server can do: versions, store, features, limits.
    GetCapabilities server_capabilities: get "/v1/capabilities", LOOK;
    returns ServerCapabilities: (status = 200, body = ServerCapabilities);
}
