//! Budgets over HTTP: limits, reservations, reports, and work that waits for room.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{eventually, fence};

/// Writes a body around dimensions.
type Write<'a> = &'a dyn Fn(&str) -> String;

on_both_hosts! {
    async fn a_budget_is_made_patched_reserved_from_and_reported_to(kit) {
        let api = kit.api().await;
        let body = json!({"scope": {"type": "custom", "id": "team-a"}, "dimensions": {"tokens": {"hard": 100, "soft": 80}, "usd": {}}});
        let made = api.post("/v1/budgets", body).await.with(201);
        let id = made["budget_id"].as_str().expect("an id").to_owned();
        assert_eq!((&made["on_soft"], &made["on_hard"], &made["reset"]), (&json!("notify"), &json!("suspend"), &json!("none")));
        let at = |verb: &str| format!("/v1/budgets/{id}{verb}");
        api.post("/v1/budgets", json!({"budget_id": id, "dimensions": {"other": {}}})).await.refused(409, "idempotency_conflict");

        let held = api.post(&at("/reserve"), json!({"dimensions": {"tokens": 60}, "dedup_key": "a"})).await.with(200);
        let again = api.post(&at("/reserve"), json!({"dimensions": {"tokens": 60}, "dedup_key": "a"})).await.with(200);
        assert_eq!((&held["outcome"], &held["reservation_id"]), (&json!("ok"), &again["reservation_id"]));
        let breach = api.post(&at("/reserve"), json!({"dimensions": {"tokens": 41}})).await.with(200);
        assert_eq!((&breach["outcome"], &breach["dimension"], &breach["limit"]), (&json!("hard_breach"), &json!("tokens"), &json!(100)));
        let settled = json!({"reservation_id": held["reservation_id"], "dimensions": {"tokens": 50}});
        assert_eq!(api.post(&at("/settle"), settled.clone()).await.with(200)["outcome"], "ok");
        assert_eq!(api.post(&at("/settle"), settled).await.with(200)["outcome"], "already_applied");
        let second = api.post(&at("/reserve"), json!({"dimensions": {"tokens": 10}})).await.with(200);
        let give_back = json!({"reservation_id": second["reservation_id"]});
        assert_eq!(api.post(&at("/release"), give_back.clone()).await.status, 204);
        assert_eq!(api.post(&at("/release"), give_back).await.status, 204, "asked again, it is as it is");
        let unknown = json!({"reservation_id": uuid::Uuid::now_v7()});
        api.post(&at("/release"), unknown).await.refused(404, "reservation_not_found");

        let report = json!({"dimensions": {"tokens": 40, "usd": 7}, "dedup_key": "r1"});
        assert_eq!(api.post(&at("/usage"), report.clone()).await.with(200)["outcome"], "soft_breach");
        assert_eq!(api.post(&at("/usage"), report).await.with(200)["outcome"], "already_applied");
        let shown = api.get(&at("")).await.with(200);
        let tokens = &shown["dimensions"]["tokens"];
        assert_eq!((&tokens["used"], &tokens["held"], &tokens["remaining"]), (&json!(90), &json!(0), &json!(10)));

        for (body, field) in [
            (json!({"dimensions": {"tokens": -1}}), "dimensions.tokens"),
            (json!({"dimensions": {"tokens": 9_007_199_254_740_992_i64}}), "dimensions.tokens"),
        ] {
            let refused = api.post(&at("/usage"), body).await.refused(400, "invalid_argument");
            assert!(refused["fields"][field].is_string(), "{refused}");
        }
        api.post(&at("/usage"), json!({"dimensions": {"apples": 1}})).await.refused(400, "invalid_argument");
        let twice = r#"{"dimensions": {"tokens": 1, "tokens": 2}}"#.to_owned();
        api.send(Method::POST, &at("/usage"), &[], twice).await.refused(400, "invalid_argument");

        // What is not named stays; null means none.
        let patch = async |body: Value| api.send(Method::PATCH, &at(""), &[], body.to_string()).await;
        let patched = patch(json!({"dimensions": {"tokens": {"hard": 200}}, "on_hard": "fail"})).await.with(200);
        assert_eq!((&patched["dimensions"]["tokens"]["hard"], &patched["dimensions"]["tokens"]["soft"]), (&json!(200), &json!(80)));
        assert_eq!((&patched["on_hard"], &patched["dimensions"]["usd"]["used"]), (&json!("fail"), &json!(7)));
        let patched = patch(json!({"dimensions": {"tokens": {"soft": null}}})).await.with(200);
        assert_eq!(patched["dimensions"]["tokens"]["soft"], Value::Null);
        patch(json!({"dimensions": {"apples": {"hard": 1}}})).await.refused(400, "invalid_argument");

        let correct = json!({"dimension": "tokens", "delta": -40, "reason": "billed twice"});
        assert_eq!(api.post(&at("/correct"), correct).await.with(200)["dimensions"]["tokens"]["used"], 50);
        let reset = api.post(&at("/reset"), json!({})).await.with(200);
        assert_eq!((&reset["dimensions"]["tokens"]["used"], &reset["actions"][2]["action"]), (&json!(0), &json!("correct")));
        assert_eq!(api.get("/v1/budgets?scope=custom").await.with(200)["items"].as_array().expect("items").len(), 1);
        assert_eq!(api.send(Method::DELETE, &at(""), &[], String::new()).await.status, 204);
        api.get(&at("")).await.refused(404, "budget_not_found");
        api.get("/v1/budgets/nonsense").await.refused(400, "invalid_argument");
    }

    async fn a_report_past_the_limit_parks_the_task_until_there_is_room(kit) {
        let api = kit.api().await;
        let made = api.post("/v1/budgets", json!({"dimensions": {"tokens": {"hard": 10}}})).await.with(201);
        let id = made["budget_id"].as_str().expect("an id").to_owned();
        api.post("/v1/workers/w1/register", json!({"worker_id": "w", "lanes": ["default"]})).await.with(200);
        api.submit(json!({"kind": "burn"})).await;
        let task = api.claim_one("w1").await;
        let execution = task["execution_id"].as_str().expect("an id").to_owned();
        let report = async |task: &Value, n: i64| {
            let body = json!({"fence": fence(task), "budget_id": id, "dimensions": {"tokens": n}});
            api.post(&format!("/v1/tasks/{execution}/usage"), body).await
        };
        assert_eq!(report(&task, 4).await.with(200)["outcome"], "ok");
        let breach = report(&task, 7).await.with(200);
        assert_eq!((&breach["outcome"], &breach["lease_ended"], &breach["used"]), (&json!("hard_breach"), &json!(true), &json!(4)));
        let again = report(&task, 1).await.refused(409, "hard_breach");
        assert_eq!((&again["facts"]["action"], &again["facts"]["limit"]), (&json!("suspend"), &json!("10")));
        let shown = api.get(&format!("/v1/executions/{execution}")).await.with(200);
        assert_eq!((&shown["state"], &shown["blocking_reason"]), (&json!("rate_limited"), &json!("waiting_for_budget")));

        let explained = api.get(&format!("/v1/executions/{execution}/explain")).await.with(200);
        let remedy = format!("raise the hard limit of tokens of budget {id} to 11 or more");
        assert_eq!((&explained["reasons"][0]["reason"], &explained["reasons"][0]["remedy"]), (&json!("waiting_for_budget"), &json!(remedy)), "{explained}");
        let lane = api.get("/v1/lanes/default/explain").await.with(200);
        assert_eq!(lane["reasons"][0]["parts"][0]["remedy"], remedy, "{lane}");

        let raise = json!({"dimensions": {"tokens": {"hard": 100}}}).to_string();
        api.send(Method::PATCH, &format!("/v1/budgets/{id}"), &[], raise).await.with(200);
        let again = eventually("the task goes on", async || api.claim("w1", json!({})).await.into_iter().next()).await;
        assert_eq!((&again["execution_id"], &again["resume"]["cause"]), (&json!(execution), &json!("budget")));
        assert_eq!(report(&again, 7).await.with(200)["outcome"], "ok");
        let usage = api.get(&format!("/v1/executions/{execution}/usage")).await.with(200);
        assert_eq!((&usage["used"]["tokens"], &usage["ledger"][0]["refused"]), (&json!(11), &json!(7)));
        let missing = json!({"kind": "k", "budgets": [{"budget_id": "0190a5e2-0000-7000-8000-0000000000ff"}]});
        api.post("/v1/executions", missing).await.refused(404, "budget_not_found");
    }

    async fn who_waits_for_a_budget_is_shown_and_explained(kit) {
        let api = kit.api().await;
        let body = json!({"dimensions": {"tokens": {"hard": 10}}, "reset": {"interval_ms": 3_600_000}});
        let made = api.post("/v1/budgets", body).await.with(201);
        let id = made["budget_id"].as_str().expect("an id").to_owned();
        api.post("/v1/workers/w1/register", json!({"worker_id": "w", "lanes": ["default"], "slots": 8})).await.with(200);
        let body = || json!({"kind": "burn", "budgets": [{"budget_id": id, "estimate": {"tokens": 8}}]});
        let first = api.submit(body()).await;
        let running = api.claim_one("w1").await;
        assert_eq!(running["execution_id"], first);
        let mut waiting = vec![api.submit(body()).await, api.submit(body()).await];
        assert_eq!(api.claim("w1", json!({})).await.len(), 0);
        let path = format!("/v1/budgets/{id}/blocked");
        let line = eventually("both wait", async || {
            api.claim("w1", json!({})).await;
            Some(api.get(&path).await.with(200)).filter(|line| line["count"] == 2)
        })
        .await;
        assert_eq!((&line["items"][0]["kind"], &line["items"][0]["detail"]["dimension"], &line["next_cursor"]), (&json!("burn"), &json!("tokens"), &json!(null)));
        let page = api.get(&format!("{path}?limit=1")).await.with(200);
        let cursor = page["next_cursor"].as_str().expect("there is another");
        let rest = api.get(&format!("{path}?limit=1&cursor={cursor}")).await.with(200);
        let mut listed: Vec<String> = [&page, &rest].map(|page| page["items"][0]["execution_id"].as_str().expect("one").to_owned()).into();
        listed.sort();
        waiting.sort();
        assert_eq!(listed, waiting);
        let refused = api.get(&format!("{path}?cursor=nonsense")).await.refused(400, "invalid_argument");
        assert!(refused["fields"]["cursor"].is_string(), "{refused}");

        let explained = api.get(&format!("/v1/executions/{}/explain", waiting[0])).await.with(200);
        let facts = &explained["budgets"][0];
        assert_eq!((&facts["budget_id"], &facts["estimate"]["tokens"], &facts["in_the_way"]["limit"]), (&json!(id), &json!(8), &json!("hard")), "{explained}");
        let level = &facts["path"][0];
        assert_eq!((&level["dimensions"]["tokens"]["held"], &level["dimensions"]["tokens"]["remaining"]), (&json!(8), &json!(2)));
        let reset = made["next_reset_at"].as_i64().expect("a time");
        let remedy = format!("raise the hard limit of tokens of budget {id} to 16 or more, or wait until some of the 8 held is given back, or wait for its reset at {reset}");
        assert_eq!((&facts["in_the_way"]["remedy"], &level["next_reset_at"]), (&json!(remedy), &json!(reset)));
        assert_eq!((&explained["reasons"][0]["reason"], &explained["reasons"][0]["remedy"]), (&json!("waiting_for_budget"), &json!(remedy)));

        let report = json!({"fence": fence(&running), "budget_id": id, "dimensions": {"tokens": 3}});
        api.post(&format!("/v1/tasks/{first}/usage"), report).await.with(200);
        assert_eq!(api.get(&format!("/v1/executions/{first}")).await.with(200)["usage"], json!({"tokens": 3}));
        assert_eq!(api.get(&format!("/v1/executions/{}", waiting[0])).await.with(200)["usage"], json!({}));
        assert_eq!(api.get(&format!("/v1/executions/{first}/explain")).await.with(200)["budgets"][0]["in_the_way"], json!(null), "it runs");
        let raise = json!({"dimensions": {"tokens": {"hard": 100}}}).to_string();
        api.send(Method::PATCH, &format!("/v1/budgets/{id}"), &[], raise).await.with(200);
        for _ in 0..2 {
            let task = api.claim("w1", json!({"wait_ms": 10_000})).await.remove(0);
            api.task(&task, "complete", json!({})).await.with(200);
        }
        api.task(&running, "complete", json!({})).await.with(200);
        assert_eq!(api.get(&path).await.with(200), json!({"count": 0, "items": [], "next_cursor": null}));
        api.get("/v1/budgets/0190a5e2-0000-7000-8000-0000000000ff/blocked").await.refused(404, "budget_not_found");
    }

    async fn a_soft_limit_that_wants_an_approval_is_explained(kit) {
        let api = kit.api().await;
        let body = json!({"dimensions": {"tokens": {"hard": 10, "soft": 5}}, "on_soft": "require_approval"});
        let parent = api.post("/v1/budgets", body).await.with(201)["budget_id"].as_str().expect("an id").to_owned();
        let below = api.post("/v1/budgets", json!({"parent": parent, "dimensions": {"tokens": {}}})).await.with(201);
        api.post(&format!("/v1/budgets/{parent}/usage"), json!({"dimensions": {"tokens": 5}})).await.with(200);
        api.post("/v1/workers/w1/register", json!({"worker_id": "w", "lanes": ["default"]})).await.with(200);
        let waits = api.submit(json!({"kind": "burn", "budgets": [{"budget_id": below["budget_id"]}]})).await;
        assert_eq!(api.claim("w1", json!({"wait_ms": 300})).await.len(), 0);
        let explained = api.get(&format!("/v1/executions/{waits}/explain")).await.with(200);
        let way = &explained["budgets"][0]["in_the_way"];
        assert_eq!((&way["budget_id"], &way["limit"]), (&json!(parent), &json!("soft")), "{explained}");
        assert_eq!(way["remedy"], format!("approve budget {parent}, or raise its soft limit"));
        assert_eq!(explained["budgets"][0]["path"].as_array().expect("levels").len(), 2);
        api.post(&format!("/v1/budgets/{parent}/approve"), json!({})).await.with(200);
        assert_eq!(api.claim("w1", json!({"wait_ms": 10_000})).await[0]["execution_id"], waits);
    }

    async fn what_cannot_be_counted_is_refused_by_its_name_and_changes_nothing(kit) {
        let api = kit.api().await;
        let made = api.post("/v1/budgets", json!({"dimensions": {"tokens": {"hard": 100}, "usd": {}}})).await.with(201);
        let id = made["budget_id"].as_str().expect("an id").to_owned();
        let at = |verb: &str| format!("/v1/budgets/{id}{verb}");
        api.post(&at("/usage"), json!({"dimensions": {"usd": 9_007_199_254_740_000_i64}})).await.with(200);
        let held = api.post(&at("/reserve"), json!({"dimensions": {"tokens": 10}})).await.with(200);
        let reservation = held["reservation_id"].as_str().expect("an id").to_owned();
        api.post("/v1/workers/w1/register", json!({"worker_id": "w", "lanes": ["default"]})).await.with(200);
        let execution = api.submit(json!({"kind": "burn"})).await;
        let task = api.claim_one("w1").await;
        let before = api.get(&at("")).await.with(200);

        let amounts = [
            (r#"{"tokens": -1}"#, "dimensions.tokens"),
            (r#"{"tokens": 0}"#, "dimensions.tokens"),
            (r#"{"tokens": 1.5}"#, "dimensions.tokens"),
            (r#"{"tokens": "1"}"#, "dimensions.tokens"),
            (r#"{"tokens": 9007199254740992}"#, "dimensions.tokens"),
            (r#"{"tokens": 1e300}"#, "dimensions.tokens"),
            (r#"{"tokens": 99999999999999999999}"#, "dimensions.tokens"),
            (r#"{"usd": 9007199254740991}"#, "dimensions.usd"),
            (r#"{"apples": 1}"#, "dimensions.apples"),
            (r#"{"tokens": 1, "usd": 2, "tokens": 3}"#, "dimensions.tokens"),
            (r#"{}"#, "dimensions"),
            (r#"[]"#, "dimensions"),
        ];
        let bodies: [(String, Write<'_>); 4] = [
            (at("/usage"), &|d| format!(r#"{{"dimensions": {d}}}"#)),
            (at("/reserve"), &|d| format!(r#"{{"dimensions": {d}}}"#)),
            (at("/settle"), &|d| format!(r#"{{"reservation_id": "{reservation}", "dimensions": {d}}}"#)),
            (format!("/v1/tasks/{execution}/usage"), &|d| format!(r#"{{"fence": {}, "budget_id": "{id}", "dimensions": {d}}}"#, fence(&task))),
        ];
        for (path, body) in &bodies {
            for (dimensions, field) in amounts {
                let refused = api.send(Method::POST, path, &[], body(dimensions)).await.refused(400, "invalid_argument");
                assert!(refused["fields"][field].is_string(), "{path} {dimensions}: {refused}");
            }
        }
        for (body, field) in [
            (r#"{"dimensions": {"tokens": {"hard": -1}}}"#, "dimensions.tokens.hard"),
            (r#"{"dimensions": {"tokens": {"hard": 9007199254740992}}}"#, "dimensions.tokens.hard"),
            (r#"{"dimensions": {"tokens": {"hard": 1}, "tokens": {"hard": 2}}}"#, "dimensions.tokens"),
            (r#"{"dimensions": {"apples": {"hard": 1}}}"#, "dimensions.apples"),
        ] {
            let refused = api.send(Method::PATCH, &at(""), &[], body.to_owned()).await.refused(400, "invalid_argument");
            assert!(refused["fields"][field].is_string(), "{body}: {refused}");
        }
        for (body, field) in [
            (r#"{"dimensions": {"tokens": {"hard": -1}}}"#, "dimensions.tokens.hard"),
            (r#"{"dimensions": {"tokens": {"soft": 9007199254740992}}}"#, "dimensions.tokens.soft"),
            (r#"{"dimensions": {"tokens": {}, "tokens": {}}}"#, "dimensions.tokens"),
            (r#"{"dimensions": {}}"#, "dimensions"),
            (r#"{"dimensions": {"tokens": {}}, "reset": {"calendar": "day", "zone": "Mars/Olympus"}}"#, "reset.zone"),
        ] {
            let refused = api.send(Method::POST, "/v1/budgets", &[], body.to_owned()).await.refused(400, "invalid_argument");
            assert!(refused["fields"][field].is_string(), "{body}: {refused}");
        }
        for (estimate, field) in [
            (r#"{"tokens": -1}"#, "budgets[0].estimate.tokens"),
            (r#"{"tokens": 9007199254740992}"#, "budgets[0].estimate.tokens"),
            (r#"{"apples": 1}"#, "budgets[0].estimate.apples"),
            (r#"{"tokens": 1, "tokens": 2}"#, "budgets[0].estimate.tokens"),
        ] {
            let body = format!(r#"{{"kind": "k", "budgets": [{{"budget_id": "{id}", "estimate": {estimate}}}]}}"#);
            let refused = api.send(Method::POST, "/v1/executions", &[], body).await.refused(400, "invalid_argument");
            assert!(refused["fields"][field].is_string(), "{estimate}: {refused}");
        }
        for (body, field) in [
            (json!({"dimension": "apples", "delta": 1, "reason": "r"}), "dimension"),
            (json!({"dimension": "tokens", "delta": 0, "reason": "r"}), "delta"),
            (json!({"dimension": "tokens", "delta": -1, "reason": "r"}), "delta"),
            (json!({"dimension": "usd", "delta": 9_007_199_254_740_991_i64, "reason": "r"}), "delta"),
        ] {
            let refused = api.post(&at("/correct"), body).await.refused(400, "invalid_argument");
            assert!(refused["fields"][field].is_string(), "{refused}");
        }
        assert_eq!(api.get(&at("")).await.with(200), before);
        assert_eq!(api.get(&format!("/v1/executions/{execution}/usage")).await.with(200)["ledger"], json!([]));
        api.task(&task, "complete", json!({})).await.with(200);
    }

    async fn a_task_reserves_settles_and_releases_under_its_lease(kit) {
        let api = kit.api().await;
        let made = api.post("/v1/budgets", json!({"dimensions": {"tokens": {"hard": 100}}, "on_hard": "fail"})).await.with(201);
        let id = made["budget_id"].as_str().expect("an id").to_owned();
        api.post("/v1/workers/w1/register", json!({"worker_id": "w", "lanes": ["default"]})).await.with(200);
        api.submit(json!({"kind": "burn", "budgets": [{"budget_id": id, "estimate": {"tokens": 10}}]})).await;
        let task = api.claim_one("w1").await;
        let execution = task["execution_id"].as_str().expect("an id").to_owned();
        let ask = async |verb: &str, body: Value| {
            let mut body = body;
            body["fence"] = fence(&task);
            body["budget_id"] = json!(id);
            api.post(&format!("/v1/tasks/{execution}/{verb}"), body).await
        };
        let standing = async || {
            let shown = api.get(&format!("/v1/budgets/{id}")).await.with(200);
            let tokens = &shown["dimensions"]["tokens"];
            (tokens["used"].as_i64().expect("used"), tokens["held"].as_i64().expect("held"))
        };
        assert_eq!(standing().await, (0, 10));
        let body = json!({"dimensions": {"tokens": 60}, "dedup_key": "call-1"});
        let first = ask("reserve", body.clone()).await.with(200);
        assert_eq!(ask("reserve", body).await.with(200), first, "the same key is the same reservation");
        assert_eq!(standing().await, (0, 70));
        let breach = ask("reserve", json!({"dimensions": {"tokens": 31}})).await.with(200);
        assert_eq!((&breach["outcome"], &breach["limit"]), (&json!("hard_breach"), &json!(100)));
        let second = ask("reserve", json!({"dimensions": {"tokens": 30}})).await.with(200);
        let settled = json!({"reservation_id": first["reservation_id"], "dimensions": {"tokens": 50}});
        assert_eq!(ask("settle", settled.clone()).await.with(200)["outcome"], "ok");
        assert_eq!(ask("settle", settled).await.with(200)["outcome"], "already_applied");
        assert_eq!(standing().await, (50, 40), "the difference returns");
        let give_back = json!({"reservation_id": second["reservation_id"]});
        assert_eq!(ask("release", give_back.clone()).await.with(200)["outcome"], "released");
        assert_eq!(ask("release", give_back).await.with(200)["outcome"], "released", "asked again, it is as it is");
        let unknown = json!({"reservation_id": uuid::Uuid::now_v7()});
        ask("release", unknown).await.refused(404, "reservation_not_found");
        assert_eq!(standing().await, (50, 10));
        let usage = api.get(&format!("/v1/executions/{execution}/usage")).await.with(200);
        assert_eq!((&usage["used"]["tokens"], &usage["pending"]), (&json!(50), &json!(0)));

        for (verb, dimensions, field) in [
            ("usage", r#"{"tokens": -1}"#, "dimensions.tokens"),
            ("usage", r#"{"tokens": 9007199254740992}"#, "dimensions.tokens"),
            ("usage", r#"{"tokens": 1, "tokens": 2}"#, "dimensions.tokens"),
            ("usage", r#"{"apples": 1}"#, "dimensions.apples"),
            ("usage", r#"{"tokens": 1.5}"#, "dimensions.tokens"),
            ("usage", "{}", "dimensions"),
            ("reserve", r#"{"tokens": 1, "tokens": 2}"#, "dimensions.tokens"),
            ("reserve", r#"{"apples": 1}"#, "dimensions.apples"),
            ("reserve", r#"{"tokens": 0}"#, "dimensions.tokens"),
        ] {
            let body = format!(r#"{{"fence": {}, "budget_id": "{id}", "dimensions": {dimensions}}}"#, fence(&task));
            let answer = api.send(Method::POST, &format!("/v1/tasks/{execution}/{verb}"), &[], body).await;
            let refused = answer.refused(400, "invalid_argument");
            assert!(refused["fields"][field].is_string(), "{verb} {dimensions}: {refused}");
        }
        assert_eq!(standing().await, (50, 10), "what is refused changes nothing");
        let mut stale = fence(&task);
        stale["lease_epoch"] = json!(99);
        for verb in ["usage", "reserve"] {
            let body = json!({"fence": stale, "budget_id": id, "dimensions": {"tokens": 1}});
            api.post(&format!("/v1/tasks/{execution}/{verb}"), body).await.refused(409, "stale_lease");
        }

        // What is settled past the limit is not counted, and does what the budget says; what was held goes with the lease.
        let third = ask("reserve", json!({"dimensions": {"tokens": 40}})).await.with(200);
        let much = json!({"reservation_id": third["reservation_id"], "dimensions": {"tokens": 51}});
        let breach = ask("settle", much).await.with(200);
        assert_eq!((&breach["outcome"], &breach["action"], &breach["lease_ended"]), (&json!("hard_breach"), &json!("fail"), &json!(true)));
        let shown = api.get(&format!("/v1/executions/{execution}")).await.with(200);
        assert_eq!((&shown["outcome"], &shown["failure"]["category"]), (&json!("failed"), &json!("budget")));
        eventually("holds die with the lease", async || (standing().await == (50, 0)).then_some(())).await;
    }
}
