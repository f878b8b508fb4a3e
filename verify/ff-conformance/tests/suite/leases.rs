//! Leases: renewed, lost, revoked or handed back; what counts in each case, and how epochs rise.

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, HOME, LANE, LEASE_MS, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_script::generated::*;

async fn renew(store: &Store, task: &Task) -> RenewLeaseReply {
    store.ask(&RenewLease::new(task.execution_id, task.fence())).await.expect("the lease is renewed")
}

fn drain(worker: &str, revoke: bool, limit: i64) -> DrainLeases {
    DrainLeases { instance: worker.into(), revoke, limit, actor: "ann".into() }
}

for_each_host! {
    async fn a_renewal_moves_the_end_of_the_lease(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        store.advance(LEASE_MS - 1);
        let RenewLeaseReply::Renewed { lease_expires_at, cancel_requested, yield_requested } = renew(&store, &task).await;
        assert_eq!((lease_expires_at, cancel_requested, yield_requested), (store.now() + LEASE_MS, false, false));
        store.advance(1);
        assert_eq!(store.fire_all().await, 0, "the old end is past");
        let call = RenewLease { lease_ttl_ms: Some(1_000), ..RenewLease::new(task.execution_id, task.fence()) };
        let RenewLeaseReply::Renewed { lease_expires_at, .. } = store.ask(&call).await.unwrap();
        assert_eq!(lease_expires_at, store.now() + 1_000, "a renewal may say another length");
        store.advance(999);
        let RenewLeaseReply::Renewed { lease_expires_at, .. } = renew(&store, &task).await;
        assert_eq!(lease_expires_at, store.now() + 1_000, "and it stays");
        assert_eq!(store.describe(task.execution_id).await.lease.unwrap().expires_at, lease_expires_at);
    }

    async fn no_renewal_is_accepted_after_the_end(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        store.advance(LEASE_MS);
        let before = store.dump().await;
        assert_eq!(refusal(store.ask(&RenewLease::new(task.execution_id, task.fence())).await), ErrorCode::LeaseExpired);
        assert_eq!(store.dump().await, before);
        store.fire_all().await;
        assert_eq!(refusal(store.ask(&RenewLease::new(task.execution_id, task.fence())).await), ErrorCode::LeaseExpired);
    }

    async fn many_leases_are_renewed_each_on_its_own(store) {
        store.install_default_lane().await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let tasks = store.claim("w1", 3).await;
        store.complete(&tasks[1]).await;
        store.ask(&CancelExecution { grace_ms: Some(5_000), ..CancelExecution::new("ann".into(), tasks[2].execution_id) }).await.unwrap();
        store.advance(1_000);
        let renewals: Vec<_> = tasks.iter().map(|task| RenewLease::new(task.execution_id, task.fence())).collect();
        let mut answers = store.ask_all(&renewals).await;
        let lease_expires_at = store.now() + LEASE_MS;
        let renewed = |cancel_requested| Ok(RenewLeaseReply::Renewed { lease_expires_at, cancel_requested, yield_requested: false });
        assert_eq!(refusal(answers.remove(1)), ErrorCode::ExecutionNotActive);
        assert_eq!(answers, [renewed(false), renewed(true)]);
    }

    async fn a_lost_lease_is_offered_again_and_counted(store) {
        store.install_default_lane().await;
        let first = store.start("mail", "w1").await;
        let second = store.lose_and_reclaim(&first, "w2").await;
        assert_eq!((second.attempt_type, second.attempt_index), (AttemptType::Reclaim, 1));
        let e = store.describe(first.execution_id).await;
        assert_eq!((e.reclaim_count, e.lease.unwrap().worker_instance.as_str()), (1, "w2"));
        let ends: Vec<_> = e.attempts.iter().map(|a| (a.index, a.r#type, a.state, a.worker_instance.as_str(), a.ended_at)).collect();
        assert_eq!(ends, [
            (0, AttemptType::Initial, AttemptState::Interrupted, "w1", Some(store.now())),
            (1, AttemptType::Reclaim, AttemptState::Started, "w2", None),
        ]);
    }

    async fn an_execution_whose_lease_is_lost_too_often_in_a_row_is_poisoned(store) {
        store.install_default_lane().await;
        for limit in [0, 2] {
            let mut task = store.start_with(Submission { max_reclaims: Some(limit), ..store.submission("mail") }, "w1").await;
            for _ in 0..limit {
                task = store.lose_and_reclaim(&task, "w1").await;
            }
            store.advance(LEASE_MS);
            store.fire_all().await;
            let e = store.describe(task.execution_id).await;
            assert_eq!((e.outcome, e.failure.unwrap().category.as_str()), (Some(Outcome::Failed), "poisoned"));
            assert_eq!(e.attempts.len() as i64, limit + 1);
        }
    }

    async fn an_attempt_that_renewed_three_times_starts_the_count_again(store) {
        store.install_default_lane().await;
        for (renewals, poisoned) in [(2, true), (3, false)] {
            let task = store.start_with(Submission { max_reclaims: Some(1), ..store.submission("mail") }, "w1").await;
            let task = store.lose_and_reclaim(&task, "w1").await;
            for _ in 0..renewals {
                renew(&store, &task).await;
            }
            store.advance(LEASE_MS);
            store.fire_all().await;
            let e = store.describe(task.execution_id).await;
            assert_eq!(e.outcome.is_some(), poisoned, "after {renewals} renewals");
            if !poisoned {
                assert_eq!(e.reclaim_count, 1);
            }
        }
    }

    async fn a_failure_starts_the_count_of_lost_leases_again(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { max_reclaims: Some(1), ..store.submission("mail") }, "w1").await;
        let task = store.lose_and_reclaim(&task, "w1").await;
        store.fail(&task, "net").await;
        store.advance(60_000);
        store.fire_all().await;
        let task = store.claim_one("w1").await;
        let task = store.lose_and_reclaim(&task, "w1").await;
        assert_eq!(store.describe(task.execution_id).await.reclaim_count, 1);
    }

    async fn what_a_worker_hands_back_counts_nowhere(store) {
        store.install_default_lane().await;
        let strict = Retry { max_attempts: Some(1), ..Retry::default() };
        let mut task = store.start_with(Submission { max_reclaims: Some(0), retry: Some(strict), ..store.submission("mail") }, "w1").await;
        let id = task.execution_id;
        for round in 0..4 {
            if round % 2 == 0 {
                assert_eq!(store.ask(&YieldExecution { execution_id: id, fence: task.fence() }).await, Ok(YieldExecutionReply::Yielded));
                assert_eq!(store.state(id).await, PublicState::Waiting, "eligible at once");
            } else {
                let at = store.now() + 50;
                let reply = store.ask(&DelayExecution { delay_ms: Some(50), ..DelayExecution::new(id, task.fence()) }).await;
                assert_eq!(reply, Ok(DelayExecutionReply::Delayed { delay_until: at, replayed: false }));
                assert_eq!(store.describe(id).await.delay_until, Some(at));
                store.advance(49);
                assert_eq!(store.fire_all().await, 0);
                store.advance(1);
                store.fire_all().await;
            }
            let e = store.describe(id).await;
            assert_eq!((e.reclaim_count, e.attempts.last().unwrap().state, e.attempts.last().unwrap().failure.is_none()), (0, AttemptState::Interrupted, true));
            task = store.claim_one("w1").await;
        }
        store.complete(&task).await;
    }

    async fn a_delay_already_past_hands_back_at_once(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let reply = store.ask(&DelayExecution { delay_until: Some(5), ..DelayExecution::new(task.execution_id, task.fence()) }).await;
        assert_eq!(reply, Ok(DelayExecutionReply::Delayed { delay_until: 5, replayed: false }));
        assert_eq!(store.state(task.execution_id).await, PublicState::Waiting);
        let again = store.claim_one("w1").await;
        for wrong in [DelayExecution::new(again.execution_id, again.fence()), DelayExecution { delay_ms: Some(1), delay_until: Some(1), ..DelayExecution::new(again.execution_id, again.fence()) }] {
            assert_eq!(refusal(store.ask(&wrong).await), ErrorCode::InvalidArgument);
        }
    }

    async fn a_long_attempt_that_hands_back_starts_the_count_again(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { max_reclaims: Some(1), ..store.submission("mail") }, "w1").await;
        let task = store.lose_and_reclaim(&task, "w1").await;
        for _ in 0..3 {
            renew(&store, &task).await;
        }
        store.ask(&YieldExecution { execution_id: task.execution_id, fence: task.fence() }).await.unwrap();
        let task = store.claim_one("w1").await;
        let task = store.lose_and_reclaim(&task, "w1").await;
        assert_eq!(store.describe(task.execution_id).await.reclaim_count, 1, "the losses were not in a row");
    }

    async fn epochs_rise_with_every_lease_even_when_the_clock_does_not(store) {
        store.install_default_lane().await;
        let mut task = store.start("mail", "w1").await;
        let mut epochs = vec![task.lease_epoch];
        for step in [0, 0, 1, -5_000] {
            store.ask(&YieldExecution { execution_id: task.execution_id, fence: task.fence() }).await.unwrap();
            store.advance(step);
            task = store.claim_one("w1").await;
            epochs.push(task.lease_epoch);
        }
        assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "{epochs:?}");
        assert_eq!(epochs[0], ff_conformance::harness::START_MS * 1_000, "an epoch starts at the clock");
    }

    async fn a_revoked_lease_ends_at_once(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let revoke = RevokeLease { reason: Some("stuck".into()), ..RevokeLease::new("ann".into(), task.execution_id) };
        assert_eq!(store.ask(&revoke).await, Ok(RevokeLeaseReply::Revoked { state: PublicState::Waiting }));
        assert_eq!(refusal(store.ask(&RenewLease::new(task.execution_id, task.fence())).await), ErrorCode::LeaseRevoked);
        let e = store.describe(task.execution_id).await;
        assert_eq!((e.reclaim_count, e.attempts[0].state), (1, AttemptState::Interrupted));
        let action = &e.operator_actions[0];
        assert_eq!((action.action.as_str(), action.actor.as_str(), action.reason.as_deref(), action.at), ("revoke", "ann", Some("stuck"), store.now()));
        assert_eq!(refusal(store.ask(&revoke).await), ErrorCode::ExecutionNotActive);
        assert_eq!(store.claim_one("w2").await.attempt_type, AttemptType::Reclaim);
    }

    async fn a_revoke_with_grace_asks_the_worker_to_yield(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let revoke = RevokeLease { grace: Some(true), ..RevokeLease::new("ann".into(), task.execution_id) };
        assert_eq!(store.ask(&revoke).await, Ok(RevokeLeaseReply::Requested));
        assert!(matches!(renew(&store, &task).await, RenewLeaseReply::Renewed { yield_requested: true, cancel_requested: false, .. }));
        assert!(store.describe(task.execution_id).await.lease.unwrap().yield_requested);
        store.ask(&YieldExecution { execution_id: task.execution_id, fence: task.fence() }).await.unwrap();
        let again = store.claim_one("w2").await;
        assert!(matches!(renew(&store, &again).await, RenewLeaseReply::Renewed { yield_requested: false, .. }), "the next lease is not asked to yield");
        assert_eq!(store.describe(task.execution_id).await.reclaim_count, 0);
    }

    async fn draining_a_worker_asks_each_of_its_leases_to_yield(store) {
        store.install_default_lane().await;
        for _ in 0..4 {
            store.submit_kind("mail").await;
        }
        let own = store.claim("w1", 3).await;
        let other = store.claim("w2", 1).await.remove(0);
        assert_eq!(store.ask(&drain("w1", false, 2)).await, Ok(DrainLeasesReply::Drained { changed: 2, more: true }));
        assert_eq!(store.ask(&drain("w1", false, 2)).await, Ok(DrainLeasesReply::Drained { changed: 1, more: false }));
        assert_eq!(store.ask(&drain("w1", false, 2)).await, Ok(DrainLeasesReply::Drained { changed: 0, more: false }));
        for task in &own {
            assert!(matches!(renew(&store, task).await, RenewLeaseReply::Renewed { yield_requested: true, .. }));
        }
        assert!(matches!(renew(&store, &other).await, RenewLeaseReply::Renewed { yield_requested: false, .. }));
    }

    async fn draining_with_force_takes_the_leases_away(store) {
        store.install_default_lane().await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let tasks = store.claim("w1", 3).await;
        assert_eq!(store.ask(&drain("w1", true, 2)).await, Ok(DrainLeasesReply::Drained { changed: 2, more: true }));
        assert_eq!(store.ask(&drain("w1", true, 2)).await, Ok(DrainLeasesReply::Drained { changed: 1, more: false }));
        for task in &tasks {
            assert_eq!(refusal(store.ask(&RenewLease::new(task.execution_id, task.fence())).await), ErrorCode::LeaseRevoked);
            assert_eq!(store.state(task.execution_id).await, PublicState::Waiting);
        }
        assert_eq!(store.claim("w2", 10).await.len(), 3);
    }

    async fn an_operator_hands_interrupted_work_to_a_chosen_worker(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let hand = GrantReclaim { execution_id: id, grant_id: store.uuid(0), instance: "w7".into(), ttl_ms: 5_000, actor: "ann".into(), namespace: "default".into(), lanes: vec!["default".into()], kinds: None, capabilities: vec![] };
        assert_eq!(refusal(store.ask(&hand).await), ErrorCode::ExecutionNotRunnable, "it still runs");
        store.ask(&RevokeLease::new("ann".into(), id)).await.unwrap();
        for elsewhere in [GrantReclaim { namespace: "other".into(), ..hand.clone() }, GrantReclaim { lanes: vec!["mail".into()], ..hand.clone() }] {
            assert_eq!(refusal(store.ask(&elsewhere).await), ErrorCode::InvalidArgument, "the worker does not serve its lane");
        }
        let GrantReclaimReply::Granted { grant } = store.ask(&hand).await.unwrap();
        assert_eq!((grant.execution_id, grant.grant_id, grant.expires_at), (id, hand.grant_id, store.now() + 5_000));
        let before = store.dump().await;
        assert_eq!(store.ask(&hand).await, Ok(GrantReclaimReply::Granted { grant }), "the same grant is returned again");
        assert_eq!(store.dump().await, before);
        assert!(store.claim("w2", 1).await.is_empty(), "no other worker gets it");
        let ids = store.lease_ids();
        let consume = |worker: &str| ConsumeGrant {
                keep: None,
            execution_id: id, grant_id: hand.grant_id, instance: worker.into(), worker_id: "k".into(), kinds: None, capabilities: vec![], lease_ttl_ms: LEASE_MS, attempt_id: ids.attempt_id, lease_id: ids.lease_id,
        };
        assert_eq!(refusal(store.ask(&consume("w2")).await), ErrorCode::GrantNotFound);
        let ConsumeGrantReply::Claimed { task: again } = store.ask(&consume("w7")).await.unwrap() else { panic!("not claimed") };
        assert_eq!((again.attempt_type, again.attempt_index), (AttemptType::Reclaim, 1));

        let fresh = store.submit_kind("mail").await;
        let hand = GrantReclaim { execution_id: fresh, grant_id: store.uuid(0), ..hand };
        assert_eq!(refusal(store.ask(&hand).await), ErrorCode::ExecutionNotRunnable, "it was never interrupted");
    }

    async fn progress_is_noted_until_the_next_attempt(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let note = |pct, message: Option<&str>| UpdateProgress { message: message.map(str::to_owned), ..UpdateProgress::new(id, task.fence(), pct) };
        assert_eq!(store.ask(&note(10, Some("reading"))).await, Ok(UpdateProgressReply::Noted));
        assert_eq!(store.describe(id).await.progress, Some(Progress { pct: 10, message: Some("reading".into()) }));
        assert_eq!(store.ask(&note(100, None)).await, Ok(UpdateProgressReply::Noted));
        assert_eq!(store.describe(id).await.progress, Some(Progress::new(100)));
        let task = store.lose_and_reclaim(&task, "w1").await;
        assert_eq!(store.describe(id).await.progress, None);
        store.complete(&task).await;
    }

    async fn a_worker_lists_exactly_its_leases(store) {
        store.install_default_lane().await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let tasks = store.claim("w1", 2).await;
        store.claim("w2", 1).await;
        let of = |worker: &str| ListExecutions { worker: Some(worker.into()), ..ListExecutions::new(10) };
        let ListExecutionsReply::Page { items, .. } = store.ask(&of("w1")).await.unwrap();
        let mut ids: Vec<_> = items.iter().map(|item| item.execution_id).collect();
        ids.sort();
        let mut expected: Vec<_> = tasks.iter().map(|task| task.execution_id).collect();
        expected.sort();
        assert_eq!(ids, expected);
        store.complete(&tasks[0]).await;
        let ListExecutionsReply::Page { items, .. } = store.ask(&of("w1")).await.unwrap();
        assert_eq!(items.len(), 1);
    }

    async fn a_claim_takes_at_most_what_was_asked_for(store) {
        store.install_default_lane().await;
        for _ in 0..5 {
            store.submit_kind("mail").await;
        }
        assert_eq!(store.claim("w1", 3).await.len(), 3);
        let short = ClaimExecutions { lease_ids: vec![], ..store.claim_call("w1", 1) };
        assert_eq!(refusal(store.call(HOME, &short).await), ErrorCode::InvalidArgument);
        let short = ClaimExecutions { attempt_ids: vec![], ..store.claim_call("w1", 1) };
        assert_eq!(refusal(store.call(HOME, &short).await), ErrorCode::InvalidArgument);
        let PartitionStatsReply::Stats { lanes, .. } = store.ask(&PartitionStats { namespace: Some(NAMESPACE.into()), lane: Some(LANE.into()), offset: None }).await.unwrap();
        assert_eq!((lanes[0].active, lanes[0].eligible), (3, 2));
    }

    async fn the_live_leases_of_a_worker_are_found_with_the_tasks_of_a_request(store) {
        store.install_default_lane().await;
        for _ in 0..4 {
            store.submit(Submission { input: Some("in".into()), ..store.submission("mail") }).await;
        }
        let claim = store.claim_call("w1", 2);
        let mut tasks = store.claim_with(HOME, &claim).await;
        tasks.sort_by_key(|task| task.execution_id);
        let more = ClaimExecutions { lease_ttl_ms: 1_000, ..store.claim_call("w1", 1) };
        let short = store.claim_with(HOME, &more).await.remove(0);
        store.claim("w2", 1).await;
        let find = |lease_prefix| FindLeases { instance: "w1".into(), lease_prefix };
        let prefix = || Some(claim.lease_ids[0].to_string()[..23].to_owned());
        let FindLeasesReply::Found { leases, tasks: none } = store.ask(&find(None)).await.unwrap();
        let mut held: Vec<_> = tasks.iter().chain([&short]).map(|task| (task.execution_id, task.lease_id, task.lease_expires_at)).collect();
        held.sort();
        assert_eq!(leases.iter().map(|lease| (lease.execution_id, lease.lease_id, lease.lease_expires_at)).collect::<Vec<_>>(), held);
        assert!(none.is_empty());
        let FindLeasesReply::Found { tasks: found, .. } = store.ask(&find(prefix())).await.unwrap();
        assert_eq!(found, tasks);
        store.complete(&tasks[0]).await;
        store.advance(1_000);
        let FindLeasesReply::Found { leases, tasks: found } = store.ask(&find(prefix())).await.unwrap();
        assert_eq!((leases.len(), &found[..]), (1, &tasks[1..]), "an ended or expired lease does not count, even before its timer");
    }
}
