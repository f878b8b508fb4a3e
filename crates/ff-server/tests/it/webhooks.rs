//! Webhooks end to end: signed, tried again, never where they must not go.

use serde_json::{Value, json};

use crate::kit::{Api, eventually};
use crate::receiver::{Receiver, Says};

const LOOPBACK: &[&str] = &["127.0.0.0/8"];

async fn key(api: &Api, namespace: &str) -> String {
    let answer = api.get(&format!("/v1/webhooks/key?namespace={namespace}")).await.with(200);
    answer["keys"][0]["key"].as_str().expect("a key").to_owned()
}

/// Runs one execution of the default lane to its end.
async fn complete(api: &Api, body: Value) -> String {
    let id = api.submit(body).await;
    let task = api.claim_one("w1").await;
    assert_eq!(task["execution_id"], id);
    api.task(&task, "complete", json!({ "result": 42 })).await.with(200);
    id
}

async fn webhook_in(api: &Api, id: &str, state: &str) -> Value {
    eventually(&format!("the webhook of {id} is {state}"), async || {
        let webhook = api.execution(id).await["webhook"].clone();
        (webhook["state"] == state).then_some(webhook)
    })
    .await
}

/// The events of this execution that are about webhooks, as type and data.
async fn told(api: &Api, id: &str) -> Vec<(String, Value)> {
    let all = api
        .send(reqwest::Method::GET, "/v1/events?after=start&follow=false", &[("accept", "application/x-ndjson")], "")
        .await;
    let lines =
        all.text().lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).expect("JSON"));
    lines
        .filter(|event: &Value| {
            event["execution_id"] == id && event["type"].as_str().is_some_and(|t| t.starts_with("webhook."))
        })
        .map(|event| (event["type"].as_str().unwrap_or_default().to_owned(), event["data"].clone()))
        .collect()
}

on_both_hosts! {
    async fn an_end_is_told_once_and_signed(kit) {
        let api = kit.reaching(LOOPBACK).await;
        let receiver = Receiver::saying(&[Says::Status(204)]).await;
        api.register("w1", 4).await;
        let id = complete(&api, json!({
            "kind": "mail", "completion_webhook": receiver.url("/done?a=b"), "tags": { "team": "red" }, "input": { "secret": 1 },
        })).await;
        let seen = webhook_in(&api, &id, "delivered").await;
        assert_eq!((&seen["tries"], &seen["status"], &seen["next_at"], &seen["error"]), (&json!(1), &json!(204), &Value::Null, &Value::Null));
        let heard = receiver.wait_for(1).await;
        let one = &heard[0];
        one.verify(&key(&api, "default").await);
        assert_eq!((one.method.as_str(), one.path.as_str(), one.header("content-type")), ("POST", "/done?a=b", "application/json"));
        assert!(one.header("user-agent").starts_with("FlowFabric/"), "{}", one.header("user-agent"));
        let ended_at = api.execution(&id).await["ended_at"].clone();
        assert_eq!(one.json(), json!({
            "id": seen["delivery_id"], "type": "execution.completed", "at": ended_at, "namespace": "default", "lane": "default", "kind": "mail",
            "execution_id": id, "outcome": "success", "tags": { "team": "red" }, "attempt_index": 0, "replay_count": 0,
        }));
        assert_eq!(told(&api, &id).await, [("webhook.delivered".to_owned(), json!({ "delivery_id": seen["delivery_id"], "tries": 1, "status": 204 }))]);
        assert_eq!(receiver.heard().len(), 1);
        // One without an address owes nothing.
        let quiet = complete(&api, json!({ "kind": "mail" })).await;
        assert_eq!(api.execution(&quiet).await["webhook"], Value::Null);
    }

    async fn every_outcome_is_told(kit) {
        let api = kit.reaching(LOOPBACK).await;
        let receiver = Receiver::saying(&[Says::Status(200)]).await;
        api.register("w1", 4).await;
        let body = |kind: &str| json!({ "kind": kind, "completion_webhook": receiver.url("/"), "retry": { "max_attempts": 1 } });
        let failed = api.submit(body("failed")).await;
        let task = api.claim_one("w1").await;
        api.task(&task, "fail", json!({ "reason": "no", "category": "net" })).await.with(200);
        let cancelled = api.submit(body("cancelled")).await;
        api.post(&format!("/v1/executions/{cancelled}/cancel"), json!({ "reason": "enough" })).await.with(200);
        let mut late = body("expired");
        late["deadline_ms"] = json!(1);
        let expired = api.submit(late).await;
        let flow = json!({ "kind": "f", "completion_webhook": receiver.url("/flow"), "members": [
            { "key": "a", "kind": "a", "retry": { "max_attempts": 1 } },
            { "key": "b", "kind": "skipped", "completion_webhook": receiver.url("/") },
        ], "edges": [{ "from": "a", "to": "b" }] });
        let flow = api.post("/v1/flows", flow).await.with(201);
        let task = api.claim_one("w1").await;
        api.task(&task, "fail", json!({ "reason": "no", "category": "net" })).await.with(200);
        let heard = receiver.wait_for(5).await;
        let mut said: Vec<(String, String)> = heard.iter().map(|one| {
            let json = one.json();
            (json["type"].as_str().expect("a type").to_owned(), json["failure"]["category"].as_str().unwrap_or("-").to_owned())
        }).collect();
        said.sort();
        let expected = [("execution.cancelled", "cancelled"), ("execution.expired", "deadline"), ("execution.failed", "net"), ("execution.skipped", "dependency_impossible"), ("flow.failed", "-")];
        let kinds = |list: &[(String, String)]| list.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>();
        assert_eq!(kinds(&said), expected.map(|(kind, _)| kind.to_owned()));
        assert_eq!(said[..3], expected[..3].iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>()[..]);
        for id in [&failed, &cancelled, &expired] { webhook_in(&api, id, "delivered").await; }
        let key = key(&api, "default").await;
        heard.iter().for_each(|one| one.verify(&key));
        let of_flow = heard.iter().find(|one| one.path == "/flow").expect("the flow is told").json();
        assert_eq!((&of_flow["flow_id"], &of_flow["outcome"], of_flow.get("execution_id")), (&flow["flow_id"], &json!("failed"), None));
        let flow_id = flow["flow_id"].as_str().expect("an id");
        let shown = eventually("the flow's webhook is delivered", async || {
            let flow = api.get(&format!("/v1/flows/{flow_id}")).await.with(200);
            (flow["webhook"]["state"] == "delivered").then_some(flow)
        }).await;
        assert_eq!(shown["completion_webhook"], receiver.url("/flow"));
    }

    async fn a_failure_is_tried_again_under_the_same_id_until_it_is_delivered(kit) {
        let api = kit.reaching(LOOPBACK).await;
        let receiver = Receiver::saying(&[Says::Status(500), Says::With(302, "location", "/elsewhere".into()), Says::Status(200)]).await;
        api.register("w1", 4).await;
        let id = complete(&api, json!({ "kind": "mail", "completion_webhook": receiver.url("/done") })).await;
        receiver.wait_for(1).await;
        let pending = eventually("the failure is shown", async || {
            let webhook = api.execution(&id).await["webhook"].clone();
            (webhook["tries"] != 0).then_some(webhook)
        }).await;
        assert_eq!((&pending["state"], &pending["error"]), (&json!("pending"), &json!("answered 500")));
        assert!(pending["next_at"].is_i64());
        let seen = webhook_in(&api, &id, "delivered").await;
        assert_eq!((&seen["tries"], &seen["status"]), (&json!(3), &json!(200)));
        let heard = receiver.heard();
        assert_eq!(heard.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), ["/done", "/done", "/done"], "redirects are not followed");
        let key = key(&api, "default").await;
        for one in &heard {
            assert_eq!(one.id(), seen["delivery_id"]);
            assert_eq!(one.bytes, heard[0].bytes, "each try says the same");
            one.verify(&key);
        }
        assert_eq!(told(&api, &id).await.len(), 1);
    }

    async fn a_receiver_that_is_gone_for_good_is_given_up(kit) {
        let api = kit.reaching(LOOPBACK).await;
        let receiver = Receiver::saying(&[Says::Status(410)]).await;
        api.register("w1", 4).await;
        let id = complete(&api, json!({ "kind": "mail", "completion_webhook": receiver.url("/") })).await;
        let seen = webhook_in(&api, &id, "failed").await;
        assert_eq!((&seen["tries"], &seen["status"], &seen["next_at"]), (&json!(1), &json!(410), &Value::Null));
        let told = told(&api, &id).await;
        assert_eq!((told.len(), told[0].0.as_str(), &told[0].1["status"]), (1, "webhook.failed", &json!(410)));
        assert_eq!(receiver.heard().len(), 1);
    }

    async fn an_endless_answer_is_not_read_to_its_end(kit) {
        let api = kit.reaching(LOOPBACK).await;
        api.register("w1", 4).await;
        for says in [Says::Flood(200), Says::Stuck(200)] {
            let receiver = Receiver::saying(&[says]).await;
            let id = complete(&api, json!({ "kind": "mail", "completion_webhook": receiver.url("/") })).await;
            assert_eq!(webhook_in(&api, &id, "delivered").await["tries"], 1);
        }
    }

    async fn what_was_owed_while_nobody_listened_comes_after_a_restart(kit) {
        let api = kit.reaching(LOOPBACK).await;
        let receiver = Receiver::saying(&[Says::Status(200)]).await;
        let (address, url) = (receiver.address.to_string(), receiver.url("/"));
        drop(receiver);
        api.register("w1", 4).await;
        let id = complete(&api, json!({ "kind": "mail", "completion_webhook": url })).await;
        let failed = eventually("a try failed", async || {
            let webhook = api.execution(&id).await["webhook"].clone();
            (webhook["tries"] != 0).then_some(webhook)
        }).await;
        assert!(failed["error"].as_str().is_some_and(|error| error.starts_with("cannot connect: ")), "{failed}");
        eventually("the address is free again", async || tokio::net::TcpListener::bind(&address).await.ok().map(drop)).await;
        let receiver = Receiver::at(&address, &[Says::Status(200)]).await;
        let api = kit.reaching(LOOPBACK).await;
        let seen = webhook_in(&api, &id, "delivered").await;
        assert_eq!(seen["delivery_id"], failed["delivery_id"]);
        assert_eq!(receiver.wait_for(1).await[0].id(), seen["delivery_id"]);
    }

    async fn a_dead_receiver_keeps_nobody_waiting(kit) {
        let api = kit.reaching(LOOPBACK).await;
        let (dead, live) = (Receiver::saying(&[Says::Nothing]).await, Receiver::saying(&[Says::Status(200)]).await);
        api.register("w1", 64).await;
        let lines = |url: &str, count: usize| (0..count).map(|_| json!({ "kind": "mail", "completion_webhook": url }).to_string() + "\n").collect::<String>();
        // All that is for the dead one ends before any that is for the live one.
        for (url, count) in [(dead.url("/"), 1_000), (live.url("/"), 40)] {
            api.send(reqwest::Method::POST, "/v1/executions:batch", &[("content-type", "application/x-ndjson")], lines(&url, count)).await;
            let mut ended = 0;
            while ended < count {
                let tasks = api.claim("w1", json!({ "max": 64, "wait_ms": 10_000 })).await;
                let results: Vec<Value> = tasks.iter().map(|task| json!({ "execution_id": task["execution_id"], "fence": crate::kit::fence(task), "op": "complete" })).collect();
                api.post("/v1/workers/w1/results", json!(results)).await.with(200);
                ended += tasks.len();
            }
        }
        let heard = live.wait_for(40).await;
        assert_eq!(heard.len(), 40);
        let tried = dead.heard().len();
        assert!(tried <= 64, "{tried} tries for a receiver that never answered one");
    }

    async fn nothing_goes_where_it_must_not(kit) {
        let api = kit.api().await;
        let receiver = Receiver::saying(&[Says::Status(200)]).await;
        let port = receiver.address.port();
        let submit = async |url: &str| api.post("/v1/executions", json!({ "kind": "mail", "completion_webhook": url })).await;
        for (url, problem) in [
            (format!("http://127.0.0.1:{port}/"), "cannot be reached: the host is a loopback address"),
            (format!("https://127.0.0.1:{port}/"), "cannot be reached: the host is a loopback address"),
            (format!("https://2130706433:{port}/"), "cannot be reached: the host is a loopback address"),
            (format!("https://[::ffff:127.0.0.1]:{port}/"), "cannot be reached: the host is a loopback address"),
            ("https://169.254.169.254/latest/meta-data/".to_owned(), "cannot be reached: the host is a link-local address"),
            ("https://10.0.0.1/".to_owned(), "cannot be reached: the host is a private address"),
            ("https://[fd00:ec2::254]/".to_owned(), "cannot be reached: the host is a private address"),
            ("http://example.org/".to_owned(), "cannot be reached: nothing is sent without encryption"),
            ("https://user:secret@example.org/".to_owned(), "must not hold a user"),
            ("https://example.org/#x".to_owned(), "must hold no white space"),
            ("ftp://example.org/".to_owned(), "must begin with https://"),
            ("example.org".to_owned(), "must be an address"),
            (format!("https://example.org/{}", "x".repeat(2_048)), "must be at most 2048 bytes long"),
        ] {
            let refused = submit(&url).await.refused(400, "invalid_argument");
            let said = refused["fields"]["completion_webhook"].as_str().unwrap_or_default();
            assert!(said.starts_with(problem), "{url}: {refused}");
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
        let flow = json!({ "kind": "f", "members": [{ "key": "a", "kind": "k" }, { "key": "b", "kind": "k", "completion_webhook": "https://10.0.0.1/" }] });
        let refused = api.post("/v1/flows", flow).await.refused(400, "invalid_argument");
        assert!(refused["fields"]["members[1].completion_webhook"].is_string(), "{refused}");
        let flow = json!({ "kind": "f", "completion_webhook": "ftp://x/", "members": [{ "key": "a", "kind": "k" }] });
        assert!(api.post("/v1/flows", flow).await.refused(400, "invalid_argument")["fields"]["completion_webhook"].is_string());

        // A name says nothing about where it leads before it is looked up.
        api.register("w1", 4).await;
        let id = complete(&api, json!({ "kind": "mail", "completion_webhook": format!("https://localhost:{port}/") })).await;
        let seen = eventually("a try failed", async || {
            let webhook = api.execution(&id).await["webhook"].clone();
            (webhook["tries"] != 0).then_some(webhook)
        }).await;
        let error = seen["error"].as_str().unwrap_or_default();
        assert!(error.starts_with("the host is a loopback address; a server started with --webhook-allow"), "{seen}");
        assert_eq!(receiver.heard().len(), 0);
    }

    async fn without_encryption_only_opened_networks_are_reached(kit) {
        let api = kit.reaching(&["10.0.0.0/8"]).await;
        let receiver = Receiver::saying(&[Says::Status(200)]).await;
        api.register("w1", 4).await;
        let id = complete(&api, json!({ "kind": "mail", "completion_webhook": format!("http://localhost:{}/", receiver.address.port()) })).await;
        let seen = eventually("a try failed", async || {
            let webhook = api.execution(&id).await["webhook"].clone();
            (webhook["tries"] != 0).then_some(webhook)
        }).await;
        assert!(seen["error"].as_str().is_some_and(|error| error.starts_with("the host is a loopback address")), "{seen}");
        assert_eq!(receiver.heard().len(), 0);
    }

    async fn keys_belong_to_namespaces_and_rotate_with_the_ring(kit) {
        let api = kit.reaching(LOOPBACK).await;
        let receiver = Receiver::saying(&[Says::Status(200)]).await;
        let (default, other) = (key(&api, "default").await, key(&api, "other").await);
        assert_ne!(default, other);
        assert_eq!(key(&api, "default").await, default);
        let reply = api.get("/v1/webhooks/key").await;
        assert_eq!(reply.headers.get("cache-control").map(|v| v.as_bytes()), Some(&b"no-store"[..]));
        assert_eq!(reply.with(200)["namespace"], "default");
        api.get("/v1/webhooks/key?namespace=a/b").await.refused(400, "invalid_argument");

        api.post("/v1/admin/keys/rotate", json!({ "grace_ms": 600_000 })).await.with(200);
        let both = api.get("/v1/webhooks/key?namespace=default").await.with(200);
        assert_eq!((both["keys"][1]["key"].as_str(), both["keys"][1]["signs_until"].is_i64()), (Some(default.as_str()), true));
        let id = api.submit(json!({ "kind": "mail", "namespace": "default", "completion_webhook": receiver.url("/") })).await;
        api.post(&format!("/v1/executions/{id}/cancel"), json!({ "reason": "x" })).await.with(200);
        let heard = receiver.wait_for(1).await;
        heard[0].verify(&default);
        heard[0].verify(both["keys"][0]["key"].as_str().expect("a key"));

        api.post("/v1/admin/keys/rotate", json!({ "grace_ms": 0 })).await.with(200);
        let newest = key(&api, "default").await;
        assert_ne!(newest, default);
    }

    async fn only_operators_of_a_namespace_read_its_key(kit) {
        let (_server, root) = kit.guarded().await;
        let made = root.post("/v1/admin/tokens", json!({ "name": "op", "roles": ["operator"], "namespaces": ["team-a"] })).await.with(201);
        let operator = root.bearing(made["token"].as_str().expect("a token"));
        assert_eq!(operator.get("/v1/webhooks/key?namespace=team-a").await.with(200)["namespace"], "team-a");
        operator.get("/v1/webhooks/key?namespace=default").await.refused(403, "forbidden");
        let made = root.post("/v1/admin/tokens", json!({ "name": "sub", "roles": ["submit"] })).await.with(201);
        let submitter = root.bearing(made["token"].as_str().expect("a token"));
        submitter.get("/v1/webhooks/key").await.refused(403, "forbidden");
    }
}
