//! The event feed over HTTP.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::Api;

/// Reads a stream until it has seen `enough` events; each with its SSE id when there is one.
async fn read(api: &Api, query: &str, headers: &[(&str, &str)], enough: usize) -> Vec<(Option<String>, Value)> {
    let mut request = api.http.get(format!("{}/v1/events?{query}", api.base));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = request.send().await.expect("the server answers");
    assert_eq!(answer.status(), 200);
    let sse = answer.headers()["content-type"] == "text/event-stream";
    let mut text = String::new();
    let mut seen = Vec::new();
    while seen.len() < enough {
        let chunk =
            tokio::time::timeout(crate::kit::PATIENCE, answer.chunk()).await.expect("an event comes").expect("a chunk");
        let Some(chunk) = chunk else { break };
        text.push_str(std::str::from_utf8(&chunk).expect("text"));
        let end = if sse { "\n\n" } else { "\n" };
        while let Some((message, rest)) = text.split_once(end) {
            let message = message.to_owned();
            text = rest.to_owned();
            if sse {
                let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let Some(data) = field("data: ") {
                    let event: Value = serde_json::from_str(&data).expect("JSON");
                    assert_eq!(field("event: ").as_deref(), event["type"].as_str());
                    seen.push((field("id: "), event));
                }
            } else if !message.is_empty() {
                seen.push((None, serde_json::from_str(&message).expect("JSON")));
            }
        }
    }
    seen
}

on_both_hosts! {
    async fn what_happens_to_budgets_and_quotas_is_read_by_type(kit) {
        let api = kit.api().await;
        let budget = api.post("/v1/budgets", json!({"dimensions": {"tokens": {"hard": 1}}})).await.with(201)["budget_id"].clone();
        let quota = api.post("/v1/quotas", json!({"concurrency": 1})).await.with(201)["quota_id"].clone();
        let quota_id = quota.as_str().expect("an id");
        api.post(&format!("/v1/quotas/{quota_id}/throttle"), json!({"key": "k", "until": 4_000_000_000_000_i64})).await.with(200);
        api.submit(json!({"kind": "k"})).await;
        let seen = read(&api, "after=start&types=budget.*,quota.*", &[], 3).await;
        let mut told: Vec<(&str, &Value, bool)> = seen
            .iter()
            .map(|(_, event)| {
                let data = &event["data"];
                let about = if data["budget_id"].is_null() { &data["quota_id"] } else { &data["budget_id"] };
                (event["type"].as_str().expect("a type"), about, data["actor"].is_string())
            })
            .collect();
        told.sort_by_key(|(kind, _, _)| *kind);
        assert_eq!(told, [("budget.created", &budget, true), ("quota.created", &quota, true), ("quota.throttled", &quota, true)]);
        let cursor = seen[2].1["cursor"].as_str().expect("a cursor").to_owned();
        api.send(reqwest::Method::DELETE, &format!("/v1/quotas/{quota_id}"), &[], String::new()).await;
        let rest = read(&api, &format!("after={cursor}&types=quota.*&limit=1"), &[], 1).await;
        assert_eq!(rest[0].1["type"], "quota.deleted");
    }

    async fn a_silent_stream_says_where_it_stands(kit) {
        let api = kit.api().await;
        let before = api.submit(json!({"kind": "k"})).await;
        for query in ["after=now", "after=now&worker=nobody", "after=start&types=nothing."] {
            let mut answer = api.http.get(format!("{}/v1/events?{query}", api.base)).send().await.expect("the server answers");
            let chunk = tokio::time::timeout(crate::kit::PATIENCE, answer.chunk()).await.expect("it says something").expect("a chunk");
            let text = String::from_utf8(chunk.expect("not the end").to_vec()).expect("text");
            let id = text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap_or_else(|| panic!("{text:?} names a place")).to_owned();
            assert!(!text.contains("data:"), "{text:?}");
            drop(answer);
            // What happens while nobody reads is not lost, and nothing comes twice.
            let meanwhile = api.submit(json!({"kind": "k"})).await;
            let seen = read(&api, "types=execution.submitted&limit=1", &[("last-event-id", &id)], 1).await;
            assert_eq!(seen[0].1["execution_id"], meanwhile.as_str(), "{query}");
            assert_ne!(meanwhile, before);
        }
    }

    async fn a_reader_goes_on_where_it_stopped(kit) {
        let api = kit.api().await;
        let mut ids = Vec::new();
        for n in 0..10 {
            ids.push(api.submit(json!({"kind": "k", "tags": {"n": n.to_string()}})).await);
        }
        let first = read(&api, "after=start&types=execution.submitted&limit=4", &[], 10).await;
        assert_eq!(first.len(), 4, "limit ends the stream");
        let (id, event) = first.last().expect("four");
        assert_eq!(id.as_deref(), event["cursor"].as_str());
        for field in ["at", "namespace", "lane", "kind", "execution_id", "data"] {
            assert!(!event[field].is_null(), "{field} in {event}");
        }
        let rest = read(&api, "types=execution.submitted", &[("last-event-id", id.as_deref().expect("an id"))], 6).await;
        let after = read(&api, &format!("after={}&types=execution.submitted", id.as_deref().expect("an id")), &[("accept", "application/x-ndjson")], 6).await;
        let of = |events: &[(Option<String>, Value)]| -> Vec<String> {
            events.iter().map(|(_, event)| event["execution_id"].as_str().expect("an id").to_owned()).collect()
        };
        assert_eq!(of(&rest), of(&after));
        let mut all = of(&first);
        all.extend(of(&rest));
        all.sort();
        ids.sort();
        assert_eq!(all, ids, "each event once");
        let tagged = read(&api, "after=start&tag=n:3&limit=1", &[], 1).await;
        assert_eq!(tagged.len(), 1);
        let one = read(&api, &format!("after=start&execution_id={}&limit=1", ids[0]), &[], 1).await;
        assert_eq!(of(&one), [ids[0].clone()]);
    }

    async fn a_stream_that_does_not_follow_ends_with_what_has_happened(kit) {
        let api = kit.api().await;
        for _ in 0..300 {
            api.submit(json!({"kind": "k"})).await;
        }
        let ndjson = [("accept", "application/x-ndjson")];
        let all = read(&api, "after=start&types=execution.submitted&follow=false", &ndjson, usize::MAX).await;
        assert_eq!(all.len(), 300);
        assert!(read(&api, "after=start&kind=other&follow=false", &[], usize::MAX).await.is_empty());
        assert!(read(&api, "follow=false", &ndjson, usize::MAX).await.len() <= 300, "it ends too");
        let wrong = api.http.get(format!("{}/v1/events?follow=maybe", api.base)).send().await.expect("an answer");
        assert_eq!(wrong.status(), 400);
    }

    async fn a_reader_from_now_sees_what_follows(kit) {
        let api = kit.api().await;
        api.submit(json!({"kind": "before"})).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut answer = api.http.get(format!("{}/v1/events?types=execution.", api.base)).send().await.expect("it answers");
        let id = api.submit(json!({"kind": "after"})).await;
        let mut text = String::new();
        while !text.contains("execution.submitted") {
            let chunk = tokio::time::timeout(crate::kit::PATIENCE, answer.chunk()).await.expect("in time").expect("a chunk").expect("more");
            text.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
        assert!(text.contains(&id) && !text.contains("\"before\""), "{text}");
    }
}
