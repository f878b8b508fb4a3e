//! Flows over HTTP: submitted whole, grown, watched, cancelled, and what goes between members.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Api, eventually};

fn member(key: &str) -> Value {
    json!({"key": key, "kind": key})
}

fn edge(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to})
}

fn diamond() -> Value {
    json!({
        "kind": "report",
        "members": [member("join"), member("left"), member("right"), member("fetch")],
        "edges": [
            {"from": "fetch", "to": "left", "pass_as": "page"}, edge("fetch", "right"),
            {"from": "left", "to": "join", "pass_as": "left"}, {"from": "right", "to": "join", "on": "completion", "pass_as": "right"},
        ],
    })
}

/// The id of a flow that must be new, and the ids of its members by key.
async fn submitted(api: &Api, body: Value) -> (String, BTreeMap<String, String>) {
    let answer = api.post("/v1/flows", body).await.with(201);
    let members = answer["members"].as_array().expect("members").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let members = members.map(|member| (text(&member["key"]), text(&member["execution_id"]))).collect();
    (text(&answer["flow_id"]), members)
}

async fn flow(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/flows/{id}")).await.with(200)
}

async fn ended(api: &Api, id: &str) -> Value {
    let shown = api.get(&format!("/v1/flows/{id}?wait_ms=20000")).await.with(200);
    assert!(shown["finished_at"].is_i64(), "{shown}");
    shown
}

fn states(shown: &Value, list: &str) -> BTreeMap<String, String> {
    let items = shown[list].as_array().expect("members").iter();
    items
        .map(|item| {
            (item["key"].as_str().expect("a key").to_owned(), item["state"].as_str().expect("a state").to_owned())
        })
        .collect()
}

/// Claims one task, which must be the member with this key, and completes it.
async fn complete(api: &Api, key: &str, result: Value) -> Value {
    let task = api.claim_one("w1").await;
    assert_eq!(task["key"], key, "{task}");
    api.task(&task, "complete", json!({"result": result})).await.with(200);
    task
}

async fn fail(api: &Api, key: &str) {
    let task = api.claim_one("w1").await;
    assert_eq!(task["key"], key, "{task}");
    api.task(&task, "fail", json!({"reason": "no", "category": "c", "retryable": false})).await.with(200);
}

on_both_hosts! {
    async fn a_diamond_runs_in_order_and_passes_its_results_on(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let (id, members) = submitted(&api, diamond()).await;
        let shown = flow(&api, &id).await;
        assert_eq!((&shown["state"], &shown["policy"], &shown["kind"], &shown["namespace"]), (&json!("running"), &json!("continue"), &json!("report"), &json!("default")));
        assert_eq!((&shown["counts"], &shown["member_count"], &shown["finished_at"]), (&json!({"waiting": 1, "waiting_children": 3}), &json!(4), &Value::Null));
        assert_eq!((shown["edges"].as_array().map(Vec::len), &shown["members_next_cursor"], &shown["edges_omitted"]), (Some(4), &Value::Null, &json!(false)));

        let join = api.execution(&members["join"]).await;
        assert_eq!((&join["flow_id"], &join["key"], &join["blocking_reason"]), (&json!(id), &json!("join"), &json!("waiting_for_dependencies")));
        assert_eq!(join["children"], json!({"total": 0, "open": 0}));
        let explained = api.get(&format!("/v1/executions/{}/explain", members["join"])).await.with(200);
        assert_eq!(explained["can_run"], false);
        assert_eq!((&explained["dependencies"]["needed"], &explained["dependencies"]["met"]), (&json!(2), &json!(0)));
        assert_eq!(explained["reasons"][0]["reason"], "waiting_for_dependencies");
        let open = explained["reasons"][0]["detail"]["open"].as_str().expect("who is open");
        assert!(open.contains("left (waiting_children)") && open.contains("right"), "{explained}");
        assert_eq!(explained["dependencies"]["open"].as_array().map(Vec::len), Some(2));

        let task = complete(&api, "fetch", json!({"n": 9_007_199_254_740_993_u64})).await;
        assert_eq!((&task["flow_id"], &task["passed"]), (&json!(id), &Value::Null));
        let graph = api.get(&format!("/v1/flows/{id}/graph")).await.with(200);
        assert_eq!((&graph["flow_id"], &graph["state"]), (&json!(id), &json!("running")));
        assert_eq!(states(&graph, "nodes")["fetch"], "completed");
        let edges = graph["edges"].as_array().expect("edges");
        let between = |from: &str, to: &str| edges.iter().find(|edge| edge["from"] == from && edge["to"] == to).expect("an edge").clone();
        assert_eq!(between("fetch", "left"), json!({"from": "fetch", "to": "left", "on": "success", "pass_as": "page", "state": "met"}));
        assert_eq!(between("right", "join"), json!({"from": "right", "to": "join", "on": "completion", "pass_as": "right", "state": "pending"}));

        for _ in 0..2 {
            let task = api.claim_one("w1").await;
            if task["key"] == "left" {
                let page = &task["passed"]["page"];
                assert_eq!((&page["value"], &page["encoding"]), (&json!({"n": 9_007_199_254_740_993_u64}), &json!("json")));
                assert_eq!((&page["execution_id"], &page["outcome"]), (&json!(members["fetch"]), &json!("success")));
                api.task(&task, "complete", json!({"result": "AAH/", "result_encoding": "base64"})).await.with(200);
            } else {
                api.task(&task, "fail", json!({"reason": "broke", "category": "c", "retryable": false})).await.with(200);
            }
        }
        let task = complete(&api, "join", json!(1)).await;
        assert_eq!((&task["passed"]["left"]["value"], &task["passed"]["left"]["encoding"]), (&json!("AAH/"), &json!("base64")));
        let right = &task["passed"]["right"];
        assert_eq!((&right["value"], &right["outcome"], &right["failure"]["reason"]), (&Value::Null, &json!("failed"), &json!("broke")));
        let shown = ended(&api, &id).await;
        assert_eq!((&shown["state"], &shown["counts"]), (&json!("completed"), &json!({"completed": 3, "failed": 1})), "the failure was taken up");
    }

    async fn the_same_flow_again_is_answered_and_another_refused(kit) {
        let api = kit.api().await;
        let id = "0192a7c4-5b1e-7abc-8def-00112233aabb";
        let mut body = diamond();
        body["flow_id"] = json!(id);
        let first = api.post("/v1/flows", body.clone()).await.with(201);
        assert_eq!((&first["flow_id"], &first["duplicate"], &first["state"]), (&json!(id), &json!(false), &json!("running")));
        let keys: Vec<&str> = first["members"].as_array().expect("members").iter().map(|m| m["key"].as_str().expect("a key")).collect();
        assert_eq!(keys, ["join", "left", "right", "fetch"], "in the order given");
        let again = api.post("/v1/flows", body.clone()).await.with(200);
        assert_eq!((&again["members"], &again["duplicate"]), (&first["members"], &json!(true)));
        body["members"][0]["priority"] = json!(3);
        api.post("/v1/flows", body).await.refused(409, "idempotency_conflict");
    }

    async fn the_same_key_gets_the_first_flow(kit) {
        let api = kit.api().await;
        let key = [("idempotency-key", "report-7")];
        let send = |body: Value| api.send(Method::POST, "/v1/flows", &key, body.to_string());
        let first = send(diamond()).await.with(201);
        let again = send(diamond()).await.with(200);
        assert_eq!((&again["flow_id"], &again["members"]), (&first["flow_id"], &first["members"]));
        let mut named = diamond();
        named["idempotency_key"] = json!("report-7");
        assert_eq!(api.post("/v1/flows", named.clone()).await.with(200)["flow_id"], first["flow_id"]);
        named["idempotency_key"] = json!("report-8");
        let refused = send(named).await.refused(400, "invalid_argument");
        assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("idempotency_key")), "{refused}");
        let mut other = diamond();
        other["kind"] = json!("another");
        send(other).await.refused(409, "idempotency_conflict");
        assert_eq!(api.get("/v1/flows").await.with(200)["items"].as_array().map(Vec::len), Some(1));
    }

    async fn what_is_wrong_in_a_flow_is_named(kit) {
        let api = kit.api().await;
        let with = |name: &str, value: Value| {
            let mut body = diamond();
            body[name] = value;
            body
        };
        let chain = |count: usize| -> Vec<Value> { (0..count).map(|n| member(&format!("m{n}"))).collect() };
        let backwards: Vec<Value> = (1..70).map(|n| edge(&format!("m{n}"), &format!("m{}", n - 1))).collect();
        let mut late = chain(70);
        late[1]["lane"] = json!("a b");
        let nested = |flow: Value| json!([{"key": "a", "kind": "a"}, {"key": "b", "flow": flow}]);
        for (body, field) in [
            (json!({}), "kind"),
            (json!({"kind": ""}), "kind"),
            (with("colour", json!(1)), "colour"),
            (with("policy", json!("sometimes")), "policy"),
            (with("default_lane", json!("a b")), "default_lane"),
            (with("deadline_ms", json!(-1)), "deadline_ms"),
            (with("default_retry", json!({"max_attempts": 0})), "default_retry.max_attempts"),
            (with("members", json!([{"kind": "k"}])), "members[0].key"),
            (with("members", json!([{"key": "k"}])), "members[0].kind"),
            (with("members", json!([{"key": "k", "kind": "k", "colour": 1}])), "members[0].colour"),
            (with("members", json!([{"key": "k", "kind": "k", "inbound": {"policy": "most"}}])), "members[0].inbound.policy"),
            (json!({"kind": "k", "members": [member("a"), {"key": "b", "kind": "b", "inbound": {"policy": "quorum"}}]}), "members[1].inbound.k"),
            (json!({"kind": "k", "members": [{"key": "k", "kind": "k", "input": "?", "input_encoding": "base64"}]}), "members[0].input"),
            (json!({"kind": "k", "members": [member("a"), member("a")]}), "members[1].key"),
            (json!({"kind": "k", "members": [member("a"), {"key": "b", "kind": "b", "lane": "a b"}], "edges": [edge("b", "a")]}), "members[1].lane"),
            (json!({"kind": "k", "members": [member("a"), {"key": "b", "kind": "b", "namespace": "else"}], "edges": [edge("b", "a")]}), "members[1].namespace"),
            (json!({"kind": "k", "members": late, "edges": backwards}), "members[1].lane"),
            (json!({"kind": "k", "members": [member("a")], "edges": [edge("a", "z")]}), "edges[0].to"),
            (json!({"kind": "k", "members": [member("a")], "edges": [{"from": "a", "to": "a", "on": "tuesday"}]}), "edges[0].on"),
            (json!({"kind": "k", "members": nested(json!({"kind": "in", "members": [{"key": "c", "kind": "c", "priority": 9001}]}))}), "members[1].flow.members[0].priority"),
            (json!({"kind": "k", "members": nested(json!({"kind": "in", "members": [{"key": "c"}]}))}), "members[1].flow.members[0].kind"),
            (json!({"kind": "k", "members": nested(json!({"kind": "in", "seal": false}))}), "members[1].flow.seal"),
            (json!({"kind": "k", "members": nested(json!({"kind": "in", "namespace": "else"}))}), "members[1].flow.namespace"),
        ] {
            let problem = api.post("/v1/flows", body).await.refused(400, "invalid_argument");
            assert!(problem["fields"][field].is_string(), "{field}: {problem}");
        }
        let cycle = api.post("/v1/flows", json!({"kind": "k", "members": chain(2), "edges": [edge("m0", "m1"), edge("m1", "m0")]})).await;
        assert!(cycle.refused(400, "cycle_detected")["detail"].as_str().is_some_and(|detail| detail.contains("m0") && detail.contains("m1")));
        api.post("/v1/flows", json!({"kind": "k", "members": chain(1), "edges": [edge("m0", "m0")]})).await.refused(400, "cycle_detected");

        let unknown = "/v1/flows/0192a7c4-5b1e-7abc-8def-00112233aabb";
        for path in ["", "/members", "/graph"] {
            api.get(&format!("{unknown}{path}")).await.refused(404, "flow_not_found");
        }
        for (verb, body) in [("members", json!({"members": chain(1)})), ("edges", json!({"edges": [edge("a", "b")]})), ("seal", json!({})), ("cancel", json!({})), ("cancel", json!({"wait": true}))] {
            api.post(&format!("{unknown}/{verb}"), body).await.refused(404, "flow_not_found");
        }
        for (path, field) in [("/v1/flows/x", "flow_id"), ("/v1/flows?state=sleepy", "state"), ("/v1/flows?colour=1", "colour"), ("/v1/flows?cursor=x", "cursor")] {
            assert!(api.get(path).await.refused(400, "invalid_argument")["fields"][field].is_string(), "{path}");
        }
        let (id, _) = submitted(&api, diamond()).await;
        for (verb, body, field) in [
            ("cancel", json!({"policy": "gently"}), "policy"),
            ("cancel", json!({"why": 1}), "why"),
            ("seal", json!({"now": true}), "now"),
            ("members", json!({"members": []}), "members"),
            ("members", json!({"members": [{"key": "n", "flow": {"kind": "in"}}]}), "members[0].flow"),
            ("edges", json!({"edges": [edge("fetch", "nobody")]}), "edges[0].to"),
        ] {
            let problem = api.post(&format!("/v1/flows/{id}/{verb}"), body).await.refused(400, "invalid_argument");
            assert!(problem["fields"][field].is_string(), "{verb}: {problem}");
        }
        assert!(api.get(&format!("/v1/flows/{id}?wait_ms=30001")).await.refused(400, "invalid_argument")["fields"]["wait_ms"].is_string());
    }

    async fn a_flow_is_held_until_it_is_sealed_and_grows_while_it_runs(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let (id, members) = submitted(&api, json!({"kind": "k", "seal": false, "members": [member("a")]})).await;
        let shown = flow(&api, &id).await;
        assert_eq!((&shown["state"], &shown["counts"]), (&json!("open"), &json!({"held": 1})));
        api.get(&format!("/v1/executions/{}", members["a"])).await.refused(404, "execution_not_found");
        assert_eq!(api.claim("w1", json!({"wait_ms": 200})).await.len(), 0);
        assert_eq!(api.post(&format!("/v1/flows/{id}/seal"), json!({})).await.with(200)["state"], "running");
        let task = api.claim_one("w1").await;

        let added = api.post(&format!("/v1/flows/{id}/members"), json!({"members": [member("b"), member("c")], "edges": [edge("a", "c"), edge("c", "b")]})).await.with(200);
        let shown: Vec<(&str, &str)> = added["members"].as_array().expect("members").iter().map(|m| (m["key"].as_str().expect("a key"), m["state"].as_str().expect("a state"))).collect();
        assert_eq!(shown, [("b", "waiting_children"), ("c", "waiting_children")]);
        let again = api.post(&format!("/v1/flows/{id}/members"), json!({"members": [member("c")], "edges": [edge("a", "c")]})).await.with(200);
        assert_eq!(again["members"][0]["duplicate"], true);
        let edges = async |list: Value| api.post(&format!("/v1/flows/{id}/edges"), json!({"edges": list})).await;
        assert_eq!(edges(json!([edge("a", "b")])).await.with(200)["added"], 1);
        assert_eq!(edges(json!([edge("a", "b")])).await.with(200)["added"], 0);
        edges(json!([edge("b", "c")])).await.refused(400, "cycle_detected");
        edges(json!([edge("c", "a")])).await.refused(400, "cycle_detected");
        let extra = api.post(&format!("/v1/flows/{id}/members"), json!({"members": [member("d")]})).await.with(200);
        assert_eq!(extra["members"][0]["state"], "waiting");
        edges(json!([edge("d", "a")])).await.refused(409, "member_started");

        api.task(&task, "complete", json!({})).await.with(200);
        let mut done = Vec::new();
        for _ in 0..3 {
            let task = api.claim_one("w1").await;
            done.push(task["key"].as_str().expect("a key").to_owned());
            api.task(&task, "complete", json!({})).await.with(200);
        }
        let place = |key: &str| done.iter().position(|done| done == key);
        assert!(place("c") < place("b"), "{done:?}");
        assert_eq!(ended(&api, &id).await["state"], "completed");
        api.post(&format!("/v1/flows/{id}/members"), json!({"members": [member("e")]})).await.refused(409, "flow_terminal");
        edges(json!([edge("a", "d")])).await.refused(409, "flow_terminal");
    }

    async fn each_policy_decides_what_a_failure_means(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        for (policy, state, counts) in [
            (json!("continue"), "failed", json!({"completed": 1, "failed": 1, "skipped": 1})),
            (json!({"on_member_failure": "isolate_branch"}), "completed", json!({"completed": 1, "failed": 1, "skipped": 1})),
            (json!("fail_flow"), "failed", json!({"cancelled": 1, "failed": 1, "skipped": 1})),
        ] {
            let members = json!([{"key": "a", "kind": "a", "priority": 9}, member("after"), member("other")]);
            let (id, _) = submitted(&api, json!({"kind": "k", "policy": policy, "members": members, "edges": [edge("a", "after")]})).await;
            fail(&api, "a").await;
            if policy != "fail_flow" {
                complete(&api, "other", json!(1)).await;
            }
            let shown = ended(&api, &id).await;
            assert_eq!((&shown["state"], &shown["counts"]), (&json!(state), &counts), "{policy}: {shown}");
            assert_eq!(shown["stop"]["reason"].as_str(), (policy == "fail_flow").then_some("flow_failed"), "{shown}");
        }
    }

    async fn the_first_of_a_race_is_enough(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let members = json!([
            {"key": "fast", "kind": "k", "priority": 9}, member("slow"),
            {"key": "go", "kind": "k", "inbound": {"policy": "any_of", "on_satisfied": "cancel_remaining"}},
        ]);
        let (id, members) = submitted(&api, json!({"kind": "race", "members": members, "edges": [edge("fast", "go"), edge("slow", "go")]})).await;
        assert_eq!(api.execution(&members["go"]).await["inbound"], json!({"policy": "any_of", "on_satisfied": "cancel_remaining"}));
        complete(&api, "fast", json!(1)).await;
        complete(&api, "go", json!(1)).await;
        let shown = ended(&api, &id).await;
        assert_eq!((&shown["state"], states(&shown, "members")["slow"].as_str()), (&json!("completed"), "cancelled"));
    }

    async fn each_cancel_policy_does_what_it_says(kit) {
        let api = kit.api().await;
        api.register("w1", 8).await;
        for policy in ["cancel_all", "cancel_pending", "let_active_finish"] {
            let members: Vec<Value> = std::iter::once(json!({"key": "runs", "kind": "k", "priority": 9})).chain((0..130).map(|n| member(&format!("m{n}")))).collect();
            let edges: Vec<Value> = (0..130).map(|n| edge("runs", &format!("m{n}"))).collect();
            let (id, ids) = submitted(&api, json!({"kind": "k", "members": members, "edges": edges})).await;
            let task = api.claim_one("w1").await;
            assert_eq!(task["key"], "runs");
            let wait = policy != "let_active_finish";
            let body = json!({"reason": "enough", "policy": policy, "wait": wait});
            let done = api.post(&format!("/v1/flows/{id}/cancel"), body).await.with(200);
            assert_eq!((&done["outcome"], &done["state"], &done["flow_id"]), (&json!("cancelled"), &json!("cancelled"), &json!(id)), "{done}");
            assert_eq!((&done["stop"]["reason"], &done["stop"]["policy"]), (&json!("enough"), &json!(policy)));
            assert_eq!(done["finished_at"].is_i64(), wait, "{policy}: {done}");
            assert_eq!(api.claim("w1", json!({"wait_ms": 100})).await.len(), 0, "nothing of it starts");
            match policy {
                "cancel_all" => {
                    assert_eq!(done["counts"], json!({"cancelled": 131}));
                    api.task(&task, "complete", json!({})).await.refused(409, "execution_not_active");
                    let shown = api.execution(&ids["m7"]).await;
                    assert_eq!((&shown["state"], &shown["failure"]["reason"]), (&json!("cancelled"), &json!("enough")));
                }
                "cancel_pending" => {
                    assert_eq!(done["counts"], json!({"cancelled": 130, "active": 1}));
                    api.task(&task, "complete", json!({})).await.with(200);
                }
                _ => {
                    eventually("all but one are cancelled", async || (flow(&api, &id).await["counts"] == json!({"cancelled": 130, "active": 1})).then_some(())).await;
                    assert!(flow(&api, &id).await["finished_at"].is_null());
                    api.task(&task, "complete", json!({})).await.with(200);
                    ended(&api, &id).await;
                }
            }
            let again = api.post(&format!("/v1/flows/{id}/cancel"), json!({"wait": true})).await.with(200);
            assert_eq!(again["outcome"], "already");
        }
    }

    async fn a_cancel_that_waits_says_how_the_flow_stands_when_it_cannot_wait_longer(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, _) = submitted(&api, diamond()).await;
        let task = api.claim_one("w1").await;
        let path = format!("/v1/flows/{id}/cancel");
        let waits = tokio::spawn({
            let (api, path) = (api.clone(), path.clone());
            async move { api.post(&path, json!({"policy": "let_active_finish", "wait": true})).await }
        });
        eventually("the flow is cancelled", async || (flow(&api, &id).await["state"] == "cancelled").then_some(())).await;
        kit.stop().await;
        let answer = waits.await.expect("it is answered").with(202);
        assert_eq!((&answer["outcome"], &answer["state"], &answer["finished_at"]), (&json!("cancelled"), &json!("cancelled"), &Value::Null));

        // The next server goes on with it.
        let api = kit.restart().await;
        api.task(&task, "complete", json!({})).await.with(200);
        let done = api.post(&path, json!({"wait": true})).await.with(200);
        assert_eq!((&done["outcome"], &done["counts"]), (&json!("already"), &json!({"completed": 1, "cancelled": 3})));
    }

    async fn flows_and_their_members_are_listed_page_by_page(kit) {
        let api = kit.api().await;
        let members: Vec<Value> = (0..1_100).map(|n| json!({"key": format!("m{n}"), "kind": "k", "delay_ms": 3_600_000})).collect();
        let edges: Vec<Value> = (1..1_100).map(|n| edge("m0", &format!("m{n}"))).collect();
        let (big, _) = submitted(&api, json!({"kind": "big", "namespace": "n1", "members": members, "edges": edges})).await;
        let mut ids = vec![big.clone()];
        for _ in 0..5 {
            ids.insert(0, submitted(&api, json!({"kind": "small", "members": [{"key": "a", "kind": "k", "delay_ms": 3_600_000}]})).await.0);
        }
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = api.get(&format!("/v1/flows?limit=2&cursor={cursor}")).await.with(200);
            seen.extend(page["items"].as_array().expect("items").iter().map(|flow| flow["flow_id"].as_str().expect("an id").to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen.len(), ids.len());
        seen.sort();
        ids.sort();
        assert_eq!(seen, ids);
        for (filter, count) in [("namespace=n1", 1), ("kind=small", 5), ("state=running", 6), ("state=failed", 0), ("kind=small&namespace=n1", 0)] {
            let page = api.get(&format!("/v1/flows?{filter}")).await.with(200);
            assert_eq!(page["items"].as_array().map(Vec::len), Some(count), "{filter}");
        }

        let shown = flow(&api, &big).await;
        assert_eq!((shown["members"].as_array().map(Vec::len), shown["edges"].as_array().map(Vec::len)), (Some(1_000), Some(999)));
        let cursor = shown["members_next_cursor"].as_str().expect("there are more");
        let rest = api.get(&format!("/v1/flows/{big}/members?cursor={cursor}&limit=1000")).await.with(200);
        assert_eq!((rest["items"].as_array().map(Vec::len), &rest["next_cursor"]), (Some(100), &Value::Null));
        assert_eq!(rest["items"][0]["key"], "m1000");
        let graph = api.get(&format!("/v1/flows/{big}/graph")).await.with(200);
        assert_eq!((graph["nodes"].as_array().map(Vec::len), graph["edges"].as_array().map(Vec::len)), (Some(1_100), Some(1_099)));
        let listed = api.get(&format!("/v1/executions?flow_id={big}&limit=10")).await.with(200);
        assert_eq!((listed["items"].as_array().map(Vec::len), &listed["items"][0]["flow_id"]), (Some(10), &json!(big)));
        assert!(listed["items"][0]["key"].is_string());
    }

    async fn a_flow_runs_in_place_of_a_member(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let inner = json!({"kind": "inner", "members": [member("x"), member("y")], "edges": [edge("x", "y")]});
        let body = json!({"kind": "outer", "default_lane": "default", "members": [member("a"), {"key": "b", "flow": inner}, member("c")], "edges": [edge("a", "b"), edge("b", "c")]});
        let (id, members) = submitted(&api, body).await;
        complete(&api, "a", json!(1)).await;
        complete(&api, "x", json!(1)).await;
        let nested = api.execution(&members["b"]).await;
        assert_eq!((&nested["kind"], &nested["blocking_reason"]), (&json!("inner"), &json!("waiting_for_children")));
        let inside = nested["nested_flow_id"].as_str().expect("a flow").to_owned();
        assert_eq!(flow(&api, &inside).await["parent_id"], json!(members["b"]));
        let explained = api.get(&format!("/v1/executions/{}/explain", members["b"])).await.with(200);
        assert_eq!(explained["reasons"][0]["detail"]["nested_flow_id"], json!(inside), "{explained}");
        assert_eq!(explained["reasons"].as_array().map(Vec::len), Some(1), "{explained}");
        complete(&api, "y", json!(1)).await;
        complete(&api, "c", json!(1)).await;
        assert_eq!(ended(&api, &id).await["state"], "completed");
        let graph = api.get(&format!("/v1/flows/{id}/graph")).await.with(200);
        assert!(graph["nodes"].as_array().expect("nodes").iter().any(|node| node["nested_flow_id"] == json!(inside)));
    }

    async fn a_member_that_is_replayed_opens_what_was_skipped(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let (id, members) = submitted(&api, json!({"kind": "k", "members": [member("a"), member("b")], "edges": [edge("a", "b")]})).await;
        fail(&api, "a").await;
        assert_eq!(states(&ended(&api, &id).await, "members")["b"], "skipped");
        api.post(&format!("/v1/executions/{}/replay", members["a"]), json!({})).await.with(200);
        assert_eq!(flow(&api, &id).await["state"], "running");
        complete(&api, "a", json!(1)).await;
        complete(&api, "b", json!(2)).await;
        assert_eq!(ended(&api, &id).await["state"], "completed");
    }
}
