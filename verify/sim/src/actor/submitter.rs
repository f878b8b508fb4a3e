//! Submits all kinds of work repeatedly, sometimes with the same key, sometimes with another body.

use std::collections::BTreeMap;

use ff_core::types::ExecutionId;
use ff_script::generated::*;
use ff_script::{Bytes, Call};
use uuid::Uuid;

use super::{Actor, CAPABILITIES, KINDS, LANES, NAMESPACE, Scene, courier, treasurer};
use crate::request::{Outcome, Request};
use crate::rng::Rng;

pub(crate) struct Submitter {
    number: usize,
    sent: Vec<Submission>,
}

impl Submitter {
    pub fn new(number: usize) -> Self {
        Submitter { number, sent: Vec::new() }
    }

    fn fresh(&mut self, scene: &mut Scene<'_>) -> Submission {
        scene.board.submissions_left -= 1;
        let mut submission = draw(scene.rng, scene.now);
        treasurer::attach(&mut submission, scene);
        scene.board.known.push(submission.execution_id);
        self.sent.push(submission.clone());
        submission
    }

    fn again(&mut self, scene: &mut Scene<'_>) -> Option<Submission> {
        if self.sent.is_empty() {
            return None;
        }
        let mut submission = scene.rng.pick(&self.sent).clone();
        if scene.rng.percent(30) {
            // Another process of the same submitter proposes its own id.
            submission.execution_id = id_for(&submission.idempotency_key, scene.rng);
            scene.board.known.push(submission.execution_id);
        }
        if scene.rng.percent(20) {
            submission.priority = Some(scene.rng.between(0, 9));
            submission.body_digest = digest(&submission);
        }
        Some(submission)
    }

    fn batch(&mut self, scene: &mut Scene<'_>) {
        let count = scene.rng.between(2, 4);
        let mut batch = Vec::new();
        let seed = scene.rng.next() as u16;
        for _ in 0..count {
            if scene.board.submissions_left == 0 {
                break;
            }
            let mut submission = self.fresh(scene);
            submission.idempotency_key = None;
            submission.idempotency_ttl_ms = None;
            submission.execution_id = with_seed(*submission.execution_id.as_uuid(), seed);
            scene.board.known.push(submission.execution_id);
            batch.push(submission);
        }
        for submission in batch {
            scene.tell(submission.execution_id, SubmitExecution { submission });
        }
    }
}

impl Actor for Submitter {
    fn name(&self) -> String {
        format!("submitter-{}", self.number)
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        let submission = match scene.rng.weighted(&[60, 18, 8, 14]) {
            0 if scene.board.submissions_left > 0 => Some(self.fresh(scene)),
            1 => self.again(scene),
            2 if scene.board.submissions_left > 4 => {
                self.batch(scene);
                None
            }
            3 if !scene.board.known.is_empty() => {
                let id = *scene.rng.pick(&scene.board.known);
                scene.tell(id, AwaitResult { execution_id: id });
                None
            }
            _ => None,
        };
        if let Some(submission) = submission {
            let id = submission.execution_id;
            scene.tell(id, SubmitExecution { submission });
        }
        if scene.board.submissions_left > 0 { scene.rng.between(20, 250) } else { scene.rng.between(400, 2_000) }
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        match (request, outcome) {
            (Request::SubmitExecution(call), Outcome::Refused(error)) if error.code() == "lane_unseen" => {
                let id = call.submission.execution_id;
                install_in(&call.submission.lane, id, scene);
                scene.tell(id, call.clone());
            }
            _ => {}
        }
    }
}

pub(super) fn install_in(lane: &str, id: ExecutionId, scene: &mut Scene<'_>) {
    let entry = scene.board.lanes[lane].clone();
    scene.tell(id, InstallLane { entry });
}

pub(super) fn with_seed(uuid: Uuid, seed: u16) -> ExecutionId {
    let mut bytes = *uuid.as_bytes();
    bytes[14..16].copy_from_slice(&seed.to_be_bytes());
    ExecutionId::from_uuid(Uuid::from_bytes(bytes))
}

/// A new id. With a key, the seed is derived from the key, so that all submissions of the key share a partition.
fn id_for(key: &Option<String>, rng: &mut Rng) -> ExecutionId {
    let uuid = rng.uuid();
    match key {
        Some(key) => with_seed(uuid, fnv(format!("{NAMESPACE}/{key}").as_bytes()) as u16),
        None => ExecutionId::from_uuid(uuid),
    }
}

pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Covers every submitted field except the id, the key and the trace.
pub(super) fn digest(submission: &Submission) -> String {
    let mut body = submission.clone();
    body.execution_id = ExecutionId::from_uuid(Uuid::nil());
    body.idempotency_key = None;
    body.idempotency_ttl_ms = None;
    body.trace_parent = None;
    body.lane_depth = None;
    body.body_digest = String::new();
    let bytes = SubmitExecution { submission: body }.encode();
    let mut salted = bytes.clone();
    salted.push(1);
    format!("{:016x}{:016x}", fnv(&bytes), fnv(&salted))
}

fn draw(rng: &mut Rng, now: i64) -> Submission {
    let key = rng.percent(30).then(|| format!("key-{}", rng.below(10)));
    let lane = LANES[rng.weighted(&[5, 3, 2])].0;
    let kind = *rng.pick(KINDS);
    let mut s =
        Submission::new(id_for(&key, rng), NAMESPACE.to_owned(), lane.to_owned(), kind.to_owned(), String::new());
    s.completion_webhook = courier::address(fnv(s.execution_id.as_uuid().as_bytes()));
    if key.is_some() && rng.percent(60) {
        s.idempotency_ttl_ms = Some(rng.between(300, 8_000));
    }
    s.idempotency_key = key;
    s.input = draw_bytes(rng);
    if rng.percent(30) {
        let count = rng.below(3);
        s.tags = Some(
            (0..count).map(|n| (format!("tag-{n}"), format!("value-{}", rng.below(3)))).collect::<BTreeMap<_, _>>(),
        );
    }
    if rng.percent(50) {
        s.priority = Some(*rng.pick(&[0, 1, 5, 100, 9_000]));
    }
    match rng.weighted(&[70, 18, 12]) {
        1 => s.delay_ms = Some(rng.between(0, 3_000)),
        2 => s.delay_until = Some(now + rng.between(-1_000, 3_000)),
        _ => {}
    }
    match rng.weighted(&[84, 12, 4]) {
        1 => s.deadline_ms = Some(rng.between(300, 8_000)),
        2 => s.deadline_at = Some(now + rng.between(-100, 6_000)),
        _ => {}
    }
    if rng.percent(15) {
        s.start_within_ms = Some(rng.between(100, 5_000));
    }
    if rng.percent(65) {
        s.retry = Some(draw_retry(rng));
    }
    if rng.percent(20) {
        s.attempt_timeout_ms = Some(rng.between(200, 4_000));
    }
    if rng.percent(50) {
        s.max_reclaims = Some(rng.between(0, 2));
    }
    if rng.percent(30) {
        s.max_replays = Some(rng.between(0, 2));
    }
    if rng.percent(40) {
        // Repeated and unsorted on purpose.
        let count = rng.between(1, 3);
        s.requires = Some((0..count).map(|_| (*rng.pick(CAPABILITIES)).to_owned()).collect());
    }
    if rng.percent(8) {
        s.prefers = Some(vec![(*rng.pick(CAPABILITIES)).to_owned()]);
    }
    if rng.percent(25) {
        s.fairness_key = Some(format!("tenant-{}", rng.below(3)));
    }
    if rng.percent(10) {
        s.quotas = Some(vec![QuotaRef::new(rng.uuid(), "model".to_owned())]);
    }
    if rng.percent(15) {
        let count = rng.between(1, 3);
        s.fallbacks = Some((0..count).map(|n| Bytes::from(vec![0xff, n as u8])).collect());
    }
    if rng.percent(75) {
        s.retention_ms = Some(rng.between(0, 12_000));
    }
    s.body_digest = digest(&s);
    s
}

/// Work that belongs to something larger: it has no key, and no long delay.
pub(super) fn draw_member(scene: &mut Scene<'_>) -> Submission {
    let (rng, now) = (&mut *scene.rng, scene.now);
    let mut s = draw(rng, now);
    (s.idempotency_key, s.idempotency_ttl_ms, s.quotas) = (None, None, s.quotas.filter(|_| rng.percent(30)));
    if rng.percent(80) {
        (s.delay_ms, s.delay_until, s.deadline_ms, s.deadline_at, s.start_within_ms) = (None, None, None, None, None);
    }
    if rng.percent(70) {
        s.requires = None;
    }
    s.body_digest = digest(&s);
    treasurer::attach(&mut s, scene);
    s
}

/// Bytes that are hard to handle as text: none, empty, NUL, invalid UTF-8, too large for the record.
pub(super) fn draw_bytes(rng: &mut Rng) -> Option<Bytes> {
    match rng.weighted(&[10, 10, 40, 20, 8]) {
        0 => None,
        1 => Some(Bytes(Vec::new())),
        2 => {
            let len = 1 + rng.below(24);
            Some(Bytes(rng.bytes(len)))
        }
        3 => Some(Bytes(vec![0x00, 0xff, 0xc3, 0x28, 0x00])),
        _ => {
            let len = 4_090 + rng.below(40);
            Some(Bytes(rng.bytes(len)))
        }
    }
}

fn draw_retry(rng: &mut Rng) -> Retry {
    let mut retry = Retry::default();
    if rng.percent(80) {
        retry.max_attempts = Some(rng.between(1, 4));
    }
    if rng.percent(80) {
        let mut backoff;
        if rng.percent(50) {
            backoff = Backoff::new(BackoffType::Fixed);
            backoff.delay_ms = Some(rng.between(0, 1_500));
        } else {
            backoff = Backoff::new(BackoffType::Exponential);
            // Often above the maximum, so that the maximum applies.
            backoff.initial_ms = Some(rng.between(0, 2_500));
            backoff.factor = Some(rng.between(1, 4));
            backoff.max_ms = Some(rng.between(500, 2_000));
        }
        retry.backoff = Some(backoff);
    }
    if rng.percent(50) {
        retry.jitter = Some(*rng.pick(&[Jitter::Full, Jitter::None, Jitter::None]));
    }
    if rng.percent(15) {
        retry.never_on = Some(vec!["fatal".to_owned()]);
    }
    if rng.percent(15) {
        retry.retry_on = Some(vec!["flaky".to_owned(), "timeout".to_owned()]);
    }
    retry
}
