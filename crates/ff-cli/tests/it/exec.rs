//! `ff worker exec` with real programs against a real `ff server` process.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::kit::{Going, Server, err, out};
use serde_json::{Value, json};

/// A worker that runs a shell script for kind `k` of lane `default`.
fn worker(server: &Server, script: &str, more: &[&str]) -> Going {
    let args: Vec<&str> = ["worker", "exec", "--lane", "default", "--kind", "k", "--instance", "sh-1"]
        .iter()
        .chain(more)
        .chain(&["--", "sh", "-c", script])
        .copied()
        .collect();
    let going = server.going(&args);
    going.complains("serves k");
    going
}

fn submitted(server: &Server, args: &[&str]) -> String {
    let args: Vec<&str> = ["submit", "--kind", "k", "-o", "ids"].iter().chain(args).copied().collect();
    out(&server.ff(&args)).trim().to_owned()
}

fn ended(server: &Server, id: &str) -> Value {
    let result = server.ff(&["result", id, "--wait-ms", "30000", "-o", "json"]);
    serde_json::from_slice(&result.stdout).unwrap_or_else(|error| panic!("{error}: {}", err(&result)))
}

fn shown(server: &Server, id: &str) -> Value {
    serde_json::from_str(&out(&server.ff(&["show", id, "-o", "json"]))).expect("JSON")
}

/// Waits for something another process does.
#[track_caller]
fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() < Duration::from_secs(180), "{what}: not within 180 s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn alive(pid: &str) -> bool {
    Command::new("kill").args(["-0", pid]).output().expect("kill runs").status.success()
}

#[test]
fn a_program_gets_its_input_and_its_lines_become_frames_and_its_result() {
    let server = Server::start();
    let script = r#"read -r input; echo "got $input"; echo "$FF_KIND $FF_LANE $FF_ATTEMPT $FF_TAG_TEAM $FF_NAMESPACE"; echo >&2 note
        printf '{"z": "%s", "big": 12345678901234567890}\n' "$FF_EXECUTION_ID""#;
    let worker = worker(&server, script, &["--slots", "2"]);
    let id = submitted(&server, &["--input", r#"{"b":1}"#, "--tag", "team=blue"]);
    let end = ended(&server, &id);
    assert_eq!(end["outcome"], "success", "{end}");
    let result = out(&server.ff(&["result", &id]));
    assert_eq!(result.trim(), format!(r#"{{"z": "{id}", "big": 12345678901234567890}}"#), "JSON keeps its text");
    assert_eq!(out(&server.ff(&["tail", &id])), format!("got {{\"b\":1}}\nk default 0 blue default\n{}", result));
    worker.complains("note");
    assert_eq!(worker.end("-TERM"), Some(0));
    assert_eq!(out(&server.ff(&["worker", "list", "-o", "ids"])), "", "it said goodbye");
}

#[test]
fn plain_output_is_a_text_and_none_is_no_result() {
    let server = Server::start();
    let _worker = worker(&server, "cat", &[]);
    let text = submitted(&server, &["--input-encoding", "base64", "--input", "b25lCnR3bwo="]);
    assert_eq!(ended(&server, &text)["result"], json!("one\ntwo"));
    let empty = submitted(&server, &[]);
    let end = ended(&server, &empty);
    assert_eq!((&end["outcome"], &end["result"]), (&json!("success"), &Value::Null));
}

#[test]
fn nothing_is_lost_that_was_written_before_the_exit() {
    let server = Server::start();
    // All of it fits into the pipe: the program has ended long before the server has its lines.
    let _worker = worker(&server, r#"yes | head -n 9000; echo '{"ok":true}'"#, &[]);
    let id = submitted(&server, &[]);
    assert_eq!(ended(&server, &id)["result"], json!({"ok": true}));
    let lines = out(&server.ff(&["tail", &id]));
    assert_eq!(lines.lines().filter(|line| *line == "y").count(), 9_000);
    assert_eq!(lines.lines().last(), Some(r#"{"ok":true}"#));
}

#[test]
fn what_a_program_leaves_behind_does_not_cost_its_result() {
    let server = Server::start();
    let script = r#"setsid sleep 600 & printf '{"left":%d}\n' $!"#;
    let _worker = worker(&server, script, &[]);
    let id = submitted(&server, &[]);
    let result = ended(&server, &id)["result"].clone();
    let left = result["left"].to_string();
    assert!(alive(&left), "{result}: it keeps stdout open");
    assert!(Command::new("kill").arg(&left).status().expect("kill runs").success());
}

#[test]
fn the_exit_code_decides_between_retry_and_failure() {
    let server = Server::start();
    let script = r#"read -r what; case "$what$FF_ATTEMPT" in
        again0) echo >&2 busy; exit 75;; again1) echo '"at last"';; *) echo >&2 "first"; echo >&2 "no such file"; exit 3;; esac"#;
    let _worker = worker(&server, script, &[]);
    let retry = ["--retry", r#"{"max_attempts":3,"backoff":{"type":"fixed","delay_ms":10},"jitter":"none"}"#];
    let again = submitted(&server, &["--input-encoding", "base64", "--input", "YWdhaW4=", retry[0], retry[1]]);
    assert_eq!(ended(&server, &again)["result"], json!("at last"));
    let attempts = &shown(&server, &again)["attempts"];
    assert_eq!(attempts[0]["failure"], json!({"reason": "exit code 75: busy", "category": "try_again"}));
    let failed = submitted(&server, &["--input", "1", retry[0], retry[1]]);
    let end = ended(&server, &failed);
    assert_eq!(end["outcome"], "failed");
    assert_eq!(end["failure"], json!({"reason": "exit code 3: first\nno such file", "category": "exit_code"}));
    assert_eq!(shown(&server, &failed)["attempts"].as_array().map(Vec::len), Some(1), "it is not tried again");
}

#[test]
fn a_cancelled_program_and_its_children_are_asked_to_end_then_killed() {
    let server = Server::start();
    // The shell takes no notice of SIGTERM, nor does what it started.
    let script = "trap '' TERM; sleep 600 & echo child $!; wait; wait; sleep 600";
    let _worker = worker(&server, script, &["--kill-grace-ms", "300", "--lease-ttl-ms", "2000"]);
    let id = submitted(&server, &[]);
    let tail = server.going(&["tail", &id]);
    let child = tail.says("child ").trim_start_matches("child ").to_owned();
    assert!(alive(&child));
    let requested = out(&server.ff(&["cancel", &id, "--grace-ms", "60000"]));
    assert!(requested.contains("is asked to end"), "{requested}");
    assert_eq!(ended(&server, &id)["outcome"], "cancelled");
    eventually("what the program started is gone", || !alive(&child));
}

#[test]
fn a_lease_outlives_its_first_term_while_the_program_runs() {
    let server = Server::start();
    let _worker = worker(&server, "sleep 6; echo 1", &["--lease-ttl-ms", "3000"]);
    let id = submitted(&server, &[]);
    assert_eq!(ended(&server, &id)["result"], json!(1));
    assert_eq!(shown(&server, &id)["attempts"].as_array().map(Vec::len), Some(1), "it was never taken back");
}

#[test]
fn sigterm_lets_programs_end_and_hands_back_those_that_do_not() {
    let server = Server::start();
    let going = worker(&server, "echo up; sleep 1; echo 1", &[]);
    let id = submitted(&server, &[]);
    server.going(&["tail", &id]).says("up");
    assert_eq!(going.end("-TERM"), Some(0));
    assert_eq!(ended(&server, &id)["result"], json!(1), "it had time to end");

    let going = worker(&server, "echo $$; exec sleep 600", &["--drain-grace-ms", "100", "--kill-grace-ms", "200"]);
    let id = submitted(&server, &[]);
    let pid = server.going(&["tail", &id]).says("");
    assert!(alive(&pid), "{pid}");
    assert_eq!(going.end("-TERM"), Some(0));
    eventually("the program is gone", || !alive(&pid));
    let execution = shown(&server, &id);
    assert_eq!(execution["state"], "waiting", "handed back: {execution}");
    assert_eq!(execution["failure"], Value::Null);
}

#[test]
fn what_cannot_be_run_says_so() {
    let server = Server::start();
    let nowhere =
        server.ff(&["worker", "exec", "--url", "http://127.0.0.1:9", "--lane", "l", "--kind", "k", "--", "true"]);
    assert!(err(&nowhere).contains("ff server"), "{}", err(&nowhere));
    let _worker = server.going(&["worker", "exec", "--lane", "default", "--kind", "k", "--", "/no/such/program"]);
    let id = submitted(&server, &["--retry", r#"{"max_attempts":1}"#]);
    let reason = ended(&server, &id)["failure"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("cannot start /no/such/program"), "{reason}");
}
