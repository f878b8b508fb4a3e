//! Quotas through the dispatcher: never more than allowed, and whoever waits is called without a sweep.

use std::collections::BTreeSet;
use std::time::Duration;

use ff_core::types::{ExecutionId, QuotaPolicyId};
use ff_engine::NewExecution;
use ff_script::generated::{
    BlockingReason, GrantReclaim, PublicState, Quota, QuotaRate, QuotaRef, QuotaWeights, RateMode, YieldExecution,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::kit::{Kit, LANE, claim, eventually, ms, worker};
use crate::on_both_hosts;

fn quota() -> Quota {
    Quota::new(QuotaPolicyId::from_uuid(Uuid::now_v7()), "default".to_owned(), false)
}

async fn create(kit: &Kit, quota: Quota) -> QuotaPolicyId {
    let id = quota.quota_id;
    assert!(kit.operations().create_quota(quota, "ops").await.unwrap().1, "it is new");
    id
}

async fn submit(kit: &Kit, quotas: &[QuotaPolicyId]) -> ExecutionId {
    let mut new = NewExecution::new("default", LANE, "mail");
    new.fields.quotas = Some(quotas.iter().map(|id| QuotaRef::new(*id.as_uuid(), "k".to_owned())).collect());
    kit.submit_new(new).await
}

/// Runs everything that is submitted, each for a moment, until `count` have ended.
async fn run_all(kit: &Kit, count: usize, at_once: u16, each: Duration) {
    let dispatcher = kit.dispatcher();
    let who = worker("w", &[], 30_000);
    let mut ended = BTreeSet::new();
    while ended.len() < count {
        let tasks = claim(&dispatcher, &who, at_once, ms(20_000)).await;
        assert!(!tasks.is_empty(), "{} of {count} ended and nothing more starts", ended.len());
        tokio::time::sleep(each).await;
        for task in tasks {
            kit.complete(&task).await;
            assert!(ended.insert(task.execution_id));
        }
    }
}

/// When executions started, by the store's clock.
async fn starts(kit: &Kit) -> Vec<i64> {
    let mut at = Vec::new();
    for route in kit.operations().client().execution_routes() {
        let items = kit.operations().client().events(route, None, 1_000).await.unwrap();
        at.extend(items.iter().filter(|event| event.r#type == "execution.started").map(|event| event.at));
    }
    at.sort_unstable();
    at
}

on_both_hosts! {
    async fn no_more_run_than_a_quota_has_slots(kit) {
        let id = create(&kit, Quota { concurrency: Some(3), ..quota() }).await;
        for _ in 0..20 {
            submit(&kit, &[id]).await;
        }
        run_all(&kit, 20, 8, ms(5)).await;
        assert!(kit.most_at_once().await <= 3);
        eventually("the slots come back", async || {
            let (_, state) = kit.operations().quota(id, Some("k")).await.unwrap();
            state.filter(|state| state.held == 0 && state.waiting == 0)
        })
        .await;
    }

    async fn a_rate_lets_so_many_start_in_a_window(kit) {
        let rate = QuotaRate { limit: 4, window_ms: 400, mode: RateMode::Sliding };
        let id = create(&kit, Quota { rate: Some(rate), ..quota() }).await;
        for _ in 0..14 {
            submit(&kit, &[id]).await;
        }
        let since = Instant::now();
        run_all(&kit, 14, 8, ms(0)).await;
        assert!(since.elapsed() >= ms(1_150), "14 at 4 in 400 ms took {:?}", since.elapsed());
        // An admission comes before its start, by less than a grant lasts: only the count over the whole run is exact.
        assert_eq!(starts(&kit).await.len(), 14);
    }

    async fn a_smooth_rate_starts_one_after_the_other(kit) {
        let rate = QuotaRate { limit: 10, window_ms: 500, mode: RateMode::Smooth };
        let id = create(&kit, Quota { rate: Some(rate), ..quota() }).await;
        for _ in 0..10 {
            submit(&kit, &[id]).await;
        }
        let since = Instant::now();
        run_all(&kit, 10, 4, ms(0)).await;
        assert!(since.elapsed() >= ms(440), "10 with 50 ms between took {:?}", since.elapsed());
    }

    async fn who_waits_is_called_into_a_free_place_once(kit) {
        let id = create(&kit, Quota { concurrency: Some(4), ..quota() }).await;
        for _ in 0..100 {
            submit(&kit, &[id]).await;
        }
        run_all(&kit, 100, 16, ms(1)).await;
        // Each may be refused once when it comes, and once more when another took the place it was called into.
        let called = kit.count_events("execution.ready").await;
        assert!(called <= 250, "{called} calls for 100 executions");
    }

    async fn a_backlog_is_called_as_fast_as_its_rate_allows(kit) {
        let rate = QuotaRate { limit: 100, window_ms: 2_000, mode: RateMode::Smooth };
        let id = create(&kit, Quota { rate: Some(rate), ..quota() }).await;
        for _ in 0..40 {
            submit(&kit, &[id]).await;
        }
        // All are refused at first but one; from then on whoever is next is called when its time comes.
        let since = Instant::now();
        run_all(&kit, 40, 64, ms(0)).await;
        assert!(since.elapsed() >= ms(780), "40 with 20 ms between took {:?}", since.elapsed());
    }

    async fn all_quotas_of_an_execution_have_to_pass(kit) {
        let two = create(&kit, Quota { concurrency: Some(2), ..quota() }).await;
        let one = create(&kit, Quota { concurrency: Some(1), weighted: Some(QuotaWeights { limit: 1_000, window_ms: 1_000 }), ..quota() }).await;
        for n in 0..12 {
            submit(&kit, &[two, one][..if n % 2 == 0 { 2 } else { 1 }]).await;
        }
        run_all(&kit, 12, 6, ms(5)).await;
        assert!(kit.most_at_once().await <= 2);
    }

    async fn what_needs_admission_takes_its_turn_among_what_does_not(kit) {
        let id = create(&kit, Quota { concurrency: Some(10), ..quota() }).await;
        for (priority, metered) in [(1, false), (5, true), (3, false), (4, true), (2, false)] {
            // All in one partition: there the order is exact.
            let mut new = NewExecution::new("default", LANE, "mail").with_id(ExecutionId::mint_with_seed(3));
            new.fields.priority = Some(priority);
            new.fields.quotas = metered.then(|| vec![QuotaRef::new(*id.as_uuid(), "k".to_owned())]);
            kit.submit_new(new).await;
        }
        let dispatcher = kit.dispatcher();
        let mut order = Vec::new();
        for _ in 0..5 {
            let task = claim(&dispatcher, &worker("w", &[], 30_000), 1, ms(10_000)).await.remove(0);
            order.push(task.priority);
            kit.complete(&task).await;
        }
        assert_eq!(order, [5, 4, 3, 2, 1]);
    }

    async fn who_is_refused_says_why_and_a_throttle_holds_all(kit) {
        let id = create(&kit, Quota { concurrency: Some(1), ..quota() }).await;
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        submit(&kit, &[id]).await;
        let first = claim(&dispatcher, &who, 1, ms(10_000)).await.remove(0);
        let second = submit(&kit, &[id]).await;
        assert!(claim(&dispatcher, &who, 1, ms(300)).await.is_empty());
        let waiting = eventually("it is blocked", async || {
            Some(kit.operations().describe(second).await.unwrap()).filter(|e| e.blocking_reason.is_some())
        })
        .await;
        assert_eq!((waiting.state, waiting.blocking_reason), (PublicState::RateLimited, Some(BlockingReason::WaitingForQuota)));
        let detail = waiting.blocking_detail.unwrap();
        let facts = [("quota_id", id.to_string()), ("key", "k".to_owned()), ("part", "concurrency".to_owned()), ("used", "1".to_owned()), ("limit", "1".to_owned())];
        for (name, fact) in facts {
            assert_eq!(detail.get(name), Some(&fact), "{name}");
        }
        let until = now_ms() + 700;
        assert_eq!(kit.operations().throttle_quota(id, "k", until, Some("ann")).await.unwrap(), Some(until));
        kit.complete(&first).await;
        assert!(claim(&dispatcher, &who, 1, ms(300)).await.is_empty(), "the key is throttled");
        let task = claim(&dispatcher, &who, 1, ms(10_000)).await.remove(0);
        assert_eq!(task.execution_id, second);
        assert!(now_ms() >= until);
        kit.complete(&task).await;
    }

    async fn the_slot_of_a_worker_that_died_comes_back(kit) {
        let id = create(&kit, Quota { concurrency: Some(1), ..quota() }).await;
        let dispatcher = kit.dispatcher();
        submit(&kit, &[id]).await;
        let lost = claim(&dispatcher, &worker("w1", &[], 1_000), 1, ms(10_000)).await.remove(0);
        let again = claim(&dispatcher, &worker("w2", &[], 30_000), 1, ms(10_000)).await.remove(0);
        assert_eq!((again.execution_id, again.attempt_index), (lost.execution_id, 1));
        kit.complete(&again).await;
    }

    async fn a_grant_that_is_not_used_gives_its_start_back(kit) {
        let rate = QuotaRate { limit: 1, window_ms: 600_000, mode: RateMode::Sliding };
        let id = create(&kit, Quota { rate: Some(rate), ..quota() }).await;
        let dispatcher = kit.dispatcher();
        submit(&kit, &[id]).await;
        let granted = dispatcher.grant(&worker("w1", &[], 30_000), 1, 300).await.unwrap();
        assert_eq!(granted.len(), 1);
        let task = claim(&dispatcher, &worker("w2", &[], 30_000), 1, ms(10_000)).await.remove(0);
        kit.complete(&task).await;
        submit(&kit, &[id]).await;
        assert!(claim(&dispatcher, &worker("w2", &[], 30_000), 1, ms(300)).await.is_empty(), "the one start was used");
    }

    async fn a_reclaim_is_admitted_too(kit) {
        let id = create(&kit, Quota { concurrency: Some(1), ..quota() }).await;
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        let first = submit(&kit, &[id]).await;
        let task = claim(&dispatcher, &who, 1, ms(10_000)).await.remove(0);
        assert_eq!(task.execution_id, first);
        let client = kit.operations().client();
        client.call(client.route_of(&first), &YieldExecution { execution_id: first, fence: ff_engine::fence_of(&task) }).await.unwrap();
        let reclaim = || GrantReclaim { actor: "ann".to_owned(), execution_id: first, grant_id: Uuid::now_v7(), instance: "w".to_owned(), ttl_ms: 300, namespace: "default".to_owned(), lanes: vec![LANE.to_owned()], kinds: None, capabilities: vec![] };
        eventually("the slot came back", async || {
            let (_, state) = kit.operations().quota(id, Some("k")).await.unwrap();
            state.filter(|state| state.held == 0)
        })
        .await;
        dispatcher.grant_reclaim(&reclaim()).await.unwrap();
        let (_, state) = kit.operations().quota(id, Some("k")).await.unwrap();
        assert_eq!(state.unwrap().held, 1, "the reclaim holds the slot");
        eventually("the grant runs out", async || {
            let (_, state) = kit.operations().quota(id, Some("k")).await.unwrap();
            state.filter(|state| state.held == 0)
        })
        .await;
    }
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
