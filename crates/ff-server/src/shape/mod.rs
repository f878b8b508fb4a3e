//! What the API shows: one file per thing, each a plain struct that becomes JSON.

pub mod blocked;
pub mod budget;
pub mod child;
pub mod event;
pub mod execution;
pub mod flow;
pub mod frame;
pub mod lane;
pub mod quota;
pub mod suspension;
pub mod task;
pub mod worker;

use serde::Serialize;
use utoipa::ToSchema;

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub struct Listed<T> {
    /// The page.
    pub items: Vec<T>,
    /// Where the next one begins.
    pub next_cursor: Option<String>,
}
