//! Workers that wait: suspend, waitpoints, resume, and what operators do with a wait.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Api, eventually, fence};

/// A running attempt of a fresh execution.
pub async fn running(api: &Api, instance: &str) -> (String, Value) {
    let id = api.submit(json!({"kind": "k"})).await;
    let task = api.claim_one(instance).await;
    assert_eq!(task["execution_id"].as_str(), Some(id.as_str()));
    (id, task)
}

/// Delivers a signal under a token.
pub async fn signal(api: &Api, id: &str, waitpoint: &Value, token: &Value, mut body: Value) -> crate::kit::Reply {
    body["execution_id"] = json!(id);
    body["token"] = token.clone();
    let waitpoint = waitpoint.as_str().expect("a waitpoint id");
    api.post(&format!("/v1/waitpoints/{waitpoint}/signals"), body).await
}

on_both_hosts! {
    async fn a_worker_waits_for_a_signal_and_goes_on_with_it(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        assert!(!kit.keys_file().exists(), "keys are made when the first token is needed");
        let suspended = api.task(&task, "suspend", json!({
            "reason": "waiting_for_approval",
            "waitpoints": [{"key": "review"}],
            "condition": {"signal": "approved"},
            "timeout_ms": 60_000,
            "timeout_behavior": "auto_resume",
            "continuation": {"step": 3, "big": 9_007_199_254_740_993_u64},
        })).await.with(200);
        assert!(kit.keys_file().exists());
        assert_eq!(suspended["outcome"], "suspended");
        let waitpoint = &suspended["waitpoints"][0];
        assert_eq!((&waitpoint["key"], &waitpoint["tokens"][0]["approver"]), (&json!("review"), &Value::Null));
        let token = &waitpoint["tokens"][0]["token"];
        assert!(token.as_str().is_some_and(|token| token.starts_with("wp1.")), "{waitpoint}");

        // The slot is free: the same worker takes other work while it waits.
        let (_, other) = running(&api, "w1").await;
        api.task(&other, "complete", json!({})).await.with(200);
        api.task(&task, "complete", json!({})).await.refused(409, "execution_not_active");

        let shown = api.execution(&id).await;
        assert_eq!((&shown["state"], &shown["lifecycle_phase"]), (&json!("suspended"), &json!("suspended")));
        let suspension = &shown["suspension"];
        assert_eq!(suspension["suspension_id"], suspended["suspension_id"]);
        assert_eq!((&suspension["reason"], &suspension["timeout_behavior"]), (&json!("waiting_for_approval"), &json!("auto_resume_with_timeout_signal")));
        assert_eq!(suspension["waitpoints"][0]["waitpoint_id"], waitpoint["waitpoint_id"]);
        assert_eq!(suspension["condition"], json!({"signal": "approved", "satisfied": false}));
        let explained = api.get(&format!("/v1/executions/{id}/explain")).await.with(200);
        assert_eq!((&explained["can_run"], &explained["reasons"][0]["reason"]), (&json!(false), &json!("suspended")));
        assert_eq!(explained["reasons"][0]["detail"]["waitpoints"], "review");
        assert_eq!(explained["suspension"]["progress"], "signal approved");

        let ignored = signal(&api, &id, &waitpoint["waitpoint_id"], token, json!({"name": "hello"})).await.with(200);
        assert_eq!((&ignored["outcome"], &ignored["effect"]), (&json!("accepted"), &json!("unused")));
        let payload = json!({"by": "ann", "n": 9_007_199_254_740_993_u64});
        let done = signal(&api, &id, &waitpoint["waitpoint_id"], token, json!({"name": "approved", "payload": payload, "source": "mail", "correlation_id": "c-1"})).await.with(200);
        assert_eq!(done["outcome"], "triggered_resume");

        let resumed = api.claim_one("w1").await;
        assert_eq!((&resumed["attempt_index"], &resumed["attempt_id"]), (&task["attempt_index"], &task["attempt_id"]), "the same attempt goes on");
        assert!(resumed["lease_epoch"].as_i64() > task["lease_epoch"].as_i64());
        let resume = &resumed["resume"];
        assert_eq!((&resume["suspension_id"], &resume["cause"]), (&suspended["suspension_id"], &json!("signal")));
        assert_eq!(resume["continuation"], json!({"step": 3, "big": 9_007_199_254_740_993_u64}));
        assert_eq!(resume["continuation_encoding"], "json");
        let came = &resume["signals"][0];
        assert_eq!(resume["signals"].as_array().map(Vec::len), Some(1));
        assert_eq!((&came["signal_id"], &came["name"], &came["payload"], &came["payload_encoding"]), (&done["signal_id"], &json!("approved"), &payload, &json!("json")));
        assert_eq!((&came["source"], &came["correlation_id"], &came["waitpoint_id"]), (&json!("mail"), &json!("c-1"), &waitpoint["waitpoint_id"]));
        assert_eq!(api.get(&format!("/v1/tasks/{id}/signals")).await.with(200)["signals"], resume["signals"]);
        api.task(&resumed, "complete", json!({"result": "done"})).await.with(200);
        let shown = api.execution(&id).await;
        assert_eq!((&shown["suspension"], &shown["past_suspensions"][0]["cause"]), (&Value::Null, &json!("signal")));
        assert_eq!(shown["attempts"].as_array().map(Vec::len), Some(1));
        let history = api.get(&format!("/v1/executions/{id}/history")).await.with(200);
        assert_eq!(history["past_suspensions"][0]["suspension_id"], suspended["suspension_id"]);
    }

    async fn two_approvers_are_two_tokens_whatever_the_callers_say(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        let suspended = api.task(&task, "suspend", json!({
            "reason": "waiting_for_approval",
            "waitpoints": [{"key": "pay", "approvers": ["ann", "bob", "cid"], "allowed_signals": ["approved", "refused"]}],
            "condition": {"count": 2, "over": "approvers", "of": {"signal": "approved"}},
        })).await.with(200);
        let waitpoint = suspended["waitpoints"][0].clone();
        let of = |approver: &str| waitpoint["tokens"].as_array().expect("tokens").iter().find(|t| t["approver"] == approver).expect("one each")["token"].clone();
        let wid = &waitpoint["waitpoint_id"];
        for said in ["ann", "bob"] {
            let body = json!({"name": "approved", "source_identity": said, "source": said});
            let first = signal(&api, &id, wid, &of("ann"), body).await.with(200);
            assert_eq!(first["outcome"], "accepted", "the same token is the same approver");
        }
        signal(&api, &id, wid, &of("bob"), json!({"name": "maybe"})).await.refused(409, "signal_not_allowed");
        signal(&api, &id, wid, &of("cid"), json!({"name": "refused"})).await.with(200);

        let inbox = api.get("/v1/waitpoints?state=open").await.with(200);
        let item = &inbox["items"][0];
        assert_eq!((&item["waitpoint_id"], &item["key"], &item["execution_id"]), (wid, &json!("pay"), &json!(id)));
        assert_eq!((&item["condition"]["counted"], &item["condition"]["satisfied"], &item["progress"]), (&json!(1), &json!(false), &json!("1 of 2 approvers with approved")));
        let answered: Vec<(&str, bool)> = item["approvers"].as_array().expect("approvers").iter().map(|a| (a["approver"].as_str().expect("a label"), a["answered"] == true)).collect();
        assert_eq!(answered, [("ann", true), ("bob", false), ("cid", true)]);
        assert!(item["created_at"].is_i64() && item["allowed_signals"] == json!(["approved", "refused"]));
        assert!(!inbox.to_string().contains("wp1."), "no token is shown again");

        assert_eq!(signal(&api, &id, wid, &of("bob"), json!({"name": "approved"})).await.with(200)["outcome"], "triggered_resume");
        let resumed = api.claim_one("w1").await;
        let who: Vec<&str> = resumed["resume"]["signals"].as_array().expect("signals").iter().map(|s| s["approver"].as_str().expect("who")).collect();
        assert_eq!(who, ["ann", "bob"]);
        assert_eq!(api.get("/v1/waitpoints?state=open").await.with(200)["items"], json!([]));
        let closed = api.get(&format!("/v1/executions/{id}/waitpoints")).await.with(200);
        assert_eq!((&closed["items"][0]["state"], closed["items"][0]["closed_at"].is_i64()), (&json!("closed"), true));
    }

    async fn early_signals_are_enough_and_the_lease_stays(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        let made = api.task(&task, "waitpoints", json!({"key": "early", "approvers": ["ann"], "expires_in_ms": 60_000, "request_id": "w-1"})).await.with(200);
        assert_eq!((&made["key"], &made["tokens"][0]["approver"]), (&json!("early"), &json!("ann")));
        let again = api.task(&task, "waitpoints", json!({"key": "early", "approvers": ["ann"], "expires_in_ms": 60_000, "request_id": "w-1"})).await.with(200);
        assert_eq!(again, made, "a repeated call is the same waitpoint with the same token");
        let body = json!({"name": "go", "payload": "AAH/", "payload_encoding": "base64"});
        let early = signal(&api, &id, &made["waitpoint_id"], &made["tokens"][0]["token"], body).await.with(200);
        assert_eq!((&early["outcome"], &early["effect"]), (&json!("accepted"), &json!("buffered")));
        let shown = api.execution(&id).await;
        assert_eq!((&shown["state"], &shown["waitpoints"][0]["state"]), (&json!("active"), &json!("pending")));

        let ask = json!({"reason": "waiting_for_signal", "waitpoints": [{"waitpoint_id": made["waitpoint_id"]}], "request_id": "r-1"});
        let satisfied = api.task(&task, "suspend", ask.clone()).await.with(200);
        assert_eq!((&satisfied["outcome"], &satisfied["waitpoints"]), (&json!("already_satisfied"), &json!([])));
        assert_eq!((&satisfied["signals"][0]["payload"], &satisfied["signals"][0]["payload_encoding"]), (&json!("AAH/"), &json!("base64")));
        assert_eq!(api.task(&task, "suspend", ask).await.with(200), satisfied, "the answer was lost: the same again");
        assert_eq!(api.get(&format!("/v1/tasks/{id}/signals")).await.with(200)["signals"], satisfied["signals"]);
        api.task(&task, "complete", json!({})).await.with(200);
    }

    async fn a_waitpoint_is_given_up_and_opened_again(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        let first = api.task(&task, "waitpoints", json!({"key": "k", "request_id": "a"})).await.with(200);
        let taken = api.task(&task, "waitpoints", json!({"key": "k", "request_id": "b"})).await.refused(400, "invalid_argument");
        assert!(taken["fields"]["key"].is_string(), "{taken}");
        let path = format!("waitpoints/{}/close", first["waitpoint_id"].as_str().expect("an id"));
        assert_eq!(api.task(&task, &path, json!({})).await.with(200)["replayed"], false);
        assert_eq!(api.task(&task, &path, json!({})).await.with(200)["replayed"], true);
        signal(&api, &id, &first["waitpoint_id"], &first["tokens"][0]["token"], json!({"name": "go"})).await.refused(404, "waitpoint_not_open");
        let second = api.task(&task, "waitpoints", json!({"key": "k", "request_id": "b"})).await.with(200);
        assert_ne!(second["waitpoint_id"], first["waitpoint_id"]);
        let third = api.get(&format!("/v1/waitpoints/{}", second["waitpoint_id"].as_str().expect("an id"))).await.with(200);
        assert_eq!(third["state"], "pending");
        api.task(&task, "complete", json!({})).await.with(200);
    }

    async fn a_lost_answer_of_suspend_is_given_again(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        for request_id in [json!("once"), json!("0192a7c4-5b1e-7abc-8def-00112233aabb"), Value::Null] {
            let (id, task) = running(&api, "w1").await;
            let ask = json!({"reason": "waiting_for_callback", "waitpoints": [{"key": "a", "approvers": ["ann", "bob"]}, {"key": "b"}], "request_id": request_id});
            let first = api.task(&task, "suspend", ask.clone()).await.with(200);
            let mut again = api.task(&task, "suspend", ask.clone()).await.with(200);
            assert_eq!(again["replayed"], true);
            again["replayed"] = json!(false);
            assert_eq!(again, first, "the same suspension, waitpoints and tokens");
            // Even when the wait is over by then.
            signal(&api, &id, &first["waitpoints"][0]["waitpoint_id"], &first["waitpoints"][0]["tokens"][1]["token"], json!({"name": "x"})).await.with(200);
            let mut late = api.task(&task, "suspend", ask).await.with(200);
            late["replayed"] = json!(false);
            assert_eq!(late["suspension_id"], first["suspension_id"]);
            assert_eq!(late["waitpoints"][0]["tokens"], first["waitpoints"][0]["tokens"]);
            let resumed = api.claim_one("w1").await;
            api.task(&resumed, "complete", json!({})).await.with(200);
        }
    }

    async fn a_continuation_comes_back_as_it_was_sent(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        for (sent, encoding) in [
            (r#"{"z":12345678901234567890123,"a":[1.0,1e2]}"#, "json"), ("null", "json"), (r#""text""#, "json"), ("false", "json"),
            (r#""AAH/""#, "base64"), (r#""MQ==""#, "base64"), (r#""""#, "base64"),
        ] {
            let (id, task) = running(&api, "w1").await;
            let body = format!(r#"{{"fence":{},"reason":"step_boundary","continuation":{sent},"continuation_encoding":"{encoding}"}}"#, fence(&task));
            api.send(Method::POST, &format!("/v1/tasks/{id}/suspend"), &[], body).await.with(200);
            api.post(&format!("/v1/executions/{id}/resume"), json!({})).await.with(200);
            let claimed = api.post("/v1/workers/w1/claim", json!({"wait_ms": 10_000})).await;
            let expected = format!(r#""continuation":{sent},"continuation_encoding":"{encoding}""#);
            assert!(claimed.text().contains(&expected), "{expected} in {}", claimed.text());
            let resumed = claimed.with(200)["tasks"][0].clone();
            api.task(&resumed, "complete", json!({})).await.with(200);
        }
        let (_, task) = running(&api, "w1").await;
        let large = "x".repeat(256 * 1024 - 1);
        api.task(&task, "suspend", json!({"reason": "step_boundary", "continuation": large})).await.refused(413, "too_large");
        api.task(&task, "suspend", json!({"reason": "step_boundary", "continuation": &large[1..]})).await.with(200);
    }

    async fn operators_resume_fail_and_cancel_a_wait(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let suspend = async || {
            let (id, task) = running(&api, "w1").await;
            let answer = api.task(&task, "suspend", json!({"reason": "manual_pause"})).await.with(200);
            assert_eq!(answer["waitpoints"][0]["key"], "signal", "nothing said: any signal at one waitpoint");
            (id, answer)
        };
        let (id, _) = suspend().await;
        let done = api.post(&format!("/v1/executions/{id}/resume"), json!({"reason": "long enough"})).await.with(200);
        assert_eq!(done["outcome"], "resumed");
        api.post(&format!("/v1/executions/{id}/resume"), json!({})).await.refused(409, "execution_not_suspended");
        let resumed = api.claim_one("w1").await;
        assert_eq!((&resumed["resume"]["cause"], &resumed["resume"]["signals"]), (&json!("operator"), &json!([])));
        api.task(&resumed, "complete", json!({})).await.with(200);
        let history = api.get(&format!("/v1/executions/{id}/history")).await.with(200);
        assert_eq!((&history["operator_actions"][0]["action"], &history["operator_actions"][0]["actor"], &history["operator_actions"][0]["reason"]), (&json!("resume"), &json!("local"), &json!("long enough")));
        assert_eq!((&history["past_suspensions"][0]["cause"], &history["past_suspensions"][0]["actor"]), (&json!("operator"), &json!("local")));

        let (id, answer) = suspend().await;
        api.post(&format!("/v1/executions/{id}/fail-suspension"), json!({})).await.refused(400, "invalid_argument");
        api.post(&format!("/v1/executions/{id}/fail-suspension"), json!({"reason": "not wanted"})).await.with(200);
        let shown = api.execution(&id).await;
        assert_eq!((&shown["state"], &shown["failure"]), (&json!("failed"), &json!({"reason": "not wanted", "category": "operator"})));
        signal(&api, &id, &answer["waitpoints"][0]["waitpoint_id"], &answer["waitpoints"][0]["tokens"][0]["token"], json!({"name": "x"})).await.refused(404, "waitpoint_not_open");

        let (id, _) = suspend().await;
        assert_eq!(api.post(&format!("/v1/executions/{id}/cancel"), json!({"reason": "over"})).await.with(200)["outcome"], "cancelled");
        assert_eq!(api.execution(&id).await["state"], "cancelled");
        let unknown = "0192a7c4-5b1e-7abc-8def-00112233aabb";
        for verb in ["resume", "fail-suspension"] {
            api.post(&format!("/v1/executions/{unknown}/{verb}"), json!({"reason": "r"})).await.refused(404, "execution_not_found");
        }
    }

    async fn a_wait_that_takes_too_long_ends_as_it_was_told(kit) {
        let api = kit.api().await;
        let behaviors = ["fail", "cancel", "expire", "auto_resume", "auto_resume_with_timeout_signal", "escalate"];
        // Each in a lane of its own: one that goes on by itself does not come in the place of the next.
        api.post("/v1/workers/w1/register", json!({ "worker_id": "w", "lanes": behaviors, "slots": 8 })).await.with(200);
        let mut ids = Vec::new();
        for behavior in behaviors {
            let id = api.submit(json!({"kind": "k", "lane": behavior})).await;
            let task = api.claim("w1", json!({"lanes": [behavior], "wait_ms": 25_000})).await.remove(0);
            api.task(&task, "suspend", json!({"reason": "waiting_for_signal", "timeout_ms": 50, "timeout_behavior": behavior})).await.with(200);
            ids.push(id);
        }
        for (id, state) in ids.iter().zip(["failed", "cancelled", "expired"]) {
            eventually(state, async || (api.execution(id).await["state"] == state).then_some(())).await;
        }
        for _ in 0..2 {
            let resumed = api.claim_one("w1").await;
            assert_eq!((&resumed["resume"]["cause"], &resumed["resume"]["signals"][0]["name"]), (&json!("timeout"), &json!("timeout")));
            api.task(&resumed, "complete", json!({})).await.with(200);
        }
        let review = eventually("an operator is asked", async || {
            let inbox = api.get("/v1/waitpoints").await.with(200);
            let found = inbox["items"].as_array().expect("items").iter().find(|item| item["key"] == "operator_review").cloned();
            found.filter(|item| item["execution_id"].as_str() == Some(ids[5].as_str()))
        }).await;
        // Nobody has a token for it yet: the operator takes one.
        let path = format!("/v1/waitpoints/{}/tokens", review["waitpoint_id"].as_str().expect("an id"));
        let issued = api.post(&path, json!({})).await.with(201);
        assert_eq!(signal(&api, &ids[5], &review["waitpoint_id"], &issued["token"], json!({"name": "go"})).await.with(200)["outcome"], "triggered_resume");
    }

    async fn what_cannot_be_waited_for_is_refused_by_name(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (_, task) = running(&api, "w1").await;
        let deep = json!({"any_of": [{"any_of": [{"any_of": [{"any_of": [{"signal": "x"}]}]}]}]});
        for (body, field) in [
            (json!({}), "reason"),
            (json!({"reason": "bored"}), "reason"),
            (json!({"reason": "manual_pause", "timeout_behavior": "explode"}), "timeout_behavior"),
            (json!({"reason": "manual_pause", "timeout_ms": -1}), "timeout_ms"),
            (json!({"reason": "manual_pause", "waitpoints": [{}]}), "waitpoints[0]"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a", "waitpoint_id": "0192a7c4-5b1e-7abc-8def-00112233aabb"}]}), "waitpoints[0]"),
            (json!({"reason": "manual_pause", "waitpoints": [{"waitpoint_id": "0192a7c4-5b1e-7abc-8def-00112233aabb", "uses": 1}]}), "waitpoints[0]"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a"}, {"key": "a"}]}), "waitpoints[1].key"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": ""}]}), "waitpoints[0].key"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a", "colour": 1}]}), "waitpoints[0].colour"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a"}, {"key": "b", "uses": 0}]}), "waitpoints[1].uses"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a", "expires_in_ms": -1}]}), "waitpoints[0].expires_in_ms"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a", "approvers": ["x", "x"]}]}), "waitpoints[0].approvers"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a", "approvers": [""]}]}), "waitpoints[0].approvers"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a", "approvers": ["x".repeat(129)]}]}), "waitpoints[0].approvers"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a", "approvers": (0..65).map(|n| n.to_string()).collect::<Vec<_>>()}]}), "waitpoints[0].approvers"),
            (json!({"reason": "manual_pause", "waitpoints": [{"key": "a", "allowed_signals": [""]}]}), "waitpoints[0].allowed_signals[0]"),
            (json!({"reason": "manual_pause", "condition": deep}), "condition"),
            (json!({"reason": "manual_pause", "condition": {"count": 2}}), "condition.over"),
            (json!({"reason": "manual_pause", "condition": {"any_of": []}}), "condition"),
            (json!({"reason": "manual_pause", "colour": 1}), "colour"),
        ] {
            let refused = api.task(&task, "suspend", body.clone()).await.refused(400, "invalid_argument");
            let named = refused["fields"].as_object().expect("fields").keys().next().expect("one").clone();
            assert_eq!(named, field, "{body}: {refused}");
        }
        let unknown = json!({"reason": "manual_pause", "waitpoints": [{"waitpoint_id": "0192a7c4-5b1e-7abc-8def-00112233aabb"}]});
        api.task(&task, "suspend", unknown).await.refused(404, "waitpoint_not_found");
        api.task(&task, "waitpoints/0192a7c4-5b1e-7abc-8def-00112233aabb/close", json!({})).await.refused(404, "waitpoint_not_found");
        api.task(&task, "waitpoints/nonsense/close", json!({})).await.refused(400, "invalid_argument");

        // A wrong fence comes before anything else, and nothing of it is done.
        let mut stale = task.clone();
        stale["lease_epoch"] = json!(1);
        for (verb, body) in [
            ("suspend", json!({"reason": "manual_pause"})),
            ("waitpoints", json!({"key": "k"})),
            ("waitpoints/0192a7c4-5b1e-7abc-8def-00112233aabb/close", json!({})),
            ("frames", json!({"frames": [{"type": "t"}]})),
        ] {
            api.task(&stale, verb, body).await.refused(409, "stale_lease");
        }
        api.task(&task, "complete", json!({})).await.with(200);
    }

    async fn the_inbox_is_paged_oldest_first_and_by_namespace(kit) {
        let api = kit.api().await;
        api.register("w1", 16).await;
        api.post("/v1/workers/other/register", json!({"worker_id": "w", "lanes": ["default"], "namespace": "other", "slots": 4})).await.with(200);
        let mut all = Vec::new();
        for n in 0..7 {
            let (_, task) = running(&api, "w1").await;
            let answer = api.task(&task, "suspend", json!({"reason": "waiting_for_signal", "waitpoints": [{"key": format!("k{n}")}]})).await.with(200);
            all.push(answer["waitpoints"][0]["waitpoint_id"].as_str().expect("an id").to_owned());
        }
        api.submit(json!({"kind": "k", "namespace": "other"})).await;
        let task = api.claim_one("other").await;
        api.task(&task, "suspend", json!({"reason": "waiting_for_signal"})).await.with(200);
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = api.get(&format!("/v1/waitpoints?state=open&namespace=default&limit=3&cursor={cursor}")).await.with(200);
            let items = page["items"].as_array().expect("items");
            assert!(items.len() <= 3);
            seen.extend(items.iter().map(|item| item["waitpoint_id"].as_str().expect("an id").to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen.len(), all.len());
        seen.sort();
        all.sort();
        assert_eq!(seen, all);
        assert_eq!(api.get("/v1/waitpoints?namespace=other").await.with(200)["items"].as_array().map(Vec::len), Some(1));
        api.get("/v1/waitpoints?state=closed").await.refused(400, "invalid_argument");
        api.get("/v1/waitpoints?cursor=x").await.refused(400, "invalid_argument");
        api.get("/v1/waitpoints/0192a7c4-5b1e-7abc-8def-00112233aabb").await.refused(404, "waitpoint_not_found");
        api.get("/v1/executions/0192a7c4-5b1e-7abc-8def-00112233aabb/waitpoints").await.refused(404, "execution_not_found");
    }

    async fn a_wait_outlives_its_server(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        let answer = api.task(&task, "suspend", json!({"reason": "waiting_for_signal", "waitpoints": [{"key": "k"}], "continuation": [1]})).await.with(200);
        let api = kit.restart().await;
        let waitpoint = &answer["waitpoints"][0];
        assert_eq!(signal(&api, &id, &waitpoint["waitpoint_id"], &waitpoint["tokens"][0]["token"], json!({"name": "go"})).await.with(200)["outcome"], "triggered_resume");
        api.register("w1", 1).await;
        let resumed = api.claim_one("w1").await;
        assert_eq!(resumed["resume"]["continuation"], json!([1]));
        let fails = json!({"reason": "r", "category": "c", "retryable": true, "retry_after_ms": 1});
        api.task(&resumed, "fail", fails).await.with(200);
        let retried = api.claim_one("w1").await;
        assert_eq!((&retried["attempt_index"], retried.get("resume")), (&json!(1), None), "a new attempt has nothing of the old one's wait");
        api.task(&retried, "complete", json!({})).await.with(200);
    }
}
