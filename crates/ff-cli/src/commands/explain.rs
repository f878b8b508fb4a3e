//! `ff explain`: why an execution is not running, and what would change that.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{Api, IdArgs, Output, OutputArgs, ServerArgs, for_each, print, say, say_raw, segment, text, time};
use crate::terminal;
use crate::tree::Tree;

/// Explains why executions are not running, and what would unblock each. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff explain 0192f3a0-…
  ff list --state waiting -o ids | ff explain -")]
pub struct Explain {
    #[command(flatten)]
    ids: IdArgs,
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
        for_each(self.ids.read()?, |id| async move {
            let reply = api.get(&format!("/v1/executions/{}/explain", segment(&id)), &[]).await?.accepted()?;
            match output {
                Output::Json => say_raw(&reply.bytes),
                Output::Ids => say(&text(&reply.json()?["execution_id"])),
                Output::Table => {
                    let drawn = tree(&reply.json()?).draw().join("\n");
                    print(&format!("{}\n", if terminal::is_live() { terminal::harmless(&drawn) } else { drawn }))
                }
            }
        })
        .await
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
    let what = if ahead == 0 { "it is the next".to_owned() } else { format!("{ahead} ahead of it") };
    Some(Tree::new(format!("place in its partition  {what}")))
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
    let dimensions = budget["dimensions"].as_object().into_iter().flatten();
    tree.with_all(dimensions.map(|(name, dimension)| {
        let said: Vec<String> = ["used", "held", "remaining", "hard", "soft"]
            .into_iter()
            .filter(|field| !dimension[*field].is_null())
            .map(|field| format!("{field} {}", text(&dimension[field])))
            .collect();
        Tree::new(format!("{name}  {}", said.join(", ")))
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
    let room = match lane["max_active"].as_i64() {
        Some(max) => format!(", {} of {max} running", text(&lane["active"])),
        None => String::new(),
    };
    Tree::new(format!("lane {}/{}  {}{room}", text(&lane["namespace"]), text(&lane["lane"]), text(&lane["state"])))
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
├─ place in its partition  3 ahead of it
├─ requires eu, gpu  no live worker has them all
│  └─ nearest: w-1 lacks gpu
├─ quota q  key openai
│  └─ rate 5/5, one more at 1970-01-01 00:00:01.000 UTC
├─ dependencies  1 of 2 met, 2 needed, 0 can no longer be
│  └─ fetch  0193  active, on success
└─ lane default/mail  active, 4 of 4 running"
        );
    }
}
