//! Budgets as plain sums of accepted reports, holds and periods, counted without the library's bookkeeping.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::BudgetId;
use ff_script::generated::*;
use uuid::Uuid;

use super::{Check, require};
use crate::request::{Outcome, Reply, Request};

type Amounts = BTreeMap<String, i64>;

/// One budget.
#[derive(Clone, Debug)]
struct Account {
    parent: Option<BudgetId>,
    limits: Vec<DimensionLimit>,
    used: Amounts,
    on_soft: OnSoft,
    on_hard: OnHard,
    approved: bool,
    interval_ms: Option<i64>,
    next_reset: Option<i64>,
    /// The holds of admitted work, by execution and holder, with its reservations in order.
    holders: BTreeMap<String, (Amounts, Vec<Uuid>)>,
    reservations: BTreeMap<Uuid, Reservation>,
    /// Every accepted report by its key, with its origin.
    reports: BTreeMap<String, Option<String>>,
    /// Completed requests of operators, and released reservations.
    done: BTreeSet<Uuid>,
}

#[derive(Clone, Debug)]
struct Reservation {
    amounts: Amounts,
    ends: Option<i64>,
    member: Option<String>,
}

/// A limit that would be exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wall {
    budget_id: BudgetId,
    dimension: String,
    used: i64,
    limit: i64,
}

/// The expected reply of a call.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Refused(&'static str),
    /// Any reply.
    Done,
    Counted,
    Again {
        same: bool,
    },
    Soft(Wall),
    Hard(Wall),
    Held {
        duplicate: bool,
    },
    /// For each candidate the limit it would exceed, with true for a soft limit.
    Admitted(Vec<Option<(bool, Wall)>>),
}

/// Every budget of the simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    all: BTreeMap<BudgetId, Account>,
    deleted: BTreeSet<BudgetId>,
}

pub(crate) fn member(execution_id: impl ToString, holder_id: Uuid) -> String {
    format!("{}:{holder_id}", execution_id.to_string())
}

fn of(amounts: &Amounts, name: &str) -> i64 {
    amounts.get(name).copied().unwrap_or(0)
}

fn without_zeros(amounts: &Amounts) -> Amounts {
    amounts.iter().filter(|(_, n)| **n != 0).map(|(name, n)| (name.clone(), *n)).collect()
}

impl Account {
    fn roll(&mut self, now: i64) {
        if let (Some(at), Some(every)) = (self.next_reset, self.interval_ms)
            && at <= now
        {
            self.next_reset = Some(at + ((now - at) / every + 1) * every);
            self.start_period();
        }
    }

    fn start_period(&mut self) {
        self.used.values_mut().for_each(|used| *used = 0);
        self.approved = false;
    }

    /// The amount held in this budget itself, by holders and reservations.
    fn held(&self, name: &str) -> i64 {
        let holders = self.holders.values().map(|(amounts, _)| of(amounts, name));
        let reservations = self.reservations.values().map(|reservation| of(&reservation.amounts, name));
        holders.chain(reservations).sum()
    }

    fn drop_reservation(&mut self, id: Uuid) {
        if let Some(gone) = self.reservations.remove(&id)
            && let Some((_, mine)) = gone.member.and_then(|member| self.holders.get_mut(&member))
        {
            mine.retain(|other| *other != id);
        }
    }

    fn drop_holder(&mut self, member: &str) {
        if let Some((_, mine)) = self.holders.remove(member) {
            self.reservations.retain(|id, _| !mine.contains(id));
        }
    }
}

impl Accounts {
    fn path(&self, id: BudgetId) -> Vec<BudgetId> {
        let mut path = Vec::new();
        let mut next = self.all.contains_key(&id).then_some(id);
        while let Some(id) = next {
            path.push(id);
            next = self.all[&id].parent;
        }
        path
    }

    /// The amount held in a budget and below it.
    fn held(&self, id: BudgetId, name: &str) -> i64 {
        let below = self.all.iter().filter(|(_, account)| account.parent == Some(id));
        self.all[&id].held(name) + below.map(|(child, _)| self.held(*child, name)).sum::<i64>()
    }

    fn wall(&self, id: BudgetId, limit: &DimensionLimit, at: i64) -> Wall {
        let used = of(&self.all[&id].used, &limit.name);
        Wall { budget_id: id, dimension: limit.name.clone(), used, limit: at }
    }

    /// The first hard limit up the tree that this amount would exceed; `own` is already held. Without amounts,
    /// something must be left in every budget.
    fn hard(&self, path: &[BudgetId], amounts: Option<&Amounts>, own: &Amounts) -> Option<Wall> {
        for id in path {
            for limit in &self.all[id].limits {
                let Some(hard) = limit.hard else { continue };
                let taken = of(&self.all[id].used, &limit.name) + self.held(*id, &limit.name) - of(own, &limit.name);
                let passes = match amounts {
                    Some(amounts) => !amounts.contains_key(&limit.name) || taken + of(amounts, &limit.name) <= hard,
                    None => taken < hard,
                };
                if !passes {
                    return Some(self.wall(*id, limit, hard));
                }
            }
        }
        None
    }

    fn soft(&self, path: &[BudgetId], unapproved: bool) -> Option<Wall> {
        for id in path {
            let account = &self.all[id];
            if unapproved && (account.on_soft != OnSoft::RequireApproval || account.approved) {
                continue;
            }
            for limit in &account.limits {
                if let Some(soft) = limit.soft.filter(|soft| of(&account.used, &limit.name) >= *soft) {
                    return Some(self.wall(*id, limit, soft));
                }
            }
        }
        None
    }

    fn spend(&mut self, path: &[BudgetId], amounts: &Amounts) -> Answer {
        for id in path {
            let account = self.all.get_mut(id).expect("on its path");
            for (name, n) in amounts {
                if let Some(used) = account.used.get_mut(name) {
                    *used += n;
                }
            }
        }
        self.soft(path, false).map_or(Answer::Counted, Answer::Soft)
    }

    /// Takes a report from the holds of its reporter: first the estimate, then the reservations in order.
    fn consume(&mut self, id: BudgetId, member: Option<&str>, amounts: &Amounts, really: bool) -> Amounts {
        let account = self.all.get_mut(&id).expect("on its path");
        let mut own = Amounts::new();
        let Some((estimate, mine)) = member.and_then(|member| account.holders.get_mut(member)) else { return own };
        let mut take = |hold: &mut Amounts| {
            for (name, n) in amounts {
                let part = of(hold, name).min(n - of(&own, name));
                if part > 0 {
                    *own.entry(name.clone()).or_default() += part;
                    if really {
                        *hold.get_mut(name).expect("it holds some") -= part;
                    }
                }
            }
        };
        take(estimate);
        for id in mine {
            take(&mut account.reservations.get_mut(id).expect("its holder knows it").amounts);
        }
        own
    }

    /// Applies a call at a time, and returns the expected reply.
    fn expect(&mut self, request: &Request, now: i64) -> Answer {
        if let Request::CreateBudget(call) = request {
            return self.create(&call.budget, now);
        }
        if matches!(request, Request::FireDue(_)) {
            return self.fire(now);
        }
        let Some(id) = budget_of(request) else { return Answer::Done };
        let path = self.path(id);
        if path.is_empty() {
            let harmless = matches!(request, Request::ReleaseBudget(_) | Request::AcknowledgeCleared(_))
                || (matches!(request, Request::DeleteBudget(_)) && self.deleted.contains(&id));
            return if harmless { Answer::Done } else { Answer::Refused("budget_not_found") };
        }
        if let Request::DeleteBudget(_) = request {
            return self.delete(id);
        }
        if matches!(request, Request::AcknowledgeCleared(_) | Request::GetBudget(_)) {
            return Answer::Done;
        }
        for id in &path {
            self.all.get_mut(id).expect("on its path").roll(now);
        }
        let account = self.all.get_mut(&id).expect("the path starts at this budget");
        match request {
            Request::ChangeBudget(call) => {
                for limit in &mut account.limits {
                    if let Some(wanted) = call.limits.iter().find(|wanted| wanted.name == limit.name) {
                        *limit = wanted.clone();
                    }
                }
                account.on_soft = call.on_soft.unwrap_or(account.on_soft);
                account.on_hard = call.on_hard.unwrap_or(account.on_hard);
                Answer::Done
            }
            Request::ResetBudget(call) => {
                if call.request_id.is_none_or(|id| account.done.insert(id)) {
                    account.start_period();
                }
                Answer::Done
            }
            Request::ApproveBudget(_) => {
                account.approved = true;
                Answer::Done
            }
            Request::CorrectBudget(call) => {
                if call.request_id.is_some_and(|id| account.done.contains(&id)) {
                    return Answer::Done;
                }
                if of(&account.used, &call.dimension) + call.delta < 0 {
                    return Answer::Refused("invalid_argument");
                }
                account.done.extend(call.request_id);
                for id in &path {
                    let used = self.all.get_mut(id).and_then(|account| account.used.get_mut(&call.dimension));
                    if let Some(used) = used {
                        *used = (*used + call.delta).max(0);
                    }
                }
                Answer::Done
            }
            Request::AdmitBudget(call) => {
                Answer::Admitted(call.candidates.iter().map(|candidate| self.admit(&path, candidate)).collect())
            }
            Request::ReleaseBudget(call) => {
                for holder in &call.holders {
                    account.drop_holder(&member(holder.execution_id, holder.holder_id));
                }
                Answer::Done
            }
            Request::ReserveBudget(call) => self.reserve(&path, call, now),
            Request::SettleReservation(call) => self.settle(&path, call),
            Request::ReleaseReservation(call) => {
                if !account.reservations.contains_key(&call.reservation_id) {
                    let again = account.done.contains(&call.reservation_id);
                    return if again { Answer::Done } else { Answer::Refused("reservation_not_found") };
                }
                account.done.insert(call.reservation_id);
                account.drop_reservation(call.reservation_id);
                Answer::Done
            }
            Request::ApplyUsage(call) => self.apply(&path, &call.report),
            _ => Answer::Done,
        }
    }

    fn create(&mut self, new: &NewBudget, now: i64) -> Answer {
        let mut limits = new.dimensions.clone();
        limits.sort_by(|a, b| a.name.cmp(&b.name));
        let account = Account {
            parent: new.parent,
            used: limits.iter().map(|limit| (limit.name.clone(), 0)).collect(),
            limits,
            on_soft: new.on_soft,
            on_hard: new.on_hard,
            approved: false,
            interval_ms: new.reset.interval_ms,
            next_reset: new.reset.interval_ms.map(|every| now + every),
            holders: BTreeMap::new(),
            reservations: BTreeMap::new(),
            reports: BTreeMap::new(),
            done: BTreeSet::new(),
        };
        self.deleted.remove(&new.budget_id);
        self.all.insert(new.budget_id, account);
        Answer::Done
    }

    fn delete(&mut self, id: BudgetId) -> Answer {
        let account = &self.all[&id];
        let children = self.all.values().any(|other| other.parent == Some(id));
        if children || !account.holders.is_empty() || !account.reservations.is_empty() {
            return Answer::Refused("budget_in_use");
        }
        self.all.remove(&id);
        self.deleted.insert(id);
        Answer::Done
    }

    fn fire(&mut self, now: i64) -> Answer {
        for account in self.all.values_mut() {
            account.roll(now);
            let over = account.reservations.iter().filter(|(_, r)| r.ends.is_some_and(|at| at <= now));
            for id in over.map(|(id, _)| *id).collect::<Vec<_>>() {
                account.drop_reservation(id);
            }
        }
        Answer::Done
    }

    fn admit(&mut self, path: &[BudgetId], candidate: &BudgetCandidate) -> Option<(bool, Wall)> {
        let member = member(candidate.execution_id, candidate.holder_id);
        if self.all[&path[0]].holders.contains_key(&member) {
            return None;
        }
        let estimate = candidate.estimate.clone().unwrap_or_default();
        let amounts = Some(&estimate).filter(|estimate| !estimate.is_empty());
        if let Some(wall) = self.hard(path, amounts, &Amounts::new()) {
            return Some((false, wall));
        }
        if let Some(wall) = self.soft(path, true) {
            return Some((true, wall));
        }
        self.all.get_mut(&path[0]).expect("on its path").holders.insert(member, (estimate, Vec::new()));
        None
    }

    fn reserve(&mut self, path: &[BudgetId], call: &ReserveBudget, now: i64) -> Answer {
        let account = &self.all[&path[0]];
        let holder = call.holder.as_ref().map(|holder| member(holder.execution_id, holder.holder_id));
        if let Some(known) = account.reservations.get(&call.reservation_id) {
            let same = known.member == holder && without_zeros(&known.amounts) == without_zeros(&call.dimensions);
            return if same { Answer::Held { duplicate: true } } else { Answer::Refused("idempotency_conflict") };
        }
        if account.reports.contains_key(&format!("reservation:{}", call.reservation_id)) {
            return Answer::Refused("idempotency_conflict");
        }
        if let Some(wall) = self.hard(path, Some(&call.dimensions), &Amounts::new()) {
            return Answer::Hard(wall);
        }
        let account = self.all.get_mut(&path[0]).expect("on its path");
        if let Some(holder) = &holder {
            account.holders.entry(holder.clone()).or_default().1.push(call.reservation_id);
        }
        let ends = call.ttl_ms.map(|ttl| now + ttl);
        let reservation = Reservation { amounts: call.dimensions.clone(), ends, member: holder };
        account.reservations.insert(call.reservation_id, reservation);
        Answer::Held { duplicate: false }
    }

    fn settle(&mut self, path: &[BudgetId], call: &SettleReservation) -> Answer {
        let account = &self.all[&path[0]];
        let key = format!("reservation:{}", call.reservation_id);
        if account.reports.contains_key(&key) {
            return Answer::Again { same: true };
        }
        let Some(held) = account.reservations.get(&call.reservation_id) else {
            return Answer::Refused("reservation_not_found");
        };
        let own = held.amounts.clone();
        if let Some(wall) = self.hard(path, Some(&call.dimensions), &own) {
            return Answer::Hard(wall);
        }
        let account = self.all.get_mut(&path[0]).expect("on its path");
        account.drop_reservation(call.reservation_id);
        account.reports.insert(key, None);
        self.spend(path, &call.dimensions)
    }

    fn apply(&mut self, path: &[BudgetId], report: &UsageReport) -> Answer {
        let key = format!("report:{}", report.dedup_key);
        let origin = report.execution_id.zip(report.sequence).map(|(id, sequence)| format!("{id}:{sequence}"));
        if let Some(known) = self.all[&path[0]].reports.get(&key) {
            return Answer::Again { same: origin.is_some() && *known == origin };
        }
        let member = report.execution_id.zip(report.holder_id).map(|(id, holder)| member(id, holder));
        let own = self.consume(path[0], member.as_deref(), &report.dimensions, false);
        if let Some(wall) = self.hard(path, Some(&report.dimensions), &own) {
            return Answer::Hard(wall);
        }
        self.consume(path[0], member.as_deref(), &report.dimensions, true);
        self.all.get_mut(&path[0]).expect("on its path").reports.insert(key, origin);
        self.spend(path, &report.dimensions)
    }

    /// Checks one call to a partition of budgets.
    pub fn observe(&mut self, request: &Request, outcome: &Outcome, now: i64) -> Check {
        let mut after = self.clone();
        let expected = after.expect(request, now);
        let refused = matches!(expected, Answer::Refused(_));
        let found = match outcome {
            Outcome::Failed(_) => None,
            Outcome::Refused(error) => Some(Err(error.code().to_owned())),
            Outcome::Reply(reply) => Some(Ok(answer_of(reply))),
        };
        let name = request.name();
        match (&expected, &found) {
            (_, None) => {}
            (Answer::Refused(code), Some(Err(found))) if code == found => {}
            (Answer::Done, Some(Ok(_))) => {}
            (expected, Some(Ok(Some(found)))) if expected == found => {}
            (expected, found) => {
                // Something was accepted beyond a limit, counted twice, or not counted.
                let number = match expected {
                    Answer::Hard(_) | Answer::Admitted(_) => 31,
                    _ => 30,
                };
                require!(number, false, "{name} must return {expected:?}, returned {found:?} ({outcome})");
            }
        }
        if outcome.committed() && !refused {
            *self = after;
        }
        Ok(())
    }

    /// Compares a stored budget with the plain count.
    pub fn check(&self, id: BudgetId, stored: Option<&Budget>, now: i64) -> Check {
        let (Some(account), Some(stored)) = (self.all.get(&id), stored) else {
            require!(30, self.all.contains_key(&id) == stored.is_some(), "budget {id} is there or not: {stored:?}");
            return Ok(());
        };
        // A reader sees the period that has begun, whether or not it was written.
        let over = account.next_reset.is_some_and(|at| at <= now);
        for dimension in &stored.dimensions {
            let name = dimension.name.as_str();
            let used = if over { 0 } else { of(&account.used, name) };
            require!(30, dimension.used == used, "{id}: {} {name} used, the reports sum up to {used}", dimension.used);
            let held = self.held(id, name);
            require!(31, dimension.held == held, "{id}: {} {name} held, the holders hold {held}", dimension.held);
        }
        let approved = account.approved && !over;
        require!(42, stored.approved == approved, "{id} is approved: {}, must be {approved}", stored.approved);
        Ok(())
    }

    pub fn ids(&self) -> Vec<BudgetId> {
        self.all.keys().copied().collect()
    }

    /// The action of a budget at a hard breach.
    pub fn on_hard(&self, id: BudgetId) -> Option<OnHard> {
        Some(self.all.get(&id)?.on_hard)
    }

    /// All holders of a budget.
    pub fn holders(&self, id: BudgetId) -> impl Iterator<Item = &str> {
        self.all.get(&id).into_iter().flat_map(|account| account.holders.keys().map(String::as_str))
    }

    pub fn exists(&self, id: BudgetId) -> bool {
        self.all.contains_key(&id)
    }
}

fn budget_of(request: &Request) -> Option<BudgetId> {
    Some(match request {
        Request::ChangeBudget(call) => call.budget_id,
        Request::GetBudget(call) => call.budget_id,
        Request::DeleteBudget(call) => call.budget_id,
        Request::ResetBudget(call) => call.budget_id,
        Request::ApproveBudget(call) => call.budget_id,
        Request::CorrectBudget(call) => call.budget_id,
        Request::AdmitBudget(call) => call.budget_id,
        Request::ReleaseBudget(call) => call.budget_id,
        Request::ReserveBudget(call) => call.budget_id,
        Request::SettleReservation(call) => call.budget_id,
        Request::ReleaseReservation(call) => call.budget_id,
        Request::ApplyUsage(call) => call.budget_id,
        Request::AcknowledgeCleared(call) => call.budget_id,
        _ => return None,
    })
}

fn answer_of(reply: &Reply) -> Option<Answer> {
    let wall = |budget_id: &BudgetId, dimension: &str, used: &i64, limit: &i64| Wall {
        budget_id: *budget_id,
        dimension: dimension.to_owned(),
        used: *used,
        limit: *limit,
    };
    Some(match reply {
        Reply::ApplyUsage(reply) => match reply {
            ApplyUsageReply::Ok => Answer::Counted,
            ApplyUsageReply::AlreadyApplied { same } => Answer::Again { same: *same },
            ApplyUsageReply::SoftBreach { budget_id, dimension, limit, used } => {
                Answer::Soft(wall(budget_id, dimension, used, limit))
            }
            ApplyUsageReply::HardBreach { budget_id, dimension, limit, used, .. } => {
                Answer::Hard(wall(budget_id, dimension, used, limit))
            }
        },
        Reply::SettleReservation(reply) => match reply {
            SettleReservationReply::Ok => Answer::Counted,
            SettleReservationReply::AlreadyApplied => Answer::Again { same: true },
            SettleReservationReply::SoftBreach { budget_id, dimension, limit, used } => {
                Answer::Soft(wall(budget_id, dimension, used, limit))
            }
            SettleReservationReply::HardBreach { budget_id, dimension, limit, used, .. } => {
                Answer::Hard(wall(budget_id, dimension, used, limit))
            }
        },
        Reply::ReserveBudget(ReserveBudgetReply::Reserved { duplicate, .. }) => Answer::Held { duplicate: *duplicate },
        Reply::ReserveBudget(ReserveBudgetReply::HardBreach { budget_id, dimension, limit, used, .. }) => {
            Answer::Hard(wall(budget_id, dimension, used, limit))
        }
        Reply::AdmitBudget(AdmitBudgetReply::Answered { items }) => Answer::Admitted(
            items
                .iter()
                .map(|item| {
                    let wall = Wall {
                        budget_id: item.budget_id?,
                        dimension: item.dimension.clone()?,
                        used: item.used?,
                        limit: item.limit?,
                    };
                    Some((item.refusal == Some(BudgetRefusal::Soft), wall)).filter(|_| !item.admitted)
                })
                .collect(),
        ),
        _ => return None,
    })
}
