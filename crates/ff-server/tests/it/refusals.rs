//! What is wrong is refused by name, with the status and code of the API.

use reqwest::Method;
use serde_json::{Value, json};

const UNKNOWN: &str = "0192a7c4-5b1e-7abc-8def-00112233aabb";

/// Method, path, body (null for none), the status and code it is refused with, and the field that is named.
type Row = (Method, String, Value, u16, &'static str, Option<&'static str>);

on_both_hosts! {
    async fn a_wrong_request_is_refused_by_name(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let at = |verb: &str| format!("/v1/executions/{UNKNOWN}/{verb}");
        let task = |verb: &str| format!("/v1/tasks/{UNKNOWN}/{verb}");
        let wrong_fence = json!({"attempt_id": UNKNOWN, "lease_id": UNKNOWN, "lease_epoch": 1});
        let post = Method::POST;
        let submit = "/v1/executions".to_owned();
        let long = "x".repeat(5_000);
        let table: Vec<Row> = vec![
            (post.clone(), submit.clone(), json!({}), 400, "invalid_argument", Some("kind")),
            (post.clone(), submit.clone(), json!({"kind": "k", "colour": "red"}), 400, "invalid_argument", Some("colour")),
            (post.clone(), submit.clone(), json!({"kind": 7}), 400, "invalid_argument", Some("kind")),
            (post.clone(), submit.clone(), json!({"kind": ""}), 400, "invalid_argument", Some("kind")),
            (post.clone(), submit.clone(), json!({"kind": "k", "lane": "a b"}), 400, "invalid_argument", Some("lane")),
            (post.clone(), submit.clone(), json!({"kind": "k", "namespace": "ü"}), 400, "invalid_argument", Some("namespace")),
            (post.clone(), submit.clone(), json!({"kind": "k", "priority": 9001}), 400, "invalid_argument", Some("priority")),
            (post.clone(), submit.clone(), json!({"kind": "k", "priority": 1.5}), 400, "invalid_argument", Some("priority")),
            (post.clone(), submit.clone(), json!({"kind": "k", "execution_id": "x"}), 400, "invalid_argument", Some("execution_id")),
            (post.clone(), submit.clone(), json!({"kind": "k", "retry": {"max_attempts": 0}}), 400, "invalid_argument", Some("retry.max_attempts")),
            (post.clone(), submit.clone(), json!({"kind": "k", "retry": {"tries": 1}}), 400, "invalid_argument", Some("retry.tries")),
            (post.clone(), submit.clone(), json!({"kind": "k", "input": "?", "input_encoding": "base64"}), 400, "invalid_argument", Some("input")),
            (post.clone(), submit.clone(), json!({"kind": "k", "input": 1, "input_encoding": "base64"}), 400, "invalid_argument", Some("input")),
            (post.clone(), submit.clone(), json!({"kind": "k", "input": 1, "input_encoding": "cbor"}), 400, "invalid_argument", Some("input_encoding")),
            (post.clone(), submit.clone(), json!({"kind": "k", "requires": ["a b"]}), 400, "capability_invalid", None),
            (post.clone(), submit.clone(), json!([]), 400, "invalid_argument", Some("body")),
            (Method::GET, "/v1/executions?colour=red".into(), json!(null), 400, "invalid_argument", Some("colour")),
            (Method::GET, "/v1/executions?limit=0".into(), json!(null), 400, "invalid_argument", Some("limit")),
            (Method::GET, "/v1/executions?limit=1001".into(), json!(null), 400, "invalid_argument", Some("limit")),
            (Method::GET, "/v1/executions?state=sleepy".into(), json!(null), 400, "invalid_argument", Some("state")),
            (Method::GET, "/v1/executions?tag=k".into(), json!(null), 400, "invalid_argument", Some("tag")),
            (Method::GET, "/v1/executions?cursor=x".into(), json!(null), 400, "invalid_argument", Some("cursor")),
            (Method::GET, "/v1/executions/x".into(), json!(null), 400, "invalid_argument", Some("execution_id")),
            (Method::GET, format!("/v1/executions/{UNKNOWN}"), json!(null), 404, "execution_not_found", None),
            (Method::GET, at("result"), json!(null), 404, "execution_not_found", None),
            (Method::GET, at("result?wait_ms=30001"), json!(null), 400, "invalid_argument", Some("wait_ms")),
            (Method::GET, at("explain"), json!(null), 404, "execution_not_found", None),
            (Method::GET, at("history"), json!(null), 404, "execution_not_found", None),
            (Method::GET, at("attempts/0"), json!(null), 404, "execution_not_found", None),
            (Method::GET, at("attempts/x"), json!(null), 400, "invalid_argument", Some("n")),
            (post.clone(), at("cancel"), json!({}), 404, "execution_not_found", None),
            (post.clone(), at("cancel"), json!({"reason": long}), 413, "too_large", Some("reason")),
            (post.clone(), at("replay"), json!({}), 404, "execution_not_found", None),
            (post.clone(), at("hold"), json!({"why": 1}), 400, "invalid_argument", Some("why")),
            (post.clone(), at("revoke-lease"), json!({"grace": true}), 404, "execution_not_found", None),
            (post.clone(), at("reclaim"), json!({"instance": "nobody"}), 404, "worker_not_registered", None),
            (post.clone(), at("reclaim"), json!({"instance": "w1"}), 404, "execution_not_found", None),
            (Method::PATCH, format!("/v1/executions/{UNKNOWN}"), json!({"priority": 1}), 404, "execution_not_found", None),
            (Method::DELETE, format!("/v1/executions/{UNKNOWN}"), json!(null), 404, "execution_not_found", None),
            (post.clone(), task("complete"), json!({"fence": wrong_fence}), 404, "execution_not_found", None),
            (post.clone(), task("complete"), json!({}), 400, "invalid_argument", Some("fence")),
            (post.clone(), task("complete"), json!({"fence": {"attempt_id": UNKNOWN}}), 400, "invalid_argument", Some("fence.lease_id")),
            (post.clone(), task("fail"), json!({"fence": wrong_fence, "category": "c"}), 400, "invalid_argument", Some("reason")),
            (post.clone(), task("fail"), json!({"fence": wrong_fence, "reason": long, "category": "c"}), 413, "too_large", Some("reason")),
            (post.clone(), task("delay"), json!({"fence": wrong_fence}), 400, "invalid_argument", Some("delay_ms")),
            (post.clone(), task("progress"), json!({"fence": wrong_fence, "pct": 101}), 400, "invalid_argument", Some("pct")),
            (Method::GET, "/v1/lanes/nowhere".into(), json!(null), 404, "lane_not_found", None),
            (Method::POST, "/v1/lanes/nowhere/pause".into(), json!({}), 404, "lane_not_found", None),
            (Method::POST, "/v1/lanes/nowhere/resume".into(), json!({}), 404, "lane_not_found", None),
            (Method::POST, "/v1/lanes/nowhere/drain".into(), json!({}), 404, "lane_not_found", None),
            (Method::POST, "/v1/lanes/nowhere/disable".into(), json!({}), 404, "lane_not_found", None),
            (Method::PUT, "/v1/lanes/x".into(), json!({"state": "asleep"}), 400, "invalid_argument", Some("state")),
            (Method::PUT, "/v1/lanes/x".into(), json!({"colour": 1}), 400, "invalid_argument", Some("colour")),
            (Method::GET, "/v1/lanes?cursor=x".into(), json!(null), 400, "invalid_argument", Some("cursor")),
            (Method::GET, "/v1/workers/nobody".into(), json!(null), 404, "worker_not_registered", None),
            (post.clone(), "/v1/workers/nobody/drain".into(), json!({}), 404, "worker_not_registered", None),
            (post.clone(), "/v1/workers/nobody/claim".into(), json!({}), 404, "worker_not_registered", None),
            (post.clone(), "/v1/workers/nobody/heartbeat".into(), json!({}), 404, "worker_not_registered", None),
            (post.clone(), "/v1/workers/nobody/grant".into(), json!({}), 404, "worker_not_registered", None),
            (post.clone(), "/v1/workers/a%20b/register".into(), json!({"worker_id": "w", "lanes": ["l"]}), 400, "invalid_argument", Some("name")),
            (post.clone(), "/v1/workers/w2/register".into(), json!({"worker_id": "w", "lanes": []}), 400, "invalid_argument", Some("lanes")),
            (post.clone(), "/v1/workers/w2/register".into(), json!({"worker_id": "w", "lanes": ["l"], "slots": 0}), 400, "invalid_argument", Some("slots")),
            (post.clone(), "/v1/workers/w2/register".into(), json!({"worker_id": "w", "lanes": ["l"], "capabilities": ["a,b"]}), 400, "capability_invalid", None),
            (post.clone(), "/v1/workers/w1/claim".into(), json!({"max": 0}), 400, "invalid_argument", Some("max")),
            (post.clone(), "/v1/workers/w1/claim".into(), json!({"max": 257}), 400, "invalid_argument", Some("max")),
            (post.clone(), "/v1/workers/w1/claim".into(), json!({"wait_ms": 30_001}), 400, "invalid_argument", Some("wait_ms")),
            (post.clone(), "/v1/workers/w1/claim".into(), json!({"lease_ttl_ms": 10}), 400, "invalid_argument", Some("lease_ttl_ms")),
            (post.clone(), "/v1/workers/w1/claim".into(), json!({"lanes": ["other"]}), 400, "invalid_argument", Some("lanes")),
            (post.clone(), "/v1/workers/w1/claim".into(), json!({"request_id": "x"}), 400, "invalid_argument", Some("request_id")),
            (post.clone(), "/v1/workers/w1/heartbeat".into(), json!({"renew": [{"execution_id": UNKNOWN}]}), 400, "invalid_argument", Some("renew[0].attempt_id")),
            (post.clone(), "/v1/workers/w1/consume".into(), json!({"execution_id": UNKNOWN, "grant_id": UNKNOWN}), 404, "execution_not_found", None),
            (Method::GET, "/v1/events?after=x".into(), json!(null), 400, "invalid_argument", Some("after")),
            (Method::GET, "/v1/nothing".into(), json!(null), 404, "not_found", None),
            (Method::GET, "/".into(), json!(null), 404, "not_found", None),
            (Method::DELETE, "/v1/executions".into(), json!(null), 405, "method_not_allowed", None),
            (Method::GET, at("cancel"), json!(null), 405, "method_not_allowed", None),
        ];
        for (method, path, body, status, code, field) in table {
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let what = format!("{method} {path} {}", body.chars().take(100).collect::<String>());
            let reply = api.send(method, &path, &[], body).await;
            assert_eq!(reply.status, status, "{what}: {}", reply.text());
            let problem = reply.refused(status, code);
            if let Some(field) = field {
                assert!(problem["fields"][field].is_string(), "{what}: {problem}");
            }
        }
    }

    async fn what_is_too_large_is_refused_before_it_is_kept(kit) {
        let api = kit.api().await;
        let mib = 1024 * 1024;
        let field = json!({"kind": "k", "input": "x".repeat(mib)});
        assert!(api.post("/v1/executions", field).await.refused(413, "too_large")["fields"]["input"].is_string());
        let body = json!({"kind": "k", "input": "x".repeat(2 * mib)});
        assert!(api.post("/v1/executions", body).await.refused(413, "too_large")["fields"]["body"].is_string());
        let small = json!({"worker_id": "x".repeat(600 * 1024), "lanes": ["l"]});
        api.post("/v1/workers/w1/register", small).await.refused(413, "too_large");
        let deep = format!(r#"{{"kind":"k","input":{}{}}}"#, "[".repeat(100), "]".repeat(100));
        api.send(Method::POST, "/v1/executions", &[], deep).await.refused(400, "invalid_argument");
    }

    async fn a_wrong_fence_is_reported_before_anything_else(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let id = api.submit(json!({"kind": "k"})).await;
        let task = api.claim_one("w1").await;
        let mut other = task.clone();
        other["lease_id"] = json!(UNKNOWN);
        for (verb, body) in [
            ("complete", json!({})), ("fail", json!({"reason": "r", "category": "c"})), ("cancel", json!({})), ("delay", json!({"delay_ms": 1})),
            ("yield", json!({})), ("progress", json!({"pct": 1})),
        ] {
            let problem = api.task(&other, verb, body).await.refused(409, "stale_lease");
            assert!(problem["detail"].as_str().expect("text").contains(&id), "{problem}");
        }
        api.task(&task, "complete", json!({"result": 1})).await.with(200);
        let problem = api.task(&task, "fail", json!({"reason": "r", "category": "c"})).await.refused(409, "execution_not_active");
        assert_eq!(problem["facts"]["terminal_outcome"], "success");
        assert_eq!(problem["facts"]["lifecycle_phase"], "terminal");
        // The same call again gets the committed answer.
        assert_eq!(api.task(&task, "complete", json!({"result": 1})).await.with(200)["replayed"], true);
    }

    async fn a_full_lane_says_when_to_come_back(kit) {
        let api = kit.api().await;
        api.send(Method::PUT, "/v1/lanes/small", &[], json!({"max_depth": 1}).to_string()).await.with(200);
        api.submit(json!({"kind": "k", "lane": "small"})).await;
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        let reply = api.post("/v1/executions", json!({"kind": "k", "lane": "small"})).await;
        assert_eq!(reply.headers.get("retry-after").map(|v| v.as_bytes()), Some(&b"1"[..]));
        assert_eq!(reply.refused(429, "lane_full")["retryable"], true);
    }

    async fn requests_have_ids_and_other_sites_are_refused(kit) {
        let api = kit.api().await;
        let echoed = api.send(Method::GET, "/v1/nothing", &[("x-request-id", "abc-1")], "").await;
        assert_eq!(echoed.headers["x-request-id"], "abc-1");
        assert_eq!(echoed.refused(404, "not_found")["request_id"], "abc-1");
        let made = api.send(Method::GET, "/livez", &[("x-request-id", "a b")], "").await;
        assert_ne!(made.headers["x-request-id"], "a b");
        assert_eq!((made.status, made.text()), (200, "ok"));
        for path in ["/readyz", "/healthz"] {
            assert_eq!(api.get(path).await.text(), "ok");
        }
        api.send(Method::GET, "/v1/stats", &[("host", "evil.example")], "").await.refused(421, "wrong_host");
        let body = r#"{"kind":"k"}"#;
        api.send(Method::POST, "/v1/executions", &[("origin", "https://evil.example")], body).await.refused(403, "forbidden");
        api.send(Method::POST, "/v1/executions", &[("origin", "null")], body).await.refused(403, "forbidden");
        api.send(Method::POST, "/v1/executions", &[("sec-fetch-site", "cross-site")], body).await.refused(403, "forbidden");
        let own = api.base.clone();
        api.send(Method::POST, "/v1/executions", &[("origin", own.as_str()), ("sec-fetch-site", "same-origin")], body).await.with(201);
    }
}

#[test]
fn what_would_be_unsafe_does_not_start() {
    use std::sync::Arc;
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    runtime.block_on(async {
        let options = ff_backend_embedded::Options::new(directory.path(), ff_script::Library::shipped().text);
        let host: Arc<dyn ff_script::Host> =
            Arc::new(ff_backend_embedded::Embedded::open(options).expect("a store opens"));
        let root = ff_server::Auth::Root(ff_keys::BearerToken::mint());
        for (auth, texts) in [
            (ff_server::Auth::Nobody, ["--no-auth", "--tls-cert"]),
            (root, ["--tls-cert FILE and --tls-key FILE", "--behind-tls-proxy"]),
        ] {
            let listen = "0.0.0.0:0".parse().expect("an address");
            let local = ff_server::ServerOptions::local(listen, directory.path()).expect("keys can be used");
            let options = ff_server::ServerOptions { auth, ..local };
            let refused =
                ff_server::Server::start(Arc::clone(&host), ff_engine::EngineOptions::default(), options).await;
            let error = refused.err().expect("it does not start").to_string();
            assert!(texts.iter().all(|text| error.contains(text)), "{error}");
        }
    });
}
