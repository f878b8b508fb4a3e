//! Submitting, reading and changing executions.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Api, eventually};

async fn ids(api: &Api, query: &str) -> Vec<String> {
    let page = api.get(&format!("/v1/executions?{query}")).await.with(200);
    page["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["execution_id"].as_str().expect("id").to_owned())
        .collect()
}

on_both_hosts! {
    async fn a_submission_says_everything_and_is_shown_whole(kit) {
        let api = kit.api().await;
        let id = "0192a7c4-5b1e-7abc-8def-00112233aabb";
        let body = json!({
            "execution_id": id, "namespace": "acme", "lane": "mail", "kind": "send", "input": {"to": "x"}, "tags": {"team": "a", "n": "1"},
            "priority": 7, "delay_ms": 60_000, "deadline_ms": 600_000, "start_within_ms": 300_000, "attempt_timeout_ms": 1_000, "max_reclaims": 2,
            "max_replays": 1, "requires": ["gpu"], "prefers": ["fast"], "fairness_key": "t1", "fallbacks": [{"model": "small"}, "x"],
            "retention_ms": 3_600_000, "stream": {"max_frames": 10}, "trace_parent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "completion_webhook": "https://example.com/hook", "input_encoding": null,
            "retry": {"max_attempts": 5, "backoff": {"type": "fixed", "delay_ms": 250}, "jitter": "none", "never_on": ["bad_input"]},
        });
        let submitted = api.post("/v1/executions", body).await.with(201);
        assert_eq!(submitted, json!({"execution_id": id, "state": "delayed", "duplicate": false}));
        let shown = api.execution(id).await;
        for (field, value) in [
            ("execution_id", json!(id)), ("namespace", json!("acme")), ("lane", json!("mail")), ("kind", json!("send")), ("state", json!("delayed")),
            ("lifecycle_phase", json!("runnable")), ("blocking_reason", Value::Null), ("outcome", Value::Null), ("priority", json!(7)),
            ("tags", json!({"team": "a", "n": "1"})), ("requires", json!(["gpu"])), ("prefers", json!(["fast"])), ("input", json!({"to": "x"})),
            ("input_encoding", json!("json")), ("result", Value::Null), ("result_encoding", Value::Null), ("failure", Value::Null),
            ("attempts", json!([])), ("lease", Value::Null), ("progress", Value::Null), ("suspension", Value::Null), ("flow_id", Value::Null),
            ("parent_id", Value::Null), ("reclaim_count", json!(0)), ("replay_count", json!(0)), ("max_reclaims", json!(2)),
            ("retention_ms", json!(3_600_000)), ("attempt_timeout_ms", json!(1_000)), ("fairness_key", json!("t1")),
        ] {
            assert_eq!(shown[field], value, "{field}");
        }
        assert_eq!(shown["retry"]["max_attempts"], 5);
        assert_eq!(shown["retry"]["backoff"], json!({"type": "fixed", "delay_ms": 250}));
        for time in ["created_at", "updated_at", "delay_until", "deadline_at"] {
            assert!(shown[time].as_i64().is_some_and(|ms| ms > 1_700_000_000_000), "{time}: {}", shown[time]);
        }
    }

    async fn the_same_key_gets_the_first_execution(kit) {
        let api = kit.api().await;
        let body = json!({"kind": "k", "input": 1, "idempotency_key": "order-7"});
        let first = api.post("/v1/executions", body.clone()).await.with(201);
        let again = api.post("/v1/executions", body).await.with(200);
        assert_eq!((&again["execution_id"], &again["duplicate"]), (&first["execution_id"], &json!(true)));
        // The header is the body's field.
        let headers = [("idempotency-key", "order-7")];
        let by_header = api.send(Method::POST, "/v1/executions", &headers, r#"{"kind":"k","input":1}"#).await.with(200);
        assert_eq!(by_header["execution_id"], first["execution_id"]);
        api.send(Method::POST, "/v1/executions", &headers, r#"{"kind":"k","input":2}"#).await.refused(409, "idempotency_conflict");
        api.send(Method::POST, "/v1/executions", &headers, r#"{"kind":"k","input":1,"idempotency_key":"other"}"#).await.refused(400, "invalid_argument");
    }

    async fn a_list_is_filtered_and_paged_newest_first(kit) {
        let api = kit.api().await;
        let mut all = Vec::new();
        for n in 0..12 {
            let lane = if n % 2 == 0 { "even" } else { "odd" };
            let body = json!({"kind": format!("k{}", n % 3), "lane": lane, "tags": {"n": n.to_string()}});
            all.push(api.submit(body).await);
        }
        all.reverse();
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = api.get(&format!("/v1/executions?limit=5&cursor={cursor}")).await.with(200);
            seen.extend(page["items"].as_array().expect("items").iter().map(|i| i["execution_id"].as_str().expect("id").to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        seen.sort();
        let mut expected = all.clone();
        expected.sort();
        assert_eq!(seen, expected);
        assert_eq!(ids(&api, "lane=even&limit=100").await.len(), 6);
        assert_eq!(ids(&api, "lane=even&kind=k0").await.len(), 2);
        assert_eq!(ids(&api, "tag=n:3").await.len(), 1);
        assert_eq!(ids(&api, "state=waiting").await.len(), 12);
        assert_eq!(ids(&api, "state=active").await.len(), 0);
        assert_eq!(ids(&api, "namespace=other").await.len(), 0);
        assert_eq!(ids(&api, "flow_id=0192a7c4-5b1e-7abc-8def-00112233aabb").await.len(), 0);
        assert_eq!(ids(&api, "created_before=1000").await.len(), 0);
    }

    async fn a_result_is_waited_for(kit) {
        let api = kit.api().await;
        let id = api.submit(json!({"kind": "k"})).await;
        let path = format!("/v1/executions/{id}/result");
        assert_eq!(api.get(&path).await.with(202), json!({"execution_id": id, "state": "waiting"}));
        let waiting = tokio::spawn({
            let (api, path) = (api.clone(), path.clone());
            // One that is not told asks in vain until its time is over: 202.
            async move { api.get(&format!("{path}?wait_ms=30000")).await.with(200) }
        });
        api.register("w1", 1).await;
        let task = api.claim_one("w1").await;
        api.task(&task, "complete", json!({"result": {"answer": 42}})).await.with(200);
        let result = waiting.await.expect("the wait ends");
        assert_eq!(result, json!({"execution_id": id, "outcome": "success", "result": {"answer": 42}, "result_encoding": "json", "failure": null}));
    }

    async fn operators_hold_release_change_cancel_replay_and_delete(kit) {
        let api = kit.api().await;
        let id = api.submit(json!({"kind": "k", "lane": "quiet"})).await;
        let at = |verb: &str| format!("/v1/executions/{id}/{verb}");
        assert_eq!(api.post(&at("hold"), json!({"reason": "wait"})).await.with(200)["outcome"], "held");
        assert_eq!(api.post(&at("hold"), json!({})).await.with(200)["outcome"], "already");
        assert_eq!(api.execution(&id).await["blocking_reason"], "held_by_operator");
        let explained = api.get(&at("explain")).await.with(200);
        assert_eq!(explained["can_run"], false);
        assert_eq!(explained["reasons"][0]["reason"], "held_by_operator");
        assert_eq!(api.post(&at("release"), json!({"reason": "go"})).await.with(200)["state"], "waiting");

        let path = format!("/v1/executions/{id}");
        let patch = json!({"priority": 9, "lane": "loud", "tags": {"a": "b"}, "deadline_at": 4_000_000_000_000_i64});
        api.send(Method::PATCH, &path, &[], patch.to_string()).await.with(200);
        let changed = api.execution(&id).await;
        assert_eq!((&changed["priority"], &changed["lane"], &changed["tags"]), (&json!(9), &json!("loud"), &json!({"a": "b"})));
        api.send(Method::PATCH, &path, &[], "{}").await.refused(400, "invalid_argument");

        api.send(Method::DELETE, &path, &[], "").await.refused(409, "execution_not_terminal");
        assert_eq!(api.post(&at("cancel"), json!({"reason": "enough"})).await.with(200)["outcome"], "cancelled");
        assert_eq!(api.post(&at("cancel"), json!({})).await.with(200)["terminal_outcome"], "cancelled");
        assert_eq!(api.get(&at("result")).await.with(200)["outcome"], "cancelled");
        let replayed = api.post(&at("replay"), json!({"reason": "again"})).await.with(200);
        assert_eq!((&replayed["state"], &replayed["replay_count"]), (&json!("waiting"), &json!(1)));
        api.post(&at("replay"), json!({})).await.refused(409, "execution_not_terminal");
        api.post(&at("revoke-lease"), json!({})).await.refused(409, "execution_not_active");
        api.post(&at("cancel"), Value::Null).await.refused(400, "invalid_argument");
        api.send(Method::POST, &at("cancel"), &[], "").await.with(200);

        let history = api.get(&at("history")).await.with(200);
        let actions: Vec<&str> = history["operator_actions"].as_array().expect("actions").iter().map(|a| a["action"].as_str().expect("a word")).collect();
        for action in ["hold", "release", "change", "cancel", "replay"] {
            assert!(actions.contains(&action), "{action} in {actions:?}");
        }
        assert!(history["operator_actions"].as_array().expect("actions").iter().all(|action| action["actor"] == "local"));
        let gone = api.send(Method::DELETE, &path, &[], "").await;
        assert_eq!((gone.status, gone.bytes.len()), (204, 0));
        api.get(&path).await.refused(404, "execution_not_found");
    }

    async fn explain_names_the_nearest_worker(kit) {
        let api = kit.api().await;
        let id = api.submit(json!({"kind": "k", "requires": ["gpu", "cuda"]})).await;
        let path = format!("/v1/executions/{id}/explain");
        let alone = api.get(&path).await.with(200);
        assert!(alone["reasons"].as_array().expect("reasons").iter().any(|reason| reason["reason"] == "no_worker"), "{alone}");
        for (instance, capabilities) in [("plain", json!([])), ("close", json!(["gpu"]))] {
            let body = json!({"worker_id": "w", "lanes": ["default"], "capabilities": capabilities});
            api.post(&format!("/v1/workers/{instance}/register"), body).await.with(200);
        }
        let explained = api.get(&path).await.with(200);
        assert_eq!(explained["requires"]["nearest"], json!({"instance": "close", "missing": ["cuda"]}));
        assert_eq!(explained["requires"]["covered"], false);
        assert_eq!(explained["can_run"], false);
        // Sooner or later the engine blocks it with the same reason.
        eventually("it is blocked", async || {
            let shown = api.execution(&id).await;
            (shown["blocking_reason"] == "waiting_for_capable_worker").then_some(())
        }).await;
        let body = json!({"worker_id": "w", "lanes": ["default"], "capabilities": ["gpu", "cuda"]});
        api.post("/v1/workers/close/register", body).await.with(200);
        assert_eq!(api.claim_one("close").await["execution_id"].as_str(), Some(id.as_str()));
        assert_eq!(api.get(&path).await.with(200)["can_run"], true);
    }

    async fn attempts_are_shown_one_by_one(kit) {
        let api = kit.api().await;
        let retry = json!({"max_attempts": 12, "backoff": {"type": "fixed", "delay_ms": 0}, "jitter": "none"});
        let id = api.submit(json!({"kind": "k", "retry": retry})).await;
        api.register("w1", 1).await;
        for _ in 0..11 {
            let task = api.claim_one("w1").await;
            let failed = api.task(&task, "fail", json!({"reason": "no", "category": "bad"})).await.with(200);
            assert_eq!(failed["outcome"], "retry_scheduled");
        }
        let task = api.claim_one("w1").await;
        assert_eq!((&task["attempt_index"], &task["attempt_type"]), (&json!(11), &json!("retry")));
        let first = api.get(&format!("/v1/executions/{id}/attempts/0")).await.with(200);
        assert_eq!((&first["index"], &first["type"], &first["state"]), (&json!(0), &json!("initial"), &json!("failed")));
        assert_eq!(first["failure"], json!({"reason": "no", "category": "bad"}));
        api.get(&format!("/v1/executions/{id}/attempts/99")).await.refused(404, "attempt_not_found");
        let history = api.get(&format!("/v1/executions/{id}/history")).await.with(200);
        let indices: Vec<i64> = history["attempts"].as_array().expect("attempts").iter().map(|a| a["index"].as_i64().expect("n")).collect();
        assert_eq!(indices, (0..12).collect::<Vec<_>>());
        let shown = api.execution(&id).await;
        assert!(shown["lease"].get("lease_id").is_none(), "a fence is not readable");
        assert_eq!(shown["lease"]["worker_instance"], "w1");
    }

    async fn a_batch_of_a_thousand_is_answered_line_by_line(kit) {
        let api = kit.api().await;
        let mut lines: Vec<String> = (0..1_000).map(|n| json!({"kind": "k", "input": n, "lane": "bulk"}).to_string()).collect();
        lines[7] = r#"{"kind":"k","colour":1}"#.to_owned();
        lines[500] = r#"{"kind":"k","priority":9001}"#.to_owned();
        lines[501] = "not json".to_owned();
        let answered = api.send(Method::POST, "/v1/executions:batch", &[("content-type", "application/x-ndjson")], lines.join("\n")).await;
        assert_eq!(answered.status, 200);
        let answers: Vec<Value> = answered.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(answers.len(), 1_000);
        for (n, answer) in answers.iter().enumerate() {
            match n {
                7 => assert_eq!((&answer["error"]["code"], &answer["error"]["fields"]["colour"].is_string()), (&json!("invalid_argument"), &true)),
                500 => assert_eq!((&answer["error"]["code"], &answer["error"]["fields"]["priority"].is_string()), (&json!("invalid_argument"), &true)),
                501 => assert_eq!(answer["error"]["code"], "invalid_argument"),
                _ => assert_eq!(answer["state"], "waiting", "{n}: {answer}"),
            }
        }
        let id = answers[999]["execution_id"].as_str().expect("an id");
        assert_eq!(api.execution(id).await["input"], 999, "answers are in the order of the items");
        // An array is the same.
        let array = json!([{"kind": "a"}, {"kind": "b", "x": 1}]);
        let answered = api.post("/v1/executions:batch", array).await;
        let answers: Vec<Value> = answered.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((answers.len(), answers[0]["duplicate"].as_bool(), answers[1]["error"]["code"].as_str()), (2, Some(false), Some("invalid_argument")));
        let stats = api.get("/v1/stats").await.with(200);
        assert_eq!((&stats["executions"], &stats["counts"]["eligible"]), (&json!(998), &json!(998)));
    }
}
