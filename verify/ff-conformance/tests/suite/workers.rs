//! Workers and servers: registered, kept alive, drained, declared dead, and removed when their time is over.

use ff_conformance::harness::refusal;
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_script::generated::*;
use ff_script::{Call, Error, Route};
use uuid::Uuid;

const TTL_MS: i64 = 30_000;

async fn fleet<C: Call>(store: &Store, call: &C) -> Result<C::Reply, Error> {
    store.call(Route::Fleet, call).await
}

fn register(instance: &str) -> RegisterWorker {
    RegisterWorker::new(
        vec!["gpu".into(), "eu".into()],
        instance.into(),
        vec!["default".into(), "mail".into()],
        "acme".into(),
        8,
        "mailer".into(),
    )
}

async fn list(store: &Store) -> Vec<String> {
    let (mut names, mut offset) = (Vec::new(), 0);
    loop {
        let ListWorkersReply::Workers { items, more } = fleet(store, &ListWorkers { offset, limit: 2 }).await.unwrap();
        names.extend(items.into_iter().map(|worker| worker.instance));
        offset += 2;
        if !more {
            return names;
        }
    }
}

async fn beat(store: &Store, instances: &[&str]) -> Vec<(bool, bool)> {
    let instances = instances.iter().map(|&name| name.to_owned()).collect();
    let HeartbeatWorkersReply::Beaten { items } = fleet(store, &HeartbeatWorkers { instances }).await.unwrap();
    items.into_iter().map(|item| (item.known, item.draining)).collect()
}

async fn fleet_events(store: &Store) -> Vec<(String, Option<String>)> {
    store.events(Route::Fleet).await.into_iter().map(|event| (event.r#type, event.worker_instance)).collect()
}

for_each_host! {
    async fn a_registration_is_described_as_it_was_said(store) {
        let incarnation = Uuid::from_u128(77);
        fleet(&store, &RegisterWorker { incarnation: Some(incarnation), ..register("w1") }).await.unwrap();
        let GetWorkerReply::Worker { item } = fleet(&store, &GetWorker { instance: "w1".into() }).await.unwrap();
        let expected = Worker {
            kinds: None,
            instance: "w1".into(), worker_id: "mailer".into(), namespace: "acme".into(), lanes: vec!["default".into(), "mail".into()],
            capabilities: vec!["gpu".into(), "eu".into()], slots: 8, state: WorkerState::Live, incarnation: Some(incarnation), owner: None, registered_at: store.now(),
            expires_at: store.now() + TTL_MS,
        };
        assert_eq!(item, expected);
        assert_eq!(refusal(fleet(&store, &GetWorker { instance: "w2".into() }).await), ErrorCode::WorkerNotRegistered);
        // A new registration replaces the lanes it serves.
        store.advance(5);
        fleet(&store, &RegisterWorker { capabilities: vec![], slots: 1, incarnation: Some(incarnation), ..register("w1") }).await.unwrap();
        let GetWorkerReply::Worker { item } = fleet(&store, &GetWorker { instance: "w1".into() }).await.unwrap();
        assert_eq!((item.capabilities.len(), item.slots, item.registered_at, item.expires_at), (0, 1, store.now() - 5, store.now() + TTL_MS));
        let nowhere = RegisterWorker { lanes: vec![], ..register("w3") };
        assert_eq!(refusal(fleet(&store, &nowhere).await), ErrorCode::InvalidArgument);
    }

    async fn a_heartbeat_keeps_workers_alive(store) {
        for name in ["w1", "w2"] {
            fleet(&store, &register(name)).await.unwrap();
        }
        store.advance(TTL_MS - 1);
        assert_eq!(beat(&store, &["w1", "nobody"]).await, [(true, false), (false, false)]);
        store.advance(1);
        assert_eq!(list(&store).await, ["w1"], "who did not beat does not count, even before the timer");
        assert_eq!(beat(&store, &["w2"]).await, [(false, false)], "and cannot come back without registering");
        store.fire_all().await;
        assert_eq!(list(&store).await, ["w1"]);
        store.advance(TTL_MS - 2);
        store.fire_all().await;
        assert_eq!(list(&store).await, ["w1"]);
        store.advance(1);
        store.fire_all().await;
        assert!(list(&store).await.is_empty());
        assert_eq!(fleet_events(&store).await, [
            ("worker.registered".to_owned(), Some("w1".to_owned())), ("worker.registered".to_owned(), Some("w2".to_owned())),
            ("worker.expired".to_owned(), Some("w2".to_owned())), ("worker.expired".to_owned(), Some("w1".to_owned())),
        ]);
        assert!(store.dump_without_streams().await.keys().all(|key| !key.contains("{w}")), "nothing is left of them");
    }

    async fn workers_are_listed_in_pages(store) {
        for name in ["w3", "w1", "w5", "w2", "w4"] {
            fleet(&store, &register(name)).await.unwrap();
            store.advance(1);
        }
        let mut names = list(&store).await;
        names.sort();
        assert_eq!(names, ["w1", "w2", "w3", "w4", "w5"]);
    }

    async fn an_instance_belongs_to_one_live_incarnation(store) {
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let as_incarnation = |incarnation| RegisterWorker { incarnation: Some(incarnation), ..register("w1") };
        fleet(&store, &as_incarnation(first)).await.unwrap();
        let before = store.dump().await;
        assert_eq!(refusal(fleet(&store, &as_incarnation(second)).await), ErrorCode::InstanceInUse);
        let leave = |incarnation| DeregisterWorker { incarnation: Some(incarnation), ..DeregisterWorker::new("w1".into()) };
        assert_eq!(refusal(fleet(&store, &leave(second)).await), ErrorCode::InstanceInUse);
        assert_eq!(store.dump().await, before);
        assert!(fleet(&store, &as_incarnation(first)).await.is_ok(), "the same one may register again");
        assert!(fleet(&store, &RegisterWorker { take_over: Some(true), ..as_incarnation(second) }).await.is_ok(), "another one may insist");
        assert_eq!(refusal(fleet(&store, &as_incarnation(first)).await), ErrorCode::InstanceInUse);
        store.advance(TTL_MS);
        assert!(fleet(&store, &as_incarnation(first)).await.is_ok(), "a dead one's name is free, even before the timer");
        assert_eq!(fleet(&store, &leave(first)).await, Ok(DeregisterWorkerReply::Deregistered));
        assert_eq!(fleet(&store, &leave(first)).await, Ok(DeregisterWorkerReply::Unknown));
    }

    async fn a_drained_worker_is_told_and_its_leases_are_owed(store) {
        let drain = DrainWorker { instance: "w1".into(), actor: "ann".into() };
        assert_eq!(refusal(fleet(&store, &drain).await), ErrorCode::WorkerNotRegistered);
        fleet(&store, &register("w1")).await.unwrap();
        assert_eq!(fleet(&store, &drain).await, Ok(DrainWorkerReply::Draining));
        let before = store.dump().await;
        assert_eq!(fleet(&store, &drain).await, Ok(DrainWorkerReply::Already));
        assert_eq!(store.dump().await, before);
        assert_eq!(beat(&store, &["w1"]).await, [(true, true)]);
        let GetWorkerReply::Worker { item } = fleet(&store, &GetWorker { instance: "w1".into() }).await.unwrap();
        assert_eq!(item.state, WorkerState::Draining);
        let ReadOutboxReply::Effects { items } = fleet(&store, &ReadOutbox::new(10)).await.unwrap();
        assert_eq!(items.iter().map(|effect| (effect.r#type.as_str(), effect.data["instance"].as_str(), effect.data["actor"].as_str())).collect::<Vec<_>>(), [("yield_leases", "w1", "ann")]);
        // A worker that registers again starts fresh.
        fleet(&store, &register("w1")).await.unwrap();
        assert_eq!(beat(&store, &["w1"]).await, [(true, false)]);
        assert_eq!(fleet_events(&store).await.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>(), ["worker.registered", "worker.draining", "worker.registered"]);
    }

    async fn a_worker_declared_dead_is_gone_and_its_leases_are_owed(store) {
        let dead = MarkWorkerDead { instance: "w1".into(), actor: "ann".into() };
        assert_eq!(refusal(fleet(&store, &dead).await), ErrorCode::WorkerNotRegistered);
        fleet(&store, &register("w1")).await.unwrap();
        assert_eq!(fleet(&store, &dead).await, Ok(MarkWorkerDeadReply::Marked));
        assert!(list(&store).await.is_empty());
        assert_eq!(beat(&store, &["w1"]).await, [(false, false)]);
        let ReadOutboxReply::Effects { items } = fleet(&store, &ReadOutbox::new(10)).await.unwrap();
        assert_eq!((items[0].r#type.as_str(), items[0].data["instance"].as_str(), items[0].at), ("revoke_leases", "w1", store.now()));
        assert_eq!(fleet_events(&store).await.last().unwrap().0, "worker.marked_dead");
    }

    async fn what_is_owed_stays_until_it_is_struck(store) {
        for name in ["w1", "w2", "w3"] {
            fleet(&store, &register(name)).await.unwrap();
            fleet(&store, &DrainWorker { instance: name.into(), actor: "ann".into() }).await.unwrap();
        }
        let read = |limit| { let store = store.clone(); async move {
            let ReadOutboxReply::Effects { items } = fleet(&store, &ReadOutbox::new(limit)).await.unwrap();
            items
        }};
        let all = read(10).await;
        assert_eq!(all.iter().map(|effect| effect.data["instance"].as_str()).collect::<Vec<_>>(), ["w1", "w2", "w3"]);
        assert_eq!(read(2).await, all[..2]);
        let strike = AckOutbox { ids: vec![all[0].id.clone(), all[2].id.clone()] };
        for _ in 0..2 {
            assert_eq!(fleet(&store, &strike).await, Ok(AckOutboxReply::Struck));
        }
        assert_eq!(read(10).await, all[1..2]);
    }

    async fn live_servers_see_each_other(store) {
        let server = |id, listening| HeartbeatServer::new(listening, Uuid::from_u128(id));
        let beat = |call: HeartbeatServer| { let store = store.clone(); async move {
            let HeartbeatServerReply::Servers { items } = fleet(&store, &call).await.unwrap();
            items.into_iter().map(|server| (server.server_id.as_u128(), server.expires_at - store.now(), server.listening)).collect::<Vec<_>>()
        }};
        assert_eq!(beat(server(1, false)).await, [(1, 2_000, false)]);
        store.advance(500);
        assert_eq!(beat(server(2, true)).await, [(1, 1_500, false), (2, 2_000, true)]);
        store.advance(1_500);
        assert_eq!(beat(server(2, true)).await, [(2, 2_000, true)], "who did not beat for two seconds is gone");
        assert_eq!(beat(server(1, true)).await, [(1, 2_000, true), (2, 2_000, true)]);
        assert_eq!(beat(HeartbeatServer { leave: Some(true), ..server(2, true) }).await, [(1, 2_000, true)], "who leaves is gone at once");
        store.advance(60_000);
        assert_eq!(beat(HeartbeatServer { leave: Some(true), ..server(9, true) }).await, []);
        assert!(store.dump_without_streams().await.keys().all(|key| !key.contains("servers")), "the records of the dead are swept");
    }

    async fn a_registration_is_not_described_past_its_end(store) {
        fleet(&store, &register("w1")).await.unwrap();
        let get = GetWorker { instance: "w1".into() };
        store.advance(TTL_MS - 1);
        assert!(fleet(&store, &get).await.is_ok());
        store.advance(1);
        assert_eq!(refusal(fleet(&store, &get).await), ErrorCode::WorkerNotRegistered, "even before the timer");
    }

    async fn a_challenge_is_answered_by_the_registered_incarnation_only(store) {
        let (first, second, nonce) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let challenge = ChallengeWorker { instance: "w1".into(), nonce };
        let answer = |incarnation| AnswerChallenge { instance: "w1".into(), incarnation, nonce };
        assert_eq!(fleet(&store, &challenge).await, Ok(ChallengeWorkerReply::Unknown));
        assert_eq!(refusal(fleet(&store, &answer(first)).await), ErrorCode::WorkerNotRegistered);
        fleet(&store, &RegisterWorker { incarnation: Some(first), ..register("w1") }).await.unwrap();
        assert_eq!(fleet(&store, &challenge).await, Ok(ChallengeWorkerReply::Challenged));
        assert_eq!(refusal(fleet(&store, &answer(second)).await), ErrorCode::InstanceInUse);
        assert_eq!(fleet(&store, &challenge).await, Ok(ChallengeWorkerReply::Challenged), "no process has responded");
        store.advance(TTL_MS - 1);
        assert_eq!(fleet(&store, &answer(first)).await, Ok(AnswerChallengeReply::Answered));
        assert_eq!(fleet(&store, &challenge).await, Ok(ChallengeWorkerReply::Answered));
        let other = ChallengeWorker { nonce: Uuid::from_u128(4), ..challenge.clone() };
        assert_eq!(fleet(&store, &other).await, Ok(ChallengeWorkerReply::Challenged), "an answer is to one question");
        store.advance(TTL_MS - 1);
        assert_eq!(list(&store).await, ["w1"], "an answer is a sign of life");
        store.advance(1);
        assert_eq!(fleet(&store, &challenge).await, Ok(ChallengeWorkerReply::Unknown));
        store.fire_all().await;
        assert!(store.dump_without_streams().await.keys().all(|key| !key.contains("{w}")), "nothing is left of it");
    }
}
