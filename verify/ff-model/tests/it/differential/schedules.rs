//! Calls about schedules, which the model does not know.

use ff_script::generated as g;
use ff_script::{Bytes, Invocation, Route};
use rand::Rng;
use rand::rngs::StdRng;

use super::call;
use super::other::{id, maybe};

const SCHEDULES: Route = Route::Schedule(0);

/// Each must have been accepted at least once, not only refused.
pub const FUNCTIONS: [&str; 15] = [
    "ff_put_schedule",
    "ff_get_schedule",
    "ff_list_schedules",
    "ff_delete_schedule",
    "ff_pause_schedule",
    "ff_resume_schedule",
    "ff_trigger_schedule",
    "ff_backfill_schedule",
    "ff_stop_backfill",
    "ff_refill_schedule",
    "ff_refill_backfill",
    "ff_list_firings",
    "ff_take_firing",
    "ff_settle_firing",
    "ff_end_firing",
];

fn new_schedule(rng: &mut StdRng, name: String, now: i64) -> g::NewSchedule {
    let calendar = rng.random_bool(0.4);
    let every = (0..rng.random_range(u32::from(!calendar)..3))
        .map(|_| g::ScheduleEvery { every_ms: rng.random_range(1_000..5_000), anchor_at: rng.random_range(0..10_000) });
    g::NewSchedule {
        every: every.collect(),
        jitter_ms: maybe(rng, |rng| rng.random_range(1..3_000)),
        starts_at: maybe(rng, |rng| now + rng.random_range(-5_000..5_000)),
        ends_at: maybe(rng, |rng| now + rng.random_range(1..60_000)),
        remaining: maybe(rng, |rng| rng.random_range(0..5)),
        namespace: "default".to_owned(),
        name,
        definition: Bytes(vec![rng.random_range(0..3)]),
        action: Bytes(vec![1; rng.random_range(1..9)]),
        calendar,
        overlap: g::Overlap::ALL[rng.random_range(0..g::Overlap::ALL.len())],
        catch_up_ms: rng.random_range(0..20_000),
    }
}

/// Times one after the other, and up to where they are all.
fn times(rng: &mut StdRng, from: i64) -> (Vec<i64>, i64) {
    let mut at = from;
    let times: Vec<i64> = (0..rng.random_range(0..6))
        .map(|_| {
            at += rng.random_range(1..3_000);
            at
        })
        .collect();
    (times, at + rng.random_range(0..2_000))
}

/// One call.
pub fn call_of(rng: &mut StdRng, now: i64) -> Invocation {
    let (name, namespace, actor) = (format!("s{}", rng.random_range(0..4)), "default".to_owned(), "ann".to_owned());
    let number = rng.random_range(1..12);
    match rng.random_range(0..24) {
        0..=3 => {
            let schedule = new_schedule(rng, name, now);
            let version = maybe(rng, |rng| rng.random_range(0..4)).filter(|_| rng.random_bool(0.3));
            call(SCHEDULES, &g::PutSchedule { version, ..g::PutSchedule::new(actor, schedule, id(rng)) }, now)
        }
        4 => call(SCHEDULES, &g::GetSchedule { name, namespace }, now),
        5 => call(SCHEDULES, &g::ListSchedules::new(rng.random_range(1..5)), now),
        6 if rng.random_ratio(1, 3) => call(SCHEDULES, &g::DeleteSchedule { actor, name, namespace }, now),
        6 => call(SCHEDULES, &g::ListFirings { name, namespace }, now),
        7 => call(SCHEDULES, &g::PauseSchedule::new(actor, name, namespace), now),
        8 | 9 => call(SCHEDULES, &g::ResumeSchedule { actor, name, namespace }, now),
        10 => call(SCHEDULES, &g::TriggerSchedule { actor, name, namespace, request_id: id(rng) }, now),
        11 => {
            let overlap = maybe(rng, |rng| g::Overlap::ALL[rng.random_range(0..g::Overlap::ALL.len())]);
            let from = now - rng.random_range(0..9_000);
            let begin = g::BackfillSchedule::new(actor, from, name, namespace, now, rng.random_range(0..9));
            call(SCHEDULES, &g::BackfillSchedule { overlap, ..begin }, now)
        }
        12 if rng.random_ratio(1, 3) => call(SCHEDULES, &g::StopBackfill { actor, name, namespace }, now),
        12 | 13 => {
            let after = now - rng.random_range(0..9_000);
            let (times, reckoned) = times(rng, after);
            call(SCHEDULES, &g::RefillBackfill { after, name, namespace, reckoned, started_at: now, times }, now)
        }
        14..=16 => {
            let after = now - rng.random_range(0..5_000);
            let missed = rng.random_ratio(1, 4).then(|| g::MissedTimes {
                count: rng.random_range(0..9),
                first: after + 1,
                last: after + 5,
                to: after + 9,
            });
            let (times, reckoned) = times(rng, after + 9);
            let reckoned = maybe(rng, |_| reckoned);
            let version = rng.random_range(1..4);
            call(SCHEDULES, &g::RefillSchedule { after, missed, name, namespace, reckoned, times, version }, now)
        }
        17 => call(SCHEDULES, &g::TakeFiring { name, namespace, number }, now),
        18 | 19 => {
            let refused = rng.random_ratio(1, 3).then(|| "lane_full".to_owned());
            let outcome = maybe(rng, |_| "success".to_owned()).filter(|_| refused.is_none());
            let last = maybe(rng, |rng| rng.random_bool(0.5));
            let settle = g::SettleFiring::new(name, namespace, number);
            call(SCHEDULES, &g::SettleFiring { refused, outcome, last, ..settle }, now)
        }
        20 => {
            let end = g::EndFiring { name, namespace, number, outcome: "failed".to_owned(), run_id: id(rng) };
            call(SCHEDULES, &end, now)
        }
        _ => call(SCHEDULES, &g::FireDue { limit: rng.random_range(1..8), draw: 0 }, now),
    }
}
