//! `/metrics`: the numbers are those of the history, and reading them is cheap.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use ff_server::{METRICS, Metric, MetricKind, MetricSource};
use reqwest::Method;
use serde_json::{Value, json};

use crate::exposition::{self, Labels, Page};
use crate::kit::{Api, eventually};

async fn scrape(api: &Api) -> Page {
    let reply = api.get("/metrics").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    exposition::plain(reply.text())
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// One number of a page; none is 0.
fn number(page: &Page, name: &str, pairs: &[(&str, &str)]) -> f64 {
    let family = name.strip_suffix("_bucket").or(name.strip_suffix("_sum")).or(name.strip_suffix("_count"));
    let family = page.get(name).or_else(|| page.get(family.unwrap_or(name)));
    family.and_then(|family| family.samples.get(&(name.to_owned(), labels(pairs)))).copied().unwrap_or(0.0)
}

/// Everything that has happened.
async fn events(api: &Api) -> Vec<Value> {
    let path = "/v1/events?after=start&follow=false";
    let reply = api.send(Method::GET, path, &[("accept", "application/x-ndjson")], "").await;
    let lines = reply.text().lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What the counters of the history must be, counted from the events one by one.
fn recounted(events: &[Value]) -> BTreeMap<(String, Labels), f64> {
    let mut counts: BTreeMap<(String, Labels), f64> = BTreeMap::new();
    for event in events {
        let kind = event["type"].as_str().expect("a type");
        let data = |name: &str| event["data"][name].as_str();
        let mut add = |name: &str, extra: &[(&str, &str)], lane: bool| {
            let mut pairs = extra.to_vec();
            if lane {
                pairs.push(("namespace", event["namespace"].as_str().expect("a namespace")));
                pairs.push(("lane", event["lane"].as_str().expect("a lane")));
            }
            *counts.entry((name.to_owned(), labels(&pairs))).or_default() += 1.0;
        };
        add("ff_events_total", &[("type", kind)], false);
        match kind {
            "execution.submitted" => add("ff_executions_submitted_total", &[], true),
            "execution.started" => {
                let kind = if event["data"]["continues"] == true {
                    "continuation"
                } else {
                    data("attempt_type").expect("it is there")
                };
                add("ff_executions_started_total", &[("type", kind)], true);
            }
            "execution.completed" => add("ff_executions_finished_total", &[("outcome", "success")], true),
            "execution.failed" => add("ff_executions_finished_total", &[("outcome", "failed")], true),
            "execution.cancelled" => add("ff_executions_finished_total", &[("outcome", "cancelled")], true),
            "execution.expired" => add("ff_executions_finished_total", &[("outcome", "expired")], true),
            "execution.skipped" => add("ff_executions_finished_total", &[("outcome", "skipped")], true),
            "execution.retried" => add("ff_executions_retried_total", &[], true),
            "execution.resumed" => add("ff_executions_resumed_total", &[], true),
            "execution.replayed" => add("ff_executions_replayed_total", &[], true),
            "execution.suspended" => {
                add("ff_executions_suspended_total", &[("reason", data("reason").expect("it is there"))], true)
            }
            "execution.blocked" => {
                add("ff_executions_blocked_total", &[("reason", data("reason").expect("it is there"))], true)
            }
            _ => {}
        }
        match (kind, data("cause")) {
            ("execution.reclaimed" | "execution.failed", Some("expired")) => add("ff_lease_expiries_total", &[], true),
            ("execution.reclaimed" | "execution.failed", Some("revoked")) => {
                add("ff_lease_revocations_total", &[], true)
            }
            _ => {}
        }
        let namespace = event["namespace"].as_str().unwrap_or_default();
        match kind {
            "flow.created" => add("ff_flows_created_total", &[("namespace", namespace)], false),
            "flow.completed" | "flow.failed" | "flow.cancelled" => {
                let outcome = kind.strip_prefix("flow.").expect("it is there");
                add("ff_flows_finished_total", &[("namespace", namespace), ("outcome", outcome)], false);
            }
            "schedule.fired" | "schedule.skipped" | "schedule.missed" => {
                let outcome = kind.strip_prefix("schedule.").expect("it is there");
                add("ff_schedule_firings_total", &[("namespace", namespace), ("outcome", outcome)], false);
            }
            _ => {}
        }
    }
    for (histogram, field) in [
        ("ff_schedule_to_start_seconds", "waited_ms"),
        ("ff_execution_run_seconds", "ran_ms"),
        ("ff_execution_duration_seconds", "took_ms"),
    ] {
        for event in events {
            let Some(ms) = event["data"][field].as_f64() else { continue };
            let lane = labels(&[
                ("namespace", event["namespace"].as_str().expect("it is there")),
                ("lane", event["lane"].as_str().expect("it is there")),
            ]);
            *counts.entry((format!("{histogram}_count"), lane.clone())).or_default() += 1.0;
            *counts.entry((format!("{histogram}_sum"), lane)).or_default() += ms / 1_000.0;
        }
    }
    counts
}

/// The same numbers as a page has them, without those that are zero and without buckets.
fn history(page: &Page) -> BTreeMap<(String, Labels), f64> {
    let from_events = |metric: &&Metric| {
        let counted = metric.kind == MetricKind::Counter || metric.kind == MetricKind::Histogram;
        metric.source == MetricSource::Store
            && counted
            && !["ff_store_commands", "ff_history_gaps"].contains(&metric.family)
    };
    let mut numbers = BTreeMap::new();
    for metric in METRICS.iter().filter(from_events) {
        let Some(family) = page.get(&metric.name()) else { continue };
        for ((name, labels), value) in family.samples.iter().filter(|((name, _), _)| !name.ends_with("_bucket")) {
            if *value != 0.0 {
                numbers.insert((name.clone(), labels.clone()), *value);
            }
        }
    }
    numbers
}

fn close(a: &BTreeMap<(String, Labels), f64>, b: &BTreeMap<(String, Labels), f64>) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((k1, v1), (k2, v2))| k1 == k2 && (v1 - v2).abs() < 1e-6)
}

/// A page whose history is what has happened.
async fn agreeing(api: &Api) -> Page {
    let (mut last, mut expected) = (Page::new(), BTreeMap::new());
    let found = tokio::time::timeout(crate::kit::PATIENCE, async {
        loop {
            let before = events(api).await.len();
            last = scrape(api).await;
            let all = events(api).await;
            expected = recounted(&all);
            // Nothing happened meanwhile, and the page is not one from before.
            if before == all.len() && close(&history(&last), &expected) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    if found.await.is_err() {
        let page = history(&last);
        let differing: Vec<_> = page.iter().filter(|(k, v)| expected.get(*k) != Some(*v)).collect();
        let missing: Vec<_> = expected.iter().filter(|(k, v)| page.get(*k) != Some(*v)).collect();
        panic!("metrics are not the history\n  page: {differing:#?}\n  history: {missing:#?}");
    }
    last
}

/// Some of everything that can become of an execution.
async fn mixed_work(api: &Api) {
    api.register("w1", 32).await;
    for _ in 0..3 {
        api.submit(json!({"kind": "k"})).await;
        let task = api.claim_one("w1").await;
        api.task(&task, "complete", json!({"result": 1})).await.with(200);
    }
    // Failed for good, and after a retry.
    api.submit(json!({"kind": "k", "retry": {"max_attempts": 2, "backoff": {"type": "fixed", "initial_ms": 0}}})).await;
    for _ in 0..2 {
        let task = api.claim_one("w1").await;
        api.task(&task, "fail", json!({"reason": "no", "category": "bad"})).await.with(200);
    }
    // Cancelled while it waits, and while it runs.
    let waiting = api.submit(json!({"kind": "k", "delay_ms": 600_000})).await;
    api.post(&format!("/v1/executions/{waiting}/cancel"), json!({})).await.with(200);
    let running = api.submit(json!({"kind": "k"})).await;
    let task = api.claim_one("w1").await;
    api.post(&format!("/v1/executions/{running}/cancel"), json!({})).await.with(200);
    api.task(&task, "complete", json!({})).await.refused(409, "execution_not_active");
    // A lease that runs out, and what its worker is told then.
    api.submit(json!({"kind": "k", "max_reclaims": 1})).await;
    let mut lost = Vec::new();
    for _ in 0..2 {
        let mut tasks = api.claim("w1", json!({"max": 1, "wait_ms": 10_000, "lease_ttl_ms": 1_000})).await;
        lost.push(tasks.remove(0));
    }
    let id = lost[1]["execution_id"].as_str().expect("an id");
    eventually("the second lease is lost", async || (api.execution(id).await["state"] == "failed").then_some(())).await;
    api.task(&lost[0], "complete", json!({})).await.refused(409, "stale_lease");
    api.task(&lost[1], "complete", json!({})).await.refused(409, "lease_expired");
    let results = json!({"results": [{"execution_id": id, "fence": crate::kit::fence(&lost[0]), "op": "complete"}]});
    api.post("/v1/workers/w1/results", results).await.with(200);
    // Revoked, then done; ended, then run again.
    let revoked = api.submit(json!({"kind": "k"})).await;
    api.claim_one("w1").await;
    api.post(&format!("/v1/executions/{revoked}/revoke-lease"), json!({})).await.with(200);
    let task = api.claim_one("w1").await;
    api.task(&task, "complete", json!({})).await.with(200);
    api.post(&format!("/v1/executions/{revoked}/replay"), json!({})).await.with(200);
    let task = api.claim_one("w1").await;
    api.task(&task, "complete", json!({})).await.with(200);
    // Set aside and resumed.
    let suspended = api.submit(json!({"kind": "k", "lane": "default"})).await;
    let task = api.claim_one("w1").await;
    let wait = json!({"reason": "waiting_for_signal", "waitpoints": [{"key": "go"}], "condition": {"signal": "go"}});
    api.task(&task, "suspend", wait).await.with(200);
    api.post(&format!("/v1/executions/{suspended}/resume"), json!({})).await.with(200);
    let task = api.claim_one("w1").await;
    api.task(&task, "complete", json!({})).await.with(200);
    // Held up by a quota.
    let quota = api.post("/v1/quotas", json!({"concurrency": 1})).await.with(201)["quota_id"].clone();
    for _ in 0..2 {
        api.submit(json!({"kind": "k", "quotas": [{"quota_id": quota, "key": "k"}]})).await;
    }
    for _ in 0..2 {
        let mut tasks = api.claim("w1", json!({"max": 2, "wait_ms": 10_000})).await;
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        api.task(&tasks.remove(0), "complete", json!({})).await.with(200);
    }
    // Another lane and namespace, nobody can run this, and a flow whose second member is skipped.
    api.submit(json!({"kind": "k", "namespace": "team", "lane": "other", "requires": ["moon"], "start_within_ms": 1}))
        .await;
    let flow = json!({"kind": "pair", "members": [{"key": "a", "kind": "k"}, {"key": "b", "kind": "k"}], "edges": [{"from": "a", "to": "b"}]});
    api.post("/v1/flows", flow).await.with(201);
    let task = api.claim_one("w1").await;
    api.task(&task, "fail", json!({"reason": "no", "category": "bad", "retryable": false})).await.with(200);
}

on_both_hosts! {
    async fn metrics_are_the_history(kit) {
        let api = kit.api().await;
        mixed_work(&api).await;
        let budget = json!({"dimensions": {"to\"ken\\s\n": {"hard": 10}}});
        api.post("/v1/budgets", budget).await.with(201);
        let page = agreeing(&api).await;
        let lane = [("namespace", "default"), ("lane", "default")];
        let of = |name: &str, extra: &[(&str, &str)]| number(&page, name, &[&lane[..], extra].concat());
        assert_eq!(of("ff_lease_expiries_total", &[]), 2.0);
        assert_eq!(of("ff_lease_revocations_total", &[]), 1.0);
        assert_eq!(of("ff_executions_started_total", &[("type", "continuation")]), 1.0);
        assert_eq!(number(&page, "ff_fence_refusals_total", &[("code", "stale_lease")]), 2.0, "one of them in a batch");
        assert_eq!(number(&page, "ff_fence_refusals_total", &[("code", "lease_expired")]), 1.0);

        // What is kept is what lists say.
        let listed = api.get("/v1/executions?limit=1000").await.with(200);
        let listed = listed["items"].as_array().expect("items").len();
        assert_eq!(number(&page, "ff_executions", &[]), listed as f64);
        let states: f64 = page["ff_lane_executions"].samples.values().sum();
        assert_eq!(states, listed as f64, "each in one state");
        assert_eq!(number(&page, "ff_workers", &[("state", "active")]) + number(&page, "ff_workers", &[("state", "live")]), 1.0);
        assert_eq!(number(&page, "ff_budgets", &[]), 1.0);
        let remaining = page["ff_budget_remaining"].samples.iter().next().expect("a budget");
        assert_eq!((remaining.0.1["dimension"].as_str(), *remaining.1), ("to\"ken\\s\n", 10.0));
        assert_eq!((number(&page, "ff_quotas", &[]), number(&page, "ff_store_up", &[("store", kit.host().facts().kind)])), (1.0, 1.0));
        assert_eq!((number(&page, "ff_history_gaps_total", &[]), number(&page, "ff_history_lag_seconds", &[])), (0.0, 0.0));

        // Without work in between nothing of it moves, however long ago the last page was, on this server or another.
        let other = kit.another(kit.keys()).await;
        for api in [api, Api::of(&other)] {
            let again = agreeing(&api).await;
            assert_eq!(history(&again), history(&page));
            assert_eq!(again["ff_execution_run_seconds"].samples, page["ff_execution_run_seconds"].samples);
        }
        other.stop().await;
        let again = agreeing(&kit.restart().await).await;
        assert_eq!(again["ff_executions_finished_total"].samples, page["ff_executions_finished_total"].samples);
    }

    async fn every_metric_is_declared_and_every_declared_one_appears(kit) {
        let api = kit.api().await;
        mixed_work(&api).await;
        api.post("/v1/budgets", json!({"dimensions": {"tokens": {"hard": 10}}})).await.with(201);
        let yearly = json!({"times": [{"cron": "0 0 1 1 *"}], "action": {"execution": {"kind": "mail", "lane": "yearly"}}});
        api.send(Method::PUT, "/v1/schedules/yearly", &[("content-type", "application/json")], yearly.to_string()).await.with(201);
        api.post("/v1/schedules/yearly/trigger", json!({})).await.with(200);
        eventually("the firing is counted", async || {
            let page = scrape(&api).await;
            page.get("ff_schedule_firings_total").is_some_and(|family| !family.samples.is_empty()).then_some(())
        })
        .await;
        let page = agreeing(&api).await;
        let form = [("accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")];
        let reply = api.send(Method::GET, "/metrics", &form, "").await;
        assert_eq!(reply.headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
        let open = exposition::open_metrics(reply.text());
        for page in [&page, &open] {
            for metric in METRICS {
                let family = page.get(&metric.name()).unwrap_or_else(|| panic!("{} is not on the page", metric.name()));
                let kind = match metric.kind {
                    MetricKind::Counter => "counter",
                    MetricKind::Gauge => "gauge",
                    MetricKind::Histogram => "histogram",
                };
                assert_eq!((family.kind.as_str(), family.help.as_str()), (kind, format!("{}.", metric.help).as_str()), "{}", metric.family);
                assert!(!family.samples.is_empty(), "{} has no number", metric.family);
                for (name, labels) in family.samples.keys() {
                    let names: BTreeSet<&str> = labels.keys().map(String::as_str).filter(|label| *label != "le").collect();
                    assert_eq!(names, metric.labels.iter().copied().collect(), "{name}");
                }
            }
            let declared: BTreeSet<String> = METRICS.iter().map(Metric::name).collect();
            let unknown: Vec<_> = page.keys().filter(|name| !declared.contains(*name)).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    }

    async fn a_reading_costs_a_bounded_number_of_calls_and_serves_all_who_come_meanwhile(kit) {
        let api = kit.api().await;
        mixed_work(&api).await;
        let partitions = 8.0 + 2.0 + 2.0 + 1.0;
        let readings = |page: &Page| number(page, "ff_store_calls_total", &[("function", "ff_tally_events"), ("result", "ok")]);
        let first = agreeing(&api).await;
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let before = kit.host().store_commands().await.expect("a count");
        let pages = futures::future::join_all((0..16).map(|_| scrape(&api))).await;
        let commands = kit.host().store_commands().await.expect("a count") - before;
        let last = pages.iter().map(readings).fold(0.0, f64::max);
        assert!(last - readings(&first) <= 2.0 * partitions, "16 pages made {} calls", last - readings(&first));
        // Per partition its tally and what is on hand, and per lane its states: nothing that grows with what is stored.
        assert!(commands < 13 * 100, "16 pages at once cost {commands} commands");
    }

    async fn metrics_take_their_role_and_the_whole_store(kit) {
        let (server, root) = kit.guarded().await;
        let token = async |body: Value| {
            let made = root.post("/v1/admin/tokens", body).await.with(201);
            root.bearing(made["token"].as_str().expect("a token"))
        };
        assert_eq!(token(json!({"name": "prometheus", "roles": ["metrics"]})).await.get("/metrics").await.status, 200);
        let reader = token(json!({"name": "reader", "roles": ["read", "operator"]})).await;
        reader.get("/metrics").await.refused(403, "forbidden");
        let scoped = token(json!({"name": "team", "roles": ["metrics"], "namespaces": ["a"]})).await;
        scoped.get("/metrics").await.refused(403, "forbidden");
        Api::of(&server).get("/metrics").await.refused(401, "unauthenticated");
        server.stop().await;
    }

    async fn requests_polls_and_streams_are_counted_while_they_last(kit) {
        let api = kit.api().await;
        api.register("w1", 4).await;
        let poll = tokio::spawn({
            let api = api.clone();
            async move { api.claim("w1", json!({"wait_ms": 20_000})).await }
        });
        let stream = api.http.get(format!("{}/v1/events", api.base)).send().await.expect("a stream");
        let open = |page: &Page| (number(page, "ff_http_long_polls_open", &[]), number(page, "ff_http_streams_open", &[]));
        eventually("both are open", async || (open(&scrape(&api).await) == (1.0, 1.0)).then_some(())).await;
        drop(stream);
        poll.abort();
        eventually("both are over", async || (open(&scrape(&api).await) == (0.0, 0.0)).then_some(())).await;
        api.get("/v1/executions/not-an-id").await.refused(400, "invalid_argument");
        api.get("/no/such/path").await.refused(404, "not_found");
        let page = scrape(&api).await;
        let requests = |route, method, status| number(&page, "ff_http_requests_total", &[("route", route), ("method", method), ("status", status)]);
        assert_eq!(requests("/v1/executions/{id}", "GET", "400"), 1.0);
        assert_eq!(requests("none", "GET", "404"), 1.0);
        assert_eq!(requests("/v1/workers/{name}/claim", "POST", "499"), 1.0, "its client left");
        assert!(number(&page, "ff_http_request_seconds_count", &[("route", "/metrics"), ("method", "GET")]) >= 2.0);
        assert_eq!(number(&page, "ff_http_requests_in_flight", &[]), 1.0, "this one");
    }
}

/// The table of the docs, as the code has it.
fn table() -> String {
    let mut table = String::from("| metric | kind | labels | from | what it says |\n| --- | --- | --- | --- | --- |\n");
    for metric in METRICS {
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let from = match metric.source {
            MetricSource::Store => "store",
            MetricSource::Process => "process",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        table.push_str(&format!(
            "| `{}` | {kind} | {} | {from} | {} |\n",
            metric.name(),
            labels.join(" "),
            metric.help
        ));
    }
    table
}

#[test]
fn the_docs_have_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations/metrics.md");
    let page = std::fs::read_to_string(&path).expect("the page of metrics");
    assert!(page.contains(&table()), "docs/operations/metrics.md must hold this table:\n\n{}", table());
}
