//! After the faults: workers for everything, timers on time. All work that is not held must end soon, and finally
//! nothing is left.

use std::collections::BTreeSet;

use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_script::Route;
use ff_script::generated::*;

use crate::actor::{CAPABILITIES, LANES, LEASE_TTL_MS_MAX, NAMESPACE};
use crate::admission::{Batch, Decision, needs_admission};
use crate::check::{Check, Violation, eligible, require};
use crate::request::{Outcome, Reply, Request};
use crate::world::World;

/// Everything unblocked ends within this time after the faults stop.
const BOUND_MS: i64 = 3 * LEASE_TTL_MS_MAX + 5_000;

/// More rounds than any run needs. A run that uses all of them makes no progress.
const ROUNDS_MAX: u32 = 400;

mod limits;

pub(crate) fn run(world: &mut World) -> Check {
    let mut begin = world.now;
    resume_lanes(world)?;
    if world.board.limits.on {
        begin = limits::relax(world)?;
    }
    let held = |seen: &Execution| seen.blocking_reason == Some(BlockingReason::HeldByOperator);
    // Work that waits for something held must wait too.
    let excused = |seen: &Execution| {
        use BlockingReason::{WaitingForChildren, WaitingForDependencies};
        held(seen) || matches!(seen.blocking_reason, Some(WaitingForDependencies | WaitingForChildren))
    };
    let bound = if world.board.limits.on { limits::BOUND_MS } else { BOUND_MS };
    finish_all(world, begin + bound, excused)?;
    if let Some((id, seen)) = world.checker.unfinished(excused) {
        let text = format!(
            "{id} is still {} {:?} {} ms after the faults stopped",
            seen.state,
            seen.blocking_reason,
            world.now - begin
        );
        return Err(Violation::liveness(text));
    }
    world.check_deeply()?;

    let kept: Vec<ExecutionId> = world.checker.live().filter(|(_, _, seen)| held(seen)).map(|(id, ..)| *id).collect();
    for id in kept {
        ask(world, id, ReleaseExecution::new("ada".to_owned(), id))?;
    }
    let begin = world.now;
    finish_all(world, begin + bound, |_| false)?;
    if let Some((id, seen)) = world.checker.unfinished(|_| false) {
        let text = format!("{id} was released and is still {} {:?}", seen.state, seen.blocking_reason);
        return Err(Violation::liveness(text));
    }
    for route in world.board.routes() {
        fire(world, route)?;
    }
    world.checker.check_quiet_flows()?;
    limits::end(world)?;
    retire_all(world)
}

fn call(world: &mut World, route: Route, request: impl Into<Request>) -> Result<Reply, Violation> {
    let request = request.into();
    match world.execute(route, &request, "settle", None)? {
        Outcome::Reply(reply) => Ok(reply),
        other => Err(Violation::liveness(format!("{} without faults: {other}", request.name()))),
    }
}

fn ask(world: &mut World, id: ExecutionId, request: impl Into<Request>) -> Result<Reply, Violation> {
    let route = world.board.route_of(&id);
    call(world, route, request)
}

fn resume_lanes(world: &mut World) -> Check {
    for (lane, ..) in LANES {
        let mut define = DefineLane::new("ada".to_owned(), (*lane).to_owned(), NAMESPACE.to_owned());
        define.state = Some(LaneState::Active);
        if let Reply::DefineLane(DefineLaneReply::Defined { entry, .. }) = call(world, Route::Fleet, define)? {
            for route in world.board.routes() {
                call(world, route, InstallLane { entry: entry.clone() })?;
            }
        }
    }
    Ok(())
}

/// Fires, admits, claims and completes until everything has ended or the time is up.
fn finish_all(world: &mut World, until: i64, except: impl Fn(&Execution) -> bool) -> Check {
    drain_outbox(world)?;
    for _ in 0..ROUNDS_MAX {
        for route in world.board.routes() {
            fire(world, route)?;
        }
        if world.board.limits.on {
            limits::reconcile(world)?;
        }
        unblock(world)?;
        let mut places: Vec<_> = busy(world).into_iter().collect();
        // The first place changes, and what a place gives back arrives before the next one is asked. Otherwise each of
        // two places could take what the other needs and return it too late, for ever.
        let first = world.rng.between(0, i64::try_from(places.len()).unwrap_or(0).max(1) - 1);
        places.rotate_left(usize::try_from(first).unwrap_or(0));
        for (route, lane) in places {
            work(world, route, &lane)?;
            if world.board.limits.on {
                limits::reconcile(world)?;
            }
        }
        // A completion may have let other executions go on, directly or through debts.
        if !busy(world).is_empty() || is_due(world)? {
            continue;
        }
        if world.checker.unfinished(&except).is_none() {
            return Ok(());
        }
        let mut next = world.checker.next_wake();
        if world.board.limits.on {
            next = limits::next_wake(world, next)?;
        }
        let Some(next) = next else {
            return Ok(());
        };
        if next > until {
            return Ok(());
        }
        // A sleeper on a timer wakes at its time or shortly after.
        world.now = next.max(world.now) + world.rng.between(0, 50);
    }
    Err(Violation::liveness(format!("no end after {ROUNDS_MAX} rounds")))
}

/// True when a timer is due.
fn is_due(world: &World) -> Result<bool, Violation> {
    for route in world.board.routes() {
        if world.store.next_due(route)?.is_some_and(|at| at <= world.now) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The places with work that could run.
fn busy(world: &World) -> BTreeSet<(Route, String)> {
    let live = world.checker.live();
    live.filter(|(_, shadow, seen)| eligible(seen) && shadow.may_start(seen, world.now))
        .map(|(id, _, seen)| (world.board.route_of(id), seen.lane.clone()))
        .collect()
}

fn fire(world: &mut World, route: Route) -> Check {
    for _ in 0..ROUNDS_MAX {
        let draw = world.rng.between(0, 1000);
        if let Reply::FireDue(FireDueReply::Fired { more: false, .. }) =
            call(world, route, FireDue { draw, limit: 64 })?
        {
            return Ok(());
        }
    }
    Err(Violation::liveness(format!("the timers of {route} never come to an end")))
}

fn all_capabilities() -> Vec<String> {
    CAPABILITIES.iter().map(|&token| token.to_owned()).collect()
}

/// Gives quotas and budgets room, and has workers that cover every route.
fn unblock(world: &mut World) -> Check {
    let waiting: Vec<(ExecutionId, BlockingReason)> =
        world.checker.live().filter_map(|(id, _, seen)| Some((*id, seen.blocking_reason?))).collect();
    let by_hand = !world.board.limits.on;
    for (id, reason) in waiting.iter().filter(|_| by_hand) {
        let reason = match reason {
            BlockingReason::WaitingForQuota => AdmissionReason::WaitingForQuota,
            BlockingReason::WaitingForBudget => AdmissionReason::WaitingForBudget,
            _ => continue,
        };
        ask(world, *id, UnblockExecution { execution_id: *id, holder_id: None, reason })?;
    }
    // Operators review every remaining wait.
    let suspended: Vec<ExecutionId> = world
        .checker
        .live()
        .filter(|(_, _, seen)| seen.phase == LifecyclePhase::Suspended)
        .map(|(id, ..)| *id)
        .collect();
    for id in suspended {
        if world.rng.percent(80) {
            ask(world, id, ResumeExecution::new("ada".to_owned(), id))?;
        } else {
            let (category, reason) = ("refused".to_owned(), "no signal arrives".to_owned());
            ask(world, id, FailSuspension { actor: "ada".to_owned(), category, execution_id: id, reason })?;
        }
    }
    // A replayed member waits for upstreams that were not replayed: it is cancelled.
    for (id, disturbed) in world.checker.stuck_members() {
        require!(20, disturbed, "{id} waits although everything it waits for has ended");
        ask(world, id, CancelExecution::new("ada".to_owned(), id))?;
    }
    if waiting.iter().any(|(_, reason)| *reason == BlockingReason::WaitingForCapableWorker) {
        review(world)?;
    }
    Ok(())
}

fn review(world: &mut World) -> Check {
    for route in world.board.routes() {
        for (lane, ..) in LANES {
            let everybody = vec![WorkerClass { capabilities: all_capabilities(), kinds: None }];
            let mut review = ReviewRoutes::new((*lane).to_owned(), 64, NAMESPACE.to_owned(), everybody);
            for _ in 0..ROUNDS_MAX {
                let Reply::ReviewRoutes(ReviewRoutesReply::Reviewed { next_cursor, .. }) =
                    call(world, route, review.clone())?
                else {
                    unreachable!("replies fit their requests")
                };
                review.cursor = next_cursor;
                if next_cursor.is_none() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Takes and completes all work of a lane in a partition; work that needs admission through grants.
fn work(world: &mut World, route: Route, lane: &str) -> Check {
    for _ in 0..ROUNDS_MAX {
        let claim = ClaimExecutions {
            capabilities: all_capabilities(),
            kinds: None,
            attempt_ids: (0..8).map(|_| AttemptId::from_uuid(world.rng.uuid())).collect(),
            instance: "last-worker".to_owned(),
            lane: lane.to_owned(),
            lease_ids: (0..8).map(|_| LeaseId::from_uuid(world.rng.uuid())).collect(),
            lease_ttl_ms: LEASE_TTL_MS_MAX,
            max: 8,
            namespace: NAMESPACE.to_owned(),
            worker_id: "pool".to_owned(),
        };
        let Reply::ClaimExecutions(ClaimExecutionsReply::Claimed { mut tasks, next_score, .. }) =
            call(world, route, claim)?
        else {
            return Err(Violation::liveness(format!("a claim in lane {lane} was neither refused nor served")));
        };
        let issue = IssueGrants {
            capabilities: all_capabilities(),
            kinds: None,
            grant_ids: (0..4).map(|_| world.rng.uuid()).collect(),
            instance: "last-worker".to_owned(),
            lane: lane.to_owned(),
            max: 4,
            namespace: NAMESPACE.to_owned(),
            lease_ids: None,
            ttl_ms: 1_000,
        };
        let mut granted = 0;
        if let Reply::IssueGrants(IssueGrantsReply::Granted { grants, .. }) = call(world, route, issue)? {
            granted = grants.len();
            for (grant, keep) in admitted(world, grants)? {
                let consume = ConsumeGrant {
                    keep: (!keep.is_empty()).then_some(keep),
                    attempt_id: AttemptId::from_uuid(world.rng.uuid()),
                    capabilities: all_capabilities(),
                    kinds: None,
                    execution_id: grant.execution_id,
                    grant_id: grant.grant_id,
                    instance: "last-worker".to_owned(),
                    lease_id: LeaseId::from_uuid(world.rng.uuid()),
                    lease_ttl_ms: LEASE_TTL_MS_MAX,
                    worker_id: "pool".to_owned(),
                };
                if let Reply::ConsumeGrant(ConsumeGrantReply::Claimed { task }) =
                    ask(world, grant.execution_id, consume)?
                {
                    tasks.push(task);
                }
            }
        }
        let idle = tasks.is_empty() && granted == 0 && next_score.is_none();
        for task in tasks {
            let fence = Fence { attempt_id: task.attempt_id, lease_id: task.lease_id, lease_epoch: task.lease_epoch };
            let id = task.execution_id;
            // Another one of these may have won a race against it, or ended its parent.
            let open = world.checker.live().any(|(live, _, seen)| *live == id && seen.lease.is_some());
            if open {
                ask(world, id, CompleteExecution::new(id, fence))?;
            }
        }
        if idle {
            return Ok(());
        }
    }
    Err(Violation::liveness(format!("lane {lane} of {route} never runs dry")))
}

/// Grants that may start, with the sets they keep while suspended.
fn admitted(world: &mut World, grants: Vec<Grant>) -> Result<Vec<(Grant, Vec<String>)>, Violation> {
    let free = |grant: &Grant| !world.board.limits.on || !needs_admission(grant);
    let (free, asking): (Vec<Grant>, Vec<Grant>) = grants.into_iter().partition(free);
    let mut may: Vec<(Grant, Vec<String>)> = free.into_iter().map(|grant| (grant, Vec::new())).collect();
    let mut batch = Batch::new(asking);
    while let Some((route, request)) = batch.next() {
        let outcome = world.execute(route, &request, "settle", None)?;
        batch.note(&request, &outcome);
    }
    for (grant, decision) in batch.conclude() {
        match decision {
            Decision::Start { keep } => may.push((grant, keep)),
            Decision::Block(block) => drop(ask(world, grant.execution_id, block)?),
            Decision::GiveBack => {
                return Err(Violation::liveness(format!("the admission of {} was not decided", grant.execution_id)));
            }
        }
    }
    Ok(may)
}

fn drain_outbox(world: &mut World) -> Check {
    let Reply::ReadOutbox(ReadOutboxReply::Effects { items }) = call(world, Route::Fleet, ReadOutbox::new(1000))?
    else {
        unreachable!("replies fit their requests")
    };
    for effect in &items {
        for route in world.board.routes() {
            loop {
                let drain = DrainLeases {
                    actor: effect.data["actor"].clone(),
                    instance: effect.data["instance"].clone(),
                    limit: 64,
                    revoke: effect.r#type == "revoke_leases",
                };
                if let Reply::DrainLeases(DrainLeasesReply::Drained { more: false, .. }) = call(world, route, drain)? {
                    break;
                }
            }
        }
    }
    if !items.is_empty() {
        let ids = items.into_iter().map(|effect| effect.id).collect();
        call(world, Route::Fleet, AckOutbox { ids })?;
    }
    Ok(())
}

/// Lets every retention, key and registration expire, then checks what is left.
fn retire_all(world: &mut World) -> Check {
    limits::pay_all(world)?;
    let routes: Vec<Route> = world.board.routes().chain([Route::Fleet, Route::Quota(0), Route::Budget(0)]).collect();
    for _ in 0..ROUNDS_MAX {
        let mut next: Option<i64> = None;
        for route in &routes {
            if let Some(at) = world.store.next_due(*route)? {
                next = Some(next.map_or(at, |known| known.max(at)));
            }
        }
        let Some(next) = next else {
            break;
        };
        world.now = world.now.max(next);
        for route in &routes {
            fire(world, *route)?;
        }
    }
    review(world)?;
    world.check_deeply()?;
    deliver_all(world)?;
    for _ in 0..world.checker.unsealed_flows() {
        world.count("reached", "unsealed flow removed");
    }
    require!(37, world.checker.live().next().is_none(), "executions outlive their retention");
    world.checker.nothing_left(&world.store.dump()?)
}

/// Delivers all owed webhooks, which outlive their executions.
fn deliver_all(world: &mut World) -> Check {
    for route in world.board.routes() {
        for _ in 0..ROUNDS_MAX {
            let take = TakeWebhooks { each: 64, in_flight: [].into(), limit: 64 };
            let Reply::TakeWebhooks(TakeWebhooksReply::Taken { items, more, held, next_at, .. }) =
                call(world, route, take)?
            else {
                unreachable!("replies fit their requests")
            };
            for webhook in &items {
                let note = NoteWebhook::new(webhook.delivery_id, 500, WebhookResult::Delivered, webhook.tries);
                call(world, route, note)?;
            }
            // A taken webhook counts as due later, until its outcome is reported.
            match next_at {
                _ if more || held || !items.is_empty() => {}
                Some(at) => world.now = world.now.max(at),
                None => break,
            }
        }
    }
    Ok(())
}
