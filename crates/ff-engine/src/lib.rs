//! Everything above a host: typed operations on executions, lanes and workers, and the background work that keeps
//! them moving.
//!
//! [`Engine::start`] opens a store through any [`ff_script::Host`], fixes its partitions, and runs timers, the route
//! reconciler and the outbox for the partitions this process owns. Operations work on any number of engines at once.

mod answers;
pub mod engine;
pub mod operations;
mod principal;
mod scope;
mod service;

pub mod background;
mod by_hand;
pub mod dispatch;
mod explain;
pub mod feed;
mod fenced;
pub mod fleet;
mod following;
pub mod fsck;
mod fsck_budgets;
pub mod inventory;
pub mod news;
pub mod offline;
pub mod schedules;
pub mod streams;
mod turns;
pub mod waiting;
pub mod waitpoints;

pub use answers::new_execution;
pub use background::webhooks::{Carried, Courier};
pub use engine::{Engine, EngineOptions};
pub use feed::{Cursor, Delivered, Feed, FeedError, FeedFilter};
pub use fenced::another_owner;
pub use fsck::Fsck;
pub use inventory::Inventory;
pub use operations::{
    BadZone, BudgetFilter, BudgetLineCursor, BudgetPage, BudgetStatus, Claimant, Claimed, Counts, ExecutionFilter,
    FlowCursor, FlowFilter, FlowPage, Graph, ListCursor, MemberPage, NewChild, NewExecution, NewFlow, NewMember,
    Operations, Page, QuotaLineCursor, Spawned, SubmittedFlow, WaitpointCursor, WaitpointPage, child_id, fence_of,
    member_id, next_reset,
};
pub use principal::Principal;
pub use service::{Handle, Service};
pub use streams::{Appended, FrameRange, Merged, MergedCursor, StreamPage, Streams};
pub use waitpoints::{
    IssuedToken, NewSignal, NewSuspension, OpenedWaitpoint, SignalOutcome, StepWaitpoint, Suspended, WaitpointSpec,
    Waitpoints, WaitpointsError, invalid_token, keys_problem,
};
