//! Children over HTTP: spawned under a fence, waited for without a worker, listed.

use serde_json::{Value, json};

use crate::kit::{Api, eventually};

/// Claims one task, which must be of this kind.
async fn claim_kind(api: &Api, kind: &str) -> Value {
    let task = api.claim_one("w1").await;
    assert_eq!(task["kind"], kind, "{task}");
    task
}

on_both_hosts! {
    async fn a_parent_waits_for_its_children_and_goes_on_with_their_outcomes(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let parent = api.submit(json!({"kind": "parent", "priority": 9})).await;
        let task = claim_kind(&api, "parent").await;
        let body = json!({"children": [{"kind": "one", "key": "first", "input": 1, "priority": 8}, {"kind": "two", "parent_close": "abandon"}], "request_id": "step-1"});
        let spawned = api.task(&task, "spawn", body.clone()).await.with(200);
        let ids: Vec<&str> = spawned["children"].as_array().expect("children").iter().map(|child| child["execution_id"].as_str().expect("an id")).collect();
        assert_eq!(ids.len(), 2);
        let again = api.task(&task, "spawn", body).await.with(200);
        assert_eq!((&again["children"][0]["execution_id"], &again["children"][0]["duplicate"]), (&json!(ids[0]), &json!(true)));
        let child = api.execution(ids[0]).await;
        assert_eq!((&child["parent_id"], &child["key"], &child["lane"], &child["namespace"]), (&json!(parent), &json!("first"), &json!("default"), &json!("default")));
        assert_eq!(api.execution(&parent).await["children"], json!({"total": 2, "open": 2}));

        let waiting = api.task(&task, "wait-children", json!({})).await.with(200);
        assert_eq!(waiting, json!({"outcome": "waiting", "open": 2}));
        assert_eq!(api.task(&task, "wait-children", json!({})).await.with(200)["outcome"], "waiting", "a repeat is safe");
        let shown = api.execution(&parent).await;
        assert_eq!((&shown["state"], &shown["blocking_reason"], &shown["lease"]), (&json!("waiting_children"), &json!("waiting_for_children"), &Value::Null));
        let explained = api.get(&format!("/v1/executions/{parent}/explain")).await.with(200);
        let reason = &explained["reasons"][0];
        assert_eq!((&reason["reason"], &reason["detail"]["open"]), (&json!("waiting_for_children"), &json!("2 of 2")));
        assert!(reason["detail"]["waits_for"].as_str().is_some_and(|names| names.contains("first (waiting)") && names.contains(ids[1])), "{explained}");
        assert_eq!((&explained["children"]["total"], explained["children"]["waits_for"].as_array().map(Vec::len)), (&json!(2), Some(2)));

        // The slot is free: the same worker runs the children.
        let one = claim_kind(&api, "one").await;
        assert_eq!((&one["parent_id"], &one["key"], &one["input"]), (&json!(parent), &json!("first"), &json!(1)));
        api.task(&one, "complete", json!({"result": {"n": 9_007_199_254_740_993_u64}})).await.with(200);
        let two = claim_kind(&api, "two").await;
        api.task(&two, "fail", json!({"reason": "no", "category": "c", "retryable": false})).await.with(200);

        let resumed = claim_kind(&api, "parent").await;
        assert_eq!((&resumed["attempt_id"], &resumed["resume"]["cause"]), (&task["attempt_id"], &json!("children")));
        let outcomes = &resumed["resume"]["children"];
        assert_eq!((&outcomes[0]["execution_id"], &outcomes[0]["key"], &outcomes[0]["outcome"]), (&json!(ids[0]), &json!("first"), &json!("success")));
        assert_eq!((&outcomes[0]["result"], &outcomes[0]["result_encoding"]), (&json!({"n": 9_007_199_254_740_993_u64}), &json!("json")));
        assert_eq!((&outcomes[1]["outcome"], &outcomes[1]["failure"]["reason"], &outcomes[1]["result"]), (&json!("failed"), &json!("no"), &Value::Null));
        let ended = api.task(&resumed, "wait-children", json!({})).await.with(200);
        assert_eq!((&ended["outcome"], &ended["children"]), (&json!("ended"), outcomes), "with nothing open the lease stays");
        assert_eq!(&api.get(&format!("/v1/executions/{parent}/children")).await.with(200)["items"], outcomes);
        api.task(&resumed, "complete", json!({})).await.with(200);
        assert_eq!(api.execution(&parent).await["state"], "completed");
    }

    async fn the_same_children_under_the_same_lease_are_spawned_once(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let parent = api.submit(json!({"kind": "parent"})).await;
        let task = claim_kind(&api, "parent").await;
        let first = api.task(&task, "spawn", json!({"children": [{"kind": "a"}]})).await.with(200);
        let again = api.task(&task, "spawn", json!({"children": [{"kind": "a"}]})).await.with(200);
        assert_eq!(again["children"][0]["execution_id"], first["children"][0]["execution_id"]);
        let other = api.task(&task, "spawn", json!({"children": [{"kind": "b"}]})).await.with(200);
        assert_ne!(other["children"][0]["execution_id"], first["children"][0]["execution_id"]);
        let named = api.task(&task, "spawn", json!({"children": [{"kind": "a"}], "request_id": "second"})).await.with(200);
        assert_eq!(named["children"][0]["duplicate"], false);
        api.task(&task, "spawn", json!({"children": [{"kind": "z"}], "request_id": "second"})).await.refused(409, "idempotency_conflict");
        assert_eq!(api.execution(&parent).await["children"], json!({"total": 3, "open": 3}));

        let mut children: Vec<Value> = (0..70).map(|_| json!({"kind": "k"})).collect();
        children[69]["priority"] = json!(9_001);
        for (body, field) in [
            (json!({"children": children}), "children[69].priority"),
            (json!({"children": []}), "children"),
            (json!({"children": [{"key": "k"}]}), "children[0].kind"),
            (json!({"children": [{"kind": "k", "colour": 1}]}), "children[0].colour"),
            (json!({"children": [{"kind": "k", "parent_close": "wait"}]}), "children[0].parent_close"),
            (json!({"children": [{"kind": "k", "lane": "a b"}]}), "children[0].lane"),
        ] {
            let problem = api.task(&task, "spawn", body).await.refused(400, "invalid_argument");
            assert!(problem["fields"][field].is_string(), "{field}: {problem}");
        }
        // The parent's end cancels what it spawned.
        let mut stale = task.clone();
        stale["lease_id"] = json!("0192a7c4-5b1e-7abc-8def-00112233aabb");
        api.task(&stale, "spawn", json!({"children": [{"kind": "a"}]})).await.refused(409, "stale_lease");
        api.task(&stale, "wait-children", json!({})).await.refused(409, "stale_lease");
        api.task(&task, "complete", json!({})).await.with(200);
        let child = first["children"][0]["execution_id"].as_str().expect("an id");
        eventually("the child is cancelled", async || {
            (api.execution(child).await["state"] == "cancelled").then_some(())
        }).await;
        api.task(&task, "spawn", json!({"children": [{"kind": "a"}]})).await.refused(409, "execution_not_active");
        let unknown = "/v1/executions/0192a7c4-5b1e-7abc-8def-00112233aabb/children";
        api.get(unknown).await.refused(404, "execution_not_found");
    }

    async fn many_children_come_back_whole(kit) {
        let api = kit.api().await;
        api.register("w1", 8).await;
        let parent = api.submit(json!({"kind": "parent", "priority": 9})).await;
        let task = claim_kind(&api, "parent").await;
        let children: Vec<Value> = (0..150).map(|n| json!({"kind": "child", "key": format!("c{n}"), "input": n})).collect();
        api.task(&task, "spawn", json!({"children": children})).await.with(200);
        assert_eq!(api.task(&task, "wait-children", json!({})).await.with(200)["open"], 150);
        let mut done = 0;
        while done < 150 {
            for child in api.claim("w1", json!({"max": 8, "wait_ms": 5_000})).await {
                assert_eq!(child["kind"], "child");
                api.task(&child, "complete", json!({"result": child["input"]})).await.with(200);
                done += 1;
            }
        }
        let resumed = claim_kind(&api, "parent").await;
        let outcomes = resumed["resume"]["children"].as_array().expect("children");
        let results: Vec<i64> = outcomes.iter().map(|child| child["result"].as_i64().expect("a number")).collect();
        assert_eq!(results, (0..150).collect::<Vec<i64>>());
        assert_eq!(resumed["resume"]["more_children"], Value::Null);
        let ended = api.task(&resumed, "wait-children", json!({})).await.with(200);
        assert_eq!(ended["children"].as_array().map(Vec::len), Some(150));
        let page = api.get(&format!("/v1/executions/{parent}/children?limit=100")).await.with(200);
        let cursor = page["next_cursor"].as_str().expect("there are more");
        let rest = api.get(&format!("/v1/executions/{parent}/children?limit=100&cursor={cursor}")).await.with(200);
        assert_eq!((rest["items"].as_array().map(Vec::len), &rest["items"][0]["key"], &rest["next_cursor"]), (Some(50), &json!("c100"), &Value::Null));
        api.task(&resumed, "complete", json!({})).await.with(200);
    }
}
