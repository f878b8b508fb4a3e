//! The command line as people use it: durations, waits, results, profiles; against a real `ff server` process.

use crate::kit::{Server, err, ff, out};
use serde_json::{Value, json};

fn worker(server: &Server) {
    server.post("/v1/workers/w1/register", &json!({"worker_id": "w", "lanes": ["default"], "slots": 16}));
}

/// Claims one task of the default lane.
fn claimed(server: &Server) -> Value {
    server.post("/v1/workers/w1/claim", &json!({"wait_ms": 30_000}))["tasks"][0].clone()
}

/// Posts an end of a task.
fn end(server: &Server, task: &Value, verb: &str, mut body: Value) {
    body["fence"] =
        json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]});
    server.post(&format!("/v1/tasks/{}/{verb}", task["execution_id"].as_str().expect("a task")), &body);
}

#[test]
fn a_submission_that_is_waited_for_prints_its_result_and_exits_by_its_outcome() {
    let server = Server::start();
    worker(&server);
    let waiting = server.going(&["submit", "--kind", "add", "--wait"]);
    end(&server, &claimed(&server), "complete", json!({"result": {"sum": 12_345_678_901_234_567_890_u64}}));
    waiting.says(r#"{"sum":12345678901234567890}"#);
    assert_eq!(waiting.ended(), Some(0));

    let waiting = server.going(&["submit", "--kind", "add", "--retry", r#"{"max_attempts":1}"#, "--wait"]);
    end(&server, &claimed(&server), "fail", json!({"reason": "no such number", "category": "math"}));
    waiting.complains("ended failed: math no such number");
    assert_eq!(waiting.ended(), Some(1));

    let late = server.ff(&["submit", "--kind", "add", "--wait=1ms"]);
    assert_eq!(late.status.code(), Some(5), "{}", err(&late));
}

#[test]
fn a_flow_that_is_waited_for_prints_the_results_of_its_last_members() {
    let server = Server::start();
    worker(&server);
    let chain =
        r#"{"kind":"f","members":[{"key":"a","kind":"k"},{"key":"b","kind":"k"}],"edges":[{"from":"a","to":"b"}]}"#;
    std::fs::write(server.directory().join("chain.json"), chain).expect("a file");
    let waiting = server.going(&["flow", "submit", "chain.json", "--wait"]);
    let id = waiting.complains("-");
    end(&server, &claimed(&server), "complete", json!({"result": "first"}));
    let early = server.ff(&["flow", "result", &id]);
    assert_eq!(early.status.code(), Some(5), "{}", err(&early));
    end(&server, &claimed(&server), "complete", json!({"result": "second"}));
    waiting.says("\"second\"");
    assert_eq!(waiting.ended(), Some(0));
    assert_eq!(out(&server.ff(&["flow", "result", &id])), "\"second\"\n");
    assert_eq!(out(&server.ff(&["flow", "result", &id, "--member", "a"])), "\"first\"\n");
    let json: Value = serde_json::from_str(&out(&server.ff(&["flow", "result", &id, "-o", "json"]))).expect("JSON");
    assert_eq!((&json["state"], &json["results"]), (&json!("completed"), &json!({"b": "second"})));
    let unknown = server.ff(&["flow", "result", &id, "--member", "c"]);
    assert!(err(&unknown).contains("no member c"), "{}", err(&unknown));

    let failing = server.ff_with(
        &["flow", "submit", "-", "-o", "ids"],
        r#"{"kind":"f","members":[{"key":"a","kind":"k","retry":{"max_attempts":1}}]}"#,
        &[],
    );
    let failing = out(&failing).trim().to_owned();
    end(&server, &claimed(&server), "fail", json!({"reason": "r", "category": "c"}));
    let failed = server.ff(&["flow", "result", &failing, "--wait"]);
    assert_eq!(failed.status.code(), Some(1), "{}", err(&failed));
    assert!(err(&failed).contains("a failed"), "{}", err(&failed));
}

#[test]
fn a_list_takes_several_states_and_shows_failures_attempts_and_ages() {
    let server = Server::start();
    worker(&server);
    let submitted = |args: &[&str]| {
        let args: Vec<&str> = ["submit", "--kind", "k", "-o", "ids"].iter().chain(args).copied().collect();
        out(&server.ff(&args)).trim().to_owned()
    };
    let failed = submitted(&["--retry", r#"{"max_attempts":1}"#, "--tag", "team:a"]);
    end(&server, &claimed(&server), "fail", json!({"reason": "no such address", "category": "bounce"}));
    let waiting = submitted(&["--lane", "other", "--tag", "team=b"]);
    let cancelled = submitted(&["--lane", "other"]);
    out(&server.ff(&["cancel", &cancelled]));
    let both = out(&server.ff(&["list", "--state", "failed,waiting", "-o", "ids"]));
    assert_eq!(both.lines().collect::<Vec<_>>(), [failed.as_str(), waiting.as_str()]);
    let shown = out(&server.ff(&["list", "--state", "failed", "--state", "waiting"]));
    let ids: Vec<&str> = shown.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids, [waiting.as_str(), failed.as_str()], "one table, newest first: {shown}");
    assert_eq!(out(&server.ff(&["list", "--tag", "team:b", "-o", "ids"])).trim(), waiting, "as the API writes a tag");
    assert_eq!(out(&server.ff(&["list", "--since", "1h", "-o", "ids"])).lines().count(), 3);
    assert_eq!(out(&server.ff(&["list", "--created-before", "2026-01-01", "-o", "ids"])), "");
    let listed = out(&server.ff(&["list", "--state", "failed"]));
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].contains("ATTEMPT") && lines[0].contains("AGE") && lines[0].ends_with("FAILURE"), "{listed}");
    assert!(lines[1].ends_with("bounce: no such address"), "{listed}");
    assert_eq!(out(&server.ff(&["cancel", "--state", "failed,waiting"])), "1 matched: 1 cancelled\n");
    let again = out(&server.ff(&["cancel", &cancelled]));
    assert_eq!(again, format!("{cancelled}  had ended already: cancelled\n"));
    assert_eq!(
        out(&server.ff(&["events", "--since", "1h", "--types", "execution.failed", "-o", "ids"])).lines().count(),
        1
    );
    assert_eq!(out(&server.ff(&["events", "--since", "2999-01-01"])), "");
}

#[test]
fn a_history_begins_with_the_submission_and_its_delay() {
    let server = Server::start();
    let id = out(&server.ff(&["submit", "--kind", "send", "--delay", "1h30m", "-o", "ids"])).trim().to_owned();
    let told = out(&server.ff(&["history", &id]));
    assert!(told.contains("submitted: send in lane default, not before 20"), "{told}");
    out(&server.ff(&["cancel", &id]));
    assert!(out(&server.ff(&["history", &id])).trim_end().ends_with("cancelled"), "and says how it ended");
}

#[test]
fn what_people_read_has_no_inner_numbers() {
    let server = Server::start();
    out(&server.ff(&["lane", "set", "mail", "--max-active", "2", "--retention", "7d"]));
    let shown = out(&server.ff(&["lane", "show", "mail"]));
    assert!(!shown.contains("000000") && shown.contains("retention        7d\n"), "{shown}");
    let explained = out(&server.ff(&["lane", "explain", "mail"]));
    assert!(explained.starts_with("lane default/mail  active"), "{explained}");
    assert_eq!(explained, out(&server.ff(&["explain", "--lane", "mail"])));
    let budget = out(&server.ff(&["budget", "create", "--hard", "tokens=1", "--reset-interval", "1h", "-o", "ids"]));
    let estimate = format!("{}:tokens:5", budget.trim());
    let id = out(&server.ff(&["submit", "--kind", "k", "--budget", &estimate, "-o", "ids"])).trim().to_owned();
    worker(&server);
    server.post("/v1/workers/w1/claim", &json!({"wait_ms": 1_000}));
    let explained = out(&server.ff(&["explain", &id]));
    assert!(explained.contains("waiting_for_budget") && !explained.contains("rooms"), "{explained}");
    assert!(out(&server.ff(&["budget", "show", budget.trim()])).contains("every 1h, next reset 20"));
}

#[test]
fn a_signal_needs_its_token_alone() {
    let server = Server::start();
    worker(&server);
    let id = out(&server.ff(&["submit", "--kind", "k", "-o", "ids"])).trim().to_owned();
    let task = claimed(&server);
    let fence =
        json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]});
    let body = json!({"fence": fence, "reason": "waiting_for_approval", "waitpoints": [{"key": "review"}],
        "condition": {"count": 1, "over": "signals"}});
    let suspended = server.post(&format!("/v1/tasks/{id}/suspend"), &body);
    let token = suspended["waitpoints"][0]["tokens"][0]["token"].as_str().expect("a token").to_owned();
    let signalled = server.ff_with(&["signal", "--name", "approved"], "", &[("FF_WAITPOINT_TOKEN", &token)]);
    assert!(out(&signalled).contains("the execution goes on"), "{signalled:?}");
    let forged = server.ff(&["signal", "--name", "approved", "--token", "forged"]);
    assert_eq!(forged.status.code(), Some(2));
    assert!(err(&forged).contains("ff token reissue"), "{forged:?}");
}

#[test]
fn profiles_name_servers_and_go_before_variables() {
    let (near, far) = (Server::start(), Server::start());
    let id = out(&far.ff(&["submit", "--kind", "k", "-o", "ids"])).trim().to_owned();
    let file = near.directory().join("flowfabric.toml");
    let text = format!("[client]\nurl = \"{}\"\ntoken = \"ours\"\n\n[profiles.far]\nurl = \"{}\"\n", near.url, far.url);
    std::fs::write(&file, text).expect("a file");
    let file = file.display().to_string();
    // FF_URL names the near one.
    assert_eq!(out(&near.ff(&["list", "-o", "ids"])), "");
    assert_eq!(out(&near.ff(&["list", "-o", "ids", "--profile", "far"])).trim(), id);
    assert_eq!(out(&near.ff_with(&["list", "-o", "ids"], "", &[("FF_PROFILE", "far")])).trim(), id);
    let shown = out(&near.ff_with(&["config", "show", "--profile=far"], "", &[("FF_TOKEN", "ours")]));
    assert!(shown.contains(&far.url) && !shown.contains("(redacted)"), "no token of another server: {shown}");
    let unknown = near.ff(&["list", "--profile", "moon"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(err(&unknown).contains("there is no profile moon") && err(&unknown).contains("it has far"), "{unknown:?}");
    let nowhere = ff(&["list", "--profile", "far", "--config", &format!("{file}.not")]);
    assert_eq!(nowhere.status.code(), Some(2));
}
