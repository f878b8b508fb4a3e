//! Executions that wait for a budget or a quota.

use std::collections::BTreeMap;

use ff_core::types::ExecutionId;
use serde::{Deserialize, Serialize};

/// A page of executions that wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BlockedPage {
    /// How many wait in all.
    pub count: i64,
    /// The page, the first to go on first. It may be short while more follows.
    pub items: Vec<BlockedExecution>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// An execution that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BlockedExecution {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its namespace.
    pub namespace: String,
    /// Its lane.
    pub lane: String,
    /// Its kind.
    pub kind: String,
    /// Since when it waits.
    pub blocked_since: Option<i64>,
    /// It was parked while it ran, and goes on with the same attempt.
    pub continues: bool,
    /// What was in the way.
    pub detail: BTreeMap<String, String>,
}
