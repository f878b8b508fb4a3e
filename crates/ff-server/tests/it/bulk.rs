//! Cancelling and replaying many by filters.

use serde_json::json;

on_both_hosts! {
    async fn one_flow_is_a_filter_of_its_own(kit) {
        let api = kit.api().await;
        let mut flows = Vec::new();
        for _ in 0..2 {
            let members = json!([{"key": "a", "kind": "k"}, {"key": "b", "kind": "k"}]);
            let flow = api.post("/v1/flows", json!({"kind": "f", "members": members})).await.with(201);
            flows.push(flow["flow_id"].as_str().expect("an id").to_owned());
        }
        let alone = api.submit(json!({"kind": "k"})).await;
        let refused = api.post("/v1/executions:cancel", json!({})).await.refused(400, "invalid_argument");
        assert!(refused.to_string().contains("flow_id"), "{refused}");
        api.post("/v1/executions:cancel", json!({"flow_id": "x"})).await.refused(400, "invalid_argument");
        let cancelled = api.post("/v1/executions:cancel", json!({"flow_id": flows[0]})).await.with(200);
        assert_eq!((&cancelled["matched"], &cancelled["cancelled"]), (&json!(2), &json!(2)));
        assert_eq!(api.execution(&alone).await["state"], "waiting");
        for (flow, state) in [(&flows[0], "cancelled"), (&flows[1], "waiting")] {
            let members = api.get(&format!("/v1/executions?flow_id={flow}")).await.with(200);
            let states: Vec<&str> = members["items"].as_array().expect("items").iter().filter_map(|one| one["state"].as_str()).collect();
            assert_eq!(states, [state, state]);
        }
        let replayed = api.post(&format!("/v1/executions:replay?flow_id={}", flows[1]), json!({})).await.with(200);
        assert_eq!(replayed["matched"], 0);
    }

    async fn what_matches_is_cancelled_and_replayed_and_the_rest_stays(kit) {
        let api = kit.api().await;
        for n in 0..30 {
            let lane = if n % 3 == 0 { "keep" } else { "drop" };
            api.submit(json!({"kind": "k", "lane": lane})).await;
        }
        api.post("/v1/executions:cancel", json!({})).await.refused(400, "invalid_argument");
        let some = api.post("/v1/executions:cancel", json!({"lane": "drop", "limit": 5, "reason": "enough"})).await.with(200);
        assert_eq!((&some["matched"], &some["cancelled"]), (&json!(5), &json!(5)));
        let cursor = some["next_cursor"].as_str().expect("there is more");
        let rest = api.post(&format!("/v1/executions:cancel?lane=drop&cursor={cursor}"), json!({})).await.with(200);
        assert_eq!((&rest["cancelled"], &rest["next_cursor"]), (&json!(15), &json!(null)));
        let count = async |query: &str| api.get(&format!("/v1/executions?limit=1000&{query}")).await.with(200)["items"].as_array().expect("items").len();
        assert_eq!((count("state=cancelled").await, count("state=waiting").await), (20, 10));
        let replayed = api.post("/v1/executions:replay", json!({"state": "cancelled", "reason": "again"})).await.with(200);
        assert_eq!((&replayed["matched"], &replayed["replayed"], &replayed["refused"]), (&json!(20), &json!(20), &json!(0)));
        assert_eq!(count("state=waiting").await, 30);
        api.post("/v1/executions:replay", json!({"lane": "keep", "grace_ms": 1})).await.refused(400, "invalid_argument");
        let none = api.post("/v1/executions:replay", json!({"lane": "keep"})).await.with(200);
        assert_eq!(none["matched"], 0);
    }
}
