//! `ff dev`, `ff doctor` and `ff bench` as people start them.

use std::process::{Command, Output, Stdio};

use crate::kit::{Server, err, out};
use serde_json::Value;

fn ff(args: &[&str], state: &std::path::Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(args)
        .env("FF_DATA_DIR", state)
        .env_remove("FF_URL")
        .env_remove("FF_STORE")
        .current_dir(state)
        .stdin(Stdio::null())
        .output()
        .expect("ff runs")
}

#[test]
fn dev_shows_work_and_a_second_start_continues() {
    let state = tempfile::tempdir().expect("a directory");
    let args = ["dev", "--seconds", "8", "--kill-every", "3", "--listen", "127.0.0.1:0"];
    let first = out(&ff(&args, state.path()));
    for text in [
        "FlowFabric on the embedded store (fsync)",
        "/docs",
        "export FF_URL=http://127.0.0.1:",
        "registered",
        " killed while holding ",
        "stopped: ",
    ] {
        assert!(first.contains(text), "{text} in {first}");
    }
    assert!(!first.contains("continuing:"), "{first}");
    let wide: Vec<&str> =
        first.lines().filter(|line| line.chars().count() > 80 && !line.starts_with("state in ")).collect();
    assert_eq!(wide, [] as [&str; 0], "it fits a terminal of 80 columns");
    let second = out(&ff(&["dev", "--seconds", "2", "--listen", "127.0.0.1:0"], state.path()));
    let line = second.lines().find(|line| line.starts_with("continuing: ")).unwrap_or_else(|| panic!("{second}"));
    let ended: u64 =
        line.split(", ").last().and_then(|part| part.split(' ').next()).and_then(|n| n.parse().ok()).expect("a count");
    assert!(ended > 0, "{line}");
    let store = format!("embedded:{}", state.path().join("dev").display());
    let checked = out(&ff(&["fsck", "--store", &store], state.path()));
    assert!(checked.contains(" 0 findings"), "{checked}");
}

#[test]
fn dev_ends_cleanly_on_ctrl_c() {
    let server = Server::start();
    let state = tempfile::tempdir().expect("a directory");
    let store = format!("embedded:{}", state.path().join("dev").display());
    let going = server.going(&["dev", "--store", &store, "--listen", "127.0.0.1:0"]);
    going.says("Ctrl-C stops");
    going.says("registered");
    assert_eq!(going.end("-INT"), Some(0));
}

#[test]
fn doctor_says_what_to_do() {
    let server = Server::start();
    let state = tempfile::tempdir().expect("a directory");
    let listen = server.url.trim_start_matches("http://").to_owned();
    let store = server.store().to_owned();
    let well = ff(&["doctor", "--url", &server.url, "--listen", &listen, "--store", &store], state.path());
    let said = out(&well);
    for line in [
        "ok    version       ff ",
        &format!("ok    server        ready at {}", server.url),
        "ok    clock         ",
        "ok    agreement     the server has version ",
        "ok    durability    embedded store, fsync: a crash costs nothing that was answered",
        &format!("ok    port          {listen} is in use, and a server answers"),
        "ok    store         in use by a running process, as it should be",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    let alone = ff(&["doctor", "--url", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "-o", "json"], state.path());
    let found: Value = serde_json::from_str(&out(&alone)).expect("JSON");
    let of = |what: &str| {
        let items = found["items"].as_array().expect("items");
        items.iter().find(|item| item["check"] == what).cloned().unwrap_or_else(|| panic!("{what} in {found}"))
    };
    assert_eq!(of("server")["verdict"], "warn");
    assert!(of("server")["todo"].as_str().is_some_and(|todo| todo.contains("ff dev")));
    assert_eq!(of("store")["verdict"], "ok");
    std::fs::write(state.path().join("keys"), "secret").expect("a file");
    let open = ff(&["doctor", "--url", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"], state.path());
    assert_eq!(open.status.code(), Some(1), "{}", err(&open));
    assert!(String::from_utf8_lossy(&open.stdout).contains("chmod 600"));
}

#[test]
fn bench_measures_a_server_and_a_store() {
    let server = Server::start();
    let table = out(&server.ff(&["bench", "--all", "--count", "300", "--seconds", "20"]));
    for row in ["submit one by one", "submit in batches              300", "drain", "idle: submit to result"] {
        assert!(table.contains(row), "{row} in {table}");
    }
    assert_eq!(out(&server.ff(&["list", "--state", "waiting", "-o", "ids"])), "", "its lane is empty afterwards");
    let state = tempfile::tempdir().expect("a directory");
    let store = format!("embedded:{}", state.path().join("bench").display());
    let json: Value =
        serde_json::from_str(&out(&ff(&["bench", "--store", &store, "--count", "100", "-o", "json"], state.path())))
            .expect("JSON");
    assert_eq!(json["measurements"].as_array().map(Vec::len), Some(2), "{json}");
    assert!(json["measurements"][0]["per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{json}");
}
