//! fsck: a sound store has no findings; each kind of damage is found under the number of its invariant, and repair
//! undoes it.
//!
//! Only a server allows a test to damage its store. The check itself is the same code on every host.

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, HOME, LANE, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_script::generated::*;

const TAG: &str = "{p:0}";

/// The damage, the number it is found under, and what undoes it if fsck only reports it.
type Damage<'a> = (&'a str, Vec<&'a str>, i64, Option<Vec<&'a str>>);

fn queue() -> String {
    format!("ff:idx:{TAG}:lane:{NAMESPACE}/{LANE}:queue:any:mail")
}

async fn repair(store: &Store) -> Vec<i64> {
    let CheckExecutionsReply::Checked { findings, .. } =
        store.ask(&CheckExecutions { offset: 0, limit: 64, repair: true }).await.unwrap();
    let mut numbers: Vec<i64> =
        findings.iter().filter(|finding| finding.repaired).map(|finding| finding.invariant).collect();
    let keys =
        store.dump().await.into_keys().filter(|key| key.contains(TAG)).map(|key| key.into_bytes().into()).collect();
    let CheckKeysReply::Checked { findings, .. } = store.ask(&CheckKeys { keys, repair: true }).await.unwrap();
    numbers.extend(findings.iter().filter(|finding| finding.repaired).map(|finding| finding.invariant));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

for_each_host! {
    async fn a_damaged_index_is_found_and_repaired(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let (active, lease) = (task.execution_id.to_string(), task.lease_id.to_string());
        let waiting = store.submit(Submission { deadline_ms: Some(60_000), tags: Some([("a".to_owned(), "b".to_owned())].into()), ..store.submission("mail") }).await.to_string();
        let ended = store.submit_kind("mail").await;
        store.ask(&CancelExecution::new("ann".into(), ended)).await.unwrap();
        store.assert_sound().await;
        let sound = store.dump_without_streams().await;
        let (timers, all) = (format!("ff:idx:{TAG}:timers"), format!("ff:idx:{TAG}:all"));
        let (leases, terminal) = (format!("ff:idx:{TAG}:workers:w1"), format!("ff:idx:{TAG}:lane:{NAMESPACE}/{LANE}:terminal"));
        let ghost = "00000000-0000-7000-8000-00000000ff00";
        let payload = format!("ff:exec:{TAG}:{ghost}:input");
        let tag_key = sound.keys().find(|key| key.contains(":tag:")).unwrap().clone();
        let queue = queue();
        let damages: Vec<(&str, Vec<&str>, i64)> = vec![
            ("a lost queue entry", vec!["ZREM", &queue, &waiting], 10),
            ("a wrong score", vec!["ZADD", &queue, "1", &waiting], 10),
            ("a second entry", vec!["ZADD", &terminal, "1", &waiting], 10),
            ("an active one among the waiting", vec!["ZADD", &queue, "5", &active], 10),
            ("a lost timer", vec!["ZREM", &timers, &waiting], 11),
            ("a late timer", vec!["ZADD", &timers, "9000000000000", &active], 11),
            ("a timer for nothing", vec!["ZADD", &timers, "1", ghost], 11),
            ("a lost lease entry", vec!["HDEL", &leases, &lease], 7),
            ("a lease entry for nothing", vec!["HSET", &leases, ghost, &waiting], 7),
            ("a lost list entry", vec!["ZREM", &tag_key, &waiting], 10),
            ("a list entry for nothing", vec!["ZADD", &all, "1", ghost], 10),
            ("a payload without an execution", vec!["SET", &payload, "x"], 37),
        ];
        for (what, command, number) in damages {
            server.command::<redis::Value>(&command).unwrap();
            let found: Vec<i64> = store.fsck().await.iter().map(|finding| finding.invariant).collect();
            assert!(found.contains(&number), "{what}: found {found:?}");
            assert!(repair(&store).await.contains(&number), "{what} is reported as repaired");
            store.assert_sound().await;
            let mut now = store.dump_without_streams().await;
            let mut then = sound.clone();
            // A repaired record has a new time of its last change. Nothing else may differ.
            for dump in [&mut now, &mut then] {
                for (key, value) in dump.iter_mut() {
                    let is_execution = key.strip_prefix(&format!("ff:exec:{TAG}:")).is_some_and(|id| id.len() == 36);
                    if let (true, ff_script::dump::DumpValue::String(record)) = (is_execution, value) {
                        *record = ff_conformance::stored::replaced(ExecutionRecord::FIELDS, record, "updated", 0.into()).0;
                    }
                }
            }
            assert_eq!(now, then, "{what} is undone");
        }
    }

    async fn damage_to_waits_and_streams_is_found(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        let (suspended, door) = store.start_suspended().await;
        let active = store.start("mail", "w1").await;
        let (early, closed) = (store.waitpoint("early"), store.waitpoint("closed"));
        for waitpoint in [&early, &closed] {
            store.open_early(&active, waitpoint).await;
            store.signal(active.execution_id, waitpoint, "go").await.unwrap();
        }
        store.ask(&CloseWaitpoint { execution_id: active.execution_id, fence: active.fence(), waitpoint_id: closed.waitpoint_id }).await.unwrap();
        let frame = |mode| NewFrame { payload: Some("x".into()), ..NewFrame::new("token".into(), mode) };
        store.ask(&AppendFrames::new(active.execution_id, active.fence(), vec![frame(FrameMode::Durable), frame(FrameMode::Live)])).await.unwrap();
        store.assert_sound().await;
        let (id, id2) = (active.execution_id, suspended.execution_id);
        let key = |family: &str, rest: String| format!("ff:{family}:{TAG}:{rest}");
        let (inbox, wp) = (key("idx", "waitpoints".into()), |w: &NewWaitpoint| key("wp", w.waitpoint_id.to_string()));
        let ghost = store.waitpoint("ghost");
        let (ghost_key, door_key, door_id) = (wp(&ghost), wp(&door), door.waitpoint_id.to_string());
        let (ghost_id, closed_id) = (ghost.waitpoint_id.to_string(), closed.waitpoint_id.to_string());
        let (stream, live, old) = (key("stream", format!("{id}:0")), key("stream", format!("{id}:0:live")), key("stream", format!("{id}:7")));
        let (signals, left, left_signals) = (key("exec", format!("{id}:signals")), key("exec", format!("{id}:continuation")), key("exec", format!("{id2}:signals")));
        let of_nobody = key("stream", format!("{ghost_id}:0:summary"));
        let waits = key("exec", format!("{id2}:waits"));
        let damages: Vec<Damage<'_>> = vec![
            ("a waitpoint without an execution", vec!["COPY", &door_key, &ghost_key], 37, Some(vec!["DEL", &ghost_key])),
            ("a lost entry of the inbox", vec!["ZREM", &inbox, &door_id], 10, None),
            ("a wrong place in the inbox", vec!["ZADD", &inbox, "7", &door_id], 10, None),
            ("an entry of the inbox for nothing", vec!["ZADD", &inbox, "7", &ghost_id], 29, None),
            ("an entry of the inbox for a closed one", vec!["ZADD", &inbox, "7", &closed_id], 29, None),
            ("a frame too many", vec!["XADD", &live, "9000000000000-0", "f", "x"], 36, Some(vec!["XDEL", &live, "9000000000000-0"])),
            ("a signal too many", vec!["XADD", &signals, "9000000000000-9", "s", "x"], 36, Some(vec!["XDEL", &signals, "9000000000000-9"])),
            ("a stream of no attempt", vec!["XADD", &old, "1-0", "f", "x"], 37, None),
            ("a summary without an execution", vec!["SET", &of_nobody, "x"], 37, None),
            ("a continuation of no wait", vec!["SET", &left, "x"], 37, None),
            ("signals of an execution that had none", vec!["XADD", &left_signals, "1-1", "s", "x"], 37, None),
        ];
        for (what, command, number, undo) in damages {
            server.command::<redis::Value>(&command).unwrap();
            let found: Vec<i64> = store.fsck().await.iter().map(|finding| finding.invariant).collect();
            assert!(found.contains(&number), "{what}: found {found:?}");
            match undo {
                None => assert!(repair(&store).await.contains(&number), "{what} is reported as repaired"),
                Some(undo) => {
                    server.command::<redis::Value>(&undo).unwrap();
                }
            }
            store.assert_sound().await;
        }
        // A suspended execution that waits for nothing.
        let mut connection = server.connection().unwrap();
        // And a waitpoint that is open for another suspension.
        for (key, fields, field, value) in [
            (&waits, WaitsRecord::FIELDS, "wait", rmpv::Value::from(false)), (&door_key, WaitpointRecord::FIELDS, "state", "pending".into()),
        ] {
            let right: Vec<u8> = redis::cmd("GET").arg(key).query(&mut connection).unwrap();
            let (damaged, _) = ff_conformance::stored::replaced(fields, &right, field, value);
            redis::cmd("SET").arg(key).arg(damaged).exec(&mut connection).unwrap();
            let found = store.fsck().await;
            assert!(found.iter().any(|finding| finding.invariant == 29), "{field}: {found:?}");
            redis::cmd("SET").arg(key).arg(right).exec(&mut connection).unwrap();
            store.assert_sound().await;
        }
        // fsck does not invent a missing frame.
        server.command::<redis::Value>(&["XTRIM", &stream, "MAXLEN", "0"]).unwrap();
        assert_eq!(store.fsck().await.iter().map(|finding| finding.invariant).collect::<Vec<_>>(), [36]);
        store.complete(&active).await;
    }

    async fn a_record_that_cannot_be_read_is_said_to_be_corrupt(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let (id, key) = (task.execution_id, format!("ff:exec:{TAG}:{}", task.execution_id));
        let mut connection = server.connection().unwrap();
        let right: Vec<u8> = redis::cmd("GET").arg(&key).query(&mut connection).unwrap();
        let (no_phase, _) = ff_conformance::stored::replaced(ExecutionRecord::FIELDS, &right, "phase", false.into());
        let trailing = [&right[..], &[0xc0]].concat();
        for (damaged, field) in [(right[..right.len() - 1].to_vec(), "array"), (trailing, "array"), (b"\x01".to_vec(), "array"), (no_phase, "phase")] {
            redis::cmd("SET").arg(&key).arg(damaged).exec(&mut connection).unwrap();
            let error = store.find(id).await.unwrap_err().to_string();
            assert!(error.contains(field) && error.contains(&key), "{error}");
        }
        assert_eq!(refusal(store.find(id).await), ErrorCode::CorruptRecord);
        assert_eq!(refusal(store.ask(&CancelExecution::new("ann".into(), id)).await), ErrorCode::CorruptRecord);
        assert!(!store.fsck().await.is_empty(), "fsck reports it");
        // It does not block its neighbours.
        let other = store.submit_kind("mail").await;
        assert_eq!(store.claim_one("w2").await.execution_id, other);
        redis::cmd("SET").arg(&key).arg(right).exec(&mut connection).unwrap();
        store.call(HOME, &CancelExecution::new("ann".into(), id)).await.unwrap();
    }

    async fn a_long_store_is_checked_page_by_page(store) {
        store.install_default_lane().await;
        for _ in 0..7 {
            store.submit_kind("mail").await;
        }
        let (mut offset, mut pages) = (0, 0);
        loop {
            let CheckExecutionsReply::Checked { findings, looked, more, .. } = store.ask(&CheckExecutions { offset, limit: 3, repair: false }).await.unwrap();
            assert!(findings.is_empty());
            (offset, pages) = (offset + looked, pages + 1);
            if !more {
                break;
            }
        }
        assert_eq!((offset, pages), (7, 3));
    }

    async fn keys_of_other_partitions_are_counted_and_left_alone(store) {
        let keys = vec!["ff:idx:{p:1}:all".into(), "ff:idx:{p:1}:timers".into()];
        let reply = store.ask(&CheckKeys { keys, repair: true }).await;
        assert_eq!(reply, Ok(CheckKeysReply::Checked { findings: vec![], foreign: 2 }));
    }
}
