//! Schedules over HTTP: defined, read, fired, steered; what is wrong is refused by name and changes nothing.

use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Api, eventually};

async fn put(api: &Api, name: &str, body: Value) -> crate::kit::Reply {
    api.send(Method::PUT, &format!("/v1/schedules/{name}"), &[], body.to_string()).await
}

fn nightly() -> Value {
    json!({
        "times": [{"cron": "0 3 * * *"}, {"at": 4_000_000_000_000_i64}], "time_zone": "Europe/Berlin", "jitter_ms": 5_000,
        "action": {"execution": {"kind": "report", "input": {"n": 12345678901234567890_u64}, "tags": {"team": "red"}}},
    })
}

on_both_hosts! {
    async fn a_schedule_is_defined_read_changed_and_deleted(kit) {
        let api = kit.api().await;
        let made = put(&api, "nightly", nightly()).await.with(201);
        let told = |field: &str| made[field].clone();
        assert_eq!((told("version"), told("overlap"), told("catch_up_ms"), told("ended")), (json!(1), json!("skip"), json!(60_000), json!(false)));
        assert_eq!((told("paused"), told("remaining"), told("counts")), (json!(null), json!(null), json!({"fired": 0, "skipped": 0, "missed": 0})));
        assert!(told("next_at").is_i64(), "{made}");
        let shown = api.get("/v1/schedules/nightly").await;
        assert!(shown.text().contains(r#""input":{"n":12345678901234567890}"#), "what it submits keeps its text: {}", shown.text());
        let shown = shown.with(200);
        assert_eq!((&shown["action"]["execution"]["kind"], &shown["times"], &shown["time_zone"]), (&json!("report"), &nightly()["times"], &json!("Europe/Berlin")));
        let next = api.get("/v1/schedules/nightly/next?count=3").await.with(200);
        assert_eq!(next["items"].as_array().expect("times").len(), 3);
        assert_eq!((&next["items"][0]["will_fire"], &next["items"][0]["nominal_at"]), (&json!(true), &made["next_at"]));

        let mut body = nightly();
        body["version"] = json!(1);
        body["overlap"] = json!("queue_all");
        let changed = put(&api, "nightly", body.clone()).await.with(200);
        assert_eq!((&changed["version"], &changed["overlap"]), (&json!(2), &json!("queue_all")));
        put(&api, "nightly", body).await.refused(409, "schedule_version_conflict");

        put(&api, "other", nightly()).await.with(201);
        let elsewhere = api.send(Method::PUT, "/v1/schedules/nightly?namespace=acme", &[], nightly().to_string()).await.with(201);
        assert_eq!(elsewhere["namespace"], "acme");
        let names = |page: &Value| -> Vec<String> {
            page["items"].as_array().expect("schedules").iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
        };
        assert_eq!(names(&api.get("/v1/schedules").await.with(200)).len(), 3);
        assert_eq!(names(&api.get("/v1/schedules?namespace=default").await.with(200)), ["other", "nightly"]);
        let first = api.get("/v1/schedules?namespace=default&limit=1").await.with(200);
        let cursor = first["next_cursor"].as_str().expect("there is another");
        let rest = api.get(&format!("/v1/schedules?namespace=default&limit=1&cursor={cursor}")).await.with(200);
        assert_ne!(names(&rest), names(&first));

        assert_eq!(api.send(Method::DELETE, "/v1/schedules/nightly", &[], String::new()).await.status, 204);
        for path in ["", "/next", "/firings"] {
            api.get(&format!("/v1/schedules/nightly{path}")).await.refused(404, "schedule_not_found");
        }
        for verb in ["trigger", "pause", "resume"] {
            api.post(&format!("/v1/schedules/nightly/{verb}"), json!({})).await.refused(404, "schedule_not_found");
        }
        api.get("/v1/schedules/nightly?namespace=acme").await.with(200);
    }

    async fn what_cannot_be_used_is_refused_by_name_and_changes_nothing(kit) {
        let api = kit.api().await;
        put(&api, "nightly", nightly()).await.with(201);
        let before = api.get("/v1/schedules/nightly").await.with(200);
        let action = json!({"execution": {"kind": "k"}});
        let daily = json!([{"cron": "@daily"}]);
        for (body, field) in [
            (json!({"action": action}), "times"),
            (json!({"times": [], "action": action}), "times"),
            (json!({"times": [{"cron": "0 0 30 2 *"}], "action": action}), "times[0].cron"),
            (json!({"times": [{"cron": "@daily"}, {"cron": "61 * * * *"}], "action": action}), "times[1].cron"),
            (json!({"times": [{"cron": "@daily", "every_ms": 5}], "action": action}), "times[0]"),
            (json!({"times": [{"every_ms": 999}], "action": action}), "times[0].every_ms"),
            (json!({"times": [{"at": 5}], "action": action}), "times"),
            (json!({"times": daily, "time_zone": "Mars/Olympus", "action": action}), "time_zone"),
            (json!({"times": daily, "overlap": "never", "action": action}), "overlap"),
            (json!({"times": daily, "catch_up_ms": -1, "action": action}), "catch_up_ms"),
            (json!({"times": daily, "colour": "red", "action": action}), "colour"),
            (json!({"times": daily}), "action"),
            (json!({"times": daily, "action": {}}), "action"),
            (json!({"times": daily, "action": {"execution": {"kind": "k", "execution_id": "0192a7c4-5b1e-7abc-8def-00112233aabb"}}}), "action.execution.execution_id"),
            (json!({"times": daily, "action": {"execution": {"kind": ""}}}), "action.execution.kind"),
            (json!({"times": daily, "action": {"execution": {"kind": "k", "lane": "a b"}}}), "action.execution.lane"),
            (json!({"times": daily, "action": {"execution": {"kind": "k", "namespace": "acme"}}}), "action.execution.namespace"),
            (json!({"times": daily, "action": {"flow": {"kind": "f", "members": [{"key": "a", "kind": "k", "priority": -1}]}}}), "action.flow.members[0].priority"),
        ] {
            let refused = put(&api, "nightly", body.clone()).await.refused(400, "invalid_argument");
            assert!(refused["fields"][field].is_string(), "{body}: {refused}");
        }
        let loops = json!({"kind": "f", "members": [{"key": "a", "kind": "k"}, {"key": "b", "kind": "k"}], "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]});
        put(&api, "nightly", json!({"times": daily, "action": {"flow": loops}})).await.refused(400, "cycle_detected");
        put(&api, &"n".repeat(65), nightly()).await.refused(400, "invalid_argument");
        put(&api, "a%20b", nightly()).await.refused(400, "invalid_argument");
        let after = api.get("/v1/schedules/nightly").await.with(200);
        assert_eq!(after, before);
        let backfill = |body: Value| api.post("/v1/schedules/nightly/backfill", body);
        backfill(json!({"from": 5, "to": 1})).await.refused(400, "invalid_argument");
        backfill(json!({"from": 0, "to": 4_000_000_000_000_i64})).await.refused(400, "invalid_argument");
        backfill(json!({"from": 0, "to": 1_700_000_000_000_i64})).await.refused(400, "invalid_argument");
        api.get("/v1/schedules/nightly/next?count=101").await.refused(400, "invalid_argument");
    }

    async fn a_schedule_is_triggered_paused_and_says_why_it_will_not_fire(kit) {
        let api = kit.api().await;
        put(&api, "nightly", nightly()).await.with(201);
        let request = json!({"request_id": "0192a7c4-5b1e-7abc-8def-00112233aabb"});
        let fired = api.post("/v1/schedules/nightly/trigger", request.clone()).await.with(200);
        let id = fired["execution_id"].as_str().expect("an execution").to_owned();
        let again = api.post("/v1/schedules/nightly/trigger", request).await.with(200);
        assert_eq!((&again["execution_id"], &again["duplicate"], &fired["duplicate"]), (&json!(id), &json!(true), &json!(false)));
        let execution = api.execution(&id).await;
        assert_eq!((&execution["schedule"], &execution["nominal_at"], &execution["tags"]["team"]), (&json!("nightly"), &execution["fired_at"], &json!("red")));
        let next = api.get("/v1/schedules/nightly/next?count=2").await.with(200);
        assert_eq!((&next["items"][0]["why"], &next["items"][1]["will_fire"]), (&json!("overlap"), &json!(true)), "what runs now may still run then");

        api.register("w1", 1).await;
        let task = api.claim_one("w1").await;
        assert_eq!(task["execution_id"], json!(id));
        api.task(&task, "complete", json!({"result": {}})).await.with(200);
        eventually("the schedule is told of the end", async || {
            let firings = api.get("/v1/schedules/nightly/firings").await.with(200);
            (firings["items"][0]["state"] == "ended").then_some(firings)
        })
        .await;
        let paused = api.post("/v1/schedules/nightly/pause", json!({"reason": "holidays"})).await.with(200);
        assert_eq!(paused["paused"]["reason"], "holidays");
        let next = api.get("/v1/schedules/nightly/next?count=1").await.with(200);
        assert_eq!(next["items"][0]["why"], "paused");
        assert_eq!(api.post("/v1/schedules/nightly/resume", json!({})).await.with(200)["paused"], json!(null));

        // What is triggered and refused is said, and missed.
        api.send(Method::PUT, "/v1/lanes/closed", &[], json!({}).to_string()).await.with(200);
        api.post("/v1/lanes/closed/disable", json!({})).await.with(200);
        put(&api, "closed", json!({"times": [{"cron": "@daily"}], "action": {"execution": {"kind": "k", "lane": "closed"}}})).await.with(201);
        api.post("/v1/schedules/closed/trigger", json!({})).await.refused(409, "lane_disabled");
        let firings = api.get("/v1/schedules/closed/firings").await.with(200);
        assert_eq!((&firings["items"][0]["state"], &firings["items"][0]["why"]), (&json!("missed"), &json!("lane_disabled")));
        let events = api.get("/v1/events?after=start&types=schedule.created,schedule.fired,schedule.missed,schedule.paused&follow=false").await;
        for kind in ["schedule.created", "schedule.fired", "schedule.missed", "schedule.paused"] {
            assert!(events.text().contains(kind), "{kind}: {}", events.text());
        }
    }
}
