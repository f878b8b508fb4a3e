//! What a worker does with its tasks.

use serde_json::{Value, json};

use crate::kit::{eventually, fence};

on_both_hosts! {
    async fn every_way_a_task_can_end(kit) {
        let api = kit.api().await;
        api.register("w1", 10).await;
        let retry = json!({"max_attempts": 2, "backoff": {"type": "fixed", "delay_ms": 3_600_000}, "jitter": "none"});
        for (verb, body, outcome, state) in [
            ("complete", json!({"result": [1], "request_id": "r"}), "completed", "completed"),
            ("fail", json!({"reason": "no", "category": "c"}), "retry_scheduled", "delayed"),
            ("fail", json!({"reason": "no", "category": "c", "retryable": false}), "failed", "failed"),
            ("fail", json!({"reason": "no", "category": "c", "retry_after_ms": 1_000_000}), "retry_scheduled", "delayed"),
            ("cancel", json!({"reason": "enough"}), "cancelled", "cancelled"),
            ("cancel", json!({}), "cancelled", "cancelled"),
            ("delay", json!({"delay_ms": 3_600_000}), "delayed", "delayed"),
            ("delay", json!({"delay_until": 4_000_000_000_000_i64}), "delayed", "delayed"),
            ("yield", json!({}), "yielded", "waiting"),
        ] {
            let id = api.submit(json!({"kind": verb, "retry": retry})).await;
            let task = api.claim_one("w1").await;
            assert_eq!(task["execution_id"].as_str(), Some(id.as_str()), "{verb}");
            assert_eq!(api.task(&task, "progress", json!({"pct": 50, "message": "half"})).await.with(200)["outcome"], "noted");
            assert_eq!(api.execution(&id).await["progress"], json!({"pct": 50, "message": "half"}));
            let done = api.task(&task, verb, body.clone()).await.with(200);
            assert_eq!((&done["outcome"], &done["replayed"]), (&json!(outcome), &json!(false)), "{verb} {body}");
            let again = api.task(&task, verb, body.clone()).await.with(200);
            assert_eq!((&again["outcome"], &again["replayed"]), (&json!(outcome), &json!(true)), "{verb} {body}");
            assert_eq!(api.execution(&id).await["state"], state, "{verb} {body}");
            if verb == "yield" {
                let task = api.claim_one("w1").await;
                api.task(&task, "complete", json!({})).await.with(200);
            }
        }
    }

    async fn many_results_at_once_bring_the_next_tasks(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        for n in 0..8 {
            api.submit(json!({"kind": "k", "input": n})).await;
        }
        let mut tasks = Vec::new();
        while tasks.len() < 4 {
            tasks.extend(api.claim("w1", json!({"max": 4, "wait_ms": 5_000})).await);
        }
        let result = |task: &Value, more: Value| {
            let mut item = json!({"execution_id": task["execution_id"], "fence": fence(task)});
            item.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            item
        };
        let results = json!([
            result(&tasks[0], json!({"op": "complete", "result": "a"})),
            result(&tasks[1], json!({"op": "fail", "reason": "r", "category": "c", "retryable": false})),
            result(&tasks[2], json!({"op": "complete", "reason": "r"})),
            {"execution_id": tasks[3]["execution_id"], "op": "complete"},
        ]);
        let body = json!({"results": results, "claim": {"max": 1, "wait_ms": 5_000}});
        let answer = api.post("/v1/workers/w1/results", body).await.with(200);
        let outcomes: Vec<&Value> = answer["results"].as_array().expect("results").iter().map(|r| if r["code"].is_null() { &r["outcome"] } else { &r["code"] }).collect();
        assert_eq!(outcomes, [&json!("completed"), &json!("failed"), &json!("invalid_argument"), &json!("invalid_argument")]);
        assert_eq!(answer["results"][3]["execution_id"], tasks[3]["execution_id"]);
        assert_eq!(answer["tasks"].as_array().expect("tasks").len(), 1);
        let next = answer["tasks"][0].clone();
        // An array alone is the results.
        let rest = json!([result(&tasks[2], json!({"op": "complete"})), result(&tasks[3], json!({"op": "complete"})), result(&next, json!({"op": "complete"}))]);
        let answer = api.post("/v1/workers/w1/results", rest.clone()).await.with(200);
        assert!(answer["results"].as_array().expect("results").iter().all(|r| r["outcome"] == "completed" && r["replayed"] == false), "{answer}");
        assert!(answer.get("tasks").is_none());
        let answer = api.post("/v1/workers/w1/results", rest).await.with(200);
        assert!(answer["results"].as_array().expect("results").iter().all(|r| r["replayed"] == true), "{answer}");
    }

    async fn a_worker_is_asked_to_cancel_and_to_yield(kit) {
        let api = kit.api().await;
        api.register("w1", 2).await;
        let beat = async |task: &Value| {
            let mut lease = fence(task);
            lease["execution_id"] = task["execution_id"].clone();
            api.post("/v1/workers/w1/heartbeat", json!({"renew": [lease]})).await.with(200)["leases"][0].clone()
        };
        let id = api.submit(json!({"kind": "k"})).await;
        let task = api.claim_one("w1").await;
        let renewed = beat(&task).await;
        assert_eq!((&renewed["cancel_requested"], &renewed["yield_requested"]), (&json!(false), &json!(false)));
        assert!(renewed["lease_expires_at"].as_i64() >= task["lease_expires_at"].as_i64());
        let requested = api.post(&format!("/v1/executions/{id}/cancel"), json!({"grace_ms": 60_000})).await.with(200);
        assert_eq!(requested["outcome"], "requested");
        assert_eq!(beat(&task).await["cancel_requested"], true);
        api.task(&task, "cancel", json!({})).await.with(200);
        assert_eq!(beat(&task).await["code"], "execution_not_active");

        let id = api.submit(json!({"kind": "k"})).await;
        let task = api.claim_one("w1").await;
        assert_eq!(api.post(&format!("/v1/executions/{id}/revoke-lease"), json!({"grace": true})).await.with(200)["outcome"], "requested");
        assert_eq!(beat(&task).await["yield_requested"], true);
        assert_eq!(api.post(&format!("/v1/executions/{id}/revoke-lease"), json!({})).await.with(200)["outcome"], "revoked");
        let refused = beat(&task).await;
        assert!(["lease_revoked", "stale_lease", "execution_not_active"].contains(&refused["code"].as_str().expect("a code")), "{refused}");
        assert_eq!(refused["execution_id"].as_str(), Some(id.as_str()));
    }

    async fn an_interrupted_execution_goes_to_the_worker_an_operator_chose(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        api.register("chosen", 1).await;
        let id = api.submit(json!({"kind": "k"})).await;
        let task = api.claim_one("w1").await;
        api.post("/v1/lanes/default/pause", json!({})).await.with(200);
        let waiting = tokio::spawn({
            let api = api.clone();
            async move { api.claim_one("chosen").await }
        });
        api.post(&format!("/v1/executions/{id}/revoke-lease"), json!({})).await.with(200);
        let granted = api.post(&format!("/v1/executions/{id}/reclaim"), json!({"instance": "chosen"})).await.with(200);
        assert_eq!(granted["grant"]["execution_id"].as_str(), Some(id.as_str()));
        let reclaimed = waiting.await.expect("it gets the task");
        assert_eq!((reclaimed["execution_id"].as_str(), &reclaimed["attempt_type"]), (Some(id.as_str()), &json!("reclaim")));
        let refused = api.task(&task, "complete", json!({})).await;
        assert_eq!(refused.status, 409, "{}", refused.text());
        api.task(&reclaimed, "complete", json!({})).await.with(200);
    }

    async fn a_chosen_worker_gets_its_execution_from_whichever_server_it_claims(kit) {
        let (server, api) = kit.guarded().await;
        let (other, elsewhere) = kit.guarded().await;
        api.register("w1", 1).await;
        // It talks to the other server only.
        elsewhere.register("chosen", 1).await;
        let id = api.submit(json!({"kind": "k"})).await;
        api.claim_one("w1").await;
        api.post("/v1/lanes/default/pause", json!({})).await.with(200);
        let waiting = tokio::spawn({
            let elsewhere = elsewhere.clone();
            async move { elsewhere.claim_one("chosen").await }
        });
        api.post(&format!("/v1/executions/{id}/revoke-lease"), json!({})).await.with(200);
        api.post(&format!("/v1/executions/{id}/reclaim"), json!({"instance": "chosen"})).await.with(200);
        let reclaimed = waiting.await.expect("it gets the task");
        assert_eq!(reclaimed["execution_id"].as_str(), Some(id.as_str()));
        elsewhere.task(&reclaimed, "complete", json!({})).await.with(200);
        other.stop().await;
        server.stop().await;
    }

    async fn a_worker_is_not_chosen_for_what_it_does_not_serve(kit) {
        let (server, root) = kit.guarded().await;
        let register = async |instance: &str, namespace: &str, lane: &str, capabilities: Value| {
            let body = json!({"worker_id": "w", "namespace": namespace, "lanes": [lane], "capabilities": capabilities, "slots": 2});
            root.post(&format!("/v1/workers/{instance}/register"), body).await.with(200);
        };
        register("w1", "a", "builds", json!(["gpu"])).await;
        register("lane", "a", "deploys", json!(["gpu"])).await;
        register("namespace", "b", "builds", json!(["gpu"])).await;
        register("plain", "a", "builds", json!([])).await;
        let id = root.submit(json!({"kind": "k", "namespace": "a", "lane": "builds", "requires": ["gpu"]})).await;
        root.claim_one("w1").await;
        root.post(&format!("/v1/executions/{id}/revoke-lease"), json!({})).await.with(200);
        let at = format!("/v1/executions/{id}/reclaim");
        for instance in ["lane", "namespace"] {
            let refused = root.post(&at, json!({"instance": instance})).await.refused(400, "invalid_argument");
            assert_eq!(refused["fields"]["instance"], format!("{instance} does not serve the lane a/builds"));
        }
        let refused = root.post(&at, json!({"instance": "plain"})).await.refused(409, "not_capable");
        assert_eq!(refused["facts"]["missing"], "gpu", "{refused}");
        // A worker outside of the caller's scope is not there.
        let made = root.post("/v1/admin/tokens", json!({"name": "team", "roles": ["operator"], "namespaces": ["a"]})).await.with(201);
        let team = root.bearing(made["token"].as_str().expect("a token"));
        team.post(&at, json!({"instance": "namespace"})).await.refused(404, "worker_not_registered");
        team.post(&at, json!({"instance": "w1"})).await.with(200);
        server.stop().await;
    }

    async fn a_grant_is_consumed_over_http_or_runs_out(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        assert_eq!(api.post("/v1/workers/w1/grant", json!({})).await.with(200), json!({"grants": []}));
        let id = api.submit(json!({"kind": "k"})).await;
        let granted = api.post("/v1/workers/w1/grant", json!({"lanes": ["default"], "grant_ttl_ms": 60_000})).await.with(200);
        let grant = granted["grants"][0].clone();
        assert_eq!(grant["execution_id"].as_str(), Some(id.as_str()));
        let body = json!({"execution_id": id, "grant_id": grant["grant_id"], "lease_ttl_ms": 5_000});
        let consumed = api.post("/v1/workers/w1/consume", body).await.with(200);
        api.task(&consumed["task"], "complete", json!({})).await.with(200);
        let id = api.submit(json!({"kind": "k"})).await;
        api.post("/v1/workers/w1/grant", json!({"grant_ttl_ms": 200})).await.with(200);
        assert_eq!(api.claim("w1", json!({})).await.len(), 0, "reserved work is not claimed");
        let task = eventually("the grant runs out", async || {
            api.claim("w1", json!({"wait_ms": 1_000})).await.pop()
        }).await;
        assert_eq!(task["execution_id"].as_str(), Some(id.as_str()));
    }

    async fn a_dead_workers_task_is_offered_again(kit) {
        let api = kit.api().await;
        api.register("dies", 1).await;
        api.register("lives", 1).await;
        let id = api.submit(json!({"kind": "k"})).await;
        let mut tasks = api.claim("dies", json!({"lease_ttl_ms": 1_000, "wait_ms": 5_000})).await;
        let zombie = tasks.remove(0);
        let task = api.claim_one("lives").await;
        assert_eq!((task["execution_id"].as_str(), &task["attempt_type"]), (Some(id.as_str()), &json!("reclaim")));
        api.task(&zombie, "complete", json!({"result": "zombie"})).await.refused(409, "stale_lease");
        api.task(&task, "complete", json!({"result": "right"})).await.with(200);
        assert_eq!(api.execution(&id).await["result"], "right");
    }
}
