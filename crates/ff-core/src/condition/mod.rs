//! The condition a suspended execution waits for: a tree over the signals that arrive.

use crate::text_enum::text_enum;

mod check;
mod evaluate;
mod wire;

pub use check::{
    CONDITION_COUNT_MAX, CONDITION_DEPTH_MAX, CONDITION_LEAVES_MAX, CONDITION_NAME_BYTES_MAX, ConditionProblem,
    InvalidCondition,
};
pub use evaluate::{Arrived, Evaluation, evaluate};

/// The condition under which a suspended execution goes on.
///
/// A condition read from JSON has the right shape but may be too large; [`Condition::check`] tells. [`evaluate`]
/// defines how arriving signals count.
///
/// ```
/// use ff_core::condition::Condition;
///
/// let json = r#"{"all_of": [{"signal": "paid"}, {"count": 2, "over": "approvers", "of": {"signal": "approved"}}]}"#;
/// let condition: Condition = serde_json::from_str(json).unwrap();
/// condition.check().unwrap();
/// assert_eq!(condition.flatten().len(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// One signal.
    Signal {
        /// Name of the signal; `None` matches any name.
        name: Option<String>,
        /// Key of the waitpoint it must arrive at; `None` matches any.
        waitpoint: Option<String>,
    },
    /// At least one of these.
    AnyOf(Vec<Condition>),
    /// Every one of these.
    AllOf(Vec<Condition>),
    /// Several signals.
    Count {
        n: u32,
        over: Over,
        /// The signals that count; `None` is all signals.
        of: Option<Matcher>,
    },
}

impl Default for Condition {
    /// Any signal.
    fn default() -> Self {
        Condition::Signal { name: None, waitpoint: None }
    }
}

/// The signals that a count counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Matcher {
    /// Name of the signals; `None` matches any name.
    pub name: Option<String>,
    /// Key of the waitpoint they must arrive at; `None` matches any.
    pub waitpoint: Option<String>,
}

text_enum! {
    /// What a count counts.
    Over as "count over" {
        /// Every signal.
        Signals = "signals",
        /// Waitpoints that were signalled. A second signal at one adds nothing.
        Waitpoints = "waitpoints",
        /// Tokens that were used, one for each approver. A second signal with one adds nothing.
        Approvers = "approvers",
    }
}

impl Condition {
    /// The condition for a list of signal names. An empty list is any signal, one name is that signal, several are all
    /// of them.
    ///
    /// An empty name matches any name.
    #[must_use]
    pub fn from_matchers<I>(names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let signal = |name: I::Item| {
            let name = name.as_ref();
            Condition::Signal { name: (!name.is_empty()).then(|| name.to_owned()), waitpoint: None }
        };
        let mut signals: Vec<Condition> = names.into_iter().map(signal).collect();
        match signals.len() {
            0 => Condition::default(),
            1 => signals.remove(0),
            _ => Condition::AllOf(signals),
        }
    }

    /// The tree as a list in pre-order: a node before its children, children in their written order.
    #[must_use]
    pub fn flatten(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.flatten_into(None, &mut nodes);
        nodes
    }

    fn flatten_into(&self, parent: Option<usize>, nodes: &mut Vec<Node>) {
        let here = nodes.len();
        let inner = |op| Node { parent, op, name: None, waitpoint: None, n: None, over: None };
        match self {
            Condition::Signal { name, waitpoint } => {
                nodes.push(Node { name: name.clone(), waitpoint: waitpoint.clone(), ..inner(Op::Signal) });
            }
            Condition::Count { n, over, of } => {
                let Matcher { name, waitpoint } = of.clone().unwrap_or_default();
                nodes.push(Node { name, waitpoint, n: Some(*n), over: Some(*over), ..inner(Op::Count) });
            }
            Condition::AnyOf(children) | Condition::AllOf(children) => {
                nodes.push(inner(if matches!(self, Condition::AnyOf(_)) { Op::AnyOf } else { Op::AllOf }));
                for child in children {
                    child.flatten_into(Some(here), nodes);
                }
            }
        }
    }
}

/// One condition of a flattened tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Index of the parent condition; `None` for the root.
    pub parent: Option<usize>,
    pub op: Op,
    /// Signal name of a leaf; `None` matches any.
    pub name: Option<String>,
    /// Waitpoint key of a leaf; `None` matches any.
    pub waitpoint: Option<String>,
    /// The number of a count; `None` for other kinds.
    pub n: Option<u32>,
    /// The unit of a count; `None` for other kinds.
    pub over: Option<Over>,
}

impl Node {
    /// Whether signals count here, and not only in its children.
    #[must_use]
    pub const fn is_leaf(&self) -> bool {
        matches!(self.op, Op::Signal | Op::Count)
    }
}

text_enum! {
    /// The kinds of conditions.
    Op as "condition" {
        /// One signal.
        Signal = "signal",
        /// At least one child.
        AnyOf = "any_of",
        /// Every child.
        AllOf = "all_of",
        /// Several signals.
        Count = "count",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(name: &str) -> Condition {
        Condition::Signal { name: Some(name.to_owned()), waitpoint: None }
    }

    #[test]
    fn no_matcher_is_any_signal_one_is_itself_and_more_are_all_of_them() {
        assert_eq!(Condition::from_matchers::<[&str; 0]>([]), Condition::default());
        assert_eq!(Condition::from_matchers(["paid"]), signal("paid"));
        assert_eq!(Condition::from_matchers([""]), Condition::default());
        assert_eq!(
            Condition::from_matchers(["paid", "", "sent"]),
            Condition::AllOf(vec![signal("paid"), Condition::default(), signal("sent")])
        );
        let owned = vec!["paid".to_owned()];
        assert_eq!(Condition::from_matchers(&owned), signal("paid"));
    }

    #[test]
    fn flattening_lists_each_node_before_its_children() {
        let count = Condition::Count {
            n: 2,
            over: Over::Approvers,
            of: Some(Matcher { name: Some("ok".to_owned()), waitpoint: Some("door".to_owned()) }),
        };
        let tree = Condition::AnyOf(vec![
            Condition::AllOf(vec![signal("a"), count]),
            Condition::Signal { name: None, waitpoint: Some("desk".to_owned()) },
        ]);
        let bare = |parent, op| Node { parent, op, name: None, waitpoint: None, n: None, over: None };
        assert_eq!(
            tree.flatten(),
            [
                bare(None, Op::AnyOf),
                bare(Some(0), Op::AllOf),
                Node { name: Some("a".to_owned()), ..bare(Some(1), Op::Signal) },
                Node {
                    name: Some("ok".to_owned()),
                    waitpoint: Some("door".to_owned()),
                    n: Some(2),
                    over: Some(Over::Approvers),
                    ..bare(Some(1), Op::Count)
                },
                Node { waitpoint: Some("desk".to_owned()), ..bare(Some(0), Op::Signal) },
            ]
        );
        assert_eq!(tree.flatten().iter().filter(|node| node.is_leaf()).count(), 3);
    }
}
