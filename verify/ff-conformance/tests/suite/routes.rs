//! Route review: work that no live worker covers is blocked with the reason, and unblocked when a worker covers it.

use ff_conformance::work::{HOME, LANE, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::types::ExecutionId;
use ff_script::generated::*;

fn requiring(store: &Store, tokens: &[&str]) -> Submission {
    Submission { requires: Some(tokens.iter().map(|&token| token.to_owned()).collect()), ..store.submission("mail") }
}

fn call(sets: &[&[&str]], cursor: Option<i64>, limit: i64) -> ReviewRoutes {
    let class = |set: &&[&str]| WorkerClass::new(set.iter().map(|&token| token.to_owned()).collect());
    ReviewRoutes { cursor, ..ReviewRoutes::new(LANE.into(), limit, NAMESPACE.into(), sets.iter().map(class).collect()) }
}

/// Returns the numbers of blocked and of unblocked executions.
async fn review(store: &Store, sets: &[&[&str]]) -> (i64, i64) {
    let ReviewRoutesReply::Reviewed { blocked, unblocked, .. } = store.call(HOME, &call(sets, None, 64)).await.unwrap();
    (blocked, unblocked)
}

async fn reason(store: &Store, id: ExecutionId) -> Option<BlockingReason> {
    store.describe(id).await.blocking_reason
}

const NO_ROUTE: Option<BlockingReason> = Some(BlockingReason::WaitingForCapableWorker);

for_each_host! {
    async fn work_nobody_covers_is_blocked_after_a_second(store) {
        store.install_default_lane().await;
        let uncovered = store.submit(requiring(&store, &["gpu"])).await;
        let covered = store.submit(requiring(&store, &["eu"])).await;
        let plain = store.submit_kind("mail").await;
        let ReviewRoutesReply::Reviewed { blocked, again_at, .. } = store.ask(&call(&[&["eu", "us"]], None, 64)).await.unwrap();
        assert_eq!((blocked, again_at), (0, Some(store.now() + 1_000)), "a worker may be restarting");
        store.advance(999);
        assert_eq!(review(&store, &[&["eu", "us"]]).await, (0, 0));
        store.advance(1);
        assert_eq!(review(&store, &[&["eu", "us"]]).await, (1, 0));
        assert_eq!([reason(&store, uncovered).await, reason(&store, covered).await, reason(&store, plain).await], [NO_ROUTE, None, None]);
        let e = store.describe(uncovered).await;
        assert_eq!((e.state, e.blocking_detail.unwrap()["requires"].as_str()), (PublicState::Waiting, "gpu"));
        assert_eq!(store.story(uncovered).await, ["execution.submitted", "execution.blocked"]);
    }

    async fn a_worker_that_comes_back_in_time_blocks_nothing(store) {
        store.install_default_lane().await;
        let id = store.submit(requiring(&store, &["gpu"])).await;
        review(&store, &[]).await;
        store.advance(900);
        review(&store, &[&["gpu"]]).await;
        store.advance(900);
        assert_eq!(review(&store, &[]).await, (0, 0), "the second starts again");
        assert_eq!(reason(&store, id).await, None);
    }

    async fn later_work_nobody_covers_is_blocked_at_once(store) {
        store.install_default_lane().await;
        store.submit(requiring(&store, &["gpu"])).await;
        review(&store, &[]).await;
        store.advance(1_000);
        review(&store, &[]).await;
        let later = store.submit(requiring(&store, &["gpu"])).await;
        assert_eq!(reason(&store, later).await, NO_ROUTE);
        let delayed = store.submit(Submission { delay_ms: Some(10), ..requiring(&store, &["gpu"]) }).await;
        assert_eq!(store.state(delayed).await, PublicState::Delayed);
        store.advance(10);
        store.fire_all().await;
        assert_eq!(reason(&store, delayed).await, NO_ROUTE);
        assert_eq!(store.story(delayed).await, ["execution.submitted", "execution.blocked"], "it did not become ready");
    }

    async fn blocked_work_comes_back_in_its_order(store) {
        store.install_default_lane().await;
        let mut ids = Vec::new();
        for priority in [1, 3, 2] {
            ids.push(store.submit(Submission { priority: Some(priority), ..requiring(&store, &["gpu"]) }).await);
        }
        review(&store, &[]).await;
        store.advance(1_000);
        assert_eq!(review(&store, &[]).await, (3, 0));
        assert_eq!(review(&store, &[&["gpu"]]).await, (0, 3));
        let claimed = store.claim_as("w1", &["gpu"], 9).await;
        assert_eq!(claimed.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [ids[1], ids[2], ids[0]]);
        assert_eq!(store.story(ids[0]).await, ["execution.submitted", "execution.blocked", "execution.ready", "execution.started"]);
    }

    async fn a_blocked_head_does_not_hide_what_can_come_back(store) {
        store.install_default_lane().await;
        for _ in 0..5 {
            store.submit(requiring(&store, &["tpu"])).await;
        }
        review(&store, &[]).await;
        store.advance(1_000);
        assert_eq!(review(&store, &[]).await.0, 5);
        for _ in 0..3 {
            store.submit(requiring(&store, &["gpu"])).await;
        }
        review(&store, &[]).await;
        store.advance(1_000);
        assert_eq!(review(&store, &[]).await.0, 3);
        // Pages of two over eight blocked executions: the first five stay.
        let (mut cursor, mut unblocked, mut pages) = (None, 0, 0);
        loop {
            let ReviewRoutesReply::Reviewed { unblocked: moved, next_cursor, blocked, .. } = store.ask(&call(&[&["gpu"]], cursor, 2)).await.unwrap();
            assert_eq!(blocked, 0);
            (unblocked, cursor, pages) = (unblocked + moved, next_cursor, pages + 1);
            if cursor.is_none() {
                break;
            }
            assert!(pages < 20);
        }
        assert_eq!(unblocked, 3);
        assert_eq!(store.claim_as("w1", &["gpu"], 9).await.len(), 3);
    }

    async fn many_are_blocked_in_bounded_steps(store) {
        store.install_default_lane().await;
        for _ in 0..5 {
            store.submit(requiring(&store, &["gpu"])).await;
        }
        store.ask(&call(&[], None, 2)).await.unwrap();
        store.advance(1_000);
        let mut sum = 0;
        for round in 0..3 {
            let ReviewRoutesReply::Reviewed { blocked, more, .. } = store.ask(&call(&[], None, 2)).await.unwrap();
            assert_eq!(more, round < 2, "round {round}");
            sum += blocked;
        }
        assert_eq!(sum, 5);
    }

    async fn an_uncovered_set_is_forgotten_with_its_last_work(store) {
        store.install_default_lane().await;
        let before = store.dump_without_streams().await;
        let id = store.submit(Submission { retention_ms: Some(0), ..requiring(&store, &["gpu"]) }).await;
        review(&store, &[]).await;
        store.advance(1_000);
        review(&store, &[]).await;
        store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap();
        store.fire_all().await;
        review(&store, &[]).await;
        let mut after = store.dump_without_streams().await;
        crate::storage::forget_hints(&mut after);
        assert_eq!(after, before);
    }

    async fn running_work_is_not_touched_by_a_review(store) {
        store.install_default_lane().await;
        let id = store.submit(requiring(&store, &["gpu"])).await;
        let task = store.claim_as("w1", &["gpu"], 1).await.remove(0);
        for _ in 0..3 {
            assert_eq!(review(&store, &[]).await, (0, 0));
            store.advance(1_000);
        }
        assert_eq!(store.state(id).await, PublicState::Active);
        store.complete(&task).await;
    }

    async fn an_explanation_says_what_a_waiting_execution_lacks(store) {
        store.install_default_lane().await;
        store.submit(Submission { priority: Some(1), ..store.submission("mail") }).await;
        let waiting = store.submit_kind("mail").await;
        let uncovered = store.submit(requiring(&store, &["gpu"])).await;
        review(&store, &[]).await;
        store.advance(1_000);
        review(&store, &[]).await;
        let explain = |execution_id| ExplainExecution { execution_id };
        let ExplainExecutionReply::Facts { ahead, queue, uncovered: no_route, lane_state, execution, .. } = store.ask(&explain(waiting)).await.unwrap();
        assert_eq!((ahead, queue.as_str(), no_route, lane_state), (Some(1), "any:mail", false, Some(LaneState::Active)));
        assert_eq!(execution, store.describe(waiting).await);
        let ExplainExecutionReply::Facts { ahead, uncovered: no_route, .. } = store.ask(&explain(uncovered)).await.unwrap();
        assert_eq!((ahead, no_route), (None, true));
        store.install_lane(NAMESPACE, LANE, LaneDefinition { state: LaneState::Paused, ..ff_conformance::work::plain_lane() }).await;
        let ExplainExecutionReply::Facts { lane_state, .. } = store.ask(&explain(waiting)).await.unwrap();
        assert_eq!(lane_state, Some(LaneState::Paused));
        let missing = store.ask(&explain(store.execution_id())).await;
        assert_eq!(ff_conformance::harness::refusal(missing), ff_core::ErrorCode::ExecutionNotFound);
    }

    async fn work_that_requires_nothing_is_not_blocked_when_no_worker_lives(store) {
        store.install_default_lane().await;
        let metered = store.submit(Submission { quotas: Some(vec![QuotaRef::new(store.uuid(0), "k".into())]), ..store.submission("mail") }).await;
        let plain = store.submit_kind("mail").await;
        for _ in 0..3 {
            assert_eq!(review(&store, &[]).await, (0, 0));
            store.advance(1_000);
        }
        assert_eq!([reason(&store, metered).await, reason(&store, plain).await], [None, None]);
    }
}
