//! Streams over HTTP: written in batches, read by range, waited for, followed over retries and resumes, by a thousand at once.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::kit::{Api, eventually, open_connections};
use crate::waitpoints::{running, signal};

/// One event of a merged stream: its id, its name, its data.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    id: String,
    event: String,
    data: Value,
}

impl Seen {
    fn text(&self) -> String {
        match self.event.as_str() {
            "frame" => format!("{}:{}", self.data["attempt_index"], self.data["payload"]),
            other => format!("{}:{other}", self.data["attempt_index"]),
        }
    }
}

/// A reader of the merged stream.
struct Tail {
    answer: reqwest::Response,
    text: String,
}

impl Tail {
    async fn open(api: &Api, id: &str, headers: &[(&str, &str)], query: &str) -> Self {
        let mut request = api.http.get(format!("{}/v1/executions/{id}/stream{query}", api.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.expect("the server answers");
        assert_eq!(answer.status(), 200);
        Self { answer, text: String::new() }
    }

    /// The next event; nothing when the stream has ended.
    async fn next(&mut self) -> Option<Seen> {
        loop {
            while let Some((message, rest)) = self.text.split_once("\n\n").map(|(m, r)| (m.to_owned(), r.to_owned())) {
                self.text = rest;
                if message == ":" {
                    continue;
                }
                let field = |name: &str| {
                    message
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .unwrap_or_else(|| panic!("{name} in {message}"))
                        .to_owned()
                };
                let data: Value = serde_json::from_str(&field("data: ")).expect("JSON");
                assert_eq!(data["cursor"].as_str(), Some(field("id: ").as_str()));
                return Some(Seen { id: field("id: "), event: field("event: "), data });
            }
            let chunk =
                tokio::time::timeout(crate::kit::PATIENCE, self.answer.chunk()).await.expect("in time").ok()??;
            self.text.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    }

    async fn rest(&mut self) -> Vec<Seen> {
        let mut all = Vec::new();
        while let Some(seen) = self.next().await {
            all.push(seen);
        }
        all
    }
}

fn texts(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(Seen::text).collect()
}

async fn write(api: &Api, task: &Value, payloads: &[&str]) -> Value {
    let frames: Vec<Value> = payloads.iter().map(|p| json!({"type": "t", "payload": p})).collect();
    api.task(task, "frames", json!({ "frames": frames })).await.with(200)
}

on_both_hosts! {
    async fn frames_are_written_once_and_read_by_range(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        let stream = format!("/v1/executions/{id}/attempts/0/stream");
        let empty = api.get(&stream).await.with(200);
        assert_eq!(empty, json!({"frames": [], "next": "start", "closed_at": null, "closed_reason": null}));
        let batch = json!({"request_id": "b-1", "frames": [
            {"type": "text", "payload": {"z": 12_345_678_901_234_567_890_u64, "a": 1}, "correlation_id": "c"},
            {"type": "bytes", "payload": "AAH/", "payload_encoding": "base64"},
            {"type": "empty"},
            {"type": "seen", "payload": [1], "mode": "live"},
        ]});
        let written = api.task(&task, "frames", batch.clone()).await.with(200);
        assert_eq!((written["ids"].as_array().map(Vec::len), &written["next_sequence"], &written["replayed"]), (Some(4), &json!(4), &json!(false)));
        let again = api.task(&task, "frames", batch).await.with(200);
        assert_eq!((&again["ids"], &again["replayed"]), (&written["ids"], &json!(true)), "its answer was lost");
        let more = api.task(&task, "frames", json!({"first_sequence": 4, "frames": [{"type": "a"}, {"type": "b"}]})).await.with(200);
        let same = api.task(&task, "frames", json!({"first_sequence": 4, "frames": [{"type": "a"}, {"type": "b"}]})).await.with(200);
        assert_eq!((&same["ids"], &same["replayed"]), (&more["ids"], &json!(true)));
        api.task(&task, "frames", json!({"first_sequence": 9, "frames": [{"type": "a"}]})).await.refused(409, "frames_missing");

        let all = api.get(&stream).await;
        assert!(all.text().contains(r#"{"a":1,"z":12345678901234567890}"#), "payloads keep their text: {}", all.text());
        let all = all.with(200);
        let frames = all["frames"].as_array().expect("frames");
        assert_eq!(frames.len(), 6);
        assert_eq!((&frames[0]["correlation_id"], &frames[0]["type"], &frames[0]["payload_encoding"]), (&json!("c"), &json!("text"), &json!("json")));
        assert_eq!((&frames[1]["payload"], &frames[1]["payload_encoding"]), (&json!("AAH/"), &json!("base64")));
        assert_eq!((&frames[2]["payload"], &frames[3]["mode"]), (&Value::Null, &json!("live")));
        let ids: Vec<&str> = frames.iter().map(|frame| frame["id"].as_str().expect("an id")).collect();
        let (mut seen, mut cursor) = (Vec::new(), "start".to_owned());
        loop {
            let page = api.get(&format!("{stream}?after={cursor}&limit=2")).await.with(200);
            let some = page["frames"].as_array().expect("frames").clone();
            if some.is_empty() {
                assert_eq!(page["next"].as_str(), Some(cursor.as_str()), "a reader stays where it is");
                break;
            }
            cursor = page["next"].as_str().expect("a cursor").to_owned();
            seen.extend(some);
        }
        assert_eq!(&seen, frames);
        let time = &frames[5]["at"];
        assert_eq!(api.get(&format!("{stream}?after={time}")).await.with(200)["frames"], json!([]), "a time stands behind its frames");
        assert_eq!(api.get(&format!("{stream}?after=1")).await.with(200)["frames"].as_array().map(Vec::len), Some(6));
        assert_eq!(api.execution(&id).await["attempts"][0]["frames"], 6);
        api.task(&task, "complete", json!({})).await.with(200);
        let half = api.get(&format!("{stream}?limit=2")).await.with(200);
        assert_eq!(half["closed_at"], Value::Null, "not at the end yet");
        let whole = api.get(&format!("{stream}?after={}", ids[1])).await.with(200);
        assert_eq!((whole["closed_at"].is_i64(), &whole["closed_reason"]), (true, &json!("succeeded")));
        api.task(&task, "frames", json!({"frames": [{"type": "late"}]})).await.refused(409, "execution_not_active");
    }

    async fn what_is_wrong_with_a_stream_request_is_named(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        for (body, field) in [
            (json!({"frames": []}), "frames"),
            (json!({}), "frames"),
            (json!({"frames": [{"payload": 1}]}), "frames[0].type"),
            (json!({"frames": [{"type": "t", "mode": "loud"}]}), "frames[0].mode"),
            (json!({"frames": [{"type": "t", "payload": "?", "payload_encoding": "base64"}]}), "frames[0].payload"),
            (json!({"frames": [{"type": ""}]}), "frames[0].type"),
            (json!({"frames": [{"type": "t"}, {"type": "t", "mode": "summary", "payload": 1, "colour": 2}]}), "frames[1].colour"),
            (json!({"frames": [{"type": "t"}], "first_sequence": -1}), "first_sequence"),
        ] {
            let refused = api.task(&task, "frames", body.clone()).await.refused(400, "invalid_argument");
            assert_eq!(refused["fields"].as_object().expect("fields").keys().next().map(String::as_str), Some(field), "{body}: {refused}");
        }
        let big = json!({"frames": [{"type": "t"}, {"type": "t", "payload": "x".repeat(64 * 1024 - 1)}]});
        let refused = api.task(&task, "frames", big).await.refused(413, "too_large");
        assert!(refused["fields"].get("frames[1].payload").is_some(), "{refused}");
        let frame = json!({"type": "t", "payload": "x".repeat(64 * 1024 - 2)});
        api.task(&task, "frames", json!({"frames": vec![frame.clone(); 60]})).await.with(200);
        api.task(&task, "frames", json!({"frames": vec![frame; 65]})).await.refused(413, "too_large");
        let stream = format!("/v1/executions/{id}/attempts/0/stream");
        for query in ["limit=0", "limit=10001", "block_ms=30001", "block_ms=-1", "after=x", "after=1-2-3", "colour=1"] {
            api.get(&format!("{stream}?{query}")).await.refused(400, "invalid_argument");
        }
        api.get(&format!("{stream}?limit=10000&block_ms=30000")).await.with(200);
        api.get(&format!("/v1/executions/{id}/attempts/7/stream")).await.refused(404, "attempt_not_found");
        let unknown = "0192a7c4-5b1e-7abc-8def-00112233aabb";
        for path in ["attempts/0/stream", "attempts/0/stream/summary", "stream/summary", "stream"] {
            api.get(&format!("/v1/executions/{unknown}/{path}")).await.refused(404, "execution_not_found");
        }
        for after in ["x", "0", "0.x", "-1.start", "0.1-2-3"] {
            api.get(&format!("/v1/executions/{id}/stream?after={after}")).await.refused(400, "invalid_argument");
        }
        api.task(&task, "complete", json!({})).await.with(200);
    }

    async fn a_reader_waits_for_the_next_frame_or_the_end(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        let wait = |after: &str| {
            let (api, path) = (api.clone(), format!("/v1/executions/{id}/attempts/0/stream?after={after}&block_ms=30000"));
            tokio::spawn(async move { api.get(&path).await.with(200) })
        };
        let waiting = wait("start");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished());
        let written = write(&api, &task, &["one"]).await;
        let page = waiting.await.expect("it ends");
        assert_eq!(page["frames"][0]["payload"], "one");
        let waiting = wait(written["ids"][0].as_str().expect("an id"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        api.task(&task, "complete", json!({})).await.with(200);
        let page = waiting.await.expect("it ends");
        assert_eq!((&page["frames"], &page["closed_reason"]), (&json!([]), &json!("succeeded")));
    }

    async fn a_summary_is_folded_and_keeps_its_numbers(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        assert_eq!(api.get(&format!("/v1/executions/{id}/stream/summary")).await.with(200)["document"], Value::Null);
        let body = format!(
            r#"{{"fence":{},"frames":[{{"type":"s","mode":"summary","payload":{{"n":12345678901234567890,"list":[],"gone":1}}}},{{"type":"s","mode":"summary","payload":{{"gone":null,"deep":{{"x":1.50}}}}}}]}}"#,
            crate::kit::fence(&task)
        );
        api.send(Method::POST, &format!("/v1/tasks/{id}/frames"), &[], body).await.with(200);
        let summary = api.get(&format!("/v1/executions/{id}/stream/summary")).await;
        assert!(summary.text().contains("12345678901234567890") && summary.text().contains("1.50") && summary.text().contains(r#""list":[]"#), "{}", summary.text());
        let summary = summary.with(200);
        assert_eq!((summary["document"].get("gone"), &summary["attempt_index"]), (None, &json!(0)));
        assert_eq!(api.get(&format!("/v1/executions/{id}/attempts/0/stream/summary")).await.with(200)["document"], summary["document"]);
        api.task(&task, "complete", json!({})).await.with(200);
    }

    async fn a_follower_sees_every_frame_once_through_a_retry_and_a_resume(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let id = api.submit(json!({"kind": "k", "retry": {"backoff": {"type": "fixed", "delay_ms": 1}, "jitter": "none"}})).await;
        let mut tail = Tail::open(&api, &id, &[], "").await;
        let task = api.claim_one("w1").await;
        write(&api, &task, &["a", "b"]).await;
        let first = tail.next().await.expect("a frame");
        assert_eq!(first.text(), r#"0:"a""#);
        // The connection breaks after the first frame.
        drop(tail);
        let mut tail = Tail::open(&api, &id, &[("last-event-id", &first.id)], "?after=start").await;
        let second = tail.next().await.expect("a frame");
        assert_eq!(second.text(), r#"0:"b""#, "the header is what counts");
        api.task(&task, "fail", json!({"reason": "r", "category": "c"})).await.with(200);
        let task = api.claim_one("w1").await;
        let superseded = tail.next().await.expect("a mark");
        assert_eq!((superseded.event.as_str(), &superseded.data["closed_reason"]), ("attempt_superseded", &json!("failed")));
        drop(tail);
        write(&api, &task, &["c"]).await;
        let answer = api.task(&task, "suspend", json!({"reason": "waiting_for_signal", "waitpoints": [{"key": "k"}]})).await.with(200);
        let mut tail = Tail::open(&api, &id, &[], &format!("?after={}", superseded.id)).await;
        let third = tail.next().await.expect("a frame");
        assert_eq!(third.text(), r#"1:"c""#);
        let waitpoint = &answer["waitpoints"][0];
        signal(&api, &id, &waitpoint["waitpoint_id"], &waitpoint["tokens"][0]["token"], json!({"name": "x"})).await.with(200);
        let task = api.claim_one("w1").await;
        assert_eq!(task["frames"], 1, "the next frame's number goes on");
        write(&api, &task, &["d"]).await;
        assert_eq!(tail.next().await.expect("a frame").text(), r#"1:"d""#);
        api.task(&task, "complete", json!({})).await.with(200);
        let closed = tail.next().await.expect("the end");
        assert_eq!((closed.event.as_str(), &closed.data["closed_reason"]), ("closed", &json!("succeeded")));
        assert!(tail.next().await.is_none(), "the stream ends with the execution");

        let everything = [r#"0:"a""#, r#"0:"b""#, "0:attempt_superseded", r#"1:"c""#, r#"1:"d""#, "1:closed"];
        let mut all = Tail::open(&api, &id, &[], "").await.rest().await;
        assert_eq!(texts(&all), everything);
        // From any place on, exactly what follows.
        for at in 0..all.len() - 1 {
            let rest = Tail::open(&api, &id, &[("last-event-id", &all[at].id)], "").await.rest().await;
            assert_eq!(texts(&rest), everything[at + 1..]);
        }
        let lines = api.send(Method::GET, &format!("/v1/executions/{id}/stream"), &[("accept", "application/x-ndjson")], "").await;
        let lines: Vec<Value> = lines.text().lines().filter(|l| !l.is_empty()).map(|l| serde_json::from_str(l).expect("JSON")).collect();
        assert_eq!(lines, all.drain(..).map(|seen| seen.data).collect::<Vec<_>>());
        // A replay goes on behind the end.
        api.post(&format!("/v1/executions/{id}/replay"), json!({})).await.with(200);
        let mut tail = Tail::open(&api, &id, &[("last-event-id", &closed.id)], "").await;
        let task = api.claim_one("w1").await;
        write(&api, &task, &["e"]).await;
        api.task(&task, "complete", json!({})).await.with(200);
        assert_eq!(texts(&tail.rest().await), ["1:attempt_superseded", r#"2:"e""#, "2:closed"]);
    }

    async fn a_follower_is_let_go_when_the_server_stops(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        write(&api, &task, &["a"]).await;
        let mut tail = Tail::open(&api, &id, &[], "").await;
        tail.next().await.expect("a frame");
        let stopping = tokio::spawn({
            let kit = std::sync::Arc::clone(&kit);
            async move { kit.stop().await }
        });
        assert!(tail.next().await.is_none());
        stopping.await.expect("it stops");
        let api = kit.restart().await;
        api.register("w1", 1).await;
        api.task(&task, "complete", json!({})).await.with(200);
        assert_eq!(texts(&Tail::open(&api, &id, &[], "").await.rest().await), [r#"0:"a""#, "0:closed"]);
    }

    async fn an_execution_that_never_started_ends_its_stream(kit) {
        let api = kit.api().await;
        let id = api.submit(json!({"kind": "k"})).await;
        let mut tail = Tail::open(&api, &id, &[], "").await;
        api.post(&format!("/v1/executions/{id}/cancel"), json!({})).await.with(200);
        let seen = tail.rest().await;
        assert_eq!((seen.len(), seen[0].event.as_str(), &seen[0].data["attempt_index"]), (1, "closed", &Value::Null));
    }

    async fn a_payload_with_line_breaks_stays_on_its_line(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, task) = running(&api, "w1").await;
        let body = format!("{{\"fence\":{},\"frames\":[{{\"type\":\"t\",\"payload\":{{\n\"a\":\r\n\"x\\ny\"}}}}]}}", crate::kit::fence(&task));
        api.send(Method::POST, &format!("/v1/tasks/{id}/frames"), &[], body).await.with(200);
        api.task(&task, "complete", json!({})).await.with(200);
        let seen = Tail::open(&api, &id, &[], "").await.rest().await;
        assert_eq!(seen[0].data["payload"], json!({"a": "x\ny"}));
        let lines = api.send(Method::GET, &format!("/v1/executions/{id}/stream"), &[("accept", "application/x-ndjson")], "").await;
        assert_eq!(lines.text().lines().filter(|line| !line.is_empty()).count(), 2);
    }

    async fn a_thousand_followers_see_every_frame_once_and_in_order(kit) {
        const READERS: usize = 1_000;
        const BATCHES: usize = 20;
        const FRAMES: usize = 10;
        let api = kit.api().await;
        api.register("w1", 1).await;
        let id = api.submit(json!({"kind": "k"})).await;
        let task = api.claim("w1", json!({"wait_ms": 10_000, "lease_ttl_ms": 600_000})).await.remove(0);
        let server: SocketAddr = api.base.trim_start_matches("http://").parse().expect("an address");
        let connections = kit.store_connections();
        let started = Instant::now();
        let readers: Vec<_> = (0..READERS)
            .map(|n| {
                let id = id.clone();
                tokio::spawn(async move { read_all(server, n, &id).await })
            })
            .collect();
        // Half of them are there before the first frame, the others come while it is written.
        eventually("many readers are there", async || {
            (open_connections(server) >= READERS / 2).then_some(())
        }).await;
        let before = kit.host().store_commands().await.expect("a count");
        for batch in 0..BATCHES {
            let frames: Vec<Value> = (0..FRAMES).map(|n| json!({"type": "t", "payload": batch * FRAMES + n})).collect();
            api.task(&task, "frames", json!({"frames": frames})).await.with(200);
        }
        if let (Some(before), Some(now)) = (connections, kit.store_connections()) {
            assert!(now <= before + 2, "{before} connections to the store, {now} with {READERS} readers");
        }
        api.task(&task, "complete", json!({})).await.with(200);
        for reader in readers {
            let seen = reader.await.expect("a reader ends well");
            let expected: Vec<String> = (0..BATCHES * FRAMES).map(|n| n.to_string()).chain(["closed".to_owned()]).collect();
            assert_eq!(seen, expected);
        }
        let commands = kit.host().store_commands().await.expect("a count") - before;
        let took = started.elapsed();
        println!("{READERS} readers, {} frames each: {took:?}, {commands} store commands", BATCHES * FRAMES);
        // Readers at one place share what is read there, those who come late included.
        assert!(commands < 8 * READERS as u64, "{commands} store commands for {READERS} readers");
    }
}

#[test]
fn a_silent_stream_says_again_and_again_that_it_is_alive() {
    crate::kit::run_hurried(crate::kit::Kind::Embedded, async |kit| {
        let api = kit.api().await;
        let id = api.submit(json!({"kind": "k"})).await;
        let mut tail = Tail::open(&api, &id, &[], "").await;
        while tail.text.matches(":\n\n").count() < 3 {
            let chunk = tail.answer.chunk().await.expect("a chunk");
            tail.text.push_str(std::str::from_utf8(&chunk.expect("more")).expect("text"));
        }
        assert_eq!(tail.text, ":\n\n:\n\n:\n\n");
    });
}

/// Follows an execution over a plain socket until the server ends the answer: the payloads, and the end.
async fn read_all(server: SocketAddr, n: usize, id: &str) -> Vec<String> {
    // From several addresses of the loopback network: one address may hold only so many connections.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 1, (n % 8) as u8 + 1], 0))).expect("a loopback address");
    let mut stream = socket.connect(server).await.expect("the server accepts");
    let request = format!(
        "GET /v1/executions/{id}/stream HTTP/1.1\r\nhost: {server}\r\naccept: text/event-stream\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("it is answered");
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
    let mut seen = Vec::new();
    for line in unchunked(body).lines().filter_map(|line| line.strip_prefix("data: ")) {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        seen.push(match line["event"].as_str() {
            Some("frame") => line["payload"].to_string(),
            Some(other) => other.to_owned(),
            None => panic!("{line}"),
        });
    }
    seen
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        text.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").expect("the end of a chunk");
        if size == 0 {
            break;
        }
    }
    text
}
