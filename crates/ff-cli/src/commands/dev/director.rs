//! Keeps something interesting going: a steady mix of executions, a flow, calls under a quota and a budget, an approval.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::LANE;
use crate::client::Api;

/// The quota and the budget of the demo are the same in every start.
pub const QUOTA: &str = "0192f3a0-0000-7000-8000-00000000000a";
pub const BUDGET: &str = "0192f3a0-0000-7000-8000-00000000000b";
/// New work comes this often, and is held back while this much waits, so that a long run does not drown in its backlog.
const BEAT: Duration = Duration::from_millis(150);
const BACKLOG_MAX: i64 = 200;
/// The backlog is looked at every so many beats.
const LOOK: u64 = 10;
const RETENTION_MS: u64 = 600_000;

/// Submits until told to stop.
pub async fn direct(api: Arc<Api>, stop: CancellationToken) -> anyhow::Result<()> {
    prepare(&api).await?;
    let (mut count, mut full) = (0_u64, false);
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(BEAT) => {}
        }
        if count.is_multiple_of(LOOK) {
            full = backlog(&api).await? > BACKLOG_MAX;
        }
        count += 1;
        if full {
            continue;
        }
        if count % 40 == 5 {
            api.post("/v1/flows", flow(count).to_string()).await?.accepted()?;
        }
        api.post("/v1/executions", execution(count).to_string()).await?.accepted()?;
    }
}

/// Makes the lane, the quota and the budget, unless they are there from an earlier start.
async fn prepare(api: &Api) -> anyhow::Result<()> {
    api.put(&format!("/v1/lanes/{LANE}"), json!({ "max_active": 24 }).to_string()).await?.accepted()?;
    let quota = json!({ "quota_id": QUOTA, "rate": {"limit": 3, "window_ms": 1_000, "mode": "smooth"} });
    if !api.get(&format!("/v1/quotas/{QUOTA}"), &[]).await?.status.is_success() {
        api.post("/v1/quotas", quota.to_string()).await?.accepted()?;
    }
    let budget = json!({
        "budget_id": BUDGET, "scope": "custom", "dimensions": {"tokens": {"hard": 6_000, "soft": 5_000}},
        "reset": {"interval_ms": 60_000},
    });
    if !api.get(&format!("/v1/budgets/{BUDGET}"), &[]).await?.status.is_success() {
        api.post("/v1/budgets", budget.to_string()).await?.accepted()?;
    }
    Ok(())
}

async fn backlog(api: &Api) -> anyhow::Result<i64> {
    let lane = api.get(&format!("/v1/lanes/{LANE}"), &[]).await?.accepted()?.json()?;
    let counts = &lane["counts"];
    let blocked: i64 = counts["blocked"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_i64()).sum();
    Ok(counts["eligible"].as_i64().unwrap_or(0) + blocked)
}

/// Quick work, slow work, urgent work, work that fails before it succeeds, calls of a limited provider, and what a person decides.
fn execution(count: u64) -> Value {
    let kind = match count % 20 {
        0 | 10 => "flaky",
        3 | 13 => "slow",
        5 => "urgent",
        7 | 17 => "call",
        _ => "quick",
    };
    let kind = if count % 100 == 25 { "review" } else { kind };
    let mut body = json!({
        "kind": kind, "lane": LANE, "input": {"n": count}, "retention_ms": RETENTION_MS,
        "retry": {"max_attempts": 3, "backoff": {"type": "fixed", "delay_ms": 500}},
    });
    match kind {
        "urgent" => body["priority"] = 100.into(),
        "call" => {
            body["quotas"] = json!([{ "quota_id": QUOTA, "key": "provider" }]);
            body["budgets"] = json!([{ "budget_id": BUDGET, "estimate": {"tokens": 100} }]);
        }
        _ => {}
    }
    body
}

/// A report: fetch, then two parts of it side by side, then the rendering.
fn flow(count: u64) -> Value {
    let member = |key: &str, kind: &str| json!({ "key": key, "kind": kind, "lane": LANE, "input": {"n": count}, "retention_ms": RETENTION_MS });
    json!({
        "kind": "report",
        "members": [member("fetch", "quick"), member("words", "quick"), member("images", "slow"), member("render", "quick")],
        "edges": [
            {"from": "fetch", "to": "words", "pass_as": "page"}, {"from": "fetch", "to": "images", "pass_as": "page"},
            {"from": "words", "to": "render"}, {"from": "images", "to": "render"},
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_has_everything() {
        let kinds: std::collections::BTreeSet<String> =
            (0..200).map(|count| execution(count)["kind"].as_str().unwrap_or_default().to_owned()).collect();
        let all: Vec<&str> = kinds.iter().map(String::as_str).collect();
        assert_eq!(all, ["call", "flaky", "quick", "review", "slow", "urgent"]);
        assert_eq!(execution(7)["quotas"][0]["quota_id"], QUOTA);
    }
}
