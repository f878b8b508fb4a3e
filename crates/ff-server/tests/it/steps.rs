//! Durable steps over HTTP: stored once, found by later attempts, listed, forgotten by a replay, copied to a fork.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Api, Reply, fence};

fn put_body(task: &Value, more: Value) -> Value {
    let mut body = json!({"fence": fence(task)});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

trait Put {
    async fn put(&self, path: &str, body: Value) -> Reply;
}

impl Put for Api {
    async fn put(&self, path: &str, body: Value) -> Reply {
        self.send(Method::PUT, path, &[], body.to_string()).await
    }
}

fn path(task: &Value, name: &str) -> String {
    format!("/v1/tasks/{}/steps/{name}", task["execution_id"].as_str().expect("an id"))
}

on_both_hosts! {
    async fn a_step_is_stored_once_and_found_by_the_next_attempt(kit) {
        let api = kit.api().await;
        api.register("w1", 2).await;
        let id = api.submit(json!({"kind": "agent"})).await;
        let task = api.claim_one("w1").await;
        assert!(task.get("steps").is_none() && task.get("steps_more").is_none(), "{task}");
        let result = json!({"z": 9_007_199_254_740_993_u64, "a": [1.0]});
        let stored = api.put(&path(&task, "charge%20%232"), put_body(&task, json!({"result": result, "input_digest": "d1"}))).await.with(200);
        assert_eq!((&stored["outcome"], &stored["result"]), (&json!("stored"), &result));
        let known = api.put(&path(&task, "charge%20%232"), put_body(&task, json!({"result": 2}))).await.with(200);
        assert_eq!((&known["outcome"], &known["result"], &known["input_digest"]), (&json!("known"), &result, &json!("d1")));
        let failure = json!({"failure": {"reason": "503", "category": "provider"}, "tries": 2, "retry_at": 4_000_000_000_000_i64});
        assert_eq!(api.put(&path(&task, "call"), put_body(&task, failure)).await.with(200)["outcome"], "noted");

        let listed = api.get(&format!("/v1/executions/{id}/steps?limit=1")).await.with(200);
        assert_eq!((&listed["items"][0]["name"], &listed["items"][0]["state"], &listed["next_cursor"]), (&json!("charge #2"), &json!("done"), &json!("1")));
        let rest = api.get(&format!("/v1/executions/{id}/steps?cursor=1")).await.with(200);
        assert_eq!((&rest["items"][0]["state"], &rest["items"][0]["tries"], &rest["items"][0]["failure"]["reason"]), (&json!("failed"), &json!(2), &json!("503")));
        assert_eq!(api.execution(&id).await["steps"], 2);

        api.task(&task, "yield", json!({})).await.with(200);
        let again = api.claim_one("w1").await;
        assert_eq!((&again["steps"][0]["name"], &again["steps"][0]["result"]), (&json!("charge #2"), &result));
        assert_eq!((&again["steps"][1]["state"], &again["steps"][1]["due_at"]), (&json!("failed"), &json!(4_000_000_000_000_i64)));
        let found = api.get(&path(&again, "charge%20%232")).await.with(200);
        assert_eq!((&found["result"], &found["step"]["attempt_index"]), (&result, &json!(0)));
        // The lease that stored it is over.
        assert_eq!(api.put(&path(&task, "late"), put_body(&task, json!({"result": 1}))).await.with(409)["code"], "stale_lease");
        assert_eq!(api.execution(&id).await["steps"], 2);
    }

    async fn what_a_step_must_not_be_is_refused_by_its_field(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let id = api.submit(json!({"kind": "agent"})).await;
        let task = api.claim_one("w1").await;
        let long = "x".repeat(257);
        for (name, more, field) in [
            (long.as_str(), json!({}), "name"),
            ("a%0Ab", json!({}), "name"),
            ("a", json!({"tries": 0}), "tries"),
            ("a", json!({"result": 1, "failure": {"reason": "r", "category": "c"}}), "result"),
            ("a", json!({"failure": {"reason": "r", "category": ""}}), "failure.category"),
            ("a", json!({"retry_at": 5}), "retry_at"),
            ("a", json!({"started_at": -1}), "started_at"),
            ("a", json!({"input_digest": "ä"}), "input_digest"),
        ] {
            let refused = api.put(&path(&task, name), put_body(&task, more.clone())).await.with(400);
            assert!(refused["fields"].get(field).is_some(), "{name} {more}: {refused}");
        }
        let large = json!({"result": "x".repeat(1_048_576)});
        assert_eq!(api.put(&path(&task, "a"), put_body(&task, large)).await.with(413)["code"], "too_large");
        for body in [json!({}), json!({"ms": 5, "until": 5})] {
            let refused = api.task(&task, "sleep", body).await.with(400);
            assert!(refused["fields"].get("until").is_some(), "{refused}");
        }
        assert_eq!(api.get(&path(&task, "nope")).await.with(404)["code"], "step_not_found");
        assert_eq!(api.post(&format!("/v1/executions/{id}/fork"), json!({"from_step": "nope"})).await.with(404)["code"], "step_not_found");
        assert_eq!(api.execution(&id).await["steps"], 0);
        assert_eq!(api.get(&format!("/v1/executions/{id}/steps")).await.with(200)["items"], json!([]));
    }

    async fn a_rest_gives_the_lease_back_and_its_step_answers_once_it_is_over(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let id = api.submit(json!({"kind": "agent"})).await;
        let task = api.claim_one("w1").await;
        let rest = api.task(&task, "sleep", json!({"ms": 20, "step": "nap", "continuation": {"n": 1}})).await.with(200);
        assert_eq!(rest["outcome"], "resting");
        assert_eq!(api.task(&task, "sleep", json!({"ms": 20, "step": "nap"})).await.with(200)["until"], rest["until"]);
        let again = api.claim_one("w1").await;
        assert_eq!((&again["resume"]["cause"], &again["resume"]["step"], &again["resume"]["continuation"]), (&json!("timer"), &json!("nap"), &json!({"n": 1})));
        let done = api.task(&again, "sleep", json!({"ms": 20, "step": "nap"})).await.with(200);
        assert_eq!((&done["outcome"], &done["until"]), (&json!("done"), &rest["until"]));
        assert_eq!(api.put(&path(&again, "nap"), put_body(&again, json!({"result": 1}))).await.with(409)["code"], "step_changed");
        api.task(&again, "complete", json!({})).await.with(200);
        assert_eq!(api.execution(&id).await["attempts"].as_array().map(Vec::len), Some(1));
    }

    async fn a_named_wait_outlives_the_attempt_with_its_signals(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let id = api.submit(json!({"kind": "agent"})).await;
        let task = api.claim_one("w1").await;
        let open = json!({"key": "door", "approvers": ["ann", "bob"], "step": "sign-off"});
        let opened = api.task(&task, "waitpoints", open.clone()).await.with(200);
        assert_eq!(opened["tokens"].as_array().map(Vec::len), Some(2));
        let signal = |token: &Value| json!({"execution_id": id, "name": "yes", "token": token});
        let waitpoint = opened["waitpoint_id"].as_str().expect("an id").to_owned();
        let at = format!("/v1/waitpoints/{waitpoint}/signals");
        assert_eq!(api.post(&at, signal(&opened["tokens"][0]["token"])).await.with(200)["outcome"], "accepted");
        api.task(&task, "fail", json!({"reason": "r", "category": "c", "retry_after_ms": 0})).await.with(200);

        let second = api.claim_one("w1").await;
        assert_eq!(second["attempt_index"], 1);
        let known = api.task(&second, "waitpoints", open.clone()).await.with(200);
        assert_eq!((&known["waitpoint_id"], &known["tokens"]), (&json!(waitpoint), &json!([])));
        // Asked for anew, the old tokens die and what was signed stays.
        let mut anew = open;
        anew["waitpoint_id"] = json!(waitpoint);
        let anew = api.task(&second, "waitpoints", anew).await.with(200);
        assert_ne!(anew["tokens"][1]["token"], opened["tokens"][1]["token"]);
        assert_eq!(api.post(&at, signal(&opened["tokens"][1]["token"])).await.with(404)["code"], "waitpoint_not_open");
        let wait = json!({"reason": "waiting_for_approval", "step": "sign-off", "condition": {"count": 2, "over": "approvers"}});
        assert_eq!(api.task(&second, "suspend", wait.clone()).await.with(200)["outcome"], "suspended");
        assert_eq!(api.post(&at, signal(&anew["tokens"][1]["token"])).await.with(200)["outcome"], "triggered_resume");

        let third = api.claim_one("w1").await;
        assert_eq!((&third["resume"]["cause"], &third["resume"]["step"]), (&json!("signal"), &json!("sign-off")));
        let done = api.task(&third, "suspend", wait).await.with(200);
        let by: Vec<&Value> = done["resume"]["signals"].as_array().expect("signals").iter().map(|one| &one["approver"]).collect();
        assert_eq!((&done["outcome"], by), (&json!("done"), vec![&json!("ann"), &json!("bob")]));
        assert_eq!(api.task(&third, "waitpoints", json!({"key": "door", "step": "sign-off"})).await.with(200)["done"], true);
        let found = api.get(&path(&third, "sign-off")).await.with(200);
        assert_eq!(found["resume"]["signals"].as_array().map(Vec::len), Some(2));
    }

    async fn a_replay_forgets_steps_and_a_fork_copies_them(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let id = api.submit(json!({"kind": "agent", "input": 1, "tags": {"k": "v"}})).await;
        let task = api.claim_one("w1").await;
        for name in ["a", "b", "c"] {
            api.put(&path(&task, name), put_body(&task, json!({"result": name}))).await.with(200);
        }
        api.task(&task, "complete", json!({})).await.with(200);
        let replay = format!("/v1/executions/{id}/replay");
        assert_eq!(api.post(&replay, json!({"from": {"step": "nope"}})).await.with(404)["code"], "step_not_found");
        assert_eq!(api.post(&replay, json!({"from": "middle"})).await.with(400)["code"], "invalid_argument");
        api.post(&replay, json!({"from": {"step": "c"}})).await.with(200);
        let task = api.claim_one("w1").await;
        assert_eq!(task["steps"].as_array().map(Vec::len), Some(2));

        let fork = format!("/v1/executions/{id}/fork");
        let body = json!({"from_step": "b", "input": 2, "priority": 7, "idempotency_key": "once"});
        let forked = api.post(&fork, body.clone()).await.with(201);
        assert_eq!((&forked["steps"], &forked["duplicate"]), (&json!(1), &json!(false)));
        let again = api.post(&fork, body).await.with(200);
        assert_eq!((&again["execution_id"], &again["duplicate"]), (&forked["execution_id"], &json!(true)));
        let other = api.post(&fork, json!({"idempotency_key": "once"})).await.with(409);
        assert_eq!(other["code"], "idempotency_conflict");
        let made = api.execution(forked["execution_id"].as_str().expect("an id")).await;
        assert_eq!((&made["forked_from"], &made["input"], &made["priority"], &made["tags"]), (&json!(id), &json!(2), &json!(7), &json!({"k": "v"})));
        assert_eq!(api.execution(&id).await["forks"], json!([forked["execution_id"]]));
        api.task(&task, "complete", json!({})).await.with(200);
        let fork = api.claim_one("w1").await;
        assert_eq!((&fork["steps"][0]["name"], fork["steps"].as_array().map(Vec::len)), (&json!("a"), Some(1)));
        api.task(&fork, "complete", json!({})).await.with(200);
        api.post(&replay, json!({"from": "start"})).await.with(200);
        assert_eq!(api.execution(&id).await["steps"], 0);
    }
}
