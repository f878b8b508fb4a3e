//! Events: each transition appends exactly one, with its type and its subject; the stream is read by cursor.

use std::collections::BTreeMap;
use std::future::Future;

use ff_conformance::work::{Fenced, HOME, LANE, LEASE_MS, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::types::ExecutionId;
use ff_script::Route;
use ff_script::generated::*;

pub fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The facts of an event, without durations.
fn facts(event: &Event) -> BTreeMap<String, String> {
    let lasting = |name: &str| ["waited_ms", "ran_ms", "took_ms"].contains(&name);
    event.texts().into_iter().filter(|(name, _)| !lasting(name)).collect()
}

/// Runs one step, and expects exactly one event of the execution with exactly these facts.
pub async fn emits<T>(
    store: &Store,
    id: ExecutionId,
    kind: &str,
    data: &[(&str, &str)],
    step: impl Future<Output = T>,
) -> T {
    let before = store.events(HOME).await.len();
    let answer = step.await;
    let new = store.events(HOME).await.split_off(before);
    let said: Vec<_> =
        new.iter().map(|event| (event.r#type.as_str(), event.execution_id, facts(event), event.at)).collect();
    assert_eq!(said, [(kind, Some(id), map(data), store.now())]);
    let e = store.find(id).await;
    if let Ok(e) = e {
        assert_eq!(
            (new[0].namespace.as_deref(), new[0].lane.as_deref(), new[0].kind.as_deref()),
            (Some(e.namespace.as_str()), Some(e.lane.as_str()), Some(e.kind.as_str())),
            "{kind}"
        );
        assert_eq!(new[0].tags, e.tags, "{kind}");
        let attempts = e.attempts_spilled + e.attempts.len() as i64;
        assert_eq!(new[0].attempt_index, (attempts > 0).then(|| attempts - 1), "{kind}");
    }
    answer
}

pub async fn silent<T>(store: &Store, step: impl Future<Output = T>) -> T {
    let before = store.events(HOME).await;
    let answer = step.await;
    assert_eq!(store.events(HOME).await, before, "no transition, no event");
    answer
}

fn tagged(store: &Store) -> Submission {
    Submission { tags: Some(map(&[("customer", "42")])), ..store.submission("mail") }
}

async fn granted(store: &Store, call: &IssueGrants) -> uuid::Uuid {
    let Ok(IssueGrantsReply::Granted { grants, .. }) = store.ask(call).await else { panic!("not granted") };
    grants[0].grant_id
}

for_each_host! {
    async fn each_transition_of_an_execution_appends_one_event(store) {
        store.install_default_lane().await;
        let none = &[][..];
        let started = |kind| [("attempt_type", kind), ("continues", "false")];

        // Submit, start, and every way in which a worker ends an attempt.
        let submission = tagged(&store);
        let id = submission.execution_id;
        emits(&store, id, "execution.submitted", &[("state", "waiting")], store.submit(submission.clone())).await;
        silent(&store, store.try_submit(submission)).await.unwrap();
        let task = emits(&store, id, "execution.started", &started("initial"), store.claim_one("w1")).await;
        silent(&store, store.ask(&RenewLease::new(id, task.fence()))).await.unwrap();
        silent(&store, store.ask(&UpdateProgress::new(id, task.fence(), 5))).await.unwrap();
        silent(&store, store.ask(&AwaitResult { execution_id: id })).await.unwrap();
        emits(&store, id, "execution.yielded", none, store.ask(&YieldExecution { execution_id: id, fence: task.fence() })).await.unwrap();
        let task = emits(&store, id, "execution.started", &started("reclaim"), store.claim_one("w1")).await;
        let at = (store.now() + 10).to_string();
        emits(&store, id, "execution.delayed", &[("delay_until", &at)], store.ask(&DelayExecution { delay_ms: Some(10), ..DelayExecution::new(id, task.fence()) })).await.unwrap();
        silent(&store, store.ask(&DelayExecution { delay_ms: Some(10), ..DelayExecution::new(id, task.fence()) })).await.unwrap();
        store.advance(10);
        emits(&store, id, "execution.ready", &[("cause", "delay")], store.fire_all()).await;
        let task = store.claim_one("w1").await;
        let at = (store.now() + 7).to_string();
        let fail = FailExecution { retry_after_ms: Some(7), ..FailExecution::new("net".into(), 0, id, task.fence(), "down".into()) };
        emits(&store, id, "execution.retried", &[("category", "net"), ("delay_until", &at)], store.ask(&fail)).await.unwrap();
        store.advance(7);
        store.fire_all().await;
        let task = emits(&store, id, "execution.started", &started("retry"), store.claim_one("w1")).await;
        let fail = FailExecution { retryable: Some(false), ..FailExecution::new("auth".into(), 0, id, task.fence(), "no".into()) };
        emits(&store, id, "execution.failed", &[("category", "auth")], store.ask(&fail)).await.unwrap();
        silent(&store, store.ask(&fail)).await.unwrap();
        emits(&store, id, "execution.replayed", &[("actor", "ann")], store.ask(&ReplayExecution::new("ann".into(), id))).await.unwrap();
        let task = emits(&store, id, "execution.started", &started("replay"), store.claim_one("w1")).await;
        emits(&store, id, "execution.completed", none, store.complete(&task)).await;
        silent(&store, store.ask(&CancelExecution::new("ann".into(), id))).await.unwrap();
        emits(&store, id, "execution.retired", &[("actor", "ann")], store.ask(&DeleteExecution { actor: "ann".into(), execution_id: id })).await.unwrap();
    }

    async fn each_transition_by_time_appends_one_event(store) {
        store.install_default_lane().await;
        let expiring = Submission { deadline_ms: Some(5), retention_ms: Some(50), ..tagged(&store) };
        let id = store.submit(expiring).await;
        store.advance(5);
        emits(&store, id, "execution.expired", &[("category", "deadline")], store.fire_all()).await;
        store.advance(50);
        emits(&store, id, "execution.retired", &[], store.fire_all()).await;

        let id = store.submit(Submission { start_within_ms: Some(5), ..tagged(&store) }).await;
        store.advance(5);
        emits(&store, id, "execution.expired", &[("category", "start_within")], store.fire_all()).await;

        let task = store.start_with(Submission { max_reclaims: Some(1), ..tagged(&store) }, "w1").await;
        let id = task.execution_id;
        store.advance(LEASE_MS);
        emits(&store, id, "execution.reclaimed", &[("cause", "expired"), ("worker_instance", "w1")], store.fire_all()).await;
        store.claim_one("w1").await;
        store.advance(LEASE_MS);
        emits(&store, id, "execution.failed", &[("category", "poisoned"), ("cause", "expired")], store.fire_all()).await;

        let retry = Retry { max_attempts: Some(2), jitter: Some(Jitter::None), ..Retry::default() };
        let id = store.start_with(Submission { attempt_timeout_ms: Some(5), retry: Some(retry), ..tagged(&store) }, "w1").await.execution_id;
        store.advance(5);
        let at = (store.now() + 1_000).to_string();
        emits(&store, id, "execution.retried", &[("category", "timeout"), ("delay_until", &at)], store.fire_all()).await;
    }

    async fn each_action_of_a_person_appends_one_event_with_its_actor(store) {
        store.install_default_lane().await;
        let id = store.submit(tagged(&store)).await;
        emits(&store, id, "execution.held", &[("actor", "ann"), ("reason", "audit")], store.ask(&HoldExecution { reason: Some("audit".into()), ..HoldExecution::new("ann".into(), id) })).await.unwrap();
        silent(&store, store.ask(&HoldExecution::new("ann".into(), id))).await.unwrap();
        emits(&store, id, "execution.released", &[("actor", "bob")], store.ask(&ReleaseExecution::new("bob".into(), id))).await.unwrap();
        silent(&store, store.ask(&ReleaseExecution::new("bob".into(), id))).await.unwrap();
        emits(&store, id, "execution.changed", &[("actor", "ann")], store.ask(&ChangeExecution { priority: Some(2), ..ChangeExecution::new("ann".into(), id) })).await.unwrap();
        store.claim_one("w1").await;
        emits(&store, id, "execution.yield_requested", &[("actor", "ann")], store.ask(&RevokeLease { grace: Some(true), ..RevokeLease::new("ann".into(), id) })).await.unwrap();
        emits(&store, id, "execution.reclaimed", &[("actor", "ann"), ("cause", "revoked"), ("worker_instance", "w1")], store.ask(&RevokeLease::new("ann".into(), id))).await.unwrap();
        let hand = GrantReclaim { execution_id: id, grant_id: store.uuid(0), instance: "w2".into(), ttl_ms: 1_000, actor: "ann".into(), namespace: "default".into(), lanes: vec!["default".into()], kinds: None, capabilities: vec![] };
        emits(&store, id, "execution.granted", &[("actor", "ann"), ("worker_instance", "w2")], store.ask(&hand)).await.unwrap();
        store.advance(1_000);
        emits(&store, id, "execution.ready", &[("cause", "grant_expired")], store.fire_all()).await;
        store.claim_one("w1").await;
        let drain = |revoke| DrainLeases { instance: "w1".into(), revoke, limit: 10, actor: "ann".into() };
        emits(&store, id, "execution.yield_requested", &[("actor", "ann")], store.ask(&drain(false))).await.unwrap();
        silent(&store, store.ask(&drain(false))).await.unwrap();
        emits(&store, id, "execution.reclaimed", &[("actor", "ann"), ("cause", "revoked"), ("worker_instance", "w1")], store.ask(&drain(true))).await.unwrap();
        store.claim_one("w1").await;
        let cancel = CancelExecution { reason: Some("enough".into()), ..CancelExecution::new("ann".into(), id) };
        let graceful = CancelExecution { grace_ms: Some(5), ..cancel.clone() };
        emits(&store, id, "execution.cancel_requested", &[("actor", "ann"), ("reason", "enough")], store.ask(&graceful)).await.unwrap();
        emits(&store, id, "execution.cancelled", &[("actor", "ann"), ("category", "cancelled"), ("reason", "enough")], store.ask(&cancel)).await.unwrap();
        let task = store.start_with(tagged(&store), "w1").await;
        emits(&store, task.execution_id, "execution.cancelled", &[("category", "cancelled")], store.ask(&CancelAttempt::new(task.execution_id, task.fence()))).await.unwrap();
    }

    async fn each_step_of_admission_appends_one_event(store) {
        store.install_default_lane().await;
        let id = store.submit(Submission { quotas: Some(vec![QuotaRef::new(store.uuid(0), "k".into())]), ..tagged(&store) }).await;
        let issue = |store: &Store| IssueGrants { namespace: NAMESPACE.into(), lane: LANE.into(), instance: "w1".into(), kinds: None, capabilities: vec![], max: 1, lease_ids: None, ttl_ms: 1_000, grant_ids: vec![store.uuid(0)] };
        let call = issue(&store);
        emits(&store, id, "execution.granted", &[("worker_instance", "w1")], store.ask(&call)).await.unwrap();
        silent(&store, store.ask(&call)).await.unwrap();
        let release = ReleaseGrant::new(id, call.grant_ids[0]);
        emits(&store, id, "execution.ready", &[("cause", "grant_released")], store.ask(&release)).await.unwrap();
        let grant_id = granted(&store, &issue(&store)).await;
        let block = BlockExecution { unheld: None, execution_id: id, grant_id, reason: AdmissionReason::WaitingForQuota, detail: map(&[("quota", "q")]) };
        emits(&store, id, "execution.blocked", &[("reason", "waiting_for_quota")], store.ask(&block)).await.unwrap();
        silent(&store, store.ask(&block)).await.unwrap();
        let unblock = UnblockExecution { holder_id: None, execution_id: id, reason: AdmissionReason::WaitingForQuota };
        emits(&store, id, "execution.ready", &[("cause", "waiting_for_quota")], store.ask(&unblock)).await.unwrap();
        silent(&store, store.ask(&unblock)).await.unwrap();
        let grant_id = granted(&store, &issue(&store)).await;
        let ids = store.lease_ids();
        let consume = ConsumeGrant {
                keep: None,
            execution_id: id, grant_id, instance: "w1".into(), worker_id: "k".into(), kinds: None, capabilities: vec![], lease_ttl_ms: LEASE_MS, attempt_id: ids.attempt_id, lease_id: ids.lease_id,
        };
        emits(&store, id, "execution.started", &[("attempt_type", "initial"), ("continues", "false")], store.ask(&consume)).await.unwrap();
        silent(&store, store.ask(&consume)).await.unwrap();
    }

    async fn a_worker_is_named_where_one_was_involved(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        store.complete(&task).await;
        let workers: Vec<_> = store.events(HOME).await.into_iter().map(|event| (event.r#type, event.worker_instance)).collect();
        let w1 = Some("w1".to_owned());
        assert_eq!(workers, [("execution.submitted".to_owned(), None), ("execution.started".to_owned(), w1.clone()), ("execution.completed".to_owned(), w1)]);
    }

    async fn a_refused_call_appends_nothing(store) {
        store.install_default_lane().await;
        let id = store.submit_kind("mail").await;
        silent(&store, store.try_submit(Submission { body_digest: ff_conformance::work::digest("x"), execution_id: id, ..store.submission("mail") })).await.unwrap_err();
        silent(&store, store.ask(&ReplayExecution::new("ann".into(), id))).await.unwrap_err();
        silent(&store, store.ask(&RevokeLease::new("ann".into(), id))).await.unwrap_err();
    }

    async fn events_are_read_by_cursor_each_once(store) {
        store.install_default_lane().await;
        assert!(matches!(store.ask(&ReadEvents::new(10)).await, Ok(ReadEventsReply::Events { entries, oldest: None, latest: None, .. }) if entries.is_empty()));
        for _ in 0..5 {
            store.submit_kind("mail").await;
        }
        let all = store.events(HOME).await;
        assert_eq!(all.len(), 5);
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let ReadEventsReply::Events { entries, oldest, latest, .. } = store.ask(&ReadEvents { after: after.clone(), ..ReadEvents::new(2) }).await.unwrap();
            let items = Event::read_all(&entries, after.as_deref(), 2).unwrap();
            assert_eq!((oldest.as_ref(), latest.as_ref()), (Some(&all[0].id), Some(&all[4].id)));
            let Some(last) = items.last() else { break };
            after = Some(last.id.clone());
            paged.extend(items);
        }
        assert_eq!(paged, all);
        let from: i64 = all[0].id.split('-').next().unwrap().parse().unwrap();
        let ReadEventsReply::Events { entries, .. } = store.ask(&ReadEvents { from_ms: Some(from), ..ReadEvents::new(100) }).await.unwrap();
        assert_eq!(Event::read_all(&entries, None, 100).unwrap(), all, "from the time of the first");
        let ReadEventsReply::Events { entries, .. } = store.ask(&ReadEvents { from_ms: Some(from + 3_600_000), ..ReadEvents::new(100) }).await.unwrap();
        assert!(entries.is_empty(), "from a time after the last");
    }

    async fn young_events_are_not_trimmed(store) {
        store.install_default_lane().await;
        let id = store.submit_kind("mail").await;
        assert_eq!(store.ask(&TrimEvents {}).await, Ok(TrimEventsReply::Trimmed));
        assert_eq!(store.story(id).await, ["execution.submitted"]);
    }

    async fn a_lane_that_changes_is_an_event_of_the_fleet(store) {
        let define = DefineLane { state: Some(LaneState::Paused), ..DefineLane::new("ann".into(), LANE.into(), NAMESPACE.into()) };
        for _ in 0..2 {
            store.call(Route::Fleet, &define).await.unwrap();
        }
        let events = store.events(Route::Fleet).await;
        assert_eq!(events.len(), 1, "repeating the same changes nothing");
        assert_eq!((events[0].r#type.as_str(), events[0].lane.as_deref(), &events[0].texts()), ("lane.changed", Some(LANE), &map(&[("actor", "ann"), ("state", "paused")])));
    }
}
