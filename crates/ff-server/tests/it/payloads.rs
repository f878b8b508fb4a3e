//! Bytes in are bytes out, whatever they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::kit::{Api, Reply, fence};

/// A field of an answer with the text it came with.
fn raw(reply: &Reply, path: &[&str]) -> String {
    let mut text = reply.text().to_owned();
    for name in path {
        text = match name.parse::<usize>() {
            Ok(index) => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(&text).expect("a list");
                items[index].get().to_owned()
            }
            Err(_) => {
                let fields: std::collections::HashMap<String, Box<RawValue>> =
                    serde_json::from_str(&text).expect("an object");
                fields[*name].get().to_owned()
            }
        };
    }
    text
}

/// Sends a payload through submit, claim, complete and result, and asserts that it stays as it is.
async fn travels(api: &Api, json: &str, encoding: Option<&str>) {
    let with =
        |field: &str| encoding.map(|encoding| format!(r#","{field}_encoding":"{encoding}""#)).unwrap_or_default();
    let body = format!(r#"{{"kind":"k","input":{json}{}}}"#, with("input"));
    let submitted = api.send(Method::POST, "/v1/executions", &[], body).await.with(201);
    let id = submitted["execution_id"].as_str().expect("an id").to_owned();
    let shown = api.get(&format!("/v1/executions/{id}")).await;
    // Null that is not called JSON says nothing.
    let nothing = json == "null" && encoding.is_none();
    let expected_encoding = if nothing { "null".to_owned() } else { format!("\"{}\"", encoding.unwrap_or("json")) };
    assert_eq!((raw(&shown, &["input"]).as_str(), raw(&shown, &["input_encoding"])), (json, expected_encoding.clone()));
    let claimed = api.post("/v1/workers/w1/claim", json!({"wait_ms": 5_000})).await;
    assert_eq!(raw(&claimed, &["tasks", "0", "input"]), json);
    let task: Value = claimed.with(200)["tasks"][0].clone();
    let body = format!(r#"{{"fence":{},"result":{json}{}}}"#, fence(&task), with("result"));
    api.send(Method::POST, &format!("/v1/tasks/{id}/complete"), &[], body).await.with(200);
    let result = api.get(&format!("/v1/executions/{id}/result")).await;
    if nothing {
        return;
    }
    assert_eq!((raw(&result, &["result"]).as_str(), raw(&result, &["result_encoding"])), (json, expected_encoding));
    let shown = api.get(&format!("/v1/executions/{id}")).await;
    assert_eq!(raw(&shown, &["result"]), json);
}

on_both_hosts! {
    async fn json_keeps_its_text_and_bytes_their_values(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        for json in [
            r#"{"z":1,"a":2,"m":{"y":1,"b":2}}"#, "9007199254740993", "12345678901234567890123456789", "-0", "1.0", "1e2", "0.1000",
            r#""\u00e9 é \ud83d\ude00""#, "[]", "{}", "false", "0", r#"[null,true,{"":""}]"#, "null", r#""""#,
        ] {
            travels(&api, json, None).await;
        }
        travels(&api, "null", Some("json")).await;
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [&all[..], b"", b"\0", b"{\"a\":1}", b"text"] {
            travels(&api, &format!("\"{}\"", STANDARD.encode(bytes)), Some("base64")).await;
        }
        let large = format!("\"{}\"", "x".repeat(1024 * 1024 - 2));
        travels(&api, &large, None).await;
    }

    async fn nothing_said_is_empty(kit) {
        let api = kit.api().await;
        api.register("w1", 1).await;
        let id = api.submit(json!({"kind": "k"})).await;
        let task = api.claim_one("w1").await;
        assert_eq!((&task["input"], &task["input_encoding"]), (&Value::Null, &Value::Null));
        api.task(&task, "complete", json!({})).await.with(200);
        let result = api.get(&format!("/v1/executions/{id}/result")).await.with(200);
        assert_eq!((&result["outcome"], &result["result"]), (&json!("success"), &Value::Null));
    }
}
