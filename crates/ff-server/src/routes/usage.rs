//! What a running attempt uses of budgets and quotas: reports, reservations, a provider's "too many", and what it weighed.

use ff_api::quotas::{SettleWeight, ThrottleForTask};
use ff_api::usage::{GetExecutionUsage, ReleaseForTask, ReportUsage, ReserveForTask, SettleForTask};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<ReportUsage>()
        .answering::<ReserveForTask>()
        .answering::<SettleForTask>()
        .answering::<ReleaseForTask>()
        .answering::<ThrottleForTask>()
        .answering::<SettleWeight>()
        .answering::<GetExecutionUsage>()
}
