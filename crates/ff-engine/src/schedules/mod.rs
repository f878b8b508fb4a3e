//! Schedules: what their definitions mean, which times come next, and what a firing submits.
//!
//! The library decides when a schedule fires and what becomes of it. It cannot reckon calendars, so the engine supplies
//! the times of cron expressions ahead (`background/schedules.rs`).

mod action;
mod calendar;
mod cron;
mod plan;

pub(crate) use action::{Run, Submitted, invalid, new_execution, new_flow_of, submit};
pub use calendar::{Calendar, When};
pub use cron::{BadCron, Cron};
pub(crate) use plan::{backfill_of, count_between, plan};

use ff_api::Invalid;
use ff_api::schedules::{Action, CATCH_UP_MS, ScheduleBody, ScheduleTime, ScheduleTimes};
use ff_core::limits::{DURATION_MS_MAX, SCHEDULE_EVERY_MS_MIN, SCHEDULE_TIMES_MAX, TIME_MS_MAX};
use ff_script::generated::{self, NewSchedule, Overlap, ScheduleEvery};
use jiff::tz::TimeZone;

/// A definition that was checked.
#[derive(Clone, Debug)]
pub struct Definition {
    /// As the library takes it.
    pub new: NewSchedule,
    /// Its times.
    pub calendar: Calendar,
    /// What it submits.
    pub action: Action,
}

/// Checks a definition. `now_ms` decides whether a time is still to come.
///
/// # Errors
/// When a field cannot be used, or no time is left.
pub fn read(namespace: &str, name: &str, body: ScheduleBody, now_ms: i64) -> Result<Definition, Invalid> {
    let when = ScheduleTimes { times: body.times, time_zone: body.time_zone.unwrap_or_else(|| "UTC".to_owned()) };
    for (field, value, max) in [
        ("starts_at", body.starts_at, TIME_MS_MAX),
        ("ends_at", body.ends_at, TIME_MS_MAX),
        ("jitter_ms", body.jitter_ms, DURATION_MS_MAX),
        ("catch_up_ms", body.catch_up_ms, DURATION_MS_MAX),
    ] {
        if let Some(n) = value.filter(|n| !(0..=max).contains(n)) {
            return Err(Invalid::new(field, format!("must be in 0..={max}, got {n}")));
        }
    }
    if let Some(n) = body.remaining.filter(|n| !(1..=TIME_MS_MAX).contains(n)) {
        return Err(Invalid::new("remaining", format!("must be in 1..={TIME_MS_MAX}, got {n}")));
    }
    let calendar = calendar_of(&when, body.starts_at, body.ends_at)?;
    if body.ends_at.is_some_and(|end| end < body.starts_at.unwrap_or(0).max(now_ms)) {
        return Err(Invalid::new("ends_at", "must lie in the future, and not before starts_at"));
    }
    if calendar.next(now_ms).is_none() {
        return Err(Invalid::new("times", "have none in the future between starts_at and ends_at"));
    }
    let everies = when
        .times
        .iter()
        .filter_map(|time| Some(ScheduleEvery { every_ms: time.every_ms?, anchor_at: time.anchor_at.unwrap_or(0) }));
    let everies = everies.collect();
    let text = body.action.stored()?;
    let action = body.action.read(namespace)?;
    let definition = when.stored(matches!(action, Action::Flow(_)));
    let new = NewSchedule {
        jitter_ms: body.jitter_ms.filter(|jitter| *jitter > 0),
        starts_at: body.starts_at,
        ends_at: body.ends_at,
        remaining: body.remaining,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        definition: definition.into(),
        action: text.into(),
        every: everies,
        calendar: calendar.is_supplied(),
        overlap: body.overlap.unwrap_or(Overlap::Skip),
        catch_up_ms: body.catch_up_ms.unwrap_or(CATCH_UP_MS),
    };
    Ok(Definition { new, calendar, action })
}

/// The times of a stored schedule.
///
/// # Errors
/// When what is stored cannot be read.
pub fn stored_calendar(schedule: &generated::Schedule) -> Result<Calendar, Invalid> {
    let when = ScheduleTimes::read(&schedule.definition.0)
        .map_err(|error| Invalid::new("times", format!("cannot be read as they are stored: {error}")))?;
    calendar_of(&when, schedule.starts_at, schedule.ends_at)
}

fn calendar_of(when: &ScheduleTimes, starts_at: Option<i64>, ends_at: Option<i64>) -> Result<Calendar, Invalid> {
    let count = i64::try_from(when.times.len()).unwrap_or(i64::MAX);
    if !(1..=SCHEDULE_TIMES_MAX).contains(&count) {
        return Err(Invalid::new("times", format!("must be 1 to {SCHEDULE_TIMES_MAX}, got {count}")));
    }
    let unknown = || Invalid::new("time_zone", format!("is no time zone: {:?}", when.time_zone));
    let zone = TimeZone::get(&when.time_zone).map_err(|_| unknown())?;
    let times = when.times.iter().enumerate();
    let times = times.map(|(at, time)| read_time(&format!("times[{at}]"), time)).collect::<Result<_, _>>()?;
    Ok(Calendar { times, zone, starts_at, ends_at })
}

fn read_time(place: &str, time: &ScheduleTime) -> Result<When, Invalid> {
    let within = |field: &str, n: i64, min: i64, max: i64| {
        if (min..=max).contains(&n) {
            return Ok(n);
        }
        Err(Invalid::new(format!("{place}.{field}"), format!("must be in {min}..={max}, got {n}")))
    };
    if time.anchor_at.is_some() && time.every_ms.is_none() {
        return Err(Invalid::new(format!("{place}.anchor_at"), "belongs to every_ms"));
    }
    match (&time.cron, time.every_ms, time.at) {
        (Some(cron), None, None) if cron.len() > 256 => {
            Err(Invalid::new(format!("{place}.cron"), "must be at most 256 bytes"))
        }
        (Some(cron), None, None) => {
            let read = cron.parse().map(When::Cron);
            read.map_err(|bad: BadCron| Invalid::new(format!("{place}.cron"), format!("cannot be used: {bad}")))
        }
        (None, Some(every_ms), None) => Ok(When::Every {
            every_ms: within("every_ms", every_ms, SCHEDULE_EVERY_MS_MIN, DURATION_MS_MAX)?,
            anchor_at: within("anchor_at", time.anchor_at.unwrap_or(0), 0, TIME_MS_MAX)?,
        }),
        (None, None, Some(at)) => Ok(When::At(within("at", at, 0, TIME_MS_MAX)?)),
        _ => Err(Invalid::new(place, "must have one of cron, every_ms and at")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn wrong(text: &str) -> String {
        let body: ScheduleBody = serde_json::from_str(text).expect("a body");
        read("default", "nightly", body, NOW).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let action = r#""action":{"execution":{"kind":"k"}}"#;
        for (rest, problem) in [
            (r#""times":[]"#, "times must be 1 to 16, got 0"),
            (r#""times":[{}]"#, "times[0] must have one of cron, every_ms and at"),
            (r#""times":[{"cron":"@daily","at":5}]"#, "times[0] must have one of cron, every_ms and at"),
            (
                r#""times":[{"cron":"@daily"},{"cron":"0 0 30 2 *"}]"#,
                "times[1].cron cannot be used: the day of the month 30 never comes in these months",
            ),
            (r#""times":[{"every_ms":999}]"#, "times[0].every_ms must be in 1000..=315360000000, got 999"),
            (r#""times":[{"cron":"@daily","anchor_at":5}]"#, "times[0].anchor_at belongs to every_ms"),
            (r#""times":[{"at":5}]"#, "times have none in the future between starts_at and ends_at"),
            (
                r#""times":[{"cron":"@daily"}],"time_zone":"Mars/Olympus""#,
                "time_zone is no time zone: \"Mars/Olympus\"",
            ),
            (r#""times":[{"cron":"@daily"}],"ends_at":5"#, "ends_at must lie in the future, and not before starts_at"),
            (r#""times":[{"cron":"@daily"}],"remaining":0"#, "remaining must be in 1..=9007199254740991, got 0"),
            (r#""times":[{"cron":"@daily"}],"jitter_ms":-1"#, "jitter_ms must be in 0..=315360000000, got -1"),
        ] {
            assert_eq!(wrong(&format!("{{{rest},{action}}}")), problem, "{rest}");
        }
        assert_eq!(
            wrong(r#"{"times":[{"cron":"@daily"}],"action":{}}"#),
            "action must have either an execution or a flow"
        );
    }
}
