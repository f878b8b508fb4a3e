//! Schedules: what is submitted by itself, and when.

use std::borrow::Cow;

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{self, FiringCause, FiringState, Overlap, SchedulePause};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::access::{LOOK, PUT_IN, STEER};
use crate::executions::SubmitBody;
use crate::flows::FlowBody;
use crate::lanes::NamespaceQuery;
use crate::operation::{Nothing, PAYLOAD_BODY, operations};
use crate::page::Listed;
use crate::parts;
#[cfg(feature = "openapi")]
use crate::vocabulary;
use crate::{Invalid, Made};

/// How long a time that was missed is made up for, unless the schedule says so.
pub const CATCH_UP_MS: i64 = 60_000;
/// The most times of a preview.
pub const NEXT_MAX: i64 = 100;

/// A time of a schedule: a cron expression, an interval, or one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScheduleTime {
    /// Five fields, or six with seconds first; `@daily` and its like are known.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::CronText>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Every so many milliseconds.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::EveryMs>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<i64>,
    /// One of the times of `every_ms`; the default is the beginning of 1970.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor_at: Option<i64>,
    /// Once.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}

impl ScheduleTime {
    /// A cron expression.
    #[must_use]
    pub fn cron(text: impl Into<String>) -> Self {
        Self { cron: Some(text.into()), ..Self::default() }
    }

    /// Every so many milliseconds.
    #[must_use]
    pub fn every(every_ms: i64) -> Self {
        Self { every_ms: Some(every_ms), ..Self::default() }
    }

    /// Once.
    #[must_use]
    pub fn at(at: i64) -> Self {
        Self { at: Some(at), ..Self::default() }
    }
}

/// What a firing submits: an execution or a flow. Ids, keys and absolute times are the firing's to say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScheduleAction {
    /// An execution, as it would be submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Box<SubmitBody>>,
    /// A flow, as it would be submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Box<FlowBody>>,
}

/// What a schedule submits.
#[derive(Clone, Debug)]
pub enum Action {
    /// An execution.
    Execution(Box<SubmitBody>),
    /// A flow.
    Flow(Box<FlowBody>),
}

impl ScheduleAction {
    /// As it is stored.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn stored(&self) -> Result<Vec<u8>, Invalid> {
        serde_json::to_vec(self).map_err(|error| Invalid::new("action", format!("cannot be stored: {error}")))
    }

    /// Reads what is stored.
    ///
    /// # Errors
    /// When that is something else.
    pub fn of(bytes: &[u8]) -> Result<Self, Invalid> {
        let wrong = |error| Invalid::new("action", format!("cannot be read as it is stored: {error}"));
        serde_json::from_slice(bytes).map_err(wrong)
    }

    /// The one thing it submits, in the schedule's namespace.
    ///
    /// # Errors
    /// When it names both or neither, or something that only the firing can say.
    pub fn read(self, namespace: &str) -> Result<Action, Invalid> {
        let refused = |field: &str, problem: &str| Err(Invalid::new(format!("action.{field}"), problem));
        let (own, action) = match (self.execution, self.flow) {
            (Some(execution), None) => {
                let body = &execution;
                for (name, named) in [
                    ("execution_id", body.execution_id.is_some()),
                    ("idempotency_key", body.idempotency_key.is_some()),
                    ("idempotency_ttl_ms", body.idempotency_ttl_ms.is_some()),
                    ("delay_until", body.delay_until.is_some()),
                    ("deadline_at", body.deadline_at.is_some()),
                ] {
                    if named {
                        return refused(&format!("execution.{name}"), "differs from firing to firing");
                    }
                }
                (execution.namespace.clone(), Action::Execution(execution))
            }
            (None, Some(flow)) => {
                for (name, named) in [
                    ("flow_id", flow.flow_id.is_some()),
                    ("idempotency_key", flow.idempotency_key.is_some()),
                    ("deadline_at", flow.deadline_at.is_some()),
                ] {
                    if named {
                        return refused(&format!("flow.{name}"), "differs from firing to firing");
                    }
                }
                if flow.seal == Some(false) {
                    return refused("flow.seal", "must not be false: nobody would seal it");
                }
                (flow.namespace.clone(), Action::Flow(flow))
            }
            _ => return Err(Invalid::new("action", "must have either an execution or a flow")),
        };
        match own {
            Some(own) if own != namespace => {
                let what = if matches!(action, Action::Flow(_)) { "flow" } else { "execution" };
                refused(&format!("{what}.namespace"), "must be that of the schedule")
            }
            _ => Ok(action),
        }
    }
}

/// A schedule's definition. It replaces the one before; pause, counts and firings stay.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScheduleBody {
    /// When it fires; at least one time, at most 16.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 16))]
    pub times: Vec<ScheduleTime>,
    /// The zone of cron expressions by its IANA name; the default is `UTC`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Zone>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Nothing fires before this time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<i64>,
    /// Nothing fires after this time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<i64>,
    /// Each time comes up to so much later, always by the same amount.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<i64>,
    /// What happens while the last one has not ended; the default is `skip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What was missed for longer is counted and not made up for; the default is a minute.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up_ms: Option<i64>,
    /// It ends after so many firings.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Remaining>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<i64>,
    /// What it submits.
    pub action: ScheduleAction,
    /// Only if the schedule has this version; 0 means that there is none yet.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Count>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// The part of a definition that says when; it is stored as this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleTimes {
    /// When it fires.
    pub times: Vec<ScheduleTime>,
    /// The zone of cron expressions.
    pub time_zone: String,
}

/// How often a schedule fired, and did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleCounts {
    /// Submitted.
    pub fired: i64,
    /// Not submitted, because another one had not ended.
    pub skipped: i64,
    /// Too late, or refused for too long.
    pub missed: i64,
}

/// A firing of a schedule, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Firing {
    /// Counts the firings of the schedule.
    pub number: i64,
    /// The time it belongs to.
    pub nominal_at: i64,
    /// When it was decided.
    pub fired_at: i64,
    /// Why it came.
    pub cause: FiringCause,
    /// What became of it.
    pub state: FiringState,
    /// What it submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// What it submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    /// Why it was skipped or missed, or the code of the last refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How what it submitted ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// How many missed times it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// How often its submission was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<i64>,
}

impl Firing {
    /// A stored firing of a schedule that submits flows, or executions.
    #[must_use]
    pub fn of(firing: generated::Firing, flow: bool) -> Self {
        let run = firing.run_id;
        Self {
            number: firing.number,
            nominal_at: firing.nominal_at,
            fired_at: firing.fired_at,
            cause: firing.cause,
            state: firing.state,
            execution_id: run.filter(|_| !flow).map(ExecutionId::from_uuid),
            flow_id: run.filter(|_| flow).map(FlowId::from_uuid),
            why: firing.why,
            outcome: firing.outcome,
            ended_at: firing.ended_at,
            count: firing.count,
            tries: firing.tries,
        }
    }
}

/// A schedule as it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Counts its changes.
    pub version: i64,
    /// When it fires.
    pub times: Vec<ScheduleTime>,
    /// The zone of cron expressions.
    pub time_zone: String,
    /// Nothing fires before this time.
    pub starts_at: Option<i64>,
    /// Nothing fires after this time.
    pub ends_at: Option<i64>,
    /// Each time comes up to so much later.
    pub jitter_ms: Option<i64>,
    /// What happens while the last one has not ended.
    pub overlap: Overlap,
    /// What was missed for longer is not made up for.
    pub catch_up_ms: i64,
    /// How many firings are left; `null` without a bound.
    pub remaining: Option<i64>,
    /// What it submits. Shown for one schedule, not in lists.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<ScheduleAction>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Box<RawValue>>,
    /// Who paused it, when and why; `null` while it is not paused.
    pub paused: Option<SchedulePause>,
    /// Nothing of it is left: it has fired as often as it may, or its last time has passed.
    pub ended: bool,
    /// The next time.
    pub next_at: Option<i64>,
    /// Its last firing.
    pub last: Option<Firing>,
    /// How often it fired, and did not.
    pub counts: ScheduleCounts,
    /// What it submitted and has not ended.
    pub running: i64,
    /// Firings that wait for the end of another one.
    pub waiting: i64,
    /// Firings that are not submitted yet.
    pub unsubmitted: i64,
    /// The code with which a submission was refused that is tried again.
    pub refused: Option<String>,
    /// The backfill, and how far it is.
    pub backfill: Option<generated::Backfill>,
    /// When it was made.
    pub created_at: i64,
    /// When it was changed.
    pub changed_at: i64,
}

impl Schedule {
    /// A stored schedule; `action` is what it submits as JSON, when that was read.
    ///
    /// # Errors
    /// When what is stored is not a definition.
    pub fn of(stored: generated::Schedule, action: Option<&[u8]>) -> Result<Self, Invalid> {
        let corrupt = |field: &str| Invalid::new(field.to_owned(), "cannot be read as it is stored");
        let when = ScheduleTimes::read(&stored.definition.0).map_err(|_| corrupt("times"))?;
        let text = action.map(|bytes| String::from_utf8(bytes.to_vec())).transpose().map_err(|_| corrupt("action"))?;
        let action = text.map(RawValue::from_string).transpose().map_err(|_| corrupt("action"))?;
        let flow = ScheduleTimes::submits_flow(&stored.definition.0);
        Ok(Self {
            name: stored.name,
            namespace: stored.namespace,
            version: stored.version,
            times: when.times,
            time_zone: when.time_zone,
            starts_at: stored.starts_at,
            ends_at: stored.ends_at,
            jitter_ms: stored.jitter_ms,
            overlap: stored.overlap,
            catch_up_ms: stored.catch_up_ms,
            remaining: stored.remaining,
            action,
            paused: stored.paused,
            ended: stored.over,
            next_at: stored.next_at,
            last: stored.last.map(|firing| Firing::of(firing, flow)),
            counts: ScheduleCounts { fired: stored.fired, skipped: stored.skipped, missed: stored.missed },
            running: stored.running,
            waiting: stored.waiting,
            unsubmitted: stored.unsubmitted,
            refused: stored.refused,
            backfill: stored.backfill,
            created_at: stored.created_at,
            changed_at: stored.changed_at,
        })
    }
}

/// What is stored of a definition beside what the library reads.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    #[serde(flatten)]
    when: Cow<'a, ScheduleTimes>,
    flow: bool,
}

impl ScheduleTimes {
    /// As it is stored, with what kind of work is submitted.
    #[must_use]
    pub fn stored(&self, flow: bool) -> Vec<u8> {
        serde_json::to_vec(&Stored { when: Cow::Borrowed(self), flow }).expect("times are plain values")
    }

    /// Reads what is stored.
    ///
    /// # Errors
    /// When that is something else.
    pub fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice::<Stored<'_>>(bytes).map(|stored| stored.when.into_owned())
    }

    /// True when a stored definition submits flows.
    #[must_use]
    pub fn submits_flow(bytes: &[u8]) -> bool {
        serde_json::from_slice::<Stored<'_>>(bytes).is_ok_and(|stored| stored.flow)
    }
}

/// Which schedules to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct SchedulesQuery {
    /// Those of a namespace.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
    /// How many; at most 64 come at once.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// How many of the next times to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct NextQuery {
    /// The namespace; the default is `default`.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
    /// How many times; the default is 10.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 100))]
    pub count: Option<i64>,
}

/// A time that comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextTime {
    /// The time.
    pub nominal_at: i64,
    /// Whether it will fire, as far as that is known now.
    pub will_fire: bool,
    /// Why it will not: `paused`, `remaining`, `overlap` or `backfill`; or what it waits for: `refused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The next times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextTimes {
    /// The times, the first one first.
    pub items: Vec<NextTime>,
}

/// Why a schedule is paused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PauseScheduleBody {
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Reason>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A request to fire now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TriggerBody {
    /// The same request fires once; minted by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<uuid::Uuid>,
}

/// What a trigger submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Triggered {
    /// The execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    /// Which firing it is.
    pub number: i64,
    /// The same request had triggered it before.
    pub duplicate: bool,
}

/// A time in the past that is to be made up for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BackfillBody {
    /// The first time.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::TimeMs))]
    pub from: i64,
    /// The last time; not in the future.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::TimeMs))]
    pub to: i64,
    /// What happens while the one before has not ended; the default is the schedule's policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
}

operations! {
    /// Creates a schedule, or replaces the definition of one.
    PutSchedule schedule_put: put "/v1/schedules/{name}", STEER;
    at (parts::Schedule);
    takes ScheduleBody, up to PAYLOAD_BODY;
    asks NamespaceQuery;
    returns Made<Schedule>: (status = 201, description = "It is new.", body = Schedule), (status = 200, description = "It was changed.", body = Schedule);
    status Made::status;
    fails &["schedule_version_conflict", "budget_not_found", "quota_not_found", "capability_invalid", "cycle_detected"];

    /// One page of schedules, newest first; at most 64.
    ListSchedules schedule_list: get "/v1/schedules", LOOK;
    asks SchedulesQuery;
    returns Listed<Schedule>: (status = 200, body = Listed<Schedule>);

    /// A schedule as it stands, with what it submits.
    GetSchedule schedule_get: get "/v1/schedules/{name}", LOOK;
    at (parts::Schedule);
    asks NamespaceQuery;
    returns Schedule: (status = 200, body = Schedule);
    fails &["schedule_not_found"];

    /// Deletes a schedule. What it submitted goes on.
    DeleteSchedule schedule_delete: delete "/v1/schedules/{name}", STEER;
    at (parts::Schedule);
    asks NamespaceQuery;
    returns Nothing: (status = 204, description = "It is gone.");
    fails &["schedule_not_found"];

    /// Stops a schedule from firing by itself.
    PauseSchedule schedule_pause: post "/v1/schedules/{name}/pause", STEER;
    at (parts::Schedule);
    takes PauseScheduleBody;
    asks NamespaceQuery;
    returns Schedule: (status = 200, body = Schedule);
    fails &["schedule_not_found"];

    /// Lets a paused schedule fire again, from the next time on.
    ResumeSchedule schedule_resume: post "/v1/schedules/{name}/resume", STEER;
    at (parts::Schedule);
    asks NamespaceQuery;
    returns Schedule: (status = 200, body = Schedule);
    fails &["schedule_not_found"];

    /// Fires now, whatever runs, and while the schedule is paused.
    TriggerSchedule schedule_trigger: post "/v1/schedules/{name}/trigger", PUT_IN;
    at (parts::Schedule);
    takes TriggerBody;
    asks NamespaceQuery;
    returns Triggered: (status = 200, body = Triggered);
    fails &[
        "schedule_not_found", "lane_full", "lane_disabled", "capability_invalid", "budget_not_found", "quota_not_found",
        "cycle_detected", "flow_full", "try_again",
    ];

    /// Fires the times of a period that has passed, in order.
    BackfillSchedule schedule_backfill: post "/v1/schedules/{name}/backfill", STEER;
    at (parts::Schedule);
    takes BackfillBody;
    asks NamespaceQuery;
    returns Schedule: (status = 200, body = Schedule);
    fails &["schedule_not_found", "schedule_busy"];

    /// Stops a backfill. What it submitted goes on.
    StopBackfill schedule_stop_backfill: delete "/v1/schedules/{name}/backfill", STEER;
    at (parts::Schedule);
    asks NamespaceQuery;
    returns Schedule: (status = 200, body = Schedule);
    fails &["schedule_not_found"];

    /// The next times of a schedule, and why one of them will not fire.
    NextOfSchedule schedule_next: get "/v1/schedules/{name}/next", LOOK;
    at (parts::Schedule);
    asks NextQuery;
    returns NextTimes: (status = 200, body = NextTimes);
    fails &["schedule_not_found"];

    /// The last firings, newest first, with what became of each; at most 100.
    ListFirings schedule_firings: get "/v1/schedules/{name}/firings", LOOK;
    at (parts::Schedule);
    asks NamespaceQuery;
    returns Listed<Firing>: (status = 200, body = Listed<Firing>);
    fails &["schedule_not_found"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_one_thing_that_every_firing_can_submit() {
        let read = |text: &str| serde_json::from_str::<ScheduleAction>(text).unwrap().read("default");
        assert!(matches!(read(r#"{"execution":{"kind":"report"}}"#), Ok(Action::Execution(_))));
        assert!(matches!(read(r#"{"flow":{"kind":"night","members":[]}}"#), Ok(Action::Flow(_))));
        for (text, field) in [
            ("{}", "action"),
            (r#"{"execution":{"kind":"a"},"flow":{"kind":"b"}}"#, "action"),
            (r#"{"execution":{"kind":"a","idempotency_key":"k"}}"#, "action.execution.idempotency_key"),
            (r#"{"execution":{"kind":"a","delay_until":1}}"#, "action.execution.delay_until"),
            (r#"{"execution":{"kind":"a","namespace":"other"}}"#, "action.execution.namespace"),
            (r#"{"flow":{"kind":"a","seal":false}}"#, "action.flow.seal"),
            (r#"{"flow":{"kind":"a","namespace":"other"}}"#, "action.flow.namespace"),
        ] {
            assert_eq!(read(text).unwrap_err().field, field, "{text}");
        }
    }

    #[test]
    fn times_are_read_as_they_are_stored() {
        let when = ScheduleTimes {
            times: vec![ScheduleTime::cron("0 9 * * *"), ScheduleTime::every(5_000), ScheduleTime::at(7)],
            time_zone: "Europe/Berlin".to_owned(),
        };
        for flow in [true, false] {
            let bytes = when.stored(flow);
            assert_eq!(ScheduleTimes::read(&bytes).unwrap(), when);
            assert_eq!(ScheduleTimes::submits_flow(&bytes), flow);
        }
    }
}
