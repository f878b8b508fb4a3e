//! The client verbs against a real `ff server` process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A running server on a free port; killed when it goes.
struct Server {
    process: Child,
    url: String,
    _directory: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(["server", "--no-auth", "--listen", "127.0.0.1:0", "--store"])
            .arg(format!("embedded:{}", directory.path().display()))
            .stderr(Stdio::piped())
            .spawn()
            .expect("ff starts");
        let mut lines = BufReader::new(process.stderr.take().expect("stderr")).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("listening on ")?.1.split_once(',')?.0.to_owned()))
            .expect("the server says where it listens");
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        Self { process, url, _directory: directory }
    }

    fn ff(&self, args: &[&str]) -> Output {
        self.ff_with(args, "")
    }

    fn ff_with(&self, args: &[&str], stdin: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(args)
            .env("FF_URL", &self.url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ff starts");
        child.stdin.take().expect("stdin").write_all(stdin.as_bytes()).expect("it reads");
        child.wait_with_output().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn work_is_submitted_listed_shown_cancelled_and_replayed() {
    let server = Server::start();
    let input = r#"{"b":12345678901234567890,"a":1}"#;
    let id = out(&server.ff(&[
        "submit",
        "--kind",
        "send",
        "--lane",
        "mail",
        "--input",
        input,
        "--tag",
        "team=a",
        "--priority",
        "3",
        "-o",
        "ids",
    ]));
    let id = id.trim();
    let again = out(&server.ff_with(&["submit", "--kind", "send", "--idempotency-key", "k", "--input", "-"], "[1]"));
    assert!(again.contains("waiting"), "{again}");
    assert!(
        out(&server.ff_with(&["submit", "--kind", "send", "--idempotency-key", "k", "--input", "-"], "[1]"))
            .contains("submitted before")
    );

    assert_eq!(out(&server.ff(&["list", "--lane", "mail", "-o", "ids"])).trim(), id);
    assert_eq!(out(&server.ff(&["list", "--tag", "team=a", "-o", "ids"])).trim(), id);
    assert!(out(&server.ff(&["list"])).contains(id));
    assert!(out(&server.ff(&["show", id])).contains(input), "payloads keep their text");
    let shown = out(&server.ff(&["show", id, "-o", "json"]));
    assert!(shown.contains(input), "the answer as it came: {shown}");
    assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON")["priority"], 3);

    assert_eq!(server.ff(&["result", id]).status.code(), Some(5), "it has not ended");
    assert!(out(&server.ff(&["cancel", id, "--reason", "enough"])).contains("cancelled"));
    let result = server.ff(&["result", id]);
    assert_eq!(result.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&result.stderr).contains("cancelled"));
    assert!(out(&server.ff_with(&["replay", "-"], &format!("{id}\n"))).contains("replayed"));
}

#[test]
fn what_cannot_be_done_says_what_to_do_next() {
    let server = Server::start();
    let unknown = "0192a7c4-5b1e-7abc-8def-00112233aabb";
    for verb in ["show", "result", "cancel", "replay"] {
        let refused = server.ff(&[verb, unknown]);
        assert_eq!(refused.status.code(), Some(4), "{verb}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("ff list"), "{verb}");
    }
    let wrong = server.ff(&["submit", "--kind", "k", "--priority", "9001"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("priority"));
    let text = server.ff(&["submit", "--kind", "k", "--input", "hello"]);
    assert!(String::from_utf8_lossy(&text.stderr).contains("base64"));
    let nobody = server.ff(&["list", "--url", "http://127.0.0.1:9"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("ff server"), "{nobody:?}");
    for (args, text) in [
        (vec!["server", "--store", "embedded:/nowhere/else", "--no-auth", "--listen", "0.0.0.0:0"], "loopback"),
        (
            vec!["server", "--store", "embedded:/nowhere/else", "--listen", "0.0.0.0:0", "--tls-cert", "c.pem"],
            "--tls-key",
        ),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let refused = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(&args)
            .env("FF_DATA_DIR", directory.path())
            .output()
            .expect("ff runs");
        assert!(!refused.status.success());
        assert!(String::from_utf8_lossy(&refused.stderr).contains(text), "{refused:?}");
    }
}

#[test]
fn sigterm_ends_a_server_well() {
    let mut server = Server::start();
    out(&server.ff(&["submit", "--kind", "k"]));
    let pid = server.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    assert_eq!(server.process.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_budget_is_made_raised_used_corrected_and_deleted() {
    let server = Server::start();
    let create = ["budget", "create", "--hard", "tokens=100", "--soft", "tokens=80", "--dimension", "usd", "-o", "ids"];
    let made = out(&server.ff(&create));
    let id = made.trim();
    assert_eq!(out(&server.ff(&["budget", "usage", id, "--amount", "tokens=60", "--amount", "usd=7"])), "ok\n");
    let breach = server.ff(&["budget", "usage", id, "--amount", "tokens=60"]);
    assert_eq!(breach.status.code(), Some(6));
    assert_eq!(String::from_utf8_lossy(&breach.stdout), "hard_breach: 60 of 100 tokens used\n");
    let held = out(&server.ff(&["budget", "reserve", id, "--amount", "tokens=30", "-o", "ids"]));
    let shown: Value = serde_json::from_str(&out(&server.ff(&["budget", "show", id, "-o", "json"]))).expect("JSON");
    assert_eq!(shown["dimensions"]["tokens"]["remaining"], 10);
    let settle = ["budget", "settle", id, "--reservation-id", held.trim(), "--amount", "tokens=25"];
    assert_eq!(out(&server.ff(&settle)), "soft_breach: 85 of 80 tokens used\n");
    let raised = out(&server.ff(&["budget", "raise", id, "--hard", "tokens=200", "--no-soft", "tokens", "-o", "json"]));
    let raised: Value = serde_json::from_str(&raised).expect("JSON");
    assert_eq!(
        (&raised["dimensions"]["tokens"]["hard"], &raised["dimensions"]["tokens"]["soft"]),
        (&200.into(), &Value::Null)
    );
    let correct = ["budget", "correct", id, "--dimension", "tokens", "--delta", "-5", "--reason", "counted twice"];
    let corrected = out(&server.ff(&correct));
    assert!(corrected.lines().nth(1).is_some_and(|line| line.split_whitespace().nth(3) == Some("80")), "{corrected}");
    let shown = out(&server.ff(&["budget", "show", id]));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["BUDGET", "SCOPE", "DIMENSION", "USED", "HELD", "HARD", "SOFT", "LEFT"]
    );
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), [id, "custom", "tokens", "80", "0", "200", "-", "120"]);
    assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), [id, "custom", "usd", "7", "0", "-", "-", "-"]);
    assert_eq!(lines[3], "  namespace default, on_soft notify, on_hard suspend, no reset");
    assert!(lines[4].contains("change by "), "{shown}");
    assert!(lines[5].contains("correct by ") && lines[5].ends_with(": -5 tokens (counted twice)"), "{shown}");
    assert_eq!(lines[6..], ["0 wait"]);
    assert_eq!(out(&server.ff(&["budget", "blocked", id])), "0 wait\n");
    let reset = out(&server.ff(&["budget", "reset", id]));
    assert!(reset.lines().nth(1).is_some_and(|line| line.split_whitespace().nth(3) == Some("0")), "{reset}");
    assert!(server.ff(&["budget", "approve", id]).status.success());
    assert_eq!(out(&server.ff(&["budget", "list", "--scope", "custom", "-o", "ids"])).trim(), id);
    let wrong = server.ff(&["budget", "usage", id, "--amount", "apples=1"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("dimensions.apples"));
    let twice = server.ff(&["budget", "usage", id, "--amount", "tokens=1", "--amount", "tokens=2"]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("names tokens twice"));

    let quota = out(&server.ff(&["quota", "create", "--concurrency", "2", "-o", "ids"]));
    let quota = quota.trim();
    let (budget, slot) = (format!("{id}:tokens=5"), format!("{quota}:tenant:a:3"));
    let submitted = out(&server.ff(&["submit", "--kind", "k", "--budget", &budget, "--quota", &slot, "-o", "ids"]));
    let shown = out(&server.ff(&["show", submitted.trim(), "-o", "json"]));
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(
        (&shown["budgets"][0]["budget_id"], &shown["budgets"][0]["estimate"]["tokens"]),
        (&id.into(), &5.into())
    );
    assert_eq!((&shown["quotas"][0]["key"], &shown["quotas"][0]["weight"]), (&"tenant:a".into(), &3.into()));
    assert_eq!(out(&server.ff(&["quota", "blocked", quota, "--key", "tenant:a"])), "0 wait\n");
    assert!(server.ff(&["budget", "delete", id]).status.success());
    let gone = server.ff(&["budget", "show", id]);
    assert_eq!(gone.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("ff budget list"));
}

#[test]
fn a_quota_is_made_changed_throttled_and_deleted() {
    let server = Server::start();
    let made = out(&server.ff(&["quota", "create", "--concurrency", "2", "-o", "ids"]));
    let id = made.trim();
    let set = ["quota", "set", id, "--rate-limit", "5", "--rate-window", "1s", "--no-concurrency", "-o", "json"];
    let changed: Value = serde_json::from_str(&out(&server.ff(&set))).expect("JSON");
    assert_eq!((&changed["rate"]["limit"], &changed["concurrency"]), (&Value::from(5), &Value::Null));
    let throttled = out(&server.ff(&["quota", "throttle", id, "--key", "openai", "--for", "1m"]));
    assert!(throttled.starts_with("nothing starts under openai until "), "{throttled}");
    let shown = out(&server.ff(&["quota", "show", id]));
    assert!(shown.contains("5 in 1s sliding") && shown.contains("openai: rate 0/5"), "{shown}");
    assert_eq!(out(&server.ff(&["quota", "throttle", id, "--key", "openai", "--clear"])), "not throttled\n");
    assert_eq!(out(&server.ff(&["quota", "list", "-o", "ids"])).trim(), id);
    assert!(server.ff(&["quota", "delete", id]).status.success());
    assert_eq!(server.ff(&["quota", "show", id]).status.code(), Some(4));
}
