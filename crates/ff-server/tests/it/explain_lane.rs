//! Why the work of a lane is not running, in numbers.

use serde_json::{Value, json};

use crate::kit::{Api, eventually};

async fn explained(api: &Api, lane: &str) -> Value {
    api.get(&format!("/v1/lanes/{lane}/explain")).await.with(200)
}

/// The reason of this name; null when the lane does not have it.
fn reason<'a>(lane: &'a Value, name: &str) -> &'a Value {
    let reasons = lane["reasons"].as_array().expect("reasons");
    reasons.iter().find(|reason| reason["reason"] == name).unwrap_or(&Value::Null)
}

/// Every reason with its count.
fn counts(lane: &Value) -> Value {
    let reasons = lane["reasons"].as_array().expect("reasons").iter();
    let counts: Vec<(&str, &Value)> =
        reasons.map(|reason| (reason["reason"].as_str().expect("a name"), &reason["count"])).collect();
    let sum: i64 = counts.iter().filter_map(|(_, count)| count.as_i64()).sum();
    assert_eq!(lane["waiting"], sum, "{lane}");
    json!(counts.into_iter().map(|(name, count)| (name.to_owned(), count.clone())).collect::<serde_json::Map<_, _>>())
}

async fn serve(api: &Api, instance: &str, lane: &str, slots: u32) {
    let body = json!({"worker_id": "w", "lanes": [lane], "slots": slots, "capabilities": ["eu"]});
    api.post(&format!("/v1/workers/{instance}/register"), body).await.with(200);
}

on_both_hosts! {
    async fn a_lane_says_how_many_wait_for_what(kit) {
        let api = kit.api().await;
        api.get("/v1/lanes/mail/explain").await.refused(404, "lane_not_found");
        let work = |n: usize| json!({"kind": "k", "lane": "mail", "input": n});
        for n in 0..5 {
            api.submit(work(n)).await;
        }
        let lane = explained(&api, "mail").await;
        assert_eq!(counts(&lane), json!({"no_worker": 5}));
        assert_eq!((&lane["running"], &lane["workers"]), (&json!(0), &json!({"live": 0, "slots": 0})));
        api.post("/v1/lanes/mail/pause", json!({})).await.with(200);
        let lane = explained(&api, "mail").await;
        assert_eq!((counts(&lane), &lane["state"]), (json!({"lane_state": 5}), &json!("paused")));
        assert_eq!(reason(&lane, "lane_state")["remedy"], "the lane is paused: resume it");
        api.post("/v1/lanes/mail/resume", json!({})).await.with(200);

        serve(&api, "w1", "mail", 2).await;
        let running = api.claim("w1", json!({"max": 2, "wait_ms": 10_000})).await;
        assert_eq!(running.len(), 2);
        let lane = explained(&api, "mail").await;
        assert_eq!((counts(&lane), &lane["running"]), (json!({"behind_others": 3}), &json!(2)));
        assert_eq!(lane["workers"], json!({"live": 1, "slots": 2}));
        api.send(reqwest::Method::PUT, "/v1/lanes/mail", &[], json!({"max_active": 2}).to_string()).await.with(200);
        let lane = explained(&api, "mail").await;
        assert_eq!((counts(&lane), &lane["active"]), (json!({"max_active": 3}), &json!(2)));

        let delayed = api.submit(json!({"kind": "k", "lane": "mail", "delay_ms": 600_000})).await;
        api.submit(json!({"kind": "k", "lane": "mail", "delay_ms": 900_000})).await;
        let held = api.submit(work(6)).await;
        api.post(&format!("/v1/executions/{held}/hold"), json!({})).await.with(200);
        let members = json!([{"key": "a", "kind": "k", "lane": "mail", "delay_ms": 800_000}, {"key": "b", "kind": "k", "lane": "mail"}]);
        let flow = json!({"kind": "f", "members": members, "edges": [{"from": "a", "to": "b"}]});
        api.post("/v1/flows", flow).await.with(201);
        let suspend = json!({"reason": "waiting_for_approval", "waitpoints": [{"key": "ok"}]});
        api.task(&running[0], "suspend", suspend).await.with(200);
        let until = api.execution(&delayed).await["delay_until"].clone();
        let lane = explained(&api, "mail").await;
        let expected = json!({"waiting_for_dependencies": 1, "held_by_operator": 1, "suspended": 1, "delayed": 3});
        for (name, count) in expected.as_object().expect("counts") {
            assert_eq!(&reason(&lane, name)["count"], count, "{name} in {lane}");
        }
        assert_eq!(reason(&lane, "delayed")["next_at"], until, "the first to end, whichever came first: {lane}");
        counts(&lane);
        // Another namespace is another lane.
        api.get("/v1/lanes/mail/explain?namespace=other").await.refused(404, "lane_not_found");
        api.get("/v1/lanes/mail/explain?colour=red").await.refused(400, "invalid_argument");
    }

    async fn a_lane_names_requirements_keys_and_budgets(kit) {
        let api = kit.api().await;
        serve(&api, "w1", "mail", 8).await;
        let work = |more: Value| {
            let mut body = json!({"kind": "k", "lane": "mail"});
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            body
        };
        for _ in 0..3 {
            api.submit(work(json!({"requires": ["eu", "gpu"]}))).await;
        }
        api.submit(work(json!({"requires": ["tpu"]}))).await;
        // Set aside by then or not: they count under what they lack.
        let lane = eventually("all four are counted", async || {
            let lane = explained(&api, "mail").await;
            (counts(&lane) == json!({"waiting_for_capable_worker": 4})).then_some(lane)
        })
        .await;
        let parts = &reason(&lane, "waiting_for_capable_worker")["parts"];
        assert_eq!((&parts[0]["requires"], &parts[0]["count"]), (&json!(["eu", "gpu"]), &json!(3)), "{lane}");
        assert_eq!(parts[0]["nearest"], json!({"instance": "w1", "missing": ["gpu"]}));
        assert_eq!((&parts[0]["remedy"], &parts[1]["requires"]), (&json!("w1 lacks only gpu"), &json!(["tpu"])));

        let quota = api.post("/v1/quotas", json!({"rate": {"limit": 1, "window_ms": 600_000}})).await.with(201)["quota_id"].clone();
        let limits = json!({"dimensions": {"tokens": {"hard": 10}}, "reset": {"interval_ms": 3_600_000}});
        let budget = api.post("/v1/budgets", limits).await.with(201);
        let budget_id = budget["budget_id"].as_str().expect("an id");
        let spend = json!({"dimensions": {"tokens": 10}});
        api.post(&format!("/v1/budgets/{budget_id}/usage"), spend).await.with(200);
        for _ in 0..4 {
            api.submit(work(json!({"quotas": [{"quota_id": quota, "key": "openai"}]}))).await;
        }
        for _ in 0..2 {
            api.submit(work(json!({"budgets": [{"budget_id": budget_id}]}))).await;
        }
        let started = eventually("one passes", async || api.claim("w1", json!({"max": 8})).await.pop()).await;
        let lane = eventually("the others are told to wait", async || {
            api.claim("w1", json!({"max": 7})).await;
            let lane = explained(&api, "mail").await;
            let waits = |name: &str| reason(&lane, name)["count"].clone();
            ((waits("waiting_for_quota"), waits("waiting_for_budget")) == (json!(3), json!(2))).then_some(lane)
        })
        .await;
        let part = &reason(&lane, "waiting_for_quota")["parts"][0];
        assert_eq!((&part["quota_id"], &part["key"], &part["count"]), (&quota, &json!("openai"), &json!(3)), "{lane}");
        let next = part["next_at"].as_i64().expect("a time");
        assert!(next > ff_core::types::TimestampMs::now().as_millis(), "{lane}");
        assert_eq!(reason(&lane, "waiting_for_quota")["next_at"], next);
        let part = &reason(&lane, "waiting_for_budget")["parts"][0];
        assert_eq!((&part["budget_id"], &part["count"], &part["next_at"]), (&json!(budget_id), &json!(2), &budget["next_reset_at"]), "{lane}");
        let remedy = part["remedy"].as_str().expect("a remedy");
        assert!(remedy.starts_with(&format!("raise the hard limit of tokens of budget {budget_id} to 11 or more, or wait for its reset at ")), "{remedy}");
        api.task(&started, "complete", json!({})).await.with(200);
    }

    async fn a_place_counts_everybody_before_it_in_the_lane(kit) {
        let api = kit.api().await;
        serve(&api, "w1", "mail", 1).await;
        let mut ids = Vec::new();
        for _ in 0..20 {
            ids.push(api.submit(json!({"kind": "k", "lane": "mail"})).await);
        }
        let urgent = api.submit(json!({"kind": "k", "lane": "mail", "priority": 9})).await;
        let ahead = async |id: &str| api.get(&format!("/v1/executions/{id}/explain")).await.with(200)["place"]["ahead"].clone();
        assert_eq!(ahead(&urgent).await, 0);
        let mut places = Vec::new();
        for id in &ids {
            places.push(ahead(id).await.as_i64().expect("a number"));
        }
        // Two of one millisecond stand in either order.
        places.sort_unstable();
        assert_eq!(places, (1..=20).collect::<Vec<i64>>());
        let task = api.claim_one("w1").await;
        assert_eq!(task["execution_id"], urgent);
        let last = api.get(&format!("/v1/executions/{}/explain", ids[19])).await.with(200);
        assert_eq!((&last["can_run"], &last["reasons"]), (&json!(true), &json!([])));
        api.task(&task, "complete", json!({})).await.with(200);
    }
}
