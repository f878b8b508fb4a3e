//! Schedules: defined and steered by operators, fired by anyone who may submit.

use ff_api::lanes::NamespaceQuery;
use ff_api::schedules::{
    Action, BackfillSchedule, DeleteSchedule, Firing, GetSchedule, ListFirings, ListSchedules, NEXT_MAX,
    NextOfSchedule, NextTime, NextTimes, PauseSchedule, PutSchedule, ResumeSchedule, Schedule, ScheduleAction,
    ScheduleTimes, StopBackfill, TriggerSchedule, Triggered,
};
use ff_api::{Ask, Invalid, Listed, Made, Nothing, Problem, page};
use ff_core::error_code::ErrorCode;
use ff_core::limits::{REASON_BYTES_MAX, TIME_MS_MAX};
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{self, Overlap};
use uuid::Uuid;

use super::{about, bounded};
use crate::operations::refused_with;
use crate::principal::Principal;
use crate::schedules::{self, Calendar, stored_calendar};
use crate::service::{Handle, Service};

/// The most schedules of a page.
const PAGE_MAX: usize = 64;

/// What a stored schedule submits.
fn action_of(bytes: &[u8], namespace: &str) -> Result<Action, Problem> {
    let stored = ScheduleAction::of(bytes).and_then(|action| action.read(namespace));
    stored.map_err(|wrong| Problem::of_code(ErrorCode::CorruptRecord).about(wrong.field))
}

fn shown(schedule: generated::Schedule, action: Option<&[u8]>) -> Result<Schedule, Problem> {
    Schedule::of(schedule, action).map_err(|wrong| Problem::of_code(ErrorCode::CorruptRecord).about(wrong.field))
}

impl Handle<PutSchedule> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<PutSchedule>) -> Result<Made<Schedule>, Problem> {
        let (namespace, name) = (self.reached(by, ask.query, &ask.at).await?, ask.at);
        if let Some(version) = ask.body.version.filter(|version| !(0..=TIME_MS_MAX).contains(version)) {
            return Err(Invalid::new("version", format!("must be in 0..={TIME_MS_MAX}, got {version}")).into());
        }
        let version = ask.body.version;
        let now = self.operations.time_of_schedule(&namespace, &name).await?;
        let definition = schedules::read(&namespace, &name, ask.body, now)?;
        self.check_run(by, &definition.action, &namespace).await?;
        let (schedule, new) =
            self.operations.put_schedule(definition, version, by.name()).await.map_err(about(&name))?;
        Ok(Made { thing: shown(schedule, None)?, new })
    }
}

impl Service {
    /// Refuses a schedule that submits outside of the caller's scope. One that is not there is the store's to refuse.
    async fn check_schedule(&self, by: &Principal, namespace: &str, name: &str) -> Result<(), Problem> {
        if !by.is_scoped() {
            return Ok(());
        }
        match self.operations.schedule(namespace, name).await {
            Ok(read) => self.check_run(by, &action_of(&read.action, namespace)?, namespace).await,
            Err(error) if refused_with(&error) == Some(ErrorCode::ScheduleNotFound) => Ok(()),
            Err(error) => Err(about(name)(error)),
        }
    }

    /// The namespace asked for, if the caller may act there and on what this schedule submits.
    async fn reached(&self, by: &Principal, query: NamespaceQuery, name: &str) -> Result<String, Problem> {
        let namespace = query.or_default();
        by.check(&namespace, None)?;
        self.check_schedule(by, &namespace, name).await?;
        Ok(namespace)
    }

    /// Refuses what a schedule would submit outside of the caller's scope.
    async fn check_run(&self, by: &Principal, action: &Action, namespace: &str) -> Result<(), Problem> {
        if !by.is_scoped() {
            return Ok(());
        }
        match action.clone() {
            Action::Execution(body) => {
                let new = schedules::new_execution(*body, Uuid::nil(), namespace)?;
                self.check_submission(by, &new.fields).await
            }
            Action::Flow(body) => {
                let new = schedules::new_flow_of(*body, Uuid::nil(), namespace)?;
                self.check_budgets(by, new.fields.budgets.as_deref()).await?;
                self.check_members(by, &new.members, new.fields.default_lane.as_deref()).await
            }
        }
    }
}

impl Handle<ListSchedules> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListSchedules>) -> Result<Listed<Schedule>, Problem> {
        by.check_all_lanes("the list of schedules")?;
        let limit = page::length(ask.query.limit)?.min(PAGE_MAX);
        let after = ask.query.cursor.as_deref().map(str::parse).transpose()?;
        let namespace = by.namespace(ask.query.namespace)?;
        let page = self.operations.schedules(namespace.as_deref(), after, limit).await?;
        let items = page.items.into_iter().map(|schedule| shown(schedule, None)).collect::<Result<_, _>>()?;
        Ok(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) })
    }
}

impl Handle<GetSchedule> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<GetSchedule>) -> Result<Schedule, Problem> {
        let namespace = self.reached(by, ask.query, &ask.at).await?;
        let read = self.operations.schedule(&namespace, &ask.at).await.map_err(about(&ask.at))?;
        shown(read.schedule, Some(&read.action))
    }
}

impl Handle<DeleteSchedule> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<DeleteSchedule>) -> Result<Nothing, Problem> {
        let namespace = self.reached(by, ask.query, &ask.at).await?;
        self.operations.delete_schedule(&namespace, &ask.at, by.name()).await.map_err(about(&ask.at))?;
        Ok(Nothing {})
    }
}

impl Handle<PauseSchedule> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<PauseSchedule>) -> Result<Schedule, Problem> {
        let namespace = self.reached(by, ask.query, &ask.at).await?;
        let reason = ask.body.reason.as_deref();
        bounded("reason", reason, REASON_BYTES_MAX)?;
        let paused = self.operations.pause_schedule(&namespace, &ask.at, reason, by.name()).await;
        shown(paused.map_err(about(&ask.at))?, None)
    }
}

impl Handle<ResumeSchedule> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ResumeSchedule>) -> Result<Schedule, Problem> {
        let namespace = self.reached(by, ask.query, &ask.at).await?;
        let resumed = self.operations.resume_schedule(&namespace, &ask.at, by.name()).await;
        shown(resumed.map_err(about(&ask.at))?, None)
    }
}

impl Handle<TriggerSchedule> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<TriggerSchedule>) -> Result<Triggered, Problem> {
        let (namespace, name) = (self.reached(by, ask.query, &ask.at).await?, ask.at);
        let read = self.operations.schedule(&namespace, &name).await.map_err(about(&name))?;
        let flow = ScheduleTimes::submits_flow(&read.schedule.definition.0);
        let request = ask.body.request_id.unwrap_or_else(Uuid::now_v7);
        let fired = self.operations.trigger_schedule(&namespace, &name, request, by.name()).await;
        let fired = fired.map_err(about(&name))?;
        Ok(Triggered {
            execution_id: (!flow).then(|| ExecutionId::from_uuid(fired.run_id)),
            flow_id: flow.then(|| FlowId::from_uuid(fired.run_id)),
            number: fired.number,
            duplicate: fired.duplicate,
        })
    }
}

impl Handle<BackfillSchedule> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<BackfillSchedule>) -> Result<Schedule, Problem> {
        let (namespace, body) = (self.reached(by, ask.query, &ask.at).await?, ask.body);
        for (field, n) in [("from", body.from), ("to", body.to)] {
            if !(0..=TIME_MS_MAX).contains(&n) {
                return Err(Invalid::new(field, format!("must be in 0..={TIME_MS_MAX}, got {n}")).into());
            }
        }
        let period = (body.from, body.to);
        let started = self.operations.backfill_schedule(&namespace, &ask.at, period, body.overlap, by.name()).await;
        shown(started.map_err(about(&ask.at))?, None)
    }
}

impl Handle<StopBackfill> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<StopBackfill>) -> Result<Schedule, Problem> {
        let namespace = self.reached(by, ask.query, &ask.at).await?;
        let stopped = self.operations.stop_backfill(&namespace, &ask.at, by.name()).await;
        shown(stopped.map_err(about(&ask.at))?, None)
    }
}

impl Handle<NextOfSchedule> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<NextOfSchedule>) -> Result<NextTimes, Problem> {
        let query = NamespaceQuery { namespace: ask.query.namespace };
        let namespace = self.reached(by, query, &ask.at).await?;
        let count = ask.query.count.unwrap_or(10);
        let known = usize::try_from(count).ok().filter(|_| (1..=NEXT_MAX).contains(&count));
        let count = known.ok_or_else(|| Invalid::new("count", format!("must be in 1..={NEXT_MAX}, got {count}")))?;
        let read = self.operations.schedule(&namespace, &ask.at).await.map_err(about(&ask.at))?;
        let calendar = stored_calendar(&read.schedule)
            .map_err(|wrong| Problem::of_code(ErrorCode::CorruptRecord).about(wrong.field))?;
        Ok(NextTimes { items: next_times(&read.schedule, &calendar, count) })
    }
}

/// The next times, and whether they will fire as far as is known now.
fn next_times(schedule: &generated::Schedule, calendar: &Calendar, count: usize) -> Vec<NextTime> {
    let (mut items, mut after) = (Vec::new(), schedule.cursor);
    let busy = schedule.running + schedule.unsubmitted + schedule.waiting > 0;
    while items.len() < count
        && let Some(nominal_at) = calendar.next(after)
    {
        let place = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let queue_full = schedule.overlap == Overlap::QueueOne && schedule.waiting > 0;
        let why = if schedule.paused.is_some() {
            Some("paused")
        } else if schedule.over || schedule.remaining.is_some_and(|remaining| place >= remaining) {
            Some("remaining")
        } else if place == 0 && busy && (schedule.overlap == Overlap::Skip || queue_full) {
            // Only the next time is known to meet what runs now.
            Some("overlap")
        } else {
            None
        };
        items.push(NextTime { nominal_at, will_fire: why.is_none(), why: why.map(str::to_owned) });
        after = nominal_at;
    }
    items
}

impl Handle<ListFirings> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListFirings>) -> Result<Listed<Firing>, Problem> {
        let namespace = self.reached(by, ask.query, &ask.at).await?;
        let firings = self.operations.firings(&namespace, &ask.at).await.map_err(about(&ask.at))?;
        let schedule = self.operations.schedule(&namespace, &ask.at).await.map_err(about(&ask.at))?.schedule;
        let flow = ScheduleTimes::submits_flow(&schedule.definition.0);
        let items = firings.into_iter().map(|firing| Firing::of(firing, flow)).collect();
        Ok(Listed { items, next_cursor: None })
    }
}
