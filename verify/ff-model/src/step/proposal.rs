//! The fields of a random submission.

use std::collections::BTreeMap;

use ff_core::types::ExecutionId;
use ff_script::Bytes;
use ff_script::generated::{Backoff, BackoffType, BudgetRef, Jitter, QuotaRef, Retry, StreamOptions, Submission};
use proptest::prelude::*;
use uuid::Uuid;

/// All capabilities; the bits of a byte select some.
const CAPABILITIES: [&str; 3] = ["gpu", "eu", "arm64"];

/// All lanes. The last one is never installed at the start.
pub const LANES: [(&str, &str); 5] =
    [("default", "main"), ("default", "aging"), ("default", "fair"), ("other", "main"), ("default", "late")];

/// A submission, from a few numbers.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub lane: u8,
    pub shape: Shape,
    pub times: Times,
    pub rules: Rules,
    pub needs: Needs,
    /// An idempotency key, its time to live, and one of a few bodies.
    pub key: Option<(u8, Option<i64>, u8)>,
}

#[derive(Clone, Debug)]
pub struct Shape {
    pub kind: u8,
    pub input: u8,
    pub tags: u8,
    pub priority: Option<i64>,
    pub extras: u8,
}

#[derive(Clone, Debug)]
pub struct Times {
    pub delay_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    /// Whether times are points or durations; 3 gives both, which must fail.
    pub absolute: u8,
    pub start_within_ms: Option<i64>,
    pub attempt_timeout_ms: Option<i64>,
    pub retention_ms: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Rules {
    pub retry: Option<u8>,
    pub max_reclaims: Option<i64>,
    pub max_replays: Option<i64>,
    pub fallbacks: u8,
}

#[derive(Clone, Debug)]
pub struct Needs {
    pub requires: u8,
    pub prefers: u8,
    pub fairness_key: Option<u8>,
    pub admission: u8,
    pub lane_depth: Option<i64>,
}

pub fn priority() -> impl Strategy<Value = i64> {
    prop_oneof![3 => Just(0), 3 => 1..4i64, 1 => Just(9_000)]
}

/// Few requirements, so that work often matches.
fn few() -> impl Strategy<Value = u8> {
    prop_oneof![5 => Just(0u8), 3 => prop_oneof![Just(1u8), Just(2), Just(4)], 1 => 0..8u8]
}

pub fn proposal() -> impl Strategy<Value = Proposal> {
    let seldom = |strategy: std::ops::Range<i64>| proptest::option::weighted(0.15, strategy);
    let shape = (0..3u8, any::<u8>(), any::<u8>(), proptest::option::of(priority()), any::<u8>())
        .prop_map(|(kind, input, tags, priority, extras)| Shape { kind, input, tags, priority, extras });
    let times = (
        seldom(-1_000..4_000),
        seldom(-100..8_000),
        0..16u8,
        seldom(0..4_000),
        seldom(0..5_000),
        proptest::option::weighted(0.3, 0..6_000i64),
    )
        .prop_map(|(delay_ms, deadline_ms, absolute, start_within_ms, attempt_timeout_ms, retention_ms)| Times {
            delay_ms,
            deadline_ms,
            absolute,
            start_within_ms,
            attempt_timeout_ms,
            retention_ms,
        });
    let rules =
        (proptest::option::of(any::<u8>()), proptest::option::of(0..4i64), proptest::option::of(0..3i64), 0..4u8)
            .prop_map(|(retry, max_reclaims, max_replays, fallbacks)| Rules {
                retry,
                max_reclaims,
                max_replays,
                fallbacks,
            });
    let needs = (
        few(),
        few(),
        proptest::option::of(0..3u8),
        prop_oneof![4 => Just(0u8), 1 => 1..4u8],
        proptest::option::of(0..12i64),
    )
        .prop_map(|(requires, prefers, fairness_key, admission, lane_depth)| Needs {
            requires,
            prefers,
            fairness_key,
            admission,
            lane_depth,
        });
    let key = proptest::option::weighted(0.15, (0..4u8, proptest::option::of(0..5_000i64), 0..2u8));
    let lane = prop_oneof![6 => 0..3u8, 2 => Just(3u8), 1 => Just(4u8)];
    (lane, shape, times, rules, needs, key).prop_map(|(lane, shape, times, rules, needs, key)| Proposal {
        lane,
        shape,
        times,
        rules,
        needs,
        key,
    })
}

/// The kinds a worker takes, by three other bits of the byte; none of them set is every kind.
pub fn kinds(bits: u8) -> Option<Vec<String>> {
    let names: Vec<String> = (0..3).filter(|bit| bits >> (bit + 3) & 1 == 1).map(|bit| format!("kind.{bit}")).collect();
    (!names.is_empty()).then_some(names)
}

pub fn capabilities(bits: u8) -> Vec<String> {
    // The last bit reverses the order and repeats one token, because order and repetition must not matter.
    let mut tokens: Vec<String> =
        (0..3).filter(|bit| bits >> bit & 1 == 1).map(|bit| CAPABILITIES[bit].to_owned()).collect();
    if bits & 0x80 != 0 {
        tokens.reverse();
        tokens.extend(tokens.first().cloned());
    }
    tokens
}

pub fn tags(bits: u8) -> BTreeMap<String, String> {
    let all = [("team", "red"), ("team", "blue"), ("zone", "é\u{1F980}"), ("empty", "")];
    (0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| (all[bit].0.to_owned(), all[bit].1.to_owned())).collect()
}

/// Payloads with every edge case: none, empty, binary, just small enough for the record, just too large for it.
pub fn payload(which: u8) -> Option<Bytes> {
    match which % 16 {
        0..=3 => None,
        4 => Some(Bytes(Vec::new())),
        5 => Some(Bytes(vec![0x00, 0xff, 0xfe, 0x80, b'\n'])),
        6 => Some(Bytes(vec![which; 4_096])),
        7 => Some(Bytes(vec![which; 4_097])),
        8 => Some(Bytes((0..=255).cycle().take(6_000).collect())),
        _ => Some(Bytes(format!("{{\"n\":{which}}}").into_bytes())),
    }
}

pub fn retry(which: u8) -> Retry {
    let backoff = match which % 4 {
        0 => None,
        1 => Some(Backoff { delay_ms: Some(i64::from(which) * 10), ..Backoff::new(BackoffType::Fixed) }),
        2 => Some(Backoff::new(BackoffType::Exponential)),
        _ => Some(Backoff {
            initial_ms: Some(100),
            factor: Some(i64::from(which % 5) + 1),
            max_ms: Some(1_500),
            ..Backoff::new(BackoffType::Exponential)
        }),
    };
    Retry {
        max_attempts: (which & 0x30 != 0).then_some(i64::from(which >> 6) + 1),
        backoff,
        jitter: [None, Some(Jitter::None), Some(Jitter::Full)][usize::from(which % 3)],
        retry_on: which.is_multiple_of(7).then(|| vec!["net".to_owned(), "timeout".to_owned()]),
        never_on: which.is_multiple_of(5).then(|| vec!["bug".to_owned()]),
    }
}

fn uuid(n: u8) -> Uuid {
    Uuid::from_u64_pair(0xb0d9_e700_0000_4000, 0x8000_0000_0000_0000 | u64::from(n))
}

impl Proposal {
    /// The submission with these settings.
    pub fn submission(&self, id: ExecutionId, body_digest: String, now: i64) -> Submission {
        let (namespace, lane) = LANES[usize::from(self.lane) % LANES.len()];
        let (delay, deadline) = (self.times.delay_ms, self.times.deadline_ms);
        let (points, durations) = match self.times.absolute {
            0 => (true, true),
            n => (n % 2 == 0, n % 2 == 1),
        };
        let positive = |ms: Option<i64>| ms.map(|ms| ms.max(0));
        let admission = self.needs.admission;
        Submission {
            input: payload(self.shape.input),
            input_encoding: (self.shape.extras & 1 != 0).then(|| "application/octet-stream".to_owned()),
            tags: (self.shape.tags & 0x70 != 0).then(|| tags(self.shape.tags)),
            priority: self.shape.priority,
            delay_until: delay.filter(|_| points).map(|ms| now + ms),
            delay_ms: positive(delay.filter(|_| durations)),
            deadline_at: deadline.filter(|_| points).map(|ms| now + ms),
            deadline_ms: positive(deadline.filter(|_| durations)),
            start_within_ms: self.times.start_within_ms,
            idempotency_key: self.key.map(|(key, _, _)| format!("key {key}")),
            idempotency_ttl_ms: self.key.and_then(|(_, ttl_ms, _)| ttl_ms),
            retry: self.rules.retry.map(retry),
            attempt_timeout_ms: self.times.attempt_timeout_ms,
            max_reclaims: self.rules.max_reclaims,
            max_replays: self.rules.max_replays,
            requires: (self.needs.requires > 0).then(|| capabilities(self.needs.requires)),
            prefers: (self.needs.prefers > 0 && namespace == "default")
                .then(|| capabilities(self.needs.prefers | 0x80)),
            fairness_key: self.needs.fairness_key.map(|key| format!("tenant {key}")),
            budgets: (admission & 1 != 0).then(|| {
                vec![
                    BudgetRef {
                        estimate: Some([("usd".to_owned(), 5), ("tokens".to_owned(), 1)].into()),
                        ..BudgetRef::new(uuid(1))
                    },
                    BudgetRef::new(uuid(2)),
                ]
            }),
            quotas: (admission & 2 != 0).then(|| {
                vec![
                    QuotaRef::new(uuid(3), "k".to_owned()),
                    QuotaRef { weight: Some(7), ..QuotaRef::new(uuid(4), "k".to_owned()) },
                ]
            }),
            fallbacks: (self.rules.fallbacks > 0)
                .then(|| (1..self.rules.fallbacks).map(|n| Bytes(vec![n, 0xff])).collect()),
            retention_ms: self.times.retention_ms,
            stream: (self.shape.extras & 2 != 0)
                .then(|| StreamOptions { max_frames: (self.shape.extras & 4 != 0).then_some(3) }),
            trace_parent: (self.shape.extras & 8 != 0).then(|| "00-ab-cd-01".to_owned()),
            completion_webhook: (self.shape.extras & 16 != 0).then(|| "https://example.org/done".to_owned()),
            lane_depth: self.needs.lane_depth,
            ..Submission::new(
                id,
                namespace.to_owned(),
                lane.to_owned(),
                format!("kind.{}", self.shape.kind),
                body_digest,
            )
        }
    }
}
