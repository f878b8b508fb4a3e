//! Traces and ids of requests: what a submitter sends along reaches the worker.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::Api;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

async fn traced(api: &Api, path: &str, trace: &str, body: Value) -> Value {
    let reply = api.send(Method::POST, path, &[("traceparent", trace)], body.to_string()).await;
    assert!(reply.status < 300, "{path}: {}", reply.text());
    // A batch answers line by line.
    reply.text().lines().next().map(|line| serde_json::from_str(line).expect("JSON")).unwrap_or_default()
}

async fn trace_of(api: &Api, id: &Value) -> Value {
    api.execution(id.as_str().expect("an id")).await["trace_parent"].clone()
}

on_both_hosts! {
    async fn a_request_gives_its_trace_to_what_it_submits(kit) {
        let api = kit.api().await;
        api.register("w1", 8).await;
        let submitted = traced(&api, "/v1/executions", TRACE, json!({"kind": "k", "priority": 9})).await;
        assert_eq!(trace_of(&api, &submitted["execution_id"]).await, TRACE);
        let task = api.claim_one("w1").await;
        assert_eq!(task["trace_parent"], TRACE, "and the worker gets it");

        let own = traced(&api, "/v1/executions", TRACE, json!({"kind": "k", "trace_parent": OTHER})).await;
        assert_eq!(trace_of(&api, &own["execution_id"]).await, OTHER, "the body says it better");
        for strange in ["", "trace", "00-xyz", "00-00000000000000000000000000000000-b7ad6b7169203331-01"] {
            let none = traced(&api, "/v1/executions", strange, json!({"kind": "k"})).await;
            assert_eq!(trace_of(&api, &none["execution_id"]).await, Value::Null, "{strange:?}");
        }
        let batch = traced(&api, "/v1/executions:batch", TRACE, json!([{"kind": "k"}])).await;
        assert_eq!(trace_of(&api, &batch["execution_id"]).await, TRACE);
        let nested = json!({"kind": "inner", "members": [{"key": "x", "kind": "k"}]});
        let flow = json!({"kind": "f", "members": [{"key": "a", "kind": "k"}, {"key": "b", "kind": "k", "trace_parent": OTHER}, {"key": "c", "flow": nested}]});
        let flow = traced(&api, "/v1/flows", TRACE, flow).await;
        assert_eq!(trace_of(&api, &flow["members"][0]["execution_id"]).await, TRACE);
        assert_eq!(trace_of(&api, &flow["members"][1]["execution_id"]).await, OTHER);
        let path = format!("/v1/flows/{}/members", flow["flow_id"].as_str().expect("an id"));
        let added = traced(&api, &path, OTHER, json!({"members": [{"key": "d", "kind": "k"}]})).await;
        assert_eq!(trace_of(&api, &added["members"][0]["execution_id"]).await, OTHER);

        // A child belongs to the attempt's trace, or to its parent's when the worker names none.
        let spawned = api.task(&task, "spawn", json!({"children": [{"kind": "child"}]})).await.with(200);
        assert_eq!(trace_of(&api, &spawned["children"][0]["execution_id"]).await, TRACE);
    }

    async fn every_answer_carries_the_id_of_its_request(kit) {
        let api = kit.api().await;
        let answered = async |sent: Option<&str>| {
            let headers: Vec<(&str, &str)> = sent.map(|id| ("x-request-id", id)).into_iter().collect();
            let reply = api.send(Method::GET, "/v1/stats", &headers, "").await;
            reply.headers["x-request-id"].to_str().expect("text").to_owned()
        };
        assert_eq!(answered(Some("order-42")).await, "order-42");
        let long = "x".repeat(200);
        for none in [None, Some(""), Some("two words"), Some(long.as_str())] {
            assert!(answered(none).await.parse::<uuid::Uuid>().is_ok(), "{none:?}");
        }
    }
}
