//! The waits of random workers, the signals of random outsiders, and the content of streams.

use ff_core::condition::{Condition, Matcher, Op, Over};
use ff_script::generated::{ConditionNode, ConditionOp, CountOver};
use proptest::prelude::*;

use super::{Act, Pick, pick, proof};

/// Names of signals.
pub const NAMES: [&str; 3] = ["approved", "paid", "é\u{0}"];

/// Keys of waitpoints.
pub const KEYS: [&str; 3] = ["door", "desk", "hook"];

/// The approvers. A waitpoint without approvers has a single token.
pub const APPROVERS: [&str; 3] = ["ann", "bob", "eve"];

/// A waitpoint, from a few numbers.
#[derive(Clone, Debug)]
pub struct Opening {
    pub key: u8,
    pub expires_in_ms: Option<i64>,
    pub allowed: u8,
    pub uses: Option<i64>,
    /// Bits of the approvers; 0 is one token without a label, 8 is no token, 9 names one approver twice.
    pub approvers: u8,
    /// An id that was used before.
    pub again: Option<Pick>,
}

/// A condition, from a few numbers.
#[derive(Clone, Debug)]
pub enum Tree {
    Signal(Option<u8>, Option<u8>),
    Count(u32, u8, Option<u8>, Option<u8>),
    Any(Vec<Tree>),
    All(Vec<Tree>),
}

#[derive(Clone, Debug)]
pub struct Waiting {
    pub reason: u8,
    pub new: Vec<Opening>,
    /// The pending waitpoints to adopt, by bits; `None` adopts all.
    pub adopt: Option<u8>,
    pub otherwise: Option<Opening>,
    pub condition: Option<Tree>,
    pub timeout_ms: Option<i64>,
    pub behavior: u8,
    pub continuation: u8,
    /// Rarely makes a part of it invalid.
    pub odd: u8,
}

/// A signal of an outsider, and its fault.
#[derive(Clone, Debug)]
pub struct Sending {
    pub name: u8,
    pub payload: u8,
    pub key: Option<u8>,
    /// 0 an old token, 1 a token of another waitpoint, 2 a digest that was never issued, 3 another execution; otherwise
    /// no fault.
    pub wrong: u8,
    pub extras: u8,
}

/// Frames to append.
#[derive(Clone, Debug)]
pub struct Writing {
    pub count: usize,
    pub modes: u8,
    pub payload: u8,
    /// 0 no sequence, 1 one that was written, 2 one too far, otherwise the next.
    pub sequence: u8,
    pub request: Option<Pick>,
    /// 0 none, 1 an old version, otherwise the right one.
    pub summary: u8,
}

impl Opening {
    /// A new one without special settings.
    pub fn plain(key: u8) -> Opening {
        Opening { key, expires_in_ms: None, allowed: 0, uses: None, approvers: 0, again: None }
    }
}

impl Waiting {
    /// A wait for any signal.
    pub fn plain(number: u16) -> Waiting {
        Waiting {
            reason: (number % 9) as u8,
            new: Vec::new(),
            adopt: None,
            otherwise: None,
            condition: None,
            timeout_ms: None,
            behavior: (number % 5) as u8,
            continuation: (number % 16) as u8,
            odd: 9,
        }
    }
}

fn opening() -> impl Strategy<Value = Opening> {
    let expires = proptest::option::weighted(0.2, prop_oneof![1 => Just(0), 6 => 1..6_000i64]);
    let allowed = prop_oneof![5 => Just(0u8), 1 => 1..8u8];
    let approvers = prop_oneof![12 => Just(0u8), 12 => Just(3u8), 6 => 1..8u8, 1 => 8..10u8];
    let uses = proptest::option::weighted(0.3, 1..3i64);
    (0..3u8, expires, allowed, uses, approvers, proptest::option::weighted(0.06, pick())).prop_map(
        |(key, expires_in_ms, allowed, uses, approvers, again)| Opening {
            key,
            expires_in_ms,
            allowed,
            uses,
            approvers,
            again,
        },
    )
}

fn tree() -> impl Strategy<Value = Tree> {
    let name = || proptest::option::weighted(0.5, 0..3u8);
    let key = || proptest::option::weighted(0.08, 0..3u8);
    let leaf = prop_oneof![
        3 => (name(), key()).prop_map(|(name, key)| Tree::Signal(name, key)),
        2 => (prop_oneof![3 => 1..3u32, 1 => Just(3u32)], 0..3u8, name(), key()).prop_map(|(n, over, name, key)| Tree::Count(n, over, name, key)),
    ];
    // Five levels, and an empty node, must fail.
    let nested = leaf.clone().prop_recursive(4, 8, 3, |inner| {
        let some = || proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![20 => some().prop_map(Tree::Any), 20 => some().prop_map(Tree::All), 1 => Just(Tree::Any(Vec::new()))]
    });
    prop_oneof![1 => leaf, 1 => nested]
}

fn waiting() -> impl Strategy<Value = Waiting> {
    let new = proptest::collection::vec(opening(), 0..3);
    let timeout = proptest::option::weighted(0.4, prop_oneof![1 => Just(0), 6 => 1..8_000i64]);
    (
        (0..9u8, new, proptest::option::weighted(0.2, any::<u8>()), proptest::option::weighted(0.7, opening())),
        proptest::option::weighted(0.7, tree()),
        (timeout, 0..5u8, any::<u8>(), any::<u8>()),
    )
        .prop_map(|((reason, new, adopt, otherwise), condition, (timeout_ms, behavior, continuation, odd))| {
            Waiting { reason, new, adopt, otherwise, condition, timeout_ms, behavior, continuation, odd }
        })
}

fn sending() -> impl Strategy<Value = Sending> {
    let wrong = prop_oneof![1 => 0..3u8, 1 => Just(3u8), 8 => Just(9u8)];
    (0..3u8, any::<u8>(), proptest::option::weighted(0.4, 0..2u8), wrong, any::<u8>())
        .prop_map(|(name, payload, key, wrong, extras)| Sending { name, payload, key, wrong, extras })
}

fn writing() -> impl Strategy<Value = Writing> {
    let count = prop_oneof![1 => Just(0usize), 12 => 1..6usize];
    (count, any::<u8>(), any::<u8>(), 0..8u8, proptest::option::weighted(0.3, pick()), 0..6u8).prop_map(
        |(count, modes, payload, sequence, request, summary)| Writing {
            count,
            modes,
            payload,
            sequence,
            request,
            summary,
        },
    )
}

/// The actions of workers, outsiders and operators on waits.
pub fn wait_acts() -> BoxedStrategy<Act> {
    let both = || (pick(), proof());
    prop_oneof![
        12 => (both(), waiting()).prop_map(|((of, proof), waiting)| Act::Suspend { of, proof, waiting: Box::new(waiting) }),
        2 => pick().prop_map(|which| Act::SuspendAgain { which }),
        10 => (both(), opening()).prop_map(|((of, proof), opening)| Act::CreateWaitpoint { of, proof, opening }),
        1 => (both(), pick()).prop_map(|((of, proof), which)| Act::CloseWaitpoint { of, proof, which }),
        24 => (pick(), sending()).prop_map(|(which, sending)| Act::Signal { which, sending }),
        5 => (pick(), 0..4u8).prop_map(|(which, change)| Act::SignalAgain { which, change }),
        2 => pick().prop_map(|of| Act::Resume { of }),
        1 => pick().prop_map(|of| Act::FailSuspension { of }),
        4 => (pick(), 0..8u8).prop_map(|(which, approver)| Act::Reissue { which, approver }),
        2 => (proptest::option::of(pick()), 1..5i64, any::<bool>()).prop_map(|(after, limit, everywhere)| Act::ListWaitpoints { after, limit, everywhere }),
        1 => pick().prop_map(|which| Act::DescribeWaitpoint { which }),
        1 => pick().prop_map(|of| Act::ExecutionWaitpoints { of }),
        2 => (pick(), any::<bool>(), proptest::option::of(pick()), 1..4i64).prop_map(|(of, resume_only, after, limit)| Act::ReadSignals { of, resume_only, after, limit }),
    ]
    .boxed()
}

/// The actions of writers and readers on streams.
pub fn stream_acts() -> BoxedStrategy<Act> {
    let index = || proptest::option::weighted(0.4, 0..4i64);
    let bounds = || (proptest::option::weighted(0.4, pick()), proptest::option::weighted(0.2, pick()));
    prop_oneof![
        8 => (pick(), proof(), writing()).prop_map(|(of, proof, writing)| Act::Append { of, proof, writing }),
        2 => pick().prop_map(|which| Act::AppendAgain { which }),
        4 => (pick(), index(), bounds(), any::<bool>(), 1..6i64)
            .prop_map(|(of, index, (from, to), after, limit)| Act::ReadStream { of, index, from, to, after, limit }),
        1 => (pick(), index()).prop_map(|(of, index)| Act::ReadSummary { of, index }),
        1 => pick().prop_map(|of| Act::Follow { of }),
    ]
    .boxed()
}

impl Tree {
    fn condition(&self) -> Condition {
        let name = |name: &Option<u8>| name.map(|at| NAMES[usize::from(at)].to_owned());
        let key = |key: &Option<u8>| key.map(|at| KEYS[usize::from(at)].to_owned());
        let all = |trees: &[Tree]| trees.iter().map(Tree::condition).collect();
        match self {
            Tree::Signal(n, k) => Condition::Signal { name: name(n), waitpoint: key(k) },
            Tree::Count(n, over, of, at) => Condition::Count {
                n: *n,
                over: [Over::Signals, Over::Waitpoints, Over::Approvers][usize::from(*over)],
                of: Some(Matcher { name: name(of), waitpoint: key(at) }),
            },
            Tree::Any(trees) => Condition::AnyOf(all(trees)),
            Tree::All(trees) => Condition::AllOf(all(trees)),
        }
    }

    /// The list in a suspend.
    pub fn nodes(&self) -> Vec<ConditionNode> {
        let op = |op| match op {
            Op::Signal => ConditionOp::Signal,
            Op::AnyOf => ConditionOp::AnyOf,
            Op::AllOf => ConditionOp::AllOf,
            Op::Count => ConditionOp::Count,
        };
        let over = |over| match over {
            Over::Signals => CountOver::Signals,
            Over::Waitpoints => CountOver::Waitpoints,
            Over::Approvers => CountOver::Approvers,
        };
        let typed = |node: ff_core::condition::Node| ConditionNode {
            op: op(node.op),
            parent: node.parent.map(|parent| parent as i64),
            name: node.name,
            waitpoint: node.waitpoint,
            n: node.n.map(i64::from),
            over: node.over.map(over),
        };
        self.condition().flatten().into_iter().map(typed).collect()
    }
}
