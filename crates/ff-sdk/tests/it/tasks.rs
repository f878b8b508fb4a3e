//! Claiming and ending tasks by hand.

use std::time::Duration;

use ff_core::error::{ContentionKind, EngineError, StateKind};
use ff_core::state::{AttemptState, LifecyclePhase, Outcome, PublicState};
use ff_core::types::{AttemptIndex, TimestampMs};
use ff_script::generated::{Backoff, BackoffType, Retry};
use ff_sdk::task::FailOutcome;
use ff_sdk::{CancelReason, SdkError};

use crate::world::{LANE, World, claim, until};

fn tries(max_attempts: i64) -> Option<Retry> {
    let backoff = Backoff { delay_ms: Some(20), ..Backoff::new(BackoffType::Fixed) };
    Some(Retry {
        max_attempts: Some(max_attempts),
        backoff: Some(backoff),
        jitter: None,
        retry_on: None,
        never_on: None,
    })
}

fn engine_error(error: SdkError) -> EngineError {
    match error {
        SdkError::Engine(error) => *error,
        other => panic!("expected a refusal of the engine, got {other:?}"),
    }
}

for_each_transport! {
    async fn a_task_shows_what_was_submitted_and_completes(world: &World) {
        let worker = world.worker("w-1").await;
        assert!(worker.claim_next().await.unwrap().is_none());
        let mut new = world.new_execution("render");
        new.fields.input = Some(br#"{"page":12345678901234567890}"#.to_vec().into());
        new.fields.tags = Some([("tenant".to_owned(), "acme".to_owned())].into());
        let id = world.admin.submit(new).await.unwrap();

        let task = claim(&worker).await;
        assert_eq!(task.execution_id(), &id);
        assert_eq!(task.attempt_index(), AttemptIndex::new(0));
        assert_eq!((task.lane_id().as_str(), task.execution_kind()), (LANE, "render"));
        assert_eq!(task.input_payload(), br#"{"page":12345678901234567890}"#);
        assert_eq!(task.tags().get("tenant").map(String::as_str), Some("acme"));
        assert!(task.is_lease_healthy() && task.consecutive_renewal_failures() == 0);
        assert!(task.lease_epoch().get() > 0);
        let seen = world.describe(&id).await;
        let lease = seen.lease.expect("it is leased");
        assert_eq!((lease.worker_instance.as_str(), lease.lease_epoch), ("w-1", task.lease_epoch()));
        assert_eq!(seen.attempts[0].attempt_id, *task.attempt_id());

        task.renew_lease().await.unwrap();
        task.update_progress(40, "drawing").await.unwrap();
        let progress = world.describe(&id).await.progress.expect("it was noted");
        assert_eq!((progress.pct, progress.message.as_deref()), (40, Some("drawing")));

        task.complete(Some(b"done \xff\x00".to_vec())).await.unwrap();
        let result = world.result(&id).await;
        assert_eq!((result.outcome, result.result.as_deref()), (Outcome::Success, Some(b"done \xff\x00".as_slice())));
        assert_eq!(world.describe(&id).await.result.as_deref(), Some(b"done \xff\x00".as_slice()));
        assert!(worker.claim_next().await.unwrap().is_none());
    }

    async fn bytes_in_are_bytes_out(world: &World) {
        let worker = world.worker("w-1").await;
        let table: [&[u8]; 9] =
            [b"null", b"", b" null", b"\"null\"", b"0", b"{}", b"[null]", b"\x00\xff\xfe", b"not json"];
        for bytes in table {
            let id = world.submit("k", bytes).await;
            let task = claim(&worker).await;
            assert_eq!(task.input_payload(), bytes, "an input");
            task.complete(Some(bytes.to_vec())).await.unwrap();
            assert_eq!(world.result(&id).await.result.as_deref(), Some(bytes), "a result");
            let seen = world.describe(&id).await;
            assert_eq!((seen.input.as_slice(), seen.result.as_deref()), (bytes, Some(bytes)), "both, described");
        }
        let id = world.submit("k", b"{}").await;
        claim(&worker).await.complete(None).await.unwrap();
        assert_eq!(world.result(&id).await.result, None, "nothing is nothing");
    }

    async fn claim_next_finds_what_was_just_submitted_and_never_waits(world: &World) {
        let worker = world.worker("w-1").await;
        assert!(worker.claim_next().await.unwrap().is_none());
        for _ in 0..30 {
            let id = world.submit("k", b"{}").await;
            let task = worker.claim_next().await.unwrap().expect("it was submitted before");
            assert_eq!(task.execution_id(), &id);
            task.complete(None).await.unwrap();
        }
        for _ in 0..100 {
            assert!(worker.claim_next().await.unwrap().is_none());
        }
    }

    async fn one_claim_takes_more_than_one_batch(world: &World) {
        let mut config = world.config("w-1");
        config.max_concurrent_tasks = 256;
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        for _ in 0..240 {
            world.submit("k", b"{}").await;
        }
        let (mut ids, mut largest) = (std::collections::BTreeSet::new(), 0);
        let mut held = Vec::new();
        while ids.len() < 240 {
            let tasks = worker.claim_many(256, Duration::from_secs(5)).await.unwrap();
            assert!(!tasks.is_empty(), "{} came", ids.len());
            largest = largest.max(tasks.len());
            ids.extend(tasks.iter().map(|task| *task.execution_id()));
            held.extend(tasks);
        }
        assert_eq!(held.len(), 240, "none came twice");
        assert!(largest > 64, "the largest claim brought {largest}");
        for task in held {
            task.complete(None).await.unwrap();
        }
    }

    async fn every_permit_taken_claims_nothing_and_an_ended_task_gives_its_permit_back(world: &World) {
        for _ in 0..3 {
            world.submit("k", b"{}").await;
        }
        let mut config = world.config("w-1");
        config.max_concurrent_tasks = 2;
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        let first = claim(&worker).await;
        let second = claim(&worker).await;
        assert!(worker.claim_next().await.unwrap().is_none(), "both permits are taken");
        first.complete(None).await.unwrap();
        let third = claim(&worker).await;
        drop(second);
        third.complete(None).await.unwrap();
    }

    async fn a_failure_is_retried_by_the_policy_and_then_final(world: &World) {
        let worker = world.worker("w-1").await;
        let mut new = world.new_execution("k");
        new.fields.retry = tries(2);
        let id = world.admin.submit(new).await.unwrap();
        let task = claim(&worker).await;
        let before = TimestampMs::now();
        match task.fail("first", "flaky").await.unwrap() {
            FailOutcome::RetryScheduled { delay_until } => assert!(delay_until.0 >= before.0 - 1_000, "{delay_until}"),
            other => panic!("{other:?}"),
        }
        let task = claim(&worker).await;
        assert_eq!(task.attempt_index(), AttemptIndex::new(1));
        assert_eq!(task.fail("second", "My Own: category").await.unwrap(), FailOutcome::TerminalFailed);
        let failure = world.result(&id).await.failure.expect("it failed");
        assert_eq!((failure.reason.as_str(), failure.category.as_str()), ("second", "My Own: category"));
    }

    async fn a_worker_cancels_delays_and_yields(world: &World) {
        let worker = world.worker("w-1").await;
        let cancelled = world.submit("k", b"{}").await;
        claim(&worker).await.cancel("not wanted").await.unwrap();
        assert_eq!(world.result(&cancelled).await.outcome, Outcome::Cancelled);

        let delayed = world.submit("k", b"{}").await;
        let until = TimestampMs::from_millis(TimestampMs::now().0 + 3_600_000);
        claim(&worker).await.delay_execution(until).await.unwrap();
        let seen = world.describe(&delayed).await;
        assert_eq!((seen.state, seen.delay_until), (PublicState::Delayed, Some(until)));

        let yielded = world.submit("k", b"{}").await;
        claim(&worker).await.yield_back().await.unwrap();
        let again = claim(&worker).await;
        assert_eq!((again.execution_id(), again.attempt_index()), (&yielded, AttemptIndex::new(1)));
        again.complete(None).await.unwrap();
        assert_eq!(world.describe(&yielded).await.reclaim_count, 0);
    }

    async fn the_outcome_that_won_is_named_when_another_comes_late(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        world.admin.cancel(&id, "no longer needed", None).await.unwrap();
        let (attempt, epoch) = (*task.attempt_id(), task.lease_epoch());
        match engine_error(task.complete(None).await.unwrap_err()) {
            EngineError::Contention(ContentionKind::ExecutionNotActive { terminal_outcome, lease_epoch, lifecycle_phase, attempt_id }) => {
                assert_eq!(terminal_outcome, Some(Outcome::Cancelled));
                assert_eq!(lifecycle_phase, LifecyclePhase::Terminal);
                assert_eq!((lease_epoch, attempt_id), (Some(epoch), Some(attempt)));
            }
            other => panic!("{other:?}"),
        }
    }

    async fn a_revoked_lease_ends_renewal_and_fires_the_token(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        world.admin.revoke_lease(&id, false).await.unwrap();
        let error = engine_error(task.renew_lease().await.unwrap_err());
        assert_eq!(error, EngineError::State(StateKind::LeaseRevoked));
        assert_eq!(task.cancellation().reason(), Some(CancelReason::LeaseLost));
        assert!(!task.is_lease_healthy());
        assert_eq!(engine_error(task.complete(None).await.unwrap_err()).code(), "lease_revoked");
    }

    async fn requests_to_cancel_and_to_yield_reach_the_token(world: &World) {
        let mut config = world.config("w-1");
        config.lease_ttl_ms = 1_000;
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        world.admin.cancel(&id, "please stop", Some(60_000)).await.unwrap();
        let reason = tokio::time::timeout(crate::world::SOON, task.cancellation().cancelled()).await.unwrap();
        assert_eq!(reason, CancelReason::CancelRequested);
        task.cancel("as asked").await.unwrap();
        assert_eq!(world.result(&id).await.outcome, Outcome::Cancelled);

        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        world.admin.revoke_lease(&id, true).await.unwrap();
        let reason = tokio::time::timeout(crate::world::SOON, task.cancellation().cancelled()).await.unwrap();
        assert_eq!(reason, CancelReason::YieldRequested);
        task.yield_back().await.unwrap();
        claim(&worker).await.complete(None).await.unwrap();
    }

    async fn a_lease_is_kept_in_the_background_far_beyond_its_ttl(world: &World) {
        let mut config = world.config("w-1");
        config.lease_ttl_ms = 1_000;
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        assert!(task.is_lease_healthy() && !task.cancellation().is_cancelled());
        task.complete(None).await.unwrap();
        assert_eq!(world.describe(&id).await.attempts.len(), 1);
    }

    async fn a_dropped_task_comes_back_when_its_lease_runs_out(world: &World) {
        let mut config = world.config("w-1");
        config.lease_ttl_ms = 1_000;
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let epoch = task.lease_epoch();
        drop(task);
        let again = claim(&worker).await;
        assert_eq!((again.execution_id(), again.attempt_index()), (&id, AttemptIndex::new(1)));
        assert!(again.lease_epoch() > epoch);
        again.complete(None).await.unwrap();
        let seen = world.describe(&id).await;
        assert_eq!(seen.attempts[0].state, AttemptState::Interrupted);
    }

    async fn work_is_described_and_listed(world: &World) {
        let worker = world.worker("w-1").await;
        let mut new = world.new_execution("listed");
        new.fields.retry = tries(1);
        let id = world.admin.submit(new).await.unwrap();
        world.submit("other", b"{}").await;
        assert_eq!(worker.describe_execution(&id).await.unwrap().kind, "listed");
        let filter = ff_sdk::ExecutionFilter { kind: Some("listed".to_owned()), ..Default::default() };
        let page = worker.list_executions(&filter, None, 10).await.unwrap();
        assert_eq!(page.items.iter().map(|item| item.execution_id).collect::<Vec<_>>(), [id]);
        let workers = worker.list_workers().await.unwrap();
        assert_eq!(workers.iter().map(|worker| worker.instance.as_str()).collect::<Vec<_>>(), ["w-1"]);
        let missing = worker.describe_execution(&ff_core::types::ExecutionId::mint()).await.unwrap_err();
        assert_eq!(engine_error(missing), EngineError::NotFound { entity: "execution" });
        let partitions: &ff_core::PartitionConfig = worker.partition_config();
        let expected = if world.transport == ff_sdk::backend::Transport::Valkey { 8 } else { 4 };
        assert_eq!(partitions.executions, expected, "as the store has them");
    }

    async fn an_idle_worker_is_woken_by_new_work(world: &World) {
        let worker = world.worker("w-1").await;
        let waiting = tokio::spawn(async move { (claim(&worker).await, worker) });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let id = world.submit("k", b"{}").await;
        let (task, _worker) = waiting.await.unwrap();
        task.complete(None).await.unwrap();
        until("it is completed", || async { world.describe(&id).await.outcome == Some(Outcome::Success) }).await;
    }
}
