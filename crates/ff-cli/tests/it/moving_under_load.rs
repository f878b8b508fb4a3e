//! A store moves from host to host while its workers go on: each execution ends well, once.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::kit::{Server, out, posted};
use ff_testkit::tier::{Tier, tier};
use ff_testkit::{Aof, ClusterOptions, TestCluster, TestServer};
use serde_json::{Value, json};

/// How many are submitted on each store.
const EACH: usize = 24;
const LONG: Duration = Duration::from_secs(180);

fn ff(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ff")).args(args).env_remove("FF_STORE").output().expect("ff runs")
}

fn submit(server: &Server, store: usize) {
    let items: Vec<Value> = (0..EACH).map(|n| json!({"kind": "k", "input": {"store": store, "n": n}})).collect();
    let answer = posted(&server.url, "/v1/executions:batch", &json!(items));
    let answer = String::from_utf8(answer).expect("text");
    assert_eq!(answer.lines().filter(|line| line.contains("execution_id")).count(), EACH, "{answer}");
}

/// How many have ended well.
fn completed(server: &Server) -> usize {
    out(&server.ff(&["list", "--state", "completed", "--limit", "1000", "-o", "ids"])).lines().count()
}

fn until(what: &str, server: &Server, count: usize) {
    let began = Instant::now();
    loop {
        let done = completed(server);
        if done >= count {
            return;
        }
        assert!(began.elapsed() < LONG, "{what}: {done} of {count} within {LONG:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Every execution ended once, with the result of its own input.
fn each_ended_once(server: &Server, count: usize) {
    let list: Value = serde_json::from_str(&out(&server.ff(&["list", "--limit", "1000", "-o", "json"]))).expect("JSON");
    let items = list["items"].as_array().expect("items");
    assert_eq!(items.len(), count);
    for item in items {
        assert_eq!(item["state"], "completed", "{item}");
        let id = item["execution_id"].as_str().expect("an id");
        let shown: Value = serde_json::from_str(&out(&server.ff(&["show", id, "-o", "json"]))).expect("JSON");
        assert_eq!(shown["result"], shown["input"], "{shown:#}");
        let attempts = shown["attempts"].as_array().expect("attempts");
        let succeeded = attempts.iter().filter(|attempt| attempt["state"] == "succeeded").count();
        assert_eq!(succeeded, 1, "{shown:#}");
    }
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    let events = out(&server.ff(&["events", "--types", "execution.completed", "-o", "json", "--limit", "100000"]));
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        *ends.entry(event["execution_id"].as_str().expect("an id").to_owned()).or_default() += 1;
    }
    assert_eq!(ends.len(), count, "one event for each");
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
}

/// An export from Valkey waits half a minute until registrations have run out, so this is not of the quick tier.
#[test]
fn a_store_moves_while_its_workers_go_on() {
    if tier() == Tier::Quick {
        return;
    }
    let files = tempfile::tempdir().expect("a directory");
    let file = |name: &str| files.path().join(name).display().to_string();
    let valkey =
        TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }).expect("valkey");
    let cluster = TestCluster::start(ClusterOptions::default()).expect("a cluster");
    let back = format!("embedded:{}", file("back"));

    let mut server = Server::start();
    let url = server.url.clone();
    // They stay for the whole journey: whoever is at the address is their server.
    let workers: Vec<_> = ["w-1", "w-2"]
        .into_iter()
        .map(|instance| {
            let slow = ["--", "sh", "-c", "sleep 0.1; cat"];
            let args = ["worker", "exec", "--lane", "default", "--kind", "k", "--slots", "3", "--lease-ttl-ms", "3000"];
            let worker = server.going(&[args.as_slice(), &["--instance", instance], &slow].concat());
            worker.complains("serves k");
            worker
        })
        .collect();
    let mut directories = Vec::new();
    for (at, next) in [valkey.url(), cluster.url(), back.clone()].into_iter().enumerate() {
        submit(&server, at);
        until("some of it is done", &server, at * EACH + EACH / 4);
        // In the middle of it: work waits, runs and is being finished.
        let (directory, store) = server.stop();
        directories.push(directory);
        let export = file(&format!("{at}.ffx"));
        out(&ff(&["export", &export, "--store", &store]));
        out(&ff(&["import", &export, "--store", &next]));
        server = Server::instead_of(&url, tempfile::tempdir().expect("a directory"), next);
    }
    submit(&server, 3);
    until("all of it is done", &server, 4 * EACH);
    each_ended_once(&server, 4 * EACH);
    for worker in workers {
        assert_eq!(worker.end("-TERM"), Some(0));
    }
    let (_directory, store) = server.stop();
    let checked = out(&ff(&["fsck", "--store", &store]));
    assert!(checked.contains(" 0 findings"), "{checked}");
}
