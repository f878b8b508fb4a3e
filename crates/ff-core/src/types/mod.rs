//! Ids, counters and time, each its own type so that one cannot stand in for another.

mod text_id;
mod time;
mod token;
mod uuid_id;

pub use crate::text_enum::UnknownWord;
pub use text_id::{InvalidText, LaneId, Namespace, WorkerId, WorkerInstanceId, is_name};
pub use time::{AttemptIndex, LeaseEpoch, TimestampMs};
pub use token::WaitpointToken;
pub use uuid_id::{
    AttemptId, BudgetId, EdgeId, ExecutionId, FlowId, InvalidId, LeaseId, QuotaPolicyId, SignalId, SuspensionId,
    WaitpointId,
};
