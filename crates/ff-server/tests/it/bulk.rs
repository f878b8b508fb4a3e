//! Cancelling and replaying many by filters.

use serde_json::json;

on_both_hosts! {
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
