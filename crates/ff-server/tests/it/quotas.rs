//! Quotas over HTTP: made, changed, throttled, and what an execution that waits for one is told.

use reqwest::Method;
use serde_json::json;

on_both_hosts! {
    async fn a_quota_is_made_read_changed_and_deleted(kit) {
        let api = kit.api().await;
        let body = json!({"rate": {"limit": 5, "window_ms": 1_000}, "concurrency": 2, "weighted": {"limit": 100, "window_ms": 60_000}});
        let made = api.post("/v1/quotas", body).await.with(201);
        let id = made["quota_id"].as_str().expect("an id").to_owned();
        assert_eq!((&made["rate"]["mode"], &made["concurrency"], &made["namespace"]), (&json!("sliding"), &json!(2), &json!("default")));
        let same = json!({"quota_id": id, "rate": {"limit": 5, "window_ms": 1_000}, "concurrency": 2, "weighted": {"limit": 100, "window_ms": 60_000}});
        api.post("/v1/quotas", same).await.with(200);
        api.post("/v1/quotas", json!({"quota_id": id, "concurrency": 7})).await.refused(409, "quota_version_conflict");
        api.post("/v1/quotas", json!({})).await.refused(400, "invalid_argument");
        api.post("/v1/quotas", json!({"concurrency": 0})).await.refused(400, "invalid_argument");

        let path = format!("/v1/quotas/{id}");
        let changed = api.send(Method::PATCH, &path, &[], json!({"rate": null, "concurrency": 3}).to_string()).await.with(200);
        assert_eq!((&changed["rate"], &changed["concurrency"], &changed["weighted"]["limit"], &changed["version"]), (&json!(null), &json!(3), &json!(100), &json!(2)));
        let until = 4_000_000_000_000_i64;
        let throttled = api.post(&format!("{path}/throttle"), json!({"key": "k", "until": until})).await.with(200);
        assert_eq!(throttled["throttled_until"], until);
        let shown = api.get(&format!("{path}?key=k")).await.with(200);
        assert_eq!((&shown["keys"][0]["key"], &shown["keys"][0]["throttled_until"]), (&json!("k"), &json!(until)));
        assert_eq!(api.get(&path).await.with(200)["keys"].as_array().expect("keys").len(), 1);
        let cleared = api.post(&format!("{path}/throttle"), json!({"key": "k", "until": 0})).await.with(200);
        assert_eq!(cleared["throttled_until"], json!(null));

        api.post("/v1/quotas", json!({"namespace": "acme", "concurrency": 1})).await.with(201);
        assert_eq!(api.get("/v1/quotas").await.with(200)["items"].as_array().expect("items").len(), 2);
        assert_eq!(api.get("/v1/quotas?namespace=acme").await.with(200)["items"].as_array().expect("items").len(), 1);
        let first = api.get("/v1/quotas?limit=1").await.with(200);
        let cursor = first["next_cursor"].as_str().expect("there is another");
        assert_ne!(api.get(&format!("/v1/quotas?limit=1&cursor={cursor}")).await.with(200)["items"][0], first["items"][0]);

        assert_eq!(api.send(Method::DELETE, &path, &[], String::new()).await.status, 204);
        api.get(&path).await.refused(404, "quota_not_found");
        api.send(Method::PATCH, &path, &[], json!({"concurrency": 3}).to_string()).await.refused(404, "quota_not_found");
    }

    async fn a_full_quota_is_explained_and_the_next_starts_when_it_has_room(kit) {
        let api = kit.api().await;
        let unknown = json!({"kind": "k", "quotas": [{"quota_id": "0190a5e2-0000-7000-8000-0000000000ff", "key": "k"}]});
        api.post("/v1/executions", unknown).await.refused(404, "quota_not_found");
        let made = api.post("/v1/quotas", json!({"concurrency": 1})).await.with(201);
        let id = made["quota_id"].as_str().expect("an id");
        api.post("/v1/workers/w1/register", json!({"worker_id": "w", "lanes": ["default"], "slots": 4})).await.with(200);
        let body = || json!({"kind": "k", "quotas": [{"quota_id": id, "key": "acme"}]});
        api.submit(body()).await;
        let running = api.claim_one("w1").await;
        let second = api.submit(body()).await;
        assert_eq!(api.claim("w1", json!({})).await.len(), 0);
        let explained = api.get(&format!("/v1/executions/{second}/explain")).await.with(200);
        let quota = &explained["quotas"][0];
        assert_eq!((&quota["quota_id"], &quota["key"], &quota["waiting"]), (&json!(id), &json!("acme"), &json!(1)), "{explained}");
        assert_eq!(quota["parts"][0], json!({"part": "concurrency", "used": 1, "limit": 1, "next_at": null}));
        assert_eq!(explained["reasons"][0]["reason"], "waiting_for_quota");
        assert_eq!(explained["reasons"][0]["detail"]["key"], "acme");
        assert_eq!(explained["reasons"][0]["remedy"], format!("it is called when one of the 1 that hold acme ends; raise the concurrency 1 of quota {id} to start it now"));
        let line = api.get(&format!("/v1/quotas/{id}/blocked?key=acme")).await.with(200);
        assert_eq!((&line["count"], &line["items"][0]["execution_id"], &line["next_cursor"]), (&json!(1), &json!(second), &json!(null)), "{line}");
        assert_eq!(line["items"][0]["detail"]["part"], "concurrency");
        assert_eq!(api.get(&format!("/v1/quotas/{id}/blocked?key=other")).await.with(200)["count"], 0);
        let refused = api.get(&format!("/v1/quotas/{id}/blocked")).await.refused(400, "invalid_argument");
        assert!(refused["fields"]["key"].is_string(), "{refused}");
        api.task(&running, "complete", json!({})).await.with(200);
        let next = api.claim("w1", json!({"wait_ms": 10_000})).await;
        assert_eq!(next[0]["execution_id"], second);

        let third = api.submit(body()).await;
        assert_eq!(api.send(Method::DELETE, &format!("/v1/quotas/{id}"), &[], String::new()).await.status, 204);
        let explained = api.get(&format!("/v1/executions/{third}/explain")).await.with(200);
        assert_eq!(explained["can_run"], false, "nobody has asked for it yet: {explained}");
        assert_eq!((&explained["reasons"][0]["reason"], &explained["reasons"][0]["detail"]["quota_id"]), (&json!("waiting_for_quota"), &json!(id)));
    }

    async fn a_task_throttles_a_key_for_everyone_and_says_what_it_weighed(kit) {
        let api = kit.api().await;
        let made = api.post("/v1/quotas", json!({"weighted": {"limit": 100, "window_ms": 60_000}})).await.with(201);
        let id = made["quota_id"].as_str().expect("an id").to_owned();
        api.post("/v1/workers/w1/register", json!({"worker_id": "w", "lanes": ["default"], "slots": 4})).await.with(200);
        let body = || json!({"kind": "k", "quotas": [{"quota_id": id, "key": "acme", "weight": 60}]});
        api.submit(body()).await;
        let task = api.claim_one("w1").await;
        let execution = task["execution_id"].as_str().expect("an id").to_owned();
        let ask = async |verb: &str, body: serde_json::Value| {
            let mut body = body;
            body["fence"] = crate::kit::fence(&task);
            body["quota_id"] = json!(id);
            api.post(&format!("/v1/tasks/{execution}/{verb}"), body).await
        };
        let state = async || api.get(&format!("/v1/quotas/{id}?key=acme")).await.with(200)["keys"][0].clone();
        assert_eq!(state().await["parts"][0]["used"], 60);
        assert_eq!(ask("weight", json!({"key": "acme", "weight": 10})).await.with(200)["outcome"], "ok");
        assert_eq!(state().await["parts"][0]["used"], 10);
        assert_eq!(ask("weight", json!({"key": "other", "weight": 10})).await.with(200)["outcome"], "gone");
        ask("weight", json!({"key": "acme", "weight": -1})).await.refused(400, "invalid_argument");

        let throttled = ask("throttle", json!({"key": "acme", "retry_after_ms": 60_000})).await.with(200);
        assert!(throttled["throttled_until"].is_i64(), "{throttled}");
        api.submit(body()).await;
        assert_eq!(api.claim("w1", json!({})).await.len(), 0, "the whole fleet waits");
        for wrong in [json!({"key": "acme"}), json!({"key": "acme", "until": 5, "retry_after_ms": 5}), json!({"key": "acme", "retry_after_ms": 0})] {
            ask("throttle", wrong).await.refused(400, "invalid_argument");
        }
        assert_eq!(ask("throttle", json!({"key": "acme", "until": 0})).await.with(200)["throttled_until"], json!(null));
        crate::kit::eventually("it starts", async || api.claim("w1", json!({})).await.into_iter().next()).await;
        api.post(&format!("/v1/tasks/{execution}/complete"), json!({"fence": crate::kit::fence(&task)})).await.with(200);
        ask("throttle", json!({"key": "acme", "retry_after_ms": 60_000})).await.refused(409, "execution_not_active");
        ask("weight", json!({"key": "acme", "weight": 1})).await.refused(409, "execution_not_active");
    }
}
