//! Quotas through the operations: made, changed, listed, asked for at submission; holders that are gone leave.

use ff_api::quotas::{ChangeQuotaBody, QuotaRateBody};
use ff_core::error_code::ErrorCode;
use ff_core::state::PublicState;
use ff_core::types::{ExecutionId, QuotaPolicyId};
use ff_engine::background::holders::{self, Leaving};
use ff_engine::{NewExecution, NewFlow, NewMember, Operations};
use ff_script::Route;
use ff_script::generated::{
    AdmissionReason, CancelExecution, Grant, Holder, Quota, QuotaCandidate, QuotaRef, SubmitExecutionReply,
};
use uuid::Uuid;

use crate::kit::*;
use crate::on_both_hosts;

fn quota(concurrency: i64) -> Quota {
    let id = QuotaPolicyId::from_uuid(Uuid::now_v7());
    Quota { concurrency: Some(concurrency), ..Quota::new(id, "default".to_owned(), false) }
}

fn limited(id: QuotaPolicyId) -> NewExecution {
    let mut new = work("metered");
    new.fields.quotas = Some(vec![QuotaRef::new(*id.as_uuid(), "k".to_owned())]);
    new
}

async fn held(operations: &Operations, id: QuotaPolicyId) -> i64 {
    operations.quota(id, Some("k")).await.unwrap().1.unwrap().held
}

fn asks(grant: &Grant) -> QuotaCandidate {
    QuotaCandidate {
        execution_id: grant.execution_id,
        expires_at: grant.expires_at,
        holder_id: grant.grant_id,
        key: "k".to_owned(),
        number: grant.number,
        score: grant.score,
        weight: 1,
    }
}

on_both_hosts! {
    async fn the_room_of_those_who_ended_goes_to_the_next_at_once(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let client = operations.client();
        let id = operations.create_quota(quota(1), "ops").await.unwrap().0.quota.quota_id;
        let route = Route::Execution(0);
        for _ in 0..31 {
            let mut new = work_in(0, "metered");
            new.fields.quotas = limited(id).fields.quotas;
            submit(operations, new).await;
        }
        // The first is in, all others wait; all of them but the last end while they do.
        let grants = grant_all(operations, route).await;
        assert_eq!(grants.len(), 31);
        let answers = operations.admit_quota(id, grants.iter().map(asks).collect()).await.unwrap();
        assert_eq!(answers.iter().filter(|answer| answer.admitted).count(), 1);
        for grant in &grants[1..] {
            block(operations, grant, AdmissionReason::WaitingForQuota, &[]).await;
        }
        for grant in &grants[1..30] {
            client.call(route, &CancelExecution::new("ann".to_owned(), grant.execution_id)).await.unwrap();
        }
        let set = operations.quota_keys(id, 10).await.unwrap().remove(0).set;
        let holder = Holder { execution_id: grants[0].execution_id, expires_at: None, holder_id: grants[0].grant_id };
        holders::release(client, &set, vec![Leaving { holder, unused: false }]).await.unwrap();
        becomes(operations, grants[30].execution_id, PublicState::Waiting).await;
        engine.stop().await;
    }

    async fn a_quota_is_made_changed_listed_and_deleted(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let mut made = Vec::new();
        for n in 1..=5 {
            let (entry, new) = operations.create_quota(quota(n), "ops").await.unwrap();
            assert!(new);
            made.push(entry.quota);
        }
        assert!(!operations.create_quota(made[0].clone(), "ops").await.unwrap().1, "the same again is the one that is there");
        let other = Quota { concurrency: Some(9), ..made[0].clone() };
        assert_eq!(refusal(operations.create_quota(other, "ops").await), ErrorCode::QuotaVersionConflict);

        let mut ids: Vec<_> = operations.quotas(Some("default")).await.unwrap().into_iter().map(|entry| entry.quota.quota_id).collect();
        ids.sort();
        let mut expected: Vec<_> = made.iter().map(|quota| quota.quota_id).collect();
        expected.sort();
        assert_eq!(ids, expected);
        assert!(operations.quotas(Some("elsewhere")).await.unwrap().is_empty());

        let id = made[0].quota_id;
        let changes: Vec<_> = (0..4)
            .map(|n| QuotaRateBody { limit: n + 1, window_ms: 10, mode: None })
            .map(|rate| ChangeQuotaBody { rate: Some(Some(rate)), ..ChangeQuotaBody::default() })
            .collect();
        let changes = changes.iter().map(|change| operations.change_quota(id, change, "ops"));
        for answer in futures::future::join_all(changes).await {
            answer.unwrap();
        }
        let (entry, _) = operations.quota(id, None).await.unwrap();
        assert_eq!((entry.version, entry.quota.concurrency), (5, Some(1)), "each change was made, and what it did not name stays");

        operations.delete_quota(id, "ops").await.unwrap();
        assert_eq!(refusal(operations.quota(id, None).await), ErrorCode::QuotaNotFound);
        assert_eq!(refusal(operations.submit(limited(id)).await), ErrorCode::QuotaNotFound);
        engine.stop().await;
    }

    async fn a_submission_that_names_an_unknown_quota_is_refused(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let unknown = QuotaPolicyId::from_uuid(Uuid::now_v7());
        assert_eq!(refusal(operations.submit(limited(unknown)).await), ErrorCode::QuotaNotFound);
        let (entry, _) = operations.create_quota(quota(1), "ops").await.unwrap();
        let known = entry.quota.quota_id;
        let answers = operations.submit_many(vec![limited(known), limited(unknown), work("plain")]).await.unwrap();
        assert!(matches!(answers[0], Ok(SubmitExecutionReply::Created { .. })));
        assert_eq!(refusal(answers[1].clone()), ErrorCode::QuotaNotFound);
        assert!(matches!(answers[2], Ok(SubmitExecutionReply::Created { .. })));
        let mut elsewhere = limited(known);
        elsewhere.fields.namespace = "elsewhere".to_owned();
        assert_eq!(refusal(operations.submit(elsewhere).await), ErrorCode::QuotaNotFound, "it belongs to another namespace");

        let mut flow = NewFlow::new("default", "f");
        let mut member = NewMember::new("a", "metered");
        member.fields.quotas = limited(unknown).fields.quotas;
        flow.members.push(member);
        assert_eq!(refusal(operations.submit_flow(flow).await), ErrorCode::QuotaNotFound);
        engine.stop().await;
    }

    async fn a_holder_that_is_gone_leaves_and_the_next_is_called(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let (entry, _) = operations.create_quota(quota(1), "ops").await.unwrap();
        let id = entry.quota.quota_id;
        let now = now_ms();
        let ask = |lasts: i64, score| QuotaCandidate {
            execution_id: ExecutionId::mint(), expires_at: now + lasts, holder_id: Uuid::now_v7(), key: "k".to_owned(), number: 1, score, weight: 1,
        };
        // Nobody knows this execution: its admission came after its grant had ended, say.
        assert!(operations.admit_quota(id, vec![ask(600, 0)]).await.unwrap()[0].admitted);
        let refused = operations.admit_quota(id, vec![ask(60_000, 1)]).await.unwrap().remove(0);
        assert!(!refused.admitted);
        eventually("it is asked for and leaves", async || (held(operations, id).await == 0).then_some(())).await;
        assert_eq!(operations.quota(id, Some("k")).await.unwrap().1.unwrap().waiting, 0, "who waited was called");
        engine.stop().await;
    }

    async fn fsck_finds_a_holder_that_does_not_run(kit) {
        let engine = kit.plain_engine().await;
        let operations = engine.operations();
        let (entry, _) = operations.create_quota(quota(1), "ops").await.unwrap();
        let id = entry.quota.quota_id;
        // Its deadline is long over, and nobody has asked for it.
        let ghost = QuotaCandidate {
            execution_id: ExecutionId::mint(), expires_at: now_ms() + 400, holder_id: Uuid::now_v7(), key: "k".to_owned(), number: 1, score: 0, weight: 1,
        };
        assert!(operations.admit_quota(id, vec![ghost.clone()]).await.unwrap()[0].admitted);
        let set = operations.quota_keys(id, 10).await.unwrap().remove(0).set;
        let holder = ff_script::generated::Holder { execution_id: ghost.execution_id, expires_at: None, holder_id: ghost.holder_id };
        let client = operations.client();
        let confirm = ff_script::generated::ConfirmHolders { holders: vec![holder], set: set.clone() };
        client.call(client.route_of_holder_set(&set), &confirm).await.unwrap();
        let found = ff_engine::Fsck::run(client, false).await.unwrap();
        assert_eq!(found.findings.iter().map(|f| f.invariant).collect::<Vec<_>>(), [32], "{found:?}");
        ff_engine::Fsck::run(client, true).await.unwrap();
        assert_eq!(held(operations, id).await, 0);
        assert!(ff_engine::Fsck::run(client, false).await.unwrap().is_clean());
        engine.stop().await;
    }
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
