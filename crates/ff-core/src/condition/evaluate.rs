//! How arriving signals count for a condition, written as plainly as possible. Other tests compare with this reference.

use std::collections::BTreeSet;

use super::{Condition, Node, Op, Over};
use crate::types::WaitpointId;

/// A signal that arrived at a waitpoint of the execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Arrived {
    pub name: String,
    /// Key of the waitpoint it arrived at.
    pub waitpoint_key: String,
    /// The waitpoint it arrived at. A count over waitpoints counts each of these once.
    pub waitpoint_id: WaitpointId,
    /// Names the token it was sent with. A count over approvers counts each of these once.
    pub approver_token: String,
}

/// The result of a condition after some signals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Whether the wait is over.
    pub satisfied: bool,
    /// The signals that counted for each condition, in order of arrival. Conditions are in pre-order; the lists of
    /// `any_of` and `all_of` are empty.
    pub taken: Vec<Vec<usize>>,
    satisfying: Vec<usize>,
}

impl Evaluation {
    /// The signals that ended the wait, in order of arrival, each once. They are the signals of satisfied leaves whose
    /// ancestors are all satisfied. Empty while the wait goes on.
    #[must_use]
    pub fn satisfying(&self) -> &[usize] {
        &self.satisfying
    }
}

/// Replays the signals in order of arrival against a condition that passed [`Condition::check`].
///
/// A condition is *open* while neither it nor any ancestor is satisfied. Which conditions are open is decided when a
/// signal arrives, before the signal counts anywhere.
///
/// - A signal counts for every open leaf with its name, and with its waitpoint if the leaf has one.
/// - Otherwise a signal counts for the first open leaf without a name that it fits. Leaves bound to its waitpoint come
///   before unbound ones; the rest is pre-order.
/// - A count over waitpoints or approvers takes a signal only if it has not counted that waitpoint or approver yet.
///   Otherwise the next leaf may take the signal.
/// - One signal satisfies a signal leaf, `n` a count, one satisfied child an `any_of`, all children an `all_of`.
/// - Once the whole condition is satisfied, no signal counts any more.
///
/// Therefore two conditions share a signal only if they have the same name.
#[must_use]
pub fn evaluate(condition: &Condition, signals: &[Arrived]) -> Evaluation {
    let mut replay = Replay::new(condition.flatten());
    for (index, signal) in signals.iter().enumerate() {
        replay.arrive(index, signal, signals);
    }
    let satisfying: BTreeSet<usize> = (0..replay.nodes.len())
        .filter(|&at| replay.lineage(at).all(|node| replay.satisfied[node]))
        .flat_map(|at| replay.taken[at].iter().copied())
        .collect();
    Evaluation { satisfied: replay.satisfied[0], taken: replay.taken, satisfying: satisfying.into_iter().collect() }
}

/// A flattened condition with the progress of each node.
struct Replay {
    nodes: Vec<Node>,
    satisfied: Vec<bool>,
    taken: Vec<Vec<usize>>,
}

impl Replay {
    fn new(nodes: Vec<Node>) -> Self {
        Self { satisfied: vec![false; nodes.len()], taken: vec![Vec::new(); nodes.len()], nodes }
    }

    /// The node itself and all its ancestors.
    fn lineage(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(at), |&node| self.nodes[node].parent)
    }

    fn arrive(&mut self, index: usize, signal: &Arrived, all: &[Arrived]) {
        let takers: Vec<usize> = (0..self.nodes.len())
            .filter(|&at| self.nodes[at].is_leaf() && self.lineage(at).all(|node| !self.satisfied[node]))
            .filter(|&at| self.nodes[at].waitpoint.as_ref().is_none_or(|key| *key == signal.waitpoint_key))
            .filter(|&at| self.adds(at, signal, all))
            .collect();

        let named: Vec<usize> =
            takers.iter().copied().filter(|&at| self.nodes[at].name.as_ref() == Some(&signal.name)).collect();
        let unnamed = |bound: bool| {
            takers
                .iter()
                .copied()
                .find(|&at| self.nodes[at].name.is_none() && self.nodes[at].waitpoint.is_some() == bound)
        };
        let takers = if named.is_empty() { unnamed(true).or(unnamed(false)).into_iter().collect() } else { named };

        for at in takers {
            self.taken[at].push(index);
        }
        self.settle();
    }

    /// Whether the signal adds something new to the leaf's count.
    fn adds(&self, at: usize, signal: &Arrived, all: &[Arrived]) -> bool {
        let mut counted = self.taken[at].iter().map(|&index| &all[index]);
        match self.nodes[at].over {
            Some(Over::Waitpoints) => counted.all(|other| other.waitpoint_id != signal.waitpoint_id),
            Some(Over::Approvers) => counted.all(|other| other.approver_token != signal.approver_token),
            Some(Over::Signals) | None => true,
        }
    }

    /// Recomputes, from the leaves up, which nodes are satisfied.
    fn settle(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let mut children =
                (0..self.nodes.len()).filter(|&child| self.nodes[child].parent == Some(at)).map(|c| self.satisfied[c]);
            self.satisfied[at] = match self.nodes[at].op {
                Op::Signal => !self.taken[at].is_empty(),
                Op::Count => Some(self.taken[at].len()) == self.nodes[at].n.map(|n| n as usize),
                Op::AnyOf => children.any(|satisfied| satisfied),
                Op::AllOf => children.all(|satisfied| satisfied),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Matcher;
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn condition(json: &str) -> Condition {
        let condition: Condition = serde_json::from_str(json).unwrap();
        condition.check().unwrap();
        condition
    }

    /// Signals written `name`, `name@waitpoint` or `name@waitpoint/approver`, separated by spaces.
    fn signals(text: &str) -> Vec<Arrived> {
        text.split_whitespace()
            .map(|word| {
                let (rest, approver) = word.split_once('/').unwrap_or((word, "token"));
                let (name, key) = rest.split_once('@').unwrap_or((rest, "w"));
                let id = key.bytes().fold(7u128, |hash, byte| hash * 257 + u128::from(byte));
                Arrived {
                    name: name.to_owned(),
                    waitpoint_key: key.to_owned(),
                    waitpoint_id: WaitpointId::from_uuid(Uuid::from_u128(id)),
                    approver_token: approver.to_owned(),
                }
            })
            .collect()
    }

    struct Row {
        condition: &'static str,
        signals: &'static str,
        taken: &'static [&'static [usize]],
        satisfying: Option<&'static [usize]>,
    }

    fn check(rows: &[Row]) {
        for Row { condition: json, signals: text, taken, satisfying } in rows {
            let evaluation = evaluate(&condition(json), &signals(text));
            assert_eq!(evaluation.taken, *taken, "taken by {json} of {text}");
            assert_eq!(evaluation.satisfied, satisfying.is_some(), "whether {json} is satisfied by {text}");
            assert_eq!(evaluation.satisfying(), satisfying.unwrap_or_default(), "what satisfies {json} in {text}");
        }
    }

    #[test]
    fn one_signal_of_the_right_name_and_waitpoint_satisfies_a_signal_condition() {
        check(&[
            Row { condition: "{}", signals: "", taken: &[&[]], satisfying: None },
            Row { condition: "{}", signals: "x y", taken: &[&[0]], satisfying: Some(&[0]) },
            Row { condition: r#"{"signal":"a"}"#, signals: "b a a", taken: &[&[1]], satisfying: Some(&[1]) },
            Row { condition: r#"{"signal":"a"}"#, signals: "b c", taken: &[&[]], satisfying: None },
            Row {
                condition: r#"{"signal":"a","waitpoint":"door"}"#,
                signals: "a@desk b@door a@door",
                taken: &[&[2]],
                satisfying: Some(&[2]),
            },
            Row { condition: r#"{"waitpoint":"door"}"#, signals: "a b@door", taken: &[&[1]], satisfying: Some(&[1]) },
        ]);
    }

    #[test]
    fn a_named_signal_counts_for_every_open_leaf_that_names_it() {
        check(&[
            Row {
                condition: r#"{"all_of":[{"signal":"a"},{"signal":"a"},{"count":2,"over":"signals","of":{"signal":"a"}}]}"#,
                signals: "a a",
                taken: &[&[], &[0], &[0], &[0, 1]],
                satisfying: Some(&[0, 1]),
            },
            // One signal satisfies both children: which conditions are open is decided before it counts.
            Row {
                condition: r#"{"any_of":[{"signal":"a"},{"signal":"a"}]}"#,
                signals: "a",
                taken: &[&[], &[0], &[0]],
                satisfying: Some(&[0]),
            },
            Row {
                condition: r#"{"any_of":[{"signal":"a","waitpoint":"door"},{"count":2,"over":"signals","of":{"signal":"a"}}]}"#,
                signals: "a@desk a@door",
                taken: &[&[], &[1], &[0, 1]],
                satisfying: Some(&[0, 1]),
            },
        ]);
    }

    #[test]
    fn a_signal_some_leaf_names_does_not_count_for_an_unnamed_one() {
        check(&[
            Row {
                condition: r#"{"all_of":[{},{"signal":"a"}]}"#,
                signals: "a x",
                taken: &[&[], &[1], &[0]],
                satisfying: Some(&[0, 1]),
            },
            Row {
                condition: r#"{"all_of":[{},{"signal":"a"}]}"#,
                signals: "a",
                taken: &[&[], &[], &[0]],
                satisfying: None,
            },
            // The named leaf is satisfied and no longer open, so the second signal goes to the unnamed one.
            Row {
                condition: r#"{"all_of":[{},{"signal":"a"}]}"#,
                signals: "a a",
                taken: &[&[], &[1], &[0]],
                satisfying: Some(&[0, 1]),
            },
            // The named leaf requires another waitpoint.
            Row {
                condition: r#"{"all_of":[{},{"signal":"a","waitpoint":"door"}]}"#,
                signals: "a@desk",
                taken: &[&[], &[0], &[]],
                satisfying: None,
            },
        ]);
    }

    #[test]
    fn an_unnamed_signal_counts_once_bound_leaves_first_then_in_order() {
        check(&[
            Row { condition: r#"{"all_of":[{},{}]}"#, signals: "x", taken: &[&[], &[0], &[]], satisfying: None },
            Row {
                condition: r#"{"all_of":[{},{}]}"#,
                signals: "x x",
                taken: &[&[], &[0], &[1]],
                satisfying: Some(&[0, 1]),
            },
            Row {
                condition: r#"{"all_of":[{},{"waitpoint":"door"}]}"#,
                signals: "x@door",
                taken: &[&[], &[], &[0]],
                satisfying: None,
            },
            Row {
                condition: r#"{"all_of":[{},{"any_of":[{"waitpoint":"door"},{"waitpoint":"door"}]}]}"#,
                signals: "x@door x@door",
                taken: &[&[], &[1], &[], &[0], &[]],
                satisfying: Some(&[0, 1]),
            },
            Row {
                condition: r#"{"all_of":[{"waitpoint":"desk"},{}]}"#,
                signals: "x@door",
                taken: &[&[], &[], &[0]],
                satisfying: None,
            },
        ]);
    }

    #[test]
    fn a_count_over_waitpoints_or_approvers_takes_only_what_adds_one() {
        check(&[
            Row {
                condition: r#"{"count":2,"over":"signals"}"#,
                signals: "x x x",
                taken: &[&[0, 1]],
                satisfying: Some(&[0, 1]),
            },
            Row {
                condition: r#"{"count":2,"over":"waitpoints"}"#,
                signals: "x@door x@door y@desk",
                taken: &[&[0, 2]],
                satisfying: Some(&[0, 2]),
            },
            Row {
                condition: r#"{"count":2,"over":"approvers","of":{"signal":"ok"}}"#,
                signals: "ok/ann ok/ann no/bob ok/bob",
                taken: &[&[0, 3]],
                satisfying: Some(&[0, 3]),
            },
            Row {
                condition: r#"{"count":2,"over":"approvers","of":{"waitpoint":"door"}}"#,
                signals: "ok@door/ann ok@desk/bob ok@door/ann",
                taken: &[&[0]],
                satisfying: None,
            },
        ]);
    }

    #[test]
    fn a_signal_a_count_does_not_take_is_offered_on() {
        check(&[
            Row {
                condition: r#"{"all_of":[{"count":2,"over":"approvers"},{}]}"#,
                signals: "x/ann x/ann x/bob",
                taken: &[&[], &[0, 2], &[1]],
                satisfying: Some(&[0, 1, 2]),
            },
            Row {
                condition: r#"{"all_of":[{"count":2,"over":"approvers","of":{"signal":"ok"}},{}]}"#,
                signals: "ok/ann ok/ann",
                taken: &[&[], &[0], &[1]],
                satisfying: None,
            },
            Row {
                condition: r#"{"all_of":[{"count":2,"over":"waitpoints","of":{"waitpoint":"door"}},{}]}"#,
                signals: "x@door x@door",
                taken: &[&[], &[0], &[1]],
                satisfying: None,
            },
        ]);
    }

    #[test]
    fn a_satisfied_condition_closes_everything_below_it() {
        check(&[
            Row {
                condition: r#"{"all_of":[{"any_of":[{"signal":"a"},{"signal":"b"}]},{"signal":"c"}]}"#,
                signals: "a b c",
                taken: &[&[], &[], &[0], &[], &[2]],
                satisfying: Some(&[0, 2]),
            },
            // No signal counts once the whole condition is satisfied.
            Row {
                condition: r#"{"any_of":[{"signal":"a"},{"count":2,"over":"signals"}]}"#,
                signals: "x a x",
                taken: &[&[], &[1], &[0]],
                satisfying: Some(&[1]),
            },
        ]);
    }

    #[test]
    fn what_a_branch_took_that_did_not_come_to_its_end_does_not_satisfy() {
        check(&[Row {
            condition: r#"{"any_of":[{"all_of":[{"signal":"a"},{"signal":"b"}]},{"signal":"c"}]}"#,
            signals: "a c",
            taken: &[&[], &[], &[0], &[], &[1]],
            satisfying: Some(&[1]),
        }]);
    }

    fn any_condition() -> impl Strategy<Value = Condition> {
        let name = || proptest::option::of("[ab]");
        let key = || proptest::option::of("[vw]");
        let over = prop_oneof![Just(Over::Signals), Just(Over::Waitpoints), Just(Over::Approvers)];
        let leaf = prop_oneof![
            (name(), key()).prop_map(|(name, waitpoint)| Condition::Signal { name, waitpoint }),
            (1u32..=3, over, name(), key()).prop_map(|(n, over, name, waitpoint)| Condition::Count {
                n,
                over,
                of: Some(Matcher { name, waitpoint })
            }),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 1..4).prop_map(Condition::AnyOf),
                proptest::collection::vec(inner, 1..4).prop_map(Condition::AllOf),
            ]
        })
    }

    proptest! {
        #[test]
        fn two_conditions_share_a_signal_only_if_they_name_it(
            condition in any_condition(),
            words in proptest::collection::vec("[abc]@[vwx]/[mn]", 0..12),
        ) {
            let signals = signals(&words.join(" "));
            let nodes = condition.flatten();
            let evaluation = evaluate(&condition, &signals);
            for (index, signal) in signals.iter().enumerate() {
                let takers: Vec<&Node> =
                    (0..nodes.len()).filter(|&at| evaluation.taken[at].contains(&index)).map(|at| &nodes[at]).collect();
                prop_assert!(takers.len() <= 1 || takers.iter().all(|node| node.name.as_ref() == Some(&signal.name)));
            }
        }

        #[test]
        fn more_signals_never_take_anything_back(
            condition in any_condition(),
            words in proptest::collection::vec("[abc]@[vwx]/[mn]", 1..12),
        ) {
            let signals = signals(&words.join(" "));
            let before = evaluate(&condition, &signals[..signals.len() - 1]);
            let after = evaluate(&condition, &signals);
            for (earlier, later) in before.taken.iter().zip(&after.taken) {
                prop_assert!(later.starts_with(earlier));
            }
            if before.satisfied {
                prop_assert_eq!(before, after);
            }
        }
    }
}
