//! Secrets stay where they belong: tokens and keys are in no log, error, event or store; payloads in no log, error or event.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::kit::{Api, Kind, fence};
use reqwest::Method;
use serde_json::{Value, json};

/// A marker no one else writes; one for each place a payload goes in.
fn canary(place: &str) -> String {
    format!("CANARY-{place}-{:032x}", uuid::Uuid::from_u128(0x5eed_0000_5eed).as_u128())
}

/// Everything that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic holds it").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Everything said to callers that is no answer to their question: problems and events.
#[derive(Default)]
struct Heard(Vec<String>);

impl Heard {
    async fn refused(&mut self, api: &Api, method: Method, path: &str, headers: &[(&str, &str)], body: String) {
        let reply = api.send(method, path, headers, body).await;
        assert!(reply.status >= 400, "{path}: {}", reply.text());
        self.0.push(reply.text().to_owned());
    }
}

fn files(directory: &Path, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push((path.display().to_string(), std::fs::read(&path).expect("a file")));
        }
    }
}

fn holds(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

fn secrets_stay_where_they_belong(kind: Kind) {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    crate::kit::run(kind, async move |kit| {
        let api = kit.api().await;
        api.register("w1", 8).await;
        let mut heard = Heard::default();
        let (mut tokens, payloads) =
            (Vec::new(), ["input", "result", "frame", "summary", "signal", "continuation"].map(canary));
        let [input, result, frame, summary, signal, continuation] = &payloads;

        let id = api.submit(json!({"kind": "k", "input": input})).await;
        let task = api.claim_one("w1").await;
        let frames = json!({"frames": [{"type": "t", "payload": frame}, {"type": "s", "mode": "summary", "payload": {"s": summary}}]});
        api.task(&task, "frames", frames).await.with(200);
        let pending = api.task(&task, "waitpoints", json!({"key": "early", "approvers": ["ann"]})).await.with(200);
        let waits = json!({"reason": "waiting_for_approval", "waitpoints": [{"key": "k", "approvers": ["ann", "bob"]}, {"waitpoint_id": pending["waitpoint_id"]}], "condition": {"signal": "enough"}, "continuation": continuation});
        let suspended = api.task(&task, "suspend", waits).await.with(200);
        let mut found = |value: &Value| {
            tokens.extend(
                value.as_array().into_iter().flatten().map(|t| t["token"].as_str().expect("a token").to_owned()),
            )
        };
        found(&pending["tokens"]);
        for waitpoint in suspended["waitpoints"].as_array().expect("waitpoints") {
            found(&waitpoint["tokens"]);
        }
        let waitpoint = suspended["waitpoints"]
            .as_array()
            .expect("waitpoints")
            .iter()
            .find(|w| w["key"] == "k")
            .expect("it")
            .clone();
        let wid = waitpoint["waitpoint_id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/waitpoints/{wid}/signals");
        let genuine = waitpoint["tokens"][0]["token"].as_str().expect("a token").to_owned();
        let issued = api.post(&format!("/v1/waitpoints/{wid}/tokens"), json!({"approver": "bob"})).await.with(201);
        tokens.push(issued["token"].as_str().expect("a token").to_owned());
        api.post("/v1/admin/keys/rotate", json!({"grace_ms": 60_000})).await.with(200);

        // Every way to get it wrong, with a secret in every hand.
        let authorization = format!("Waitpoint {genuine}");
        let bearer = format!("Bearer {genuine}");
        let whole = |name: &str| json!({"execution_id": id, "name": name, "payload": signal, "token": genuine});
        let with = |field: &str, value: Value| {
            let mut body = whole("enough");
            body[field] = value;
            body.to_string()
        };
        let forged = format!("{genuine}x");
        for body in [
            with("token", json!(forged)),
            with("token", json!([genuine])),
            with("token", json!({ "token": genuine })),
            with("execution_id", json!(genuine)),
            with("signal_id", json!(genuine)),
            with("payload_encoding", json!("base64")),
            with("payload_encoding", json!(genuine)),
            with("name", json!("x".repeat(1_000))),
            with("idempotency_key", json!([genuine])),
            with("colour", json!(genuine)),
            with("execution_id", json!("0192a7c4-5b1e-7abc-8def-00112233aabb")),
            format!("{} {signal}", whole("enough")),
            format!(r#"{{"token":"{genuine}","payload":"{signal}""#),
        ] {
            heard.refused(&api, Method::POST, &path, &[], body).await;
        }
        let bare = json!({"execution_id": id, "name": "enough", "payload": signal}).to_string();
        heard.refused(&api, Method::POST, &path, &[("authorization", &bearer)], bare.clone()).await;
        heard
            .refused(&api, Method::POST, &path, &[("authorization", &format!("Waitpoint {forged}"))], bare.clone())
            .await;
        heard.refused(&api, Method::POST, &format!("/v1/waitpoints/{genuine}/signals"), &[], bare.clone()).await;
        heard.refused(&api, Method::GET, &format!("/v1/waitpoints?cursor={genuine}"), &[], String::new()).await;
        heard
            .refused(&api, Method::GET, &format!("/v1/executions/{id}/stream?after={genuine}"), &[], String::new())
            .await;
        let stale = json!({"fence": fence(&task), "result": result, "reason": "manual_pause", "frames": [{"type": "t", "payload": frame}], "continuation": continuation});
        for (verb, fields) in [
            ("complete", vec!["fence", "result"]),
            ("suspend", vec!["fence", "reason", "continuation", "bad"]),
            ("frames", vec!["fence", "frames"]),
        ] {
            let body: serde_json::Map<String, Value> =
                fields.into_iter().map(|field| (field.to_owned(), stale[field].clone())).collect();
            heard
                .refused(&api, Method::POST, &format!("/v1/tasks/{id}/{verb}"), &[], Value::Object(body).to_string())
                .await;
        }
        let twice = json!({"kind": "k", "execution_id": id, "input": canary("other")}).to_string();
        heard.refused(&api, Method::POST, "/v1/executions", &[], twice).await;

        let sent = api.send(Method::POST, &path, &[("authorization", &authorization)], bare).await.with(200);
        assert_eq!(sent["outcome"], "triggered_resume");
        let resumed = api.claim_one("w1").await;
        assert!(
            resumed.to_string().contains(signal.as_str()) && resumed.to_string().contains(continuation.as_str()),
            "the worker gets them"
        );
        api.task(&resumed, "complete", json!({"result": result})).await.with(200);
        let tailed = api.get(&format!("/v1/executions/{id}/stream")).await;
        assert!(tailed.text().contains(frame.as_str()), "and so do readers");

        let mut events = api
            .http
            .get(format!("{}/v1/events?after=start", api.base))
            .header("accept", "application/x-ndjson")
            .send()
            .await
            .expect("events");
        let mut text = String::new();
        while !text.contains("execution.completed") {
            text.push_str(std::str::from_utf8(&events.chunk().await.expect("a chunk").expect("more")).expect("text"));
        }
        assert!(text.contains("execution.suspended") && text.contains("waitpoint."), "{text}");
        heard.0.push(text);
        for path in [
            format!("/v1/executions/{id}"),
            format!("/v1/executions/{id}/history"),
            format!("/v1/executions/{id}/waitpoints"),
            "/v1/waitpoints".to_owned(),
            "/v1/admin/keys".to_owned(),
        ] {
            let shown = api.get(&path).await;
            for token in &tokens {
                assert!(!shown.text().contains(token.as_str()), "a token in {path}");
            }
        }

        // Tokens of people and programs, shown rightly and wrongly.
        let (guarded, root) = kit.guarded().await;
        let made = root.post("/v1/admin/tokens", json!({"name": "ci", "roles": ["submit", "metrics"]})).await.with(201);
        let bearer = made["token"].as_str().expect("a token").to_owned();
        let ci = root.bearing(&bearer);
        ci.submit(json!({"kind": "k", "input": input})).await;
        assert_eq!(ci.get("/metrics").await.status, 200);
        assert!(!ci.get("/metrics").await.text().contains(&bearer));
        let plain = Api::of(&guarded);
        for (path, headers) in [
            ("/v1/stats".to_owned(), vec![("authorization", format!("Bearer {bearer}"))]),
            ("/v1/stats".to_owned(), vec![("authorization", format!("Bearer {bearer}x"))]),
            ("/v1/stats".to_owned(), vec![("authorization", bearer.clone())]),
            ("/v1/stats".to_owned(), vec![("authorization", format!("Basic {bearer}"))]),
            (format!("/v1/stats?token={bearer}"), vec![]),
            (format!("/v1/workers/{bearer}"), vec![]),
            (format!("/{bearer}"), vec![]),
            ("/v1/stats".to_owned(), vec![("traceparent", bearer.clone())]),
        ] {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            heard.refused(&plain, Method::GET, &path, &headers, String::new()).await;
        }
        guarded.stop().await;

        let keys = std::fs::read_to_string(kit.keys_file()).expect("keys");
        let mut secrets: Vec<String> =
            keys.split_whitespace().filter(|word| word.len() >= 32).map(str::to_owned).collect();
        assert_eq!(secrets.len(), 2, "both keys");
        secrets.extend([bearer, kit.root().to_owned()]);
        assert!(tokens.len() >= 4 && tokens.iter().all(|token| token.starts_with("wp1.")));
        // The last part of a token is what cannot be made without the key.
        let macs: Vec<&str> = tokens.iter().filter_map(|token| token.rsplit('.').next()).collect();
        for text in &heard.0 {
            for payload in &payloads {
                assert!(!text.contains(payload.as_str()), "{payload} in {text}");
            }
            for secret in macs.iter().copied().chain(secrets.iter().map(String::as_str)) {
                assert!(!text.contains(secret), "a secret in {text}");
            }
        }
        if let Some(directory) = kit.directory() {
            let mut stored = Vec::new();
            files(directory, &mut stored);
            assert!(stored.iter().any(|(_, bytes)| holds(bytes, input)), "the store is looked at: it holds payloads");
            for (file, bytes) in &stored {
                for secret in macs.iter().copied().chain(secrets.iter().map(String::as_str)) {
                    assert!(!holds(bytes, secret), "a secret in {file}");
                }
            }
        }
        let logged = log.0.lock().expect("no panic holds it").clone();
        assert!(holds(&logged, "answered") && holds(&logged, "TRACE"), "everything is logged");
        let logged = String::from_utf8_lossy(&logged);
        for line in logged.lines() {
            let secret = macs
                .iter()
                .copied()
                .chain(secrets.iter().map(String::as_str))
                .chain(payloads.iter().map(String::as_str))
                .find(|secret| line.contains(*secret));
            assert_eq!(secret, None, "in the log: {line}");
        }
    });
}

#[test]
fn secrets_stay_where_they_belong_embedded() {
    secrets_stay_where_they_belong(Kind::Embedded);
}

#[test]
fn secrets_stay_where_they_belong_valkey() {
    secrets_stay_where_they_belong(Kind::Valkey);
}
