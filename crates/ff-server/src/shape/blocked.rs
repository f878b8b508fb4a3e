//! Executions that wait for a budget or a quota.

use std::collections::BTreeMap;
use std::fmt::Display;

use ff_core::types::ExecutionId;
use ff_engine::{Blocked, BlockedPage};
use serde::Serialize;
use utoipa::ToSchema;

/// A page of those that wait.
#[derive(Serialize, ToSchema)]
#[schema(as = BlockedPage)]
pub struct LineShape {
    /// How many wait in all.
    count: i64,
    items: Vec<BlockedShape>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = BlockedExecution)]
struct BlockedShape {
    execution_id: ExecutionId,
    namespace: String,
    lane: String,
    kind: String,
    blocked_since: Option<i64>,
    /// It was parked while it ran.
    continues: bool,
    detail: BTreeMap<String, String>,
}

impl<Cursor: Display> From<BlockedPage<Cursor>> for LineShape {
    fn from(BlockedPage { count, items, next }: BlockedPage<Cursor>) -> Self {
        let items = items.into_iter().map(BlockedShape::from).collect();
        Self { count, items, next_cursor: next.map(|next| next.to_string()) }
    }
}

impl From<Blocked> for BlockedShape {
    fn from(blocked: Blocked) -> Self {
        let Blocked { execution_id, namespace, lane, kind, since, continues, detail } = blocked;
        Self { execution_id, namespace, lane, kind, blocked_since: since, continues, detail }
    }
}
