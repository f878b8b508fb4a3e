//! Schedules: what is submitted by itself, and when.

use ff_api::lanes::NamespaceQuery;
use ff_api::schedules::{
    BackfillSchedule, DeleteSchedule, GetSchedule, ListFirings, ListSchedules, NextOfSchedule, NextQuery,
    PauseSchedule, PauseScheduleBody, PutSchedule, ResumeSchedule, SchedulesQuery, StopBackfill, TriggerBody,
    TriggerSchedule,
};
use ff_api::{Ask, Listed};
use uuid::Uuid;

use crate::backend::Reach;
use crate::{FlowFabricAdminClient, SdkError};

pub use ff_api::executions::SubmitBody;
pub use ff_api::flows::FlowBody;
pub use ff_api::schedules::{
    BackfillBody, Firing, NextTime, Schedule, ScheduleAction, ScheduleBody, ScheduleTime, Triggered,
};
pub use ff_script::generated::{FiringCause, FiringState, Overlap};

/// The schedules of a namespace.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::schedules::{ScheduleAction, ScheduleBody, ScheduleTime, SubmitBody};
/// let engine = ff_sdk::testing::TestEngine::start().await?;
/// let schedules = engine.admin().schedules("default");
/// let report = SubmitBody { kind: "report".to_owned(), ..SubmitBody::default() };
/// let nightly = ScheduleBody {
///     times: vec![ScheduleTime::cron("0 3 * * *")],
///     time_zone: Some("Europe/Berlin".to_owned()),
///     action: ScheduleAction { execution: Some(Box::new(report)), flow: None },
///     ..ScheduleBody::default()
/// };
/// let schedule = schedules.put("nightly", nightly).await?;
/// assert!(schedule.next_at.is_some());
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Schedules {
    admin: FlowFabricAdminClient,
    namespace: String,
}

impl FlowFabricAdminClient {
    /// The schedules of a namespace.
    #[must_use]
    pub fn schedules(&self, namespace: impl Into<String>) -> Schedules {
        Schedules { admin: self.clone(), namespace: namespace.into() }
    }
}

impl Schedules {
    fn query(&self) -> NamespaceQuery {
        NamespaceQuery { namespace: Some(self.namespace.clone()) }
    }

    fn reach(&self) -> Reach {
        self.admin.backend().reach()
    }

    /// Creates a schedule, or replaces its definition. Pause, counts and firings stay.
    ///
    /// With a `version` in the body only if the schedule has that version; 0 means that there is none yet.
    pub async fn put(&self, name: &str, body: ScheduleBody) -> Result<Schedule, SdkError> {
        let ask = Ask::<PutSchedule> { at: name.to_owned(), query: self.query(), body };
        Ok(self.reach().ask(ask).await?.thing)
    }

    /// One page of the schedules, newest first, and where the next one begins.
    pub async fn list(&self, cursor: Option<String>) -> Result<(Vec<Schedule>, Option<String>), SdkError> {
        let query = SchedulesQuery { namespace: Some(self.namespace.clone()), limit: None, cursor };
        let Listed { items, next_cursor } = self.reach().ask(Ask::<ListSchedules>::by((), query)).await?;
        Ok((items, next_cursor))
    }

    /// A schedule with what it submits.
    pub async fn get(&self, name: &str) -> Result<Schedule, SdkError> {
        self.reach().ask(Ask::<GetSchedule>::by(name.to_owned(), self.query())).await
    }

    /// Removes a schedule. What it submitted goes on.
    pub async fn delete(&self, name: &str) -> Result<(), SdkError> {
        self.reach().ask(Ask::<DeleteSchedule>::by(name.to_owned(), self.query())).await.map(|_| ())
    }

    /// Stops a schedule from firing by itself.
    pub async fn pause(&self, name: &str, reason: Option<&str>) -> Result<Schedule, SdkError> {
        let body = PauseScheduleBody { reason: reason.map(str::to_owned) };
        self.reach().ask(Ask::<PauseSchedule> { at: name.to_owned(), query: self.query(), body }).await
    }

    /// Lets a paused schedule fire again, from the next time on.
    pub async fn resume(&self, name: &str) -> Result<Schedule, SdkError> {
        self.reach().ask(Ask::<ResumeSchedule>::by(name.to_owned(), self.query())).await
    }

    /// Fires now, even while the schedule is paused. The same request fires once.
    pub async fn trigger(&self, name: &str, request_id: Uuid) -> Result<Triggered, SdkError> {
        let body = TriggerBody { request_id: Some(request_id) };
        self.reach().ask(Ask::<TriggerSchedule> { at: name.to_owned(), query: self.query(), body }).await
    }

    /// Fires the times of a period that has passed, in order.
    pub async fn backfill(&self, name: &str, body: BackfillBody) -> Result<Schedule, SdkError> {
        self.reach().ask(Ask::<BackfillSchedule> { at: name.to_owned(), query: self.query(), body }).await
    }

    /// Stops a backfill. What it submitted goes on.
    pub async fn stop_backfill(&self, name: &str) -> Result<Schedule, SdkError> {
        self.reach().ask(Ask::<StopBackfill>::by(name.to_owned(), self.query())).await
    }

    /// The next times, and why one of them will not fire.
    pub async fn next(&self, name: &str, count: i64) -> Result<Vec<NextTime>, SdkError> {
        let query = NextQuery { namespace: Some(self.namespace.clone()), count: Some(count) };
        Ok(self.reach().ask(Ask::<NextOfSchedule>::by(name.to_owned(), query)).await?.items)
    }

    /// The last firings, newest first; at most 100.
    pub async fn firings(&self, name: &str) -> Result<Vec<Firing>, SdkError> {
        Ok(self.reach().ask(Ask::<ListFirings>::by(name.to_owned(), self.query())).await?.items)
    }
}
