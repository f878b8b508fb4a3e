//! Explanations as people read them: a tree of lines, the reasons first.

use std::fmt;

use ff_script::generated::PublicState;
use jiff::Timestamp;

use crate::budgets::DimensionStatus;
use crate::explain::{
    BlockingCause, BudgetFacts, BudgetLevel, Dependencies, Explanation, LaneFacts, OpenChildren, QueuePlace,
    QuotaFacts, RequiredCapabilities,
};
use crate::explain_lane::{LaneExplanation, LaneReason, LaneReasonOf, LaneReasonPart};
use crate::suspensions::Suspension;
use crate::tree::Tree;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use PublicState::{Active, Cancelled, Completed, Expired, Failed, Skipped};
        let verdict = match (self.can_run, self.state) {
            (true, Active) => "it runs",
            (true, _) => "nothing but its turn is missing",
            (false, Completed | Failed | Cancelled | Expired | Skipped) => "it has ended",
            (false, _) => "it cannot run yet",
        };
        Tree::new(format!("{}  {}: {verdict}", self.execution_id, self.state))
            .with_all(self.reasons.iter().map(reason))
            .with_all(self.place.as_ref().map(place))
            .with_all(self.requires.as_ref().map(requires))
            .with_all(self.quotas.iter().map(quota))
            .with_all(self.budgets.iter().map(budget))
            .with_all(self.suspension.as_ref().map(suspension))
            .with_all(self.dependencies.as_ref().map(dependencies))
            .with_all(self.children.as_ref().map(children))
            .with(Tree::new(lane(&self.lane)))
            .fmt(f)
    }
}

impl fmt::Display for LaneExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = format!(
            "{}  {} wait, {} run, {} live workers with {} slots",
            lane(&self.lane),
            self.waiting,
            self.running,
            self.workers.live,
            self.workers.slots
        );
        Tree::new(head).with_all(self.reasons.iter().map(lane_reason)).fmt(f)
    }
}

fn utc(ms: i64) -> String {
    match Timestamp::from_millisecond(ms) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string(),
        // Before or after every calendar.
        Err(_) => format!("{ms} ms"),
    }
}

fn after(at: Option<i64>, before: &str) -> String {
    at.map(|at| format!("{before} {}", utc(at))).unwrap_or_default()
}

/// A reason of a lane, with how many wait for it and what is in the way.
fn lane_reason(reason: &LaneReason) -> Tree {
    let line = format!("{}  {}{}", reason.reason, reason.count, after(reason.next_at, ", the first at"));
    // A single part says what its reason says.
    let remedy = (reason.parts.len() != 1).then(|| Tree::new(format!("→ {}", reason.remedy)));
    Tree::new(line).with_all(remedy).with_all(reason.parts.iter().map(part))
}

/// One thing in the way of a lane's work.
fn part(part: &LaneReasonPart) -> Tree {
    let what = match &part.what {
        LaneReasonOf::Quota { quota_id, key } => format!("quota {quota_id}  key {key}"),
        LaneReasonOf::Budget { budget_id } => format!("budget {budget_id}"),
        LaneReasonOf::Kind { kind } => format!("kind {kind}"),
        LaneReasonOf::Requires { requires, .. } => format!("requires {}", requires.join(", ")),
    };
    let line = format!("{what}  {}{}", part.count, after(part.next_at, ", the next at"));
    Tree::new(line).with(Tree::new(format!("→ {}", part.remedy)))
}

/// Facts that only the engine can use: how often a budget had room.
const INNER: [&str; 1] = ["rooms"];

/// A reason, its detail, and what would unblock it.
fn reason(cause: &BlockingCause) -> Tree {
    let fact = |(name, value): (&String, &String)| {
        // Times travel as texts of epoch milliseconds.
        match (name.ends_with("_at") || name.ends_with("_until"), value.parse()) {
            (true, Ok(ms)) => format!("{name} {}", utc(ms)),
            _ => format!("{name} {value}"),
        }
    };
    let told = cause.detail.iter().filter(|(name, _)| !INNER.contains(&name.as_str()));
    let detail: Vec<String> = told.map(fact).collect();
    let said = if detail.is_empty() { String::new() } else { format!("  {}", detail.join(", ")) };
    Tree::new(format!("{}{said}", cause.reason)).with(Tree::new(format!("→ {}", cause.remedy)))
}

fn place(place: &QueuePlace) -> Tree {
    let what = match (place.ahead, place.more) {
        (0, _) => "it is the next".to_owned(),
        (ahead, false) => format!("{ahead} ahead of it"),
        (ahead, true) => format!("more than {ahead} ahead of it"),
    };
    Tree::new(format!("place in its lane  {what}"))
}

fn requires(requires: &RequiredCapabilities) -> Tree {
    let covered = if requires.covered { "a live worker has them all" } else { "no live worker has them all" };
    let nearest = requires.nearest.iter().filter(|nearest| !nearest.missing.is_empty());
    Tree::new(format!("requires {}  {covered}", requires.capabilities.join(", "))).with_all(
        nearest.map(|nearest| Tree::new(format!("nearest: {} lacks {}", nearest.instance, nearest.missing.join(", ")))),
    )
}

fn quota(quota: &QuotaFacts) -> Tree {
    let tree = Tree::new(format!("quota {}  key {}", quota.quota_id, quota.state.key));
    if let Some(problem) = &quota.problem {
        return tree.with(Tree::new(problem));
    }
    let parts = quota.state.parts.iter().map(|part| {
        let next = after(part.next_at, ", one more at");
        Tree::new(format!("{} {}/{}{next}", part.part, part.used, part.limit))
    });
    let throttled = quota.state.throttled_until.map(|until| Tree::new(format!("nothing starts until {}", utc(until))));
    tree.with_all(parts).with_all(throttled)
}

fn budget(budget: &BudgetFacts) -> Tree {
    // Itself first, then those above it.
    let levels = budget.path.iter().enumerate().flat_map(|(depth, level)| {
        let of = if depth == 0 { String::new() } else { format!("of {}: ", level.budget_id) };
        level.dimensions.iter().map(move |(name, status)| Tree::new(format!("{of}{name}  {}", standing(level, status))))
    });
    Tree::new(format!("budget {}", budget.budget_id)).with_all(budget.problem.as_ref().map(Tree::new)).with_all(levels)
}

fn standing(level: &BudgetLevel, status: &DimensionStatus) -> String {
    let DimensionStatus { hard, soft, used, held, remaining } = *status;
    let known = [("used", Some(used)), ("held", Some(held)), ("remaining", remaining), ("hard", hard), ("soft", soft)];
    let known: Vec<String> = known.into_iter().filter_map(|(name, n)| n.map(|n| format!("{name} {n}"))).collect();
    format!("{}{}", known.join(", "), after(level.next_reset_at, ", anew at"))
}

fn suspension(suspension: &Suspension) -> Tree {
    let ends = match suspension.timeout_at {
        Some(at) => format!(", {} at {}", suspension.timeout_behavior, utc(at.0)),
        None => String::new(),
    };
    Tree::new(format!("waits since {}{ends}", utc(suspension.suspended_at.0)))
        .with(Tree::new(&suspension.progress))
        .with_all(suspension.waitpoints.iter().map(|waitpoint| {
            Tree::new(format!("waitpoint {}  {}  {}", waitpoint.waitpoint_id, waitpoint.key, waitpoint.state))
        }))
}

fn dependencies(dependencies: &Dependencies) -> Tree {
    let Dependencies { needed, total, met, dead, open, .. } = dependencies;
    let line = format!("dependencies  {met} of {total} met, {needed} needed, {dead} can no longer be");
    Tree::new(line).with_all(open.iter().map(|upstream| {
        Tree::new(format!("{}  {}  {}, on {}", upstream.key, upstream.execution_id, upstream.state, upstream.on))
    }))
}

fn children(children: &OpenChildren) -> Tree {
    let line = match children.nested_flow_id {
        Some(flow) => format!("runs as flow {flow}"),
        None => format!("children  {} of {} open", children.open, children.total),
    };
    Tree::new(line).with_all(children.waits_for.iter().map(|child| {
        let key = child.key.as_ref().map(|key| format!("{key}  ")).unwrap_or_default();
        Tree::new(format!("{key}{}  {}", child.execution_id, child.state))
    }))
}

fn lane(lane: &LaneFacts) -> String {
    let room = match (lane.max_active, lane.active) {
        (Some(max), Some(active)) => format!(", {active} of {max} running"),
        (Some(max), None) => format!(", at most {max} running"),
        (None, _) => String::new(),
    };
    format!("lane {}/{}  {}{room}", lane.namespace, lane.lane, lane.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0192f3a0-0000-7000-8000-000000000001";
    const OTHER: &str = "0192f3a0-0000-7000-8000-000000000002";

    fn explanation() -> Explanation {
        let text = r#"{
            "execution_id": "ID", "state": "rate_limited", "can_run": false,
            "reasons": [
                {"reason": "waiting_for_quota", "detail": {"quota": "q", "next_at": "0"}, "remedy": "wait"},
                {"reason": "no_worker", "detail": {}, "remedy": "start a worker"}
            ],
            "place": {"queue": "ready", "ahead": 3},
            "requires": {"capabilities": ["eu", "gpu"], "covered": false, "nearest": {"instance": "w-1", "missing": ["gpu"]}},
            "quotas": [{"quota_id": "ID", "weight": 1, "key": "openai", "held": 0, "waiting": 2, "throttled_until": null,
                "parts": [{"part": "rate", "used": 5, "limit": 5, "next_at": 1000}]}],
            "budgets": [{"budget_id": "ID", "estimate": null, "path": [
                {"budget_id": "ID", "approved": false, "next_reset_at": 2000,
                    "dimensions": {"tokens": {"used": 9, "held": 0, "remaining": 1, "hard": 10, "soft": null}}},
                {"budget_id": "OTHER", "approved": false, "next_reset_at": null,
                    "dimensions": {"tokens": {"used": 9, "held": 1, "remaining": 89, "hard": 99, "soft": null}}}
            ]}],
            "suspension": null,
            "dependencies": {"policy": "all_of", "needed": 2, "total": 2, "met": 1, "dead": 0,
                "open": [{"key": "fetch", "execution_id": "OTHER", "state": "active", "on": "success"}]},
            "lane": {"namespace": "default", "lane": "mail", "state": "active", "max_active": 4, "active": 4}
        }"#;
        serde_json::from_str(&text.replace("ID\"", &format!("{ID}\"")).replace("OTHER", OTHER)).unwrap()
    }

    #[test]
    fn reasons_come_first_each_with_its_remedy() {
        let drawn = "\
ID  rate_limited: it cannot run yet
├─ waiting_for_quota  next_at 1970-01-01 00:00:00.000 UTC, quota q
│  └─ → wait
├─ no_worker
│  └─ → start a worker
├─ place in its lane  3 ahead of it
├─ requires eu, gpu  no live worker has them all
│  └─ nearest: w-1 lacks gpu
├─ quota ID  key openai
│  └─ rate 5/5, one more at 1970-01-01 00:00:01.000 UTC
├─ budget ID
│  ├─ tokens  used 9, held 0, remaining 1, hard 10, anew at 1970-01-01 00:00:02.000 UTC
│  └─ of OTHER: tokens  used 9, held 1, remaining 89, hard 99
├─ dependencies  1 of 2 met, 2 needed, 0 can no longer be
│  └─ fetch  OTHER  active, on success
└─ lane default/mail  active, 4 of 4 running";
        assert_eq!(explanation().to_string(), drawn.replace("ID", ID).replace("OTHER", OTHER));
    }

    #[test]
    fn an_explanation_that_is_written_and_read_is_the_same() {
        let text = serde_json::to_string(&explanation()).unwrap();
        let read: Explanation = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn a_lane_counts_its_reasons() {
        let text = r#"{
            "namespace": "default", "lane": "mail", "state": "active", "max_active": null, "active": null,
            "running": 2, "waiting": 9, "workers": {"live": 1, "slots": 2},
            "reasons": [
                {"reason": "waiting_for_quota", "count": 4, "next_at": 1000, "remedy": "wait",
                 "parts": [{"quota_id": "ID", "key": "openai", "count": 4, "next_at": 1000, "remedy": "wait"}]},
                {"reason": "waiting_for_capable_worker", "count": 2, "next_at": null, "remedy": "start a worker", "parts": [
                    {"requires": ["gpu"], "nearest": {"instance": "w", "missing": ["gpu"]}, "count": 1, "next_at": null, "remedy": "w lacks only gpu"},
                    {"requires": ["eu", "tpu"], "nearest": null, "count": 1, "next_at": null, "remedy": "start one"}
                ]},
                {"reason": "delayed", "count": 3, "next_at": 2000, "remedy": "wait too", "parts": []}
            ]
        }"#;
        let lane: LaneExplanation = serde_json::from_str(&text.replace("ID", ID)).unwrap();
        let drawn = "\
lane default/mail  active  9 wait, 2 run, 1 live workers with 2 slots
├─ waiting_for_quota  4, the first at 1970-01-01 00:00:01.000 UTC
│  └─ quota ID  key openai  4, the next at 1970-01-01 00:00:01.000 UTC
│     └─ → wait
├─ waiting_for_capable_worker  2
│  ├─ → start a worker
│  ├─ requires gpu  1
│  │  └─ → w lacks only gpu
│  └─ requires eu, tpu  1
│     └─ → start one
└─ delayed  3, the first at 1970-01-01 00:00:02.000 UTC
   └─ → wait too";
        assert_eq!(lane.to_string(), drawn.replace("ID", ID));
    }
}
