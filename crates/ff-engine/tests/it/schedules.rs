//! Schedules end to end: the store's timers fire them, engines submit what is owed, and each time comes once.

use std::collections::{BTreeMap, BTreeSet};

use ff_api::schedules::ScheduleBody;
use ff_engine::operations::{ReadSchedule, Triggered};
use ff_engine::{Engine, Operations, schedules};
use ff_script::generated::{FireDue, Firing, FiringState, Overlap, Schedule};
use futures::stream::{self, StreamExt};
use uuid::Uuid;

use crate::kit::*;
use crate::on_both_hosts;

const NAMESPACE: &str = "default";

fn body(text: &str) -> ScheduleBody {
    serde_json::from_str(text).expect("a schedule")
}

async fn put(operations: &Operations, name: &str, text: &str) -> Schedule {
    let now = operations.time_of_schedule(NAMESPACE, name).await.unwrap();
    let definition = schedules::read(NAMESPACE, name, body(text), now).expect("a definition");
    operations.put_schedule(definition, None, "ops").await.unwrap().0
}

async fn read(operations: &Operations, name: &str) -> Schedule {
    let ReadSchedule { schedule, .. } = operations.schedule(NAMESPACE, name).await.unwrap();
    schedule
}

async fn fired(operations: &Operations, name: &str, at_least: i64) -> Schedule {
    eventually("the schedule fires", async || {
        let schedule = read(operations, name).await;
        (schedule.fired >= at_least).then_some(schedule)
    })
    .await
}

/// The executions of a kind by the nominal time they were submitted for.
async fn submitted(operations: &Operations, firings: &[Firing]) -> BTreeMap<i64, Uuid> {
    let mut all = BTreeMap::new();
    for firing in firings.iter().filter(|firing| firing.state == FiringState::Running) {
        let id = firing.run_id.unwrap();
        let execution = operations.describe(ff_core::types::ExecutionId::from_uuid(id)).await.unwrap();
        let told = execution.fired.unwrap();
        assert_eq!((told.nominal_at, told.number), (firing.nominal_at, firing.number));
        assert!(all.insert(firing.nominal_at, id).is_none(), "{} fired twice", firing.nominal_at);
    }
    all
}

on_both_hosts! {
    async fn two_servers_submit_each_time_of_a_schedule_once(kit) {
        let first = kit.engine().await;
        let second = kit.engine_on(kit.another_host().await).await;
        let operations = first.operations();
        let every = r#"{"times":[{"every_ms":1000}],"overlap":"allow","action":{"execution":{"kind":"tick","input":{"n":1}}}}"#;
        let schedule = put(operations, "tick", every).await;
        assert_eq!(schedule.next_at.unwrap() % 1_000, 0);
        fired(operations, "tick", 3).await;
        // One of them goes; the other one takes over what it owned.
        second.stop().await;
        let schedule = fired(operations, "tick", 6).await;
        assert_eq!((schedule.skipped, schedule.missed), (0, 0));
        let firings = operations.firings(NAMESPACE, "tick").await.unwrap();
        let all = submitted(operations, &firings).await;
        assert!(all.len() >= 6);
        let times: Vec<i64> = all.keys().copied().collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 1_000), "{times:?}");
        assert_eq!(all.values().collect::<BTreeSet<_>>().len(), all.len());
        operations.delete_schedule(NAMESPACE, "tick", "ops").await.unwrap();
        first.stop().await;
    }

    async fn a_calendar_is_supplied_and_fires(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let cron = r#"{"times":[{"cron":"* * * * * *"}],"time_zone":"Europe/Berlin","overlap":"allow","remaining":70,
            "action":{"execution":{"kind":"tick"}}}"#;
        let schedule = put(operations, "cron", cron).await;
        assert!(schedule.next_at.is_some(), "its times are there when it is answered");
        fired(operations, "cron", 2).await;
        let schedule = fired(operations, "cron", 4).await;
        assert_eq!((schedule.missed, schedule.remaining), (0, Some(70 - schedule.fired - schedule.unsubmitted)));
        operations.pause_schedule(NAMESPACE, "cron", Some("enough"), "ops").await.unwrap();
        let paused = read(operations, "cron").await;
        let again = operations.resume_schedule(NAMESPACE, "cron", "ops").await.unwrap();
        assert!(again.next_at.is_some() && again.cursor >= paused.cursor);
        fired(operations, "cron", paused.fired + 1).await;
        operations.delete_schedule(NAMESPACE, "cron", "ops").await.unwrap();
        engine.stop().await;
    }

    async fn what_runs_is_not_fired_over_and_its_end_is_told(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let skip = r#"{"times":[{"every_ms":1000}],"overlap":"queue_one","action":{"execution":{"kind":"slow"}}}"#;
        put(operations, "slow", skip).await;
        let waiting = eventually("one waits and others are skipped", async || {
            let schedule = read(operations, "slow").await;
            (schedule.waiting == 1 && schedule.skipped >= 1).then_some(schedule)
        })
        .await;
        assert_eq!((waiting.fired, waiting.running), (1, 1));
        let run = waiting.last.unwrap().run_id.unwrap();
        operations.cancel(ff_core::types::ExecutionId::from_uuid(run), "ops", None, None).await.unwrap();
        let next = fired(operations, "slow", 2).await;
        assert_ne!(next.last.unwrap().run_id.unwrap(), run);
        let firings = operations.firings(NAMESPACE, "slow").await.unwrap();
        let first = firings.iter().find(|firing| firing.run_id == Some(run)).unwrap();
        assert_eq!((first.state, first.outcome.as_deref()), (FiringState::Ended, Some("cancelled")));
        operations.delete_schedule(NAMESPACE, "slow", "ops").await.unwrap();
        engine.stop().await;
    }

    async fn a_flow_is_fired_whole_and_its_end_is_told(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let far = r#"{"times":[{"cron":"@yearly"}],"action":{"flow":{"kind":"night","members":[{"key":"a","kind":"k"},{"key":"b","kind":"k"}],
            "edges":[{"from":"a","to":"b"}]}}}"#;
        put(operations, "night", far).await;
        let request = Uuid::now_v7();
        let Triggered { run_id, duplicate, .. } = operations.trigger_schedule(NAMESPACE, "night", request, "ann").await.unwrap();
        assert!(!duplicate);
        let again = operations.trigger_schedule(NAMESPACE, "night", request, "ann").await.unwrap();
        assert_eq!((again.run_id, again.duplicate), (run_id, true));
        let id = ff_core::types::FlowId::from_uuid(run_id);
        let flow = operations.flow(id).await.unwrap();
        assert_eq!((flow.members, flow.fired.map(|fired| fired.schedule)), (2, Some("night".to_owned())));
        operations.cancel_flow(id, ff_script::generated::CancelPolicy::CancelAll, "ops", None, true).await.unwrap();
        eventually("its end is told", async || (read(operations, "night").await.running == 0).then_some(())).await;
        let firings = operations.firings(NAMESPACE, "night").await.unwrap();
        assert_eq!((firings.len(), firings[0].state, firings[0].outcome.as_deref()), (1, FiringState::Ended, Some("cancelled")));
        engine.stop().await;
    }

    async fn what_was_fired_while_no_server_ran_is_submitted_once_by_the_next(kit) {
        let engine = kit.engine().await;
        let every = r#"{"times":[{"every_ms":1000}],"overlap":"allow","catch_up_ms":3600000,"action":{"execution":{"kind":"tick"}}}"#;
        put(engine.operations(), "tick", every).await;
        fired(engine.operations(), "tick", 1).await;
        engine.stop().await;
        // A server fires and dies before it submits anything: the store owes it.
        let tool = kit.tool(kit.host()).await;
        let operations = tool.operations();
        let route = operations.client().route_of_schedule(NAMESPACE, "tick");
        let owed = eventually("something is due", async || {
            operations.client().call(route, &FireDue { limit: 16, draw: 0 }).await.unwrap();
            let schedule = read(operations, "tick").await;
            (schedule.unsubmitted >= 2).then_some(schedule)
        })
        .await;
        // Another one submits the first of it and dies before it says so.
        let firings = operations.firings(NAMESPACE, "tick").await.unwrap();
        let due = firings.iter().rfind(|firing| firing.state == FiringState::Due).unwrap();
        let mut new = work("tick");
        new.fields.execution_id = ff_core::types::ExecutionId::from_uuid(due.run_id.unwrap());
        submit(operations, new).await;
        let next = kit.engine().await;
        let schedule = fired(next.operations(), "tick", owed.fired + owed.unsubmitted + 1).await;
        assert_eq!(schedule.missed, 0);
        let firings = next.operations().firings(NAMESPACE, "tick").await.unwrap();
        let ids: Vec<Uuid> = firings.iter().filter_map(|firing| firing.run_id).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        let times: Vec<i64> = firings.iter().rev().map(|firing| firing.nominal_at).collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 1_000), "{times:?}");
        next.operations().delete_schedule(NAMESPACE, "tick", "ops").await.unwrap();
        next.stop().await;
    }

    async fn a_backfill_of_a_thousand_runs_to_its_end_or_until_it_is_stopped(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let minutely = r#"{"times":[{"cron":"* * * * *"}],"overlap":"allow","action":{"execution":{"kind":"old"}}}"#;
        put(operations, "minutely", minutely).await;
        let now = operations.time_of_schedule(NAMESPACE, "minutely").await.unwrap();
        let to = now - now.rem_euclid(60_000);
        let from = to - 999 * 60_000;
        let started = operations.backfill_schedule(NAMESPACE, "minutely", (from, to), None, "ann").await.unwrap();
        assert_eq!(started.backfill.unwrap().total, 1_000);
        let done = eventually("the backfill is done", async || {
            let backfill = read(operations, "minutely").await.backfill.unwrap();
            backfill.ended_at.is_some().then_some(backfill)
        })
        .await;
        assert_eq!((done.fired, done.skipped, done.stopped), (1_000, 0, false));
        eventually("all are submitted", async || {
            let schedule = read(operations, "minutely").await;
            (schedule.unsubmitted == 0 && schedule.running >= 1_000).then_some(())
        })
        .await;
        // The same times again: what is there is found, and runs once.
        let (again, stop) = (operations.backfill_schedule(NAMESPACE, "minutely", (from, to), Some(Overlap::QueueAll), "ann").await.unwrap(), "ann");
        assert_eq!(again.backfill.unwrap().total, 1_000);
        let stopped = operations.stop_backfill(NAMESPACE, "minutely", stop).await.unwrap().backfill.unwrap();
        assert!(stopped.stopped && stopped.fired == 0);
        operations.delete_schedule(NAMESPACE, "minutely", "ops").await.unwrap();
        engine.stop().await;
    }
}

async fn due_at_once(engine: &Engine, schedules: usize) {
    let operations = engine.operations();
    let mut patience = 10_000;
    // All of them have to be there before their time comes: if they are not, it is put off.
    let at = loop {
        let at = operations.time_of_schedule(NAMESPACE, "s0").await.unwrap() + patience;
        let all = stream::iter(0..schedules).map(|n| async move {
            let times = format!(r#"{{"times":[{{"every_ms":315360000000,"anchor_at":{at}}}],"action":{{"execution":{{"kind":"one"}}}}}}"#);
            put(operations, &format!("s{n}"), &times).await
        });
        all.buffer_unordered(32).collect::<Vec<_>>().await;
        if operations.time_of_schedule(NAMESPACE, "s0").await.unwrap() < at {
            break at;
        }
        patience *= 2;
    };
    let last = eventually("all of them fired", async || {
        let mut last = 0;
        for n in (0..schedules).rev() {
            let schedule = read(operations, &format!("s{n}")).await;
            let fired = schedule.last.filter(|firing| firing.nominal_at == at)?;
            last = last.max(fired.fired_at);
        }
        Some(last)
    })
    .await;
    eprintln!("{schedules} schedules of one second fired within {} ms", last - at);
}

on_both_hosts! {
    async fn a_thousand_schedules_of_one_second_all_fire(kit) {
        let engine = kit.engine().await;
        due_at_once(&engine, 1_000).await;
        engine.stop().await;
    }
}
