//! Signals from outside: tokens, what an outsider can learn, keys and their rotation.

use ff_keys::{Keys, Source};
use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Api, Reply};
use crate::waitpoints::{running, signal};

/// An execution that waits at one waitpoint.
async fn waiting(api: &Api, waitpoint: Value) -> (String, Value) {
    let (id, task) = running(api, "w1").await;
    let answer = api
        .task(
            &task,
            "suspend",
            json!({"reason": "waiting_for_signal", "waitpoints": [waitpoint], "condition": {"signal": "enough"}}),
        )
        .await
        .with(200);
    (id, answer["waitpoints"][0].clone())
}

fn token(waitpoint: &Value) -> Value {
    waitpoint["tokens"][0]["token"].clone()
}

/// The body without the one thing that differs between two requests.
fn nameless(reply: Reply) -> (u16, String) {
    let request_id = reply.json()["request_id"].as_str().expect("an id").to_owned();
    (reply.status, reply.text().replace(&request_id, ""))
}

on_both_hosts! {
    async fn a_signal_is_delivered_once(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let (id, waitpoint) = waiting(&api, json!({"key": "k"})).await;
        let (wid, secret) = (&waitpoint["waitpoint_id"], token(&waitpoint));
        let body = json!({"name": "hello", "payload": {"n": 1}, "idempotency_key": "once"});
        let first = signal(&api, &id, wid, &secret, body.clone()).await.with(200);
        assert_eq!(first["outcome"], "accepted");
        let again = signal(&api, &id, wid, &secret, body).await.with(200);
        assert_eq!((&again["outcome"], &again["signal_id"]), (&json!("duplicate"), &first["signal_id"]));
        // The header is the field; the token may be a header too, beside any other credential.
        let plain = json!({"execution_id": id, "name": "hello"}).to_string();
        let authorization = format!("Waitpoint {}", secret.as_str().expect("a token"));
        let path = format!("/v1/waitpoints/{}/signals", wid.as_str().expect("an id"));
        let headers = [("authorization", authorization.as_str()), ("idempotency-key", "once")];
        let third = api.send(Method::POST, &path, &headers, plain.clone()).await.with(200);
        assert_eq!((&third["outcome"], &third["signal_id"]), (&json!("duplicate"), &first["signal_id"]));
        let both = json!({"execution_id": id, "name": "hello", "idempotency_key": "other"}).to_string();
        api.send(Method::POST, &path, &headers, both).await.refused(400, "invalid_argument");
        // A signal's own id does the same, and answers the first outcome.
        let named = json!({"name": "hello", "signal_id": "0192a7c4-5b1e-7abc-8def-00112233aabb"});
        let named_first = signal(&api, &id, wid, &secret, named.clone()).await.with(200);
        assert_eq!(signal(&api, &id, wid, &secret, named).await.with(200), named_first);
        let end = json!({"name": "enough", "idempotency_key": "end"});
        let ended = signal(&api, &id, wid, &secret, end.clone()).await.with(200);
        assert_eq!((&ended["outcome"], &ended["effect"]), (&json!("triggered_resume"), &json!("counted")));
        let late = signal(&api, &id, wid, &secret, end).await.with(200);
        assert_eq!((&late["outcome"], &late["signal_id"]), (&json!("duplicate"), &ended["signal_id"]));
        assert_eq!(api.execution(&id).await["signals"], 3);
    }

    async fn without_a_genuine_token_nothing_is_said(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let (id, waitpoint) = waiting(&api, json!({"key": "k"})).await;
        let (wid, secret) = (&waitpoint["waitpoint_id"], token(&waitpoint));
        let genuine = secret.as_str().expect("a token");
        let other = Keys::open(Source::DataDir(kit.keys_file().with_file_name("others"))).expect("keys");
        let claims = kit.keys().verify(genuine).expect("ours");
        let foreign = other.mint(&claims).expect("a token");
        let cut = &genuine[..genuine.len() - 2];
        let flipped = format!("{}{}", cut, if genuine.ends_with("AA") { "BA" } else { "AA" });
        let mut answers = Vec::new();
        for forged in ["", "x", "wp1.a.b.c", cut, &flipped, foreign.as_str(), &format!("{genuine}."), &"w".repeat(100_000)] {
            let refused = signal(&api, &id, wid, &json!(forged), json!({"name": "enough"})).await;
            assert_eq!(refused.headers.get("www-authenticate").map(|v| v.as_bytes()), Some(&b"Waitpoint"[..]));
            answers.push(nameless(refused));
        }
        let path = format!("/v1/waitpoints/{}/signals", wid.as_str().expect("an id"));
        let plain = json!({"execution_id": id, "name": "enough"}).to_string();
        for headers in [vec![], vec![("authorization", "Bearer root")], vec![("authorization", "Waitpoint x")]] {
            answers.push(nameless(api.send(Method::POST, &path, &headers, plain.clone()).await));
        }
        assert!(answers[0].1.contains(r#""code":"invalid_token""#), "{}", answers[0].1);
        assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 401), "{answers:?}");
        // The rest of the request is looked at afterwards.
        let large = json!({"name": "enough", "payload": "x".repeat(300 * 1024)});
        signal(&api, &id, wid, &json!("x"), large.clone()).await.refused(401, "invalid_token");
        signal(&api, &id, wid, &secret, large).await.refused(413, "too_large");
        signal(&api, &id, wid, &secret, json!({"name": ""})).await.refused(400, "invalid_argument");
        let refused = signal(&api, &id, wid, &json!([genuine]), json!({"name": "enough"})).await;
        assert!(!refused.text().contains(genuine));
        refused.refused(400, "invalid_argument");
        assert_eq!(api.execution(&id).await["signals"], 0);
    }

    async fn forged_tokens_slow_only_further_forgeries(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let (id, waitpoint) = waiting(&api, json!({"key": "k"})).await;
        let (wid, secret) = (&waitpoint["waitpoint_id"], token(&waitpoint));
        let plain = json!({"execution_id": id, "name": "hello"});
        let path = format!("/v1/waitpoints/{}/signals", wid.as_str().expect("an id"));
        // A genuine token that is not accepted is no guess, nor is none at all.
        for _ in 0..12 {
            signal(&api, "0192a7c4-5b1e-7abc-8def-00112233aabb", wid, &secret, json!({"name": "hello"})).await.refused(404, "waitpoint_not_open");
            api.post(&path, plain.clone()).await.refused(401, "invalid_token");
        }
        for _ in 0..10 {
            signal(&api, &id, wid, &json!("wp1.a.b.c"), json!({"name": "hello"})).await.refused(401, "invalid_token");
        }
        let slowed = signal(&api, &id, wid, &json!("wp1.a.b.c"), json!({"name": "hello"})).await;
        assert!(slowed.headers.contains_key("retry-after"));
        slowed.refused(429, "too_many_failures");
        signal(&api, &id, wid, &secret, json!({"name": "hello"})).await.with(200);
    }

    async fn genuine_tokens_that_are_not_accepted_answer_alike(kit) {
        let api = kit.api().await;
        api.register("w1", 16).await;
        let go = || json!({"name": "hello"});
        let (open_id, open) = waiting(&api, json!({"key": "open"})).await;
        let (other_id, other) = waiting(&api, json!({"key": "other"})).await;
        let mut answers = Vec::new();
        // Another execution, another waitpoint, both.
        answers.push(nameless(signal(&api, &other_id, &open["waitpoint_id"], &token(&open), go()).await));
        answers.push(nameless(signal(&api, &open_id, &other["waitpoint_id"], &token(&open), go()).await));
        answers.push(nameless(signal(&api, &other_id, &other["waitpoint_id"], &token(&open), go()).await));
        // One that does not exist, though its token is genuine.
        let mut claims = kit.keys().verify(token(&open).as_str().expect("a token")).expect("ours");
        claims.waitpoint_id = ff_core::types::WaitpointId::mint();
        let ghost = kit.keys().mint(&claims).expect("a token");
        answers.push(nameless(signal(&api, &open_id, &json!(claims.waitpoint_id), &json!(ghost.as_str()), go()).await));
        // Genuine, but never issued for this waitpoint.
        let mut claims = kit.keys().verify(token(&open).as_str().expect("a token")).expect("ours");
        claims.approver = Some("mallory".to_owned());
        let made_up = kit.keys().mint(&claims).expect("a token");
        answers.push(nameless(signal(&api, &open_id, &open["waitpoint_id"], &json!(made_up.as_str()), go()).await));
        // Spent.
        let (id, spent) = waiting(&api, json!({"key": "spent", "uses": 1})).await;
        let first = json!({"name": "hello", "idempotency_key": "a"});
        signal(&api, &id, &spent["waitpoint_id"], &token(&spent), first.clone()).await.with(200);
        assert_eq!(signal(&api, &id, &spent["waitpoint_id"], &token(&spent), first).await.with(200)["outcome"], "duplicate", "a repetition consumes no use");
        answers.push(nameless(signal(&api, &id, &spent["waitpoint_id"], &token(&spent), go()).await));
        // Replaced.
        let (id, replaced) = waiting(&api, json!({"key": "replaced"})).await;
        let path = format!("/v1/waitpoints/{}/tokens", replaced["waitpoint_id"].as_str().expect("an id"));
        let issued = api.post(&path, json!({})).await.with(201);
        assert_ne!(issued["token"], token(&replaced));
        answers.push(nameless(signal(&api, &id, &replaced["waitpoint_id"], &token(&replaced), go()).await));
        signal(&api, &id, &replaced["waitpoint_id"], &issued["token"], go()).await.with(200);
        // Expired: the other waitpoint keeps the execution waiting.
        let (id, task) = running(&api, "w1").await;
        let answer = api.task(&task, "suspend", json!({"reason": "waiting_for_signal", "waitpoints": [{"key": "brief", "expires_in_ms": 1}, {"key": "long"}]})).await.with(200);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let brief = &answer["waitpoints"][0];
        answers.push(nameless(signal(&api, &id, &brief["waitpoint_id"], &token(brief), go()).await));
        // Closed, and gone.
        let (id, closed) = waiting(&api, json!({"key": "closed"})).await;
        api.post(&format!("/v1/executions/{id}/cancel"), json!({})).await.with(200);
        answers.push(nameless(signal(&api, &id, &closed["waitpoint_id"], &token(&closed), go()).await));
        assert_eq!(api.send(Method::DELETE, &format!("/v1/executions/{id}"), &[], "").await.status, 204);
        answers.push(nameless(signal(&api, &id, &closed["waitpoint_id"], &token(&closed), go()).await));

        assert!(answers[0].1.contains(r#""code":"waitpoint_not_open""#), "{}", answers[0].1);
        for (n, answer) in answers.iter().enumerate() {
            assert_eq!((n, answer), (n, &answers[0]));
            assert_eq!(answer.0, 404);
        }
        assert_eq!(signal(&api, &open_id, &open["waitpoint_id"], &token(&open), json!({"name": "enough"})).await.with(200)["outcome"], "triggered_resume");
    }

    async fn a_token_is_issued_again_for_one_approver(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let (id, waitpoint) = waiting(&api, json!({"key": "k", "approvers": ["ann", "bob"], "uses": 2})).await;
        let path = format!("/v1/waitpoints/{}/tokens", waitpoint["waitpoint_id"].as_str().expect("an id"));
        let issued = api.post(&path, json!({"approver": "bob"})).await.with(201);
        assert_eq!((&issued["approver"], &issued["waitpoint_id"]), (&json!("bob"), &waitpoint["waitpoint_id"]));
        let wid = &waitpoint["waitpoint_id"];
        signal(&api, &id, wid, &waitpoint["tokens"][1]["token"], json!({"name": "x"})).await.refused(404, "waitpoint_not_open");
        signal(&api, &id, wid, &waitpoint["tokens"][0]["token"], json!({"name": "x"})).await.with(200);
        signal(&api, &id, wid, &issued["token"], json!({"name": "x"})).await.with(200);
        api.post(&path, json!({"approver": "cid"})).await.refused(400, "invalid_argument");
        api.post(&path, json!({})).await.refused(400, "invalid_argument");
        api.post("/v1/waitpoints/0192a7c4-5b1e-7abc-8def-00112233aabb/tokens", json!({})).await.refused(404, "waitpoint_not_found");
        let history = api.get(&format!("/v1/executions/{id}/history")).await.with(200);
        assert_eq!(history["operator_actions"][0]["action"], "reissue_token");
    }

    async fn keys_are_rotated_with_grace_and_revoked_at_once(kit) {
        let api = kit.api().await;
        api.register("w1", 8).await;
        assert_eq!(api.get("/v1/admin/keys").await.with(200)["items"], json!([]), "none before the first is needed");
        let (id, old) = waiting(&api, json!({"key": "k", "approvers": ["a", "b"]})).await;
        let keys = api.get("/v1/admin/keys").await.with(200);
        let first = keys["items"][0]["key_id"].as_str().expect("an id").to_owned();
        assert_eq!((&keys["items"][0]["signs"], &keys["items"][0]["accepted_until"]), (&json!(true), &Value::Null));
        let secrets = std::fs::read_to_string(kit.keys_file()).expect("keys");
        let secret = secrets.split_whitespace().max_by_key(|word| word.len()).expect("a key").to_owned();
        assert!(!keys.to_string().contains(&secret));

        if let Some(directory) = kit.directory() {
            assert!(!directory.join("keys").exists(), "the keys are where the server was told");
        }

        let rotated = api.post("/v1/admin/keys/rotate", json!({"grace_ms": 3_600_000})).await.with(200);
        let second = rotated["key_id"].as_str().expect("an id").to_owned();
        assert_ne!(first, second);
        let names: Vec<(&str, bool)> = rotated["keys"].as_array().expect("keys").iter().map(|key| (key["key_id"].as_str().expect("an id"), key["signs"] == true)).collect();
        assert_eq!(names, [(second.as_str(), true), (first.as_str(), false)]);
        let wid = &old["waitpoint_id"];
        signal(&api, &id, wid, &old["tokens"][0]["token"], json!({"name": "x"})).await.with(200);
        let (new_id, new) = waiting(&api, json!({"key": "n"})).await;
        assert!(token(&new).as_str().is_some_and(|token| token.contains(&second)));

        let revoked = api.post(&format!("/v1/admin/keys/{first}/revoke"), json!({})).await.with(200);
        assert_eq!(revoked["key_id"].as_str(), Some(second.as_str()));
        signal(&api, &id, wid, &old["tokens"][0]["token"], json!({"name": "x"})).await.refused(401, "invalid_token");
        signal(&api, &new_id, &new["waitpoint_id"], &token(&new), json!({"name": "x"})).await.with(200);
        api.post(&format!("/v1/admin/keys/{first}/revoke"), json!({})).await.refused(404, "key_not_found");
        api.post("/v1/admin/keys/a.b/revoke", json!({})).await.refused(400, "invalid_argument");
        api.post("/v1/admin/keys/rotate", json!({"grace_ms": -1})).await.refused(400, "invalid_argument");
        // Whoever lost a token that way gets another.
        let path = format!("/v1/waitpoints/{}/tokens", wid.as_str().expect("an id"));
        let issued = api.post(&path, json!({"approver": "a"})).await.with(201);
        signal(&api, &id, wid, &issued["token"], json!({"name": "enough"})).await.with(200);
    }

    async fn servers_with_the_same_keys_share_tokens_and_others_mint_none(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let (id, waitpoint) = waiting(&api, json!({"key": "k"})).await;
        let same = kit.another(kit.keys()).await;
        let sister = Api::of(&same);
        signal(&sister, &id, &waitpoint["waitpoint_id"], &token(&waitpoint), json!({"name": "hello"})).await.with(200);
        // A rotation on one is seen by the other with the next token.
        let rotated = api.post("/v1/admin/keys/rotate", json!({"grace_ms": 3_600_000})).await.with(200);
        let reissued = sister.post(&format!("/v1/waitpoints/{}/tokens", waitpoint["waitpoint_id"].as_str().expect("an id")), json!({})).await.with(201);
        assert!(reissued["token"].as_str().is_some_and(|token| token.contains(rotated["key_id"].as_str().expect("an id"))));
        signal(&api, &id, &waitpoint["waitpoint_id"], &reissued["token"], json!({"name": "hello"})).await.with(200);

        let file = kit.keys_file().with_file_name("others");
        let stranger = kit.another(Keys::open(Source::DataDir(file.clone())).expect("keys")).await;
        let foreign = Api::of(&stranger);
        let (_, task) = running(&api, "w1").await;
        let refused = foreign.task(&task, "suspend", json!({"reason": "manual_pause"})).await.refused(503, "keys_unavailable");
        assert!(refused["detail"].as_str().is_some_and(|text| text.contains("copy the keys file")), "{refused}");
        foreign.post("/v1/admin/keys/rotate", json!({})).await.refused(503, "keys_unavailable");
        assert!(!file.exists(), "no other keys are made");
        signal(&foreign, &id, &waitpoint["waitpoint_id"], &reissued["token"], json!({"name": "hello"})).await.refused(401, "invalid_token");
        api.task(&task, "complete", json!({})).await.with(200);
        same.stop().await;
        stranger.stop().await;
    }
}
