//! A store moves between embedded and Valkey with work in flight, and everything in it ends well.

use std::process::{Command, Output};

use crate::kit::{Server, err, out};
use ff_testkit::{Aof, TestServer};
use serde_json::{Value, json};

fn ff(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ff")).args(args).env_remove("FF_STORE").output().expect("ff runs")
}

fn submitted(server: &Server, args: &[&str]) -> String {
    let args: Vec<&str> = ["submit", "--kind", "k", "-o", "ids"].iter().chain(args).copied().collect();
    out(&server.ff(&args)).trim().to_owned()
}

fn counted(server: &Server) -> Value {
    let list: Value = serde_json::from_str(&out(&server.ff(&["list", "--limit", "1000", "-o", "json"]))).expect("JSON");
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for item in list["items"].as_array().expect("items") {
        *counts.entry(item["state"].as_str().expect("a state").to_owned()).or_default() += 1;
    }
    json!(counts)
}

const FLOW: &str = r#"{"kind":"f","members":[{"key":"a","kind":"k"},{"key":"b","kind":"k"}],"edges":[{"from":"a","to":"b","pass_as":"a"}]}"#;

/// Waiting, delayed, running, failing, ended, limited by a quota, and a flow half done; the answer is one that is held.
fn work(server: &Server) -> String {
    for n in 0..40 {
        submitted(server, &["--input", &n.to_string(), "--tag", "team=a", "--priority", &(n % 5).to_string()]);
    }
    submitted(server, &["--delay-ms", "1500"]);
    let ended = submitted(server, &["--lane", "other"]);
    out(&server.ff(&["cancel", &ended, "--reason", "enough"]));
    let quota = out(&server.ff(&["quota", "create", "--concurrency", "1", "-o", "ids"])).trim().to_owned();
    let quotas = json!([{"quota_id": quota, "key": "x"}]).to_string();
    for _ in 0..3 {
        submitted(server, &["--quotas", &quotas]);
    }
    out(&server.ff_with(&["flow", "submit", "-"], FLOW, &[]));
    let held = submitted(server, &[]);
    out(&server.ff(&["hold", &held]));
    out(&server.ff(&["lane", "set", "default", "--max-active", "8"]));
    server.post("/v1/workers/w-1/register", &json!({"worker_id": "w", "lanes": ["default"], "slots": 8}));
    let mut tasks = Vec::new();
    // What is worked on below is leased for long, what is left lying for a moment.
    for (until, lease_ttl_ms) in [(4, 600_000), (6, 2_000)] {
        while tasks.len() < until {
            let claim = json!({"wait_ms": 5_000, "max": until - tasks.len(), "lease_ttl_ms": lease_ttl_ms});
            let claimed = server.post("/v1/workers/w-1/claim", &claim);
            tasks.extend(claimed["tasks"].as_array().unwrap_or_else(|| panic!("{claimed}")).clone());
        }
    }
    let fence = |task: &Value| json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]});
    let at = |task: &Value, verb: &str| format!("/v1/tasks/{}/{verb}", task["execution_id"].as_str().expect("an id"));
    server.post(
        &at(&tasks[0], "frames"),
        &json!({"fence": fence(&tasks[0]), "frames": [{"type": "t", "payload": "half a sentence"}]}),
    );
    server.post(&at(&tasks[1], "complete"), &json!({"fence": fence(&tasks[1]), "result": {"b": 1, "a": 12345}}));
    server.post(&at(&tasks[2], "fail"), &json!({"fence": fence(&tasks[2]), "reason": "no", "category": "oops"}));
    let waits = json!({"fence": fence(&tasks[3]), "reason": "waiting_for_approval", "waitpoints": [{"key": "ok"}], "timeout_ms": 2_000, "timeout_behavior": "auto_resume"});
    let suspended = server.post(&at(&tasks[3], "suspend"), &waits);
    assert_eq!(suspended["outcome"], "suspended", "{suspended}");
    let revoke = format!("/v1/executions/{}/revoke-lease", tasks[0]["execution_id"].as_str().expect("an id"));
    server.post(&revoke, &json!({}));
    // Two leases stay open: their worker is gone when the store has moved. An export waits for nobody who has left.
    let leave = Command::new("curl").args(["-sS", "-X", "DELETE", &format!("{}/v1/workers/w-1", server.url)]).status();
    assert!(leave.expect("curl runs").success());
    held
}

/// Runs everything there is to its end.
fn finish(server: &Server, held: &str) {
    out(&server.ff(&["release", held]));
    let worker = server.going(&["worker", "exec", "--lane", "default", "--kind", "k", "--slots", "8", "--", "cat"]);
    worker.complains("serves k");
    let ids = out(&server.ff(&["list", "--limit", "1000", "-o", "ids"]));
    for id in ids.lines() {
        let result = server.ff(&["result", id, "--wait-ms", "60000", "-o", "json"]);
        assert_ne!(result.status.code(), Some(5), "{id} has not ended: {}", out(&server.ff(&["explain", id])));
    }
    assert_eq!(worker.end("-TERM"), Some(0));
}

fn clean(store: &str) {
    let checked = out(&ff(&["fsck", "--store", store]));
    assert!(checked.contains(" 0 findings"), "{checked}");
}

#[test]
fn work_in_flight_moves_from_embedded_to_valkey_and_back() {
    let server = Server::start();
    let held = work(&server);
    let before = counted(&server);
    let (directory, embedded) = server.stop();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let first = ff(&["export", &file("one.ffx"), "--store", &embedded]);
    out(&first);

    let valkey =
        TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }).expect("valkey");
    out(&ff(&["import", &file("one.ffx"), "--store", &valkey.url()]));
    let full = ff(&["import", &file("one.ffx"), "--store", &valkey.url()]);
    assert!(err(&full).contains("not empty"), "{}", err(&full));
    out(&ff(&["export", &file("two.ffx"), "--store", &valkey.url()]));

    // Back again before anything has moved: the same store as before.
    let back = format!("embedded:{}", file("back"));
    out(&ff(&["import", &file("two.ffx"), "--store", &back]));
    clean(&back);
    // Nobody but fsck has looked at it: every key is there again.
    assert_eq!(err(&ff(&["export", &file("three.ffx"), "--store", &back])), err(&first));
    let server = Server::on(tempfile::tempdir().expect("a directory"), valkey.url());
    let alive = ff(&["export", &file("four.ffx"), "--store", &valkey.url()]);
    assert!(err(&alive).contains("is alive on this store"), "{}", err(&alive));
    assert_eq!(
        counted(&server).as_object().map(|counts| counts.values().filter_map(Value::as_u64).sum::<u64>()),
        before.as_object().map(|counts| counts.values().filter_map(Value::as_u64).sum::<u64>())
    );
    finish(&server, &held);
    let ended = counted(&server);
    let (_first, store) = server.stop();
    clean(&store);

    // What has ended travels too.
    let last = format!("embedded:{}", file("last"));
    out(&ff(&["export", &file("five.ffx"), "--store", &store]));
    let bytes = std::fs::read(file("five.ffx")).expect("the file");
    let mut cut = Command::new(env!("CARGO_BIN_EXE_ff"));
    std::fs::write(file("cut.ffx"), &bytes[..bytes.len() - 9]).expect("a file");
    let refused = cut.args(["import", &file("cut.ffx"), "--store", &last]).output().expect("ff runs");
    assert!(err(&refused).contains("damaged"), "{}", err(&refused));
    let shell = format!("cat {} | {} import - --store {last}", file("five.ffx"), env!("CARGO_BIN_EXE_ff"));
    out(&Command::new("sh").args(["-c", &shell]).output().expect("sh runs"));
    clean(&last);
    let server = Server::on(tempfile::tempdir().expect("a directory"), last);
    assert_eq!(counted(&server), ended);
    let flow: Value = serde_json::from_str(&out(&server.ff(&["flow", "list", "-o", "json"]))).expect("JSON");
    assert_eq!(flow["items"][0]["state"], "completed");
    // And the store that came back goes on by itself.
    let server = Server::on(tempfile::tempdir().expect("a directory"), back);
    finish(&server, &held);
    let (_second, store) = server.stop();
    clean(&store);
}
