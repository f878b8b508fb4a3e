//! Keeps something interesting going: a steady mix of executions, a flow, calls under a quota and a budget, an approval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ff_api::Ask;
use ff_api::budgets::{CreateBudget, CreateBudgetBody, GetBudget, LimitBody};
use ff_api::executions::{SubmitBody, SubmitExecution};
use ff_api::flows::{EdgeBody, FlowBody, MemberBody, SubmitFlow};
use ff_api::lanes::{DefineLane, GetLane, LaneBody, NamespaceQuery};
use ff_api::quotas::{CreateQuota, CreateQuotaBody, GetQuota, QuotaQuery, QuotaRateBody};
use ff_api::reset::{IntervalReset, Reset};
use ff_api::schedules::{GetSchedule, PutSchedule, ScheduleAction, ScheduleBody, ScheduleTime};
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::generated::RateMode;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::LANE;
use crate::client::Api;

/// The quota and the budget of the demo are the same in every start.
pub const QUOTA: &str = "0192f3a0-0000-7000-8000-00000000000a";
pub const BUDGET: &str = "0192f3a0-0000-7000-8000-00000000000b";
/// The schedule of the demo.
const SCHEDULE: &str = "demo-digest";
/// New work comes this often, and is held back while this much waits, so that a long run does not drown in its backlog.
const BEAT: Duration = Duration::from_millis(150);
const BACKLOG_MAX: i64 = 200;
/// The backlog is looked at every so many beats.
const LOOK: u64 = 10;
const RETENTION_MS: i64 = 600_000;

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
            api.ask(&Ask::<SubmitFlow>::with((), flow(count))).await?;
        }
        api.ask(&Ask::<SubmitExecution>::with((), execution(count))).await?;
    }
}

/// Makes the lane, the quota, the budget and the schedule; those of an earlier start stay as they are.
async fn prepare(api: &Api) -> anyhow::Result<()> {
    let body = LaneBody { max_active: Some(Some(24)), ..LaneBody::default() };
    api.ask(&Ask::<DefineLane> { at: LANE.to_owned(), query: NamespaceQuery::default(), body }).await?;
    let quota_id: QuotaPolicyId = QUOTA.parse().expect("an id");
    if api.ask(&Ask::<GetQuota>::by(quota_id, QuotaQuery::default())).await.is_err() {
        let rate = Some(QuotaRateBody { limit: 3, window_ms: 1_000, mode: Some(RateMode::Smooth) });
        let body = CreateQuotaBody { quota_id: Some(quota_id), rate, ..CreateQuotaBody::default() };
        api.ask(&Ask::<CreateQuota>::with((), body)).await?;
    }
    let budget_id: BudgetId = BUDGET.parse().expect("an id");
    if api.ask(&Ask::<GetBudget>::at(budget_id)).await.is_err() {
        let tokens = LimitBody { hard: Some(6_000), soft: Some(5_000) };
        let body = CreateBudgetBody {
            budget_id: Some(budget_id),
            dimensions: BTreeMap::from([("tokens".to_owned(), tokens)]),
            reset: Some(Reset::Interval(IntervalReset { interval_ms: 60_000 })),
            ..CreateBudgetBody::default()
        };
        api.ask(&Ask::<CreateBudget>::with((), body)).await?;
    }
    let query = NamespaceQuery::default();
    if api.ask(&Ask::<GetSchedule>::by(SCHEDULE.to_owned(), query.clone())).await.is_err() {
        let digest = ScheduleAction { execution: Some(Box::new(digest())), flow: None };
        let times = vec![ScheduleTime::cron("*/5 * * * * *")];
        let body = ScheduleBody { times, action: digest, ..ScheduleBody::default() };
        api.ask(&Ask::<PutSchedule> { at: SCHEDULE.to_owned(), query, body }).await?;
    }
    Ok(())
}

async fn backlog(api: &Api) -> anyhow::Result<i64> {
    let lane = api.ask(&Ask::<GetLane>::by(LANE.to_owned(), NamespaceQuery::default())).await?.value;
    let counts = lane.counts.unwrap_or_default();
    Ok(counts.eligible + counts.blocked.all())
}

fn input(count: u64) -> Option<Box<RawValue>> {
    Some(RawValue::from_string(format!("{{\"n\":{count}}}")).expect("an object is JSON"))
}

/// What the schedule submits: quick work, again and again.
fn digest() -> SubmitBody {
    SubmitBody {
        kind: "quick".to_owned(),
        lane: Some(LANE.to_owned()),
        input: input(0),
        retention_ms: Some(RETENTION_MS),
        ..SubmitBody::default()
    }
}

/// Quick work, slow work, urgent work, work that fails before it succeeds, calls of a limited provider, and what a person decides.
fn execution(count: u64) -> SubmitBody {
    let kind = match count % 20 {
        0 | 10 => "flaky",
        3 | 13 => "slow",
        5 => "urgent",
        7 | 17 => "call",
        _ => "quick",
    };
    let kind = if count % 100 == 25 { "review" } else { kind };
    let fixed = json!({"max_attempts": 3, "backoff": {"type": "fixed", "delay_ms": 500}});
    let mut body = SubmitBody {
        kind: kind.to_owned(),
        lane: Some(LANE.to_owned()),
        input: input(count),
        retention_ms: Some(RETENTION_MS),
        retry: Some(serde_json::from_value(fixed).expect("a policy")),
        ..SubmitBody::default()
    };
    match kind {
        "urgent" => body.priority = Some(100),
        "call" => {
            let quota = json!([{ "quota_id": QUOTA, "key": "provider" }]);
            body.quotas = Some(serde_json::from_value(quota).expect("a quota"));
            let budget = json!([{ "budget_id": BUDGET, "estimate": {"tokens": 100} }]);
            body.budgets = Some(serde_json::from_value(budget).expect("a budget"));
        }
        _ => {}
    }
    body
}

/// A report: fetch, then two parts of it side by side, then the rendering.
fn flow(count: u64) -> FlowBody {
    let member = |key: &str, kind: &str| MemberBody {
        key: key.to_owned(),
        kind: Some(kind.to_owned()),
        lane: Some(LANE.to_owned()),
        input: input(count),
        retention_ms: Some(RETENTION_MS),
        ..MemberBody::default()
    };
    let edge = |from: &str, to: &str, pass_as: Option<&str>| EdgeBody {
        from: from.to_owned(),
        to: to.to_owned(),
        on: None,
        pass_as: pass_as.map(str::to_owned),
    };
    FlowBody {
        kind: "report".to_owned(),
        members: Some(vec![
            member("fetch", "quick"),
            member("words", "quick"),
            member("images", "slow"),
            member("render", "quick"),
        ]),
        edges: Some(vec![
            edge("fetch", "words", Some("page")),
            edge("fetch", "images", Some("page")),
            edge("words", "render", None),
            edge("images", "render", None),
        ]),
        ..FlowBody::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_has_everything() {
        let kinds: std::collections::BTreeSet<String> = (0..200).map(|count| execution(count).kind).collect();
        let all: Vec<&str> = kinds.iter().map(String::as_str).collect();
        assert_eq!(all, ["call", "flaky", "quick", "review", "slow", "urgent"]);
        assert_eq!(execution(7).quotas.expect("a call has one")[0].quota_id.to_string(), QUOTA);
    }
}
