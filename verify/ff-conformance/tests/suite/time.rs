//! Everything due happens at its time, and not one millisecond earlier.

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, HOME, LEASE_MS, plain_lane};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::generated::*;

/// Fires timers one millisecond before the time, when nothing may change, and then at the time.
pub async fn nothing_before(store: &Store, at: i64) {
    let facts = async || {
        let mut dump = store.dump().await;
        crate::storage::forget_hints(&mut dump);
        dump
    };
    let before = facts().await;
    store.go_to(at - 1);
    assert_eq!(store.fire_all().await, 0, "nothing is due a millisecond early");
    assert_eq!(facts().await, before, "nothing changes a millisecond early");
    store.go_to(at);
    assert!(store.fire_all().await > 0, "it is due now");
}

pub async fn ends_as(store: &Store, id: ExecutionId, outcome: Outcome, category: &str) {
    let e = store.describe(id).await;
    assert_eq!((e.outcome, e.phase, e.lease.is_none()), (Some(outcome), LifecyclePhase::Terminal, true));
    assert_eq!(e.failure.map(|failure| failure.category).as_deref(), Some(category));
}

for_each_host! {
    async fn a_delayed_execution_becomes_claimable_at_its_time(store) {
        store.install_default_lane().await;
        let at = store.now() + 5_000;
        let id = store.submit(Submission { delay_until: Some(at), ..store.submission("mail") }).await;
        assert_eq!(store.state(id).await, PublicState::Delayed);
        assert!(store.claim("w1", 1).await.is_empty());
        nothing_before(&store, at).await;
        assert_eq!(store.state(id).await, PublicState::Waiting);
        assert_eq!(store.claim_one("w1").await.execution_id, id);
        assert_eq!(store.story(id).await, ["execution.submitted", "execution.ready", "execution.started"]);
    }

    async fn a_deadline_ends_an_execution_wherever_it_is(store) {
        store.install_default_lane().await;
        let with_deadline = |s: Submission| Submission { deadline_ms: Some(1_000), ..s };
        let active = store.start_with(with_deadline(store.submission("a")), "w1").await.execution_id;
        let waiting = store.submit(with_deadline(store.submission("a"))).await;
        let delayed = store.submit(Submission { delay_ms: Some(9_000), ..with_deadline(store.submission("a")) }).await;
        let held = store.submit(with_deadline(store.submission("a"))).await;
        store.ask(&HoldExecution::new("ann".into(), held)).await.unwrap();
        nothing_before(&store, store.now() + 1_000).await;
        for id in [active, waiting, delayed, held] {
            ends_as(&store, id, Outcome::Expired, "deadline").await;
        }
        assert_eq!(store.describe(active).await.attempts[0].state, AttemptState::Interrupted);
    }

    async fn nothing_starts_past_its_deadline_even_before_the_timer_fired(store) {
        store.install_default_lane().await;
        store.submit(Submission { deadline_ms: Some(10), ..store.submission("a") }).await;
        store.submit(Submission { start_within_ms: Some(10), ..store.submission("b") }).await;
        store.advance(10);
        assert!(store.claim("w1", 2).await.is_empty());
    }

    async fn start_within_ends_what_never_started(store) {
        store.install_default_lane().await;
        let soon = |s: Submission| Submission { start_within_ms: Some(1_000), retry: Some(Retry { jitter: Some(Jitter::None), ..Retry::default() }), ..s };
        let started = store.start_with(soon(store.submission("a")), "w1").await;
        let waiting = store.submit(soon(store.submission("a"))).await;
        let delayed = store.submit(Submission { delay_ms: Some(9_000), ..soon(store.submission("a")) }).await;
        // An execution that has started once is no longer bound by it, even while it waits for a retry.
        store.fail(&started, "net").await;
        let at = store.now() + 1_000;
        store.go_to(at - 1);
        assert_eq!(store.fire_all().await, 0);
        store.go_to(at);
        store.fire_all().await;
        for id in [waiting, delayed] {
            ends_as(&store, id, Outcome::Expired, "start_within").await;
        }
        assert_eq!(store.state(started.execution_id).await, PublicState::Waiting);
    }

    async fn an_attempt_timeout_ends_the_attempt_and_the_policy_goes_on(store) {
        store.install_default_lane().await;
        let retry = Retry { max_attempts: Some(2), backoff: Some(Backoff { delay_ms: Some(100), ..Backoff::new(BackoffType::Fixed) }), jitter: Some(Jitter::None), ..Retry::default() };
        let submission = Submission { attempt_timeout_ms: Some(2_000), retry: Some(retry), ..store.submission("a") };
        let task = store.start_with(submission, "w1").await;
        let id = task.execution_id;
        assert_eq!(task.attempt_deadline_at, Some(store.now() + 2_000));
        nothing_before(&store, store.now() + 2_000).await;
        let e = store.describe(id).await;
        assert_eq!((e.state, e.delay_until), (PublicState::Delayed, Some(store.now() + 100)));
        assert_eq!((e.attempts[0].state, e.attempts[0].failure.as_ref().map(|f| f.category.as_str())), (AttemptState::TimedOut, Some("timeout")));
        store.advance(100);
        store.fire_all().await;
        let again = store.claim_one("w1").await;
        assert_eq!((again.attempt_type, again.attempt_index), (AttemptType::Retry, 1));
        nothing_before(&store, store.now() + 2_000).await;
        ends_as(&store, id, Outcome::Failed, "timeout").await;
    }

    async fn an_attempt_timeout_runs_through_renewals(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { attempt_timeout_ms: Some(LEASE_MS + 5), ..store.submission("a") }, "w1").await;
        store.advance(20_000);
        store.ask(&RenewLease::new(task.execution_id, task.fence())).await.unwrap();
        nothing_before(&store, task.attempt_deadline_at.unwrap()).await;
        assert_eq!(store.describe(task.execution_id).await.attempts[0].state, AttemptState::TimedOut);
    }

    async fn a_lease_runs_out_at_its_end(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        nothing_before(&store, task.lease_expires_at).await;
        let e = store.describe(task.execution_id).await;
        assert_eq!((e.state, e.reclaim_count, e.attempts[0].state), (PublicState::Waiting, 1, AttemptState::Interrupted));
    }

    async fn a_grant_runs_out_at_its_end(store) {
        store.install_default_lane().await;
        let id = store.submit_kind("mail").await;
        let grant_id = store.uuid(0);
        let call = IssueGrants { namespace: "default".into(), lane: "default".into(), instance: "w1".into(), kinds: None, capabilities: vec![], max: 1, lease_ids: None, ttl_ms: 500, grant_ids: vec![grant_id] };
        store.ask(&call).await.unwrap();
        assert!(store.claim("w2", 1).await.is_empty(), "a granted execution is reserved for its worker");
        nothing_before(&store, store.now() + 500).await;
        assert_eq!(store.claim_one("w2").await.execution_id, id);
    }

    async fn a_cancel_with_grace_ends_the_attempt_when_the_grace_is_over(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let cancel = CancelExecution { grace_ms: Some(700), reason: Some("enough".into()), ..CancelExecution::new("ann".into(), id) };
        assert_eq!(store.ask(&cancel).await, Ok(CancelExecutionReply::Requested { cancel_by: store.now() + 700 }));
        nothing_before(&store, store.now() + 700).await;
        ends_as(&store, id, Outcome::Cancelled, "cancelled").await;
        assert_eq!(store.describe(id).await.failure.unwrap().reason, "enough");
    }

    async fn retention_counts_from_the_end(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { retention_ms: Some(3_000), ..store.submission("a") }, "w1").await;
        store.advance(1_000);
        store.complete(&task).await;
        let ended = store.now();
        assert_eq!(store.describe(task.execution_id).await.retire_at, Some(ended + 3_000));
        nothing_before(&store, ended + 3_000).await;
        assert_eq!(refusal(store.find(task.execution_id).await), ErrorCode::ExecutionNotFound);
    }

    async fn a_worker_counts_as_alive_until_its_time(store) {
        let register = RegisterWorker::new(vec![], "w1".into(), vec!["default".into()], "default".into(), 1, "mailer".into());
        let RegisterWorkerReply::Registered { expires_at, heartbeat_ms } = store.call(ff_script::Route::Fleet, &register).await.unwrap();
        assert_eq!((expires_at, heartbeat_ms), (store.now() + 30_000, 10_000));
        nothing_before(&store, expires_at).await;
        assert_eq!(refusal(store.call(ff_script::Route::Fleet, &GetWorker { instance: "w1".into() }).await), ErrorCode::WorkerNotRegistered);
    }

    async fn the_earliest_of_several_times_wakes_the_execution(store) {
        store.install_lane("default", "default", plain_lane()).await;
        let now = store.now();
        let next = |store: std::sync::Arc<Store>| async move {
            let NextDueReply::Next { next_at, now } = store.ask(&NextDue {}).await.unwrap();
            assert_eq!(now, store.now());
            next_at
        };
        assert_eq!(next(store.clone()).await, None);
        let submission = Submission { delay_ms: Some(300), start_within_ms: Some(400), deadline_ms: Some(500), attempt_timeout_ms: Some(50), ..store.submission("a") };
        let id = store.submit(submission).await;
        assert_eq!(next(store.clone()).await, Some(now + 300), "the delay");
        store.ask(&HoldExecution::new("ann".into(), id)).await.unwrap();
        assert_eq!(next(store.clone()).await, Some(now + 400), "a held one does not become ready, but its queue time runs");
        store.ask(&ReleaseExecution::new("ann".into(), id)).await.unwrap();
        store.advance(300);
        store.fire_due(HOME).await;
        let task = store.claim_one("w1").await;
        assert_eq!(next(store.clone()).await, Some(now + 350), "the attempt timeout");
        store.fail(&task, "net").await;
        assert_eq!(next(store.clone()).await, Some(now + 500), "the deadline, before the retry");
    }

    async fn many_due_entries_are_fired_in_bounded_batches(store) {
        store.install_default_lane().await;
        for _ in 0..70 {
            store.submit(Submission { delay_ms: Some(10), ..store.submission("a") }).await;
        }
        store.advance(10);
        let FireDueReply::Fired { count, more, stuck, next_at, .. } = store.ask(&FireDue { limit: 64, draw: 0 }).await.unwrap();
        assert_eq!((count, more, stuck, next_at), (64, true, 0, Some(store.now())));
        let FireDueReply::Fired { count, more, stuck, next_at, .. } = store.ask(&FireDue { limit: 64, draw: 0 }).await.unwrap();
        assert_eq!((count, more, stuck, next_at), (6, false, 0, None));
        assert_eq!(store.claim("w1", 64).await.len(), 64);
    }
}
