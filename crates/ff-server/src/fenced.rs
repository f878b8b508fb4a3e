//! Operations under a lease. The lease must be the caller's, and one that is over frees its worker's slot.

use axum::extract::{Request, State};
use axum::response::Response;
use ff_api::quotas::{SettleWeight, ThrottleForTask};
use ff_api::tasks::Fence;
use ff_api::usage::{ReleaseForTask, ReportUsage, ReportUsageResult, ReserveBudget, ReserveForTask, SettleForTask};
use ff_api::{Ask, Operation};
use ff_core::types::ExecutionId;
use ff_engine::{Handle, Service};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access::Caller;
use crate::answering::{asked, written};
use crate::app::App;
use crate::problem::Answer;

/// An operation that presents a fence.
pub trait Fenced: Operation + Sized {
    /// The execution and its fence, when the request presents one.
    fn fence(ask: &Ask<Self>) -> Option<(ExecutionId, Fence)>;

    /// True when the lease is over with this answer.
    fn ends(_: &Self::Answer) -> bool {
        false
    }
}

/// Answers a request for an operation under a lease.
pub async fn answer<O>(State(app): State<App>, caller: Caller, request: Request) -> Answer<Response>
where
    O: Fenced<Query: DeserializeOwned, Body: DeserializeOwned, Answer: Serialize>,
    Service: Handle<O>,
{
    let ask = asked::<O>(request).await?;
    let held = O::fence(&ask);
    if let Some((id, fence)) = held {
        app.check_fence(&caller, id, fence.lease_id).await?;
    }
    let answer = app.service.handle(&caller, ask).await;
    let over = match &answer {
        Ok(answer) => O::ends(answer),
        Err(problem) => problem.ends_lease(),
    };
    if let Some((_, fence)) = held.filter(|_| over) {
        app.fleet.ended(fence.lease_id);
    }
    written::<O>(&answer?)
}

fn ended(answer: &ReportUsageResult) -> bool {
    matches!(answer, ReportUsageResult::HardBreach { lease_ended: true, .. })
}

impl Fenced for ReportUsage {
    fn fence(ask: &Ask<Self>) -> Option<(ExecutionId, Fence)> {
        Some((ask.at, ask.body.fence))
    }

    fn ends(answer: &ReportUsageResult) -> bool {
        ended(answer)
    }
}

impl Fenced for ReserveForTask {
    fn fence(ask: &Ask<Self>) -> Option<(ExecutionId, Fence)> {
        Some((ask.at, ask.body.fence))
    }
}

impl Fenced for SettleForTask {
    fn fence(ask: &Ask<Self>) -> Option<(ExecutionId, Fence)> {
        ask.body.fence.map(|fence| (ask.at, fence))
    }

    fn ends(answer: &ReportUsageResult) -> bool {
        ended(answer)
    }
}

impl Fenced for ReleaseForTask {
    fn fence(ask: &Ask<Self>) -> Option<(ExecutionId, Fence)> {
        ask.body.fence.map(|fence| (ask.at, fence))
    }
}

impl Fenced for ThrottleForTask {
    fn fence(ask: &Ask<Self>) -> Option<(ExecutionId, Fence)> {
        Some((ask.at, ask.body.fence))
    }
}

impl Fenced for SettleWeight {
    fn fence(ask: &Ask<Self>) -> Option<(ExecutionId, Fence)> {
        Some((ask.at, ask.body.fence))
    }
}

impl Fenced for ReserveBudget {
    fn fence(ask: &Ask<Self>) -> Option<(ExecutionId, Fence)> {
        Some((ask.body.execution_id?, ask.body.fence?))
    }
}
