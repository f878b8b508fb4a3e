//! Clients that behave badly: very many, gone in the middle, slow to speak, slow to listen, and too talkative.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::kit::{Api, Kind, connected, eventually, open_connections, run, run_hurried};

/// Connections at once: far more than threads; two thousand in the wide tier.
fn connections() -> usize {
    ff_testkit::tier::rounds(600, 2_000, 2_000)
}

const INSTANCES: usize = 100;
const LONG: Duration = Duration::from_secs(120);

fn address(api: &Api) -> SocketAddr {
    api.base.trim_start_matches("http://").parse().expect("an address")
}

/// Both ends of every connection are files of this process.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = 3 * connections() as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < wanted) {
        setrlimit(
            Resource::Nofile,
            Rlimit { current: maximum.map_or(Some(wanted), |most| Some(most.min(wanted))), maximum },
        )
        .expect("this process may have more files");
    }
}

/// The threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("a list of threads").count()
}

/// A connection from one of several addresses of the loopback network.
async fn connect(server: SocketAddr, n: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 2, (n % 8) as u8 + 1], 0))).expect("a loopback address");
    socket.connect(server).await.expect("the server accepts")
}

fn request(server: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Everything the server says until it closes, which must be soon enough.
async fn answered(stream: &mut TcpStream) -> (u16, String) {
    let mut bytes = Vec::new();
    // A connection that is cut off may be reset after its answer.
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the server ends it");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

/// One task by a long poll on a connection of its own; asked again when a poll ends with nothing.
async fn poll(server: SocketAddr, n: usize) -> String {
    let body = json!({"max": 1, "wait_ms": 30_000, "lease_ttl_ms": 600_000}).to_string();
    loop {
        let mut stream = connect(server, n).await;
        let path = format!("/v1/workers/w-{}/claim", n % INSTANCES);
        stream.write_all(request(server, "POST", &path, &body).as_bytes()).await.expect("it is sent");
        let (status, body) = answered(&mut stream).await;
        assert_eq!(status, 200, "{body}");
        let claimed: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        if let Some(id) = claimed["tasks"][0]["execution_id"].as_str() {
            return id.to_owned();
        }
    }
}

async fn submit_many(api: &Api, count: usize) -> BTreeSet<String> {
    let items = vec![json!({"kind": "k"}); count];
    let answered = api.post("/v1/executions:batch", json!(items)).await;
    assert_eq!(answered.status, 200, "{}", answered.text());
    let of_line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["execution_id"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned()
    };
    answered.text().lines().filter(|line| !line.is_empty()).map(of_line).collect()
}

/// Works until everything has ended well.
async fn finish(api: &Api, instance: &str, ids: &BTreeSet<String>) {
    eventually("everything is done", async || {
        for task in api.claim(instance, json!({"max": 16, "wait_ms": 200})).await {
            api.task(&task, "complete", json!({})).await.with(200);
        }
        let page = api.get("/v1/executions?state=completed&limit=1000").await.with(200);
        (page["items"].as_array().expect("items").len() == ids.len()).then_some(())
    })
    .await;
}

on_both_hosts! {
    async fn two_thousand_long_polls_cost_no_thread_and_all_are_answered(kit) {
        allow_many_files();
        let many = connections();
        let api = kit.api().await;
        let server = address(&api);
        for n in 0..INSTANCES {
            api.register(&format!("w-{n}"), (many / INSTANCES) as u32).await;
        }
        let (before, store) = (threads(), kit.store_connections());
        let polls: Vec<_> = (0..many).map(|n| tokio::spawn(poll(server, n))).collect();
        eventually("all of them wait", async || (open_connections(server) >= many).then_some(())).await;
        assert_eq!(api.get("/livez").await.status, 200, "there is room for others");
        let waiting = threads();
        assert!(waiting <= before + 4, "{before} threads before, {waiting} while {many} wait");
        if let (Some(before), Some(now)) = (store, kit.store_connections()) {
            assert!(now <= before + 2, "{before} connections to the store, {now} while {many} wait");
        }
        let submitted = submit_many(&api, many).await;
        let mut got = BTreeSet::new();
        for poll in polls {
            got.insert(poll.await.expect("a poll ends well"));
        }
        assert_eq!(got, submitted, "each got one of its own");
        eventually("they are gone", async || (open_connections(server) < 16).then_some(())).await;
        assert!(threads() <= before + 4);
    }

    async fn polls_cut_off_while_work_comes_lose_none_of_it(kit) {
        let api = kit.api().await;
        let server = address(&api);
        api.register("gone", 64).await;
        api.register("here", 64).await;
        let body = json!({"max": 1, "wait_ms": 30_000, "lease_ttl_ms": 1_000}).to_string();
        let mut ids = BTreeSet::new();
        for round in 0..4 {
            let mut streams = Vec::new();
            for n in 0..40 {
                let mut stream = connect(server, n).await;
                stream.write_all(request(server, "POST", "/v1/workers/gone/claim", &body).as_bytes()).await.expect("it is sent");
                streams.push(stream);
            }
            // Half of them leave before the work comes, the others while it does.
            let rest = streams.split_off(if round % 2 == 0 { 20 } else { 0 });
            drop(streams);
            let submitting = submit_many(&api, 40);
            let leaving = async {
                for stream in rest {
                    tokio::task::yield_now().await;
                    drop(stream);
                }
            };
            ids.extend(tokio::join!(submitting, leaving).0);
        }
        eventually("they are gone", async || (open_connections(server) < 16).then_some(())).await;
        finish(&api, "here", &ids).await;
    }

    async fn readers_that_leave_in_the_middle_leave_nothing_behind(kit) {
        let api = kit.api().await;
        let server = address(&api);
        api.register("w1", 1).await;
        let id = api.submit(json!({"kind": "k"})).await;
        let task = api.claim_one("w1").await;
        let write = async |n: usize| {
            let frames = json!({"frames": [{"type": "t", "payload": n}]});
            api.task(&task, "frames", frames).await.with(200);
        };
        write(0).await;
        let (quiet, store) = (open_connections(server), kit.store_connections());
        for round in 0..3 {
            let mut streams = Vec::new();
            for n in 0..60 {
                let path = match n % 3 {
                    0 => format!("/v1/executions/{id}/stream"),
                    1 => "/v1/events".to_owned(),
                    _ => format!("/v1/executions/{id}/result?wait_ms=30000"),
                };
                let mut stream = connect(server, n).await;
                let head = format!("GET {path} HTTP/1.1\r\nhost: {server}\r\naccept: text/event-stream\r\n\r\n");
                stream.write_all(head.as_bytes()).await.expect("it is sent");
                if n % 3 == 0 {
                    // It has begun to read when it leaves.
                    let mut some = [0; 64];
                    let read = tokio::time::timeout(LONG, stream.read(&mut some)).await.expect("in time").expect("an answer");
                    assert!(some[..read].starts_with(b"HTTP/1.1 200"), "{}", some[..read].escape_ascii());
                }
                streams.push(stream);
            }
            eventually("all are connected", async || (open_connections(server) >= quiet + 50).then_some(())).await;
            write(round + 1).await;
            drop(streams);
            eventually("all are let go", async || (open_connections(server) <= quiet + 2).then_some(())).await;
        }
        if let (Some(before), Some(now)) = (store, kit.store_connections()) {
            assert!(now <= before + 2, "{before} connections to the store before, {now} after");
        }
        api.task(&task, "complete", json!({})).await.with(200);
        let all = api.get(&format!("/v1/executions/{id}/stream")).await;
        assert_eq!(all.status, 200, "{}", all.text());
    }
}

/// Sends one byte after the other until the server has enough of it: how long that took, and what it said.
async fn dribble(mut stream: TcpStream, head: String) -> (Duration, u16, String) {
    let began = Instant::now();
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    let (mut reading, mut writing) = stream.split();
    let mut bytes = Vec::new();
    let mut told = Box::pin(reading.read_to_end(&mut bytes));
    loop {
        tokio::select! {
            _ = &mut told => break,
            () = tokio::time::sleep(Duration::from_millis(300)) => {}
        }
        assert!(began.elapsed() < LONG, "it goes on for ever");
        if writing.write_all(b"x").await.is_err() {
            let _ = tokio::time::timeout(LONG, &mut told).await;
            break;
        }
    }
    drop(told);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or(0);
    (began.elapsed(), status, text)
}

#[test]
fn slow_clients_are_let_go_and_others_do_not_notice() {
    run_hurried(Kind::Embedded, async |kit| {
        let api = kit.api().await;
        let server = address(&api);
        api.register("w1", 1).await;
        let big = api.submit(json!({"kind": "k", "lane": "big", "input": "x".repeat(1_000_000)})).await;
        let head = dribble(connect(server, 0).await, "GET /livez HTTP/1.1\r\nhost: x\r\nx-".to_owned());
        let body = format!("POST /v1/executions HTTP/1.1\r\nhost: {server}\r\ncontent-length: 9999\r\n\r\n{{");
        let body = dribble(connect(server, 1).await, body);
        // Asks for far more than the system keeps for it, and reads nothing.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a small buffer");
        let mut deaf = socket.connect(server).await.expect("the server accepts");
        let ask = format!("GET /v1/executions/{big} HTTP/1.1\r\nhost: {server}\r\n\r\n").repeat(24);
        deaf.write_all(ask.as_bytes()).await.expect("it is sent");
        let others = async {
            for _ in 0..40 {
                let id = api.submit(json!({"kind": "k"})).await;
                let task = api.claim_one("w1").await;
                assert_eq!(task["execution_id"], id);
                api.task(&task, "complete", json!({})).await.with(200);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let (head, body, ()) = tokio::join!(head, body, others);
        assert!(head.0 >= Duration::from_millis(900), "a head has its time: {:?}", head.0);
        assert_eq!(body.1, 408, "{}", body.2);
        assert!(body.2.contains("\"too_slow\""), "{}", body.2);
        let port = deaf.local_addr().expect("an address").port();
        eventually("the one that does not read is let go", async || (!connected(server).contains(&port)).then_some(()))
            .await;
        drop(deaf);
    });
}

#[test]
fn a_server_stops_although_a_client_does_not_read() {
    run_hurried(Kind::Embedded, async |kit| {
        let before = Arc::strong_count(kit.host());
        let api = kit.api().await;
        let server = address(&api);
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a small buffer");
        let mut deaf = socket.connect(server).await.expect("the server accepts");
        // Every item is refused by the name of its field: far more than the system keeps for the client.
        let items = format!("{{\"{}\":1}}\n", "x".repeat(2_000)).repeat(3_000);
        deaf.write_all(request(server, "POST", "/v1/executions:batch", &items).as_bytes()).await.expect("it is sent");
        deaf.readable().await.expect("an answer begins");
        kit.stop().await;
        eventually("nobody holds the store", async || (Arc::strong_count(kit.host()) == before).then_some(())).await;
        drop(deaf);
    });
}

#[test]
fn what_never_ends_is_refused_without_being_kept() {
    run(Kind::Embedded, async |kit| {
        let api = kit.api().await;
        let server = address(&api);
        // More than may be, announced and not sent.
        let mut stream = connect(server, 0).await;
        let head = format!(
            "POST /v1/executions HTTP/1.1\r\nhost: {server}\r\ncontent-length: 9000000000\r\nexpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("it is sent");
        let mut some = vec![0; 4_096];
        let read = tokio::time::timeout(LONG, stream.read(&mut some)).await.expect("in time").expect("an answer");
        assert!(some[..read].starts_with(b"HTTP/1.1 413"), "{}", some[..read].escape_ascii());
        // A body without an end, in chunks.
        let mut stream = connect(server, 1).await;
        let head = format!("POST /v1/executions HTTP/1.1\r\nhost: {server}\r\ntransfer-encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("it is sent");
        let (mut reading, mut writing) = stream.split();
        let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
        let mut sent = 0;
        let sending = async {
            while writing.write_all(&chunk).await.is_ok() {
                sent += 0x10000;
            }
        };
        let hearing = async {
            let mut some = vec![0; 4_096];
            let read = reading.read(&mut some).await.unwrap_or(0);
            some.truncate(read);
            some
        };
        let heard =
            tokio::time::timeout(LONG, async { tokio::join!(sending, hearing).1 }).await.expect("the server ends it");
        assert!(heard.is_empty() || heard.starts_with(b"HTTP/1.1 413"), "{}", heard.escape_ascii());
        assert!(sent < 256 * 1024 * 1024, "{sent} bytes were taken");
        // A head that is longer than any.
        let mut stream = connect(server, 2).await;
        let head = format!("GET /livez HTTP/1.1\r\nhost: {server}\r\nx: {}\r\n\r\n", "x".repeat(1_000_000));
        let _ = stream.write_all(head.as_bytes()).await;
        let (status, _) = answered(&mut stream).await;
        assert!(matches!(status, 0 | 431), "{status}");
        // And far too many lines of it.
        let mut stream = connect(server, 3).await;
        let head = format!("GET /livez HTTP/1.1\r\nhost: {server}\r\n{}\r\n", "a: b\r\n".repeat(2_000));
        let _ = stream.write_all(head.as_bytes()).await;
        let (status, _) = answered(&mut stream).await;
        assert!(matches!(status, 0 | 431), "{status}");
        assert_eq!(api.get("/livez").await.status, 200);
    });
}
