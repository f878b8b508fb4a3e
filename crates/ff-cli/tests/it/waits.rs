//! The verbs around waiting and streams against a real `ff server` process.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::kit::{Server, err, out};
use serde_json::{Value, json};

/// A claimed task of a fresh execution.
fn running(server: &Server) -> (String, Value) {
    server.post("/v1/workers/w1/register", &json!({"worker_id": "w", "lanes": ["default"], "slots": 16}));
    let id = out(&server.ff(&["submit", "--kind", "k", "-o", "ids"])).trim().to_owned();
    let claimed = server.post("/v1/workers/w1/claim", &json!({"wait_ms": 10_000}));
    (id, claimed["tasks"][0].clone())
}

fn task(server: &Server, task: &Value, verb: &str, mut body: Value) -> Value {
    body["fence"] =
        json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]});
    server.post(&format!("/v1/tasks/{}/{verb}", task["execution_id"].as_str().expect("an id")), &body)
}

fn suspended(server: &Server, approvers: &[&str]) -> (String, String, Vec<String>) {
    let (id, claimed) = running(server);
    let body = json!({
        "reason": "waiting_for_approval",
        "waitpoints": [{"key": "review", "approvers": approvers, "allowed_signals": ["approved"]}],
        "condition": {"count": approvers.len().max(1), "over": "approvers"},
    });
    let answer = task(server, &claimed, "suspend", body);
    let waitpoint = &answer["waitpoints"][0];
    let tokens = waitpoint["tokens"].as_array().expect("tokens").iter();
    let tokens = tokens.map(|token| token["token"].as_str().expect("a token").to_owned()).collect();
    (id, waitpoint["waitpoint_id"].as_str().expect("an id").to_owned(), tokens)
}

#[test]
fn an_approval_is_listed_answered_and_gone() {
    let server = Server::start();
    assert!(!server.directory().join("store/keys").exists());
    let (id, waitpoint, tokens) = suspended(&server, &["ann", "bob"]);
    assert!(server.directory().join("store/keys").exists(), "the keys are with the embedded store");
    let listed = out(&server.ff(&["approvals"]));
    assert!(
        listed.contains(&waitpoint)
            && listed.contains("review")
            && listed.contains("ann, bob")
            && listed.contains("0 of 2 approvers"),
        "{listed}"
    );
    assert!(out(&server.ff(&["show", &id])).contains("waiting_for_approval"));

    let args = ["signal", &waitpoint, "--execution", &id, "--name", "approved", "--payload", r#"{"n":1}"#];
    let with = |rest: &[&'static str]| [&args[..], rest].concat();
    // From a file, from stdin, from the environment.
    let file = server.directory().join("ann.token");
    std::fs::write(&file, format!("{}\n", tokens[0])).expect("a file");
    let first = out(&server.ff(&with(&["--token", "@ann.token", "--idempotency-key", "a"])));
    assert!(first.contains("accepted") && first.contains("more is needed"), "{first}");
    assert!(
        out(&server.ff_with(&with(&["--idempotency-key", "a", "--token", "-"]), &tokens[0], &[])).contains("duplicate")
    );
    assert!(out(&server.ff(&["approvals"])).contains("ann ✓, bob"));
    let json = out(&server.ff_with(&with(&["-o", "json"]), "", &[("FF_WAITPOINT_TOKEN", &tokens[1])]));
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON")["outcome"], "triggered_resume");
    assert_eq!(out(&server.ff(&["approvals", "-o", "ids"])), "");

    let claimed = server.post("/v1/workers/w1/claim", &json!({"wait_ms": 10_000}))["tasks"][0].clone();
    assert_eq!(claimed["resume"]["signals"][1]["payload"], json!({"n": 1}));
    task(&server, &claimed, "complete", json!({"result": 1}));
    assert!(out(&server.ff(&["show", &id])).contains("ended by signal"));
}

#[test]
fn a_watched_inbox_shows_what_changes() {
    let server = Server::start();
    let (_, first, _) = suspended(&server, &[]);
    let mut watching = Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(["approvals", "--watch", "-o", "ids"])
        .env("FF_URL", &server.url)
        .stdout(Stdio::piped())
        .spawn()
        .expect("ff starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("stdout")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), first);
    let (_, second, _) = suspended(&server, &[]);
    let shown: Vec<String> = lines.by_ref().take(2).map(|line| line.expect("text")).collect();
    assert_eq!(shown, [first, second]);
    let _ = watching.kill();
    let _ = watching.wait();
}

#[test]
fn what_cannot_be_answered_says_what_to_do_next() {
    let server = Server::start();
    let (id, waitpoint, tokens) = suspended(&server, &[]);
    let signal = |token: &str, name: &str| {
        let args = ["signal", &waitpoint, "--execution", &id, "--name", name];
        server.ff_with(&args, "", &[("FF_WAITPOINT_TOKEN", token)])
    };
    let unknown = "0192a7c4-5b1e-7abc-8def-00112233aabb";
    for (refused, code, next) in [
        (signal("forged", "approved"), 1, "ff token reissue"),
        (signal(&tokens[0], "maybe"), 1, "ff approvals -o json"),
        (server.ff(&["signal", &waitpoint, "--execution", &id, "--name", "approved"]), 2, "FF_WAITPOINT_TOKEN"),
        (
            server.ff(&["signal", &waitpoint, "--execution", &id, "--name", "a", "--token", "t", "--payload", "x"]),
            2,
            "quotes",
        ),
        (
            server.ff(&["signal", &waitpoint, "--execution", &id, "--name", "a", "--token", "-", "--payload", "-"]),
            2,
            "@file",
        ),
        (
            server.ff(&["signal", unknown, "--execution", &id, "--name", "approved", "--token", &tokens[0]]),
            4,
            "ff approvals",
        ),
        (server.ff(&["token", "reissue", unknown]), 4, "ff approvals"),
        (server.ff(&["resume", unknown]), 4, "ff list"),
        (server.ff(&["tail", unknown]), 4, "ff list"),
        (server.ff(&["tail", &id, "--attempt", "9"]), 4, "ff show"),
        (server.ff(&["key", "revoke", "nosuchkey"]), 4, "ff key list"),
        (server.ff(&["tail", &id, "--url", "http://127.0.0.1:9"]), 1, "ff server"),
    ] {
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        assert!(err(&refused).contains(next), "{next} in {refused:?}");
        assert!(!err(&refused).contains(&tokens[0]));
    }
    let token = out(&server.ff(&["token", "reissue", &waitpoint]));
    let late = signal(&tokens[0], "approved");
    assert!(err(&late).contains("waitpoint_not_open"), "{late:?}");
    assert!(out(&signal(token.trim(), "approved")).contains("the execution goes on"));
    assert!(err(&server.ff(&["resume", &id])).contains("ff show"));
}

#[test]
fn a_wait_is_ended_by_an_operator() {
    let server = Server::start();
    let (id, _, _) = suspended(&server, &[]);
    assert!(out(&server.ff(&["resume", &id, "--reason", "by phone"])).contains("resumed"));
    let claimed = server.post("/v1/workers/w1/claim", &json!({"wait_ms": 10_000}))["tasks"][0].clone();
    assert_eq!(claimed["resume"]["cause"], "operator");
    let (id, _, _) = suspended(&server, &[]);
    assert!(out(&server.ff(&["cancel", &id])).contains("cancelled"));
}

#[test]
fn keys_are_listed_rotated_and_revoked() {
    let server = Server::start();
    assert!(err(&server.ff(&["key", "list"])).contains("no key yet"));
    let (id, waitpoint, tokens) = suspended(&server, &[]);
    let first = out(&server.ff(&["key", "list", "-o", "ids"])).trim().to_owned();
    let rotated = out(&server.ff(&["key", "rotate", "--grace-ms", "60000"]));
    assert!(rotated.contains(&first) && rotated.contains("signs") && rotated.contains("accepts"), "{rotated}");
    assert_eq!(out(&server.ff(&["key", "list", "-o", "ids"])).lines().count(), 2);
    assert!(!out(&server.ff(&["key", "revoke", &first])).contains(&first));
    let refused = server.ff_with(
        &["signal", &waitpoint, "--execution", &id, "--name", "approved"],
        "",
        &[("FF_WAITPOINT_TOKEN", &tokens[0])],
    );
    assert!(err(&refused).contains("invalid_token"), "{refused:?}");
}

#[test]
fn a_tail_ends_with_the_execution() {
    let server = Server::start();
    let (id, claimed) = running(&server);
    let mut following = Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(["tail", &id])
        .env("FF_URL", &server.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ff starts");
    let frames = json!({"frames": [
        {"type": "t", "payload": "hello"}, {"type": "t", "payload": {"n": 12_345_678_901_234_567_890_u64}},
        {"type": "t", "payload": "aGk=", "payload_encoding": "base64"},
    ]});
    task(&server, &claimed, "frames", frames);
    task(&server, &claimed, "fail", json!({"reason": "r", "category": "c", "retry_after_ms": 1}));
    let claimed = server.post("/v1/workers/w1/claim", &json!({"wait_ms": 10_000}))["tasks"][0].clone();
    task(&server, &claimed, "frames", json!({"frames": [{"type": "t", "payload": "again"}]}));
    assert!(following.try_wait().expect("its state").is_none(), "it follows");
    task(&server, &claimed, "complete", json!({}));
    let done = following.wait_with_output().expect("it ends");
    assert_eq!(out(&done), "hello\n{\"n\":12345678901234567890}\nhi\nagain\n");
    assert!(err(&done).contains("attempt 0 failed") && err(&done).contains("attempt 1 succeeded"), "{done:?}");

    let lines = out(&server.ff(&["tail", &id, "-o", "json"]));
    let second: Value = serde_json::from_str(lines.lines().nth(1).expect("a line")).expect("JSON");
    let rest = out(&server.ff(&["tail", &id, "--after", second["cursor"].as_str().expect("a cursor")]));
    assert_eq!(rest, "hi\nagain\n");
    assert_eq!(out(&server.ff(&["tail", &id, "--attempt", "1"])), "again\n");
    assert_eq!(out(&server.ff(&["tail", &id, "--attempt", "0", "-o", "json"])).lines().count(), 3);
    let never = server.ff(&["tail", &id, "--attempt", "2"]);
    assert!(err(&never).contains("never started"), "{never:?}");
}

#[test]
fn every_verb_shows_an_example() {
    for verb in [
        vec!["signal"],
        vec!["approvals"],
        vec!["tail"],
        vec!["resume"],
        vec!["token", "reissue"],
        vec!["key", "list"],
        vec!["key", "rotate"],
        vec!["key", "revoke"],
    ] {
        let help = Command::new(env!("CARGO_BIN_EXE_ff")).args(&verb).arg("--help").output().expect("ff runs");
        assert!(out(&help).contains("Example:\n  "), "{verb:?}");
    }
}

#[test]
fn a_server_finds_its_keys_where_it_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("embedded:{}", directory.path().join("store").display());
    let missing = directory.path().join("missing").display().to_string();
    for (args, env, text) in [
        (vec!["--keys", &missing], vec![], "cannot find the keys file"),
        (vec![], vec![("FF_KEYS_FILE", missing.as_str())], "cannot find the keys file"),
        (vec![], vec![("FF_KEYS_FILE", missing.as_str()), ("FF_KEYS", "CANARY")], "set one of them"),
        (vec![], vec![("FF_KEYS", "CANARY")], "FF_KEYS"),
    ] {
        let refused = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(["server", "--no-auth", "--listen", "127.0.0.1:0", "--store", &store])
            .args(&args)
            .envs(env)
            .output()
            .expect("ff runs");
        assert!(!refused.status.success());
        assert!(err(&refused).contains(text) && !err(&refused).contains("CANARY"), "{refused:?}");
    }
}
