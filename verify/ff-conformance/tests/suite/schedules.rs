//! Schedules: every nominal time is decided once, what is decided is submitted or said to be missed, and what overlaps
//! follows the policy. The tests do what the engine does: they submit what is owed and supply times.

use std::collections::BTreeSet;

use ff_conformance::harness::refusal;
use ff_conformance::work::{LANE, NAMESPACE, digest};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::Route;
use ff_script::generated::*;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const NAME: &str = "nightly";

fn route(store: &Store) -> Route {
    store.client().route_of_schedule(NAMESPACE, NAME)
}

/// Every minute from now on: its first time is a minute away.
fn every(store: &Store, every_ms: i64) -> NewSchedule {
    NewSchedule {
        every: vec![ScheduleEvery { every_ms, anchor_at: store.now() }],
        jitter_ms: None,
        starts_at: None,
        ends_at: None,
        remaining: None,
        namespace: NAMESPACE.into(),
        name: NAME.into(),
        definition: b"{}".to_vec().into(),
        action: b"{\"execution\":{\"kind\":\"report\"}}".to_vec().into(),
        calendar: false,
        overlap: Overlap::Allow,
        catch_up_ms: MINUTE,
    }
}

fn calendar(store: &Store) -> NewSchedule {
    NewSchedule { every: vec![], calendar: true, ..every(store, MINUTE) }
}

async fn try_put(
    store: &Store,
    schedule: NewSchedule,
    version: Option<i64>,
) -> Result<PutScheduleReply, ff_script::Error> {
    let id = store.uuid(7);
    store.call(route(store), &PutSchedule { version, ..PutSchedule::new("ops".into(), schedule, id) }).await
}

async fn put(store: &Store, schedule: NewSchedule) -> Schedule {
    match try_put(store, schedule, None).await.unwrap() {
        PutScheduleReply::Created { schedule, .. } | PutScheduleReply::Changed { schedule, .. } => schedule,
    }
}

async fn get(store: &Store) -> Schedule {
    let call = GetSchedule { namespace: NAMESPACE.into(), name: NAME.into() };
    let GetScheduleReply::Found { schedule, .. } = store.call(route(store), &call).await.unwrap();
    schedule
}

async fn firings(store: &Store) -> Vec<Firing> {
    let call = ListFirings { namespace: NAMESPACE.into(), name: NAME.into() };
    let ListFiringsReply::Firings { items } = store.call(route(store), &call).await.unwrap();
    items
}

/// States of the firings, the first one first, each with why or how it ended.
async fn told(store: &Store) -> Vec<String> {
    let mut all = firings(store).await;
    all.reverse();
    let text = |firing: &Firing| match firing.why.as_ref().or(firing.outcome.as_ref()) {
        Some(why) => format!("{} {why}", firing.state),
        None => firing.state.to_string(),
    };
    all.iter().map(text).collect()
}

async fn effects(store: &Store, route: Route) -> Vec<Effect> {
    let ReadOutboxReply::Effects { items } = store.call(route, &ReadOutbox::new(1_000)).await.unwrap();
    items
}

async fn ack(store: &Store, route: Route, effect: &Effect) {
    store.call(route, &AckOutbox { ids: vec![effect.id.clone()] }).await.unwrap();
}

async fn take(store: &Store, number: i64) -> Option<Firing> {
    let call = TakeFiring { name: NAME.into(), namespace: NAMESPACE.into(), number };
    match store.call(route(store), &call).await.unwrap() {
        TakeFiringReply::Due { firing, .. } => Some(firing),
        TakeFiringReply::Settled => None,
    }
}

async fn settle(store: &Store, number: i64, refused: Option<&str>) -> SettleFiringReply {
    let call = SettleFiring {
        refused: refused.map(str::to_owned),
        ..SettleFiring::new(NAME.into(), NAMESPACE.into(), number)
    };
    store.call(route(store), &call).await.unwrap()
}

fn submission_of(firing: &Firing) -> Submission {
    let id = ExecutionId::from_uuid(firing.run_id.unwrap());
    let fired = Fired {
        schedule: NAME.into(),
        number: firing.number,
        nominal_at: firing.nominal_at,
        fired_at: firing.fired_at,
    };
    let new = Submission::new(id, NAMESPACE.into(), LANE.into(), "report".into(), digest("report"));
    Submission { fired: Some(fired), ..new }
}

/// Submits whatever is owed; answers the executions that are new, by their nominal times.
async fn submit_owed(store: &Store) -> Vec<(i64, ExecutionId)> {
    let mut new = Vec::new();
    for effect in effects(store, route(store)).await {
        if effect.r#type != "fire_schedule" {
            continue;
        }
        let number = effect.data["number"].parse().unwrap();
        if let Some(firing) = take(store, number).await {
            match store.try_submit(submission_of(&firing)).await.unwrap() {
                SubmitExecutionReply::Created { execution_id, .. } => new.push((firing.nominal_at, execution_id)),
                SubmitExecutionReply::Duplicate { .. } => {}
            }
            settle(store, number, None).await;
        }
        ack(store, route(store), &effect).await;
    }
    new
}

/// Tells the schedule of every end that is owed to it.
async fn tell_ends(store: &Store) -> usize {
    let mut told = 0;
    for from in store.routes().collect::<Vec<_>>() {
        for effect in effects(store, from).await {
            assert_eq!(effect.r#type, "firing_ended");
            let end = EndFiring {
                name: effect.data["schedule"].clone(),
                namespace: effect.data["namespace"].clone(),
                number: effect.data["number"].parse().unwrap(),
                outcome: effect.data["outcome"].clone(),
                run_id: effect.data["run_id"].parse().unwrap(),
            };
            store.call(route(store), &end).await.unwrap();
            ack(store, from, &effect).await;
            told += 1;
        }
    }
    told
}

async fn cancel(store: &Store, id: ExecutionId) {
    store.call(store.route_of(id), &CancelExecution::new("ops".into(), id)).await.unwrap();
}

async fn fire_and_submit(store: &Store) -> Vec<(i64, ExecutionId)> {
    store.fire_due(route(store)).await;
    submit_owed(store).await
}

/// Supplies times up to a moment, as far as the schedule asks for them.
async fn supply(
    store: &Store,
    times: Vec<i64>,
    reckoned: Option<i64>,
    missed: Option<MissedTimes>,
) -> RefillScheduleReply {
    let schedule = get(store).await;
    let call = RefillSchedule {
        after: schedule.cursor,
        missed,
        name: NAME.into(),
        namespace: NAMESPACE.into(),
        reckoned,
        times,
        version: schedule.version,
    };
    store.call(route(store), &call).await.unwrap()
}

async fn asked(store: &Store, kind: &str) -> usize {
    let mut count = 0;
    for effect in effects(store, route(store)).await {
        if effect.r#type == kind {
            ack(store, route(store), &effect).await;
            count += 1;
        }
    }
    count
}

async fn kinds_of_events(store: &Store) -> Vec<String> {
    let all = store.events(route(store)).await;
    all.iter().map(|event| event.r#type.clone()).collect()
}

for_each_host! {
    async fn a_schedule_fires_each_of_its_times_once_without_anyone(store) {
        store.install_default_lane().await;
        let start = store.now();
        let schedule = put(&store, every(&store, MINUTE)).await;
        assert_eq!((schedule.next_at, schedule.version), (Some(start + MINUTE), 1));
        assert!(fire_and_submit(&store).await.is_empty());
        let mut ids = BTreeSet::new();
        for n in 1..=3 {
            store.advance(MINUTE);
            let new = fire_and_submit(&store).await;
            assert_eq!(new.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [start + n * MINUTE]);
            let execution = store.describe(new[0].1).await;
            let fired = execution.fired.unwrap();
            assert_eq!(fired, Fired { schedule: NAME.into(), number: n, nominal_at: start + n * MINUTE, fired_at: store.now() });
            ids.insert(new[0].1);
            assert!(fire_and_submit(&store).await.is_empty(), "a time fires once");
        }
        assert_eq!(ids.len(), 3);
        let schedule = get(&store).await;
        assert_eq!((schedule.fired, schedule.running, schedule.next_at), (3, 3, Some(start + 4 * MINUTE)));
        for id in ids {
            cancel(&store, id).await;
        }
        assert_eq!(tell_ends(&store).await, 3);
        assert_eq!(get(&store).await.running, 0);
        assert_eq!(told(&store).await, ["ended cancelled", "ended cancelled", "ended cancelled"]);
        assert_eq!(kinds_of_events(&store).await, ["schedule.created", "schedule.fired", "schedule.fired", "schedule.fired"]);
        let last = get(&store).await.last.unwrap();
        assert_eq!((last.number, last.state), (3, FiringState::Ended));
    }

    async fn what_was_submitted_is_not_submitted_again(store) {
        store.install_default_lane().await;
        put(&store, every(&store, MINUTE)).await;
        store.advance(MINUTE);
        store.fire_due(route(&store)).await;
        let owed = effects(&store, route(&store)).await;
        let firing = take(&store, 1).await.unwrap();
        // Two servers submit the same; one of them is told that it is there.
        let id = store.submit(submission_of(&firing)).await;
        let later = Submission { fired: Some(Fired { fired_at: 7, ..submission_of(&firing).fired.unwrap() }), ..submission_of(&firing) };
        assert_eq!(store.try_submit(later).await, Ok(SubmitExecutionReply::Duplicate { execution_id: id, state: Some(PublicState::Waiting) }));
        // The execution ends and is gone before anyone has said that it was submitted.
        cancel(&store, id).await;
        tell_ends(&store).await;
        assert_eq!(take(&store, 1).await, None, "nobody submits it now");
        assert_eq!(settle(&store, 1, None).await, SettleFiringReply::Known);
        assert_eq!(settle(&store, 1, Some("lane_full")).await, SettleFiringReply::Known);
        ack(&store, route(&store), &owed[0]).await;
        let schedule = get(&store).await;
        assert_eq!((schedule.fired, schedule.missed, schedule.running, schedule.unsubmitted), (1, 0, 0, 0));
        // The clock goes back: what was decided stays decided.
        store.go_to(store.now() - 10 * MINUTE);
        assert!(fire_and_submit(&store).await.is_empty());
        store.advance(10 * MINUTE);
        assert!(fire_and_submit(&store).await.is_empty());
        store.advance(MINUTE);
        assert_eq!(fire_and_submit(&store).await.len(), 1);
    }

    async fn what_overlaps_follows_the_policy(store) {
        store.install_default_lane().await;
        for (overlap, while_running, after_end) in [
            (Overlap::Allow, &["running", "running", "running"][..], &["ended cancelled", "running", "running"][..]),
            (Overlap::Skip, &["running", "skipped overlap", "skipped overlap"], &["ended cancelled", "skipped overlap", "skipped overlap"]),
            (Overlap::QueueOne, &["running", "waiting", "skipped overlap"], &["ended cancelled", "running", "skipped overlap"]),
            (Overlap::QueueAll, &["running", "waiting", "waiting"], &["ended cancelled", "running", "waiting"]),
            (Overlap::CancelPrevious, &["running", "skipped replaced", "waiting"], &["ended cancelled", "skipped replaced", "running"]),
        ] {
            put(&store, NewSchedule { overlap, ..every(&store, MINUTE) }).await;
            let mut runs = Vec::new();
            for _ in 0..3 {
                store.advance(MINUTE);
                runs.extend(fire_and_submit(&store).await);
            }
            assert_eq!(told(&store).await, while_running, "{overlap}");
            let cancels = asked(&store, "cancel_run").await;
            assert_eq!(cancels, if overlap == Overlap::CancelPrevious { 2 } else { 0 }, "{overlap}");
            cancel(&store, runs[0].1).await;
            assert_eq!(tell_ends(&store).await, 1);
            runs.extend(submit_owed(&store).await);
            assert_eq!(told(&store).await, after_end, "{overlap}");
            for (_, id) in runs {
                if store.state(id).await != PublicState::Cancelled {
                    cancel(&store, id).await;
                }
            }
            tell_ends(&store).await;
            let call = DeleteSchedule { actor: "ops".into(), name: NAME.into(), namespace: NAMESPACE.into() };
            store.call(route(&store), &call).await.unwrap();
            for effect in effects(&store, route(&store)).await {
                ack(&store, route(&store), &effect).await;
            }
        }
        let left: Vec<String> = store.dump().await.into_keys().filter(|key| key.starts_with("ff:schedule:")).collect();
        assert_eq!(left, Vec::<String>::new());
    }

    async fn what_was_missed_a_moment_ago_is_made_up_for_and_what_was_missed_long_ago_is_counted(store) {
        store.install_default_lane().await;
        let start = store.now();
        put(&store, NewSchedule { catch_up_ms: 150 * SECOND, ..every(&store, MINUTE) }).await;
        store.advance(2 * MINUTE + SECOND);
        assert_eq!(fire_and_submit(&store).await.len(), 2, "both were missed within the window");
        // An hour passes, in which no server runs.
        store.go_to(start + 62 * MINUTE + SECOND);
        assert!(fire_and_submit(&store).await.is_empty(), "somebody has to count first");
        assert_eq!(asked(&store, "plan_schedule").await, 1);
        assert_eq!(store.fire_due(route(&store)).await, 0, "it waits for that without a timer");
        let too_late = store.now() - 150 * SECOND - 1;
        let missed = MissedTimes { count: 57, first: start + 3 * MINUTE, last: start + 59 * MINUTE, to: too_late };
        assert_eq!(supply(&store, vec![], None, Some(missed.clone())).await, RefillScheduleReply::Planned);
        let nominal: Vec<i64> = submit_owed(&store).await.iter().map(|(at, _)| (at - start) / MINUTE).collect();
        assert_eq!(nominal, [60, 61, 62]);
        let schedule = get(&store).await;
        assert_eq!((schedule.fired, schedule.missed), (5, 57));
        // The same again, by a second server: it was counted.
        let call = RefillSchedule {
            after: start + 2 * MINUTE, missed: Some(missed), name: NAME.into(), namespace: NAMESPACE.into(), reckoned: None, times: vec![],
            version: 1,
        };
        assert_eq!(store.call(route(&store), &call).await.unwrap(), RefillScheduleReply::Stale);
        assert_eq!(get(&store).await.missed, 57);
        let one = firings(&store).await.into_iter().find(|firing| firing.state == FiringState::Missed).unwrap();
        assert_eq!((one.count, one.nominal_at, one.why.as_deref()), (Some(57), start + 59 * MINUTE, Some("too_late")));
        let event = store.events(route(&store)).await.into_iter().find(|event| event.r#type == "schedule.missed").unwrap();
        assert_eq!(event.texts().get("count").map(String::as_str), Some("57"));
    }

    async fn no_time_of_a_calendar_is_passed_over_while_times_are_supplied(store) {
        store.install_default_lane().await;
        let start = store.now();
        let both = NewSchedule { every: vec![ScheduleEvery { every_ms: MINUTE, anchor_at: start }], ..calendar(&store) };
        put(&store, both).await;
        assert_eq!(asked(&store, "plan_schedule").await, 1);
        assert_eq!(get(&store).await.next_at, None, "what comes next is not known yet");
        store.advance(MINUTE);
        assert!(fire_and_submit(&store).await.is_empty(), "an earlier time of the calendar may be supplied yet");
        assert_eq!(supply(&store, vec![start + 30 * SECOND, start + 90 * SECOND], Some(start + 90 * SECOND), None).await, RefillScheduleReply::Planned);
        let nominal: Vec<i64> = submit_owed(&store).await.iter().map(|(at, _)| at - start).collect();
        assert_eq!(nominal, [30 * SECOND, MINUTE]);
        assert_eq!(asked(&store, "plan_schedule").await, 1, "half of them are used");
        store.advance(MINUTE);
        let nominal: Vec<i64> = fire_and_submit(&store).await.iter().map(|(at, _)| at - start).collect();
        assert_eq!(nominal, [90 * SECOND], "the minute behind the last known time waits");
        // Times reckoned from an older moment are as good, as far as they are ahead.
        let call = RefillSchedule {
            after: start, missed: None, name: NAME.into(), namespace: NAMESPACE.into(), reckoned: Some(start + 3 * MINUTE),
            times: vec![start + 30 * SECOND, start + 90 * SECOND, start + 3 * MINUTE], version: 1,
        };
        assert_eq!(store.call(route(&store), &call).await.unwrap(), RefillScheduleReply::Planned);
        let nominal: Vec<i64> = submit_owed(&store).await.iter().map(|(at, _)| at - start).collect();
        assert_eq!(nominal, [2 * MINUTE]);
        // Times of an older definition are not.
        put(&store, calendar(&store)).await;
        assert_eq!(store.call(route(&store), &call).await.unwrap(), RefillScheduleReply::Stale);
        assert_eq!(supply(&store, vec![start + HOUR], None, None).await, RefillScheduleReply::Planned);
        store.go_to(start + HOUR);
        assert_eq!(fire_and_submit(&store).await.len(), 1);
        assert!(get(&store).await.over, "there are no others");
    }

    async fn a_firing_that_is_refused_is_tried_again_and_then_missed(store) {
        store.install_default_lane().await;
        let start = store.now();
        put(&store, NewSchedule { catch_up_ms: 10 * SECOND, ..every(&store, 4 * SECOND) }).await;
        store.advance(4 * SECOND);
        store.fire_due(route(&store)).await;
        let owed = effects(&store, route(&store)).await;
        assert_eq!(settle(&store, 1, Some("lane_full")).await, SettleFiringReply::Settled { again_at: Some(store.now() + SECOND) });
        ack(&store, route(&store), &owed[0]).await;
        assert_eq!(get(&store).await.refused.as_deref(), Some("lane_full"));
        store.advance(4 * SECOND);
        store.fire_due(route(&store)).await;
        assert_eq!(firings(&store).await.len(), 1, "the next time waits for the one before");
        let owed = effects(&store, route(&store)).await;
        assert_eq!(owed.len(), 1, "it is tried again");
        ack(&store, route(&store), &owed[0]).await;
        assert_eq!(settle(&store, 1, Some("lane_full")).await, SettleFiringReply::Settled { again_at: Some(store.now() + 2 * SECOND) });
        store.advance(2 * SECOND);
        store.fire_due(route(&store)).await;
        let owed = effects(&store, route(&store)).await;
        ack(&store, route(&store), &owed[0]).await;
        assert_eq!(settle(&store, 1, Some("lane_full")).await, SettleFiringReply::Settled { again_at: Some(store.now() + 4 * SECOND) });
        store.advance(4 * SECOND);
        store.fire_due(route(&store)).await;
        let owed = effects(&store, route(&store)).await;
        ack(&store, route(&store), &owed[0]).await;
        assert_eq!(settle(&store, 1, Some("lane_full")).await, SettleFiringReply::Settled { again_at: None });
        assert_eq!(store.now(), start + 14 * SECOND);
        let nominal: Vec<i64> = submit_owed(&store).await.iter().map(|(at, _)| at - start).collect();
        assert_eq!(nominal, [8 * SECOND, 12 * SECOND], "those behind it come now");
        assert_eq!(told(&store).await, ["missed lane_full", "running", "running"]);
        let schedule = get(&store).await;
        assert_eq!((schedule.missed, schedule.fired, schedule.refused), (1, 2, None));
    }

    async fn a_paused_schedule_fires_only_when_it_is_triggered(store) {
        store.install_default_lane().await;
        let start = store.now();
        put(&store, every(&store, MINUTE)).await;
        let pause = PauseSchedule { actor: "ann".into(), name: NAME.into(), namespace: NAMESPACE.into(), reason: Some("holidays".into()) };
        store.call(route(&store), &pause).await.unwrap();
        let again = PauseSchedule { actor: "bob".into(), reason: None, ..pause.clone() };
        let PauseScheduleReply::Paused { schedule } = store.call(route(&store), &again).await.unwrap();
        assert_eq!(schedule.paused, Some(SchedulePause { reason: Some("holidays".into()), actor: "ann".into(), at: start }));
        store.go_to(start + 10 * MINUTE + SECOND);
        assert!(fire_and_submit(&store).await.is_empty());
        let request_id = store.uuid(1);
        let trigger = TriggerSchedule { actor: "ann".into(), name: NAME.into(), namespace: NAMESPACE.into(), request_id };
        let TriggerScheduleReply::Triggered { number, run_id } = store.call(route(&store), &trigger).await.unwrap() else { panic!("it is new") };
        store.advance(5);
        assert_eq!(store.call(route(&store), &trigger).await.unwrap(), TriggerScheduleReply::Known { number, run_id });
        let firing = take(&store, number).await.unwrap();
        assert_eq!((firing.nominal_at, firing.run_id), (store.now() - 5, Some(run_id)));
        // Whoever triggered it is gone: the timer owes it.
        store.advance(MINUTE);
        assert_eq!(fire_and_submit(&store).await.len(), 1);
        let other = TriggerSchedule { request_id: store.uuid(1), ..trigger.clone() };
        assert!(matches!(store.call(route(&store), &other).await.unwrap(), TriggerScheduleReply::Triggered { number: 2, .. }));
        settle(&store, 2, None).await;
        let resume = ResumeSchedule { actor: "ann".into(), name: NAME.into(), namespace: NAMESPACE.into() };
        let ResumeScheduleReply::Resumed { schedule } = store.call(route(&store), &resume).await.unwrap();
        assert_eq!((schedule.paused, schedule.next_at), (None, Some(start + 12 * MINUTE)), "what passed meanwhile is not made up for");
        store.go_to(start + 12 * MINUTE);
        assert_eq!(fire_and_submit(&store).await.len(), 1);
        assert_eq!(get(&store).await.fired, 3);
    }

    async fn a_backfill_is_bounded_goes_in_order_and_can_be_stopped(store) {
        store.install_default_lane().await;
        store.advance(30 * HOUR);
        let now = store.now();
        put(&store, NewSchedule { starts_at: Some(now + HOUR), ..calendar(&store) }).await;
        let from = now - 1_000 * MINUTE;
        let begin = |total, overlap| BackfillSchedule {
            overlap, ..BackfillSchedule::new("ann".into(), from, NAME.into(), NAMESPACE.into(), now, total)
        };
        assert_eq!(refusal(store.call(route(&store), &begin(10_001, None)).await), ErrorCode::InvalidArgument);
        let future = BackfillSchedule { to: now + 1, ..begin(1, None) };
        assert_eq!(refusal(store.call(route(&store), &future).await), ErrorCode::InvalidArgument);
        store.call(route(&store), &begin(1_000, Some(Overlap::Allow))).await.unwrap();
        assert_eq!(refusal(store.call(route(&store), &begin(1, None)).await), ErrorCode::ScheduleBusy);
        let (mut nominal, mut pieces) = (Vec::new(), 0);
        while get(&store).await.backfill.unwrap().ended_at.is_none() {
            pieces += asked(&store, "plan_backfill").await;
            let at = get(&store).await.backfill.unwrap();
            let first = (at.cursor - from).div_euclid(MINUTE) + 1;
            let times: Vec<i64> = (first..1_000).take(64).map(|n| from + n * MINUTE).collect();
            let reckoned = if times.len() < 64 { now } else { times[63] };
            let call = RefillBackfill {
                after: at.cursor, name: NAME.into(), namespace: NAMESPACE.into(), reckoned, started_at: at.started_at, times,
            };
            assert_eq!(store.call(route(&store), &call).await.unwrap(), RefillBackfillReply::Planned);
            assert!(get(&store).await.unsubmitted <= 64, "a bounded number is under way");
            while get(&store).await.unsubmitted > 0 {
                nominal.extend(submit_owed(&store).await.iter().map(|(at, _)| *at));
            }
            store.fire_due(route(&store)).await;
        }
        assert_eq!(nominal, (0..1_000).map(|n| from + n * MINUTE).collect::<Vec<_>>());
        assert_eq!(pieces, 16);
        let done = get(&store).await.backfill.unwrap();
        assert_eq!((done.fired, done.total, done.stopped), (1_000, 1_000, false));
        assert_eq!(firings(&store).await.len(), 100, "the last hundred are kept");
        // One at a time, and stopped in between.
        store.advance(1);
        store.call(route(&store), &begin(1_000, Some(Overlap::QueueAll))).await.unwrap();
        asked(&store, "plan_backfill").await;
        assert_eq!(get(&store).await.running, 1_000, "those of the first one still run");
        let stop = StopBackfill { actor: "ann".into(), name: NAME.into(), namespace: NAMESPACE.into() };
        store.call(route(&store), &stop).await.unwrap();
        let stopped = get(&store).await.backfill.unwrap();
        assert_eq!((stopped.fired, stopped.stopped, stopped.ended_at), (0, true, Some(store.now())));
    }

    async fn a_schedule_ends_after_its_last_time_or_its_last_firing(store) {
        store.install_default_lane().await;
        let start = store.now();
        put(&store, NewSchedule { remaining: Some(2), ..every(&store, MINUTE) }).await;
        store.advance(MINUTE);
        fire_and_submit(&store).await;
        assert_eq!(get(&store).await.remaining, Some(1));
        store.advance(MINUTE);
        fire_and_submit(&store).await;
        let schedule = get(&store).await;
        assert_eq!((schedule.remaining, schedule.over, schedule.next_at), (Some(0), true, None));
        store.advance(HOUR);
        assert!(fire_and_submit(&store).await.is_empty());
        put(&store, NewSchedule { ends_at: Some(store.now() + 90 * SECOND), ..every(&store, MINUTE) }).await;
        store.advance(HOUR);
        assert!(fire_and_submit(&store).await.is_empty());
        assert_eq!(asked(&store, "plan_schedule").await, 1, "its one time came too long ago");
        put(&store, NewSchedule { starts_at: Some(start + 3 * HOUR), ..every(&store, MINUTE) }).await;
        assert_eq!(get(&store).await.next_at, Some(start + 3 * HOUR));
        assert_eq!(get(&store).await.version, 3);
        assert_eq!(refusal(try_put(&store, every(&store, MINUTE), Some(2)).await), ErrorCode::ScheduleVersionConflict);
        assert_eq!(refusal(try_put(&store, every(&store, MINUTE), Some(0)).await), ErrorCode::ScheduleVersionConflict);
        assert!(try_put(&store, every(&store, MINUTE), Some(3)).await.is_ok());
    }

    async fn jitter_moves_a_time_by_the_same_amount_wherever_it_is_looked_at(store) {
        store.install_default_lane().await;
        let start = store.now();
        put(&store, NewSchedule { jitter_ms: Some(20 * SECOND), ..every(&store, MINUTE) }).await;
        let mut offsets = BTreeSet::new();
        for n in 1..=8 {
            let NextDueReply::Next { next_at, .. } = store.call(route(&store), &NextDue {}).await.unwrap();
            let due = next_at.unwrap();
            let offset = due - (start + n * MINUTE);
            assert!((0..=20 * SECOND).contains(&offset), "{offset}");
            offsets.insert(offset);
            store.go_to(due - 1);
            assert!(fire_and_submit(&store).await.is_empty());
            store.go_to(due);
            let nominal: Vec<i64> = fire_and_submit(&store).await.iter().map(|(at, _)| *at).collect();
            assert_eq!(nominal, [start + n * MINUTE]);
        }
        assert!(offsets.len() > 4, "{offsets:?}");
    }

    async fn a_deleted_schedule_submits_nothing_any_more(store) {
        store.install_default_lane().await;
        put(&store, every(&store, MINUTE)).await;
        store.advance(MINUTE);
        store.fire_due(route(&store)).await;
        let call = DeleteSchedule { actor: "ops".into(), name: NAME.into(), namespace: NAMESPACE.into() };
        store.call(route(&store), &call).await.unwrap();
        assert_eq!(refusal(store.call(route(&store), &call).await), ErrorCode::ScheduleNotFound);
        assert!(submit_owed(&store).await.is_empty());
        assert_eq!(settle(&store, 1, None).await, SettleFiringReply::Known);
        let end = EndFiring { name: NAME.into(), namespace: NAMESPACE.into(), number: 1, outcome: "success".into(), run_id: store.uuid(1) };
        assert_eq!(store.call(route(&store), &end).await.unwrap(), EndFiringReply::Noted);
        let ListSchedulesReply::Page { items, .. } = store.call(route(&store), &ListSchedules::new(64)).await.unwrap();
        assert!(items.is_empty());
    }
}
