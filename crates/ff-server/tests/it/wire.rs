//! What goes over the line itself: hosts, targets, bodies that come late, silence, and connections without room.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::kit::{Api, Kind, eventually, run_hurried};

/// Only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

fn address(api: &Api) -> SocketAddr {
    api.base.trim_start_matches("http://").parse().expect("an address")
}

async fn sent(server: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server).await.expect("the server accepts");
    stream.write_all(text.as_bytes()).await.expect("it is sent");
    stream
}

/// One answer: its status, its head in lower case, and its body.
async fn answer(stream: &mut TcpStream) -> (u16, String, String) {
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if body.len() >= length.expect("a length") {
                    let status = head.strip_prefix("http/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
                    return (status.expect("a status"), head, body.to_owned());
                }
            }
            let mut some = [0; 4096];
            let read = stream.read(&mut some).await.expect("an answer");
            assert!(read > 0, "the connection ended: {text}");
            bytes.extend_from_slice(&some[..read]);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer comes")
}

/// Waits until the server has closed the connection.
async fn closed(stream: &mut TcpStream) {
    let reading = async {
        let mut some = [0; 4096];
        // A reset is an end too.
        while stream.read(&mut some).await.is_ok_and(|read| read > 0) {}
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the server closes it");
}

on_both_hosts! {
    async fn a_request_names_one_host_and_it_is_this_server(kit) {
        let server = address(&kit.api().await);
        for (text, status, code) in [
            (format!("GET /v1/lanes HTTP/1.1\r\nhost: {server}\r\n\r\n"), 200, None),
            (format!("GET http://{server}/v1/lanes HTTP/1.1\r\nhost: {server}\r\n\r\n"), 200, None),
            (format!("GET /v1/lanes HTTP/1.1\r\nhost: {server}\r\nhost: evil.example\r\n\r\n"), 400, Some("invalid_argument")),
            (format!("GET /v1/lanes HTTP/1.1\r\nhost: {server}\r\nhost: {server}\r\n\r\n"), 400, Some("invalid_argument")),
            (format!("GET http://evil.example/v1/lanes HTTP/1.1\r\nhost: {server}\r\n\r\n"), 400, Some("invalid_argument")),
            (format!("POST http://evil.example/v1/executions HTTP/1.1\r\nhost: {server}\r\ncontent-length: 2\r\n\r\n{{}}"), 400, Some("invalid_argument")),
            ("GET /v1/lanes HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(), 421, Some("wrong_host")),
        ] {
            let (got, _, body) = answer(&mut sent(server, &text).await).await;
            let body: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!((got, body["code"].as_str()), (status, code), "{text}: {body}");
        }
    }

    async fn a_refused_request_whose_body_comes_late_does_not_break_the_next_one(kit) {
        let (guarded, _) = kit.guarded().await;
        let server = guarded.address();
        let head = |path: &str, length: usize| format!("POST {path} HTTP/1.1\r\nhost: {server}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        // Read to its end, or the client is told that the connection ends; else it serves the next request.
        for (path, status) in [("/v1/executions", 401), ("/v1/nowhere", 404), ("/v1/lanes", 405)] {
            let body = format!("{{\"kind\":\"{}\"}}", "k".repeat(20_000));
            let mut stream = sent(server, &head(path, body.len())).await;
            for part in body.as_bytes().chunks(7_000) {
                tokio::task::yield_now().await;
                stream.write_all(part).await.expect("it is sent");
            }
            let (refused, said, _) = answer(&mut stream).await;
            assert_eq!(refused, status, "{path}");
            if said.lines().any(|line| line == "connection: close") {
                continue;
            }
            stream.write_all(format!("GET /livez HTTP/1.1\r\nhost: {server}\r\n\r\n").as_bytes()).await.expect("it is sent");
            assert_eq!(answer(&mut stream).await.0, 200, "after {path}");
        }
        // Too long to be read for nothing, or not sent yet because the client asks first: the client is told that the connection ends.
        let expecting = format!("POST /v1/executions HTTP/1.1\r\nhost: {server}\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n");
        for text in [head("/v1/executions", 50_000_000), expecting] {
            let mut stream = sent(server, &text).await;
            let (status, said, _) = answer(&mut stream).await;
            assert_eq!(status, 401);
            assert!(said.lines().any(|line| line == "connection: close"), "{said}");
            closed(&mut stream).await;
        }
        guarded.stop().await;
    }

    async fn a_client_there_is_no_room_for_is_told_so(kit) {
        let crowded = kit.holding(3).await;
        let server = crowded.address();
        let mut inside = Vec::new();
        for _ in 0..3 {
            let mut stream = sent(server, &format!("GET /livez HTTP/1.1\r\nhost: {server}\r\n\r\n")).await;
            assert_eq!(answer(&mut stream).await.0, 200);
            inside.push(stream);
        }
        for _ in 0..2 {
            // It need not even ask.
            let mut outside = TcpStream::connect(server).await.expect("the server accepts");
            let (status, head, body) = answer(&mut outside).await;
            let problem: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!((status, problem["code"].as_str()), (503, Some("too_many_connections")), "{body}");
            assert!(head.contains("retry-after: 1") && head.contains("connection: close"), "{head}");
            outside.shutdown().await.expect("it leaves");
            closed(&mut outside).await;
        }
        let mut metrics = inside.pop().expect("a connection");
        metrics.write_all(format!("GET /metrics HTTP/1.1\r\nhost: {server}\r\n\r\n").as_bytes()).await.expect("it is sent");
        let page = answer(&mut metrics).await.2;
        for line in ["ff_http_connections 3", "ff_http_connections_turned_away_total 2"] {
            assert!(page.lines().any(|other| other == line), "{line} in {page}");
        }
        drop(inside);
        eventually("there is room again", async || {
            let mut next = sent(server, &format!("GET /livez HTTP/1.1\r\nhost: {server}\r\n\r\n")).await;
            (answer(&mut next).await.0 == 200).then_some(())
        })
        .await;
        drop(metrics);
        crowded.stop().await;
    }

    async fn a_name_is_not_made_of_dots_only(kit) {
        let api = kit.api().await;
        for dots in [".", "..", "..."] {
            for body in [json!({ "kind": "k", "lane": dots }), json!({ "kind": "k", "namespace": dots })] {
                let refused = api.post("/v1/executions", body.clone()).await.refused(400, "invalid_argument");
                assert!(refused["fields"].as_object().is_some_and(|fields| fields.keys().all(|key| body[key] == dots)), "{refused}");
            }
            let body = json!({ "worker_id": "w", "lanes": [dots] });
            api.post("/v1/workers/w1/register", body).await.refused(400, "invalid_argument");
        }
        api.submit(json!({ "kind": "k", "lane": ".hidden", "namespace": "a..b" })).await;
    }

    async fn an_id_of_another_namespace_is_as_unknown_as_any(kit) {
        let (guarded, root) = kit.guarded().await;
        let made = root.post("/v1/admin/tokens", json!({ "name": "b", "roles": ["submit", "read"], "namespaces": ["b"] })).await.with(201);
        let other = root.bearing(made["token"].as_str().expect("a token"));
        let id = root.submit(json!({ "kind": "k", "namespace": "a" })).await;
        let unknown = "0192a7c4-5b1e-7abc-8def-00112233aabb";
        let expected = other.get(&format!("/v1/executions/{unknown}")).await.refused(404, "execution_not_found");
        for kind in ["k", "other"] {
            let body = json!({ "kind": kind, "namespace": "b", "execution_id": id });
            let refused = other.post("/v1/executions", body.clone()).await.refused(404, "execution_not_found");
            assert_eq!(refused["title"], expected["title"]);
            let batch = other.post("/v1/executions:batch", json!([body])).await;
            let line: Value = serde_json::from_str(batch.text().trim()).expect("JSON");
            assert_eq!(line["error"]["code"], "execution_not_found");
        }
        let flow = root.post("/v1/flows", json!({ "kind": "f", "namespace": "a", "members": [{ "key": "m", "kind": "k" }] })).await.with(201);
        let body = json!({ "kind": "f", "namespace": "b", "flow_id": flow["flow_id"], "members": [{ "key": "m", "kind": "k" }] });
        other.post("/v1/flows", body).await.refused(404, "flow_not_found");
        root.post("/v1/executions", json!({ "kind": "another", "namespace": "a", "execution_id": id })).await.refused(409, "idempotency_conflict");
        guarded.stop().await;
    }

    async fn the_tasks_of_a_claim_come_to_four_mebibytes_at_most(kit) {
        let api = kit.api().await;
        const MIB: usize = 1024 * 1024;
        api.register("w1", 64).await;
        let large = "x".repeat(MIB - 2);
        let mut open = std::collections::BTreeSet::new();
        for _ in 0..12 {
            open.insert(api.submit(json!({ "kind": "k", "input": large })).await);
        }
        let mut claims = 0;
        while !open.is_empty() {
            let tasks = api.claim("w1", json!({ "max": 64, "wait_ms": 10_000 })).await;
            let bytes: usize = tasks.iter().map(|task| task["input"].as_str().map_or(0, str::len) + 2).sum();
            assert!(!tasks.is_empty() && bytes <= 4 * MIB, "{} tasks of {bytes} bytes", tasks.len());
            for task in tasks {
                assert!(open.remove(task["execution_id"].as_str().expect("an id")), "handed out once");
                api.task(&task, "complete", json!({})).await.with(200);
            }
            claims += 1;
        }
        assert!(claims >= 3, "{claims} claims");
    }

    async fn more_lanes_than_one_call_counts_are_all_on_the_page(kit) {
        let api = kit.api().await;
        for n in 0..80 {
            api.submit(json!({ "kind": "k", "lane": format!("lane-{n}") })).await;
        }
        let page = api.get("/metrics").await;
        for n in 0..80 {
            let line = format!("ff_lane_executions{{namespace=\"default\",lane=\"lane-{n}\",state=\"eligible\"}} 1");
            assert!(page.text().lines().any(|other| other == line), "{line}");
        }
        let stats = api.get("/v1/stats").await.with(200);
        assert_eq!(stats["lanes"].as_array().map(Vec::len), Some(80), "{stats}");
    }
}

#[test]
fn a_connection_that_never_says_anything_is_closed() {
    run_hurried(Kind::Embedded, async |kit| {
        let server = address(&kit.api().await);
        let mut silent = TcpStream::connect(server).await.expect("the server accepts");
        closed(&mut silent).await;
    });
}
