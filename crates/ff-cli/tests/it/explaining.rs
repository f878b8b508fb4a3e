//! `ff explain` names the right reason for everything that can keep work from running, and what would help; on both stores.

use std::time::{Duration, Instant};

use crate::kit::{Server, out};
use ff_testkit::{Aof, TestServer};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(180);

/// Submits to a lane.
fn submitted(server: &Server, lane: &str, more: &Value) -> String {
    let mut body = json!({"kind": "k", "lane": lane});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let answer = server.post("/v1/executions", &body);
    answer["execution_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A worker of one lane.
fn serves(server: &Server, lane: &str, slots: usize) {
    let body = json!({"worker_id": "w", "lanes": [lane], "slots": slots, "capabilities": ["eu"]});
    server.post(&format!("/v1/workers/w-{lane}/register"), &body);
}

fn claimed(server: &Server, lane: &str, max: usize) -> Vec<Value> {
    let tasks = server.post(&format!("/v1/workers/w-{lane}/claim"), &json!({"max": max, "wait_ms": 300}));
    tasks["tasks"].as_array().unwrap_or_else(|| panic!("{tasks}")).clone()
}

/// What the route and the command say about one execution, once it is there.
fn explained(server: &Server, id: &str, fits: impl Fn(&Value) -> bool) -> (Value, String) {
    let began = Instant::now();
    loop {
        let facts: Value = serde_json::from_str(&out(&server.ff(&["explain", id, "-o", "json"]))).expect("JSON");
        if fits(&facts) {
            return (facts, out(&server.ff(&["explain", id])));
        }
        assert!(began.elapsed() < SOON, "not within {SOON:?}: {facts:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn reason<'a>(facts: &'a Value, name: &str) -> &'a Value {
    let reasons = facts["reasons"].as_array().unwrap_or_else(|| panic!("{facts}"));
    reasons.iter().find(|reason| reason["reason"] == name).unwrap_or(&Value::Null)
}

fn has(name: &'static str) -> impl Fn(&Value) -> bool {
    move |facts| !reason(facts, name).is_null()
}

/// What the route and the command say about a lane: this many for this reason.
fn lane(server: &Server, name: &str, why: &str, count: i64) -> (Value, String) {
    let facts: Value =
        serde_json::from_str(&out(&server.ff(&["explain", "--lane", name, "-o", "json"]))).expect("JSON");
    assert_eq!(reason(&facts, why)["count"], count, "{why} in {facts:#}");
    let said = out(&server.ff(&["explain", "--lane", name]));
    assert!(said.starts_with(&format!("lane default/{name}  ")), "{said}");
    assert!(said.contains(&format!("─ {why}  {count}")), "{why}  {count} in {said}");
    (facts, said)
}

#[track_caller]
fn says(said: &str, text: &str) {
    assert!(said.contains(text), "{text:?} in\n{said}");
}

fn explains_everything(server: &Server) {
    // Nobody can do it.
    serves(server, "gpu", 1);
    let id = submitted(server, "gpu", &json!({"requires": ["eu", "gpu"]}));
    let (facts, said) = explained(server, &id, |facts| facts["requires"]["covered"] == false);
    assert_eq!(facts["requires"]["nearest"], json!({"instance": "w-gpu", "missing": ["gpu"]}), "{facts:#}");
    assert_eq!(facts["can_run"], false, "{facts:#}");
    says(&said, "requires eu, gpu  no live worker has them all");
    says(&said, "nearest: w-gpu lacks gpu");
    says(&lane(server, "gpu", "waiting_for_capable_worker", 1).1, "→ w-gpu lacks only gpu");

    // Nobody is there at all.
    let id = submitted(server, "empty", &json!({}));
    says(&explained(server, &id, has("no_worker")).1, "→ start a worker that registers for this lane");
    lane(server, "empty", "no_worker", 1);

    // The lane is paused.
    serves(server, "paused", 1);
    let id = submitted(server, "paused", &json!({}));
    out(&server.ff(&["lane", "pause", "paused"]));
    let (facts, said) = explained(server, &id, has("lane_state"));
    assert_eq!((&facts["lane"]["state"], &facts["can_run"]), (&json!("paused"), &json!(false)));
    says(&said, "lane_state  state paused\n│  └─ → resume the lane");
    says(&lane(server, "paused", "lane_state", 1).1, "the lane is paused: resume it");

    // A quota is full, and has room again at a known time.
    serves(server, "quota", 4);
    let quota = server.post("/v1/quotas", &json!({"rate": {"limit": 1, "window_ms": 600_000}}))["quota_id"].clone();
    let limited = json!({"quotas": [{"quota_id": quota, "key": "openai"}]});
    let ids = [submitted(server, "quota", &limited), submitted(server, "quota", &limited)];
    let began = Instant::now();
    while claimed(server, "quota", 1).is_empty() {
        assert!(began.elapsed() < SOON, "the first one passes");
    }
    claimed(server, "quota", 1);
    let waits = ids.iter().find(|id| {
        let facts: Value = serde_json::from_str(&out(&server.ff(&["explain", id, "-o", "json"]))).expect("JSON");
        facts["state"] != "active"
    });
    let (facts, said) = explained(server, waits.expect("one of them waits"), has("waiting_for_quota"));
    let part = &facts["quotas"][0]["parts"][0];
    assert_eq!((&part["part"], &part["used"], &part["limit"]), (&json!("rate"), &json!(1), &json!(1)), "{facts:#}");
    let next = part["next_at"].as_i64().expect("a time");
    says(reason(&facts, "waiting_for_quota")["remedy"].as_str().expect("a remedy"), &format!("it may start at {next}"));
    says(&said, &format!("quota {}  key openai", quota.as_str().expect("an id")));
    says(&said, "rate 1/1, one more at 2");
    let (facts, said) = lane(server, "quota", "waiting_for_quota", 1);
    assert_eq!(reason(&facts, "waiting_for_quota")["next_at"], next, "{facts:#}");
    says(&said, "key openai  1, the next at 2");

    // A budget is spent, and begins anew at a known time.
    serves(server, "budget", 4);
    let limits = json!({"dimensions": {"tokens": {"hard": 10}}, "reset": {"interval_ms": 3_600_000}});
    let budget = server.post("/v1/budgets", &limits);
    let budget_id = budget["budget_id"].as_str().unwrap_or_else(|| panic!("{budget}"));
    server.post(&format!("/v1/budgets/{budget_id}/usage"), &json!({"dimensions": {"tokens": 10}}));
    let id = submitted(server, "budget", &json!({"budgets": [{"budget_id": budget_id}]}));
    claimed(server, "budget", 1);
    let (facts, said) = explained(server, &id, has("waiting_for_budget"));
    assert_eq!(facts["budgets"][0]["in_the_way"]["dimension"], "tokens", "{facts:#}");
    let reset = budget["next_reset_at"].as_i64().expect("a time");
    let remedy =
        format!("raise the hard limit of tokens of budget {budget_id} to 11 or more, or wait for its reset at {reset}");
    assert_eq!(reason(&facts, "waiting_for_budget")["remedy"], remedy);
    says(&said, &format!("budget {budget_id}"));
    says(&said, "tokens  used 10, held 0, ");
    says(&said, ", anew at 2");
    let (facts, said) = lane(server, "budget", "waiting_for_budget", 1);
    assert_eq!(reason(&facts, "waiting_for_budget")["next_at"], reset, "{facts:#}");
    says(&said, &format!("budget {budget_id}  1, the next at 2"));

    // What it depends on has not ended.
    let members = json!([{"key": "fetch", "kind": "k", "lane": "flow"}, {"key": "send", "kind": "k", "lane": "flow"}]);
    let flow = json!({"kind": "f", "members": members, "edges": [{"from": "fetch", "to": "send"}]});
    let flow = server.post("/v1/flows", &flow)["flow_id"].as_str().expect("an id").to_owned();
    let list = out(&server.ff(&["list", "--lane", "flow", "-o", "json"]));
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let member = |key: &str| {
        let items = list["items"].as_array().expect("items");
        let found =
            items.iter().find(|item| item["key"] == key).unwrap_or_else(|| panic!("{key} of {flow} in {list:#}"));
        found["execution_id"].as_str().expect("an id").to_owned()
    };
    let (facts, said) = explained(server, &member("send"), has("waiting_for_dependencies"));
    assert_eq!(facts["dependencies"]["open"][0]["execution_id"], member("fetch"), "{facts:#}");
    says(&said, "dependencies  0 of 1 met, 1 needed, 0 can no longer be");
    says(&said, &format!("fetch  {}  waiting, on success", member("fetch")));
    lane(server, "flow", "waiting_for_dependencies", 1);

    // It waits to be approved.
    serves(server, "approval", 1);
    let id = submitted(server, "approval", &json!({}));
    let task = loop {
        if let Some(task) = claimed(server, "approval", 1).pop() {
            break task;
        }
    };
    let fence =
        json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]});
    let waits = json!({"fence": fence, "reason": "waiting_for_approval", "waitpoints": [{"key": "boss"}]});
    server.post(&format!("/v1/tasks/{id}/suspend"), &waits);
    let (facts, said) = explained(server, &id, has("suspended"));
    assert_eq!(facts["suspension"]["waitpoints"][0]["key"], "boss", "{facts:#}");
    says(&said, "waitpoint ");
    says(&said, "  boss  ");
    lane(server, "approval", "suspended", 1);

    // Its time has not come.
    serves(server, "delayed", 1);
    let id = submitted(server, "delayed", &json!({"delay_ms": 600_000}));
    let (facts, said) = explained(server, &id, has("delayed"));
    let until = reason(&facts, "delayed")["detail"]["delay_until"].as_str().expect("a time").to_owned();
    says(&said, "delayed  delay_until 2");
    let (facts, said) = lane(server, "delayed", "delayed", 1);
    assert_eq!(reason(&facts, "delayed")["next_at"].to_string(), until, "{facts:#}");
    says(&said, "delayed  1, the first at 2");

    // Somebody holds it.
    serves(server, "held", 1);
    let id = submitted(server, "held", &json!({}));
    out(&server.ff(&["hold", &id]));
    says(&explained(server, &id, has("held_by_operator")).1, "→ release it");
    lane(server, "held", "held_by_operator", 1);

    // Others come first.
    serves(server, "line", 1);
    let ids: Vec<String> = (0..6)
        .map(|_| {
            // One after the other, also by the clock.
            std::thread::sleep(Duration::from_millis(3));
            submitted(server, "line", &json!({}))
        })
        .collect();
    let last = ids.last().expect("a last one");
    let (facts, said) = explained(server, last, |facts| facts["place"]["ahead"] == 5);
    assert_eq!((&facts["can_run"], &facts["reasons"]), (&json!(true), &json!([])));
    says(&said, "nothing but its turn is missing");
    says(&said, "place in its lane  5 ahead of it");
    while claimed(server, "line", 1).is_empty() {}
    says(&explained(server, last, |facts| facts["place"]["ahead"] == 4).1, "place in its lane  4 ahead of it");
    let (facts, said) = lane(server, "line", "behind_others", 5);
    assert_eq!((&facts["running"], &facts["waiting"]), (&json!(1), &json!(5)));
    says(&said, "lane default/line  active  5 wait, 1 run, 1 live workers with 1 slots");

    let unknown = server.ff(&["explain", "--lane", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(4), "{}", crate::kit::err(&unknown));
    assert_eq!(server.ff(&["explain"]).status.code(), Some(2), "an id or a lane");
    assert_eq!(server.ff(&["explain", last, "--lane", "line"]).status.code(), Some(2), "not both");
}

#[test]
fn explain_is_right_about_everything_on_the_embedded_store() {
    explains_everything(&Server::start());
}

#[test]
fn explain_is_right_about_everything_on_valkey() {
    let store = TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }).expect("valkey");
    explains_everything(&Server::on(tempfile::tempdir().expect("a directory"), store.url()));
}
