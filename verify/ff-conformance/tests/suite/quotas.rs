//! Quotas: starts, slots and weight per key never exceed their limits; refused executions wait in line and are called.

use std::collections::BTreeMap;

use ff_conformance::harness::refusal;
use ff_conformance::work::{LANE, LEASE_MS, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, QuotaPolicyId};
use ff_script::Route;
use ff_script::generated::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

const GRANT_MS: i64 = 5_000;
/// The digest of the key `k`.
const K: &str = "13fbd79c3d390e5d6585";

fn route(store: &Store, id: QuotaPolicyId) -> Route {
    store.client().route_of_quota(&id)
}

fn quota(store: &Store) -> Quota {
    Quota::new(QuotaPolicyId::from_uuid(store.uuid(0)), NAMESPACE.into(), false)
}

fn sliding(limit: i64, window_ms: i64) -> Option<QuotaRate> {
    Some(QuotaRate { limit, window_ms, mode: RateMode::Sliding })
}

fn smooth(limit: i64, window_ms: i64) -> Option<QuotaRate> {
    Some(QuotaRate { limit, window_ms, mode: RateMode::Smooth })
}

fn weighted(limit: i64, window_ms: i64) -> Option<QuotaWeights> {
    Some(QuotaWeights { limit, window_ms })
}

async fn create(store: &Store, quota: Quota) -> QuotaPolicyId {
    let id = quota.quota_id;
    match store.call(route(store, id), &PutQuota { actor: None, quota, version: None }).await {
        Ok(PutQuotaReply::Created { .. }) => id,
        other => panic!("not created: {other:?}"),
    }
}

fn asks(store: &Store, key: &str, weight: i64) -> QuotaCandidate {
    let number = store.next_number() as i64;
    QuotaCandidate {
        execution_id: store.execution_id(),
        holder_id: store.uuid(0),
        expires_at: store.now() + GRANT_MS,
        key: key.into(),
        weight,
        score: number,
        number: 1,
    }
}

async fn ask(store: &Store, id: QuotaPolicyId, candidates: &[QuotaCandidate]) -> Vec<QuotaAnswer> {
    let call = AdmitQuota { candidates: candidates.to_vec(), quota_id: id };
    let AdmitQuotaReply::Answered { items } = store.call(route(store, id), &call).await.unwrap();
    assert!(items.iter().zip(candidates).all(|(item, asked)| item.holder_id == asked.holder_id));
    items
}

async fn admitted(store: &Store, id: QuotaPolicyId, candidates: &[QuotaCandidate]) -> Vec<bool> {
    ask(store, id, candidates).await.into_iter().map(|item| item.admitted).collect()
}

async fn give_back(store: &Store, id: QuotaPolicyId, candidate: &QuotaCandidate, unused: bool) -> i64 {
    let item = QuotaReturn {
        execution_id: candidate.execution_id,
        holder_id: candidate.holder_id,
        key_digest: digest(&candidate.key),
        unused,
    };
    let ReturnQuotaReply::Returned { count } =
        store.call(route(store, id), &ReturnQuota { items: vec![item], quota_id: id }).await.unwrap();
    count
}

fn digest(key: &str) -> String {
    match key {
        "k" => K,
        "other" => "d0941e68da8f38151ff8",
        _ => panic!("no digest of {key}"),
    }
    .into()
}

async fn state(store: &Store, id: QuotaPolicyId) -> QuotaKeyState {
    let call = GetQuota { key: Some("k".into()), quota_id: id };
    let GetQuotaReply::Quota { state, .. } = store.call(route(store, id), &call).await.unwrap();
    state.unwrap()
}

/// The executions called since the last check, in order. Their effects are removed.
async fn called(store: &Store, id: QuotaPolicyId) -> Vec<ExecutionId> {
    let ReadOutboxReply::Effects { items } = store.call(route(store, id), &ReadOutbox::new(1_000)).await.unwrap();
    assert!(items.iter().all(|effect| effect.r#type == "unblock"), "{items:?}");
    if !items.is_empty() {
        let ids = items.iter().map(|effect| effect.id.clone()).collect();
        store.call(route(store, id), &AckOutbox { ids }).await.unwrap();
    }
    items.iter().map(|effect| effect.data["execution_id"].parse().unwrap()).collect()
}

/// The remaining quota keys, without those that stay with a quota.
async fn left(store: &Store, id: QuotaPolicyId) -> Vec<String> {
    let keys = store.dump().await.into_keys();
    keys.filter(|key| key.contains(&id.to_string()) && !key.ends_with(":core")).collect()
}

async fn grants(store: &Store, max: i64) -> Vec<Grant> {
    let call = IssueGrants {
        namespace: NAMESPACE.into(),
        lane: LANE.into(),
        instance: "w1".into(),
        kinds: None,
        capabilities: vec![],
        max,
        lease_ids: None,
        ttl_ms: GRANT_MS,
        grant_ids: (0..max).map(|_| store.uuid(0)).collect(),
    };
    match store.ask(&call).await {
        Ok(IssueGrantsReply::Granted { grants, .. }) => grants,
        other => panic!("not granted: {other:?}"),
    }
}

fn of_grant(grant: &Grant) -> QuotaCandidate {
    let quota = &grant.quotas.as_ref().unwrap()[0];
    QuotaCandidate {
        execution_id: grant.execution_id,
        holder_id: grant.grant_id,
        expires_at: grant.expires_at,
        key: quota.key.clone(),
        weight: quota.weight.unwrap_or(1),
        score: grant.score,
        number: grant.number,
    }
}

async fn consume(store: &Store, grant: &Grant, keep: Option<Vec<String>>) -> Task {
    let ids = store.lease_ids();
    let call = ConsumeGrant {
        execution_id: grant.execution_id,
        grant_id: grant.grant_id,
        instance: "w1".into(),
        worker_id: "k".into(),
        kinds: None,
        capabilities: vec![],
        lease_ttl_ms: LEASE_MS,
        attempt_id: ids.attempt_id,
        lease_id: ids.lease_id,
        keep,
    };
    match store.ask(&call).await {
        Ok(ConsumeGrantReply::Claimed { task }) => task,
        other => panic!("not claimed: {other:?}"),
    }
}

async fn submit(store: &Store, id: QuotaPolicyId) -> ExecutionId {
    let quotas = Some(vec![QuotaRef::new(*id.as_uuid(), "k".into())]);
    store.submit(Submission { quotas, ..store.submission("mail") }).await
}

/// The releases that the executions' partition owes, as (set, unused). They are removed.
async fn owed(store: &Store) -> Vec<(String, bool)> {
    let ReadOutboxReply::Effects { items } = store.ask(&ReadOutbox::new(100)).await.unwrap();
    if !items.is_empty() {
        store.ask(&AckOutbox { ids: items.iter().map(|effect| effect.id.clone()).collect() }).await.unwrap();
    }
    items.iter().map(|effect| (effect.data["set"].clone(), effect.data.contains_key("unused"))).collect()
}

for_each_host! {
    async fn a_quota_is_created_once_and_replaced_by_its_version(store) {
        let definition = Quota { rate: sliding(2, 1_000), ..quota(&store) };
        let id = create(&store, definition.clone()).await;
        let put = async |quota: &Quota, version| store.call(route(&store, id), &PutQuota { actor: None, quota: quota.clone(), version }).await;
        let before = store.dump().await;
        let entry = QuotaEntry { quota: definition.clone(), version: 1, created_at: store.now(), keys: 0 };
        assert_eq!(put(&definition, None).await, Ok(PutQuotaReply::Duplicate { entry }));
        let other = Quota { concurrency: Some(3), weighted: weighted(7, 10), hold_while_suspended: true, ..definition.clone() };
        assert_eq!(refusal(put(&other, None).await), ErrorCode::QuotaVersionConflict);
        assert_eq!(refusal(put(&other, Some(2)).await), ErrorCode::QuotaVersionConflict);
        assert_eq!(store.dump().await, before);
        let PutQuotaReply::Replaced { entry } = put(&other, Some(1)).await.unwrap() else { panic!("not replaced") };
        assert_eq!((entry.version, &entry.quota), (2, &other));
        let GetQuotaReply::Quota { entry: read, state, .. } = store.call(route(&store, id), &GetQuota { key: None, quota_id: id }).await.unwrap();
        assert_eq!((read, state), (entry.clone(), None));
        let ListQuotasReply::Page { items, more, .. } = store.call(route(&store, id), &ListQuotas::new(10)).await.unwrap();
        assert_eq!((items, more), (vec![entry], false));
        store.assert_sound().await;

        let empty = quota(&store);
        assert_eq!(refusal(store.call(route(&store, empty.quota_id), &PutQuota { actor: None, quota: empty.clone(), version: None }).await), ErrorCode::InvalidArgument);
        let missing = Quota { concurrency: Some(1), ..empty };
        assert_eq!(refusal(store.call(route(&store, missing.quota_id), &PutQuota { actor: None, quota: missing.clone(), version: Some(1) }).await), ErrorCode::QuotaNotFound);
        let call = AdmitQuota { candidates: vec![asks(&store, "k", 1)], quota_id: missing.quota_id };
        assert_eq!(refusal(store.call(route(&store, missing.quota_id), &call).await), ErrorCode::QuotaNotFound, "unknown is refused");
    }

    async fn a_sliding_window_counts_exactly(store) {
        let id = create(&store, Quota { rate: sliding(2, 1_000), ..quota(&store) }).await;
        let first = asks(&store, "k", 1);
        let start = store.now();
        assert_eq!(admitted(&store, id, std::slice::from_ref(&first)).await, [true]);
        store.advance(400);
        let more = [asks(&store, "k", 1), asks(&store, "k", 1), asks(&store, "other", 1)];
        let answers = ask(&store, id, &more).await;
        assert_eq!(answers.iter().map(|a| a.admitted).collect::<Vec<_>>(), [true, false, true], "each key counts for itself");
        let refused = &answers[1];
        assert_eq!((refused.part, refused.used, refused.limit, refused.next_at), (Some(QuotaPart::Rate), Some(2), Some(2), Some(start + 1_000)));
        let before = store.dump().await;
        assert_eq!(admitted(&store, id, &[first.clone(), more[0].clone()]).await, [true, true], "who is in stays");
        assert_eq!(store.dump().await, before);
        let seen = state(&store, id).await;
        assert_eq!((seen.held, seen.waiting, seen.parts[0].next_at), (2, 1, Some(start + 1_000)));
        store.assert_sound().await;

        store.go_to(start + 999);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [], "nothing is called early");
        store.go_to(start + 1_000);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [more[1].execution_id]);
        assert_eq!(admitted(&store, id, &more[1..2]).await, [true]);
        assert_eq!(admitted(&store, id, &[asks(&store, "k", 1)]).await, [false]);
        store.assert_sound().await;
    }

    async fn a_smooth_rate_spaces_its_starts(store) {
        let id = create(&store, Quota { rate: smooth(3, 1_000), ..quota(&store) }).await;
        let [first, second, third] = [0; 3].map(|_| asks(&store, "k", 1));
        let answers = ask(&store, id, &[first.clone(), second.clone()]).await;
        assert!(answers[0].admitted && !answers[1].admitted);
        assert_eq!(answers[1].next_at, Some(store.now() + 334), "a third of the window, rounded up");
        assert_eq!(give_back(&store, id, &first, true).await, 1);
        assert_eq!(called(&store, id).await, [second.execution_id], "a start that was not used is given back");
        assert_eq!(admitted(&store, id, std::slice::from_ref(&second)).await, [true]);
        store.advance(333);
        assert_eq!(admitted(&store, id, std::slice::from_ref(&third)).await, [false]);
        store.advance(1);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [third.execution_id]);
        assert_eq!(admitted(&store, id, &[third]).await, [true]);
        store.assert_sound().await;
    }

    async fn slots_come_back_in_the_order_of_scores(store) {
        let id = create(&store, Quota { concurrency: Some(2), ..quota(&store) }).await;
        let mut all: Vec<QuotaCandidate> = (0..5).map(|_| asks(&store, "k", 1)).collect();
        all[4].score = -1;
        let answers = ask(&store, id, &all).await;
        assert_eq!(answers.iter().map(|a| a.admitted).collect::<Vec<_>>(), [true, true, false, false, false]);
        assert_eq!((answers[2].part, answers[2].used, answers[2].limit, answers[2].next_at), (Some(QuotaPart::Concurrency), Some(2), Some(2), None));
        assert_eq!(give_back(&store, id, &all[0], false).await, 1);
        assert_eq!(give_back(&store, id, &all[0], false).await, 0, "once");
        assert_eq!(called(&store, id).await, [all[4].execution_id]);
        // The called execution does not come, so the next one is called a moment later.
        store.advance(500);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [all[2].execution_id]);
        assert_eq!(admitted(&store, id, &all[2..4]).await, [true, false]);
        store.assert_sound().await;
        for one in &all[1..3] {
            give_back(&store, id, one, false).await;
        }
        assert_eq!(called(&store, id).await, [all[3].execution_id]);
        store.advance(1_000);
        store.fire_all().await;
        store.advance(GRANT_MS);
        store.fire_all().await;
        assert_eq!(left(&store, id).await, Vec::<String>::new(), "an idle key leaves nothing behind");
        store.assert_sound().await;
    }

    async fn a_late_copy_of_a_refused_request_leaves_its_execution_in_line(store) {
        let id = create(&store, Quota { rate: sliding(1, 1_000), ..quota(&store) }).await;
        let [first, second] = [0; 2].map(|_| asks(&store, "k", 1));
        assert_eq!(admitted(&store, id, &[first, second.clone()]).await, [true, false]);
        // The window has passed, no execution was called yet, and the network delivers the same request again.
        store.advance(1_000);
        let answers = ask(&store, id, std::slice::from_ref(&second)).await;
        assert_eq!((answers[0].admitted, answers[0].part), (false, None), "nothing was decided: its grant is given back");
        let seen = state(&store, id).await;
        assert_eq!((seen.held, seen.waiting), (1, 1));
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [second.execution_id], "the refused execution is called");
        assert_eq!(admitted(&store, id, &[second]).await, [true]);
        store.assert_sound().await;
    }

    async fn a_late_copy_of_an_older_grant_leaves_its_execution_in_line(store) {
        let id = create(&store, Quota { concurrency: Some(1), ..quota(&store) }).await;
        let [holds, first, before] = [0; 3].map(|_| asks(&store, "k", 1));
        assert_eq!(admitted(&store, id, &[holds.clone(), before.clone()]).await, [true, false]);
        // It is called, does not come in time, and asks again under its next grant.
        assert_eq!(give_back(&store, id, &holds, false).await, 1);
        assert_eq!(called(&store, id).await, [before.execution_id]);
        store.advance(500);
        let takes = asks(&store, "k", 1);
        let before = QuotaCandidate { expires_at: store.now() + GRANT_MS, ..before };
        let again = QuotaCandidate { holder_id: store.uuid(0), number: 2, ..before.clone() };
        assert_eq!(admitted(&store, id, &[takes.clone(), again.clone(), first.clone()]).await, [true, false, false]);
        // The network delivers the request of its first grant. It neither refuses nor admits anything.
        let answers = ask(&store, id, std::slice::from_ref(&before)).await;
        assert_eq!((answers[0].admitted, answers[0].part), (false, None), "while all is taken");
        assert_eq!(give_back(&store, id, &takes, false).await, 1);
        assert_eq!(called(&store, id).await, [first.execution_id]);
        let answers = ask(&store, id, std::slice::from_ref(&before)).await;
        assert_eq!((answers[0].admitted, answers[0].part), (false, None), "while there is room");
        assert_eq!((state(&store, id).await.held, state(&store, id).await.waiting), (0, 1));
        assert_eq!(admitted(&store, id, std::slice::from_ref(&first)).await, [true]);
        assert_eq!(give_back(&store, id, &first, false).await, 1);
        let ReadOutboxReply::Effects { items } = store.call(route(&store, id), &ReadOutbox::new(10)).await.unwrap();
        let said: Vec<_> = items.iter().map(|effect| (&effect.data["execution_id"], &effect.data["holder_id"])).collect();
        assert_eq!(said, [(&again.execution_id.to_string(), &again.holder_id.to_string())], "it is called under its latest grant");
        store.assert_sound().await;
    }

    async fn nobody_takes_the_room_of_those_who_were_called_or_stand_before_it(store) {
        let id = create(&store, Quota { concurrency: Some(1), ..quota(&store) }).await;
        let [holds, waits, later] = [0; 3].map(|_| asks(&store, "k", 1));
        assert_eq!(admitted(&store, id, &[holds.clone(), waits.clone()]).await, [true, false]);
        assert_eq!(give_back(&store, id, &holds, false).await, 1);
        assert_eq!(called(&store, id).await, [waits.execution_id]);
        let answers = ask(&store, id, std::slice::from_ref(&later)).await;
        assert_eq!((answers[0].part, answers[0].next_at), (Some(QuotaPart::Line), Some(store.now() + 500)), "its room is kept");
        let first = QuotaCandidate { score: -9, ..asks(&store, "k", 1) };
        assert_eq!(ask(&store, id, std::slice::from_ref(&first)).await[0].part, Some(QuotaPart::Line), "from any holder");
        assert_eq!(admitted(&store, id, std::slice::from_ref(&waits)).await, [true]);
        store.assert_sound().await;
        // A called execution that does not come is waited for only a moment.
        assert_eq!(give_back(&store, id, &waits, false).await, 1);
        assert_eq!(called(&store, id).await, [first.execution_id]);
        store.advance(500);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [later.execution_id]);
        assert_eq!(admitted(&store, id, &[later]).await, [true]);
        store.assert_sound().await;

        // A light execution does not overtake a heavy one that is before it in line.
        let id = create(&store, Quota { weighted: weighted(10, 60_000), ..quota(&store) }).await;
        let start = store.now();
        let [holds, heavy, light] = [8, 6, 1].map(|weight| asks(&store, "k", weight));
        assert_eq!(admitted(&store, id, &[holds, heavy.clone()]).await, [true, false]);
        let answers = ask(&store, id, std::slice::from_ref(&light)).await;
        assert_eq!((answers[0].part, answers[0].next_at), (Some(QuotaPart::Line), Some(start + 60_000)));
        let first = QuotaCandidate { score: -9, ..asks(&store, "k", 1) };
        assert_eq!(admitted(&store, id, &[first]).await, [true], "the one before it in line is admitted");
        store.go_to(start + 60_000);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [heavy.execution_id, light.execution_id]);
        store.assert_sound().await;
    }

    async fn who_was_called_and_has_ended_is_not_waited_for(store) {
        let id = create(&store, Quota { concurrency: Some(1), ..quota(&store) }).await;
        let all: Vec<QuotaCandidate> = (0..4).map(|_| asks(&store, "k", 1)).collect();
        assert_eq!(admitted(&store, id, &all).await, [true, false, false, false]);
        assert_eq!(give_back(&store, id, &all[0], false).await, 1);
        assert_eq!(called(&store, id).await, [all[1].execution_id]);
        let give_up = async |who: &QuotaCandidate| {
            let items = vec![QuotaAbsence { execution_id: who.execution_id, key_digest: K.into() }];
            let call = GiveUpCalled { items, quota_id: id };
            let GiveUpCalledReply::GivenUp { count } = store.call(route(&store, id), &call).await.unwrap();
            count
        };
        assert_eq!(give_up(&all[3]).await, 0, "an execution in line stays there");
        assert_eq!(give_up(&all[1]).await, 1);
        assert_eq!(called(&store, id).await, [all[2].execution_id], "the next is called at once");
        assert_eq!(give_up(&all[1]).await, 0);
        assert_eq!(called(&store, id).await, []);
        assert_eq!(admitted(&store, id, &all[2..3]).await, [true]);
        store.assert_sound().await;
    }

    async fn a_new_priority_is_a_new_place_in_line(store) {
        store.install_default_lane().await;
        let id = create(&store, Quota { concurrency: Some(1), ..quota(&store) }).await;
        let holds = asks(&store, "k", 1);
        assert_eq!(admitted(&store, id, std::slice::from_ref(&holds)).await, [true]);
        let (first, second) = (submit(&store, id).await, submit(&store, id).await);
        let refuse_all = async || {
            for grant in grants(&store, 8).await {
                assert_eq!(admitted(&store, id, &[of_grant(&grant)]).await, [false]);
                let reason = AdmissionReason::WaitingForQuota;
                let block = BlockExecution::new(BTreeMap::new(), grant.execution_id, grant.grant_id, reason);
                store.ask(&BlockExecution { unheld: Some(true), ..block }).await.unwrap();
            }
        };
        refuse_all().await;
        let change = ChangeExecution { priority: Some(9), ..ChangeExecution::new("ann".into(), second) };
        assert_eq!(store.ask(&change).await, Ok(ChangeExecutionReply::Changed { state: PublicState::Waiting }), "it asks anew");
        refuse_all().await;
        let waiting = ListQuotaWaiters::new("k".into(), 8, id);
        let ListQuotaWaitersReply::Waiting { items, .. } = store.call(route(&store, id), &waiting).await.unwrap();
        assert_eq!(items.iter().map(|item| item.execution_id).collect::<Vec<_>>(), [second, first]);
        assert_eq!(give_back(&store, id, &holds, false).await, 1);
        assert_eq!(called(&store, id).await, [second]);
        store.assert_sound().await;
    }

    async fn a_lowered_limit_leaves_nobody_behind_what_can_never_pass(store) {
        let id = create(&store, Quota { weighted: weighted(1_000, 60_000), ..quota(&store) }).await;
        let start = store.now();
        let [holds, heavy, light, other] = [1_000, 500, 1, 1].map(|weight| asks(&store, "k", weight));
        assert_eq!(admitted(&store, id, &[holds, heavy.clone(), light.clone(), other.clone()]).await, [true, false, false, false]);
        let lower = PutQuota { actor: None, quota: Quota { quota_id: id, weighted: weighted(400, 60_000), ..quota(&store) }, version: Some(1) };
        store.call(route(&store, id), &lower).await.unwrap();
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [heavy.execution_id], "what can never pass asks anew");
        let again = QuotaCandidate { holder_id: store.uuid(0), number: 2, ..heavy.clone() };
        assert_eq!(admitted(&store, id, &[again]).await, [false]);
        store.assert_sound().await;
        store.go_to(start + 60_000);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [light.execution_id, other.execution_id]);
        let waiting = ListQuotaWaiters::new("k".into(), 8, id);
        let ListQuotaWaitersReply::Waiting { items, .. } = store.call(route(&store, id), &waiting).await.unwrap();
        assert_eq!(items.iter().map(|item| (item.execution_id, item.never)).collect::<Vec<_>>(), [(heavy.execution_id, true)]);
        store.assert_sound().await;
    }

    async fn weight_is_estimated_and_trued_up(store) {
        let id = create(&store, Quota { weighted: weighted(10, 60_000), ..quota(&store) }).await;
        let [large, small, huge] = [(8, 0), (3, 0), (11, 0)].map(|(weight, _)| asks(&store, "k", weight));
        let start = store.now();
        let answers = ask(&store, id, &[large.clone(), small.clone(), huge.clone()]).await;
        assert_eq!(answers.iter().map(|a| a.admitted).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!((answers[1].part, answers[1].used, answers[1].next_at), (Some(QuotaPart::Weighted), Some(8), Some(start + 60_000)));
        assert_eq!((answers[2].part, answers[2].next_at), (Some(QuotaPart::Weighted), None), "it never passes");
        let settle = async |one: &QuotaCandidate, weight| {
            let call = SettleQuota { execution_id: one.execution_id, holder_id: one.holder_id, key: "k".into(), quota_id: id, weight };
            store.call(route(&store, id), &call).await.unwrap()
        };
        assert_eq!(settle(&large, 7).await, SettleQuotaReply::Settled { used: 7, limit: 10 });
        assert_eq!(called(&store, id).await, [small.execution_id]);
        assert_eq!(admitted(&store, id, std::slice::from_ref(&small)).await, [true]);
        assert_eq!(settle(&small, 30).await, SettleQuotaReply::Settled { used: 37, limit: 10 }, "what it really weighed counts");
        assert_eq!(settle(&huge, 1).await, SettleQuotaReply::Gone);
        let late = asks(&store, "k", 1);
        assert_eq!(admitted(&store, id, std::slice::from_ref(&late)).await, [false]);
        store.assert_sound().await;
        give_back(&store, id, &small, true).await;
        assert_eq!(called(&store, id).await, [late.execution_id], "what never ran weighs nothing");
        store.assert_sound().await;

        let PutQuotaReply::Replaced { .. } = store
            .call(route(&store, id), &PutQuota { actor: None, quota: Quota { quota_id: id, weighted: weighted(20, 60_000), ..quota(&store) }, version: Some(1) })
            .await
            .unwrap()
        else { panic!("not replaced") };
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [huge.execution_id], "a raised limit calls who could not pass");
        assert_eq!(admitted(&store, id, &[huge]).await, [true]);
        store.assert_sound().await;
    }

    async fn a_weighted_part_that_comes_back_counts_from_nothing(store) {
        let id = create(&store, Quota { concurrency: Some(9), weighted: weighted(10, 60_000), ..quota(&store) }).await;
        assert_eq!(admitted(&store, id, &[asks(&store, "k", 8)]).await, [true]);
        for (version, part) in [(1, None), (2, weighted(10, 60_000))] {
            let definition = Quota { quota_id: id, concurrency: Some(9), weighted: part, ..quota(&store) };
            store.call(route(&store, id), &PutQuota { actor: None, quota: definition, version: Some(version) }).await.unwrap();
            store.fire_due(route(&store, id)).await;
            store.assert_sound().await;
        }
        assert_eq!(admitted(&store, id, &[asks(&store, "k", 9)]).await, [true]);
        store.advance(60_001);
        assert_eq!(admitted(&store, id, &[asks(&store, "k", 10), asks(&store, "k", 1)]).await, [true, false], "nothing is taken off twice");
        store.assert_sound().await;
    }

    async fn every_part_passes_or_nothing_is_taken(store) {
        let id = create(&store, Quota { rate: sliding(5, 1_000), concurrency: Some(1), weighted: weighted(5, 1_000), ..quota(&store) }).await;
        assert_eq!(admitted(&store, id, &[asks(&store, "k", 2), asks(&store, "k", 2)]).await, [true, false]);
        let seen = state(&store, id).await;
        let used: Vec<i64> = seen.parts.iter().map(|part| part.used).collect();
        assert_eq!((used, seen.held, seen.waiting), (vec![1, 1, 2], 1, 1));
        store.assert_sound().await;
    }

    async fn a_throttled_key_starts_nothing_until_its_time(store) {
        let id = create(&store, Quota { concurrency: Some(5), ..quota(&store) }).await;
        let until = store.now() + 2_000;
        let throttle = async |until| store.call(route(&store, id), &ThrottleQuota { actor: None, key: "k".into(), quota_id: id, until }).await.unwrap();
        assert_eq!(throttle(until).await, ThrottleQuotaReply::Throttled { until });
        assert_eq!(throttle(until - 1_000).await, ThrottleQuotaReply::Throttled { until }, "it is never shortened");
        let waiting = asks(&store, "k", 1);
        let answers = ask(&store, id, &[waiting.clone(), asks(&store, "other", 1)]).await;
        assert_eq!((answers[0].part, answers[0].next_at, answers[1].admitted), (Some(QuotaPart::Throttle), Some(until), true));
        assert_eq!(state(&store, id).await.throttled_until, Some(until));
        store.assert_sound().await;
        store.go_to(until);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [waiting.execution_id]);
        throttle(store.now() + 60_000).await;
        assert_eq!(admitted(&store, id, std::slice::from_ref(&waiting)).await, [false]);
        let until = store.now() + 60_000;
        assert_eq!(throttle(store.now()).await, ThrottleQuotaReply::Throttled { until }, "a word that comes late ends nothing");
        assert_eq!(throttle(0).await, ThrottleQuotaReply::Cleared);
        assert_eq!(called(&store, id).await, [waiting.execution_id]);
    }

    async fn a_deleted_quota_calls_who_waits_and_refuses_them(store) {
        let id = create(&store, Quota { concurrency: Some(1), ..quota(&store) }).await;
        let all: Vec<QuotaCandidate> = (0..3).map(|_| asks(&store, "k", 1)).collect();
        assert_eq!(admitted(&store, id, &all).await, [true, false, false]);
        let DeleteQuotaReply::Deleted = store.call(route(&store, id), &DeleteQuota { actor: None, quota_id: id }).await.unwrap();
        assert_eq!(refusal(store.call(route(&store, id), &GetQuota { key: None, quota_id: id }).await), ErrorCode::QuotaNotFound);
        store.fire_due(route(&store, id)).await;
        assert_eq!(called(&store, id).await, [all[1].execution_id, all[2].execution_id]);
        assert_eq!(refusal(store.call(route(&store, id), &AdmitQuota { candidates: all.clone(), quota_id: id }).await), ErrorCode::QuotaNotFound);
        assert_eq!(give_back(&store, id, &all[0], false).await, 1, "who ran leaves as before");
        assert_eq!(store.call(route(&store, id), &ListQuotas::new(5)).await, Ok(ListQuotasReply::Page { items: vec![], last: None, more: false }));
        store.advance(GRANT_MS);
        store.fire_all().await;
        assert_eq!(left(&store, id).await, Vec::<String>::new());
        store.assert_sound().await;
    }

    async fn a_grant_names_its_quotas_and_every_end_gives_them_back(store) {
        store.install_default_lane().await;
        let id = create(&store, Quota { concurrency: Some(1), ..quota(&store) }).await;
        let set = format!("quota:{id}:{K}");
        let execution = submit(&store, id).await;
        let granted = grants(&store, 1).await;
        assert_eq!(granted[0].holder_sets, Some(vec![set.clone()]));
        assert_eq!(admitted(&store, id, &[of_grant(&granted[0])]).await, [true]);
        store.ask(&ReleaseGrant::new(execution, granted[0].grant_id)).await.unwrap();
        assert_eq!(owed(&store).await, [(set.clone(), true)], "a grant that was not used");
        give_back(&store, id, &of_grant(&granted[0]), true).await;

        let granted = grants(&store, 1).await;
        store.advance(GRANT_MS);
        store.fire_all().await;
        assert_eq!(owed(&store).await, [(set.clone(), true)], "a grant that ran out");

        assert_ne!(grants(&store, 1).await, granted);
        let granted = {
            store.advance(GRANT_MS);
            store.fire_all().await;
            owed(&store).await;
            grants(&store, 1).await
        };
        let blocked = BlockExecution { detail: BTreeMap::new(), execution_id: execution, grant_id: granted[0].grant_id, reason: AdmissionReason::WaitingForQuota, unheld: Some(true) };
        store.ask(&blocked).await.unwrap();
        assert_eq!(owed(&store).await, [], "no quota has admitted it");
        let unblock = UnblockExecution { execution_id: execution, holder_id: Some(granted[0].grant_id), reason: AdmissionReason::WaitingForQuota };
        store.ask(&unblock).await.unwrap();

        let granted = grants(&store, 1).await;
        let task = consume(&store, &granted[0], None).await;
        store.complete(&task).await;
        assert_eq!(owed(&store).await, [(set, false)], "it ran");
        store.assert_sound().await;
    }

    async fn a_call_that_overtakes_the_block_is_not_lost(store) {
        store.install_default_lane().await;
        let id = create(&store, Quota { concurrency: Some(1), ..quota(&store) }).await;
        let execution = submit(&store, id).await;
        let granted = grants(&store, 1).await;
        let call = UnblockExecution { execution_id: execution, holder_id: Some(granted[0].grant_id), reason: AdmissionReason::WaitingForQuota };
        let UnblockExecutionReply::Unblocked { state } = store.ask(&call).await.unwrap() else { panic!("not unblocked") };
        assert_eq!(state, PublicState::Waiting);
        let block = BlockExecution { detail: BTreeMap::new(), execution_id: execution, grant_id: granted[0].grant_id, reason: AdmissionReason::WaitingForQuota, unheld: None };
        assert_eq!(refusal(store.ask(&block).await), ErrorCode::GrantNotFound);
        let again = grants(&store, 1).await;
        assert_eq!(again.len(), 1);
        assert!(matches!(store.ask(&call).await, Ok(UnblockExecutionReply::Already { .. })), "a call for an older grant takes nothing away");
        consume(&store, &again[0], None).await;
        store.assert_sound().await;
    }

    async fn a_slot_that_is_kept_stays_while_the_attempt_is_set_aside(store) {
        store.install_default_lane().await;
        let id = create(&store, Quota { concurrency: Some(1), hold_while_suspended: true, ..quota(&store) }).await;
        let set = format!("quota:{id}:{K}");
        let execution = submit(&store, id).await;
        let granted = grants(&store, 1).await;
        let answer = ask(&store, id, &[of_grant(&granted[0])]).await.remove(0);
        assert_eq!((answer.admitted, answer.keep.as_deref()), (true, Some(set.as_str())));
        let task = consume(&store, &granted[0], Some(vec![set.clone()])).await;
        store.suspend(&task, &[&store.waitpoint("door")]).await;
        assert_eq!(owed(&store).await, [], "it keeps the slot");
        let holder = Holder { execution_id: execution, expires_at: None, holder_id: granted[0].grant_id };
        let check = CheckHolders { holders: vec![holder], set: set.clone() };
        let CheckHoldersReply::Checked { items } = store.ask(&check).await.unwrap();
        assert_eq!(items[0].state, HolderState::Running);
        store.assert_sound().await;
        store.ask(&ResumeExecution::new("ann".into(), execution)).await.unwrap();
        let again = grants(&store, 1).await;
        assert_eq!((again[0].quotas.clone(), again[0].holder_sets.clone()), (Some(vec![]), None), "it need not ask for what it kept");
        let task = consume(&store, &again[0], None).await;
        store.assert_sound().await;
        store.complete(&task).await;
        assert_eq!(owed(&store).await, [(set, false)]);
        store.assert_sound().await;
    }

    async fn windows_and_slots_hold_against_a_plain_log(store) {
        for seed in 0..6 {
            against_a_log(&store, seed).await;
        }
        store.assert_sound().await;
    }
}

/// One start in the log.
#[derive(Clone, Debug)]
struct Start {
    at: i64,
    weight: i64,
}

/// Compares random admissions, returns, corrections and time with a log of everything that happened.
async fn against_a_log(store: &Store, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let definition = Quota {
        rate: if rng.random() { sliding(3, 700) } else { smooth(4, 1_000) },
        concurrency: Some(4),
        weighted: rng.random::<bool>().then_some(QuotaWeights { limit: 9, window_ms: 900 }),
        ..quota(store)
    };
    let rate = definition.rate.unwrap();
    let spacing = (rate.window_ms + rate.limit - 1) / rate.limit;
    let id = create(store, definition.clone()).await;
    let mut log: BTreeMap<Uuid, Start> = BTreeMap::new();
    let mut running: Vec<QuotaCandidate> = Vec::new();
    let mut waiting: BTreeMap<ExecutionId, QuotaCandidate> = BTreeMap::new();
    let mut last_started: Option<i64> = None;
    for step in 0..120 {
        let drain = step > 80;
        match rng.random_range(0..10) {
            0..=4 if !drain => {
                let mut asking: Vec<QuotaCandidate> =
                    (0..rng.random_range(1..4)).map(|_| asks(store, "k", rng.random_range(1..=6))).collect();
                for one in &mut asking {
                    one.expires_at = store.now() + 1_000_000;
                }
                admit_and_log(store, id, &asking, &definition, &mut log, &mut running, &mut waiting, &mut last_started)
                    .await;
            }
            5..=7 if !running.is_empty() => {
                let one = running.swap_remove(rng.random_range(0..running.len()));
                let unused = rng.random_ratio(1, 3);
                assert_eq!(give_back(store, id, &one, unused).await, 1);
                if unused
                    && let Some(gone) = log.remove(&one.holder_id)
                    && last_started == Some(gone.at)
                {
                    last_started = log.values().map(|start| start.at).max();
                }
            }
            8 if !running.is_empty() && definition.weighted.is_some() => {
                let one = &running[rng.random_range(0..running.len())];
                let weight = rng.random_range(0..=4);
                let call = SettleQuota {
                    execution_id: one.execution_id,
                    holder_id: one.holder_id,
                    key: "k".into(),
                    quota_id: id,
                    weight,
                };
                let reply = store.call(route(store, id), &call).await.unwrap();
                let start = log.get_mut(&one.holder_id).unwrap();
                let inside = start.at > store.now() - definition.weighted.as_ref().unwrap().window_ms;
                assert_eq!(matches!(reply, SettleQuotaReply::Settled { .. }), inside, "seed {seed} step {step}");
                if inside {
                    start.weight = weight;
                }
            }
            _ => {
                store.advance(rng.random_range(1..400));
                store.fire_due(route(store, id)).await;
            }
        }
        // Called executions ask again, under a new grant.
        let again: Vec<QuotaCandidate> = called(store, id)
            .await
            .into_iter()
            .map(|execution| {
                let before = waiting.remove(&execution).unwrap_or_else(|| panic!("{execution} did not wait"));
                QuotaCandidate {
                    holder_id: store.uuid(0),
                    expires_at: store.now() + 1_000_000,
                    number: before.number + 1,
                    ..before
                }
            })
            .collect();
        if !again.is_empty() {
            let before = running.len();
            admit_and_log(store, id, &again, &definition, &mut log, &mut running, &mut waiting, &mut last_started)
                .await;
            assert_eq!(running.len(), before + again.len(), "seed {seed} step {step}: who is called fits");
        }
        assert!(running.len() <= 4, "seed {seed} step {step}: {} hold 4 slots", running.len());
        let seen = state(store, id).await;
        assert_eq!((seen.held, seen.waiting), (running.len() as i64, waiting.len() as i64), "seed {seed} step {step}");
        let mut starts: Vec<i64> = log.values().map(|start| start.at).collect();
        starts.sort_unstable();
        for (index, from) in starts.iter().enumerate() {
            let inside = starts[index..].iter().filter(|at| **at < from + rate.window_ms).count() as i64;
            assert!(inside <= rate.limit, "seed {seed} step {step}: {inside} starts in a window of {rate:?}");
            if rate.mode == RateMode::Smooth
                && let Some(next) = starts.get(index + 1)
            {
                assert!(next - from >= spacing, "seed {seed} step {step}: {from} and {next}");
            }
        }
    }
    // All remaining work runs and ends without a sweep.
    for _ in 0..500 {
        for one in std::mem::take(&mut running) {
            give_back(store, id, &one, false).await;
        }
        let again: Vec<QuotaCandidate> =
            called(store, id).await.iter().map(|execution| waiting.remove(execution).unwrap()).collect();
        if again.is_empty() {
            if waiting.is_empty() {
                break;
            }
            store.advance(100);
            store.fire_due(route(store, id)).await;
        } else {
            admit_and_log(store, id, &again, &definition, &mut log, &mut running, &mut waiting, &mut last_started)
                .await;
        }
    }
    assert!(waiting.is_empty(), "seed {seed}: {} were never called", waiting.len());
    store.advance(2_000_000);
    store.fire_all().await;
    assert_eq!(left(store, id).await, Vec::<String>::new(), "seed {seed}");
}

/// Requests admission, and compares every reply with the log.
#[expect(clippy::too_many_arguments, reason = "it is one step of one test")]
async fn admit_and_log(
    store: &Store,
    id: QuotaPolicyId,
    asking: &[QuotaCandidate],
    definition: &Quota,
    log: &mut BTreeMap<Uuid, Start>,
    running: &mut Vec<QuotaCandidate>,
    waiting: &mut BTreeMap<ExecutionId, QuotaCandidate>,
    last_started: &mut Option<i64>,
) {
    let now = store.now();
    let rate = definition.rate.as_ref().unwrap();
    let spacing = (rate.window_ms + rate.limit - 1) / rate.limit;
    for (one, answer) in asking.iter().zip(ask(store, id, asking).await) {
        let starts = log.values().filter(|start| start.at > now - rate.window_ms).count() as i64;
        let free = match rate.mode {
            RateMode::Sliding => starts < rate.limit,
            RateMode::Smooth => last_started.is_none_or(|at| at + spacing <= now),
        };
        let light = definition.weighted.as_ref().is_none_or(|weighted| {
            let inside = log.values().filter(|start| start.at > now - weighted.window_ms);
            inside.map(|start| start.weight).sum::<i64>() + one.weight <= weighted.limit
        });
        // No execution overtakes those that wait.
        let line = answer.part == Some(QuotaPart::Line);
        assert!(!line || !waiting.is_empty(), "{one:?} at {now}: {answer:?}");
        let fits = !line && free && light && (running.len() as i64) < definition.concurrency.unwrap();
        if rate.mode == RateMode::Sliding || answer.admitted {
            assert_eq!(answer.admitted, fits, "{one:?} at {now}: {answer:?}");
        }
        if answer.admitted {
            log.insert(one.holder_id, Start { at: now, weight: one.weight });
            *last_started = Some(now);
            running.push(one.clone());
        } else {
            waiting.insert(one.execution_id, one.clone());
        }
    }
}
