//! Timers fire with nobody asking, on time, and an earlier one wakes the sleeper.

use ff_core::error_code::ErrorCode;
use ff_core::state::{AttemptState, PublicState};
use ff_script::generated::{Backoff, BackoffType, Outcome, Retry};

use crate::kit::*;
use crate::on_both_hosts;
use ff_testkit::Tasks;

on_both_hosts! {
    async fn a_dead_workers_execution_is_offered_again_within_its_lease_and_two_seconds(kit) {
        let engine = kit.plain_engine().await;
        let operations = engine.operations();
        for round in 0..2 {
            let id = submit(operations, work("orphan")).await;
            let task = claim_one(operations, &worker("dead", 1_000), id).await;
            let execution = becomes(operations, id, PublicState::Waiting).await;
            let ended = execution.attempts[0].ended_at.expect("the attempt has ended");
            assert_eq!(execution.attempts[0].state, AttemptState::Interrupted);
            assert!(ended >= task.lease_expires_at, "round {round}: {ended} is before {}", task.lease_expires_at);
            assert!(ended <= task.lease_expires_at + 2_000, "round {round}: {} ms late", ended - task.lease_expires_at);
            let next = claim_one(operations, &worker("alive", 30_000), id).await;
            assert!(next.lease_epoch > task.lease_epoch);
            assert_eq!(refusal(operations.client().complete(id, ff_engine::fence_of(&task), None).await), ErrorCode::StaleLease);
            complete(operations, &next, b"done").await;
        }
        engine.stop().await;
    }

    async fn what_is_due_happens_by_itself(kit) {
        let engine = kit.plain_engine().await;
        let operations = engine.operations();
        let mut new = work("delayed");
        new.fields.delay_ms = Some(400);
        let delayed = submit(operations, new).await;
        let mut new = work("late");
        new.fields.deadline_ms = Some(500);
        let late = submit(operations, new).await;
        let mut new = work("unwanted");
        new.fields.start_within_ms = Some(400);
        let unwanted = submit(operations, new).await;
        let mut new = work("slow");
        new.fields.lane = "slow".to_owned();
        new.fields.attempt_timeout_ms = Some(400);
        new.fields.retry = Some(Retry {
            backoff: Some(Backoff { delay_ms: Some(0), ..Backoff::new(BackoffType::Fixed) }),
            ..Retry::default()
        });
        let slow = submit(operations, new).await;
        let mut new = work("brief");
        new.fields.lane = "brief".to_owned();
        new.fields.retention_ms = Some(300);
        new.fields.idempotency_key = Some("once".to_owned());
        new.fields.idempotency_ttl_ms = Some(1_000);
        let brief = submit(operations, new.clone()).await;
        let mut new_asked = work("asked");
        new_asked.fields.lane = "asked".to_owned();
        let asked = submit(operations, new_asked).await;

        let at = |lane: &str| ff_engine::Claimant { lane: lane.to_owned(), ..worker("w", 30_000) };
        claim_one(operations, &at("slow"), slow).await;
        let task = claim_one(operations, &at("brief"), brief).await;
        complete(operations, &task, b"gone soon").await;
        claim_one(operations, &at("asked"), asked).await;
        operations.cancel(asked, "ann", Some("enough"), Some(400)).await.expect("it is asked to cancel");

        let ready = becomes(operations, delayed, PublicState::Waiting).await;
        assert!(ready.updated_at >= ready.created_at + 400);
        for id in [late, unwanted] {
            let expired = becomes(operations, id, PublicState::Expired).await;
            assert!(expired.ended_at.expect("it ended") >= expired.created_at + 400);
        }
        let retried = becomes(operations, slow, PublicState::Waiting).await;
        assert_eq!(retried.attempts[0].state, AttemptState::TimedOut);
        assert_eq!(becomes(operations, asked, PublicState::Cancelled).await.outcome, Some(Outcome::Cancelled));
        eventually("retention removes it", async || {
            matches!(operations.describe(brief).await, Err(error) if error.to_string().contains("not found")).then_some(())
        })
        .await;
        // The key outlives the execution, and then ends as well.
        let again = eventually("the key ends", async || match operations.submit(new.clone()).await {
            Ok(ff_script::generated::SubmitExecutionReply::Created { execution_id, .. }) => Some(execution_id),
            Ok(_) => None,
            Err(error) => panic!("{error}"),
        })
        .await;
        assert_ne!(again, brief);
        engine.stop().await;
    }

    async fn an_earlier_timer_wakes_the_sleeper(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let later = |delay_ms| {
            let mut new = work_in(3, "later");
            new.fields.delay_ms = Some(delay_ms);
            new
        };
        let last = submit(operations, later(3_600_000)).await;
        let middle = submit(operations, later(1_500)).await;
        let first = submit(operations, later(300)).await;
        let first = becomes(operations, first, PublicState::Waiting).await;
        let middle = becomes(operations, middle, PublicState::Waiting).await;
        assert!(first.updated_at < middle.updated_at);
        assert_eq!(operations.describe(last).await.unwrap().state, PublicState::Delayed);
        engine.stop().await;
    }

    /// A claim does not announce a lease that ends after one it announced before. The sleeper must wake at the announced
    /// time even when it woke for something else in between and the first lease is gone.
    async fn a_lease_that_needed_no_announcement_is_found(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let first = submit(operations, work_in(2, "first")).await;
        let task = claim_one(operations, &worker("w", 2_000), first).await;
        complete(operations, &task, b"").await;
        let mut new = work_in(2, "wakes the sleeper");
        new.fields.delay_ms = Some(200);
        new.fields.lane = "other".to_owned();
        let other = submit(operations, new).await;
        becomes(operations, other, PublicState::Waiting).await;
        let second = submit(operations, work_in(2, "second")).await;
        let task = claim_one(operations, &worker("w", 2_000), second).await;
        let found = becomes(operations, second, PublicState::Waiting).await;
        assert!(found.attempts[0].ended_at.unwrap() <= task.lease_expires_at + 2_000);
        engine.stop().await;
    }

    /// The same when the server that heard the announcement is gone.
    async fn a_lease_that_needed_no_announcement_is_found_by_the_next_server(kit) {
        let engine = kit.engine().await;
        let first = submit(engine.operations(), work_in(2, "first")).await;
        let task = claim_one(engine.operations(), &worker("w", 3_000), first).await;
        complete(engine.operations(), &task, b"").await;
        engine.stop().await;

        let engine = kit.engine().await;
        let operations = engine.operations();
        // The new server has looked at every partition once it has fired something.
        let mut new = work_in(2, "wakes the sleeper");
        new.fields.delay_ms = Some(200);
        new.fields.lane = "other".to_owned();
        let other = submit(operations, new).await;
        becomes(operations, other, PublicState::Waiting).await;
        let second = submit(operations, work_in(2, "second")).await;
        let task = claim_one(operations, &worker("w", 3_000), second).await;
        let found = becomes(operations, second, PublicState::Waiting).await;
        assert!(found.attempts[0].ended_at.unwrap() <= task.lease_expires_at + 2_000);
        engine.stop().await;
    }
}
