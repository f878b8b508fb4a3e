//! Lanes and their states.

use reqwest::Method;
use serde_json::json;

on_both_hosts! {
    async fn pages_of_one_namespace_are_full_and_miss_nothing(kit) {
        let api = kit.api().await;
        for n in 0..9 {
            for namespace in ["acme", "other"] {
                api.send(Method::PUT, &format!("/v1/lanes/l{n}?namespace={namespace}"), &[], "{}").await.with(200);
            }
        }
        let (mut seen, mut sizes, mut cursor) = (Vec::new(), Vec::new(), String::new());
        loop {
            let page = api.get(&format!("/v1/lanes?namespace=acme&limit=4{cursor}")).await.with(200);
            let items = page["items"].as_array().expect("items").clone();
            sizes.push(items.len());
            seen.extend(items.iter().map(|lane| (lane["namespace"].clone(), lane["lane"].clone())));
            match page["next_cursor"].as_str() {
                None => break,
                Some(next) => cursor = format!("&cursor={next}"),
            }
        }
        seen.sort_by_key(|(_, lane)| lane.to_string());
        assert_eq!((sizes, seen), (vec![4, 4, 1], (0..9).map(|n| (json!("acme"), json!(format!("l{n}")))).collect()));
    }

    async fn a_lane_is_defined_paused_drained_disabled_and_resumed(kit) {
        let api = kit.api().await;
        let body = json!({"fairness": "fair", "fairness_weights": {"big": 3}, "weight": 2, "max_depth": 100, "lease_ttl_ms": 5_000,
            "retry": {"max_attempts": 2}, "attempt_timeout_ms": 60_000, "retention_ms": 1_000_000});
        let defined = api.send(Method::PUT, "/v1/lanes/mail?namespace=acme", &[], body.to_string()).await.with(200);
        assert_eq!((&defined["namespace"], &defined["lane"], &defined["state"]), (&json!("acme"), &json!("mail"), &json!("active")));
        // What is not named stays.
        let changed = api.send(Method::PUT, "/v1/lanes/mail?namespace=acme", &[], json!({"weight": 5}).to_string()).await.with(200);
        assert_eq!((&changed["weight"], &changed["fairness"], &changed["max_depth"]), (&json!(5), &json!("fair"), &json!(100)));
        api.submit(json!({"kind": "k", "namespace": "acme", "lane": "mail"})).await;
        let shown = api.get("/v1/lanes/mail?namespace=acme").await.with(200);
        assert_eq!((&shown["counts"]["eligible"], &shown["retry"]["max_attempts"]), (&json!(1), &json!(2)));
        api.get("/v1/lanes/mail").await.refused(404, "lane_not_found");

        let register = json!({"worker_id": "w", "namespace": "acme", "lanes": ["mail"]});
        api.post("/v1/workers/w1/register", register).await.with(200);
        let at = |verb: &str| format!("/v1/lanes/mail/{verb}?namespace=acme");
        assert_eq!(api.post(&at("pause"), json!({})).await.with(200)["state"], "paused");
        assert_eq!(api.claim("w1", json!({})).await.len(), 0, "a paused lane starts nothing");
        api.submit(json!({"kind": "k", "namespace": "acme", "lane": "mail"})).await;
        assert_eq!(api.post(&at("drain"), json!({})).await.with(200)["state"], "draining");
        let refused = api.post("/v1/executions", json!({"kind": "k", "namespace": "acme", "lane": "mail"})).await;
        refused.refused(409, "lane_disabled");
        assert_eq!(api.claim_one("w1").await["lane"], "mail");
        assert_eq!(api.post(&at("disable"), json!({})).await.with(200)["state"], "disabled");
        assert_eq!(api.post(&at("resume"), json!({})).await.with(200)["state"], "active");
        api.submit(json!({"kind": "k", "namespace": "acme", "lane": "mail"})).await;

        api.submit(json!({"kind": "k"})).await;
        let all = api.get("/v1/lanes").await.with(200);
        assert_eq!(all["items"].as_array().expect("items").len(), 2);
        let first = api.get("/v1/lanes?limit=1").await.with(200);
        let cursor = first["next_cursor"].as_str().expect("there is another");
        let second = api.get(&format!("/v1/lanes?limit=1&cursor={cursor}")).await.with(200);
        assert_ne!(first["items"][0], second["items"][0]);
        assert_eq!(api.get("/v1/lanes?namespace=acme").await.with(200)["items"].as_array().expect("items").len(), 1);
    }

    async fn a_lane_with_max_active_runs_no_more_at_once(kit) {
        let api = kit.api().await;
        let put = async |body: serde_json::Value| api.send(Method::PUT, "/v1/lanes/narrow", &[], body.to_string()).await;
        assert_eq!(put(json!({"max_active": 2})).await.with(200)["max_active"], 2);
        assert_eq!(put(json!({"weight": 3})).await.with(200)["max_active"], 2, "what is not named stays");
        for wrong in [0, 1_000_001] {
            let refused = put(json!({"max_active": wrong})).await.refused(400, "invalid_argument");
            assert!(refused["fields"]["max_active"].is_string(), "{refused}");
        }
        assert_eq!(api.get("/v1/lanes/narrow").await.with(200)["max_active"], 2);

        let register = json!({"worker_id": "w", "lanes": ["narrow"], "slots": 9});
        api.post("/v1/workers/w1/register", register.clone()).await.with(200);
        api.post("/v1/workers/w2/register", register).await.with(200);
        for _ in 0..4 {
            api.submit(json!({"kind": "k", "lane": "narrow"})).await;
        }
        let mut running = Vec::new();
        while running.len() < 2 {
            running.extend(api.claim("w1", json!({"max": 9, "wait_ms": 5_000})).await);
        }
        assert_eq!(running.len(), 2);
        assert_eq!(api.claim("w2", json!({"max": 9, "wait_ms": 200})).await.len(), 0, "the lane is full");
        let granted = api.post("/v1/workers/w2/grant", json!({"max": 9})).await.with(200);
        assert_eq!(granted["grants"], json!([]), "a grant needs a slot too");

        let listed = api.get("/v1/executions?lane=narrow&state=waiting").await.with(200);
        let waiting = listed["items"][0]["execution_id"].as_str().expect("one waits");
        let explained = api.get(&format!("/v1/executions/{waiting}/explain")).await.with(200);
        assert_eq!((&explained["can_run"], &explained["lane"]["max_active"], &explained["lane"]["active"]), (&json!(false), &json!(2), &json!(2)));
        assert_eq!(explained["reasons"][0]["reason"], "max_active");
        assert_eq!(explained["reasons"][0]["detail"]["problem"], "lane is at max_active 2 of 2");

        // A slot that frees wakes a poll; a limit that goes wakes it too.
        let poll = |wait: u64| {
            let api = api.clone();
            tokio::spawn(async move { api.claim("w2", json!({"max": 1, "wait_ms": wait})).await })
        };
        let waits = poll(30_000);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        api.task(&running[0], "complete", json!({})).await.with(200);
        assert_eq!(waits.await.expect("a poll ends").len(), 1);
        let waits = poll(30_000);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert_eq!(put(json!({"max_active": null})).await.with(200)["max_active"], json!(null));
        assert_eq!(waits.await.expect("a poll ends").len(), 1);
    }
}
