//! Tokens that end while an answer goes on: streams and long polls end with them, and no task is handed out.

use std::time::Duration;

use ff_core::types::TimestampMs;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::kit::{Api, Kit, eventually};

/// Every role a stream or long poll takes.
const ROLES: [&str; 3] = ["read", "worker", "submit"];
/// A revocation is announced; without the announcement it is noticed within five seconds. Only a hang takes longer than this.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a token ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Revoked,
    Expired,
}

/// A client whose token ends, and how to end it.
struct Passing {
    api: Api,
    token: String,
    token_id: String,
    end: End,
}

impl Passing {
    /// A token that lives for `life_ms`, when it is to expire.
    async fn new(root: &Api, end: End, life_ms: i64) -> Self {
        let mut body = json!({ "name": format!("{end:?}"), "roles": ROLES });
        if let End::Expired = end {
            body["expires_at"] = json!(TimestampMs::now().as_millis() + life_ms);
        }
        let made = root.post("/v1/admin/tokens", body).await.with(201);
        let text = |field: &str| made[field].as_str().expect("a text").to_owned();
        Self { api: root.bearing(&text("token")), token: text("token"), token_id: text("token_id"), end }
    }

    /// Ends the token, or waits until it has expired.
    async fn end(&self, root: &Api) {
        match self.end {
            End::Revoked => {
                let path = format!("/v1/admin/tokens/{}", self.token_id);
                assert_eq!(root.send(Method::DELETE, &path, &[], "").await.status, 204);
            }
            End::Expired => {
                eventually("the token expires", async || (self.api.get("/v1/lanes").await.status == 401).then_some(()))
                    .await;
            }
        }
    }
}

/// Answers that go on; nothing when the token had expired before all were open.
async fn opened<'a>(api: &Api, paths: &[&'a str]) -> Option<Vec<(&'a str, &'static str, Response)>> {
    let mut open = Vec::new();
    for path in paths {
        for accept in ["text/event-stream", "application/x-ndjson"] {
            let request = api.http.get(format!("{}{path}", api.base)).header("accept", accept);
            let answer = request.send().await.expect("the server answers");
            if answer.status() == 401 {
                return None;
            }
            assert_eq!(answer.status(), 200);
            open.push((*path, accept, answer));
        }
    }
    Some(open)
}

/// The rest of a stream, which must end by itself.
async fn rest(mut stream: Response) -> String {
    let mut text = Vec::new();
    let reading = async {
        while let Some(chunk) = stream.chunk().await.expect("the stream ends well") {
            text.extend_from_slice(&chunk);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the stream ends");
    String::from_utf8(text).expect("text")
}

async fn streams_end(kit: &Kit, end: End) {
    let (server, root) = kit.guarded().await;
    let id = root.submit(json!({ "kind": "k" })).await;
    let tail = format!("/v1/executions/{id}/stream");
    // On a machine so busy that a token expires before every stream is open, the next one lives longer.
    let mut life_ms = 2_000;
    let (passing, open) = loop {
        let passing = Passing::new(&root, end, life_ms).await;
        match opened(&passing.api, &["/v1/events?follow=true", &tail]).await {
            Some(open) => break (passing, open),
            None => life_ms *= 4,
        }
    };
    passing.end(&root).await;
    root.submit(json!({ "kind": "after" })).await;
    for (path, accept, stream) in open {
        let text = rest(stream).await;
        let last = text.trim_end().lines().last().expect("a last line");
        let problem: Value = if accept == "text/event-stream" {
            assert!(text.contains("event: error\n"), "{path}: {text}");
            serde_json::from_str(last.strip_prefix("data: ").expect("data")).expect("a problem")
        } else {
            serde_json::from_str::<Value>(last).expect("JSON")["error"].clone()
        };
        assert_eq!((&problem["code"], &problem["status"]), (&json!("unauthenticated"), &json!(401)), "{path}: {text}");
    }
    server.stop().await;
}

async fn long_polls_end(kit: &Kit) {
    let (server, root) = kit.guarded().await;
    let passing = Passing::new(&root, End::Revoked, 0).await;
    passing.api.register("w1", 2).await;
    let running = root.submit(json!({ "kind": "k" })).await;
    passing.api.claim_one("w1").await;
    let waiting = |method: Method, path: String, body: Value| {
        let api = passing.api.clone();
        tokio::spawn(async move { (path.clone(), api.send(method, &path, &[], body.to_string()).await) })
    };
    let polls = [
        waiting(Method::GET, format!("/v1/executions/{running}/result?wait_ms=30000"), Value::Null),
        waiting(Method::GET, format!("/v1/executions/{running}/attempts/0/stream?block_ms=30000"), Value::Null),
        waiting(Method::POST, "/v1/workers/w1/attend".to_owned(), json!({ "wait_ms": 30_000 })),
        waiting(Method::POST, "/v1/workers/w1/claim".to_owned(), json!({ "wait_ms": 30_000, "max": 1 })),
    ];
    // Every poll is with the server before the token ends.
    eventually("the polls wait", async || {
        let metrics = root.get("/metrics").await;
        metrics.text().lines().any(|line| line == "ff_http_long_polls_open 4").then_some(())
    })
    .await;
    passing.end(&root).await;
    for poll in polls {
        let (path, reply) = poll.await.expect("it is answered");
        let challenge = reply.headers.get("www-authenticate").cloned();
        reply.refused(401, "unauthenticated");
        assert_eq!(challenge.as_ref().map(|value| value.as_bytes()), Some(&b"Bearer"[..]), "{path}");
    }
    server.stop().await;
}

on_both_hosts! {
    async fn streams_end_with_a_revoked_token(kit) {
        streams_end(&kit, End::Revoked).await;
    }

    async fn streams_end_with_an_expired_token(kit) {
        streams_end(&kit, End::Expired).await;
    }

    async fn long_polls_end_with_a_revoked_token(kit) {
        long_polls_end(&kit).await;
    }

    async fn a_claim_that_waits_hands_out_nothing_after_its_token_was_revoked(kit) {
        let (server, root) = kit.guarded().await;
        // A second server learns of the revocation by an announcement only.
        let (other_server, other) = kit.guarded().await;
        for (round, at) in [&root, &other].into_iter().enumerate() {
            let passing = Passing::new(&root, End::Revoked, 0).await;
            let api = at.bearing(&passing.token);
            let instance = format!("w{round}");
            api.register(&instance, 1).await;
            let claiming = tokio::spawn({
                let (api, path) = (api.clone(), format!("/v1/workers/{instance}/claim"));
                async move { api.post(&path, json!({ "wait_ms": 30_000, "max": 1 })).await }
            });
            eventually("the claim waits", async || {
                let metrics = at.get("/metrics").await;
                metrics.text().lines().any(|line| line == "ff_http_long_polls_open 1").then_some(())
            })
            .await;
            passing.end(&root).await;
            let id = root.submit(json!({ "kind": "k" })).await;
            claiming.await.expect("it is answered").refused(401, "unauthenticated");
            let seen = root.execution(&id).await;
            assert_eq!(seen["lease"], Value::Null, "{seen}");
            root.register("next", 1).await;
            let task = root.claim_one("next").await;
            assert_eq!(task["execution_id"], json!(id));
            root.task(&task, "complete", json!({})).await.with(200);
        }
        server.stop().await;
        other_server.stop().await;
    }
}
