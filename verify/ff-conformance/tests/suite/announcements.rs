//! The announcements of a partition: at most one message per call, and none that dispatchers and timers do not need.

use std::time::Duration;

use ff_conformance::work::{Fenced, HOME, LANE, LEASE_MS, NAMESPACE, plain_lane};
use ff_conformance::{Store, for_each_host};
use ff_script::generated::*;
use ff_script::{Route, Wake, WakeUp, Watch};

/// Receives the messages of one partition. Events have a reader, so every call with an event sends exactly one message.
struct Ear(Watch, Route);

impl Ear {
    async fn on(store: &Store, route: Route) -> Ear {
        let watch = store.host().watch();
        store.host().subscribe(&[route]).await.expect("the host subscribes");
        store.host().set_listening(true);
        let mut ear = Ear(watch, route);
        // On a server the subscription starts a moment later. A test message proves that it has started.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        for number in 0.. {
            let probe = DefineLane {
                weight: Some(number + 2),
                ..DefineLane::new("probe".into(), "probe".into(), "probe".into())
            };
            store.call(route, &probe).await.expect("a probe");
            if ear.next(Duration::from_millis(100)).await.is_some() {
                break;
            }
            assert!(tokio::time::Instant::now() < deadline, "nothing was heard of {route}");
        }
        while ear.next(Duration::from_millis(100)).await.is_some() {}
        ear
    }

    async fn next(&mut self, patience: Duration) -> Option<Vec<Wake>> {
        loop {
            match tokio::time::timeout(patience, self.0.recv()).await {
                Ok(Ok(WakeUp::Message { route, payload })) if route == self.1 => {
                    return Some(Wake::read_all(&payload).expect("a readable message"));
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => panic!("{error}"),
                Err(_) => return None,
            }
        }
    }

    /// The only message of the last call, without the news about events.
    async fn said(&mut self) -> Vec<Wake> {
        let message = self.next(Duration::from_secs(10)).await.expect("a message");
        assert!(message.contains(&Wake::Events), "events have a reader: {message:?}");
        message.into_iter().filter(|wake| *wake != Wake::Events).collect()
    }
}

fn ready(queue: &str, score: i64) -> Wake {
    Wake::Ready { lane: format!("{NAMESPACE}/{LANE}"), queue: queue.to_owned(), score: score as f64 }
}

fn timer(at_ms: i64) -> Wake {
    Wake::Timer { at_ms }
}

for_each_host! {
    async fn the_end_of_a_token_is_told_to_every_server(store) {
        let mut ear = Ear::on(&store, Route::Fleet).await;
        let access_id = uuid::Uuid::from_u128(1);
        let grant = GrantAccess::new(access_id, "root".into(), "0".repeat(64), "ci".into(), vec![Role::Read]);
        store.call(Route::Fleet, &grant).await.unwrap();
        assert_eq!(ear.said().await, []);
        store.call(Route::Fleet, &RevokeAccess { access_id, actor: "root".into() }).await.unwrap();
        assert_eq!(ear.said().await, [Wake::Access]);
    }

    async fn work_is_announced_until_a_claim_leaves_some_behind(store) {
        store.install_default_lane().await;
        let mut ear = Ear::on(&store, HOME).await;
        let now = store.now();
        for _ in 0..2 {
            store.submit_kind("mail").await;
            assert_eq!(ear.said().await, [ready("any:mail", now)]);
        }
        // One is taken and one is left. The claiming worker comes back for it, so the next submit announces nothing.
        store.claim_one("w1").await;
        assert_eq!(ear.said().await, [timer(now + 30_000)], "the end of the lease");
        store.submit_kind("mail").await;
        assert_eq!(ear.said().await, []);
        store.submit(Submission { priority: Some(1), ..store.submission("mail") }).await;
        assert_eq!(ear.said().await, [ready("any:mail", now - ff_conformance::work::STRICT)], "a better head is always said");
        // A claim that finds nothing more makes the next submit speak again.
        store.claim("w1", 9).await;
        ear.said().await;
        store.submit_kind("mail").await;
        let said = loop {
            let said = ear.next(Duration::from_secs(10)).await.expect("a message");
            if said.contains(&Wake::Events) { break said }
        };
        assert!(said.contains(&ready("any:mail", now)), "{said:?}");
    }

    async fn an_earlier_timer_is_announced_and_a_later_one_is_not(store) {
        store.install_default_lane().await;
        let mut ear = Ear::on(&store, HOME).await;
        let now = store.now();
        for (delay, said) in [(500, true), (900, false), (100, true), (100, false)] {
            store.submit(Submission { delay_ms: Some(delay), ..store.submission("mail") }).await;
            let expected = if said { vec![timer(now + delay)] } else { vec![] };
            assert_eq!(ear.said().await, expected, "after {delay} ms");
        }
    }

    async fn a_claim_announces_when_its_first_lease_ends(store) {
        store.install_default_lane().await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let mut ear = Ear::on(&store, HOME).await;
        let first = store.claim_one("w1").await;
        let heard = ear.next(Duration::from_secs(10)).await.unwrap();
        assert!(heard.contains(&timer(first.lease_expires_at)), "{heard:?}");
        store.advance(10);
        store.claim_one("w1").await;
        assert_eq!(ear.said().await, [], "a later end needs no announcement: the sleeper looks again");
        let sooner = ClaimExecutions { lease_ttl_ms: 1_000, ..store.claim_call("w1", 1) };
        let second = store.claim_with(HOME, &sooner).await.remove(0);
        let heard = ear.next(Duration::from_secs(10)).await.unwrap();
        assert!(heard.contains(&timer(second.lease_expires_at)), "an earlier one does: {heard:?}");
    }

    async fn a_claim_announces_an_attempt_timeout_that_comes_before_the_end_of_the_lease(store) {
        store.install_default_lane().await;
        store.submit(Submission { attempt_timeout_ms: Some(2_000), ..store.submission("mail") }).await;
        let mut ear = Ear::on(&store, HOME).await;
        let task = store.claim_one("w1").await;
        assert!(task.attempt_deadline_at.unwrap() < task.lease_expires_at);
        let heard = ear.next(Duration::from_secs(10)).await.unwrap();
        assert!(heard.contains(&timer(task.attempt_deadline_at.unwrap())), "a sleeping timer needs the announcement: {heard:?}");
    }

    async fn the_end_of_an_execution_is_announced_to_those_who_wait(store) {
        store.install_default_lane().await;
        let waited = store.start("mail", "w1").await;
        let other = store.start("mail", "w1").await;
        let waiting = store.ask(&AwaitResult { execution_id: waited.execution_id }).await;
        assert_eq!(waiting, Ok(AwaitResultReply::Waiting { state: PublicState::Active }));
        let mut ear = Ear::on(&store, HOME).await;
        store.complete(&other).await;
        assert!(!ear.said().await.iter().any(|wake| matches!(wake, Wake::Done { .. })));
        let fail = FailExecution { retryable: Some(false), ..FailExecution::new("net".into(), 0, waited.execution_id, waited.fence(), "down".into()) };
        store.ask(&fail).await.unwrap();
        assert!(ear.said().await.contains(&Wake::Done { execution_id: waited.execution_id }));
        let ended = store.ask(&AwaitResult { execution_id: waited.execution_id }).await.unwrap();
        let failure = Some(Failure { reason: "down".into(), category: "net".into() });
        assert_eq!(ended, AwaitResultReply::Ended { outcome: Outcome::Failed, result: None, result_encoding: None, failure });
    }

    async fn frames_are_announced_and_ends_to_those_who_follow(store) {
        store.install_default_lane().await;
        let frames = |id| Wake::Frames { execution_id: id };
        let append = |task: &Task| AppendFrames::new(task.execution_id, task.fence(), vec![NewFrame::new("token".into(), FrameMode::Durable)]);
        let (door, side) = (store.waitpoint("door"), store.waitpoint("side"));
        let (followed, other) = (store.start("mail", "w1").await, store.start("mail", "w2").await);
        for _ in 0..2 {
            assert_eq!(store.ask(&FollowStream { execution_id: followed.execution_id }).await, Ok(FollowStreamReply::Following));
        }
        assert_eq!(ff_conformance::harness::refusal(store.ask(&FollowStream { execution_id: store.execution_id() }).await), ff_core::ErrorCode::ExecutionNotFound);
        let mut ear = Ear::on(&store, HOME).await;
        for task in [&followed, &other] {
            store.ask(&append(task)).await.unwrap();
            assert_eq!(ear.next(Duration::from_secs(10)).await, Some(vec![frames(task.execution_id)]), "an append has no event and is always announced");
        }
        for (task, waitpoint, is_followed) in [(&followed, &door, true), (&other, &side, false)] {
            let id = task.execution_id;
            let said = |message: Vec<Wake>| message.contains(&frames(id));
            store.suspend(task, &[waitpoint]).await;
            assert_eq!(said(ear.said().await), is_followed, "suspended");
            store.wake(id, waitpoint, "go").await;
            assert_eq!(said(ear.said().await), is_followed, "resumed");
            let again = store.claim_one("w1").await;
            let mut heard = ear.next(Duration::from_secs(10)).await.unwrap();
            while !heard.contains(&Wake::Events) { heard.extend(ear.next(Duration::from_secs(10)).await.unwrap()) }
            assert_eq!(said(heard), is_followed, "started");
            while ear.next(Duration::from_millis(100)).await.is_some() {}
            store.complete(&again).await;
            assert_eq!(said(ear.said().await), is_followed, "ended");
        }
    }

    async fn a_resume_is_announced_like_a_submit(store) {
        store.install_default_lane().await;
        let (task, door) = store.start_suspended().await;
        let score = store.describe(task.execution_id).await.score;
        let mut ear = Ear::on(&store, HOME).await;
        store.wake(task.execution_id, &door, "go").await;
        assert_eq!(ear.said().await, [ready("any:mail", score)]);
    }

    async fn the_timeout_of_a_wait_is_announced_when_it_is_the_next(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let mut ear = Ear::on(&store, HOME).await;
        let door = NewWaitpoint { expires_in_ms: Some(5_000), ..store.waitpoint("door") };
        store.open_early(&task, &door).await;
        assert_eq!(ear.said().await, [timer(store.now() + 5_000)], "before the end of the lease");
        store.suspend_with(&SuspendExecution { timeout_ms: Some(1_000), ..store.suspend_call(&task, &[]) }).await;
        assert_eq!(ear.said().await, [timer(store.now() + 1_000)]);
    }

    async fn work_that_comes_back_is_announced(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let score = store.describe(id).await.score;
        let mut ear = Ear::on(&store, HOME).await;
        store.advance(LEASE_MS);
        store.fire_all().await;
        assert!(ear.said().await.contains(&ready("any:mail", score)), "after a lost lease");
        store.ask(&HoldExecution::new("ann".into(), id)).await.unwrap();
        assert_eq!(ear.said().await, []);
        store.ask(&ReleaseExecution::new("ann".into(), id)).await.unwrap();
        assert_eq!(ear.said().await, [ready("any:mail", score)], "after a hold");
    }

    async fn a_lane_that_goes_on_announces_each_queue_with_work(store) {
        store.install_lane(NAMESPACE, LANE, LaneDefinition { state: LaneState::Paused, ..plain_lane() }).await;
        store.submit_kind("mail").await;
        store.submit(Submission { requires: Some(vec!["gpu".into()]), ..store.submission("mail") }).await;
        let mut ear = Ear::on(&store, HOME).await;
        store.install_lane(NAMESPACE, LANE, plain_lane()).await;
        let heard = ear.next(Duration::from_secs(10)).await.unwrap();
        let queues: Vec<_> = heard.iter().filter_map(|wake| match wake { Wake::Ready { queue, .. } => Some(queue.as_str()), _ => None }).collect();
        assert_eq!((queues.len(), queues[1]), (2, "any:mail"), "{heard:?}");
    }

    async fn the_fleet_announces_workers_and_what_is_owed(store) {
        let mut ear = Ear::on(&store, Route::Fleet).await;
        let register = RegisterWorker::new(vec![], "w1".into(), vec![LANE.into()], NAMESPACE.into(), 1, "mailer".into());
        store.call(Route::Fleet, &register).await.unwrap();
        assert!(ear.said().await.contains(&Wake::Fleet));
        store.call(Route::Fleet, &DrainWorker { instance: "w1".into(), actor: "ann".into() }).await.unwrap();
        assert!(ear.said().await.contains(&Wake::Fleet));
    }

    async fn nothing_is_said_about_events_when_nobody_listens(store) {
        store.install_default_lane().await;
        let mut ear = Ear::on(&store, HOME).await;
        store.host().set_listening(false);
        store.submit_kind("mail").await;
        let heard = ear.next(Duration::from_secs(10)).await.unwrap();
        assert!(!heard.contains(&Wake::Events), "{heard:?}");
    }
}
