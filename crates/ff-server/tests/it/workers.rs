//! Registration, long polls, repeated claims, slots.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::kit::{Api, Kind, Kit, eventually, fence, plain_client, run_hurried};

/// A claim on a connection of its own that is cut off after a while.
async fn cut_off(api: &Api, instance: &str, body: serde_json::Value, after: Duration) {
    let http = plain_client().timeout(after).build().expect("a client");
    let sent = http.post(format!("{}/v1/workers/{instance}/claim", api.base)).body(body.to_string()).send().await;
    assert!(sent.is_err(), "the claim was to be cut off");
}

on_both_hosts! {
    async fn a_long_poll_is_woken_at_once(kit) {
        let api = kit.api().await;
        api.register("w1", 8).await;
        for _ in 0..5 {
            let poll = tokio::spawn({
                let api = api.clone();
                // One that is not told comes back with nothing when its time is over.
                async move { api.claim_one("w1").await }
            });
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(!poll.is_finished());
            api.submit(json!({"kind": "k"})).await;
            let task = poll.await.expect("a task comes");
            api.task(&task, "complete", json!({})).await.with(200);
        }
        let empty = Instant::now();
        assert_eq!(api.claim("w1", json!({"wait_ms": 300})).await.len(), 0);
        assert!(empty.elapsed() >= Duration::from_millis(290));
    }

    async fn a_client_that_goes_away_loses_no_work(kit) {
        let api = kit.api().await;
        api.register("gone", 4).await;
        api.register("here", 4).await;
        for _ in 0..4 {
            cut_off(&api, "gone", json!({"max": 4, "wait_ms": 30_000}), Duration::from_millis(80)).await;
        }
        let mut ids: Vec<String> = Vec::new();
        for _ in 0..6 {
            ids.push(api.submit(json!({"kind": "k"})).await);
        }
        let mut got: Vec<String> = Vec::new();
        while got.len() < 6 {
            let tasks = api.claim("here", json!({"max": 4, "wait_ms": 5_000})).await;
            assert!(!tasks.is_empty(), "work is lost: {} of 6", got.len());
            for task in tasks {
                assert_eq!(task["attempt_index"], 0, "nobody started it before");
                api.task(&task, "complete", json!({})).await.with(200);
                got.push(task["execution_id"].as_str().expect("an id").to_owned());
            }
        }
        got.sort();
        ids.sort();
        assert_eq!(got, ids);
    }

    async fn a_repeated_claim_gets_the_same_tasks_even_from_a_new_server(kit) {
        let api = kit.api().await;
        api.register("w1", 8).await;
        for n in 0..3 {
            api.submit(json!({"kind": "k", "input": n})).await;
        }
        let request_id = Uuid::now_v7();
        let claim = json!({"max": 1, "wait_ms": 5_000, "request_id": request_id, "lease_ttl_ms": 60_000});
        let first = api.claim("w1", claim.clone()).await;
        assert_eq!(first.len(), 1);
        let again = api.claim("w1", claim.clone()).await;
        assert_eq!((&again[0]["lease_id"], again.len()), (&first[0]["lease_id"], 1));
        let api = kit.restart().await;
        let anew = api.claim("w1", claim.clone()).await;
        assert_eq!((&anew[0]["lease_id"], anew.len()), (&first[0]["lease_id"], 1));
        assert_eq!(anew[0]["input"], first[0]["input"]);
        let other = api.claim("w1", json!({"wait_ms": 5_000, "request_id": Uuid::now_v7()})).await;
        assert_ne!(other[0]["lease_id"], first[0]["lease_id"]);
        // What it got has ended: the same id claims anew.
        api.task(&first[0], "complete", json!({})).await.with(200);
        let next = api.claim("w1", claim).await;
        assert_eq!(next.len(), 1);
        assert_ne!(next[0]["execution_id"], first[0]["execution_id"]);
    }

    async fn a_claim_repeated_after_it_was_cut_off_waits_afresh(kit) {
        let api = kit.api().await;
        api.register("w1", 2).await;
        let claim = json!({"wait_ms": 10_000, "request_id": Uuid::now_v7()});
        cut_off(&api, "w1", claim.clone(), Duration::from_millis(100)).await;
        let repeated = tokio::spawn({
            let (api, claim) = (api.clone(), claim.clone());
            async move { api.claim("w1", claim).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        // While one waits, the same request on another connection takes its place.
        let third = tokio::spawn({
            let (api, claim) = (api.clone(), claim.clone());
            async move { api.claim("w1", claim).await }
        });
        assert_eq!(repeated.await.expect("it ends").len(), 0, "superseded");
        api.submit(json!({"kind": "k"})).await;
        let tasks = third.await.expect("it gets the task");
        assert_eq!(tasks.len(), 1);
        let again = api.claim("w1", claim).await;
        assert_eq!(again[0]["lease_id"], tasks[0]["lease_id"]);
        api.task(&tasks[0], "complete", json!({})).await.with(200);
    }

    async fn slots_bound_the_live_leases(kit) {
        let api = kit.api().await;
        api.register("w1", 2).await;
        for _ in 0..4 {
            api.submit(json!({"kind": "k"})).await;
        }
        let mut held = Vec::new();
        while held.len() < 2 {
            held.extend(api.claim("w1", json!({"max": 256, "wait_ms": 5_000, "lease_ttl_ms": 60_000})).await);
        }
        assert_eq!(held.len(), 2);
        assert_eq!(api.claim("w1", json!({"max": 10, "wait_ms": 100})).await.len(), 0);
        // A slot that becomes free wakes the poll that waits for it.
        let waiting = tokio::spawn({
            let api = api.clone();
            async move { api.claim("w1", json!({"max": 10, "wait_ms": 20_000, "lease_ttl_ms": 60_000})).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        api.task(&held[0], "complete", json!({})).await.with(200);
        held.extend(waiting.await.expect("a task comes"));
        assert_eq!(held.len(), 3);
        // A new server counts them as well.
        let api = kit.restart().await;
        assert_eq!(api.claim("w1", json!({"max": 10, "wait_ms": 100})).await.len(), 0);
        api.register("w1", 3).await;
        assert_eq!(api.claim("w1", json!({"max": 10, "wait_ms": 5_000})).await.len(), 1);
    }

    async fn an_instance_belongs_to_one_incarnation(kit) {
        let api = kit.api().await;
        let register = |incarnation: Uuid| json!({"worker_id": "w", "lanes": ["default"], "incarnation": incarnation, "slots": 2});
        let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
        api.post("/v1/workers/w1/register", register(first)).await.with(200);
        api.post("/v1/workers/w1/register", register(first)).await.with(200);
        api.post("/v1/workers/w1/register", register(second)).await.refused(409, "instance_in_use");
        api.post("/v1/workers/w1/claim", json!({"incarnation": second})).await.refused(409, "instance_in_use");
        api.post("/v1/workers/w1/heartbeat", json!({"incarnation": second})).await.refused(409, "instance_in_use");
        api.send(Method::DELETE, "/v1/workers/w1", &[], json!({"incarnation": second}).to_string()).await.refused(409, "instance_in_use");
        // Its process died in the middle of a poll: the next one takes its place without waiting for the registration to end.
        cut_off(&api, "w1", json!({"wait_ms": 30_000, "incarnation": first}), Duration::from_millis(100)).await;
        eventually("the newcomer is let in", async || {
            (api.post("/v1/workers/w1/register", register(second)).await.status == 200).then_some(())
        }).await;
        api.post("/v1/workers/w1/heartbeat", json!({"incarnation": first})).await.refused(409, "instance_in_use");
        let gone = api.send(Method::DELETE, "/v1/workers/w1", &[], json!({"incarnation": second}).to_string()).await;
        assert_eq!(gone.status, 204);
        api.post("/v1/workers/w1/claim", json!({})).await.refused(404, "worker_not_registered");
        api.post("/v1/workers/w1/register", register(first)).await.with(200);
    }

    async fn workers_are_listed_shown_and_drained(kit) {
        let api = kit.api().await;
        for n in 0..3 {
            let body = json!({"worker_id": "w", "lanes": ["default", "mail"], "capabilities": ["gpu"], "slots": n + 1});
            let registered = api.post(&format!("/v1/workers/w{n}/register"), body).await.with(200);
            assert_eq!(registered["heartbeat_ms"], 10_000);
        }
        let page = api.get("/v1/workers?limit=2").await.with(200);
        assert_eq!(page["items"].as_array().expect("items").len(), 2);
        let cursor = page["next_cursor"].as_str().expect("there is more");
        let rest = api.get(&format!("/v1/workers?limit=2&cursor={cursor}")).await.with(200);
        assert_eq!((rest["items"].as_array().expect("items").len(), &rest["next_cursor"]), (1, &json!(null)));
        let shown = api.get("/v1/workers/w1").await.with(200);
        assert_eq!((&shown["slots"], &shown["state"], &shown["capabilities"]), (&json!(2), &json!("live"), &json!(["gpu"])));
        assert!(shown.get("incarnation").is_none());
        assert_eq!(api.get("/v1/capabilities").await.with(200)["worker_capabilities"]["gpu"], 3);

        api.submit(json!({"kind": "k"})).await;
        let task = api.claim_one("w1").await;
        assert_eq!(api.post("/v1/workers/w1/drain", json!({})).await.with(200)["outcome"], "draining");
        assert_eq!(api.post("/v1/workers/w1/drain", json!({})).await.with(200)["outcome"], "already");
        assert_eq!(api.get("/v1/workers/w1").await.with(200)["state"], "draining");
        api.submit(json!({"kind": "k"})).await;
        assert_eq!(api.claim("w1", json!({"wait_ms": 200})).await.len(), 0, "it takes nothing new");
        let mut lease = fence(&task);
        lease["execution_id"] = task["execution_id"].clone();
        eventually("it is asked to yield", async || {
            let beaten = api.post("/v1/workers/w1/heartbeat", json!({"renew": [lease]})).await.with(200);
            assert_eq!(beaten["draining"], true);
            (beaten["leases"][0]["yield_requested"] == true).then_some(())
        }).await;
        api.task(&task, "yield", json!({})).await.with(200);
        assert_eq!(api.get("/v1/stats").await.with(200)["workers"], json!({"live": 2, "draining": 1, "slots": 6}));
    }

    async fn a_worker_that_hears_of_its_drain_is_asked_for_what_it_holds_at_once(kit) {
        let api = kit.api().await;
        for n in 0..8 {
            let instance = format!("w{n}");
            api.register(&instance, 1).await;
            api.submit(json!({"kind": "k"})).await;
            let task = api.claim_one(&instance).await;
            let attending = tokio::spawn({
                let (api, at) = (api.clone(), format!("/v1/workers/{instance}/attend"));
                async move { api.post(&at, json!({"draining": false, "wait_ms": 20_000})).await.with(200) }
            });
            api.post(&format!("/v1/workers/{instance}/drain"), json!({})).await.with(200);
            assert_eq!(attending.await.expect("it answers")["draining"], true);
            let mut renew = crate::kit::fence(&task);
            renew["execution_id"] = task["execution_id"].clone();
            let beaten = api.post(&format!("/v1/workers/{instance}/heartbeat"), json!({"renew": [renew]})).await.with(200);
            assert_eq!(beaten["leases"][0]["yield_requested"], true, "{beaten}");
            api.task(&task, "complete", json!({})).await.with(200);
        }
    }

    async fn a_claim_that_races_the_end_of_its_registration_ends_at_once(kit) {
        let api = kit.api().await;
        for n in 0..20 {
            let instance = format!("w{n}");
            api.register(&instance, 1).await;
            let claiming = tokio::spawn({
                let (api, at) = (api.clone(), format!("/v1/workers/{instance}/claim"));
                async move { api.post(&at, json!({"wait_ms": 30_000})).await }
            });
            if n % 2 == 0 {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(Duration::from_millis(n)).await;
            }
            assert_eq!(api.send(Method::DELETE, &format!("/v1/workers/{instance}"), &[], "").await.status, 204);
            let claimed = claiming.await.expect("it answers");
            match claimed.status {
                // It came after the end.
                404 => drop(claimed.refused(404, "worker_not_registered")),
                _ => assert_eq!(claimed.with(200), json!({"tasks": []})),
            }
        }
    }

    async fn only_who_knows_its_incarnation_ends_a_registration(kit) {
        let (server, root) = kit.guarded().await;
        let made = root.post("/v1/admin/tokens", json!({"name": "w", "roles": ["worker"]})).await.with(201);
        let worker = root.bearing(made["token"].as_str().expect("a token"));
        let incarnation = Uuid::now_v7();
        let body = json!({"worker_id": "w", "lanes": ["default"], "incarnation": incarnation});
        worker.post("/v1/workers/w1/register", body.clone()).await.with(200);
        let leave = async |api: &Api, body: serde_json::Value| api.send(Method::DELETE, "/v1/workers/w1", &[], body.to_string()).await;
        leave(&worker, json!({})).await.refused(409, "instance_in_use");
        leave(&root, json!({})).await.refused(409, "instance_in_use");
        leave(&worker, json!({"incarnation": Uuid::now_v7()})).await.refused(409, "instance_in_use");
        leave(&worker, json!({"force": true})).await.refused(403, "forbidden");
        root.get("/v1/workers/w1").await.with(200);
        assert_eq!(leave(&worker, json!({"incarnation": incarnation})).await.status, 204);
        root.get("/v1/workers/w1").await.refused(404, "worker_not_registered");
        worker.post("/v1/workers/w1/register", body).await.with(200);
        let made = root.post("/v1/admin/tokens", json!({"name": "ann", "roles": ["operator"]})).await.with(201);
        let ann = root.bearing(made["token"].as_str().expect("a token"));
        leave(&ann, json!({})).await.refused(409, "instance_in_use");
        assert_eq!(leave(&ann, json!({"force": true})).await.status, 204);
        root.get("/v1/workers/w1").await.refused(404, "worker_not_registered");
        server.stop().await;
    }

    async fn a_stopping_server_ends_its_polls(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let poll = tokio::spawn({
            let api = api.clone();
            async move { api.claim("w1", json!({"wait_ms": 30_000})).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        kit.stop().await;
        assert_eq!(poll.await.expect("it is answered").len(), 0);
    }
}

/// Hears nothing of one worker and something of another until the first one is gone.
async fn silence_ends_a_registration(kit: Arc<Kit>) {
    let api = kit.api().await;
    api.register("silent", 1).await;
    api.register("beats", 1).await;
    eventually("it is gone", async || {
        let beaten = api.post("/v1/workers/beats/heartbeat", json!({})).await;
        if beaten.status == 404 {
            // The machine was too busy to beat in time.
            api.register("beats", 1).await;
        }
        (api.get("/v1/workers/silent").await.status == 404).then_some(())
    })
    .await;
    api.post("/v1/workers/silent/claim", json!({})).await.refused(404, "worker_not_registered");
}

#[test]
fn a_silent_worker_is_deregistered_on_the_embedded_store() {
    run_hurried(Kind::Embedded, silence_ends_a_registration);
}

#[test]
fn a_silent_worker_is_deregistered_on_valkey() {
    run_hurried(Kind::Valkey, silence_ends_a_registration);
}
