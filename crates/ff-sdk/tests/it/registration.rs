//! Who may be a worker: settings, instance ids, liveness.

use std::time::Duration;

use ff_core::types::{LaneId, WorkerInstanceId};
use ff_sdk::backend::Transport;
use ff_sdk::{FlowFabricWorker, SdkError, WorkerConfig, WorkerState};

use crate::world::{World, claim, until};

fn field(error: SdkError) -> String {
    match error {
        SdkError::Config { context, field: Some(field), .. } if context == "connect" => field,
        other => panic!("{other:?}"),
    }
}

async fn instances(world: &World) -> Vec<String> {
    world.admin.list_workers().await.unwrap().into_iter().map(|worker| worker.instance).collect()
}

for_each_transport! {
    async fn wrong_settings_are_refused_at_connect_by_name(world: &World) {
        type Change = fn(&mut WorkerConfig);
        let table: &[(&str, Change)] = &[
            ("lanes", |c| c.lanes.clear()),
            ("lease_ttl_ms", |c| c.lease_ttl_ms = 999),
            ("capabilities", |c| c.capabilities = vec![String::new()]),
            ("capabilities", |c| c.capabilities = vec!["a,b".to_owned()]),
            ("capabilities", |c| c.capabilities = vec!["a b".to_owned()]),
            ("capabilities", |c| c.capabilities = vec!["a\u{1}".to_owned()]),
            ("capabilities", |c| c.capabilities = (0..65).map(|n| n.to_string()).collect()),
            ("capabilities", |c| c.capabilities = vec!["x".repeat(4_097)]),
        ];
        for (expected, change) in table {
            let mut config = world.config("w-1");
            change(&mut config);
            assert_eq!(field(FlowFabricWorker::connect(config).await.unwrap_err()), *expected);
        }
        assert!(instances(world).await.is_empty(), "nothing was registered");
        let mut config = world.config("w-1");
        config.capabilities = vec!["größe".to_owned()];
        config.lanes.push(LaneId::new("second"));
        FlowFabricWorker::connect(config).await.unwrap().disconnect().await.unwrap();
    }

    async fn a_second_process_with_the_same_instance_id_is_refused_at_start_and_later(world: &World) {
        let first = world.worker("same").await;
        let error = FlowFabricWorker::connect(world.config("same")).await.unwrap_err();
        assert_eq!(field(error), "worker_instance_id", "a worker that asks for nothing lives as well");
        let waiting = tokio::spawn(async move {
            let _ = first.claim_many(1, Duration::from_secs(15)).await;
            first
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        for _ in 0..2 {
            let error = FlowFabricWorker::connect(world.config("same")).await.unwrap_err();
            assert_eq!(field(error), "worker_instance_id");
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        assert!(!waiting.is_finished());
        world.submit("k", b"{}").await;
        let first = waiting.await.unwrap();
        assert_eq!(first.state(), WorkerState::Serving);
        first.disconnect().await.unwrap();
        let second = FlowFabricWorker::connect(world.config("same")).await.unwrap();
        second.disconnect().await.unwrap();
    }

    async fn disconnecting_and_dropping_release_the_instance_id(world: &World) {
        let worker = world.worker("w-1").await;
        assert_eq!(instances(world).await, ["w-1"]);
        worker.disconnect().await.unwrap();
        worker.disconnect().await.unwrap();
        assert_eq!(worker.state(), WorkerState::Disconnected);
        assert!(instances(world).await.is_empty());
        assert!(worker.claim_next().await.unwrap().is_none());
        let worker = world.worker("w-1").await;
        drop(worker);
        until("the registration is gone", || async { instances(world).await.is_empty() }).await;
    }

    async fn a_drained_worker_takes_nothing_new(world: &World) {
        let worker = world.worker("w-1").await;
        world.admin.drain_worker(&WorkerInstanceId::new("w-1")).await.unwrap();
        let mut state = worker.watch_state();
        let draining = state.wait_for(|state| *state == WorkerState::Draining);
        tokio::time::timeout(crate::world::SOON, draining).await.expect("it hears so at once").unwrap();
        world.submit("k", b"{}").await;
        assert!(worker.claim_next().await.unwrap().is_none());
    }

    async fn a_drained_worker_is_asked_for_what_it_holds_at_once(world: &World) {
        let worker = world.worker("w-1").await;
        world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        // Its lease is not due for a renewal for ten seconds.
        world.admin.drain_worker(&WorkerInstanceId::new("w-1")).await.unwrap();
        let reason = tokio::time::timeout(crate::world::SOON, task.cancellation().cancelled()).await;
        assert_eq!(reason.expect("it is asked soon"), ff_sdk::CancelReason::YieldRequested);
        task.yield_back().await.unwrap();
    }
}

/// Takes a registration over, whoever has it.
fn thief(instance: &str) -> ff_script::generated::RegisterWorker {
    ff_script::generated::RegisterWorker {
        incarnation: Some(uuid::Uuid::new_v4()),
        take_over: Some(true),
        ..ff_script::generated::RegisterWorker::new(
            Vec::new(),
            instance.to_owned(),
            vec!["work".into()],
            "default".into(),
            1,
            "thief".into(),
        )
    }
}

/// A worker whose process is gone without a word: a runtime that is thrown away.
fn ghost(config: WorkerConfig) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let worker = runtime.block_on(async {
            let worker = FlowFabricWorker::connect(config).await.unwrap();
            // It lives for a moment: long enough to be seen by a server.
            tokio::time::sleep(Duration::from_millis(300)).await;
            worker
        });
        std::mem::forget(worker);
        runtime.shutdown_background();
    })
    .join()
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_worker_restarts_at_once() {
    for world in [World::embedded().await, World::valkey().await] {
        if world.transport == Transport::Embedded {
            // One process is one store here: only its tasks can die, so the registration is made by hand.
            let call = ff_script::generated::RegisterWorker {
                incarnation: Some(uuid::Uuid::new_v4()),
                ..ff_script::generated::RegisterWorker::new(
                    Vec::new(),
                    "w-1".into(),
                    vec!["work".into()],
                    "default".into(),
                    1,
                    "tester".into(),
                )
            };
            let ff_sdk::BackendConfig::Embedded(engine) = &world.config("w-1").backend else { panic!() };
            engine.engine().operations().register_worker(call).await.unwrap();
        } else {
            ghost(world.config("w-1"));
        }
        let worker = world.worker("w-1").await;
        world.submit("k", b"{}").await;
        claim(&worker).await.complete(None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_was_replaced_stops_claiming() {
    for world in [World::embedded().await, World::valkey().await] {
        let worker = world.worker("w-1").await;
        let mut state = worker.watch_state();
        let taker = thief("w-1");
        match (&world.config("x").backend, &world.behind) {
            (ff_sdk::BackendConfig::Embedded(engine), _) => {
                engine.engine().operations().register_worker(taker).await.unwrap()
            }
            (_, crate::world::Behind::Valkey { engine, .. }) => {
                engine.operations().register_worker(taker).await.unwrap()
            }
            _ => unreachable!(),
        };
        let replaced = state.wait_for(|state| *state == WorkerState::Replaced);
        tokio::time::timeout(crate::world::SOON, replaced).await.expect("it hears so at once").unwrap();
        world.submit("k", b"{}").await;
        assert!(worker.claim_next().await.unwrap().is_none());
        drop(worker);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(instances(&world).await, ["w-1"], "the other process's registration stays");
    }
}

/// A server over Valkey, and the settings of a worker that goes around it.
async fn server_over_valkey() -> (ff_testkit::TestServer, ff_server::Server, [WorkerConfig; 2]) {
    let valkey = ff_testkit::TestServer::start(ff_testkit::Options::default()).unwrap();
    let options = ff_backend_valkey::Options::new(valkey.url(), ff_script::Library::shipped());
    let host = std::sync::Arc::new(ff_backend_valkey::ValkeyHost::connect(options).await.unwrap());
    let engine =
        ff_engine::EngineOptions { partitions: crate::world::partitions(), ..ff_engine::EngineOptions::default() };
    // No token is made here, so no keys are either.
    let options = ff_server::ServerOptions::local("127.0.0.1:0".parse().unwrap(), &std::env::temp_dir()).unwrap();
    let server = ff_server::Server::start(host, engine, options).await.unwrap();
    let over_http = WorkerConfig::http(format!("http://{}", server.address()), "tester", "same", "default", "work");
    let direct = WorkerConfig::new("127.0.0.1", valkey.port(), "tester", "same", "default", "work");
    (valkey, server, [over_http, direct])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_answers_for_its_workers_when_a_direct_newcomer_asks() {
    let (_valkey, _server, [over_http, direct]) = server_over_valkey().await;
    let holder = FlowFabricWorker::connect(over_http.clone()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(field(FlowFabricWorker::connect(direct.clone()).await.unwrap_err()), "worker_instance_id");
    }
    assert_eq!(holder.state(), WorkerState::Serving);
    holder.disconnect().await.unwrap();
    let holder = FlowFabricWorker::connect(direct.clone()).await.unwrap();
    assert_eq!(field(FlowFabricWorker::connect(over_http.clone()).await.unwrap_err()), "worker_instance_id");
    holder.disconnect().await.unwrap();

    // A process that is gone is not answered for.
    ghost(over_http);
    let holder = FlowFabricWorker::connect(direct).await.unwrap();
    assert_eq!(holder.state(), WorkerState::Serving);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_over_http_whose_id_was_taken_hears_so_at_once() {
    let (valkey, _server, [over_http, _]) = server_over_valkey().await;
    let holder = FlowFabricWorker::connect(over_http).await.unwrap();
    let mut state = holder.watch_state();
    let options = ff_backend_valkey::Options::new(valkey.url(), ff_script::Library::shipped());
    let host = std::sync::Arc::new(ff_backend_valkey::ValkeyHost::connect(options).await.unwrap());
    let tool = ff_engine::EngineOptions::tool();
    let tool = ff_engine::Engine::start(host, tool).await.unwrap();
    tool.operations().register_worker(thief("same")).await.unwrap();
    let replaced = state.wait_for(|state| *state == WorkerState::Replaced);
    tokio::time::timeout(crate::world::SOON, replaced).await.expect("it hears so at once").unwrap();
    assert!(holder.claim_next().await.unwrap().is_none());
}
