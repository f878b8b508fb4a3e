//! What a shell sees: output forms, --watch, batches, completions, exit codes, settings; against a real `ff server` process.

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};

use crate::kit::{Server, err, out};
use serde_json::Value;

fn ff(args: &[&str], env: &[(&str, &str)], directory: &std::path::Path) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(args)
        .env_remove("FF_URL")
        .env_remove("FF_CONFIG")
        .envs(env.iter().copied())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("ff runs")
}

#[test]
fn a_batch_is_submitted_line_by_line() {
    let server = Server::start();
    let mut lines: String =
        (0..2_500).map(|n| format!("{{\"kind\":\"k\",\"lane\":\"bulk\",\"input\":{n}}}\n")).collect();
    lines.push_str("\n{\"kind\":\"k\",\"prioritty\":1}\n{\"kind\":\"k\",\"idempotency_key\":\"once\"}\n{\"kind\":\"k\",\"idempotency_key\":\"once\"}\n");
    std::fs::write(server.directory().join("work.ndjson"), &lines).expect("a file");
    let done = server.ff(&["submit", "--batch", "work.ndjson"]);
    assert_eq!(done.status.code(), Some(1), "one was refused");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "2502 submitted, 1 submitted before, 1 refused\n");
    assert!(err(&done).contains("line 2502: ") && err(&done).contains("prioritty"), "{}", err(&done));
    let ids = out(&server.ff_with(&["submit", "--batch", "-", "-o", "ids"], "{\"kind\":\"a\"}\n{\"kind\":\"b\"}", &[]));
    assert_eq!(ids.lines().count(), 2);
    assert_eq!(out(&server.ff_with(&["cancel", "-"], &ids, &[])).matches("cancelled").count(), 2);
    let json = out(&server.ff_with(&["submit", "--batch", "-", "-o", "json"], "{\"kind\":\"a\"}", &[]));
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON")["state"], "waiting");
    let both = server.ff(&["submit", "--batch", "-", "--lane", "x"]);
    assert!(err(&both).contains("--lane says nothing about a batch"), "{}", err(&both));
    assert_eq!(server.ff(&["submit"]).status.code(), Some(2), "a kind or a batch");
}

#[test]
fn views_follow_what_changes() {
    let server = Server::start();
    let listing = server.going(&["list", "--watch", "-o", "ids"]);
    let id = out(&server.ff(&["submit", "--kind", "k", "-o", "ids"])).trim().to_owned();
    assert_eq!(listing.says(&id), id);
    let showing = server.going(&["show", &id, "--watch"]);
    showing.says("state            waiting");
    out(&server.ff(&["cancel", &id]));
    showing.says("state            cancelled");
    assert_eq!(showing.end("-INT"), Some(0));
    let flow = out(&server.ff_with(
        &["flow", "submit", "-", "-o", "ids"],
        r#"{"kind":"f","members":[{"key":"a","kind":"k"}]}"#,
        &[],
    ));
    let flow = flow.trim();
    let showing = server.going(&["flow", "show", flow, "--watch"]);
    showing.says("running");
    out(&server.ff(&["flow", "cancel", flow]));
    showing.says("cancelled");
    let two = server.ff(&["show", &id, &id, "--watch"]);
    assert_eq!(two.status.code(), Some(2));
    assert!(err(&two).contains("ff list --watch"), "{}", err(&two));
}

#[test]
fn nothing_is_coloured_but_a_terminal() {
    let server = Server::start();
    out(&server.ff(&["submit", "--kind", "k"]));
    for args in [vec!["list"], vec!["lane", "list"], vec!["worker", "list"]] {
        assert!(!out(&server.ff(&args)).contains('\u{1b}'), "{args:?}");
    }
}

#[test]
fn completions_and_exit_codes_are_told() {
    let here = std::env::temp_dir();
    for (shell, text) in [("bash", "_ff()"), ("zsh", "#compdef ff"), ("fish", "complete -c ff")] {
        let said = out(&ff(&["completions", shell], &[], &here));
        assert!(said.contains(text) && said.contains("explain"), "{shell}");
    }
    let bash = out(&ff(&["completions", "bash"], &[], &here));
    let mut check = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().expect("bash runs");
    check.stdin.take().expect("stdin").write_all(bash.as_bytes()).expect("it reads");
    assert!(check.wait().expect("it ends").success(), "bash takes it");
    for args in [["exit-codes"].as_slice(), &["help", "exit-codes"]] {
        assert!(out(&ff(args, &[], &here)).contains("4  an id, lane, worker or key is unknown"), "{args:?}");
    }
}

#[test]
fn a_wrong_command_line_exits_2_and_says_what_would_be_right() {
    let server = Server::start();
    for (args, said) in [
        (vec!["submit", "--kind", "k", "--input", "{bad"], "the input is not JSON"),
        (vec!["submit", "--kind", "k", "--input", "@/nope"], "cannot read the input from /nope: No such file"),
        (vec!["submit", "--kind", "k", "--retry", "{bad"], "--retry is not JSON"),
        (vec!["submit", "--kind", "k", "--delay-ms", "1", "--delay-until", "2"], "'--delay <DURATION>' cannot be used"),
        (vec!["submit", "--batch", "/nope"], "cannot read /nope"),
        (vec!["list", "--url", "ftp://x"], "ftp://x is not the address of a server"),
        (vec!["list", "--state", "bogus"], "waiting, delayed,"),
        (vec!["cancel", "--state", "bogus"], "waiting, delayed,"),
        (vec!["flow", "list", "--state", "bogus"], "open, running,"),
        (vec!["token", "create", "x", "--role", "nope"], "read, submit, signal,"),
        (vec!["worker", "list", "--limit", "0"], "--limit"),
        (vec!["budget", "list", "--limit", "many"], "limit"),
        (vec!["submit", "--kind", "k", "--delay", "5"], "5 has no unit; say 5s, 5m, 5h, 5d or 5ms"),
        (vec!["list", "--since", "soon"], "1h30m"),
        (vec!["list", "--created-after", "noon"], "2026-11-20T09:00"),
        (vec!["show", "bogus"], "must be a UUID"),
        (vec!["list", "--token", "@/nope"], "cannot read the token in /nope"),
        (vec!["server", "--listen", "0.0.0.0"], "ADDRESS:PORT"),
        (vec!["fsck", "--store", "embedded:nonexist"], "nonexist is not there; say which store with --store"),
    ] {
        let refused = server.ff(&args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {}", err(&refused));
        assert!(err(&refused).contains(said), "{said:?} in {}", err(&refused));
    }
    assert!(!server.directory().join("nonexist").exists(), "looking at a store makes none");
    let store = server.store().to_owned();
    let taken = server.ff(&["fsck", "--store", &store]);
    assert!(err(&taken).contains("is in use by process") && err(&taken).contains("--url"), "{}", err(&taken));
}

/// A list is filtered by the server page by page, and a page may be empty while more follows.
#[test]
fn a_list_is_read_to_its_end() {
    let server = Server::start();
    let work = |lane: &str, n: usize| format!("{{\"kind\":\"k\",\"lane\":\"{lane}\"}}\n").repeat(n);
    let submit = |lines: &str| out(&server.ff_with(&["submit", "--batch", "-"], lines, &[]));
    submit(&work("few", 6));
    submit(&work("many", 4_000));
    let few = out(&server.ff(&["list", "--lane", "few"]));
    assert_eq!(few.lines().count(), 7, "{few}");
    let json: Value = serde_json::from_str(&out(&server.ff(&["list", "--lane", "few", "-o", "json"]))).expect("JSON");
    assert_eq!((json["items"].as_array().map(Vec::len), &json["next_cursor"]), (Some(6), &Value::Null));
    assert_eq!(out(&server.ff(&["list"])).lines().count(), 101, "a screenful unless said");

    let some = server.ff(&["list", "--lane", "many", "-o", "ids", "--limit", "1500"]);
    assert_eq!(out(&some).lines().count(), 1_500);
    let said = err(&some);
    let cursor = said.trim().strip_prefix("more with --cursor ").unwrap_or_else(|| panic!("{said}"));
    let rest = out(&server.ff(&["list", "--lane", "many", "-o", "ids", "--cursor", cursor]));
    assert_eq!(rest.lines().count(), 2_500);
    let all: std::collections::BTreeSet<String> = out(&some).lines().chain(rest.lines()).map(str::to_owned).collect();
    assert_eq!(all.len(), 4_000, "each of them once");
    assert_eq!(out(&server.ff(&["list", "-o", "ids"])).lines().count(), 4_006, "all of them");
}

#[test]
fn another_server_is_not_taken_for_ours() {
    let server = Server::start();
    let wrong = server.ff(&["list", "--url", &format!("{}/elsewhere", server.url)]);
    assert_eq!(wrong.status.code(), Some(1));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = std::io::BufReader::new(&stream).lines().map_while(Result::ok).find(String::is_empty);
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\nconnection: close\r\n\r\nnope\n");
    });
    let other = server.ff(&["list", "--url", &url]);
    assert!(err(&other).contains("not a FlowFabric server") && err(&other).contains("--url"), "{}", err(&other));
}

#[test]
fn settings_come_from_flags_then_variables_then_the_file() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    out(&server.ff(&["submit", "--kind", "k"]));
    std::fs::write(here.join("flowfabric.toml"), format!("[client]\nurl = \"{}\"\ntoken = \"hunter2\"\n", server.url))
        .expect("a file");
    assert_eq!(out(&ff(&["list", "-o", "ids"], &[], here)).lines().count(), 1, "the file says where the server is");
    let variable = ff(&["list"], &[("FF_URL", "http://127.0.0.1:9")], here);
    assert!(err(&variable).contains("http://127.0.0.1:9"), "a variable goes before: {}", err(&variable));
    let flag = ff(&["list", "--url", &server.url], &[("FF_URL", "http://127.0.0.1:9")], here);
    assert!(flag.status.success(), "a flag goes before both: {}", err(&flag));
    let shown = out(&ff(&["config", "show"], &[("FF_LISTEN", "127.0.0.1:1")], here));
    for line in
        ["url                  http://127.0.0.1:", "(redacted)", "environment FF_LISTEN", " default", "flowfabric.toml"]
    {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert!(!shown.contains("hunter2"));
    let json: Value = serde_json::from_str(&out(&ff(&["config", "show", "-o", "json"], &[], here))).expect("JSON");
    assert_eq!(json["client"]["url"]["value"], Value::from(server.url.as_str()));
    assert!(!out(&ff(&["list", "--help"], &[], here)).contains("hunter2"), "nor does --help show it");

    std::fs::write(here.join("other.toml"), "[server]\nlistn = \"x\"\n").expect("a file");
    for (args, env) in
        [(vec!["list", "--config", "other.toml"], vec![]), (vec!["list"], vec![("FF_CONFIG", "other.toml")])]
    {
        let wrong = ff(&args, &env, here);
        assert_eq!(wrong.status.code(), Some(2));
        assert!(
            err(&wrong).contains("other.toml") && err(&wrong).contains("listn is not a setting of [server]"),
            "{}",
            err(&wrong)
        );
    }
    assert!(ff(&["--help"], &[("FF_CONFIG", "other.toml")], here).status.success(), "help is given anyhow");
    assert_eq!(ff(&["list", "--config", "none.toml"], &[], here).status.code(), Some(2));

    let wrong = ff(&["config", "show"], &[("FF_DURABILITY", "wrong")], here);
    assert_eq!(wrong.status.code(), Some(2));
    for part in ["FF_DURABILITY", "'wrong'", "fsync, replicated, relaxed, none"] {
        assert!(err(&wrong).contains(part) && !err(&wrong).contains("listen"), "{part} in {}", err(&wrong));
    }
    let state = here.join("state").display().to_string();
    let shown = out(&ff(&["config", "show", "-o", "json"], &[("FF_DATA_DIR", &state)], here));
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    for (key, value) in [
        ("data_dir", state.as_str()),
        ("store", &format!("embedded:{state}/server")),
        ("durability", "fsync"),
        ("no_auth", "false"),
    ] {
        assert_eq!(shown["server"][key]["value"], value, "{shown}");
    }
    assert!(shown["client"]["ca_cert"].is_object(), "{shown}");

    std::fs::write(
        here.join("server.toml"),
        format!(
            "[server]\nstore = \"embedded:{}\"\nlisten = \"0.0.0.0:0\"\nno_auth = true\n",
            here.join("store").display()
        ),
    )
    .expect("a file");
    let refused = ff(&["server", "--config", "server.toml"], &[], here);
    assert!(err(&refused).contains("loopback"), "the server takes its settings from it: {}", err(&refused));
}
