//! `ff flow` against a real `ff server` process.

use crate::kit::{Server, err, out};
use serde_json::{Value, json};

const DIAMOND: &str = r#"{
  "kind": "report",
  "members": [{"key": "fetch", "kind": "fetch"}, {"key": "left", "kind": "l"}, {"key": "right", "kind": "r"}, {"key": "join", "kind": "j"}],
  "edges": [{"from": "fetch", "to": "left"}, {"from": "fetch", "to": "right"}, {"from": "left", "to": "join"}, {"from": "right", "to": "join", "on": "completion"}]
}"#;

fn submitted(server: &Server, flow: &str) -> String {
    out(&server.ff_with(&["flow", "submit", "-", "-o", "ids"], flow, &[])).trim().to_owned()
}

/// Claims one task of the default lane and completes it.
fn complete_one(server: &Server) {
    server.post("/v1/workers/w1/register", &json!({"worker_id": "w", "lanes": ["default"], "slots": 16}));
    let task = server.post("/v1/workers/w1/claim", &json!({"wait_ms": 10_000}))["tasks"][0].clone();
    let fence =
        json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]});
    let path = format!("/v1/tasks/{}/complete", task["execution_id"].as_str().expect("a task"));
    server.post(&path, &json!({"fence": fence, "result": 1}));
}

#[test]
fn a_flow_is_submitted_watched_and_cancelled() {
    let server = Server::start();
    std::fs::write(server.directory().join("report.json"), DIAMOND).expect("a file");
    let said = out(&server.ff(&["flow", "submit", "report.json"]));
    let id = said.split_whitespace().next().expect("an id").to_owned();
    assert!(said.contains("running") && said.contains("  fetch\n") && said.contains("  join\n"), "{said}");
    let json = out(&server.ff_with(&["flow", "submit", "-", "-o", "json"], DIAMOND, &[]));
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON")["members"][3]["key"], "join");

    complete_one(&server);
    let listed = out(&server.ff(&["flow", "list", "--state", "running"]));
    assert!(listed.contains(&id) && listed.contains("report"), "{listed}");
    assert_eq!(out(&server.ff(&["flow", "list", "--kind", "other", "-o", "ids"])), "");
    assert_eq!(out(&server.ff(&["list", "--flow", &id, "-o", "ids"])).lines().count(), 4);

    let shown = out(&server.ff(&["flow", "show", &id]));
    for text in
        ["policy           continue", "4: 2 waiting, 1 waiting_children, 1 completed", "completed         fetch"]
    {
        assert!(shown.contains(text), "{text} in {shown}");
    }
    let member = out(&server.ff(&["flow", "show", &id, "-o", "ids"])).lines().next().expect("a member").to_owned();
    let execution = out(&server.ff(&["show", &member]));
    assert!(execution.contains(&format!("flow             {id}")) && execution.contains("key              fetch"));

    let drawn = out(&server.ff(&["flow", "graph", &id]));
    let picture = "
✓ fetch ─┬─▶ ○ left ──┬─▶ · join
         └─▶ ○ right ─┘

○ waiting   · waiting_children   ✓ completed
on completion: right → join
";
    assert_eq!(drawn, format!("{id}  running\n{picture}"), "no colour but on a terminal");
    let listed = out(&server.ff(&["flow", "graph", &id, "--width", "10"]));
    assert!(listed.contains("3  · join  ← left, right"), "{listed}");
    let graph: Value =
        serde_json::from_str(&out(&server.ff(&["flow", "graph", &id, "-o", "json"]))).expect("the API's answer");
    assert_eq!(graph["nodes"].as_array().map(Vec::len), Some(4));

    let done = out(&server.ff(&["flow", "cancel", &id, "--reason", "enough", "--wait"]));
    assert!(done.contains("cancelled: 4: 3 cancelled, 1 completed"), "{done}");
    assert!(out(&server.ff(&["flow", "cancel", &id])).contains("cancelled already"));
    assert!(out(&server.ff(&["flow", "show", &id])).contains("cancel_all by local: enough"));
}

#[test]
fn a_held_flow_is_sealed_and_a_wide_one_shortened() {
    let server = Server::start();
    let held = submitted(&server, r#"{"kind": "k", "seal": false, "members": [{"key": "a", "kind": "a"}]}"#);
    assert!(out(&server.ff(&["flow", "graph", &held])).contains("◌ a"));
    assert!(out(&server.ff(&["flow", "seal", &held])).contains("running"));
    assert!(out(&server.ff(&["flow", "graph", &held])).contains("○ a"));

    let members: Vec<Value> = std::iter::once(json!({"key": "split", "kind": "k"}))
        .chain((0..200).map(|n| json!({"key": format!("part-{n}"), "kind": "k"})))
        .collect();
    let edges: Vec<Value> = (0..200).map(|n| json!({"from": "split", "to": format!("part-{n}")})).collect();
    let wide = submitted(&server, &json!({"kind": "wide", "members": members, "edges": edges}).to_string());
    let drawn = out(&server.ff(&["flow", "graph", &wide, "--rows", "3"]));
    for line in ["○ split ─┬─▶ · part-0\n", "         ├─▶ · part-1\n", "         └─▶ … 198 more: "]
    {
        assert!(drawn.contains(line), "{line} in {drawn}");
    }
}

#[test]
fn what_cannot_be_done_says_what_to_do_next() {
    let server = Server::start();
    let unknown = "0192a7c4-5b1e-7abc-8def-00112233aabb";
    for verb in ["show", "graph", "seal", "cancel"] {
        let refused = server.ff(&["flow", verb, unknown]);
        assert_eq!(refused.status.code(), Some(4), "{verb}");
        assert!(err(&refused).contains("ff flow list"), "{verb}: {}", err(&refused));
    }
    let cycle = r#"{"kind":"k","members":[{"key":"a","kind":"k"},{"key":"b","kind":"k"}],"edges":[{"from":"a","to":"b"},{"from":"b","to":"a"}]}"#;
    let refused = server.ff_with(&["flow", "submit", "-"], cycle, &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("cycle_detected"), "{}", err(&refused));
    let missing = server.ff(&["flow", "submit", "nowhere.json"]);
    assert!(err(&missing).contains("nowhere.json"));
    let wrong = server.ff_with(&["flow", "submit", "-"], r#"{"kind":"k","members":[{"key":"a"}]}"#, &[]);
    assert!(err(&wrong).contains("members[0].kind"), "{}", err(&wrong));
}
