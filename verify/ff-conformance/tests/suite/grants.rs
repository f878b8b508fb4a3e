//! Grants: work reserved for one worker during admission, then consumed, returned, blocked or expired.

use std::collections::BTreeMap;

use ff_conformance::harness::{code_of, refusal};
use ff_conformance::work::{HOME, LANE, LEASE_MS, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::generated::*;
use uuid::Uuid;

fn issue(store: &Store, worker: &str, max: i64) -> IssueGrants {
    let grant_ids = (0..max).map(|_| store.uuid(0)).collect();
    IssueGrants {
        namespace: NAMESPACE.into(),
        lane: LANE.into(),
        instance: worker.into(),
        kinds: None,
        capabilities: vec![],
        max,
        lease_ids: None,
        ttl_ms: 5_000,
        grant_ids,
    }
}

async fn issued(store: &Store, call: &IssueGrants) -> Vec<Grant> {
    match store.ask(call).await {
        Ok(IssueGrantsReply::Granted { grants, .. }) => grants,
        other => panic!("not granted: {other:?}"),
    }
}

fn consume(store: &Store, grant: &Grant, worker: &str) -> ConsumeGrant {
    let ids = store.lease_ids();
    ConsumeGrant {
        keep: None,
        execution_id: grant.execution_id,
        grant_id: grant.grant_id,
        instance: worker.into(),
        worker_id: "k".into(),
        kinds: None,
        capabilities: vec![],
        lease_ttl_ms: LEASE_MS,
        attempt_id: ids.attempt_id,
        lease_id: ids.lease_id,
    }
}

fn metered(store: &Store, kind: &str) -> Submission {
    Submission {
        quotas: Some(vec![QuotaRef { quota_id: Uuid::from_u128(5), key: "k".into(), weight: Some(2) }]),
        ..store.submission(kind)
    }
}

fn block(grant: &Grant, reason: AdmissionReason) -> BlockExecution {
    BlockExecution {
        unheld: None,
        execution_id: grant.execution_id,
        grant_id: grant.grant_id,
        reason,
        detail: BTreeMap::from([("quota".into(), "q1".into())]),
    }
}

async fn stats(store: &Store) -> LaneCounts {
    let PartitionStatsReply::Stats { mut lanes, .. } = store.ask(&PartitionStats::default()).await.unwrap();
    lanes.remove(0)
}

for_each_host! {
    async fn a_late_copy_of_a_request_gets_a_grant_of_its_own(store) {
        store.install_default_lane().await;
        let id = store.submit(metered(&store, "metered")).await;
        let call = issue(&store, "w1", 1);
        let first = issued(&store, &call).await.remove(0);
        assert_eq!(issued(&store, &call).await, std::slice::from_ref(&first), "asked again, it is the same grant");
        store.advance(5_000);
        store.fire_due(HOME).await;
        let second = issued(&store, &call).await.remove(0);
        assert_eq!((second.execution_id, first.grant_id == second.grant_id), (id, false), "what the first owes is not the second's");
        assert_eq!(issued(&store, &call).await, std::slice::from_ref(&second));
        assert_eq!(refusal(store.ask(&consume(&store, &first, "w1")).await), ErrorCode::GrantNotFound, "the first was admitted, not the second");
        assert!(store.ask(&consume(&store, &second, "w1")).await.is_ok());
    }

    async fn work_that_needs_admission_is_reached_by_a_grant_only(store) {
        store.install_default_lane().await;
        let id = store.submit(metered(&store, "metered")).await;
        let budgets = Submission { budgets: Some(vec![BudgetRef::new(Uuid::from_u128(6))]), ..store.submission("budgeted") };
        store.advance(1);
        let budgeted = store.submit(budgets).await;
        assert!(store.claim("w1", 9).await.is_empty());
        assert!(store.claim_as("w1", &["x"], 9).await.is_empty());
        let grants = issued(&store, &issue(&store, "w1", 9)).await;
        assert_eq!(grants.iter().map(|grant| grant.execution_id).collect::<Vec<_>>(), [id, budgeted]);
        let e = store.describe(id).await;
        assert_eq!((e.state, e.granted_until), (PublicState::Waiting, Some(store.now() + 5_000)));
        assert_eq!(grants[0].quotas, Some(e.quotas));
        assert_eq!((grants[0].kind.as_str(), grants[0].score, grants[0].expires_at), ("metered", e.score, store.now() + 5_000));
        let call = consume(&store, &grants[0], "w1");
        let Ok(ConsumeGrantReply::Claimed { task }) = store.ask(&call).await else { panic!("not claimed") };
        assert_eq!((task.execution_id, task.attempt_type, task.attempt_id, task.lease_id), (id, AttemptType::Initial, call.attempt_id, call.lease_id));
        store.complete(&task).await;
    }

    async fn grants_go_to_the_best_work_admission_or_not(store) {
        store.install_default_lane().await;
        for (kind, priority, needs) in [("plain-low", 1, false), ("metered-high", 3, true), ("plain-mid", 2, false)] {
            let submission = if needs { metered(&store, kind) } else { store.submission(kind) };
            store.submit(Submission { priority: Some(priority), ..submission }).await;
        }
        let call = issue(&store, "w1", 2);
        let Ok(IssueGrantsReply::Granted { grants, next_score }) = store.ask(&call).await else { panic!("paused") };
        assert_eq!(grants.iter().map(|grant| grant.kind.as_str()).collect::<Vec<_>>(), ["metered-high", "plain-mid"]);
        assert_eq!(next_score, Some(store.now() - ff_conformance::work::STRICT), "the score of plain-low");
        let counts = stats(&store).await;
        assert_eq!((counts.eligible, counts.granted, counts.active), (1, 2, 0));
    }

    async fn a_repeated_issue_answers_the_same_grants(store) {
        store.install_default_lane().await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let call = issue(&store, "w1", 2);
        let mut first = issued(&store, &call).await;
        let before = store.dump().await;
        let mut again = issued(&store, &call).await;
        first.sort_by_key(|grant| grant.execution_id);
        again.sort_by_key(|grant| grant.execution_id);
        assert_eq!(again, first);
        assert_eq!(store.dump().await, before);
    }

    async fn a_request_that_took_leases_is_answered_with_them(store) {
        store.install_default_lane().await;
        for _ in 0..2 {
            store.submit_kind("mail").await;
        }
        let grants = issued(&store, &issue(&store, "w1", 1)).await;
        let call = consume(&store, &grants[0], "w1");
        let Ok(ConsumeGrantReply::Claimed { task }) = store.ask(&call).await else { panic!("not claimed") };
        let before = store.dump().await;
        let again = IssueGrants { lease_ids: Some(vec![call.lease_id]), ..issue(&store, "w1", 1) };
        assert_eq!(store.ask(&again).await, Ok(IssueGrantsReply::Replayed { tasks: vec![task] }));
        assert_eq!(store.dump().await, before);
        let another = IssueGrants { lease_ids: Some(store.request(1)), ..issue(&store, "w1", 1) };
        assert_eq!(issued(&store, &another).await.len(), 1, "another request gets the next one");
    }

    async fn grants_are_consumed_together_each_for_itself(store) {
        store.install_default_lane().await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let grants = issued(&store, &issue(&store, "w1", 3)).await;
        let forged = Grant { grant_id: store.uuid(0), ..grants[1].clone() };
        let calls = [&grants[0], &forged, &grants[2]].map(|grant| consume(&store, grant, "w1"));
        let answers = store.ask_all(&calls).await;
        assert_eq!(code_of(answers[1].as_ref().unwrap_err()), Some(ErrorCode::GrantNotFound));
        let leases: Vec<_> = [0, 2].iter().map(|at| match answers[*at].as_ref().unwrap() {
            ConsumeGrantReply::Claimed { task } => task.clone(),
            other => panic!("{other:?}"),
        }).collect();
        assert_eq!(leases[0].lease_id, calls[0].lease_id);
        let before = store.dump().await;
        let again = store.ask_all(&calls).await;
        for (at, task) in [0, 2].into_iter().zip(leases) {
            assert_eq!(again[at], Ok(ConsumeGrantReply::Replayed { task }), "the same request gets the same reply");
        }
        assert_eq!(store.dump().await, before);
        let counts = stats(&store).await;
        assert_eq!((counts.granted, counts.active), (1, 2));
    }

    async fn refusals_are_noted_together_each_for_itself(store) {
        store.install_default_lane().await;
        for _ in 0..2 {
            store.submit(metered(&store, "metered")).await;
        }
        let grants = issued(&store, &issue(&store, "w1", 2)).await;
        let one = |grant: &Grant, grant_id| BlockExecution {
            detail: BTreeMap::from([("quota".into(), "q1".into())]),
            execution_id: grant.execution_id,
            grant_id,
            reason: AdmissionReason::WaitingForQuota,
            unheld: Some(true),
        };
        let calls = [one(&grants[0], grants[0].grant_id), one(&grants[1], store.uuid(0))];
        let mut answers = store.ask_all(&calls).await;
        assert_eq!(refusal(answers.pop().unwrap()), ErrorCode::GrantNotFound);
        assert_eq!(answers, [Ok(BlockExecutionReply::Blocked)]);
        let blocked = store.describe(grants[0].execution_id).await;
        assert_eq!((blocked.state, blocked.blocking_reason), (PublicState::RateLimited, Some(BlockingReason::WaitingForQuota)));
        let before = store.dump().await;
        assert_eq!(store.ask_all(&calls[..1]).await, [Ok(BlockExecutionReply::Already)]);
        assert_eq!(store.dump().await, before);
    }

    async fn a_grant_is_for_its_worker_and_for_one_use(store) {
        store.install_default_lane().await;
        store.submit_kind("mail").await;
        let grant = issued(&store, &issue(&store, "w1", 1)).await.remove(0);
        assert_eq!(refusal(store.ask(&consume(&store, &grant, "w2")).await), ErrorCode::GrantNotFound);
        let forged = Grant { grant_id: store.uuid(0), ..grant.clone() };
        assert_eq!(refusal(store.ask(&consume(&store, &forged, "w1")).await), ErrorCode::GrantNotFound);
        let call = consume(&store, &grant, "w1");
        let Ok(ConsumeGrantReply::Claimed { task }) = store.ask(&call).await else { panic!("not claimed") };
        let before = store.dump().await;
        assert_eq!(store.ask(&call).await, Ok(ConsumeGrantReply::Replayed { task }), "the same request gets the same reply");
        assert_eq!(refusal(store.ask(&consume(&store, &grant, "w1")).await), ErrorCode::GrantNotFound, "another one is not");
        assert_eq!(store.dump().await, before);
        store.advance(LEASE_MS);
        assert_eq!(refusal(store.ask(&call).await), ErrorCode::GrantNotFound, "nor is one whose lease is over");
    }

    async fn a_consumer_must_have_what_is_required(store) {
        store.install_default_lane().await;
        store.submit(Submission { requires: Some(vec!["a".into(), "b".into(), "c".into()]), ..metered(&store, "mail") }).await;
        assert!(issued(&store, &issue(&store, "w1", 1)).await.is_empty());
        let able = IssueGrants { capabilities: vec!["a".into(), "b".into(), "c".into()], ..issue(&store, "w1", 1) };
        let grant = issued(&store, &able).await.remove(0);
        let poor = ConsumeGrant { capabilities: vec!["b".into()], ..consume(&store, &grant, "w1") };
        let error = store.ask(&poor).await.unwrap_err();
        assert!(error.to_string().contains("a, c"), "the missing ones are named: {error}");
        let able = ConsumeGrant { capabilities: able.capabilities, ..poor };
        assert!(store.ask(&able).await.is_ok());
    }

    async fn a_grant_given_back_returns_the_work_to_its_place(store) {
        store.install_default_lane().await;
        let first = store.submit_kind("a").await;
        store.advance(1);
        store.submit_kind("b").await;
        let grant = issued(&store, &issue(&store, "w1", 1)).await.remove(0);
        let release = ReleaseGrant::new(grant.execution_id, grant.grant_id);
        assert_eq!(store.ask(&release).await, Ok(ReleaseGrantReply::Released));
        assert_eq!(refusal(store.ask(&release).await), ErrorCode::GrantNotFound);
        assert_eq!(refusal(store.ask(&consume(&store, &grant, "w1")).await), ErrorCode::GrantNotFound);
        assert_eq!(store.claim("w2", 1).await[0].execution_id, first);
    }

    async fn a_grant_that_ran_out_is_worth_nothing_even_before_its_timer(store) {
        store.install_default_lane().await;
        store.submit_kind("mail").await;
        let grant = issued(&store, &issue(&store, "w1", 1)).await.remove(0);
        store.advance(5_000);
        for outcome in [
            refusal(store.ask(&consume(&store, &grant, "w1")).await),
            refusal(store.ask(&ReleaseGrant::new(grant.execution_id, grant.grant_id)).await),
            refusal(store.ask(&block(&grant, AdmissionReason::WaitingForQuota)).await),
        ] {
            assert_eq!(outcome, ErrorCode::GrantNotFound);
        }
        store.fire_all().await;
        assert_eq!(store.claim("w2", 1).await.len(), 1);
    }

    async fn refused_admission_blocks_with_its_reason_until_it_clears(store) {
        store.install_default_lane().await;
        for (reason, expected) in [
            (AdmissionReason::WaitingForQuota, BlockingReason::WaitingForQuota), (AdmissionReason::WaitingForBudget, BlockingReason::WaitingForBudget),
        ] {
            let id = store.submit(metered(&store, "first")).await;
            store.advance(10);
            let later = store.submit(metered(&store, "later")).await;
            let grant = issued(&store, &issue(&store, "w1", 1)).await.remove(0);
            assert_eq!(store.ask(&block(&grant, reason)).await, Ok(BlockExecutionReply::Blocked));
            assert_eq!(store.ask(&block(&grant, reason)).await, Ok(BlockExecutionReply::Already));
            let e = store.describe(id).await;
            assert_eq!((e.state, e.blocking_reason, e.granted_until), (PublicState::RateLimited, Some(expected), None));
            assert_eq!(e.blocking_detail.unwrap()["quota"], "q1");
            let other = if reason == AdmissionReason::WaitingForQuota { AdmissionReason::WaitingForBudget } else { AdmissionReason::WaitingForQuota };
            let reply = store.ask(&UnblockExecution { holder_id: None, execution_id: id, reason: other }).await;
            assert_eq!(reply, Ok(UnblockExecutionReply::Already { state: PublicState::RateLimited }), "another reason clears nothing");
            let reply = store.ask(&UnblockExecution { holder_id: None, execution_id: id, reason }).await;
            assert_eq!(reply, Ok(UnblockExecutionReply::Unblocked { state: PublicState::Waiting }));
            let grants = issued(&store, &issue(&store, "w1", 2)).await;
            assert_eq!(grants.iter().map(|grant| grant.execution_id).collect::<Vec<_>>(), [id, later], "the place of its original score");
            for id in [id, later] {
                store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap();
            }
        }
    }

    async fn a_consumed_grant_past_its_deadline_starts_nothing(store) {
        store.install_default_lane().await;
        store.submit(Submission { deadline_ms: Some(100), ..store.submission("mail") }).await;
        let grant = issued(&store, &issue(&store, "w1", 1)).await.remove(0);
        store.advance(100);
        assert_eq!(refusal(store.ask(&consume(&store, &grant, "w1")).await), ErrorCode::GrantNotFound);
    }

    async fn grants_need_an_id_each(store) {
        store.install_default_lane().await;
        let short = IssueGrants { grant_ids: vec![], ..issue(&store, "w1", 1) };
        assert_eq!(refusal(store.ask(&short).await), ErrorCode::InvalidArgument);
        let unknown = Grant::new(ExecutionId::from_uuid(store.uuid(0)), store.uuid(0), 0, LANE.into(), "k".into(), 0, 1);
        assert_eq!(refusal(store.ask(&consume(&store, &unknown, "w1")).await), ErrorCode::ExecutionNotFound);
        assert_eq!(refusal(store.call(HOME, &block(&unknown, AdmissionReason::WaitingForQuota)).await), ErrorCode::ExecutionNotFound);
    }
}
