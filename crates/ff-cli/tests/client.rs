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
    assert_eq!(wrong.status.code(), Some(1));
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
fn a_quota_is_made_changed_throttled_and_deleted() {
    let server = Server::start();
    let made = out(&server.ff(&["quota", "create", "--concurrency", "2", "-o", "ids"]));
    let id = made.trim();
    let set = ["quota", "set", id, "--rate-limit", "5", "--rate-window-ms", "1000", "--no-concurrency", "-o", "json"];
    let changed: Value = serde_json::from_str(&out(&server.ff(&set))).expect("JSON");
    assert_eq!((&changed["rate"]["limit"], &changed["concurrency"]), (&Value::from(5), &Value::Null));
    let throttled = out(&server.ff(&["quota", "throttle", id, "--key", "openai", "--for-ms", "60000"]));
    assert!(throttled.starts_with("nothing starts under openai until "), "{throttled}");
    let shown = out(&server.ff(&["quota", "show", id]));
    assert!(shown.contains("5 in 1000 ms sliding") && shown.contains("openai: rate 0/5"), "{shown}");
    assert_eq!(out(&server.ff(&["quota", "throttle", id, "--key", "openai", "--clear"])), "not throttled\n");
    assert_eq!(out(&server.ff(&["quota", "list", "-o", "ids"])).trim(), id);
    assert!(server.ff(&["quota", "delete", id]).status.success());
    assert_eq!(server.ff(&["quota", "show", id]).status.code(), Some(4));
}
