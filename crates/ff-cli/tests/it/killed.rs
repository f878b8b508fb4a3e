//! A server that is killed in the middle of a large cancel: nothing of the flow runs afterwards, and all of it is cancelled.

use std::time::{Duration, Instant};

use crate::kit::{Server, out, posted};
use ff_testkit::{Aof, TestServer};
use serde_json::{Value, json};

const MEMBERS: usize = 3_000;
/// How long after the cancel was sent the server dies.
const MOMENTS_MS: [u64; 4] = [3, 15, 60, 200];
const SOON: Duration = Duration::from_secs(180);

fn flow(server: &Server) -> String {
    let members: Vec<Value> = (0..MEMBERS).map(|n| json!({"key": format!("m{n}"), "kind": "k"})).collect();
    let answer = server.post("/v1/flows", &json!({"kind": "wide", "members": members}));
    let id = answer["flow_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    // Sealing owes a walk of its own; the cancel is what is killed.
    eventually("every member waits", || counts(server, &id)["waiting"] == json!(MEMBERS));
    id
}

fn counts(server: &Server, id: &str) -> Value {
    shown(server, id)["counts"].clone()
}

fn shown(server: &Server, id: &str) -> Value {
    serde_json::from_str(&out(&server.ff(&["flow", "show", id, "-o", "json"]))).expect("JSON")
}

fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() < SOON, "{what}: not within {SOON:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a worker that comes at once gets.
fn claimed(server: &Server) -> usize {
    server.post("/v1/workers/w1/register", &json!({"worker_id": "w", "lanes": ["default"], "slots": 64}));
    let tasks = server.post("/v1/workers/w1/claim", &json!({"wait_ms": 0, "max": 64}));
    tasks["tasks"].as_array().unwrap_or_else(|| panic!("{tasks}")).len()
}

fn survive(mut server: Server) {
    let mut in_the_middle = 0;
    for moment in MOMENTS_MS {
        let id = flow(&server);
        let (url, path) = (server.url.clone(), format!("/v1/flows/{id}/cancel"));
        let cancel = std::thread::spawn(move || posted(&url, &path, &json!({"reason": "enough"})));
        std::thread::sleep(Duration::from_millis(moment));
        server.kill_and_start_again();
        let answered = !cancel.join().expect("curl ends").is_empty();
        let state = shown(&server, &id);
        if state["state"] != "cancelled" {
            assert!(!answered, "a cancel that was answered is done: {state}");
            server.post(&format!("/v1/flows/{id}/cancel"), &json!({"reason": "enough"}));
        } else if state["counts"]["cancelled"] != json!(MEMBERS) {
            in_the_middle += 1;
        }
        assert_eq!(claimed(&server), 0, "nothing of a cancelled flow is claimed");
        eventually("all are cancelled", || counts(&server, &id) == json!({"cancelled": MEMBERS}));
    }
    eprintln!("{in_the_middle} of {} kills came in the middle of the walk", MOMENTS_MS.len());
    let checked = out(&server.ff(&["list", "--state", "cancelled", "-o", "ids", "--limit", "5"]));
    assert_eq!(checked.lines().count(), 5);
}

#[test]
fn an_embedded_server_finishes_a_cancel_it_was_killed_in() {
    if !ff_testkit::tier::is_sampled("an_embedded_server_finishes_a_cancel_it_was_killed_in", 3) {
        return;
    }
    survive(Server::start());
}

#[test]
fn a_server_on_valkey_finishes_a_cancel_it_was_killed_in() {
    if !ff_testkit::tier::is_sampled("a_server_on_valkey_finishes_a_cancel_it_was_killed_in", 3) {
        return;
    }
    let store = TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }).expect("valkey");
    let directory = tempfile::tempdir().expect("a directory");
    survive(Server::on(directory, store.url()));
}
