//! What a running attempt uses of budgets and quotas: reports, reservations, a provider's "too many", and what it weighed.

use ff_api::quotas::{SettleWeight, ThrottleForTask};
use ff_api::usage::{GetExecutionUsage, ReleaseForTask, ReportUsage, ReserveForTask, SettleForTask};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering_fenced::<ReportUsage>()
        .answering_fenced::<ReserveForTask>()
        .answering_fenced::<SettleForTask>()
        .answering_fenced::<ReleaseForTask>()
        .answering_fenced::<ThrottleForTask>()
        .answering_fenced::<SettleWeight>()
        .answering::<GetExecutionUsage>()
}
