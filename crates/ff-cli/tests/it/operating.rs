//! What an operator asks and does: explain, history, hold, lanes, workers, events; against a real `ff server` process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::kit::{Server, err, out};
use serde_json::{Value, json};

fn submitted(server: &Server, args: &[&str]) -> String {
    let args: Vec<&str> = ["submit", "--kind", "send", "-o", "ids"].iter().chain(args).copied().collect();
    out(&server.ff(&args)).trim().to_owned()
}

/// Claims one task of a lane as worker w-1.
fn claimed(server: &Server, lane: &str) -> Value {
    server.post(
        "/v1/workers/w-1/register",
        &json!({"worker_id": "mailer", "lanes": [lane], "slots": 4, "capabilities": ["eu"]}),
    );
    let tasks = server.post("/v1/workers/w-1/claim", &json!({"wait_ms": 10_000, "max": 1}));
    tasks["tasks"].get(0).cloned().unwrap_or_else(|| panic!("{tasks}"))
}

fn fence(task: &Value) -> Value {
    json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]})
}

#[test]
fn explain_says_what_is_missing_and_what_would_help() {
    let server = Server::start();
    let id = submitted(&server, &["--lane", "mail", "--requires", "gpu"]);
    let said = out(&server.ff(&["explain", &id]));
    assert!(said.starts_with(&format!("{id}  waiting: it cannot run yet\n├─ ")), "{said}");
    for line in [
        "├─ no_worker  lane mail\n│  └─ → start a worker",
        "requires gpu  no live worker has them all",
        "└─ lane default/mail  active\n",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    assert!(out(&server.ff(&["lane", "pause", "mail"])).contains("default/mail  paused"));
    assert!(out(&server.ff(&["explain", &id])).contains("lane_state  state paused\n│  └─ → resume the lane"));
    assert!(out(&server.ff_with(&["hold", "-"], &id, &[])).contains("held"));
    assert!(out(&server.ff(&["explain", &id])).contains("held_by_operator"));
    assert!(out(&server.ff(&["release", &id])).contains("released"));
    let json: Value = serde_json::from_str(&out(&server.ff(&["explain", &id, "-o", "json"]))).expect("JSON");
    assert_eq!(json["lane"]["state"], "paused");
    let other = submitted(&server, &["--lane", "bulk", "--delay", "10m"]);
    let both = out(&server.ff_with(&["explain", "-"], &format!("{id}\n{other}\n"), &[]));
    assert!(both.contains("delayed  delay_until 20"), "a time is a time: {both}");
    let unknown = server.ff(&["explain", "0192a7c4-5b1e-7abc-8def-00112233aabb"]);
    assert_eq!(unknown.status.code(), Some(4));
}

#[test]
fn history_and_events_tell_what_happened() {
    let server = Server::start();
    let watching = server.going(&["events", "--follow", "--types", "execution.failed,execution.completed"]);
    let id = submitted(&server, &["--lane", "mail", "--retry", r#"{"max_attempts":1}"#, "--tag", "team=a"]);
    let task = claimed(&server, "mail");
    let body = json!({"fence": fence(&task), "reason": "no such address", "category": "bounce"});
    server.post(&format!("/v1/tasks/{id}/fail"), &body);
    assert!(out(&server.ff(&["replay", &id, "--reason", "again"])).contains("replayed"));
    let line = watching.says("execution.failed");
    assert!(line.contains(&id) && line.contains("on w-1"), "{line}");
    assert_eq!(watching.end("-INT"), Some(0), "Ctrl-C is no failure");

    let told = out(&server.ff(&["history", &id]));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], id);
    for (line, end) in lines[1..].iter().zip([
        "submitted: send in lane mail",
        "attempt 0 (initial) started on w-1",
        "attempt 0 failed: bounce: no such address",
        "replay by local: again",
    ]) {
        assert!(line.ends_with(end), "{end} in {told}");
    }

    let types = |args: &[&str]| -> Vec<String> {
        let args: Vec<&str> = ["events", "-o", "json"].iter().chain(args).copied().collect();
        let lines = out(&server.ff(&args));
        lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].as_str().expect("a type").to_owned())
            .collect()
    };
    let all = types(&["--execution", &id]);
    assert_eq!(all.first().map(String::as_str), Some("execution.submitted"), "{all:?}");
    assert!(all.contains(&"execution.started".to_owned()) && all.contains(&"execution.failed".to_owned()), "{all:?}");
    assert_eq!(types(&["--types", "execution.failed", "--lane", "mail", "--kind", "send"]), ["execution.failed"]);
    assert_eq!(types(&["--tag", "team=b"]), [] as [&str; 0]);
    assert_eq!(types(&["--limit", "1"]).len(), 1);
    let cursor = out(&server.ff(&["events", "--execution", &id, "--limit", "1", "-o", "ids"]));
    assert_eq!(types(&["--execution", &id, "--after", cursor.trim()]), all[1..]);
}

#[test]
fn budgets_and_quotas_are_watched() {
    let server = Server::start();
    let budget = out(&server.ff(&["budget", "create", "--hard", "tokens=100", "-o", "ids"])).trim().to_owned();
    let quota = out(&server.ff(&["quota", "create", "--concurrency", "1", "-o", "ids"])).trim().to_owned();
    let (spent, held) = (server.going(&["budget", "show", &budget, "--watch"]), format!("{budget}:tokens=500"));
    spent.says("0 wait");
    let (listed, waiting) =
        (server.going(&["budget", "list", "--watch"]), server.going(&["budget", "blocked", &budget, "--watch"]));
    waiting.says("0 wait");
    listed.says(&format!("{budget}  custom  tokens        0     0"));
    server.ff(&["budget", "usage", &budget, "--amount", "tokens=42"]);
    spent.says("tokens       42     0");
    listed.says("tokens       42     0");
    let key = format!("{quota}:openai");
    let keys = server.going(&["quota", "show", &quota, "--watch"]);
    keys.says(&quota);
    let first = submitted(&server, &["--quota", &key]);
    claimed(&server, "default");
    keys.says("openai: ");
    // A worker asks for work: what is too much is told to wait.
    submitted(&server, &["--budget", &held]);
    server.post("/v1/workers/w-1/claim", &json!({"wait_ms": 1_000}));
    waiting.says("1 wait");
    spent.says("1 wait");
    assert!(out(&server.ff(&["show", &first])).contains("lease"));
}

#[test]
fn lanes_are_defined_watched_and_stopped() {
    let server = Server::start();
    let nothing = server.ff(&["lane", "set", "mail"]);
    assert!(err(&nothing).contains("--max-active"), "{}", err(&nothing));
    assert!(
        out(&server.ff(&["lane", "set", "mail", "--max-active", "2", "--max-depth", "10"]))
            .contains("default/mail  active")
    );
    let watching = server.going(&["lane", "list", "--watch"]);
    watching.says("mail  active        0        0");
    submitted(&server, &["--lane", "mail"]);
    watching.says("mail  active        1        0");
    claimed(&server, "mail");
    watching.says("mail  active        0        1");
    drop(watching);
    for (verb, state) in [("pause", "paused"), ("drain", "draining"), ("disable", "disabled"), ("resume", "active")] {
        assert_eq!(out(&server.ff(&["lane", verb, "mail"])), format!("default/mail  {state}\n"));
    }
    let lane: Value =
        serde_json::from_str(&out(&server.ff(&["lane", "set", "mail", "--max-active", "none", "-o", "json"])))
            .expect("JSON");
    assert_eq!((&lane["max_active"], &lane["max_depth"]), (&Value::Null, &json!(10)));
    let shown = out(&server.ff(&["lane", "show", "mail"]));
    assert!(
        shown.contains("lane             default/mail\n")
            && shown.contains("running          1\n")
            && shown.contains("order            by priority, then the oldest first\n"),
        "{shown}"
    );
    assert_eq!(out(&server.ff(&["lane", "list", "-o", "ids"])), "mail\n");
    let unknown = server.ff(&["lane", "show", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(4), "{}", err(&unknown));
}

#[test]
fn workers_are_listed_shown_and_drained() {
    let server = Server::start();
    let id = submitted(&server, &["--lane", "mail"]);
    claimed(&server, "mail");
    let listed = out(&server.ff(&["worker", "list"]));
    assert!(listed.contains("w-1       mailer  live       4"), "{listed}");
    assert_eq!(out(&server.ff(&["worker", "list", "-o", "ids"])), "w-1\n");
    let shown = out(&server.ff(&["worker", "show", "w-1"]));
    for line in ["lanes            mail\n", "slots            4, 1 in use\n", &format!("holds            {id}  send\n")]
    {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert_eq!(out(&server.ff(&["worker", "drain", "w-1"])), "w-1  draining\n");
    assert!(out(&server.ff(&["worker", "list"])).contains("draining"));
    for verb in ["show", "drain"] {
        let unknown = server.ff(&["worker", verb, "w-9"]);
        assert_eq!(unknown.status.code(), Some(4), "{verb}: {}", err(&unknown));
        assert!(err(&unknown).contains("ff worker list"));
    }
}

#[test]
fn a_mistyped_lane_does_not_become_one() {
    let server = Server::start();
    for verb in ["pause", "resume", "drain", "disable"] {
        let refused = server.ff(&["lane", verb, "nosuch"]);
        assert_eq!(refused.status.code(), Some(4), "{verb}: {}", err(&refused));
        assert!(err(&refused).contains("lane_not_found") && err(&refused).contains("ff lane set"), "{}", err(&refused));
    }
    assert!(!out(&server.ff(&["lane", "list"])).contains("nosuch"));
    out(&server.ff(&["lane", "set", "mail", "--weight", "2"]));
    assert!(out(&server.ff(&["lane", "pause", "mail"])).contains("default/mail  paused"));
}

#[test]
fn many_are_cancelled_and_replayed_by_filters() {
    let server = Server::start();
    for n in 0..7 {
        submitted(&server, &["--lane", if n < 5 { "mail" } else { "bulk" }]);
    }
    let narrowed = ["cancel", "--lane", "mail", "--state", "waiting", "--kind", "send", "--reason", "not today"];
    assert_eq!(out(&server.ff(&narrowed)), "5 matched: 5 cancelled\n", "filters narrow each other");
    assert_eq!(out(&server.ff(&["cancel", "--lane", "mail"])), "0 matched\n");
    let done: Value =
        serde_json::from_str(&out(&server.ff(&["replay", "--lane", "mail", "--state", "cancelled", "-o", "json"])))
            .expect("JSON");
    assert_eq!((&done["matched"], &done["replayed"]), (&json!(5), &json!(5)));
    for wrong in [vec!["cancel"], vec!["cancel", "0192a7c4-5b1e-7abc-8def-00112233aabb", "--lane", "mail"]] {
        assert_eq!(server.ff(&wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn q_leaves_top() {
    let server = Server::start();
    // `script` gives it a terminal of its own.
    let command = format!("{} top --every 100ms --url {}", env!("CARGO_BIN_EXE_ff"), server.url);
    let mut top = Command::new("script")
        .args(["-qefc", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script runs; it is part of util-linux");
    let mut shown = BufReader::new(top.stdout.take().expect("stdout"));
    let mut line = String::new();
    while !line.contains("per second") {
        line.clear();
        assert!(shown.read_line(&mut line).expect("text") > 0, "it draws");
    }
    top.stdin.take().expect("stdin").write_all(b"xq").expect("it takes keys");
    let rest = std::thread::spawn(move || std::io::copy(&mut shown, &mut std::io::sink()));
    assert_eq!(top.wait().expect("it ends").code(), Some(0));
    rest.join().expect("it ends").expect("text");
}

#[test]
fn top_draws_one_frame() {
    let server = Server::start();
    submitted(&server, &["--lane", "mail"]);
    submitted(&server, &["--lane", "mail"]);
    claimed(&server, "mail");
    let frame = out(&server.ff(&["top", "--once"]));
    let lines: Vec<&str> = frame.lines().collect();
    assert!(lines[0].starts_with(&format!("FlowFabric 0.1.0 at {}   embedded store, fsync", server.url)), "{frame}");
    assert!(lines[1].starts_with("2 executions, 0 flows"), "{frame}");
    assert_eq!(lines[3], "LANE  STATE   WAITING  RUNNING  DELAYED  SUSPENDED  BLOCKED  OLDEST  DONE/S  FAILED/S");
    assert!(lines[4].starts_with("mail  active        1        1        0          0        0 "), "{frame}");
    assert!(lines[7].starts_with("w-1       mailer  live       4 "), "{frame}");
    let live = server.going(&["top", "--every-ms", "100"]);
    live.says("per second:");
    live.says("mail  ");
    assert_eq!(live.end("-INT"), Some(0));
}
