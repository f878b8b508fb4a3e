//! The rows of schedules.

use ff_model::run::START_MS;
use ff_model::store::ROUTE;
use ff_script::generated as g;
use ff_script::{Bytes, Invocation, Route};

use super::rows::{NOW, Row, at, default, id, ops, row, submission, uuid};

const SCHEDULES: Route = Route::Schedule(0);
/// When the stage fires what is due by then.
const FIRED_AT: i64 = START_MS + 2_000;
/// The execution that a schedule has submitted.
const SUBMITTED: u64 = 190;

fn on<C: ff_script::Call>(name: &'static str, call: &C) -> Row {
    Row { invocation: at(SCHEDULES, call, NOW), ..row(name, call) }
}

fn new(name: &str, every_ms: Option<i64>, overlap: g::Overlap) -> g::NewSchedule {
    let every = every_ms.map(|every_ms| g::ScheduleEvery { every_ms, anchor_at: START_MS });
    g::NewSchedule {
        jitter_ms: None,
        starts_at: None,
        ends_at: None,
        remaining: None,
        namespace: default(),
        name: name.to_owned(),
        definition: Bytes(b"{}".to_vec()),
        action: Bytes(b"{}".to_vec()),
        calendar: every.is_none(),
        every: every.into_iter().collect(),
        overlap,
        catch_up_ms: 60_000,
    }
}

fn put(schedule: g::NewSchedule) -> g::PutSchedule {
    g::PutSchedule::new(ops(), schedule, uuid(70_000))
}

fn settle(refused: Option<&str>) -> g::SettleFiring {
    g::SettleFiring { refused: refused.map(str::to_owned), ..g::SettleFiring::new("run".to_owned(), default(), 1) }
}

fn pause(name: &str) -> g::PauseSchedule {
    g::PauseSchedule::new(ops(), name.to_owned(), default())
}

fn backfill(name: &str) -> g::BackfillSchedule {
    g::BackfillSchedule::new(ops(), START_MS - 10_000, name.to_owned(), default(), START_MS, 2)
}

fn stop(name: &str) -> g::StopBackfill {
    g::StopBackfill { actor: ops(), name: name.to_owned(), namespace: default() }
}

/// Schedules that have fired, are due, wait for times, are paused, and backfill.
pub fn stage() -> Vec<Invocation> {
    let set = |call: &g::PutSchedule| at(SCHEDULES, call, START_MS);
    let fired = g::Fired { schedule: "run".to_owned(), number: 1, nominal_at: FIRED_AT, fired_at: FIRED_AT };
    let scheduled = g::Submission { fired: Some(fired), ..submission(SUBMITTED) };
    vec![
        set(&put(new("run", Some(2_000), g::Overlap::QueueAll))),
        set(&put(new("calendar", None, g::Overlap::Skip))),
        set(&put(new("paused", Some(1_000), g::Overlap::Allow))),
        at(SCHEDULES, &pause("paused"), START_MS),
        set(&put(new("filling", None, g::Overlap::Allow))),
        at(SCHEDULES, &backfill("filling"), START_MS),
        at(SCHEDULES, &g::FireDue { limit: 8, draw: 0 }, FIRED_AT),
        at(SCHEDULES, &put(new("due", Some(1_000), g::Overlap::CancelPrevious)), FIRED_AT),
        at(ROUTE, &g::SubmitExecution { submission: scheduled }, FIRED_AT),
    ]
}

pub fn rows() -> Vec<Row> {
    let named = |name: &str| (name.to_owned(), default());
    let (run, namespace) = named("run");
    let take = g::TakeFiring { name: run.clone(), namespace: namespace.clone(), number: 1 };
    let refill = g::RefillSchedule {
        after: START_MS,
        missed: Some(g::MissedTimes { count: 3, first: START_MS + 1, last: START_MS + 3, to: START_MS + 4 }),
        name: "calendar".to_owned(),
        namespace: default(),
        reckoned: Some(NOW + 60_000),
        times: vec![NOW - 1, NOW + 60_000],
        version: 1,
    };
    let supply = g::RefillBackfill {
        after: START_MS - 10_001,
        name: "filling".to_owned(),
        namespace: default(),
        reckoned: START_MS,
        started_at: START_MS,
        times: vec![START_MS - 5_000, START_MS],
    };
    let delete = g::DeleteSchedule { actor: ops(), name: run.clone(), namespace: namespace.clone() };
    let resume = g::ResumeSchedule { actor: ops(), name: "paused".to_owned(), namespace: default() };
    let trigger =
        g::TriggerSchedule { actor: ops(), name: "paused".to_owned(), namespace: default(), request_id: uuid(1) };
    let end = g::EndFiring {
        name: run.clone(),
        namespace: namespace.clone(),
        number: 1,
        outcome: "success".to_owned(),
        run_id: *id(SUBMITTED).as_uuid(),
    };
    vec![
        on("create a schedule", &put(new("fresh", Some(1_000), g::Overlap::Allow))),
        on("change a schedule", &put(new("run", Some(3_000), g::Overlap::Skip))),
        on("read a schedule", &g::GetSchedule { name: run.clone(), namespace: namespace.clone() }),
        on("list schedules", &g::ListSchedules::new(8)),
        on("list firings", &g::ListFirings { name: run, namespace }),
        on("pause a schedule", &pause("due")),
        on("resume a schedule", &resume),
        on("trigger a schedule", &trigger),
        on("begin a backfill", &backfill("calendar")),
        on("stop a backfill", &stop("filling")),
        on("supply times", &refill),
        on("supply times of a backfill", &supply),
        on("take a firing", &take),
        on("a firing was submitted", &settle(None)),
        on("a firing was refused", &settle(Some("lane_full"))),
        on("a firing has ended", &end),
        Row { batch: true, ..on("fire schedules", &g::FireDue { limit: 8, draw: 0 }) },
        on("delete a schedule", &delete),
        row("cancel what a schedule submitted", &g::CancelExecution::new(ops(), id(SUBMITTED))),
    ]
}
