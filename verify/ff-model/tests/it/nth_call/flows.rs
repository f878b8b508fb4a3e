//! The part of the stage with flows and parents, and the calls about them.

use ff_core::types::{FlowId, SuspensionId};
use ff_model::run::START_MS;
use ff_model::store::ROUTE;
use ff_script::generated as g;
use ff_script::{Bytes, Invocation};
use uuid::Uuid;

use super::rows::{Row, at, batch, claim, default, entry, fence, id, ops, row, submission, uuid};

/// Members and parents of the stage, by their state.
mod who {
    pub const RUNNING: u64 = 40;
    pub const NEXT: u64 = 41;
    pub const RESCUE: u64 = 42;
    pub const LAST: u64 = 43;
    pub const HIDDEN: u64 = 44;
    pub const HIDDEN_TOO: u64 = 45;
    pub const FAILED: u64 = 46;
    pub const SKIPPED: u64 = 47;
    pub const FAST: u64 = 48;
    pub const SLOW: u64 = 49;
    pub const WINNER: u64 = 50;
    pub const PARENT: u64 = 51;
    pub const CHILD: u64 = 52;
    pub const WAITING_PARENT: u64 = 53;
    pub const LAST_CHILD: u64 = 54;
}

/// The flows of the stage.
mod which {
    pub const RUNNING: u64 = 1;
    pub const UNSEALED: u64 = 2;
    pub const OVER: u64 = 3;
    pub const RACE: u64 = 4;
}

fn flow_id(n: u64) -> FlowId {
    FlowId::from_uuid(Uuid::from_u64_pair(n << 32 | 0xf10, 0))
}

/// In a separate lane, so that the claims of the other rows do not change.
fn in_lane(n: u64, lane: &str) -> g::Submission {
    g::Submission {
        lane: lane.to_owned(),
        retry: Some(g::Retry { max_attempts: Some(1), ..g::Retry::default() }),
        ..submission(n)
    }
}

fn member(n: u64, key: &str) -> g::NewMember {
    g::NewMember::new(key.to_owned(), in_lane(n, "flow"))
}

fn racing(member: g::NewMember) -> g::NewMember {
    let on_satisfied = Some(g::OnSatisfied::CancelRemaining);
    g::NewMember { inbound: Some(g::Inbound { on_satisfied, ..g::Inbound::new(g::InboundPolicy::AnyOf) }), ..member }
}

fn edge(from: &str, to: &str, on: g::EdgeOn) -> g::NewEdge {
    g::NewEdge::new(from.to_owned(), to.to_owned(), on)
}

fn new_flow(n: u64) -> g::NewFlow {
    let policy = g::OnMemberFailure::Continue;
    g::NewFlow::new(flow_id(n), default(), "pipeline".to_owned(), policy, "0".repeat(32))
}

fn child(n: u64) -> g::NewChild {
    g::NewChild::new(in_lane(n, "kids"))
}

fn spawn(parent: u64, children: Vec<g::NewChild>) -> g::SpawnChildren {
    g::SpawnChildren::new(children, id(parent), fence(parent))
}

fn wait(parent: u64) -> g::WaitChildren {
    let wait_id = SuspensionId::from_uuid(uuid(parent + 60_000));
    g::WaitChildren::new(id(parent), fence(parent), wait_id)
}

fn start(lane: &str, n: u64) -> Invocation {
    at(ROUTE, &claim(lane, n, 60_000, 1), START_MS)
}

fn fail(n: u64) -> g::FailExecution {
    g::FailExecution::new("net".to_owned(), 500, id(n), fence(n), "broken".to_owned())
}

fn complete(n: u64, result: usize) -> g::CompleteExecution {
    g::CompleteExecution { result: Some(Bytes(vec![3; result])), ..g::CompleteExecution::new(id(n), fence(n)) }
}

/// The calls that set up this part of the stage. Each running member was alone in its lane when it was claimed.
pub fn stage() -> Vec<Invocation> {
    use g::EdgeOn::{Completion, Failure, Success};
    let lane = |name: &str| at(ROUTE, &g::InstallLane { entry: entry(name, g::Fairness::Fifo, 1) }, START_MS);
    let whole = |n: u64, members: Vec<g::NewMember>, edges: Vec<g::NewEdge>| {
        at(ROUTE, &g::SubmitFlow { edges, flow: new_flow(n), members, seal: true }, START_MS)
    };
    let parent = |n: u64| at(ROUTE, &g::SubmitExecution { submission: in_lane(n, "flow") }, START_MS);
    let passing = g::NewEdge { pass_as: Some("draft".to_owned()), ..edge("a", "b", Success) };
    let unsealed = g::SubmitFlow {
        edges: vec![edge("x", "y", Completion)],
        flow: new_flow(which::UNSEALED),
        members: vec![member(who::HIDDEN, "x"), member(who::HIDDEN_TOO, "y")],
        seal: false,
    };
    vec![
        lane("flow"),
        lane("kids"),
        whole(
            which::RUNNING,
            vec![
                member(who::RUNNING, "a"),
                member(who::NEXT, "b"),
                member(who::RESCUE, "c"),
                racing(member(who::LAST, "d")),
            ],
            vec![passing, edge("a", "c", Failure), edge("b", "d", Success), edge("c", "d", Success)],
        ),
        start("flow", who::RUNNING),
        at(ROUTE, &unsealed, START_MS),
        whole(which::OVER, vec![member(who::FAILED, "e"), member(who::SKIPPED, "f")], vec![edge("e", "f", Success)]),
        start("flow", who::FAILED),
        at(ROUTE, &fail(who::FAILED), START_MS),
        whole(
            which::RACE,
            vec![member(who::FAST, "r"), member(who::SLOW, "s"), racing(member(who::WINNER, "w"))],
            vec![edge("r", "w", Success), edge("s", "w", Success)],
        ),
        start("flow", who::FAST),
        start("flow", who::SLOW),
        parent(who::PARENT),
        start("flow", who::PARENT),
        at(ROUTE, &spawn(who::PARENT, vec![child(who::CHILD)]), START_MS),
        start("kids", who::CHILD),
        parent(who::WAITING_PARENT),
        start("flow", who::WAITING_PARENT),
        at(ROUTE, &spawn(who::WAITING_PARENT, vec![child(who::LAST_CHILD)]), START_MS),
        at(ROUTE, &wait(who::WAITING_PARENT), START_MS),
        start("kids", who::LAST_CHILD),
    ]
}

/// Calls about flows, and calls about executions that affect other executions.
pub fn rows() -> Vec<Row> {
    use g::EdgeOn::{Completion, Success};
    let running = flow_id(which::RUNNING);
    let cancel = |n: u64, policy| g::CancelFlow {
        reason: Some("no".to_owned()),
        ..g::CancelFlow::new(ops(), flow_id(n), policy)
    };
    let replay = |n: u64| g::ReplayExecution::new(ops(), id(n));
    let submit = |seal| g::SubmitFlow {
        edges: vec![edge("p", "q", Success)],
        flow: new_flow(9),
        members: vec![member(140, "p"), member(141, "q")],
        seal,
    };
    vec![
        row("submit a flow", &submit(true)),
        row("submit the first part of a flow", &submit(false)),
        row(
            "add a member",
            &g::AddMembers {
                edges: vec![edge("a", "z", Success), edge("b", "z", Completion)],
                flow_id: running,
                members: vec![member(142, "z")],
            },
        ),
        row(
            "add a member after one that ended, to a flow that runs",
            &g::AddMembers {
                edges: vec![edge("r", "z", Success)],
                flow_id: flow_id(which::RACE),
                members: vec![member(143, "z")],
            },
        ),
        row("add edges", &g::AddEdges { version: Some(1), ..g::AddEdges::new(vec![edge("c", "b", Success)], running) }),
        row("seal", &g::SealFlow { flow_id: flow_id(which::UNSEALED) }),
        row("cancel a flow", &cancel(which::RUNNING, g::CancelPolicy::CancelAll)),
        row("cancel what does not run", &cancel(which::RUNNING, g::CancelPolicy::CancelPending)),
        row("cancel a flow that was not sealed", &cancel(which::UNSEALED, g::CancelPolicy::LetActiveFinish)),
        row("walk", &g::WalkFlow { flow_id: flow_id(which::OVER), limit: 1 }),
        row("describe a flow", &g::DescribeFlow { flow_id: running }),
        row("await a flow", &g::AwaitFlow { flow_id: running }),
        row("read a flow", &g::ReadFlow { after: None, edges: true, flow_id: running, limit: 3 }),
        row("list flows", &g::ListFlows::new(3)),
        row("complete a member", &complete(who::RUNNING, 5_000)),
        row("fail a member", &fail(who::RUNNING)),
        row("win a race", &complete(who::FAST, 10)),
        row("replay a failed member", &replay(who::FAILED)),
        row("replay a skipped member", &replay(who::SKIPPED)),
        row("hold a member", &g::HoldExecution::new(ops(), id(who::NEXT))),
        row("cancel a member", &g::CancelExecution::new(ops(), id(who::NEXT))),
        row("spawn children", &spawn(who::PARENT, vec![child(144), child(145)])),
        row("spawn a child again", &spawn(who::PARENT, vec![child(who::CHILD)])),
        row("wait for children", &wait(who::PARENT)),
        row("read children", &g::ReadChildren::new(id(who::PARENT), 10)),
        row("complete a child", &complete(who::CHILD, 10)),
        row("complete the last child", &complete(who::LAST_CHILD, 5_000)),
        row("complete a parent", &complete(who::PARENT, 10)),
        row("cancel a parent that waits", &g::CancelExecution::new(ops(), id(who::WAITING_PARENT))),
        batch("claim in the lane of flows", &claim("flow", 400, 30_000, 2)),
        row("explain a member", &g::ExplainExecution { execution_id: id(who::LAST) }),
    ]
}
