//! Random steps. proptest creates them without the state, and each becomes a call when the state is known.
//!
//! A step means, for example, "complete the third running execution with a stale fence". [`Memory::resolve`] finds that
//! execution. So a shrunk list of steps still makes sense, and most calls have an effect.

mod memory;
mod proposal;
mod wait;

use proptest::prelude::*;

pub use memory::Memory;
pub use proposal::Proposal;
pub use wait::{Opening, Sending, Tree, Waiting, Writing};

/// A wait, followed by an action.
#[derive(Clone, Debug)]
pub struct Step {
    pub wait: Wait,
    pub act: Act,
}

/// How far the time moves before a step.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    Not,
    Ms(i64),
    /// To the next timer that is due soon, or one millisecond beside it.
    Due(i64),
}

/// Selects one of the matching things by number. Almost every number matches something.
#[derive(Clone, Copy, Debug)]
pub struct Pick(pub u16);

/// The fence that a worker presents.
#[derive(Clone, Copy, Debug)]
pub enum Proof {
    /// The latest fence of the execution.
    Current,
    /// An earlier fence of the execution.
    Old(Pick),
    /// The latest fence with one part changed.
    Wrong(u8),
}

/// The action of a step.
#[derive(Clone, Debug)]
pub enum Act {
    Submit(Box<Proposal>),
    SubmitMany(Vec<Proposal>),
    /// Submits plain work. Some of it soon expires, and is in front of the rest.
    Rush {
        lane: u8,
        late: usize,
        fit: usize,
    },
    /// Repeats an earlier submission, sometimes with another body.
    Resubmit {
        which: Pick,
        other_body: bool,
    },
    Claim {
        lane: u8,
        worker: u8,
        able: u8,
        max: i64,
        ttl_ms: i64,
    },
    ClaimAgain {
        which: Pick,
    },
    Renew {
        of: Pick,
        proof: Proof,
        ttl_ms: Option<i64>,
    },
    RenewMany(Vec<(Pick, Proof)>),
    Progress {
        of: Pick,
        proof: Proof,
        pct: i64,
    },
    Complete {
        of: Pick,
        proof: Proof,
        result: u8,
    },
    CompleteMany(Vec<(Pick, Proof)>),
    Fail {
        of: Pick,
        proof: Proof,
        category: u8,
        retryable: Option<bool>,
        retry_after_ms: Option<i64>,
        draw: i64,
    },
    CancelAttempt {
        of: Pick,
        proof: Proof,
        reason: Option<u8>,
    },
    Delay {
        of: Pick,
        proof: Proof,
        by_ms: i64,
        absolute: bool,
    },
    Yield {
        of: Pick,
        proof: Proof,
    },
    Cancel {
        of: Pick,
        grace_ms: Option<i64>,
        reason: Option<u8>,
    },
    Hold {
        of: Pick,
        reason: Option<u8>,
    },
    Release {
        of: Pick,
    },
    Change {
        of: Pick,
        priority: Option<i64>,
        lane: Option<u8>,
        tags: Option<u8>,
        deadline_ms: Option<i64>,
        delay_ms: Option<i64>,
    },
    Replay {
        of: Pick,
    },
    Delete {
        of: Pick,
    },
    Await {
        of: Pick,
    },
    Revoke {
        of: Pick,
        grace: Option<bool>,
    },
    Drain {
        worker: u8,
        revoke: bool,
        limit: i64,
    },
    Issue {
        lane: u8,
        worker: u8,
        able: u8,
        max: i64,
        ttl_ms: i64,
    },
    IssueAgain {
        which: Pick,
    },
    Consume {
        which: Pick,
        able: u8,
        other_worker: bool,
        request: Option<Pick>,
        ttl_ms: i64,
    },
    ReleaseGrant {
        which: Pick,
    },
    Block {
        which: Pick,
        budget: bool,
        detail: u8,
    },
    Unblock {
        of: Pick,
        budget: bool,
    },
    GrantReclaim {
        of: Pick,
        worker: u8,
        able: u8,
        ttl_ms: i64,
    },
    InstallLane {
        lane: u8,
        definition: Definition,
    },
    ReviewRoutes {
        lane: u8,
        able: Vec<u8>,
        cursor: Option<i64>,
        limit: i64,
    },
    FireDue {
        limit: i64,
        draw: i64,
    },
    NextDue,
    LaneDepth {
        lane: u8,
    },
    GetAttempt {
        of: Pick,
        index: i64,
    },
    Describe {
        of: Pick,
    },
    Suspend {
        of: Pick,
        proof: Proof,
        waiting: Box<Waiting>,
    },
    SuspendAgain {
        which: Pick,
    },
    CreateWaitpoint {
        of: Pick,
        proof: Proof,
        opening: Opening,
    },
    CloseWaitpoint {
        of: Pick,
        proof: Proof,
        which: Pick,
    },
    Signal {
        which: Pick,
        sending: Sending,
    },
    /// Repeats an earlier signal, sometimes with changes.
    SignalAgain {
        which: Pick,
        change: u8,
    },
    Resume {
        of: Pick,
    },
    FailSuspension {
        of: Pick,
    },
    Reissue {
        which: Pick,
        approver: u8,
    },
    ListWaitpoints {
        after: Option<Pick>,
        limit: i64,
        everywhere: bool,
    },
    DescribeWaitpoint {
        which: Pick,
    },
    ExecutionWaitpoints {
        of: Pick,
    },
    ReadSignals {
        of: Pick,
        resume_only: bool,
        after: Option<Pick>,
        limit: i64,
    },
    Append {
        of: Pick,
        proof: Proof,
        writing: Writing,
    },
    AppendAgain {
        which: Pick,
    },
    ReadStream {
        of: Pick,
        index: Option<i64>,
        from: Option<Pick>,
        to: Option<Pick>,
        after: bool,
        limit: i64,
    },
    ReadSummary {
        of: Pick,
        index: Option<i64>,
    },
    Follow {
        of: Pick,
    },
}

/// A lane's definition, from a few numbers.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub state: u8,
    pub weight: u8,
    pub fair: Option<bool>,
    pub max_depth: Option<i64>,
    pub max_active: Option<i64>,
    pub policy: u8,
    /// A lower version than the installed one.
    pub older: bool,
}

fn pick() -> impl Strategy<Value = Pick> {
    any::<u16>().prop_map(Pick)
}

fn proof() -> impl Strategy<Value = Proof> {
    prop_oneof![
        12 => Just(Proof::Current),
        2 => pick().prop_map(Proof::Old),
        1 => (0..3u8).prop_map(Proof::Wrong),
    ]
}

fn wait() -> impl Strategy<Value = Wait> {
    prop_oneof![
        200 => Just(Wait::Not),
        100 => (1..1_500i64).prop_map(Wait::Ms),
        20 => (1_500..20_000i64).prop_map(Wait::Ms),
        80 => (-1..=1i64).prop_map(Wait::Due),
        // Longer than every default: a day for keys, a week for ended work.
        1 => Just(Wait::Ms(8 * 86_400_000)),
    ]
}

fn lease_ttl() -> impl Strategy<Value = i64> {
    prop_oneof![Just(1_000), 1_000..6_000i64, Just(3_600_000)]
}

fn grant_ttl() -> impl Strategy<Value = i64> {
    prop_oneof![Just(100), 100..4_000i64]
}

fn reason() -> impl Strategy<Value = Option<u8>> {
    proptest::option::of(0..3u8)
}

fn worker_acts() -> BoxedStrategy<Act> {
    let both = || (pick(), proof());
    let many = || proptest::collection::vec(both(), 1..5);
    prop_oneof![
        6 => (both(), proptest::option::of(lease_ttl())).prop_map(|((of, proof), ttl_ms)| Act::Renew { of, proof, ttl_ms }),
        2 => many().prop_map(Act::RenewMany),
        2 => (both(), 0..=100i64).prop_map(|((of, proof), pct)| Act::Progress { of, proof, pct }),
        7 => (both(), any::<u8>()).prop_map(|((of, proof), result)| Act::Complete { of, proof, result }),
        2 => many().prop_map(Act::CompleteMany),
        7 => (both(), 0..3u8, proptest::option::weighted(0.2, any::<bool>()), proptest::option::weighted(0.2, 0..4_000i64), 0..=1_000i64)
            .prop_map(|((of, proof), category, retryable, retry_after_ms, draw)| Act::Fail { of, proof, category, retryable, retry_after_ms, draw }),
        2 => (both(), reason()).prop_map(|((of, proof), reason)| Act::CancelAttempt { of, proof, reason }),
        3 => (both(), prop_oneof![-3_000..3_000i64, Just(0)], any::<bool>()).prop_map(|((of, proof), by_ms, absolute)| Act::Delay { of, proof, by_ms, absolute }),
        3 => both().prop_map(|(of, proof)| Act::Yield { of, proof }),
    ]
    .boxed()
}

fn operator_acts() -> BoxedStrategy<Act> {
    prop_oneof![
        4 => (pick(), proptest::option::of(prop_oneof![Just(0), 1..3_000i64]), reason()).prop_map(|(of, grace_ms, reason)| Act::Cancel { of, grace_ms, reason }),
        3 => (pick(), reason()).prop_map(|(of, reason)| Act::Hold { of, reason }),
        3 => pick().prop_map(|of| Act::Release { of }),
        5 => (
            pick(),
            proptest::option::weighted(0.4, proposal::priority()),
            proptest::option::weighted(0.3, 0..5u8),
            proptest::option::weighted(0.3, any::<u8>()),
            proptest::option::weighted(0.1, -500..5_000i64),
            proptest::option::weighted(0.3, -500..3_000i64),
        )
            .prop_map(|(of, priority, lane, tags, deadline_ms, delay_ms)| Act::Change { of, priority, lane, tags, deadline_ms, delay_ms }),
        4 => pick().prop_map(|of| Act::Replay { of }),
        2 => pick().prop_map(|of| Act::Delete { of }),
        1 => pick().prop_map(|of| Act::Await { of }),
        4 => (pick(), proptest::option::of(any::<bool>())).prop_map(|(of, grace)| Act::Revoke { of, grace }),
        2 => (0..3u8, any::<bool>(), 1..4i64).prop_map(|(worker, revoke, limit)| Act::Drain { worker, revoke, limit }),
        // Mostly the fair lane, because there a new definition affects waiting work.
        8 => (prop_oneof![Just(2u8), 0..5u8], definition()).prop_map(|(lane, definition)| Act::InstallLane { lane, definition }),
    ]
    .boxed()
}

fn definition() -> impl Strategy<Value = Definition> {
    let state = prop_oneof![9 => Just(0u8), 1 => 1..4u8];
    let depth = proptest::option::weighted(0.1, 0..10i64);
    let active = proptest::option::weighted(0.1, 1..4i64);
    let fair = proptest::option::weighted(0.3, any::<bool>());
    (state, 0..4u8, fair, depth, active, any::<u8>(), proptest::bool::weighted(0.1)).prop_map(
        |(state, weight, fair, max_depth, max_active, policy, older)| Definition {
            state,
            weight,
            fair,
            max_depth,
            max_active,
            policy,
            older,
        },
    )
}

fn grant_acts() -> BoxedStrategy<Act> {
    prop_oneof![
        7 => (0..5u8, 0..3u8, any::<u8>(), 1..4i64, grant_ttl()).prop_map(|(lane, worker, able, max, ttl_ms)| Act::Issue { lane, worker, able, max, ttl_ms }),
        2 => pick().prop_map(|which| Act::IssueAgain { which }),
        7 => (pick(), any::<u8>(), proptest::bool::weighted(0.1), proptest::option::weighted(0.2, pick()), lease_ttl())
            .prop_map(|(which, able, other_worker, request, ttl_ms)| Act::Consume { which, able, other_worker, request, ttl_ms }),
        2 => pick().prop_map(|which| Act::ReleaseGrant { which }),
        4 => (pick(), any::<bool>(), any::<u8>()).prop_map(|(which, budget, detail)| Act::Block { which, budget, detail }),
        3 => (pick(), any::<bool>()).prop_map(|(of, budget)| Act::Unblock { of, budget }),
        4 => (pick(), 0..3u8, any::<u8>(), grant_ttl()).prop_map(|(of, worker, able, ttl_ms)| Act::GrantReclaim { of, worker, able, ttl_ms }),
    ]
    .boxed()
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        14 => proposal::proposal().prop_map(|p| Act::Submit(Box::new(p))),
        3 => proptest::collection::vec(proposal::proposal(), 1..5).prop_map(Act::SubmitMany),
        3 => (2..4u8, 1..4usize, 1..4usize).prop_map(|(lane, late, fit)| Act::Rush { lane, late, fit }),
        4 => (pick(), proptest::bool::weighted(0.3)).prop_map(|(which, other_body)| Act::Resubmit { which, other_body }),
        18 => (prop_oneof![2 => 0..5u8, 1 => 2..4u8], 0..3u8, any::<u8>(), 1..4i64, lease_ttl()).prop_map(|(lane, worker, able, max, ttl_ms)| Act::Claim { lane, worker, able, max, ttl_ms }),
        3 => pick().prop_map(|which| Act::ClaimAgain { which }),
        34 => worker_acts(),
        34 => operator_acts(),
        29 => grant_acts(),
        52 => wait::wait_acts(),
        18 => wait::stream_acts(),
        6 => (0..5u8, proptest::collection::vec(any::<u8>(), 0..3), proptest::option::weighted(0.1, 0..3i64), 1..6i64)
            .prop_map(|(lane, able, cursor, limit)| Act::ReviewRoutes { lane, able, cursor, limit }),
        16 => (prop_oneof![1..4i64, Just(64)], 0..=1_000i64).prop_map(|(limit, draw)| Act::FireDue { limit, draw }),
        1 => Just(Act::NextDue),
        1 => (0..5u8).prop_map(|lane| Act::LaneDepth { lane }),
        1 => (pick(), 0..12i64).prop_map(|(of, index)| Act::GetAttempt { of, index }),
        1 => pick().prop_map(|of| Act::Describe { of }),
    ]
}

/// Random lists of this many steps.
pub fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((wait(), act()).prop_map(|(wait, act)| Step { wait, act }), count)
}
