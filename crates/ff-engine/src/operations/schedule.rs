//! Schedules: defined, read, steered; and what their firings submit.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use ff_api::schedules::Action;
use ff_core::error::EngineError;
use ff_core::error_code::ErrorCode;
use ff_core::limits::SCHEDULE_BACKFILL_MAX;
use ff_script::Error;
use ff_script::generated::{
    BackfillSchedule, BackfillScheduleReply, DeleteSchedule, Firing, GetSchedule, GetScheduleReply, ListFirings,
    ListFiringsReply, ListSchedules, ListSchedulesReply, NextDue, NextDueReply, Overlap, PauseSchedule,
    PauseScheduleReply, PutSchedule, PutScheduleReply, RefillBackfill, RefillSchedule, ResumeSchedule,
    ResumeScheduleReply, Schedule, SchedulePosition, SettleFiring, StopBackfill, StopBackfillReply, TakeFiring,
    TakeFiringReply, TriggerSchedule, TriggerScheduleReply,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use uuid::Uuid;

use super::page::{Place, Share, merge};
use super::{Operations, refused_with};
use crate::schedules::{self, Calendar, Definition, Run, Submitted, backfill_of, count_between, plan, stored_calendar};

const AT_ONCE: usize = 32;
const PAGE: usize = 64;

/// A schedule by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchedulePath(String);

impl fmt::Display for SchedulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither has a tilde, and a slash is not safe in a URL.
        f.write_str(&self.0.replace('/', "~"))
    }
}

impl FromStr for SchedulePath {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (namespace, name) = text.split_once('~').ok_or(())?;
        if ff_core::types::is_name(namespace) && ff_core::types::is_name(name) {
            return Ok(Self(format!("{namespace}/{name}")));
        }
        Err(())
    }
}

/// A place in a list of schedules, as URL-safe text.
pub type ScheduleCursor = Place<SchedulePath>;

/// One page of schedules; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulePage {
    /// The schedules, newest first.
    pub items: Vec<Schedule>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<ScheduleCursor>,
}

/// A schedule with what it submits, at the store's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSchedule {
    /// The schedule.
    pub schedule: Schedule,
    /// What it submits, as it is stored.
    pub action: Vec<u8>,
    /// The store's time.
    pub now: i64,
}

/// A firing that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triggered {
    /// The execution or the flow.
    pub run_id: Uuid,
    /// Which firing it is.
    pub number: i64,
    /// The same request had triggered it before.
    pub duplicate: bool,
}

impl Operations {
    /// The store's time, as the partition of a schedule has it.
    pub async fn time_of_schedule(&self, namespace: &str, name: &str) -> Result<i64, Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let NextDueReply::Next { now, .. } = self.client.call(route, &NextDue {}).await?;
        Ok(now)
    }

    /// Creates a schedule, or replaces its definition; true when it is new.
    pub async fn put_schedule(
        &self,
        definition: Definition,
        version: Option<i64>,
        actor: &str,
    ) -> Result<(Schedule, bool), Error> {
        self.check_action(&definition).await?;
        let Definition { new, .. } = definition;
        let (namespace, name) = (new.namespace.clone(), new.name.clone());
        let route = self.client.route_of_schedule(&namespace, &name);
        let supplied = new.calendar;
        let call = PutSchedule { version, ..PutSchedule::new(actor.to_owned(), new, Uuid::now_v7()) };
        let (schedule, fresh) = match self.client.call(route, &call).await? {
            PutScheduleReply::Created { schedule, .. } => (schedule, true),
            PutScheduleReply::Changed { schedule, .. } => (schedule, false),
        };
        if !supplied {
            return Ok((schedule, fresh));
        }
        // The background does the same, a moment later.
        self.supply_times(&namespace, &name).await?;
        Ok((self.schedule(&namespace, &name).await?.schedule, fresh))
    }

    /// Fails when what a schedule submits would be refused whatever the moment.
    async fn check_action(&self, definition: &Definition) -> Result<(), Error> {
        let namespace = &definition.new.namespace;
        match definition.action.clone() {
            Action::Execution(body) => {
                let new = schedules::new_execution(*body, Uuid::now_v7(), namespace).map_err(schedules::invalid)?;
                let place = "action.execution";
                self.check_new(new).await.map_err(|error| super::places::within(error, place))
            }
            Action::Flow(body) => {
                let new = schedules::new_flow_of(*body, Uuid::now_v7(), namespace).map_err(schedules::invalid)?;
                super::flow::check_flow(new).map_err(|error| super::places::within(error, "action.flow"))
            }
        }
    }

    /// A schedule with what it submits.
    pub async fn schedule(&self, namespace: &str, name: &str) -> Result<ReadSchedule, Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let call = GetSchedule { namespace: namespace.to_owned(), name: name.to_owned() };
        let GetScheduleReply::Found { schedule, action, now } = self.client.call(route, &call).await?;
        Ok(ReadSchedule { schedule, action: action.0, now })
    }

    /// Schedules of every partition, newest first.
    pub async fn schedules(
        &self,
        namespace: Option<&str>,
        after: Option<ScheduleCursor>,
        limit: usize,
    ) -> Result<SchedulePage, Error> {
        let limit = limit.clamp(1, PAGE);
        let after = &after;
        let shares: Vec<Share<Schedule, Reverse<ScheduleCursor>>> = stream::iter(self.client.schedule_routes())
            .map(|route| async move {
                let position =
                    |at: &ScheduleCursor| SchedulePosition { created_at: at.created_at, path: at.id.0.clone() };
                let call = ListSchedules {
                    after: after.as_ref().map(position),
                    limit: i64::try_from(limit).expect("a page is small"),
                    namespace: namespace.map(str::to_owned),
                };
                let ListSchedulesReply::Page { items, last, more, .. } = self.client.call(route, &call).await?;
                let place = |at: SchedulePosition| Place { created_at: at.created_at, id: SchedulePath(at.path) };
                Ok::<_, Error>((items, last.filter(|_| more).map(|at| Reverse(place(at)))))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let place = |schedule: &Schedule| {
            let path = SchedulePath(format!("{}/{}", schedule.namespace, schedule.name));
            Reverse(Place { created_at: schedule.created_at, id: path })
        };
        let (items, next) = merge(shares, limit, place);
        Ok(SchedulePage { items, next: next.map(|Reverse(place)| place) })
    }

    /// Deletes a schedule; what it submitted goes on.
    pub async fn delete_schedule(&self, namespace: &str, name: &str, actor: &str) -> Result<(), Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let call = DeleteSchedule { actor: actor.to_owned(), name: name.to_owned(), namespace: namespace.to_owned() };
        self.client.call(route, &call).await.map(|_| ())
    }

    /// Stops a schedule from firing by itself.
    pub async fn pause_schedule(
        &self,
        namespace: &str,
        name: &str,
        reason: Option<&str>,
        actor: &str,
    ) -> Result<Schedule, Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let call = PauseSchedule {
            actor: actor.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            reason: reason.map(str::to_owned),
        };
        let PauseScheduleReply::Paused { schedule } = self.client.call(route, &call).await?;
        Ok(schedule)
    }

    /// Lets a paused schedule fire again, from the next time on.
    pub async fn resume_schedule(&self, namespace: &str, name: &str, actor: &str) -> Result<Schedule, Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let call = ResumeSchedule { actor: actor.to_owned(), name: name.to_owned(), namespace: namespace.to_owned() };
        let ResumeScheduleReply::Resumed { schedule } = self.client.call(route, &call).await?;
        if schedule.next_at.is_some() || schedule.over {
            return Ok(schedule);
        }
        self.supply_times(namespace, name).await?;
        Ok(self.schedule(namespace, name).await?.schedule)
    }

    /// Fires a schedule now; a request fires once. When the submission is refused, the firing is missed.
    pub async fn trigger_schedule(
        &self,
        namespace: &str,
        name: &str,
        request_id: Uuid,
        actor: &str,
    ) -> Result<Triggered, Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let call = TriggerSchedule {
            actor: actor.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            request_id,
        };
        let (number, run_id, duplicate) = match self.client.call(route, &call).await? {
            TriggerScheduleReply::Triggered { number, run_id } => (number, run_id, false),
            TriggerScheduleReply::Known { number, run_id } => (number, run_id, true),
        };
        let firing = self.take_firing(namespace, name, number).await?;
        if let Some(run) = firing {
            let answer = schedules::submit(self, std::slice::from_ref(&run)).await.remove(0);
            self.settle_firing(&run, &answer, true).await?;
            answer?;
        }
        Ok(Triggered { run_id, number, duplicate })
    }

    /// What a firing submits; nothing when that was done, or is not owed any more.
    pub(crate) async fn take_firing(&self, namespace: &str, name: &str, number: i64) -> Result<Option<Run>, Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let call = TakeFiring { name: name.to_owned(), namespace: namespace.to_owned(), number };
        Ok(match self.client.call(route, &call).await? {
            TakeFiringReply::Due { action, firing } => {
                Some(Run { namespace: namespace.to_owned(), schedule: name.to_owned(), firing, action: action.0 })
            }
            TakeFiringReply::Settled => None,
        })
    }

    /// Records what became of a submission. Fails when the store has not said: then it is submitted again.
    pub(crate) async fn settle_firing(
        &self,
        run: &Run,
        answer: &Result<Submitted, Error>,
        last: bool,
    ) -> Result<(), Error> {
        let route = self.client.route_of_schedule(&run.namespace, &run.schedule);
        self.client.call(route, &settling(run, answer, last)?).await.map(|_| ())
    }

    /// Begins a backfill.
    pub async fn backfill_schedule(
        &self,
        namespace: &str,
        name: &str,
        (from, to): (i64, i64),
        overlap: Option<Overlap>,
        actor: &str,
    ) -> Result<Schedule, Error> {
        let ReadSchedule { schedule, .. } = self.schedule(namespace, name).await?;
        let calendar = calendar(&schedule)?;
        let counted = count_between(&calendar, from - 1, to, SCHEDULE_BACKFILL_MAX + 1);
        let call = BackfillSchedule {
            overlap,
            ..BackfillSchedule::new(actor.to_owned(), from, name.to_owned(), namespace.to_owned(), to, counted.count)
        };
        let route = self.client.route_of_schedule(namespace, name);
        let BackfillScheduleReply::Started { schedule } = self.client.call(route, &call).await?;
        Ok(schedule)
    }

    /// Stops a backfill where it is.
    pub async fn stop_backfill(&self, namespace: &str, name: &str, actor: &str) -> Result<Schedule, Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let call = StopBackfill { actor: actor.to_owned(), name: name.to_owned(), namespace: namespace.to_owned() };
        let StopBackfillReply::Stopped { schedule } = self.client.call(route, &call).await?;
        Ok(schedule)
    }

    /// The last firings of a schedule, newest first.
    pub async fn firings(&self, namespace: &str, name: &str) -> Result<Vec<Firing>, Error> {
        let route = self.client.route_of_schedule(namespace, name);
        let call = ListFirings { namespace: namespace.to_owned(), name: name.to_owned() };
        let ListFiringsReply::Firings { items } = self.client.call(route, &call).await?;
        Ok(items)
    }

    /// Writes the next times of a schedule's calendar ahead, and counts what came too long ago.
    pub(crate) async fn supply_times(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let Some(ReadSchedule { schedule, now, .. }) = self.if_there(namespace, name).await? else { return Ok(()) };
        // What the library misses one by one is left to it: this is sure to be too late, whatever the jitter.
        let too_late = now - schedule.catch_up_ms - schedule.jitter_ms.unwrap_or(0) - 1;
        let planned = plan(&calendar(&schedule)?, schedule.cursor, too_late, now);
        let call = RefillSchedule {
            after: schedule.cursor,
            missed: planned.missed,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            reckoned: planned.reckoned,
            times: planned.times,
            version: schedule.version,
        };
        self.unless_gone(namespace, name, &call).await
    }

    /// Supplies the next times of a backfill.
    pub(crate) async fn supply_backfill(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let Some(ReadSchedule { schedule, .. }) = self.if_there(namespace, name).await? else { return Ok(()) };
        let Some(backfill) = schedule.backfill.as_ref().filter(|backfill| backfill.ended_at.is_none()) else {
            return Ok(());
        };
        let (times, reckoned) = backfill_of(&calendar(&schedule)?, backfill.cursor, backfill.to);
        let call = RefillBackfill {
            after: backfill.cursor,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            reckoned,
            started_at: backfill.started_at,
            times,
        };
        self.unless_gone(namespace, name, &call).await
    }

    async fn if_there(&self, namespace: &str, name: &str) -> Result<Option<ReadSchedule>, Error> {
        match self.schedule(namespace, name).await {
            Ok(schedule) => Ok(Some(schedule)),
            Err(error) if refused_with(&error) == Some(ErrorCode::ScheduleNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn unless_gone<C: ff_script::Call>(&self, namespace: &str, name: &str, call: &C) -> Result<(), Error> {
        match self.client.call(self.client.route_of_schedule(namespace, name), call).await {
            Err(error) if refused_with(&error) != Some(ErrorCode::ScheduleNotFound) => Err(error),
            _ => Ok(()),
        }
    }
}

/// How a submission's answer is recorded; its error when that is the store's, and nothing was decided.
pub(crate) fn settling(run: &Run, answer: &Result<Submitted, Error>, last: bool) -> Result<SettleFiring, Error> {
    let settle = SettleFiring::new(run.schedule.clone(), run.namespace.clone(), run.firing.number);
    match answer {
        Ok(Submitted { ended }) => Ok(SettleFiring { outcome: ended.clone(), ..settle }),
        Err(Error::Engine(error)) if decides(error) => {
            let refused = Some(error.code().to_owned());
            Ok(SettleFiring { refused, last: last.then_some(true), ..settle })
        }
        Err(error) => Err(error.clone()),
    }
}

/// True when the store refused the submission, and did not merely fail to look at it.
fn decides(error: &EngineError) -> bool {
    let passing = [ErrorCode::TryAgain, ErrorCode::LaneUnseen, ErrorCode::LaneDepthNeeded, ErrorCode::FlowChanged];
    error.error_code().is_none_or(|code| !passing.contains(&code))
        && !matches!(error, EngineError::Corrupt { .. } | EngineError::Transport { .. })
}

fn calendar(schedule: &Schedule) -> Result<Calendar, Error> {
    stored_calendar(schedule).map_err(schedules::invalid)
}
