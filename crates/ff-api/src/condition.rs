//! How far a condition is: as the API writes conditions, and in words.

use ff_script::generated::{ConditionOp, ConditionProgress};
use serde_json::{Map, Value, json};

/// The condition as the API writes conditions, each with `satisfied`, and with `counted` where signals count.
pub fn tree(nodes: &[ConditionProgress]) -> Value {
    if nodes.is_empty() { Value::Null } else { branch(nodes, 0) }
}

fn children(nodes: &[ConditionProgress], of: usize) -> impl Iterator<Item = usize> {
    let is_child =
        move |node: &ConditionProgress| node.parent.and_then(|parent| usize::try_from(parent).ok()) == Some(of);
    nodes.iter().enumerate().filter(move |(_, node)| is_child(node)).map(|(at, _)| at)
}

fn branch(nodes: &[ConditionProgress], at: usize) -> Value {
    let node = &nodes[at];
    let mut shown = Map::new();
    // Parents are listed before their children, so this ends.
    let below =
        || Value::Array(children(nodes, at).filter(|child| *child > at).map(|child| branch(nodes, child)).collect());
    match node.op {
        ConditionOp::AnyOf => drop(shown.insert("any_of".to_owned(), below())),
        ConditionOp::AllOf => drop(shown.insert("all_of".to_owned(), below())),
        ConditionOp::Signal => {
            shown.insert("signal".to_owned(), json!(node.name));
            shown.extend(node.waitpoint.as_ref().map(|key| ("waitpoint".to_owned(), json!(key))));
        }
        ConditionOp::Count => {
            shown.insert("count".to_owned(), json!(node.n));
            shown.insert("over".to_owned(), json!(node.over.map(|over| over.as_str())));
            let mut of = Map::new();
            of.extend(node.name.as_ref().map(|name| ("signal".to_owned(), json!(name))));
            of.extend(node.waitpoint.as_ref().map(|key| ("waitpoint".to_owned(), json!(key))));
            if !of.is_empty() {
                shown.insert("of".to_owned(), Value::Object(of));
            }
            shown.insert("counted".to_owned(), json!(node.counted));
        }
    }
    shown.insert("satisfied".to_owned(), json!(node.satisfied));
    Value::Object(shown)
}

/// How far the condition is, in words: `1 of 2 approvers with approved`.
pub fn in_words(nodes: &[ConditionProgress]) -> String {
    let done = |node: &ConditionProgress| if node.satisfied { " (came)" } else { "" };
    let leaves: Vec<String> = nodes
        .iter()
        .filter_map(|node| {
            let name = node.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let at = node.waitpoint.as_ref().map(|key| format!(" at {key}")).unwrap_or_default();
            match node.op {
                ConditionOp::AnyOf | ConditionOp::AllOf => None,
                ConditionOp::Signal if name.is_empty() => Some(format!("any signal{at}{}", done(node))),
                ConditionOp::Signal => Some(format!("signal{name}{at}{}", done(node))),
                ConditionOp::Count => {
                    let over = node.over.map_or("signals", |over| over.as_str());
                    let with = if name.is_empty() { String::new() } else { format!(" with{name}") };
                    Some(format!("{} of {} {over}{with}{at}", node.counted, node.n.unwrap_or(1)))
                }
            }
        })
        .collect();
    match nodes.first().map(|node| node.op) {
        None => "any signal".to_owned(),
        Some(ConditionOp::AnyOf) => format!("one of: {}", leaves.join("; ")),
        Some(ConditionOp::AllOf) => format!("all of: {}", leaves.join("; ")),
        Some(ConditionOp::Signal | ConditionOp::Count) => leaves.join("; "),
    }
}
