//! Lanes and their states.

use reqwest::Method;
use serde_json::json;

on_both_hosts! {
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
}
