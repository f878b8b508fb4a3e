//! The checker's knowledge of flows: members and edges, the edges that each outcome met, and the consistency of a whole
//! flow.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::*;

use super::{Check, Checker, Step, Violation, require};
use crate::request::{Outcome as CallOutcome, Request};
use crate::store::Store;

/// An unsealed flow is removed after this time without an addition.
const UNSEALED_MS_MAX: i64 = 600_000;

/// A member that is still hidden.
pub(crate) struct Hidden {
    pub flow_id: FlowId,
    pub submission: Submission,
    pub made_at: i64,
}

/// One flow.
pub(crate) struct Book {
    pub partition: u16,
    pub deadline_at: Option<i64>,
    /// The budgets shared by its members.
    pub budgets: Vec<BudgetRef>,
    pub members: BTreeMap<ExecutionId, Option<Inbound>>,
    pub edges: Vec<Edge>,
    /// Edges that an outcome of their upstream has ever met.
    met: BTreeSet<(ExecutionId, ExecutionId)>,
    /// The last outcome of each member. A member that runs again has none.
    outcomes: BTreeMap<ExecutionId, Outcome>,
    /// Members that have ever run.
    ran: BTreeSet<ExecutionId>,
    /// The time of the last addition.
    touched: i64,
    /// A member ran again, or edges were added after an outcome. So the state does not follow from the last outcomes
    /// alone.
    pub disturbed: bool,
    /// The last description; `None` once it is removed or about to be.
    pub seen: Option<Flow>,
    /// Since when its walk is due.
    walk_at: i64,
    /// It was not sealed in time: its members are removed, a few at a time.
    removing: bool,
    pub vanished: bool,
}

impl Book {
    pub fn is_stopped(&self) -> bool {
        self.seen.as_ref().is_some_and(|flow| flow.stop.is_some())
    }

    fn into(&self, id: ExecutionId) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.to == id)
    }

    /// The number of edges that must be met, and the number of all edges.
    fn needed(&self, id: ExecutionId) -> (usize, usize) {
        let total = self.into(id).count();
        let inbound = self.members.get(&id).and_then(Option::as_ref);
        let needed = match inbound.map(|inbound| (inbound.policy, inbound.k)) {
            None | Some((InboundPolicy::AllOf, _)) => total,
            Some((InboundPolicy::AnyOf, _)) => total.min(1),
            Some((InboundPolicy::Quorum, k)) => k.unwrap_or(0) as usize,
        };
        (needed, total)
    }

    /// True if enough edges of the member are met.
    pub fn may_run(&self, id: ExecutionId) -> bool {
        let met = self.into(id).filter(|edge| self.met.contains(&(edge.from, edge.to))).count();
        met >= self.needed(id).0
    }

    /// True if too many upstreams have ended without meeting their edge.
    pub fn is_impossible(&self, id: ExecutionId) -> bool {
        let dead = self
            .into(id)
            .filter(|edge| self.outcomes.get(&edge.from).is_some_and(|outcome| !meets(edge.on, *outcome)))
            .count();
        let (needed, total) = self.needed(id);
        total - dead < needed
    }

    /// True if nothing that a member waits for can happen without an action from outside.
    pub fn is_stuck(&self, id: ExecutionId) -> bool {
        self.into(id).all(|edge| self.outcomes.contains_key(&edge.from))
    }

    /// True if a member with an edge from this one is satisfied and no longer needs it.
    pub fn is_spare(&self, id: ExecutionId) -> bool {
        self.edges.iter().filter(|edge| edge.from == id).any(|edge| {
            let inbound = self.members.get(&edge.to).and_then(Option::as_ref);
            inbound.is_some_and(|inbound| inbound.on_satisfied == Some(OnSatisfied::CancelRemaining))
                && self.may_run(edge.to)
        })
    }

    /// A failure that is not handled, and can no longer be.
    fn is_uncaught(&self, id: ExecutionId) -> bool {
        matches!(self.outcomes.get(&id), Some(Outcome::Failed | Outcome::Expired))
            && !self.edges.iter().filter(|edge| edge.from == id).any(|edge| {
                let inbound = self.members.get(&edge.to).and_then(Option::as_ref);
                let race = inbound.is_some_and(|inbound| inbound.policy != InboundPolicy::AllOf);
                let hopeful = self.outcomes.get(&edge.to) != Some(&Outcome::Skipped);
                edge.on != EdgeOn::Success || (race && hopeful)
            })
    }

    fn succeeds(&self, policy: OnMemberFailure) -> bool {
        let uncaught = self.members.keys().any(|id| self.is_uncaught(*id));
        let good_sink = self.members.keys().any(|id| {
            self.outcomes.get(id) == Some(&Outcome::Success) && !self.edges.iter().any(|edge| edge.from == *id)
        });
        !uncaught || (policy == OnMemberFailure::IsolateBranch && good_sink)
    }

    /// When the flow's timer is due, according to its fields.
    fn wake_at(&self) -> Option<i64> {
        if self.removing {
            return Some(self.walk_at);
        }
        let seen = self.seen.as_ref()?;
        if seen.walk.is_some() {
            return Some(self.walk_at);
        }
        match (seen.finished_at, seen.sealed_at) {
            (Some(ended), _) => (seen.members == 0).then_some(ended + seen.retention_ms),
            (None, None) => Some(self.touched + UNSEALED_MS_MAX),
            (None, Some(_)) => None,
        }
    }

    fn is_acyclic(&self) -> bool {
        let mut left: BTreeSet<ExecutionId> = self.members.keys().copied().collect();
        loop {
            let free: Vec<ExecutionId> =
                left.iter().copied().filter(|id| !self.into(*id).any(|edge| left.contains(&edge.from))).collect();
            if free.is_empty() {
                return left.is_empty();
            }
            free.iter().for_each(|id| {
                left.remove(id);
            });
        }
    }
}

fn meets(on: EdgeOn, outcome: Outcome) -> bool {
    match on {
        EdgeOn::Success => outcome == Outcome::Success,
        EdgeOn::Failure => matches!(outcome, Outcome::Failed | Outcome::Expired),
        EdgeOn::Completion => outcome != Outcome::Skipped,
    }
}

/// The outcome in an event.
pub(super) fn outcome_of(kind: &str) -> Option<Outcome> {
    Some(match kind {
        "execution.completed" => Outcome::Success,
        "execution.failed" => Outcome::Failed,
        "execution.cancelled" => Outcome::Cancelled,
        "execution.expired" => Outcome::Expired,
        "execution.skipped" => Outcome::Skipped,
        _ => return None,
    })
}

impl Checker {
    /// The flow of an execution.
    pub(super) fn book_of(&self, seen: &Execution) -> Option<&Book> {
        self.flows.get(&seen.flow_id?)
    }

    /// True if the flow was stopped before this event of the call.
    pub(super) fn stopped_before(&self, flow_id: FlowId, step: &Step<'_>, event: &Event) -> bool {
        let mut stopped = self.flows.get(&flow_id).is_some_and(Book::is_stopped);
        for earlier in step.events.iter().take_while(|earlier| !std::ptr::eq(*earlier, event)) {
            if earlier.flow_id == Some(flow_id) && earlier.execution_id.is_none() {
                match earlier.r#type.as_str() {
                    "flow.cancelled" | "flow.failed" => stopped = true,
                    "flow.reopened" => stopped = false,
                    _ => {}
                }
            }
        }
        stopped
    }

    /// Records the members and edges that a call may have added, before its events are checked.
    pub(super) fn enter_members(&mut self, step: &Step<'_>, store: &Store) -> Check {
        let (flow_id, added) = match step.request {
            Request::SubmitFlow(call) => (call.flow.flow_id, &call.members[..]),
            Request::AddMembers(call) => (call.flow_id, &call.members[..]),
            Request::AddEdges(call) => (call.flow_id, &[][..]),
            _ => return Ok(()),
        };
        if !step.outcome.committed() {
            return Ok(());
        }
        let created = step.events.iter().any(|event| event.r#type == "flow.created" && event.flow_id == Some(flow_id));
        if created {
            let Request::SubmitFlow(SubmitFlow { flow, .. }) = step.request else {
                return Err(Violation::new(41, format!("{} created {flow_id}", step.request.name())));
            };
            require!(
                12,
                self.flows.get(&flow_id).is_none_or(|book| book.seen.is_none()),
                "{flow_id} was created twice"
            );
            let book = Book {
                partition: step.partition(),
                budgets: flow.budgets.clone().unwrap_or_default(),
                deadline_at: flow.deadline_at.or(flow.deadline_ms.map(|ms| step.now + ms)),
                members: BTreeMap::new(),
                edges: Vec::new(),
                met: BTreeSet::new(),
                outcomes: BTreeMap::new(),
                ran: BTreeSet::new(),
                touched: step.now,
                disturbed: false,
                seen: None,
                walk_at: step.now,
                removing: false,
                vanished: false,
            };
            self.flows.insert(flow_id, book);
        }
        let Some(page) = store.read_flow(flow_id)? else {
            return Ok(());
        };
        let Some(book) = self.flows.get_mut(&flow_id) else {
            return Err(Violation::new(8, format!("{flow_id} exists but was never submitted")));
        };
        for member in &page.members {
            if book.members.contains_key(&member.execution_id) {
                continue;
            }
            let new = added.iter().find(|new| new.submission.execution_id == member.execution_id);
            let Some(new) = new.filter(|new| new.key == member.key) else {
                return Err(Violation::new(8, format!("{flow_id} has a member that was never added: {}", member.key)));
            };
            book.members.insert(member.execution_id, new.inbound);
            let hidden = Hidden { flow_id, submission: new.submission.clone(), made_at: step.now };
            self.hidden.insert(member.execution_id, hidden);
        }
        let known: BTreeSet<(ExecutionId, ExecutionId)> = book.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        for edge in page.edges.iter().filter(|edge| !known.contains(&(edge.from, edge.to))) {
            if let Some(outcome) = book.outcomes.get(&edge.from)
                && meets(edge.on, *outcome)
            {
                book.met.insert((edge.from, edge.to));
            }
        }
        let grew = page.edges.len() != book.edges.len();
        book.edges = page.edges;
        require!(22, book.is_acyclic(), "the edges of {flow_id} go around");
        match step.outcome {
            CallOutcome::Reply(_) if created || !matches!(step.request, Request::SubmitFlow(_)) => {
                book.touched = step.now;
            }
            // The call's outcome is unknown to its caller; the timer tells.
            CallOutcome::Failed(_) if grew || created => book.touched = step.now,
            CallOutcome::Failed(_) => {
                if let Some(at) = store.flow_timer(step.route, flow_id)? {
                    let touched = at - UNSEALED_MS_MAX;
                    book.touched = if touched == step.now { step.now } else { book.touched };
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Records how members ended, before the events of the call are checked one by one.
    pub(super) fn note_outcomes(&mut self, step: &Step<'_>) -> Check {
        for event in step.events {
            let (Some(flow_id), Some(id)) = (event.flow_id, event.execution_id) else {
                continue;
            };
            let Some(book) = self.flows.get_mut(&flow_id) else {
                return Err(Violation::new(8, format!("{} in {flow_id}, which was never submitted", event.r#type)));
            };
            let kind = event.r#type.as_str();
            if let Some(outcome) = outcome_of(kind) {
                book.outcomes.insert(id, outcome);
                let met: Vec<_> = book.edges.iter().filter(|e| e.from == id && meets(e.on, outcome)).collect();
                book.met.extend(met.into_iter().map(|edge| (edge.from, edge.to)));
            }
            match kind {
                "execution.replayed" | "execution.reopened" => {
                    book.outcomes.remove(&id);
                    book.disturbed = true;
                }
                "execution.started" => {
                    book.ran.insert(id);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads again what a call may have changed beyond the named execution: the flows of its partition, parents and
    /// children.
    pub(super) fn refresh(&mut self, step: &Step<'_>, store: &Store) -> Check {
        if !step.outcome.committed() {
            return Ok(());
        }
        let partition = step.partition();
        if let Some(flow_id) = step.request.flow()
            && let Some(book) = self.flows.get_mut(&flow_id)
            && book.seen.is_none()
        {
            book.seen = store.describe_flow(flow_id)?;
            book.walk_at = step.now;
            self.check_flow(step, flow_id)?;
        }
        let removed: Vec<FlowId> = self
            .flows
            .iter()
            .filter(|(_, book)| book.partition == partition && book.removing)
            .map(|(id, _)| *id)
            .collect();
        for flow_id in removed {
            self.forget_removed(step, store, flow_id)?;
        }
        let live: Vec<FlowId> = self
            .flows
            .iter()
            .filter(|(_, book)| book.partition == partition && book.seen.is_some())
            .map(|(id, _)| *id)
            .collect();
        for flow_id in live {
            self.refresh_flow(step, store, flow_id)?;
        }
        let parents: Vec<ExecutionId> =
            self.live_in(partition).filter(|(_, _, seen)| seen.children > 0).map(|(id, ..)| *id).collect();
        for id in parents {
            let changed = self.refresh_execution(step, store, id)?;
            let emitted = step.events.iter().any(|event| event.execution_id == Some(id));
            // Any later call may pay what an ended parent owes its children.
            let over = self.seen(&id).is_some_and(|seen| seen.phase == LifecyclePhase::Terminal);
            let again = self.seen(&id).is_some_and(|seen| seen.replay_count > 0);
            if changed || emitted || over || again {
                let children: Vec<ExecutionId> =
                    self.live_in(partition).filter(|(.., s)| s.parent_id == Some(id)).map(|(id, ..)| *id).collect();
                for child in children {
                    self.refresh_execution(step, store, child)?;
                }
            }
            self.check_parent(id)?;
        }
        for event in step.events.iter().filter(|event| event.r#type == "execution.retired") {
            let id = event.execution_id.expect("an execution was retired");
            let flow = event.flow_id.and_then(|flow_id| self.flows.get(&flow_id)?.seen.as_ref());
            let over = flow.is_none_or(|flow| flow.finished_at.is_some());
            require!(15, over, "{id} was retired although its flow is not over");
        }
        Ok(())
    }

    fn refresh_flow(&mut self, step: &Step<'_>, store: &Store, flow_id: FlowId) -> Check {
        let found = store.describe_flow(flow_id)?;
        let book = self.flows.get_mut(&flow_id).expect("it is live");
        let before = std::mem::replace(&mut book.seen, found);
        let before = before.expect("it is live");
        // A flow that ran again and ended again in one call starts the same walk again.
        let anew = step.events.iter().any(|event| event.flow_id == Some(flow_id) && event.execution_id.is_none());
        if anew || book.seen.as_ref().is_none_or(|seen| seen.walk != before.walk) {
            book.walk_at = step.now;
        }
        // The timers of members that were to be retired are removed without a change of the restarted flow.
        if book.seen.as_ref() == Some(&before) && before.walk.is_none() && !book.disturbed {
            return Ok(());
        }
        if before.sealed_at.is_none() && book.seen.is_none() {
            let due = book.touched + UNSEALED_MS_MAX;
            require!(15, due <= step.now, "{flow_id} was removed at {}, members may be added until {due}", step.now);
            (book.removing, book.vanished) = (true, true);
            return self.forget_removed(step, store, flow_id);
        }
        let ids: Vec<ExecutionId> = self.flows[&flow_id].members.keys().copied().collect();
        let stopped = self.flows[&flow_id].is_stopped();
        for id in ids {
            if self.seen(&id).is_some() {
                self.refresh_execution(step, store, id)?;
            }
            if let Some(shadow) = self.executions.get_mut(&id) {
                shadow.stopped = stopped;
            }
        }
        self.check_flow(step, flow_id)
    }

    /// Members of a flow that was never sealed are removed without an event.
    fn forget_removed(&mut self, step: &Step<'_>, store: &Store, flow_id: FlowId) -> Check {
        let tag = step.route.tag().expect("partitions have tags");
        let dump = store.dump()?;
        self.hidden.retain(|id, hidden| hidden.flow_id != flow_id || dump.contains_key(&format!("ff:exec:{tag}:{id}")));
        let left = dump.contains_key(&format!("ff:flow:{tag}:{flow_id}:core"));
        self.flows.get_mut(&flow_id).expect("it is being removed").removing = left;
        if left { Ok(()) } else { self.check_flow(step, flow_id) }
    }

    /// Records changes of a record without an event. Returns whether there were any.
    fn refresh_execution(&mut self, step: &Step<'_>, store: &Store, id: ExecutionId) -> Result<bool, Violation> {
        let after = store.describe(id)?;
        let Some(before) = self.seen(&id) else {
            return Ok(false);
        };
        let Some(after) = after else {
            return Err(Violation::new(8, format!("{} removed {id} without an event", step.request.name())));
        };
        if *before == after {
            return Ok(false);
        }
        require!(
            41,
            quietly_same(before, &after),
            "{} changed {id} without an event: {}",
            step.request.name(),
            super::shadow::diff(Some(before), Some(&after))
        );
        self.executions.get_mut(&id).expect("it was seen").seen = Some(after);
        Ok(true)
    }

    /// A parent counts its open children, and is kept at least as long as each of them.
    fn check_parent(&self, id: ExecutionId) -> Check {
        let Some(parent) = self.seen(&id) else {
            return Ok(());
        };
        let mut open = 0;
        for (child, _, seen) in self.live().filter(|(.., seen)| seen.parent_id == Some(id)) {
            let ended = seen.phase == LifecyclePhase::Terminal;
            open += i64::from(!ended);
            if ended && parent.phase != LifecyclePhase::Terminal && parent.replay_count == 0 {
                require!(15, seen.retire_at.is_none(), "{child} retires while its parent {id} is {}", parent.phase);
            }
        }
        require!(21, open == parent.children_open, "{id} counts {} open children, {open} are", parent.children_open);
        Ok(())
    }

    /// What holds for a flow after every call that changed it.
    fn check_flow(&self, step: &Step<'_>, flow_id: FlowId) -> Check {
        let book = &self.flows[&flow_id];
        let Some(seen) = &book.seen else {
            let left = book.members.keys().find(|id| self.seen(id).is_some() || self.hidden.contains_key(id));
            require!(37, left.is_none(), "{flow_id} is gone and its member {left:?} is not");
            return Ok(());
        };
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        let mut open = 0;
        for id in book.members.keys() {
            let state = if self.hidden.contains_key(id) {
                open += 1;
                MemberState::Held.as_str()
            } else if let Some(member) = self.seen(id) {
                open += i64::from(member.phase != LifecyclePhase::Terminal);
                // If a flow runs again, the timers of its members notice that by themselves.
                let kept = member.retire_at.is_none() || seen.finished_at.is_some() || book.disturbed;
                require!(15, kept, "{id} retires although its flow {flow_id} is {}", seen.state.as_str());
                member.state.as_str()
            } else {
                continue;
            };
            *counts.entry(state).or_default() += 1;
        }
        let told: BTreeMap<&str, i64> = seen.counts.iter().map(|(state, count)| (state.as_str(), *count)).collect();
        require!(21, told == counts, "{flow_id} counts {told:?}, its members are {counts:?}");
        let idle = seen.walk.is_none() && seen.owed == 0;
        let over = seen.finished_at.is_some();
        require!(
            21,
            over || seen.sealed_at.is_none() || !idle || open > 0,
            "{flow_id} is {} although its members have ended",
            seen.state.as_str()
        );
        if let Some(stop) = &seen.stop {
            let lets_run = stop.policy != CancelPolicy::CancelAll;
            let runs = |id: &ExecutionId| self.seen(id).is_some_and(|s| s.phase == LifecyclePhase::Active);
            let left = book.members.keys().find(|id| {
                let ended = self.seen(id).is_none_or(|seen| seen.phase == LifecyclePhase::Terminal);
                // A member that gave up its lease since is cancelled by its timer, at once.
                let about_to = self.executions.get(id).is_some_and(|s| s.cancel_by.is_some_and(|at| at <= step.now));
                !(ended || about_to || lets_run && runs(id))
            });
            require!(
                17,
                left.is_none() || seen.walk.as_deref() == Some("cancel"),
                "{flow_id} is {} and its member {left:?} goes on",
                seen.state.as_str()
            );
        }
        Ok(())
    }

    /// The worker of a member gets the true outcomes of its upstreams.
    pub(super) fn check_passed(&self, task: &Task) -> Check {
        let id = task.execution_id;
        let Some(book) = task.flow_id.and_then(|flow_id| self.flows.get(&flow_id)) else {
            require!(23, task.passed.is_none(), "{id} is in no flow and was passed something");
            return Ok(());
        };
        let none = BTreeMap::new();
        let passed = task.passed.as_ref().unwrap_or(&none);
        for (name, value) in passed {
            let edge = book.into(id).find(|edge| edge.pass_as.as_ref() == Some(name));
            require!(
                23,
                edge.is_some_and(|edge| edge.from == value.execution_id),
                "{id} was passed {name} from {}, the edge is {edge:?}",
                value.execution_id
            );
            let up = self.seen(&value.execution_id);
            let same = up.is_some_and(|up| {
                up.result == value.value && up.outcome == Some(value.outcome) && up.failure == value.failure
            });
            require!(23, same, "{id} was passed {name}, which is not what {} ended with", value.execution_id);
        }
        // An end that has not reached all its edges is owed.
        let settled = !book.disturbed && book.seen.as_ref().is_some_and(|flow| flow.owed == 0);
        for edge in book.into(id) {
            let ended = book.outcomes.get(&edge.from).is_some_and(|outcome| meets(edge.on, *outcome));
            if let Some(name) = &edge.pass_as
                && ended
                && settled
            {
                require!(23, passed.contains_key(name), "{id} was not passed {name} of {}", edge.from);
            }
        }
        Ok(())
    }

    /// When the timers of a partition's flows are due.
    pub(super) fn flow_wakes(&self, partition: u16) -> impl Iterator<Item = (i64, FlowId)> {
        self.flows
            .iter()
            .filter(move |(_, book)| book.partition == partition)
            .filter_map(move |(id, book)| Some((book.wake_at()?, *id)))
    }

    /// What flows owe their members after a call: names of walks, and debts.
    pub fn unpaid(&self) -> Vec<&'static str> {
        let seen = self.flows.values().filter_map(|book| book.seen.as_ref());
        let mut unpaid = Vec::new();
        for flow in seen {
            if flow.owed > 0 {
                unpaid.push("debt");
            }
            match flow.walk.as_deref() {
                Some("cancel") => unpaid.push("cancel walk"),
                Some("release") => unpaid.push("release walk"),
                _ => {}
            }
        }
        unpaid
    }

    /// Number of flows that were removed because they were not sealed.
    pub fn unsealed_flows(&self) -> usize {
        self.flows.values().filter(|book| book.vanished).count()
    }

    /// Members that wait for something that cannot happen. Only an operator's replay can leave such a member.
    pub fn stuck_members(&self) -> Vec<(ExecutionId, bool)> {
        self.live()
            .filter(|(.., seen)| seen.blocking_reason == Some(BlockingReason::WaitingForDependencies))
            .filter_map(|(id, _, seen)| {
                let book = self.book_of(seen)?;
                let idle = book.seen.as_ref().is_some_and(|flow| flow.walk.is_none() && flow.owed == 0);
                (idle && book.is_stuck(*id)).then_some((*id, book.disturbed))
            })
            .collect()
    }

    /// After the faults have stopped and everything has ended: every sealed flow is over, with the outcome that its
    /// members imply.
    pub fn check_quiet_flows(&self) -> Check {
        for (flow_id, book) in &self.flows {
            let Some(seen) = book.seen.as_ref().filter(|seen| seen.sealed_at.is_some()) else {
                continue;
            };
            require!(21, seen.finished_at.is_some(), "{flow_id} is {} and nothing is left to run", seen.state.as_str());
            if book.disturbed || seen.stop.is_some() {
                continue;
            }
            for id in book.members.keys() {
                let ran = book.ran.contains(id);
                let outcome = book.outcomes.get(id);
                require!(18, !ran || book.may_run(*id), "{id} of {flow_id} ran although its edges did not let it");
                if outcome == Some(&Outcome::Skipped) {
                    require!(20, !ran && book.is_impossible(*id), "{id} of {flow_id} was skipped and could have run");
                } else if book.is_impossible(*id) && !book.may_run(*id) {
                    let otherwise = matches!(outcome, Some(Outcome::Cancelled | Outcome::Expired));
                    require!(20, otherwise, "{id} of {flow_id} could not run and ended as {outcome:?}");
                }
            }
            let expected = if book.succeeds(seen.on_member_failure) { FlowState::Completed } else { FlowState::Failed };
            require!(
                21,
                seen.state == expected,
                "{flow_id} ended as {}, its members make it {}",
                seen.state.as_str(),
                expected.as_str()
            );
        }
        Ok(())
    }
}

/// True if only fields differ that other records may change without an event of this execution.
pub(super) fn quietly_same(before: &Execution, after: &Execution) -> bool {
    let mut expected = before.clone();
    expected.updated_at = after.updated_at;
    expected.retire_at = after.retire_at;
    expected.start_by = after.start_by;
    (expected.children, expected.children_open) = (after.children, after.children_open);
    // A replayed child is waited for again from then on.
    expected.blocked_since = after.blocked_since;
    expected == *after
}

/// Whether it belongs to a flow or is related to other executions.
pub(super) fn is_kin(seen: &Execution) -> bool {
    seen.flow_id.is_some() || seen.parent_id.is_some() || seen.children > 0
}
