//! The content and the cost of the store: nothing is left behind, and common operations stay within their calls.

use ff_conformance::for_each_host;
use ff_conformance::work::{Fenced, HOME, LANE, NAMESPACE};
use ff_script::dump::{Dump, DumpValue};
use ff_script::generated::*;

/// Drops a partition's hints about a lane's queues. They save reads and belong to no execution.
pub fn forget_hints(dump: &mut Dump) {
    dump.retain(|key, _| !(key.ends_with(":told") || key.starts_with("ff:lane:") && key.ends_with(":memory")));
}

/// A waitpoint that expires at once.
fn over_again(store: &ff_conformance::Store) -> NewWaitpoint {
    NewWaitpoint { expires_in_ms: Some(0), ..store.waitpoint("over again") }
}

for_each_host! {
    async fn retention_leaves_nothing_behind(store) {
        store.install_default_lane().await;
        let before = store.dump_without_streams().await;
        let short = |s: Submission| Submission { retention_ms: Some(1_000), ..s };
        // A plain execution, one with every kind of key, one that was never claimed, and one that no worker could run.
        store.submit(short(store.submission("plain"))).await;
        let rich = Submission {
            input: Some(vec![1; 5_000].into()), tags: Some([("a".to_owned(), "b".to_owned()), ("c".to_owned(), "d".to_owned())].into()), requires: Some(vec!["gpu".into()]),
            idempotency_key: Some("k".into()), idempotency_ttl_ms: Some(10), prefers: Some(vec!["eu".into()]), fairness_key: Some("t".into()),
            retry: Some(Retry { max_attempts: Some(12), jitter: Some(Jitter::None), backoff: Some(Backoff { delay_ms: Some(0), ..Backoff::new(BackoffType::Fixed) }), ..Retry::default() }),
            ..store.submission("rich")
        };
        let rich = store.submit(short(rich)).await;
        store.submit(Submission { deadline_ms: Some(500), ..short(store.submission("late")) }).await;
        store.submit(Submission { deadline_ms: Some(3_000), requires: Some(vec!["tpu".into()]), ..short(store.submission("tpu")) }).await;
        for _ in 0..2 {
            store.ask(&ReviewRoutes::new(LANE.into(), 64, NAMESPACE.into(), vec![WorkerClass::new(vec!["gpu".into()])])).await.unwrap();
            store.advance(1_000);
            store.fire_all().await;
        }
        let plain = store.claim_one("w1").await;
        store.complete(&plain).await;
        for _ in 0..10 {
            let task = store.claim_as("w2", &["gpu"], 1).await.remove(0);
            assert_eq!(task.execution_id, rich);
            store.fail(&task, "net").await;
        }
        let task = store.claim_as("w2", &["gpu"], 1).await.remove(0);
        store.ask(&AwaitResult { execution_id: rich }).await.unwrap();
        let call = CompleteExecution { result: Some(vec![2; 5_000].into()), ..CompleteExecution::new(rich, task.fence()) };
        store.ask(&call).await.unwrap();
        for _ in 0..6 {
            store.advance(1_000);
            store.fire_all().await;
            store.ask(&ReviewRoutes::new(LANE.into(), 64, NAMESPACE.into(), vec![])).await.unwrap();
        }
        let mut after = store.dump_without_streams().await;
        forget_hints(&mut after);
        assert_eq!(after, before);
        let PartitionStatsReply::Stats { executions, timers, lanes, .. } = store.ask(&PartitionStats::default()).await.unwrap();
        assert_eq!((executions, timers, lanes[0].terminal, lanes[0].queues.len()), (0, 0, 0, 0));
    }

    async fn nothing_of_waits_and_streams_outlives_retention(store) {
        store.install_default_lane().await;
        let before = store.dump_without_streams().await;
        let frames = || vec![NewFrame { payload: Some("x".into()), ..NewFrame::new("token".into(), FrameMode::Durable) }, NewFrame::new("token".into(), FrameMode::Live)];
        // One ends while it runs, after every kind of wait; one while it waits; one before it is claimed again.
        for end in ["active", "suspended", "escalated", "resumable"] {
            let task = store.start_with(Submission { retention_ms: Some(1_000), max_reclaims: Some(9), ..store.submission("mail") }, "w1").await;
            let id = task.execution_id;
            store.ask(&FollowStream { execution_id: id }).await.unwrap();
            let summary = Some(NewSummary { document: "{}".into(), version: 0 });
            store.ask(&AppendFrames { summary: summary.clone(), ..AppendFrames::new(id, task.fence(), frames()) }).await.unwrap();
            let task = store.lose_and_reclaim(&task, "w1").await;
            store.ask(&AppendFrames { summary, ..AppendFrames::new(id, task.fence(), frames()) }).await.unwrap();
            // Early signals: one that satisfies, one at an expired waitpoint, one that is given up.
            let [enough, over, lost] = ["enough", "over", "lost"].map(|key| NewWaitpoint { expires_in_ms: (key == "over").then_some(10), ..store.waitpoint(key) });
            for waitpoint in [&enough, &over, &lost] {
                store.open_early(&task, waitpoint).await;
                store.ask(&DeliverSignal { idempotency_key: Some("k".into()), ..store.signal_call(id, waitpoint, "go") }).await.unwrap();
            }
            store.advance(10);
            store.fire_all().await;
            let call = SuspendExecution { adopt: Some(vec![enough.waitpoint_id]), ..store.suspend_call(&task, &[]) };
            assert!(matches!(store.ask(&call).await, Ok(SuspendExecutionReply::AlreadySatisfied { .. })));
            store.open_early(&task, &over_again(&store)).await;
            let door = store.waitpoint("door");
            let wait = |task: &Task, door: &NewWaitpoint| SuspendExecution {
                continuation: Some("here".into()), timeout_ms: Some(100), timeout_behavior: TimeoutBehavior::Escalate, review_waitpoint_id: Some(store.waitpoint_id()), ..store.suspend_call(task, &[door])
            };
            store.suspend_with(&wait(&task, &door)).await;
            store.wake(id, &door, "go").await;
            if end != "resumable" {
                let task = store.claim_one("w1").await;
                let last = store.waitpoint("last");
                if end == "active" {
                    store.open_early(&task, &last).await;
                    store.signal(id, &last, "go").await.unwrap();
                } else {
                    store.suspend_with(&wait(&task, &last)).await;
                }
                if end == "escalated" {
                    store.advance(100);
                    store.fire_all().await;
                }
            }
            store.ask(&CancelExecution::new("op".into(), id)).await.unwrap();
            store.assert_sound().await;
            store.advance(1_000);
            store.fire_all().await;
        }
        let dump = store.dump().await;
        let streams: Vec<_> = dump.iter().filter(|(key, value)| matches!(value, DumpValue::Stream(_)) && !key.starts_with("ff:events:")).map(|(key, _)| key).collect();
        assert_eq!(streams, [""; 0], "streams are keys too");
        let mut after = store.dump_without_streams().await;
        forget_hints(&mut after);
        assert_eq!(after, before);
    }

    async fn a_fair_lane_forgets_its_keys_when_nothing_waits(store) {
        store.install_lane(NAMESPACE, LANE, LaneDefinition { fairness: Fairness::Fair, ..ff_conformance::work::plain_lane() }).await;
        let before = store.dump_without_streams().await;
        for key in ["a", "b"] {
            store.submit(Submission { fairness_key: Some(key.into()), retention_ms: Some(1), ..store.submission("mail") }).await;
        }
        for task in store.claim("w1", 5).await {
            store.complete(&task).await;
        }
        store.advance(1);
        store.fire_all().await;
        let mut after = store.dump_without_streams().await;
        forget_hints(&mut after);
        assert_eq!(after, before);
    }

    async fn a_full_store_drains(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        let tasks = [store.start("mail", "w1").await, store.start("mail", "w1").await];
        store.submit_kind("mail").await;
        let is_full = |error: ff_script::Error| matches!(error, ff_script::Error::Host(ff_script::HostError::Full { .. }));
        server.command::<String>(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
        // Operations that add data fail.
        let one_more = SubmitExecution { submission: store.submission("mail") };
        assert!(is_full(store.ask(&one_more).await.unwrap_err()));
        let frame = NewFrame::new("token".into(), FrameMode::Durable);
        assert!(is_full(store.ask(&AppendFrames::new(tasks[0].execution_id, tasks[0].fence(), vec![frame])).await.unwrap_err()));
        let large = CompleteExecution { result: Some(vec![7; 100_000].into()), ..CompleteExecution::new(tasks[0].execution_id, tasks[0].fence()) };
        assert!(is_full(store.ask(&large).await.unwrap_err()));
        // Waiting work can be claimed, waits, is resumed and ends.
        store.complete(&tasks[1]).await;
        let third = store.claim_one("w2").await;
        let door = store.waitpoint("door");
        store.suspend(&third, &[&door]).await;
        store.wake(third.execution_id, &door, "go").await;
        store.complete(&store.claim_one("w2").await).await;
        server.command::<String>(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        store.ask(&large).await.unwrap();
        store.ask(&one_more).await.unwrap();
    }

    async fn few_functions_are_registered(store) {
        // Valkey 8.0 frees more than 64 in another thread while the interpreter is in use, and sometimes crashes.
        let Some(server) = store.server() else { return };
        let list: Vec<redis::Value> = server.command(&["FUNCTION", "LIST"]).unwrap();
        let names = format!("{list:?}").matches("ff_").count();
        assert_eq!(names, 4, "{list:?}");
    }

    async fn the_common_path_stays_within_its_store_calls(store) {
        store.install_default_lane().await;
        let submission = || SubmitExecution { submission: Submission { input: Some(vec![7; 4_096].into()), ..store.submission("mail") } };
        for _ in 0..3 {
            store.ask(&submission()).await.unwrap();
        }
        // The first claim announces its end and marks the queue quiet. The claims after it are the common case.
        store.claim("w1", 1).await;
        let submitted = store.counted(HOME, &submission()).await.unwrap().calls;
        let claimed = store.counted(HOME, &store.claim_call("w1", 1)).await.unwrap();
        let ClaimExecutionsReply::Claimed { tasks, .. } = claimed.reply else { panic!("not claimed") };
        let task = &tasks[0];
        store.advance(1_000);
        let renewed = store.counted(HOME, &RenewLease::new(task.execution_id, task.fence())).await.unwrap().calls;
        let call = CompleteExecution { result: Some(vec![7; 4_096].into()), ..CompleteExecution::new(task.execution_id, task.fence()) };
        let completed = store.counted(HOME, &call).await.unwrap().calls;
        assert!(submitted <= 9 && claimed.calls <= 11 && renewed <= 4 && completed <= 8,
            "submit {submitted} of 9, claim {} of 11, renew {renewed} of 4, complete {completed} of 8", claimed.calls);
    }

    async fn waiting_and_streaming_stay_within_their_store_calls(store) {
        store.install_default_lane().await;
        // Other executions keep the partition's timers and the lane's queue busy.
        for _ in 0..2 {
            store.start("mail", "w2").await;
        }
        for _ in 0..2 {
            store.submit_kind("mail").await;
        }
        let task = store.claim_one("w1").await;
        let id = task.execution_id;
        let frame = || NewFrame { payload: Some("x".into()), ..NewFrame::new("token".into(), FrameMode::Durable) };
        let append = |count: usize| AppendFrames { first_sequence: Some(0), ..AppendFrames::new(id, task.fence(), (0..count).map(|_| frame()).collect()) };
        let one = store.counted(HOME, &append(1)).await.unwrap().calls;
        let known = store.counted(HOME, &append(1)).await.unwrap().calls;
        let many = store.counted(HOME, &append(64)).await.unwrap().calls;
        let (door, early) = (store.waitpoint("door"), store.waitpoint("early"));
        let created = store.counted(HOME, &CreateWaitpoint::new(id, task.fence(), early.clone())).await.unwrap().calls;
        let buffered = store.counted(HOME, &store.signal_call(id, &early, "early")).await.unwrap().calls;
        store.ask(&CloseWaitpoint { execution_id: id, fence: task.fence(), waitpoint_id: early.waitpoint_id }).await.unwrap();
        let call = SuspendExecution { timeout_ms: Some(60_000), continuation: Some("here".into()), condition: ff_conformance::waits::condition(r#"{"all_of":[{"signal":"a"},{"signal":"b"}]}"#), ..store.suspend_call(&task, &[&door]) };
        let suspended = store.counted(HOME, &call).await.unwrap().calls;
        let keyed = |name: &str| DeliverSignal { idempotency_key: Some(name.into()), payload: Some(vec![7; 4_096].into()), ..store.signal_call(id, &door, name) };
        let counted = store.counted(HOME, &keyed("a")).await.unwrap().calls;
        let repeated = store.counted(HOME, &keyed("a")).await.unwrap().calls;
        let resumed = store.counted(HOME, &keyed("b")).await.unwrap().calls;
        let claimed = store.counted(HOME, &store.claim_call("w1", 1)).await.unwrap().calls;
        let measured = [
            ("append one frame", one, 4), ("append it again", known, 2), ("append 63 more", many, 66), ("create a waitpoint", created, 7), ("an early signal", buffered, 8),
            ("suspend", suspended, 13), ("a signal that counts", counted, 11), ("a duplicate", repeated, 5), ("a signal that resumes", resumed, 17), ("the claim that continues", claimed, 16),
        ];
        eprintln!("store calls: {measured:?}");
        for (what, calls, at_most) in measured {
            assert!(calls <= at_most, "{what}: {calls} calls, at most {at_most}");
        }
    }

    async fn a_claim_that_finds_nothing_is_cheap_and_writes_nothing(store) {
        store.install_default_lane().await;
        let before = store.dump().await;
        let counted = store.counted(HOME, &store.claim_call("w1", 8)).await.unwrap();
        assert!(counted.calls <= 5, "{} calls", counted.calls);
        assert_eq!(store.dump().await, before);
    }

    async fn the_library_says_its_number_and_hash(store) {
        let shipped = ff_script::Library::shipped();
        let LibraryReply::Library { number, hash } = store.ask(&Library {}).await.unwrap();
        assert_eq!((number, hash), (i64::from(shipped.number), shipped.hash));
    }

    async fn every_key_of_a_partition_carries_its_tag(store) {
        store.install_default_lane().await;
        for partition in 0..4_u16 {
            let id = ff_core::types::ExecutionId::from_uuid(store.uuid(partition));
            let submission = Submission { execution_id: id, input: Some(vec![1; 5_000].into()), idempotency_key: Some("k".into()), tags: Some([("a".to_owned(), "b".to_owned())].into()), ..store.submission("mail") };
            store.submit(submission).await;
            let route = ff_script::Route::Execution(partition);
            let claim = store.claim_call("w1", 1);
            assert_eq!(store.claim_with(route, &claim).await[0].execution_id, id);
        }
        for key in store.dump().await.into_keys() {
            let tags = (0..4).filter(|n| key.contains(&format!("{{p:{n}}}"))).count();
            assert!(tags == 1 || key == "ff:config:partitions", "{key}");
        }
    }
}
