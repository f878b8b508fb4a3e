//! A check of the whole store finds planted damage, repairs what has one right answer, and says so each time.

use ff_engine::{Fsck, fence_of};
use ff_script::generated::Backoff;
use ff_script::generated::{BackoffType, RegisterWorker, Retry};

use crate::kit::*;
use ff_testkit::Tasks;

/// A store with work in every state.
async fn lived_in(operations: &ff_engine::Operations) {
    let register =
        RegisterWorker::new(vec!["cpu".into()], "w".into(), vec![LANE.into()], "default".into(), 9, "test".into());
    operations.register_worker(register).await.unwrap();
    for n in 0..60 {
        let mut new = work("lived");
        new.fields.priority = Some(n % 3);
        new.fields.tags = Some([("n".to_owned(), (n % 2).to_string())].into());
        new.fields.input = Some(vec![7; if n % 4 == 0 { 5_000 } else { 10 }].into());
        if n % 5 == 0 {
            new.fields.delay_ms = Some(3_600_000);
        }
        if n % 7 == 0 {
            new.fields.requires = Some(vec!["cpu".into()]);
        }
        if n % 11 == 0 {
            new.fields.idempotency_key = Some(format!("key {n}"));
        }
        new.fields.retry = Some(Retry {
            backoff: Some(Backoff { delay_ms: Some(3_600_000), ..Backoff::new(BackoffType::Fixed) }),
            ..Retry::default()
        });
        submit(operations, new).await;
    }
    let tasks = claim(operations, &worker("w", 60_000), 20).await;
    for (n, task) in tasks.iter().enumerate() {
        match n % 4 {
            0 => complete(operations, task, &[1; 6_000]).await,
            1 => {
                operations.client().fail(task.execution_id, fence_of(task), "no", "transient").await.unwrap();
            }
            2 => {
                operations.yield_back(task.execution_id, fence_of(task)).await.unwrap();
            }
            _ => {}
        }
    }
}

#[test]
fn planted_damage_is_found_and_repaired_once() {
    run(Kind::Valkey, |kit| async move {
        let engine = kit.engine().await;
        let operations = engine.operations().clone();
        lived_in(&operations).await;
        let client = operations.client();
        assert_eq!(shown(&Fsck::run(client, false).await.unwrap()), Vec::<String>::new());

        let eligible = submit(&operations, work_in(1, "eligible")).await;
        let mut new = work_in(1, "delayed");
        new.fields.delay_ms = Some(3_600_000);
        let delayed = submit(&operations, new).await;
        let mut new = work_in(2, "active");
        new.fields.lane = "held".into();
        let active = submit(&operations, new).await;
        let held = ff_engine::Claimant { lane: "held".into(), ..worker("holder", 60_000) };
        let lease = claim_one(&operations, &held, active).await.lease_id;
        engine.stop().await;

        let queue = "ff:idx:{p:1}:lane:default/default:queue:any:eligible";
        let ghost = "01a1e15e-143b-77fc-93a6-1203f30a0001";
        let wrong = |id: &dyn std::fmt::Display| id.to_string();
        let planted: Vec<(&str, Vec<String>)> = vec![
            ("10", vec!["ZREM".into(), queue.into(), wrong(&eligible)]),
            (
                "10",
                vec!["ZADD".into(), "ff:idx:{p:1}:lane:default/default:terminal".into(), "5".into(), wrong(&delayed)],
            ),
            ("10", vec!["ZADD".into(), "ff:idx:{p:2}:lane:held/x:delayed".into(), "5".into(), wrong(&active)]),
            ("11", vec!["ZREM".into(), "ff:idx:{p:1}:timers".into(), wrong(&delayed)]),
            ("11", vec!["ZADD".into(), "ff:idx:{p:1}:timers".into(), "99999999999999".into(), ghost.into()]),
            ("11", vec!["ZADD".into(), "ff:idx:{p:1}:timers".into(), "99999999999999".into(), wrong(&eligible)]),
            ("7", vec!["HDEL".into(), "ff:idx:{p:2}:workers:holder".into(), wrong(&lease)]),
            ("7", vec!["HSET".into(), "ff:idx:{p:1}:workers:nobody".into(), ghost.into(), wrong(&eligible)]),
            ("37", vec!["ZADD".into(), "ff:idx:{p:1}:kind:0123456789abcdef0123".into(), "5".into(), ghost.into()]),
            ("10", vec!["ZADD".into(), "ff:idx:{p:3}:all".into(), "5".into(), ghost.into()]),
            ("10", vec!["ZREM".into(), "ff:idx:{p:1}:all".into(), wrong(&delayed)]),
            ("37", vec!["SET".into(), format!("ff:exec:{{p:1}}:{ghost}:input"), "left behind".into()]),
            (
                "37",
                vec!["HSET".into(), "ff:idem:{p:1}:0123456789abcdef0123".into(), "execution_id".into(), ghost.into()],
            ),
            (
                "37",
                vec!["HSET".into(), "ff:idx:{p:1}:lane:default/default:queues".into(), "gone".into(), String::new()],
            ),
        ];
        let server = kit.server().expect("it runs on valkey");
        // Some damage hides other damage of the same record, so each is planted, found and repaired on its own.
        for (invariant, command) in &planted {
            let mut raw = redis::cmd(&command[0]);
            raw.arg(&command[1..]);
            let changed: redis::Value = raw.query(&mut server.connection().unwrap()).unwrap();
            assert_ne!(changed, redis::Value::Nil, "{command:?}");
            let found = Fsck::run(client, false).await.unwrap();
            assert!(!found.is_clean(), "{command:?} was not found");
            assert!(
                found.findings.iter().any(|finding| finding.invariant.to_string() == *invariant && !finding.repaired),
                "{command:?} should break {invariant}: {:?}",
                shown(&found)
            );
            let repaired = Fsck::run(client, true).await.unwrap();
            assert!(!repaired.findings.is_empty(), "{command:?}");
            assert!(repaired.findings.iter().all(|finding| finding.repaired), "{command:?}: {:?}", shown(&repaired));
            let again = Fsck::run(client, false).await.unwrap();
            assert_eq!(shown(&again), Vec::<String>::new(), "after the repair of {command:?}");
        }

        // What nobody can put right is listed again each time, and never called repaired.
        let payload = submit(&operations, {
            let mut new = work_in(1, "far");
            new.fields.input = Some(vec![1; 5_000].into());
            new
        })
        .await;
        let key = format!("ff:exec:{{p:1}}:{payload}:input");
        server.command::<i64>(&["DEL", &key]).unwrap();
        server.command::<String>(&["SET", "ff:strange:{p:1}:x", "?"]).unwrap();
        server.command::<String>(&["SET", "ff:exec:{p:999}:x:core", "?"]).unwrap();
        for repair in [true, false] {
            let found = Fsck::run(client, repair).await.unwrap();
            let mut lines = shown(&found);
            lines.sort();
            assert_eq!(
                lines,
                [
                    format!("13 {key}: input is missing"),
                    "37 ff:strange:{p:1}:x: nobody owns this key".to_owned(),
                    "foreign ff:exec:{p:999}:x:core".to_owned()
                ]
            );
            assert!(found.findings.iter().all(|finding| !finding.repaired));
        }
        operations.cancel(payload, "ann", None, None).await.unwrap();
        operations.delete(payload, "ann").await.unwrap();
        server.command::<i64>(&["DEL", "ff:strange:{p:1}:x", "ff:exec:{p:999}:x:core"]).ok();
        for key in ["ff:strange:{p:1}:x", "ff:exec:{p:999}:x:core"] {
            let _ = server.command::<i64>(&["DEL", key]);
        }
    });
}

/// A record that cannot be read is reported with key and field, and does not keep the others from being checked.
#[test]
fn an_unreadable_record_is_reported_and_holds_up_nothing() {
    run(Kind::Valkey, |kit| async move {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let broken = submit(operations, work_in(1, "broken")).await;
        for _ in 0..10 {
            submit(operations, work_in(1, "fine")).await;
        }
        let key = format!("ff:exec:{{p:1}}:{broken}");
        let server = kit.server().expect("it runs on valkey");
        let mut connection = server.connection().unwrap();
        let right: Vec<u8> = redis::cmd("GET").arg(&key).query(&mut connection).unwrap();
        redis::cmd("SET").arg(&key).arg(&right[1..]).exec(&mut connection).unwrap();
        let error = operations.describe(broken).await.unwrap_err().to_string();
        assert_eq!(error, format!("corrupt record: field array of {key}"));
        let found = Fsck::run(operations.client(), true).await.unwrap();
        assert_eq!(found.executions, 11);
        assert!(found.findings.iter().any(|finding| finding.problem.contains("array")), "{:?}", shown(&found));
        assert!(found.findings.iter().all(|finding| !finding.repaired));
        let taken = claim(operations, &worker("w", 30_000), 64).await;
        assert_eq!(taken.len(), 10, "the others are claimed");
        redis::cmd("SET").arg(&key).arg(right).exec(&mut connection).unwrap();
        engine.stop().await;
    });
}

#[test]
fn a_store_in_use_is_clean_on_either_host() {
    for kind in [Kind::Embedded, Kind::Valkey] {
        run(kind, |kit| async move {
            let engine = kit.engine().await;
            lived_in(engine.operations()).await;
            let working = tokio::spawn({
                let operations = engine.operations().clone();
                async move {
                    for _ in 0..200 {
                        submit(&operations, work("meanwhile")).await;
                        for task in claim(&operations, &worker("w", 1_000), 1).await {
                            complete(&operations, &task, b"").await;
                        }
                    }
                }
            });
            let mut rounds = 0;
            while !working.is_finished() && rounds < 50 {
                let report = Fsck::run(engine.operations().client(), false).await.unwrap();
                assert_eq!(shown(&report), Vec::<String>::new());
                rounds += 1;
            }
            working.await.unwrap();
            assert!(rounds > 0);
            engine.stop().await;
        });
    }
}
