//! The check of a store's invariants.

use serde::{Deserialize, Serialize};

use crate::access::RULE;
use crate::operation::operations;

/// How to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FsckBody {
    /// `true` mends what has one right answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<bool>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FsckReport {
    /// Every invariant holds.
    pub clean: bool,
    /// How many executions were looked at.
    pub executions: i64,
    /// How many keys were looked at.
    pub keys: usize,
    /// What does not hold.
    pub findings: Vec<FsckFinding>,
    /// Keys that begin like ours and belong to no partition of this store.
    pub foreign: Vec<String>,
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FsckFinding {
    /// Its number.
    pub invariant: i64,
    /// The key it does not hold for.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// It was mended.
    pub repaired: bool,
}

operations! {
    /// Verifies every invariant of the store; with `repair` it mends what has one right answer.
    CheckStore store_check: post "/v1/admin/fsck", RULE;
    takes FsckBody;
    returns FsckReport: (status = 200, body = FsckReport);
}
