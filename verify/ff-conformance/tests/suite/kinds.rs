//! Routing by kind: a worker is given the kinds it takes and no others, in the order of all of them, however many kinds or
//! requirement sets a lane has.

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, HOME, LANE, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::generated::*;
use ff_script::{Kinds, Route};
use uuid::Uuid;

fn claim_of(store: &Store, kinds: &[&str], max: i64) -> ClaimExecutions {
    ClaimExecutions { kinds: Some(Kinds::of(kinds.iter().copied()).packed()), ..store.claim_call("w1", max) }
}

fn ids(tasks: &[Task]) -> Vec<ExecutionId> {
    tasks.iter().map(|task| task.execution_id).collect()
}

async fn claim(store: &Store, kinds: &[&str], max: i64) -> Vec<Task> {
    store.claim_with(HOME, &claim_of(store, kinds, max)).await
}

/// Claims, and answers the score of what the worker could take next.
async fn claim_and_look(store: &Store, call: &ClaimExecutions) -> (Vec<Task>, Option<i64>) {
    match store.ask(call).await.unwrap() {
        ClaimExecutionsReply::Claimed { tasks, next_score, .. } => (tasks, next_score),
        other => panic!("{other:?}"),
    }
}

fn requiring(store: &Store, kind: &str, token: &str) -> Submission {
    Submission { requires: Some(vec![token.to_owned()]), ..store.submission(kind) }
}

async fn submit_all(store: &Store, submissions: Vec<Submission>) -> Vec<ExecutionId> {
    let calls: Vec<_> = submissions.into_iter().map(|submission| SubmitExecution { submission }).collect();
    let mut ids = Vec::new();
    for part in calls.chunks(64) {
        for answer in store.ask_all(part).await {
            let Ok(SubmitExecutionReply::Created { execution_id, .. }) = answer else { panic!("{answer:?}") };
            ids.push(execution_id);
        }
    }
    ids
}

fn class(kinds: Option<&[&str]>, tokens: &[&str]) -> WorkerClass {
    let owned = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
    WorkerClass { capabilities: owned(tokens), kinds: kinds.map(owned) }
}

/// blocked, unblocked
async fn review(store: &Store, workers: &[WorkerClass]) -> (i64, i64) {
    let (mut blocked, mut unblocked, mut call) =
        (0, 0, ReviewRoutes::new(LANE.into(), 64, NAMESPACE.into(), workers.to_vec()));
    loop {
        let ReviewRoutesReply::Reviewed { blocked: out, unblocked: back, more, next_cursor, next_skip, .. } =
            store.ask(&call).await.unwrap();
        (blocked, unblocked, call.cursor) = (blocked + out, unblocked + back, next_cursor);
        if !more {
            if next_cursor.is_none() && next_skip.is_none() {
                return (blocked, unblocked);
            }
            call.skip = next_skip.or(call.skip);
        }
    }
}

for_each_host! {
    async fn a_worker_is_given_its_kinds_and_no_others(store) {
        store.install_default_lane().await;
        let mail = store.submit_kind("mail").await;
        let call = store.submit_kind("call").await;
        let (tasks, next) = claim_and_look(&store, &claim_of(&store, &["call"], 9)).await;
        assert_eq!((ids(&tasks), next), (vec![call], None), "nothing more for this worker");
        assert!(claim(&store, &["fax", "print"], 9).await.is_empty());
        let (tasks, next) = claim_and_look(&store, &store.claim_call("w2", 9)).await;
        assert_eq!((ids(&tasks), next), (vec![mail], None), "a worker without kinds takes all of them");
        store.assert_sound().await;
    }

    async fn priority_holds_over_all_kinds_a_worker_takes(store) {
        store.install_default_lane().await;
        let mut expected = Vec::new();
        for (at, kind) in ["a", "b", "c", "a", "b", "c", "c", "a"].into_iter().enumerate() {
            let priority = [3, 1, 7, 2, 9, 0, 8, 5][at];
            let id = store.submit(Submission { priority: Some(priority), ..store.submission(kind) }).await;
            if kind != "b" {
                expected.push((std::cmp::Reverse(priority), id));
            }
            store.advance(1);
        }
        expected.sort();
        let mut taken = Vec::new();
        for max in [1, 2, 1, 9] {
            taken.extend(ids(&claim(&store, &["c", "a"], max).await));
        }
        assert_eq!(taken, expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
        assert_eq!(store.claim("w2", 9).await.len(), 2, "what it does not take is still there");
        store.assert_sound().await;
    }

    async fn what_a_worker_cannot_run_never_stands_in_front_of_what_it_can(store) {
        store.install_default_lane().await;
        let others: Vec<_> = (0..300).map(|n| store.submission(&format!("other-{n}"))).collect();
        submit_all(&store, others).await;
        store.advance(1);
        let own = store.submit_kind("own").await;
        let (tasks, next) = claim_and_look(&store, &claim_of(&store, &["own", "never"], 1)).await;
        assert_eq!((ids(&tasks), next), (vec![own], None));
        // A worker of so many kinds that they are not asked for by name reads on until it finds its own.
        let last = store.submit_kind("own").await;
        let many: Vec<String> = (0..200).map(|n| format!("mine-{n}")).chain(["own".to_owned()]).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(ids(&claim(&store, &many, 1).await), [last]);
        store.assert_sound().await;
    }

    async fn a_lane_with_a_thousand_kinds_is_drained_in_its_order(store) {
        store.install_default_lane().await;
        let mut expected = Vec::new();
        for round in 0..2 {
            let some: Vec<_> = (0..1_000).filter(|n| n % 2 == round || n % 3 == 0).map(|n| store.submission(&format!("kind-{n}"))).collect();
            let mut ids = submit_all(&store, some).await;
            ids.sort_by_key(ToString::to_string);
            expected.extend(ids);
            store.advance(1);
        }
        let all: Vec<String> = (0..1_000).map(|n| format!("kind-{n}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut taken = Vec::new();
        loop {
            let (tasks, next) = claim_and_look(&store, &claim_of(&store, &all, 64)).await;
            taken.extend(ids(&tasks));
            if next.is_none() { break }
        }
        assert!(taken == expected, "{} taken of {}, or in another order", taken.len(), expected.len());
        store.assert_sound().await;
    }

    async fn none_of_thousands_of_requirement_sets_starves(store) {
        store.install_default_lane().await;
        let work: Vec<_> = (0..2_000).map(|n| requiring(&store, "mail", &format!("tenant-{n}"))).collect();
        let work = submit_all(&store, work).await;
        for n in [1_999, 0, 1_234, 257] {
            let token = format!("tenant-{n}");
            assert_eq!(ids(&store.claim_as("w1", &[&token], 9).await), [work[n]], "{token}");
        }
        // With so many capabilities their sets are not asked for by name.
        let tokens: Vec<String> = (0..8).map(|n| format!("tenant-{}", 1_800 + n)).collect();
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        assert_eq!(store.claim_as("w1", &tokens, 64).await.len(), 8);
        store.assert_sound().await;
    }

    async fn work_that_comes_back_is_found_among_the_heads(store) {
        store.install_default_lane().await;
        store.submit_kind("main").await;
        let first = store.submit_kind("mail").await;
        store.advance(5);
        store.submit_kind("mail").await;
        let task = claim(&store, &["mail"], 1).await.remove(0);
        assert_eq!(task.execution_id, first);
        store.ask(&YieldExecution { execution_id: task.execution_id, fence: task.fence() }).await.unwrap();
        let (tasks, _) = claim_and_look(&store, &claim_of(&store, &["mail"], 1)).await;
        assert_eq!(ids(&tasks), [first], "it has its old place");
        store.assert_sound().await;
    }

    async fn a_head_that_was_cancelled_is_passed_over(store) {
        store.install_default_lane().await;
        store.submit_kind("main").await;
        let gone = store.submit_kind("mail").await;
        store.advance(1);
        let call = store.submit_kind("call").await;
        store.ask(&CancelExecution::new("ann".into(), gone)).await.unwrap();
        assert_eq!(ids(&claim(&store, &["call", "mail"], 9).await), [call]);
        let again = store.submit_kind("mail").await;
        assert_eq!(ids(&claim(&store, &["call", "mail"], 9).await), [again]);
        store.assert_sound().await;
    }

    async fn a_kind_no_live_worker_takes_is_blocked_and_comes_back_with_one_that_does(store) {
        store.install_default_lane().await;
        let mail = store.submit_kind("mail").await;
        let call = store.submit_kind("call").await;
        let mailer = [class(Some(&["mail"]), &[])];
        assert_eq!(review(&store, &mailer).await, (0, 0), "a worker may be restarting");
        store.advance(1_000);
        assert_eq!(review(&store, &mailer).await, (1, 0));
        let e = store.describe(call).await;
        assert_eq!(e.blocking_reason, Some(BlockingReason::WaitingForCapableWorker));
        assert_eq!(e.blocking_detail.unwrap().get("kind").map(String::as_str), Some("call"));
        assert_eq!(store.describe(mail).await.blocking_reason, None);
        let later = store.submit_kind("call").await;
        assert_eq!(store.describe(later).await.blocking_reason, Some(BlockingReason::WaitingForCapableWorker), "at once");
        assert_eq!(review(&store, &[class(Some(&["call"]), &[]), class(None, &["x"])]).await, (0, 2));
        assert_eq!(ids(&claim(&store, &["call"], 9).await), [call, later]);
        store.assert_sound().await;
    }

    async fn work_that_requires_nothing_waits_where_it_is_while_its_lane_has_no_worker(store) {
        store.install_default_lane().await;
        let id = store.submit_kind("mail").await;
        for _ in 0..3 {
            assert_eq!(review(&store, &[]).await, (0, 0));
            store.advance(1_000);
        }
        assert_eq!(store.describe(id).await.blocking_reason, None);
        assert_eq!(ids(&claim(&store, &["mail"], 1).await), [id]);
    }

    async fn capabilities_count_only_with_a_worker_that_takes_the_kind(store) {
        store.install_default_lane().await;
        let id = store.submit(requiring(&store, "render", "gpu")).await;
        let workers = [class(Some(&["mail"]), &["gpu"]), class(Some(&["render"]), &[])];
        review(&store, &workers).await;
        store.advance(1_000);
        assert_eq!(review(&store, &workers).await, (1, 0));
        let detail = store.describe(id).await.blocking_detail.unwrap();
        assert_eq!((detail.get("kind"), detail["requires"].as_str()), (None, "gpu"), "the kind is taken, the capability is missing");
        assert_eq!(review(&store, &[class(Some(&["mail", "render"]), &["gpu"])]).await, (0, 1));
    }

    async fn more_queues_than_one_call_compares_are_reviewed_in_steps(store) {
        store.install_default_lane().await;
        let work: Vec<_> = (0..700).map(|n| store.submission(&format!("kind-{n}"))).collect();
        submit_all(&store, work).await;
        let nobody = [class(Some(&["kind-7"]), &[])];
        review(&store, &nobody).await;
        store.advance(1_000);
        assert_eq!(review(&store, &nobody).await, (699, 0));
        assert_eq!(review(&store, &[class(None, &[])]).await, (0, 699));
        assert_eq!(store.claim("w1", 64).await.len(), 64);
        store.assert_sound().await;
    }

    async fn a_worker_registers_its_kinds(store) {
        let register = |kinds: Option<Vec<String>>| RegisterWorker { kinds, ..RegisterWorker::new(vec![], "w1".into(), vec![LANE.into()], NAMESPACE.into(), 1, "mailer".into()) };
        let refused = store.call(Route::Fleet, &register(Some(vec![]))).await;
        assert!(format!("{refused:?}").contains("must name at least one kind"), "{refused:?}");
        assert_eq!(refusal(refused), ErrorCode::InvalidArgument);
        for kinds in [Some(vec!["mail".to_owned(), "call".to_owned()]), None] {
            store.call(Route::Fleet, &register(kinds.clone())).await.unwrap();
            let GetWorkerReply::Worker { item } = store.call(Route::Fleet, &GetWorker { instance: "w1".into() }).await.unwrap();
            assert_eq!(item.kinds, kinds);
        }
    }

    async fn a_grant_is_given_to_a_worker_that_takes_the_kind(store) {
        store.install_default_lane().await;
        store.submit_kind("mail").await;
        let call = store.submit_kind("call").await;
        let issue = IssueGrants {
            kinds: Some(Kinds::of(["call"]).packed()),
            capabilities: vec![], grant_ids: vec![Uuid::from_u128(7), Uuid::from_u128(1 << 17)], instance: "w1".into(), lane: LANE.into(), lease_ids: None, max: 2,
            namespace: NAMESPACE.into(), ttl_ms: 5_000,
        };
        let granted = store.ask(&issue).await.unwrap();
        let IssueGrantsReply::Granted { grants, next_score } = &granted else { panic!("{granted:?}") };
        assert_eq!((grants.iter().map(|grant| grant.execution_id).collect::<Vec<_>>(), *next_score), (vec![call], None));
        let again = store.ask(&issue).await.unwrap();
        let IssueGrantsReply::Granted { grants: same, .. } = again else { panic!("{again:?}") };
        assert_eq!(same, *grants, "a repetition gets what it got");
        let ids = store.lease_ids();
        let consume = ConsumeGrant {
            kinds: Some(Kinds::of(["mail"]).packed()),
            attempt_id: ids.attempt_id, capabilities: vec![], execution_id: call, grant_id: grants[0].grant_id, instance: "w1".into(), keep: None,
            lease_id: ids.lease_id, lease_ttl_ms: 5_000, worker_id: "w".into(),
        };
        assert_eq!(refusal(store.ask(&consume).await), ErrorCode::NotCapable);
        store.ask(&ConsumeGrant { kinds: issue.kinds.clone(), ..consume }).await.unwrap();
    }

    async fn a_queue_that_claims_lost_sight_of_is_found_and_repaired(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        store.submit_kind("main").await;
        let id = store.submit_kind("mail").await;
        store.assert_sound().await;
        let place = format!("ff:idx:{{p:0}}:lane:{NAMESPACE}/{LANE}");
        for damage in [["ZREM", &format!("{place}:heads"), "any:mail"].as_slice(), &["ZADD", &format!("{place}:heads"), "4000000000000", "any:mail"], &["HDEL", &format!("{place}:queues"), "any:mail"]] {
            server.command::<redis::Value>(damage).unwrap();
            let CheckExecutionsReply::Checked { findings, .. } =
                store.ask(&CheckExecutions { offset: 0, limit: 64, repair: true }).await.unwrap();
            assert_eq!(findings.iter().map(|finding| (finding.invariant, finding.repaired)).collect::<Vec<_>>(), [(10, true)], "{damage:?}: {findings:?}");
            store.assert_sound().await;
        }
        assert_eq!(ids(&claim(&store, &["mail"], 1).await), [id]);
    }

    async fn work_of_one_kind_costs_no_more_commands_than_without_kinds(store) {
        store.install_default_lane().await;
        // As before there were kinds. The first of a kind registers its queue.
        store.submit_kind("mail").await;
        claim(&store, &["mail"], 1).await;
        store.advance(1);
        let mut cost = Vec::new();
        for _ in 0..2 {
            let submit = store.counted(HOME, &SubmitExecution { submission: store.submission("mail") }).await.unwrap();
            let claim = store.counted(HOME, &claim_of(&store, &["mail"], 1)).await.unwrap();
            let ClaimExecutionsReply::Claimed { tasks, .. } = claim.reply else { panic!("{:?}", claim.reply) };
            let complete = store.counted(HOME, &CompleteExecution::new(tasks[0].execution_id, tasks[0].fence())).await.unwrap();
            cost.push([submit.calls, claim.calls, complete.calls]);
        }
        assert_eq!(cost, [[8, 10, 7], [8, 10, 7]]);
    }
}
