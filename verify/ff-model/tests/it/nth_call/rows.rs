//! A store with an execution in every state, and for every function a call that succeeds.

use ff_core::types::{AttemptId, BudgetId, ExecutionId, LeaseId, QuotaPolicyId, SignalId, SuspensionId, WaitpointId};
use ff_model::run::START_MS;
use ff_model::store::ROUTE;
use ff_script::generated as g;
use ff_script::{Bytes, Call, Invocation, Route, Terms, Visits};
use sha1::Digest;
use uuid::Uuid;

use super::{flows, schedules};

/// One function with arguments that succeed on the stage.
pub struct Row {
    pub name: &'static str,
    pub invocation: Invocation,
    /// The function commits item by item: on a server, a failure leaves complete items.
    pub batch: bool,
}

/// The time of every row. Some leases, delays and retentions of the stage are due by then.
pub const NOW: i64 = START_MS + 5_000;

pub fn at<C: Call>(route: Route, call: &C, now: i64) -> Invocation {
    Invocation {
        route,
        function: C::FUNCTION,
        read_only: C::READ_ONLY,
        args: call.encode(),
        now_ms: Some(now),
        count_calls: false,
        terms: ff_script::Terms::default(),
    }
}

pub fn id(n: u64) -> ExecutionId {
    ExecutionId::from_uuid(Uuid::from_u64_pair(n << 32, 0))
}

pub fn uuid(n: u64) -> Uuid {
    Uuid::from_u64_pair(0xabc, n)
}

struct LeaseIds {
    attempt_id: AttemptId,
    lease_id: LeaseId,
}

fn ids(n: u64) -> LeaseIds {
    LeaseIds { attempt_id: AttemptId::from_uuid(uuid(n)), lease_id: LeaseId::from_uuid(uuid(n + 1_000)) }
}

pub fn fence(n: u64) -> g::Fence {
    let LeaseIds { attempt_id, lease_id } = ids(n);
    g::Fence { attempt_id, lease_id, lease_epoch: START_MS * 1_000 }
}

pub fn ops() -> String {
    "ops".to_owned()
}

fn main_lane() -> String {
    "main".to_owned()
}

pub fn default() -> String {
    "default".to_owned()
}

pub fn submission(n: u64) -> g::Submission {
    g::Submission {
        tags: Some([("team".to_owned(), "red".to_owned())].into()),
        ..g::Submission::new(id(n), default(), main_lane(), "mail".to_owned(), "0".repeat(32))
    }
}

pub fn entry(lane: &str, fairness: g::Fairness, version: i64) -> g::LaneEntry {
    let definition = g::LaneDefinition::new(g::LaneState::Active, 1_000, fairness, 1);
    g::LaneEntry { namespace: default(), lane: lane.to_owned(), version, definition }
}

pub fn claim(lane: &str, n: u64, ttl: i64, max: i64) -> g::ClaimExecutions {
    g::ClaimExecutions {
        capabilities: vec!["gpu".to_owned()],
        kinds: None,
        attempt_ids: (0..max as u64).map(|i| ids(n + i).attempt_id).collect(),
        lease_ids: (0..max as u64).map(|i| ids(n + i).lease_id).collect(),
        instance: "w-0".to_owned(),
        lane: lane.to_owned(),
        lease_ttl_ms: ttl,
        max,
        namespace: default(),
        worker_id: "model".to_owned(),
    }
}

fn issue(n: u64, max: i64, ttl_ms: i64) -> g::IssueGrants {
    let grant_ids = (0..max as u64).map(|i| uuid(n + i)).collect();
    g::IssueGrants {
        capabilities: vec![],
        kinds: None,
        grant_ids,
        instance: "w-1".to_owned(),
        lane: main_lane(),
        max,
        namespace: default(),
        lease_ids: None,
        ttl_ms,
    }
}

/// The partition that counts the slots of the narrow lane in these rows.
const SLOTS: Route = Route::Quota(0);

fn narrow_set() -> String {
    "lane:default/narrow".to_owned()
}

fn holder(n: u64) -> g::Holder {
    g::Holder { execution_id: id(n), expires_at: None, holder_id: uuid(n) }
}

fn candidate(n: u64, expires_at: i64) -> g::Candidate {
    g::Candidate { execution_id: id(n), expires_at, holder_id: uuid(n) }
}

fn consume(n: u64, lease: u64) -> g::ConsumeGrant {
    let LeaseIds { attempt_id, lease_id } = ids(lease);
    g::ConsumeGrant {
        keep: None,
        attempt_id,
        capabilities: vec![],
        kinds: None,
        execution_id: id(n),
        grant_id: uuid(n),
        instance: "w-1".to_owned(),
        lease_id,
        lease_ttl_ms: 60_000,
        worker_id: "model".to_owned(),
    }
}

fn quota() -> Option<Vec<g::QuotaRef>> {
    Some(vec![g::QuotaRef::new(uuid(1), "k".to_owned())])
}

fn wid(n: u64) -> WaitpointId {
    WaitpointId::from_uuid(uuid(n + 20_000))
}

fn sid(n: u64) -> SuspensionId {
    SuspensionId::from_uuid(uuid(n + 30_000))
}

fn digest(n: u64) -> String {
    format!("{n:064x}")
}

/// A waitpoint with two approvers, whose tokens are `n` and `n + 1`.
fn waitpoint(n: u64, key: &str) -> g::NewWaitpoint {
    let token = |n, approver: &str| g::Token { approver: Some(approver.to_owned()), ..g::Token::new(digest(n)) };
    g::NewWaitpoint {
        uses: Some(2),
        ..g::NewWaitpoint::new(wid(n), key.to_owned(), vec![token(n, "ann"), token(n + 1, "bob")])
    }
}

fn two_approvers() -> Vec<g::ConditionNode> {
    let over = Some(g::CountOver::Approvers);
    vec![g::ConditionNode { n: Some(2), over, ..g::ConditionNode::new(g::ConditionOp::Count) }]
}

fn suspend(n: u64, condition: Vec<g::ConditionNode>, waitpoints: Vec<g::NewWaitpoint>) -> g::SuspendExecution {
    g::SuspendExecution {
        continuation: Some(Bytes(vec![0xc0; 300])),
        ..g::SuspendExecution::new(
            condition,
            id(n),
            fence(n),
            g::SuspensionReason::WaitingForApproval,
            sid(n),
            g::TimeoutBehavior::AutoResumeWithTimeoutSignal,
            waitpoints,
        )
    }
}

/// The signal with this number, for the waitpoint `waitpoint`, under the token `token`.
fn signal(n: u64, number: u64, waitpoint: u64, token: u64) -> g::DeliverSignal {
    let signal_id = SignalId::from_uuid(uuid(number + 40_000));
    g::DeliverSignal {
        payload: Some(Bytes(vec![0xff; 20])),
        idempotency_key: Some(number.to_string()),
        ..g::DeliverSignal::new(id(n), "approved".to_owned(), signal_id, digest(token), wid(waitpoint))
    }
}

fn frames(n: u64, first: i64, count: i64) -> g::AppendFrames {
    let frame = |number: i64| {
        let mode = [g::FrameMode::Durable, g::FrameMode::Live][(number % 2) as usize];
        g::NewFrame { payload: Some(Bytes(vec![number as u8])), ..g::NewFrame::new("delta".to_owned(), mode) }
    };
    g::AppendFrames {
        first_sequence: Some(first),
        request_id: Some(uuid(50_000)),
        ..g::AppendFrames::new(id(n), fence(n), (first..first + count).map(frame).collect())
    }
}

/// The executions of the stage, by their state. Those of the fair lane run and end first, each alone in its lane.
mod who {
    pub const RUNNING: u64 = 1;
    pub const ENDED: u64 = 2;
    pub const RETIRABLE: u64 = 3;
    pub const INTERRUPTED: u64 = 4;
    pub const LAPSED: u64 = 5;
    pub const SUSPENDED: u64 = 6;
    pub const OVERDUE: u64 = 7;
    pub const ESCALATING: u64 = 8;
    pub const RESUMED: u64 = 9;
    pub const WAITING: u64 = 10;
    pub const WAITING_TOO: u64 = 11;
    pub const DELAYED: u64 = 12;
    pub const HELD: u64 = 13;
    pub const GRANTED: u64 = 14;
    pub const BLOCKED: u64 = 15;
    pub const NEEDS_GPU: u64 = 16;
    pub const KEYED: u64 = 17;
    pub const HOLDER: u64 = 18;
    pub const NARROW: u64 = 19;
    /// Waits for a budget.
    pub const POOR: u64 = 20;
    /// Was refused because its quota did not exist.
    pub const UNKNOWN: u64 = 21;
    /// Was admitted by a quota and a budget inside its claim.
    pub const LET_IN: u64 = 22;
    /// Requests admission with its claim.
    pub const ASKS: u64 = 23;
}

/// The call, with visits to other partitions.
fn visiting(invocation: Invocation) -> Invocation {
    let visits = Some(Visits { executions: 4, budgets: 2, quotas: 2 });
    Invocation { terms: Terms { visits, ..invocation.terms }, ..invocation }
}

/// The quota and the budget of the lane `metered`.
fn metered() -> (QuotaPolicyId, BudgetId) {
    (QuotaPolicyId::from_uuid(uuid(510)), BudgetId::from_uuid(uuid(520)))
}

/// One execution that runs under a quota and a budget, and one that requests them.
fn metered_stage() -> Vec<Invocation> {
    let (quota, budget) = metered();
    let submit = |n: u64| {
        let submission = g::Submission {
            quotas: Some(vec![g::QuotaRef::new(*quota.as_uuid(), "k".to_owned())]),
            budgets: Some(vec![g::BudgetRef::new(*budget.as_uuid())]),
            lane: "metered".to_owned(),
            ..submission(n)
        };
        at(ROUTE, &g::SubmitExecution { submission }, START_MS)
    };
    let of_budget = g::NewBudget::new(
        budget,
        default(),
        g::BudgetScope { r#type: g::ScopeType::Custom, id: None },
        vec![g::DimensionLimit { name: "tokens".to_owned(), hard: Some(9), soft: None }],
        g::BudgetReset { r#type: g::ResetType::None, interval_ms: None, zone: None },
        g::OnSoft::Notify,
        g::OnHard::Suspend,
    );
    vec![
        at(ROUTE, &g::InstallLane { entry: entry("metered", g::Fairness::Fifo, 1) }, START_MS),
        at(
            SLOTS,
            &g::PutQuota { actor: None, quota: g::Quota { quota_id: quota, ..a_quota(3) }, version: None },
            START_MS,
        ),
        at(Route::Budget(0), &g::CreateBudget { budget: of_budget, actor: ops() }, START_MS),
        submit(who::LET_IN),
        visiting(at(ROUTE, &claim("metered", who::LET_IN, 60_000, 1), START_MS)),
        submit(who::ASKS),
    ]
}

/// Calls that do at once what takes several calls on a cluster.
fn visiting_rows() -> Vec<Row> {
    let visits = |row: Row| Row { invocation: visiting(row.invocation), ..row };
    let let_in = who::LET_IN;
    vec![
        visits(row("claim and ask on the way", &claim("metered", 700, 60_000, 1))),
        visits(row("complete and give back", &g::CompleteExecution::new(id(let_in), fence(let_in)))),
        visits(row("suspend and give back", &suspend(let_in, vec![], vec![waitpoint(230, "door")]))),
    ]
}

/// The calls that set up the stage.
pub fn stage() -> Vec<Invocation> {
    let on =
        |n: u64| g::Submission { lane: "fair".to_owned(), fairness_key: Some("tenant".to_owned()), ..submission(n) };
    let submit = |submission: g::Submission| at(ROUTE, &g::SubmitExecution { submission }, START_MS);
    let start = |n: u64, ttl: i64| at(ROUTE, &claim("fair", n, ttl, 1), START_MS);
    let complete = |n: u64, result: Vec<u8>| {
        let call = g::CompleteExecution { result: Some(Bytes(result)), ..g::CompleteExecution::new(id(n), fence(n)) };
        at(ROUTE, &call, START_MS)
    };
    // The lease after a wait, which has the next epoch.
    let again = |n: u64| at(ROUTE, &claim("fair", n + 500, 60_000, 1), START_MS);
    let complete_again = |n: u64| {
        let LeaseIds { lease_id, .. } = ids(n + 500);
        let fence = g::Fence { lease_id, lease_epoch: START_MS * 1_000 + 1, ..fence(n) };
        let call =
            g::CompleteExecution { result: Some(Bytes(vec![7; 5_000])), ..g::CompleteExecution::new(id(n), fence) };
        at(ROUTE, &call, START_MS)
    };
    let block = |n: u64, grant: u64| {
        let reason = g::AdmissionReason::WaitingForQuota;
        at(
            ROUTE,
            &g::BlockExecution { unheld: None, detail: [].into(), execution_id: id(n), grant_id: uuid(grant), reason },
            START_MS,
        )
    };
    let pending = |waitpoint| g::CreateWaitpoint::new(id(who::RUNNING), fence(who::RUNNING), waitpoint);
    let suspended = |n, timeout_ms, timeout_behavior| g::SuspendExecution {
        timeout_ms,
        timeout_behavior,
        review_waitpoint_id: Some(wid(n)),
        ..suspend(n, two_approvers(), vec![waitpoint(n * 10 + 100, "door")])
    };
    let mut calls = vec![
        at(ROUTE, &g::InstallLane { entry: entry("main", g::Fairness::Fifo, 1) }, START_MS),
        at(ROUTE, &g::InstallLane { entry: entry("fair", g::Fairness::Fair, 1) }, START_MS),
        submit(g::Submission {
            fallbacks: Some(vec![Bytes(vec![1])]),
            stream: Some(g::StreamOptions { max_frames: Some(5) }),
            completion_webhook: Some("https://example.org/running".to_owned()),
            ..on(who::RUNNING)
        }),
        start(who::RUNNING, 60_000),
        at(ROUTE, &frames(who::RUNNING, 0, 4), START_MS),
        at(ROUTE, &stored("charge", 10), START_MS),
        at(ROUTE, &stored("render", 5_000), START_MS),
        at(ROUTE, &pending(waitpoint(100, "early")), START_MS),
        at(ROUTE, &pending(g::NewWaitpoint { expires_in_ms: Some(4_000), ..waitpoint(110, "brief") }), START_MS),
        at(ROUTE, &signal(who::RUNNING, 1, 100, 100), START_MS),
        at(ROUTE, &g::FollowStream { execution_id: id(who::RUNNING) }, START_MS),
        submit(g::Submission { completion_webhook: Some("https://example.org/ended".to_owned()), ..on(who::ENDED) }),
        start(who::ENDED, 60_000),
        complete(who::ENDED, vec![7; 5_000]),
        at(ROUTE, &take_webhooks(), START_MS),
        submit(g::Submission {
            retention_ms: Some(100),
            input: Some(Bytes(vec![8; 5_000])),
            completion_webhook: Some("https://elsewhere.example.org/".to_owned()),
            ..on(who::RETIRABLE)
        }),
        start(who::RETIRABLE, 60_000),
        at(ROUTE, &frames(who::RETIRABLE, 0, 3), START_MS),
        at(ROUTE, &suspend(who::RETIRABLE, vec![], vec![waitpoint(190, "door")]), START_MS),
        at(ROUTE, &signal(who::RETIRABLE, 9, 190, 190), START_MS),
        again(who::RETIRABLE),
        complete_again(who::RETIRABLE),
        submit(on(who::LAPSED)),
        start(who::LAPSED, 1_000),
    ];
    use g::TimeoutBehavior::{AutoResumeWithTimeoutSignal, Escalate, Fail};
    for (n, timeout_ms, behavior) in [
        (who::SUSPENDED, None, Fail),
        (who::OVERDUE, Some(3_000), AutoResumeWithTimeoutSignal),
        (who::ESCALATING, Some(3_000), Escalate),
    ] {
        calls.extend([submit(on(n)), start(n, 60_000), at(ROUTE, &suspended(n, timeout_ms, behavior), START_MS)]);
    }
    calls.extend([
        at(ROUTE, &signal(who::SUSPENDED, 2, 160, 160), START_MS),
        submit(on(who::RESUMED)),
        start(who::RESUMED, 60_000),
        at(ROUTE, &suspend(who::RESUMED, vec![], vec![waitpoint(210, "door")]), START_MS),
        submit(on(who::INTERRUPTED)),
        start(who::INTERRUPTED, 60_000),
        at(ROUTE, &g::YieldExecution { execution_id: id(who::INTERRUPTED), fence: fence(who::INTERRUPTED) }, START_MS),
        at(ROUTE, &signal(who::RESUMED, 3, 210, 210), START_MS),
    ]);
    for n in [who::BLOCKED, who::GRANTED] {
        calls.push(submit(g::Submission { quotas: quota(), ..submission(n) }));
        calls.push(at(ROUTE, &issue(n, 1, 60_000), START_MS));
    }
    calls.push(block(who::BLOCKED, who::BLOCKED));
    let budgets = Some(vec![g::BudgetRef::new(*budget_id(2).as_uuid())]);
    calls.push(submit(g::Submission { budgets, ..submission(who::POOR) }));
    calls.push(at(ROUTE, &issue(who::POOR, 1, 60_000), START_MS));
    let refused = g::BlockExecution {
        unheld: Some(true),
        detail: [("budget_id", budget_id(2).to_string()), ("rooms", "0".to_owned())]
            .map(|(k, v)| (k.to_owned(), v))
            .into(),
        execution_id: id(who::POOR),
        grant_id: uuid(who::POOR),
        reason: g::AdmissionReason::WaitingForBudget,
    };
    calls.push(at(ROUTE, &refused, START_MS));
    let quotas = Some(vec![g::QuotaRef::new(*quota_id().as_uuid(), "k".to_owned())]);
    calls.push(submit(g::Submission { quotas, ..submission(who::UNKNOWN) }));
    calls.push(at(ROUTE, &issue(who::UNKNOWN, 1, 60_000), START_MS));
    let refused = g::BlockExecution {
        detail: [("quota_id", quota_id().to_string()), ("problem", "not found".to_owned())]
            .map(|(k, v)| (k.to_owned(), v))
            .into(),
        execution_id: id(who::UNKNOWN),
        grant_id: uuid(who::UNKNOWN),
        reason: g::AdmissionReason::WaitingForQuota,
        ..refused
    };
    calls.push(at(ROUTE, &refused, START_MS));
    let mut narrow = entry("narrow", g::Fairness::Fifo, 1);
    narrow.definition.max_active = Some(2);
    calls.push(at(ROUTE, &g::InstallLane { entry: narrow }, START_MS));
    for n in [who::HOLDER, who::NARROW] {
        calls.push(submit(g::Submission { lane: "narrow".to_owned(), ..submission(n) }));
        let reserve = g::IssueGrants { lane: "narrow".to_owned(), ..issue(n, 1, 60_000) };
        calls.push(at(ROUTE, &reserve, START_MS));
    }
    let holders = vec![candidate(who::HOLDER, START_MS + 60_000), candidate(who::NARROW, START_MS + 1_000)];
    calls.extend([
        at(SLOTS, &g::SetCapacity { limit: Some(2), set: narrow_set(), version: 1 }, START_MS),
        at(SLOTS, &g::AdmitHolders { counted: None, holders, set: narrow_set() }, START_MS),
        at(ROUTE, &consume(who::HOLDER, who::HOLDER), START_MS),
        at(SLOTS, &g::PutQuota { actor: None, quota: a_quota(1), version: None }, START_MS),
        at(SLOTS, &g::AdmitQuota { candidates: asking(400..404), quota_id: quota_id() }, START_MS),
        at(SLOTS, &g::AdmitQuota { candidates: vec![lately()], quota_id: quota_id() }, NOW - 500),
        at(SLOTS, &g::AdmitQuota { candidates: one_called(), quota_id: quota_id() }, START_MS),
        at(SLOTS, &g::ReturnQuota { items: vec![makes_room()], quota_id: quota_id() }, NOW - 100),
    ]);
    calls.extend([
        submit(g::Submission { input: Some(Bytes(vec![0xff; 5_000])), ..submission(who::WAITING) }),
        submit(submission(who::WAITING_TOO)),
        submit(g::Submission { delay_ms: Some(4_000), ..submission(who::DELAYED) }),
        submit(submission(who::HELD)),
        at(ROUTE, &g::HoldExecution::new(ops(), id(who::HELD)), START_MS),
        submit(g::Submission { requires: Some(vec!["gpu".to_owned()]), ..submission(who::NEEDS_GPU) }),
        submit(g::Submission {
            idempotency_key: Some("key".to_owned()),
            idempotency_ttl_ms: Some(2_000),
            ..submission(who::KEYED)
        }),
        at(ROUTE, &g::ReviewRoutes::new(main_lane(), 10, default(), vec![]), START_MS),
        at(Route::Fleet, &g::DefineLane::new(ops(), main_lane(), default()), START_MS),
    ]);
    for instance in ["w-0", "w-1"] {
        let worker = g::RegisterWorker {
            incarnation: Some(uuid(7)),
            ..g::RegisterWorker::new(
                vec!["gpu".to_owned()],
                instance.to_owned(),
                vec![main_lane()],
                default(),
                4,
                "model".to_owned(),
            )
        };
        calls.push(at(Route::Fleet, &worker, START_MS));
    }
    calls.push(at(Route::Fleet, &g::DrainWorker { actor: ops(), instance: "w-1".to_owned() }, START_MS));
    calls.push(at(Route::Fleet, &g::HeartbeatServer::new(true, uuid(9)), START_MS));
    for n in [1, 2] {
        calls.push(at(Route::Fleet, &token(n), START_MS));
    }
    calls.extend(flows::stage());
    calls.extend(schedules::stage());
    calls.extend(budget_stage());
    calls.extend(metered_stage());
    calls
}

pub fn row<C: Call>(name: &'static str, call: &C) -> Row {
    on(ROUTE, name, call)
}

fn on<C: Call>(route: Route, name: &'static str, call: &C) -> Row {
    Row { name, invocation: at(route, call, NOW), batch: false }
}

pub fn batch<C: Call>(name: &'static str, call: &C) -> Row {
    Row { batch: true, ..row(name, call) }
}

fn take_webhooks() -> g::TakeWebhooks {
    g::TakeWebhooks { each: 4, in_flight: [].into(), limit: 8 }
}

/// The webhook for the first end of an execution at the time of the stage; its id is derived from these.
fn webhook_of(n: u64) -> Uuid {
    let owner = id(n).to_string();
    let digest = hex::encode(sha1::Sha1::digest(format!("{owner}:1:{START_MS}")));
    let part = |from: usize, to: usize| &digest[from..to];
    let text = [part(0, 8), "-", part(8, 12), "-8", part(12, 15), "-a", part(15, 18), "-", part(18, 26), &owner[32..]];
    text.concat().parse().expect("an id")
}

/// What a courier takes, and its outcome for the try that the stage began.
fn webhook_rows() -> Vec<Row> {
    use g::WebhookResult::{Delivered, Failed, Refused};
    let note =
        |result| g::NoteWebhook { status: Some(204), ..g::NoteWebhook::new(webhook_of(who::ENDED), 500, result, 1) };
    vec![
        row("take webhooks", &take_webhooks()),
        row("a webhook was delivered", &note(Delivered)),
        row("a webhook is tried again", &note(Failed)),
        row("a webhook is given up", &note(Refused)),
        row("describe a webhook", &g::DescribeWebhook { execution_id: Some(id(who::ENDED)), flow_id: None }),
    ]
}

/// Every function; twice if a call can take another path.
pub fn rows() -> Vec<Row> {
    let mut rows = worker_rows();
    rows.extend(wait_rows());
    rows.extend(stream_rows());
    rows.extend(step_rows());
    rows.extend(operator_rows());
    rows.extend(grant_rows());
    rows.extend(slot_rows());
    rows.extend(quota_rows());
    rows.extend(visiting_rows());
    rows.extend(fleet_rows());
    rows.extend(reader_rows());
    rows.extend(webhook_rows());
    rows.extend(flows::rows());
    rows.extend(schedules::rows());
    rows.extend(budget_rows());
    rows
}

fn worker_rows() -> Vec<Row> {
    let (running, held_fence) = (id(who::RUNNING), || fence(who::RUNNING));
    let fresh = |n: u64| g::Submission {
        requires: Some(vec!["arm".to_owned()]),
        prefers: Some(vec!["eu".to_owned()]),
        ..submission(n)
    };
    let fail = |retryable| g::FailExecution {
        retryable,
        ..g::FailExecution::new("net".to_owned(), 500, running, held_fence(), "broken".to_owned())
    };
    vec![
        row("submit", &g::SubmitExecution { submission: fresh(100) }),
        row(
            "submit with a key, far and delayed",
            &g::SubmitExecution {
                submission: g::Submission {
                    idempotency_key: Some("new".to_owned()),
                    input: Some(Bytes(vec![1; 9_000])),
                    delay_ms: Some(50),
                    ..fresh(101)
                },
            },
        ),
        row(
            "submit into a fair lane",
            &g::SubmitExecution { submission: g::Submission { lane: "fair".to_owned(), ..submission(102) } },
        ),
        batch("claim", &claim("main", 200, 30_000, 2)),
        batch("claim from a fair lane", &claim("fair", 200, 30_000, 2)),
        row("renew", &g::RenewLease::new(running, held_fence())),
        row("progress", &g::UpdateProgress::new(running, held_fence(), 50)),
        row(
            "complete",
            &g::CompleteExecution {
                result: Some(Bytes(vec![0; 9_000])),
                ..g::CompleteExecution::new(running, held_fence())
            },
        ),
        row("fail and retry", &fail(None)),
        row("fail for good", &fail(Some(false))),
        row("cancel the attempt", &g::CancelAttempt::new(running, held_fence())),
        row("delay", &g::DelayExecution { delay_ms: Some(10), ..g::DelayExecution::new(running, held_fence()) }),
        row("yield", &g::YieldExecution { execution_id: running, fence: held_fence() }),
        row("await", &g::AwaitResult { execution_id: running }),
    ]
}

fn wait_rows() -> Vec<Row> {
    let (running, held_fence) = (id(who::RUNNING), || fence(who::RUNNING));
    let waitpoint_id = wid(160);
    vec![
        row("suspend", &suspend(who::RUNNING, two_approvers(), vec![waitpoint(220, "door")])),
        row("suspend after enough early signals", &suspend(who::RUNNING, vec![], vec![])),
        row(
            "suspend and leave a waitpoint behind",
            &g::SuspendExecution {
                adopt: Some(vec![wid(110)]),
                timeout_ms: Some(1_000),
                ..suspend(who::RUNNING, two_approvers(), vec![])
            },
        ),
        row("suspend again", &suspend(who::SUSPENDED, two_approvers(), vec![waitpoint(160, "door")])),
        row("create a waitpoint", &g::CreateWaitpoint::new(running, held_fence(), waitpoint(220, "door"))),
        row(
            "close a waitpoint",
            &g::CloseWaitpoint { execution_id: running, fence: held_fence(), waitpoint_id: wid(100) },
        ),
        row("signal early", &signal(who::RUNNING, 10, 100, 101)),
        row("signal", &signal(who::SUSPENDED, 10, 160, 160)),
        row("signal and resume", &signal(who::SUSPENDED, 10, 160, 161)),
        row("signal again", &signal(who::SUSPENDED, 2, 160, 160)),
        batch("continue the attempt", &claim("fair", 700, 30_000, 2)),
        row("resume", &g::ResumeExecution::new(ops(), id(who::SUSPENDED))),
        row(
            "fail a suspension",
            &g::FailSuspension {
                actor: ops(),
                category: "refused".to_owned(),
                execution_id: id(who::SUSPENDED),
                reason: "nobody answers".to_owned(),
            },
        ),
        row("cancel suspended work", &g::CancelExecution::new(ops(), id(who::SUSPENDED))),
        row(
            "reissue a token",
            &g::ReissueToken {
                approver: Some("ann".to_owned()),
                ..g::ReissueToken::new(ops(), digest(999), id(who::SUSPENDED), waitpoint_id)
            },
        ),
        row("list waitpoints", &g::ListWaitpoints::new(2)),
        row("describe a waitpoint", &g::DescribeWaitpoint { waitpoint_id }),
        row("waitpoints of an execution", &g::ExecutionWaitpoints { execution_id: running }),
        row("read signals", &g::ReadSignals::new(running, 10, false)),
        row("read the signals of a resume", &g::ReadSignals::new(id(who::RESUMED), 10, true)),
        on(Route::Fleet, "note keys", &g::NoteKeys::new(vec!["k1".to_owned(), "k2".to_owned()])),
    ]
}

/// A step of the running attempt, with a result of this many bytes.
fn stored(name: &str, bytes: usize) -> g::StoreStep {
    g::StoreStep {
        result: Some(vec![7; bytes].into()),
        ..g::StoreStep::new(id(who::RUNNING), fence(who::RUNNING), name.to_owned())
    }
}

fn step_rows() -> Vec<Row> {
    let (running, held_fence) = (id(who::RUNNING), || fence(who::RUNNING));
    let changed = g::StoreStep { input_digest: Some("b".to_owned()), rerun: Some(true), ..stored("render", 9) };
    let failed =
        |name: &str| g::NoteStep::new("down".to_owned(), running, held_fence(), name.to_owned(), "503".to_owned(), 2);
    let rest = g::SleepExecution { wake_in_ms: Some(60_000), ..g::SleepExecution::new(running, held_fence()) };
    let named = |name: &str| Some(name.to_owned());
    let fork =
        |from_step| g::ForkExecution { from_step, ..g::ForkExecution::new(ops(), digest(810), running, id(810)) };
    vec![
        row("store a step", &stored("send", 10)),
        row("store a large step", &stored("send", 5_000)),
        row("store a step again", &stored("charge", 10)),
        row("store a changed step", &changed),
        row("note a failed step", &failed("call")),
        row("rest", &rest),
        row("rest under a name", &g::SleepExecution { step: named("nap"), ..rest.clone() }),
        row("a rest that is over", &g::SleepExecution { step: named("nap"), wake_in_ms: Some(0), ..rest.clone() }),
        row(
            "open a waitpoint of a step",
            &g::CreateWaitpoint {
                step: named("sign-off"),
                ..g::CreateWaitpoint::new(running, held_fence(), waitpoint(220, "door"))
            },
        ),
        row(
            "suspend under a name",
            &g::SuspendExecution {
                step: named("sign-off"),
                ..suspend(who::RUNNING, two_approvers(), vec![waitpoint(220, "door")])
            },
        ),
        row("fork", &fork(None)),
        row("fork from a step", &fork(named("render"))),
        row("list steps", &g::ListSteps::new(running, 10)),
        row("get a step", &g::GetStep::new(running, "render".to_owned())),
    ]
}

fn stream_rows() -> Vec<Row> {
    let running = id(who::RUNNING);
    let summary = Some(g::NewSummary { document: "{}".into(), version: 0 });
    vec![
        row("append frames", &g::AppendFrames { summary, ..frames(who::RUNNING, 4, 4) }),
        row("append frames again", &frames(who::RUNNING, 1, 2)),
        row("append more than a stream holds", &g::AppendFrames { request_id: None, ..frames(who::RUNNING, 2, 9) }),
        row("read a stream", &g::ReadStream::new(running, 10)),
        row("read a closed stream", &g::ReadStream::new(id(who::RETIRABLE), 10)),
        row("read a summary", &g::ReadSummary::new(running)),
        row("follow a stream", &g::FollowStream { execution_id: id(who::SUSPENDED) }),
    ]
}

fn operator_rows() -> Vec<Row> {
    let (waiting, running, ended) = (id(who::WAITING), id(who::RUNNING), id(who::ENDED));
    vec![
        row("cancel waiting work", &g::CancelExecution::new(ops(), waiting)),
        row("cancel running work", &g::CancelExecution::new(ops(), running)),
        row(
            "cancel with grace",
            &g::CancelExecution { grace_ms: Some(500), ..g::CancelExecution::new(ops(), running) },
        ),
        row("hold", &g::HoldExecution::new(ops(), waiting)),
        row("release", &g::ReleaseExecution::new(ops(), id(who::HELD))),
        row(
            "change",
            &g::ChangeExecution {
                lane: Some("fair".to_owned()),
                priority: Some(9),
                tags: Some([("team".to_owned(), "blue".to_owned())].into()),
                ..g::ChangeExecution::new(ops(), id(who::NEEDS_GPU))
            },
        ),
        row("replay", &g::ReplayExecution::new(ops(), ended)),
        row("delete", &g::DeleteExecution { actor: ops(), execution_id: ended }),
        row("revoke", &g::RevokeLease::new(ops(), running)),
        row("revoke with grace", &g::RevokeLease { grace: Some(true), ..g::RevokeLease::new(ops(), running) }),
        batch("drain leases", &g::DrainLeases { actor: ops(), instance: "w-0".to_owned(), limit: 10, revoke: true }),
        batch("fire due", &g::FireDue { draw: 500, limit: 64 }),
        batch("review routes", &g::ReviewRoutes::new(main_lane(), 10, default(), vec![])),
        batch("check executions", &g::CheckExecutions { limit: 64, offset: 0, repair: true }),
        batch(
            "check keys",
            &g::CheckKeys {
                keys: vec!["ff:idx:{p:0}:timers".into(), "ff:idx:{p:0}:lane:default/main:queues".into()],
                repair: true,
            },
        ),
        row("trim events", &g::TrimEvents {}),
        row("tally events", &g::TallyEvents { limit: 100 }),
    ]
}

fn grant_rows() -> Vec<Row> {
    let (granted, grant_id) = (id(who::GRANTED), uuid(who::GRANTED));
    let LeaseIds { attempt_id, lease_id } = ids(300);
    vec![
        batch("issue", &issue(310, 3, 1_000)),
        row(
            "consume",
            &g::ConsumeGrant {
                keep: None,
                attempt_id,
                capabilities: vec![],
                kinds: None,
                execution_id: granted,
                grant_id,
                instance: "w-1".to_owned(),
                lease_id,
                lease_ttl_ms: 5_000,
                worker_id: "model".to_owned(),
            },
        ),
        row("release the grant", &g::ReleaseGrant::new(granted, grant_id)),
        row(
            "keep a set with the grant",
            &g::KeepGrant { execution_id: granted, grant_id, sets: vec!["lane:default/main".to_owned()] },
        ),
        row(
            "block",
            &g::BlockExecution {
                unheld: None,
                detail: [("key".to_owned(), "k".to_owned())].into(),
                execution_id: granted,
                grant_id,
                reason: g::AdmissionReason::WaitingForBudget,
            },
        ),
        row(
            "unblock",
            &g::UnblockExecution {
                holder_id: None,
                execution_id: id(who::BLOCKED),
                reason: g::AdmissionReason::WaitingForQuota,
            },
        ),
        row(
            "grant a reclaim",
            &g::GrantReclaim {
                actor: ops(),
                execution_id: id(who::INTERRUPTED),
                grant_id: uuid(330),
                instance: "w-1".to_owned(),
                ttl_ms: 1_000,
                capabilities: vec![],
                kinds: None,
                lanes: vec![main_lane(), "fair".to_owned()],
                namespace: default(),
            },
        ),
    ]
}

fn slot_rows() -> Vec<Row> {
    let set = narrow_set;
    let holders = || vec![holder(who::HOLDER), holder(who::NARROW)];
    let adopt = |lane: &str| g::AdoptHolders::new(lane.to_owned(), 10, default(), true);
    vec![
        on(SLOTS, "set a capacity", &g::SetCapacity { limit: Some(3), set: set(), version: 2 }),
        on(
            SLOTS,
            "admit holders",
            &g::AdmitHolders { counted: Some(true), holders: vec![candidate(110, NOW + 50)], set: set() },
        ),
        on(SLOTS, "confirm holders", &g::ConfirmHolders { holders: holders(), set: set() }),
        on(SLOTS, "release holders", &g::ReleaseHolders { holders: holders(), set: set() }),
        on(SLOTS, "list holders", &g::ListHolders { limit: 10, offset: 0, set: set() }),
        Row { batch: true, ..on(SLOTS, "fire overdue holders", &g::FireDue { draw: 500, limit: 64 }) },
        row("check holders", &g::CheckHolders { holders: holders(), set: set() }),
        batch("adopt running work", &adopt("fair")),
        batch("count holders that run", &adopt("narrow")),
        row("complete a holder", &g::CompleteExecution::new(id(who::HOLDER), fence(who::HOLDER))),
        row("cancel a granted holder", &g::CancelExecution::new(ops(), id(who::NARROW))),
        row("consume in a limited lane", &consume(who::NARROW, 340)),
        row(
            "give back what was not admitted",
            &g::ReleaseGrant { execution_id: id(who::NARROW), grant_id: uuid(who::NARROW), unheld: Some(true) },
        ),
    ]
}

/// The rights of a token's bearer.
fn token(n: u64) -> g::GrantAccess {
    g::GrantAccess {
        namespaces: Some(vec![default()]),
        expires_at: Some(NOW + 10_000),
        ..g::GrantAccess::new(
            uuid(600 + n),
            ops(),
            format!("{n:064x}"),
            format!("ci-{n}"),
            vec![g::Role::Submit, g::Role::Read],
        )
    }
}

fn fleet_rows() -> Vec<Row> {
    let fleet = Route::Fleet;
    let w0 = || "w-0".to_owned();
    let partitions = g::PartitionDefaults { executions: 4, budgets: 2, quotas: 2, schedules: 2 };
    vec![
        on(
            fleet,
            "define a lane",
            &g::DefineLane {
                state: Some(g::LaneState::Paused),
                ..g::DefineLane::new(ops(), "new".to_owned(), default())
            },
        ),
        row("install a lane", &g::InstallLane { entry: entry("main", g::Fairness::Fair, 2) }),
        on(fleet, "get a lane", &g::GetLane { lane: main_lane(), namespace: default() }),
        on(fleet, "list lanes", &g::ListLanes { limit: 10, offset: 0 }),
        on(
            fleet,
            "register",
            &g::RegisterWorker::new(vec![], "w-2".to_owned(), vec![main_lane()], default(), 4, "model".to_owned()),
        ),
        on(fleet, "heartbeat", &g::HeartbeatWorkers { instances: vec![w0(), "w-9".to_owned()] }),
        on(fleet, "deregister", &g::DeregisterWorker::new(w0())),
        on(
            fleet,
            "offer a grant",
            &g::OfferGrant { execution_id: id(who::INTERRUPTED), grant_id: uuid(331), instance: w0() },
        ),
        on(
            fleet,
            "record an action",
            &g::RecordAction {
                key_id: Some("k1".to_owned()),
                ..g::RecordAction::new(g::RecordedAction::KeysRotated, ops())
            },
        ),
        on(fleet, "drain a worker", &g::DrainWorker { actor: ops(), instance: w0() }),
        on(fleet, "mark a worker dead", &g::MarkWorkerDead { actor: ops(), instance: w0() }),
        on(fleet, "challenge a worker", &g::ChallengeWorker { instance: w0(), nonce: uuid(6) }),
        on(fleet, "answer a challenge", &g::AnswerChallenge { incarnation: uuid(7), instance: w0(), nonce: uuid(6) }),
        on(fleet, "list workers", &g::ListWorkers { limit: 10, offset: 0 }),
        on(fleet, "get a worker", &g::GetWorker { instance: w0() }),
        on(fleet, "heartbeat of a server", &g::HeartbeatServer::new(true, uuid(8))),
        on(fleet, "let a bearer act", &token(3)),
        on(fleet, "find a bearer", &g::FindAccess { digest: format!("{:064x}", 1) }),
        on(fleet, "list bearers", &g::ListAccess { after: Some(uuid(601)), limit: 1 }),
        on(fleet, "revoke a token", &g::RevokeAccess { access_id: uuid(601), actor: ops() }),
        on(fleet, "read the outbox", &g::ReadOutbox::new(10)),
        on(fleet, "acknowledge", &g::AckOutbox { ids: vec![format!("{START_MS}-0")] }),
        on(Route::Config, "fix partitions", &g::FixPartitions::new(partitions)),
    ]
}

fn reader_rows() -> Vec<Row> {
    let running = id(who::RUNNING);
    vec![
        row("describe", &g::DescribeExecution { execution_id: id(who::ENDED) }),
        row("get an attempt", &g::GetAttempt { execution_id: running, index: 0 }),
        row("list", &g::ListExecutions { state: Some(g::PublicState::Active), ..g::ListExecutions::new(10) }),
        row("find leases", &g::FindLeases { instance: "w-0".to_owned(), lease_prefix: None }),
        row("read events", &g::ReadEvents::new(10)),
        row("explain", &g::ExplainExecution { execution_id: id(who::DELAYED) }),
        row("explain a lane", &g::ExplainLane { lane: main_lane(), limit: 8, namespace: default() }),
        row(
            "count ahead",
            &g::CountAhead { execution_id: running, lane: main_lane(), namespace: default(), score: START_MS },
        ),
        row("stats", &g::PartitionStats::default()),
        row("depth", &g::LaneDepth { lane: main_lane(), namespace: default() }),
        row("library", &g::Library {}),
        row("next due", &g::NextDue {}),
    ]
}

fn quota_id() -> QuotaPolicyId {
    QuotaPolicyId::from_uuid(uuid(500))
}

fn a_quota(concurrency: i64) -> g::Quota {
    g::Quota {
        concurrency: Some(concurrency),
        rate: Some(g::QuotaRate { limit: 9, mode: g::RateMode::Sliding, window_ms: 3_000 }),
        weighted: Some(g::QuotaWeights { limit: 9, window_ms: 2_000 }),
        ..g::Quota::new(quota_id(), default(), true)
    }
}

fn asking(numbers: std::ops::Range<u64>) -> Vec<g::QuotaCandidate> {
    let one = |n| g::QuotaCandidate {
        execution_id: id(n),
        expires_at: NOW + 10_000,
        holder_id: uuid(n),
        key: "k".to_owned(),
        number: 1,
        score: n as i64,
        weight: if n == 403 { 10 } else { 2 },
    };
    numbers.map(one).collect()
}

/// An execution whose weight still counts.
fn lately() -> g::QuotaCandidate {
    g::QuotaCandidate { key: "late".to_owned(), ..asking(410..411).remove(0) }
}

/// The digest of the key under which an execution is called.
const CALLED: &str = "970eeb47b2d091dc3fee";

/// One that holds a slot, and one that waits for it.
fn one_called() -> Vec<g::QuotaCandidate> {
    let under = |candidate| g::QuotaCandidate { key: "called".to_owned(), ..candidate };
    asking(420..422).into_iter().map(under).collect()
}

fn makes_room() -> g::QuotaReturn {
    g::QuotaReturn { execution_id: id(420), holder_id: uuid(420), key_digest: CALLED.to_owned(), unused: false }
}

fn quota_rows() -> Vec<Row> {
    let (quota_id, key) = (quota_id(), || "k".to_owned());
    let returned = |unused| g::QuotaReturn {
        execution_id: id(400),
        holder_id: uuid(400),
        key_digest: "13fbd79c3d390e5d6585".to_owned(),
        unused,
    };
    vec![
        on(
            SLOTS,
            "create a quota",
            &g::PutQuota {
                actor: None,
                quota: g::Quota { quota_id: QuotaPolicyId::from_uuid(uuid(501)), ..a_quota(2) },
                version: None,
            },
        ),
        on(SLOTS, "replace a quota", &g::PutQuota { actor: None, quota: a_quota(3), version: Some(1) }),
        on(SLOTS, "get a quota", &g::GetQuota { key: Some(key()), quota_id }),
        on(SLOTS, "list quotas", &g::ListQuotas::new(10)),
        on(SLOTS, "how quotas stand", &g::QuotaStats { keys_max: 8, limit: 10 }),
        on(SLOTS, "who waits for a quota", &g::ListQuotaWaiters::new(key(), 10, quota_id)),
        on(SLOTS, "list keys of a quota", &g::ListQuotaKeys { after: 0, limit: 10, quota_id }),
        on(SLOTS, "delete a quota", &g::DeleteQuota { actor: None, quota_id }),
        on(SLOTS, "ask a quota", &g::AdmitQuota { candidates: asking(402..406), quota_id }),
        on(SLOTS, "return to a quota", &g::ReturnQuota { items: vec![returned(false)], quota_id }),
        on(
            SLOTS,
            "give up whom a quota called",
            &g::GiveUpCalled {
                items: vec![g::QuotaAbsence { execution_id: id(421), key_digest: CALLED.to_owned() }],
                quota_id,
            },
        ),
        on(SLOTS, "return unused to a quota", &g::ReturnQuota { items: vec![returned(true)], quota_id }),
        on(
            SLOTS,
            "settle a weight",
            &g::SettleQuota {
                execution_id: lately().execution_id,
                holder_id: lately().holder_id,
                key: lately().key,
                quota_id,
                weight: 1,
            },
        ),
        on(SLOTS, "throttle a key", &g::ThrottleQuota { actor: None, key: key(), quota_id, until: NOW + 500 }),
        row(
            "unblock what was refused under its grant",
            &g::UnblockExecution {
                execution_id: id(who::GRANTED),
                holder_id: Some(uuid(who::GRANTED)),
                reason: g::AdmissionReason::WaitingForQuota,
            },
        ),
    ]
}

/// The partition of budgets in these rows.
const BUDGETS: Route = Route::Budget(0);

fn budget_id(n: u64) -> BudgetId {
    BudgetId::from_uuid(uuid(n + 60_000))
}

fn tokens(n: i64) -> std::collections::BTreeMap<String, i64> {
    [("tokens".to_owned(), n)].into()
}

fn new_budget(n: u64, parent: Option<u64>, interval_ms: i64) -> g::CreateBudget {
    let limit = |name: &str, hard, soft| g::DimensionLimit { name: name.to_owned(), hard, soft };
    let dimensions = vec![limit("usd", None, Some(10)), limit("tokens", Some(1_000), Some(500))];
    let scope = g::BudgetScope { r#type: g::ScopeType::Lane, id: Some("default/main".to_owned()) };
    let reset = g::BudgetReset { r#type: g::ResetType::Interval, interval_ms: Some(interval_ms), zone: None };
    let budget = g::NewBudget {
        parent: parent.map(budget_id),
        ..g::NewBudget::new(
            budget_id(n),
            default(),
            scope,
            dimensions,
            reset,
            g::OnSoft::RequireApproval,
            g::OnHard::Suspend,
        )
    };
    g::CreateBudget { actor: ops(), budget }
}

fn daily(n: u64) -> g::CreateBudget {
    let mut create = new_budget(n, None, 1_000);
    create.budget.reset = g::BudgetReset { r#type: g::ResetType::Day, interval_ms: None, zone: None };
    create.budget.next_reset_at = Some(START_MS + 1_000);
    create
}

fn raise(n: u64) -> g::ChangeBudget {
    let limit = g::DimensionLimit { name: "tokens".to_owned(), hard: Some(2_000), soft: None };
    g::ChangeBudget::new(ops(), budget_id(n), vec![limit])
}

fn budget_candidate(n: u64, estimate: i64) -> g::BudgetCandidate {
    g::BudgetCandidate {
        estimate: Some(tokens(estimate)),
        ..g::BudgetCandidate::new(id(n), uuid(n), START_MS + 60_000)
    }
}

fn reserve(n: u64, tokens_held: i64) -> g::ReserveBudget {
    g::ReserveBudget {
        ttl_ms: Some(1_000),
        ..g::ReserveBudget::new(budget_id(2), tokens(tokens_held), uuid(n + 70_000))
    }
}

fn usage_report(n: u64, used: i64) -> g::ApplyUsage {
    let report = g::UsageReport {
        execution_id: Some(id(who::HOLDER)),
        holder_id: Some(uuid(who::HOLDER)),
        ..g::UsageReport::new(n.to_string(), tokens(used))
    };
    g::ApplyUsage { budget_id: budget_id(2), report }
}

fn breach() -> g::UsageBreach {
    g::UsageBreach {
        action: g::OnHard::Suspend,
        budget_id: budget_id(2),
        dimension: "tokens".to_owned(),
        limit: 5,
        rooms: 0,
        used: 5,
    }
}

fn note_usage(budget: u64) -> g::NoteUsage {
    g::NoteUsage::new(budget_id(budget), tokens(5), id(who::RUNNING), fence(who::RUNNING))
}

/// A tree of two budgets. The lower one has a hold, a reservation and reports, one of them refused, and an execution
/// waits for it.
fn budget_stage() -> Vec<Invocation> {
    vec![
        at(BUDGETS, &new_budget(1, None, 3_600_000), START_MS),
        at(BUDGETS, &new_budget(2, Some(1), 3_000), START_MS),
        at(BUDGETS, &new_budget(3, None, 3_600_000), START_MS),
        // An execution was refused, and there is room again.
        at(BUDGETS, &g::ApplyUsage { budget_id: budget_id(3), ..usage_report(5, 5_000) }, START_MS),
        at(BUDGETS, &raise(3), START_MS),
        // A day is over, and the end of the next one was not set.
        at(BUDGETS, &daily(5), START_MS),
        at(BUDGETS, &g::ApproveBudget { actor: ops(), budget_id: budget_id(5) }, START_MS + 2_000),
        at(
            BUDGETS,
            &g::AdmitBudget { budget_id: budget_id(2), candidates: vec![budget_candidate(who::HOLDER, 100)] },
            START_MS,
        ),
        at(BUDGETS, &usage_report(1, 150), START_MS),
        at(BUDGETS, &reserve(1, 200), START_MS),
        at(BUDGETS, &g::ReserveBudget { ttl_ms: Some(60_000), ..reserve(2, 100) }, START_MS),
        at(BUDGETS, &usage_report(2, 5_000), START_MS),
        at(ROUTE, &note_usage(2), START_MS),
        at(Route::Fleet, &g::NoteScope::new(budget_id(1), "lane:default/main".to_owned()), START_MS),
    ]
}

fn budget_rows() -> Vec<Row> {
    let lower = || budget_id(2);
    let reserved = || uuid(70_002);
    let settle = |outcome, breach| g::SettleUsage { breach, ..g::SettleUsage::new(id(who::RUNNING), outcome, 1) };
    vec![
        on(BUDGETS, "create a budget", &new_budget(4, Some(2), 10_000)),
        on(
            BUDGETS,
            "change a budget",
            &g::ChangeBudget {
                on_hard: Some(g::OnHard::Fail),
                ..g::ChangeBudget::new(
                    ops(),
                    lower(),
                    vec![g::DimensionLimit { name: "tokens".to_owned(), hard: Some(9), soft: None }],
                )
            },
        ),
        on(BUDGETS, "get a budget", &g::GetBudget { budget_id: lower() }),
        on(BUDGETS, "list budgets", &g::ListBudgets::new(10)),
        on(BUDGETS, "how budgets stand", &g::BudgetStats { limit: 10 }),
        on(BUDGETS, "delete a budget", &g::DeleteBudget { actor: ops(), budget_id: budget_id(3) }),
        on(BUDGETS, "reset a budget", &g::ResetBudget { actor: ops(), budget_id: lower(), request_id: None }),
        on(BUDGETS, "approve a budget", &g::ApproveBudget { actor: ops(), budget_id: lower() }),
        on(
            BUDGETS,
            "correct a budget",
            &g::CorrectBudget {
                actor: ops(),
                budget_id: lower(),
                delta: 30,
                dimension: "tokens".to_owned(),
                reason: "late bill".to_owned(),
                request_id: None,
            },
        ),
        on(
            BUDGETS,
            "admit under a budget",
            &g::AdmitBudget {
                budget_id: lower(),
                candidates: vec![budget_candidate(110, 10), budget_candidate(111, 9_000)],
            },
        ),
        on(BUDGETS, "release a budget", &g::ReleaseBudget { budget_id: lower(), holders: vec![holder(who::HOLDER)] }),
        on(BUDGETS, "reserve", &reserve(3, 10)),
        on(
            BUDGETS,
            "reserve under a holder",
            &g::ReserveBudget {
                holder: Some(g::BudgetHolder { execution_id: id(who::RUNNING), holder_id: uuid(who::RUNNING) }),
                ttl_ms: None,
                ..reserve(4, 10)
            },
        ),
        on(
            BUDGETS,
            "settle a reservation",
            &g::SettleReservation { budget_id: lower(), dimensions: tokens(70), reservation_id: reserved() },
        ),
        on(BUDGETS, "release a reservation", &g::ReleaseReservation { budget_id: lower(), reservation_id: reserved() }),
        on(BUDGETS, "apply usage", &usage_report(3, 120)),
        on(BUDGETS, "apply usage past a limit", &usage_report(4, 5_000)),
        on(
            BUDGETS,
            "set the next reset",
            &g::SetNextReset { budget_id: budget_id(5), next_reset_at: NOW + 1_000, period: 2 },
        ),
        on(BUDGETS, "cleared budgets", &g::ClearedBudgets::new(10)),
        on(
            BUDGETS,
            "acknowledge a cleared budget",
            &g::AcknowledgeCleared { budget_id: budget_id(3), rooms: 9, told: 9 },
        ),
        Row { batch: true, ..on(BUDGETS, "fire due budgets", &g::FireDue { draw: 500, limit: 64 }) },
        row("note usage", &note_usage(1)),
        row("settle usage", &settle(g::UsageOutcome::Ok, None)),
        row("settle usage that parks", &settle(g::UsageOutcome::HardBreach, Some(breach()))),
        row("read usage", &g::ReadUsage { execution_id: id(who::RUNNING) }),
        row("note what of a reservation was used", &g::NoteUsage { reservation_id: Some(reserved()), ..note_usage(2) }),
        on(
            BUDGETS,
            "apply what of a reservation was used",
            &g::ApplyUsage {
                budget_id: lower(),
                report: g::UsageReport {
                    reservation_id: Some(reserved()),
                    ..g::UsageReport::new("5".to_owned(), tokens(70))
                },
            },
        ),
        row(
            "ask for the holder in a quota",
            &g::QuotaHolder {
                execution_id: id(who::RUNNING),
                fence: fence(who::RUNNING),
                key: "k".to_owned(),
                quota_id: QuotaPolicyId::from_uuid(uuid(9)),
            },
        ),
        row(
            "hold a budget",
            &g::HoldBudget { budget_id: lower(), execution_id: id(who::RUNNING), fence: fence(who::RUNNING) },
        ),
        batch("unblock after room", &g::UnblockBudget::new(lower(), 10, 9)),
        row("who waits for a budget", &g::AwaitingBudget::new(lower(), 10)),
        row("quotas that are missing", &g::MissingQuotas::new(10)),
        batch("unblock after a quota came back", &g::UnblockQuota::new(10, a_quota(1).quota_id)),
        row("waiting for budgets", &g::WaitingForBudgets::new(main_lane(), 10, default())),
        on(Route::Fleet, "note a scope", &g::NoteScope::new(lower(), "lane:default/main".to_owned())),
        on(
            Route::Fleet,
            "budgets of scopes",
            &g::BudgetsOfScopes { scopes: vec!["lane:default/main".to_owned(), "namespace:default".to_owned()] },
        ),
    ]
}
