//! Typed operations over any host: one per thing a user or a worker can ask for.
//!
//! Each is one round trip on its partition. What a partition has to be told first (a lane it has not seen, the depth of a
//! bounded lane) is told and the call repeated; calls that concern every partition go to all of them at once.

mod access;
mod blocked;
mod budget;
mod calendar;
mod challenge;
mod children;
mod execution;
mod fleet;
mod flow;
mod holders;
mod lane;
mod lane_waits;
mod list;
mod page;
mod places;
mod quota;
mod schedule;
mod steps;
mod submission;
mod task;
mod usage;
mod waitpoint;
mod webhook;

use std::sync::{Arc, OnceLock};

use ff_core::error_code::ErrorCode;
use ff_script::{Client, Error, HostFacts};

use crate::background::webhooks::Courier;
use crate::fsck::Fsck;
use crate::news::Listener;

pub use blocked::{BudgetLineCursor, QuotaLineCursor};
pub use budget::{BudgetFilter, BudgetPage, BudgetStatus};
pub use calendar::{BadZone, next_reset};
pub use children::{NewChild, Spawned, child_id};
pub use flow::{FlowCursor, FlowFilter, FlowPage, Graph, MemberPage, NewFlow, NewMember, SubmittedFlow, member_id};
pub use holders::{Admitted, Room, lane_of_set, set_of_lane};
pub use lane::{Counts, partition_stats};
pub use lane_waits::{Ahead, LaneWaiters};
pub use list::{ExecutionFilter, ListCursor, Page};
pub use page::Place;
pub use quota::ThrottleUntil;
pub(crate) use schedule::settling;
pub use schedule::{ReadSchedule, ScheduleCursor, SchedulePage, Triggered};
pub use steps::{Fork, FoundStep};
pub use submission::{NewExecution, Submitter};
pub use task::{Claimant, Claimed, LeaseRequest, fence_of};
pub(crate) use usage::finish_usage;
pub use usage::reservation_id;
pub use waitpoint::{WaitpointCursor, WaitpointPage};

/// Operations on one store; cheap to clone.
#[derive(Clone)]
pub struct Operations {
    client: Client,
    depths: Arc<lane::Depths>,
    known_quotas: Arc<quota::KnownQuotas>,
    scopes: Arc<budget::Scopes>,
    /// Who carries webhooks in this process, if somebody does.
    courier: Arc<OnceLock<Arc<dyn Courier>>>,
}

impl Operations {
    /// Operations through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            depths: Arc::default(),
            known_quotas: Arc::default(),
            scopes: Arc::default(),
            courier: Arc::default(),
        }
    }

    /// From now on addresses this courier would never carry to are refused.
    pub(crate) fn ask_courier(&self, courier: Arc<dyn Courier>) -> bool {
        self.courier.set(courier).is_ok()
    }

    /// The same operations for background work, whose calls no caller waits for.
    #[must_use]
    pub(crate) fn in_background(&self) -> Self {
        Self { client: self.client.in_background(), ..self.clone() }
    }

    /// The client beneath.
    #[cfg(not(feature = "library-calls"))]
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The client beneath, for tests and benchmarks that make calls of the library.
    #[cfg(feature = "library-calls")]
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the host says about its store.
    #[must_use]
    pub fn facts(&self) -> HostFacts {
        self.client.host().facts()
    }

    /// What the store announces from now on.
    #[must_use]
    pub fn news(&self) -> Listener {
        Listener::new(self.client.host().as_ref())
    }

    /// Checks the invariants of the whole store; with `repair` puts right what has one right answer.
    pub async fn fsck(&self, repair: bool) -> Result<Fsck, Error> {
        Fsck::run(&self.client, repair).await
    }
}

/// The library's code for this refusal, if it is one.
pub(crate) fn refused_with(error: &Error) -> Option<ErrorCode> {
    match error {
        Error::Engine(engine) => engine.error_code(),
        Error::Host(_) | Error::Decode { .. } => None,
    }
}
