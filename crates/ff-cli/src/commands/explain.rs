//! `ff explain`: why an execution, or the work of a lane, is not running, and what would change that.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{
    Api, Output, OutputArgs, Reply, ServerArgs, for_each, print, read_ids, say, say_raw, segment, text, time,
};
use crate::terminal;
use crate::tree::Tree;

/// Explains why executions are not running, and what would unblock each; or the same for all work of a lane, counted by reason. An
/// unknown id or lane exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff explain 0192f3a0-…
  ff list --state waiting -o ids | ff explain -
  ff explain --lane mail")]
pub struct Explain {
    /// Execution ids; `-` reads them from stdin.
    #[arg(required_unless_present = "lane", conflicts_with = "lane", value_name = "ID")]
    ids: Vec<String>,
    /// Explain the work of this lane instead.
    #[arg(long)]
    lane: Option<String>,
    /// The namespace of the lane; default when not given.
    #[arg(long, requires = "lane")]
    namespace: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Explain {
    /// Prints one tree for each.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = &Api::new(&self.server)?;
        let output = self.output.output;
        if let Some(lane) = &self.lane {
            let query: Vec<(&str, String)> =
                self.namespace.iter().map(|namespace| ("namespace", namespace.clone())).collect();
            let reply = api.get(&format!("/v1/lanes/{}/explain", segment(lane)), &query).await?.accepted()?;
            shown(&reply, output, "lane", lane_tree)?;
            return Ok(ExitCode::SUCCESS);
        }
        for_each(read_ids(&self.ids)?, |id| async move {
            let reply = api.get(&format!("/v1/executions/{}/explain", segment(&id)), &[]).await?.accepted()?;
            shown(&reply, output, "execution_id", tree)
        })
        .await
    }
}

fn shown(reply: &Reply, output: Output, id: &str, draw: impl FnOnce(&Value) -> Tree) -> anyhow::Result<()> {
    match output {
        Output::Json => say_raw(&reply.bytes),
        Output::Ids => say(&text(&reply.json()?[id])),
        Output::Table => {
            let drawn = draw(&reply.json()?).draw().join("\n");
            print(&format!("{}\n", if terminal::is_live() { terminal::harmless(&drawn) } else { drawn }))
        }
    }
}

/// A lane: its reasons, each with how many wait for it and what is in the way.
fn lane_tree(facts: &Value) -> Tree {
    let workers = &facts["workers"];
    let head = format!(
        "{}  {} wait, {} run, {} live workers with {} slots",
        lane_line(facts),
        text(&facts["waiting"]),
        text(&facts["running"]),
        text(&workers["live"]),
        text(&workers["slots"])
    );
    Tree::new(head).with_all(each(&facts["reasons"]).map(|reason| {
        let tree = Tree::new(format!(
            "{}  {}{}",
            text(&reason["reason"]),
            text(&reason["count"]),
            next(&reason["next_at"], ", the first at")
        ));
        let parts: Vec<Tree> = each(&reason["parts"]).map(part).collect();
        // A single part says what its reason says.
        let remedy = (parts.len() != 1).then(|| Tree::new(format!("→ {}", text(&reason["remedy"]))));
        tree.with_all(remedy).with_all(parts)
    }))
}

/// One thing in the way of a lane's work.
fn part(part: &Value) -> Tree {
    let what = match (part["quota_id"].as_str(), part["budget_id"].as_str()) {
        (Some(quota), _) => format!("quota {quota}  key {}", text(&part["key"])),
        (None, Some(budget)) => format!("budget {budget}"),
        (None, None) => format!("requires {}", each(&part["requires"]).map(text).collect::<Vec<_>>().join(", ")),
    };
    let line = format!("{what}  {}{}", text(&part["count"]), next(&part["next_at"], ", the next at"));
    Tree::new(line).with(Tree::new(format!("→ {}", text(&part["remedy"]))))
}

fn next(at: &Value, before: &str) -> String {
    match at.as_i64() {
        Some(_) => format!("{before} {} UTC", time(at)),
        None => String::new(),
    }
}

fn tree(facts: &Value) -> Tree {
    let state = text(&facts["state"]);
    let verdict = match (facts["can_run"] == true, state.as_str()) {
        (true, "active") => "it runs",
        (true, _) => "nothing but its turn is missing",
        (false, _) => "it does not run",
    };
    let mut tree = Tree::new(format!("{}  {state}: {verdict}", text(&facts["execution_id"])));
    tree = tree.with_all(each(&facts["reasons"]).map(reason));
    tree = tree.with_all(place(&facts["place"]));
    tree = tree.with_all(requires(&facts["requires"]));
    tree = tree.with_all(each(&facts["quotas"]).map(quota));
    tree = tree.with_all(each(&facts["budgets"]).map(budget));
    tree = tree.with_all(suspension(&facts["suspension"]));
    tree = tree.with_all(dependencies(&facts["dependencies"]));
    tree = tree.with_all(children(&facts["children"]));
    tree.with(lane(&facts["lane"]))
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A reason, its detail, and what would unblock it.
fn reason(reason: &Value) -> Tree {
    let detail: Vec<String> = reason["detail"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let shown = text(value);
            // Times travel as texts of epoch milliseconds.
            match (name.ends_with("_at") || name.ends_with("_until"), shown.parse::<i64>()) {
                (true, Ok(ms)) => format!("{name} {} UTC", time(&ms.into())),
                _ => format!("{name} {shown}"),
            }
        })
        .collect();
    let said = if detail.is_empty() { String::new() } else { format!("  {}", detail.join(", ")) };
    let tree = Tree::new(format!("{}{said}", text(&reason["reason"])));
    match reason["remedy"].as_str() {
        Some(remedy) => tree.with(Tree::new(format!("→ {remedy}"))),
        None => tree,
    }
}

fn place(place: &Value) -> Option<Tree> {
    let ahead = place["ahead"].as_i64()?;
    let more = if place["more"] == true { "more than " } else { "" };
    let what = if ahead == 0 { "it is the next".to_owned() } else { format!("{more}{ahead} ahead of it") };
    Some(Tree::new(format!("place in its lane  {what}")))
}

fn requires(requires: &Value) -> Option<Tree> {
    let tokens: Vec<String> = each(&requires["capabilities"]).map(text).collect();
    if tokens.is_empty() {
        return None;
    }
    let covered =
        if requires["covered"] == true { "a live worker has them all" } else { "no live worker has them all" };
    let nearest = &requires["nearest"];
    let missing: Vec<String> = each(&nearest["missing"]).map(text).collect();
    let tree = Tree::new(format!("requires {}  {covered}", tokens.join(", ")));
    Some(if missing.is_empty() {
        tree
    } else {
        tree.with(Tree::new(format!("nearest: {} lacks {}", text(&nearest["instance"]), missing.join(", "))))
    })
}

fn quota(quota: &Value) -> Tree {
    let tree = Tree::new(format!("quota {}  key {}", text(&quota["quota_id"]), text(&quota["key"])));
    if let Some(problem) = quota["problem"].as_str() {
        return tree.with(Tree::new(problem));
    }
    let tree = tree.with_all(each(&quota["parts"]).map(|part| {
        let next = time(&part["next_at"]);
        let next = if next.is_empty() { String::new() } else { format!(", one more at {next} UTC") };
        Tree::new(format!("{} {}/{}{next}", text(&part["part"]), text(&part["used"]), text(&part["limit"])))
    }));
    match quota["throttled_until"].as_i64() {
        Some(until) => tree.with(Tree::new(format!("nothing starts until {} UTC", time(&until.into())))),
        None => tree,
    }
}

fn budget(budget: &Value) -> Tree {
    let tree = Tree::new(format!("budget {}", text(&budget["budget_id"])));
    let tree = match budget["problem"].as_str() {
        Some(problem) => tree.with(Tree::new(problem)),
        None => tree,
    };
    // Itself first, then those above it.
    tree.with_all(each(&budget["path"]).enumerate().flat_map(|(depth, level)| {
        let of = if depth == 0 { String::new() } else { format!("of {}: ", text(&level["budget_id"])) };
        let reset = next(&level["next_reset_at"], ", anew at");
        let dimensions: Vec<Tree> = level["dimensions"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, dimension)| {
                let said: Vec<String> = ["used", "held", "remaining", "hard", "soft"]
                    .into_iter()
                    .filter(|field| !dimension[*field].is_null())
                    .map(|field| format!("{field} {}", text(&dimension[field])))
                    .collect();
                Tree::new(format!("{of}{name}  {}{reset}", said.join(", ")))
            })
            .collect();
        dimensions
    }))
}

fn suspension(suspension: &Value) -> Option<Tree> {
    if suspension.is_null() {
        return None;
    }
    let out = time(&suspension["timeout_at"]);
    let ends = if out.is_empty() {
        String::new()
    } else {
        format!(", {} at {out} UTC", text(&suspension["timeout_behavior"]))
    };
    let tree = Tree::new(format!("waits since {} UTC{ends}", time(&suspension["suspended_at"])))
        .with(Tree::new(text(&suspension["progress"])));
    Some(tree.with_all(each(&suspension["waitpoints"]).map(|waitpoint| {
        let (id, key) = (text(&waitpoint["waitpoint_id"]), text(&waitpoint["key"]));
        Tree::new(format!("waitpoint {id}  {key}  {}", text(&waitpoint["state"])))
    })))
}

fn dependencies(dependencies: &Value) -> Option<Tree> {
    if dependencies.is_null() {
        return None;
    }
    let of = |name: &str| text(&dependencies[name]);
    let line = format!(
        "dependencies  {} of {} met, {} needed, {} can no longer be",
        of("met"),
        of("total"),
        of("needed"),
        of("dead")
    );
    Some(Tree::new(line).with_all(each(&dependencies["open"]).map(|upstream| {
        let (key, id) = (text(&upstream["key"]), text(&upstream["execution_id"]));
        Tree::new(format!("{key}  {id}  {}, on {}", text(&upstream["state"]), text(&upstream["on"])))
    })))
}

fn children(children: &Value) -> Option<Tree> {
    if children.is_null() {
        return None;
    }
    let line = match children["nested_flow_id"].as_str() {
        Some(flow) => format!("runs as flow {flow}"),
        None => format!("children  {} of {} open", text(&children["open"]), text(&children["total"])),
    };
    Some(Tree::new(line).with_all(each(&children["waits_for"]).map(|child| {
        let (key, id) = (text(&child["key"]), text(&child["execution_id"]));
        Tree::new(format!("{key}  {id}  {}", text(&child["state"])).trim_start().to_owned())
    })))
}

fn lane(lane: &Value) -> Tree {
    Tree::new(lane_line(lane))
}

fn lane_line(lane: &Value) -> String {
    let room = match lane["max_active"].as_i64() {
        Some(max) => format!(", {} of {max} running", text(&lane["active"])),
        None => String::new(),
    };
    format!("lane {}/{}  {}{room}", text(&lane["namespace"]), text(&lane["lane"]), text(&lane["state"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reasons_come_first_each_with_its_remedy() {
        let facts = json!({
            "execution_id": "0192", "state": "rate_limited", "can_run": false,
            "reasons": [
                {"reason": "waiting_for_quota", "detail": {"quota": "q", "next_at": "0"}, "remedy": "wait"},
                {"reason": "no_worker", "detail": {}, "remedy": "start a worker"},
            ],
            "place": {"queue": "ready", "ahead": 3},
            "requires": {"capabilities": ["eu", "gpu"], "covered": false, "nearest": {"instance": "w-1", "missing": ["gpu"]}},
            "quotas": [{"quota_id": "q", "key": "openai", "parts": [{"part": "rate", "used": 5, "limit": 5, "next_at": 1_000}]}],
            "budgets": [{"budget_id": "b", "path": [
                {"budget_id": "b", "dimensions": {"tokens": {"used": 9, "held": 0, "remaining": 1, "hard": 10, "soft": null}}, "next_reset_at": 2_000},
                {"budget_id": "all", "dimensions": {"tokens": {"used": 9, "hard": 99}}, "next_reset_at": null},
            ]}],
            "suspension": null,
            "dependencies": {"policy": "all_of", "needed": 2, "total": 2, "met": 1, "dead": 0, "open": [{"key": "fetch", "execution_id": "0193", "state": "active", "on": "success"}]},
            "lane": {"namespace": "default", "lane": "mail", "state": "active", "max_active": 4, "active": 4},
        });
        let drawn = tree(&facts).draw().join("\n");
        assert_eq!(
            drawn,
            "\
0192  rate_limited: it does not run
├─ waiting_for_quota  next_at 1970-01-01 00:00:00.000 UTC, quota q
│  └─ → wait
├─ no_worker
│  └─ → start a worker
├─ place in its lane  3 ahead of it
├─ requires eu, gpu  no live worker has them all
│  └─ nearest: w-1 lacks gpu
├─ quota q  key openai
│  └─ rate 5/5, one more at 1970-01-01 00:00:01.000 UTC
├─ budget b
│  ├─ tokens  used 9, held 0, remaining 1, hard 10, anew at 1970-01-01 00:00:02.000 UTC
│  └─ of all: tokens  used 9, hard 99
├─ dependencies  1 of 2 met, 2 needed, 0 can no longer be
│  └─ fetch  0193  active, on success
└─ lane default/mail  active, 4 of 4 running"
        );
    }

    #[test]
    fn a_lane_counts_its_reasons() {
        let facts = json!({
            "namespace": "default", "lane": "mail", "state": "active", "max_active": null, "active": null,
            "running": 2, "waiting": 9, "workers": {"live": 1, "slots": 2},
            "reasons": [
                {"reason": "waiting_for_quota", "count": 4, "next_at": 1_000, "remedy": "wait",
                 "parts": [{"quota_id": "q", "key": "openai", "count": 4, "next_at": 1_000, "remedy": "wait"}]},
                {"reason": "waiting_for_capable_worker", "count": 2, "next_at": null, "remedy": "start a worker", "parts": [
                    {"requires": ["gpu"], "nearest": {"instance": "w", "missing": ["gpu"]}, "count": 1, "next_at": null, "remedy": "w lacks only gpu"},
                    {"requires": ["eu", "tpu"], "nearest": null, "count": 1, "next_at": null, "remedy": "start one"},
                ]},
                {"reason": "delayed", "count": 3, "next_at": 2_000, "remedy": "wait too", "parts": []},
            ],
        });
        assert_eq!(
            lane_tree(&facts).draw().join("\n"),
            "\
lane default/mail  active  9 wait, 2 run, 1 live workers with 2 slots
├─ waiting_for_quota  4, the first at 1970-01-01 00:00:01.000 UTC
│  └─ quota q  key openai  4, the next at 1970-01-01 00:00:01.000 UTC
│     └─ → wait
├─ waiting_for_capable_worker  2
│  ├─ → start a worker
│  ├─ requires gpu  1
│  │  └─ → w lacks only gpu
│  └─ requires eu, tpu  1
│     └─ → start one
└─ delayed  3, the first at 1970-01-01 00:00:02.000 UTC
   └─ → wait too"
        );
    }
}
