//! Quotas as plain logs: the starts and their times, the holders, the weights.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::{ExecutionId, QuotaPolicyId};
use ff_script::generated::*;
use sha1::{Digest, Sha1};

use super::budgets::member;
use super::{Check, require};
use crate::request::{Outcome, Reply, Request};

/// One key of a quota.
#[derive(Clone, Debug, Default)]
struct Line {
    /// All holders: execution and holder.
    inside: Vec<String>,
    /// Every start that was not given back.
    starts: Vec<(String, i64)>,
    /// The time at which a smooth rate allows the next start.
    free_at: i64,
    weights: Vec<(String, i64, i64)>,
    throttled_until: i64,
    /// Every holder that was ever refused.
    refused: BTreeSet<String>,
    /// The latest grant under which each execution was refused.
    asked: BTreeMap<ExecutionId, i64>,
}

#[derive(Clone, Debug)]
struct Policy {
    quota: Quota,
    version: i64,
    deleted: bool,
    lines: BTreeMap<String, Line>,
}

/// Every quota of the simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    all: BTreeMap<QuotaPolicyId, Policy>,
}

/// A part that refuses, with its used amount and its limit.
type Wall = (QuotaPart, i64, i64);

/// The result for a candidate: the set it keeps, or the part that refuses.
type Asked = Result<Option<String>, Option<Wall>>;

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Refused(&'static str),
    Done,
    /// For each candidate: admitted, or the refusing part with its used amount. Empty for a grant that expired.
    Asked(Vec<Asked>),
    Settled(i64),
    Gone,
    Throttled(i64),
    Cleared,
    Put(&'static str),
}

/// The digest of a key.
pub(crate) fn digest(key: &str) -> String {
    Sha1::digest(key).iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

/// The holder set of a key.
pub(crate) fn set_of(quota_id: impl ToString, key: &str) -> String {
    format!("quota:{}:{}", quota_id.to_string(), digest(key))
}

impl Line {
    fn started(&self, rate: &QuotaRate, now: i64) -> i64 {
        self.starts.iter().filter(|(_, at)| *at > now - rate.window_ms).count() as i64
    }

    fn weight(&self, weighted: &QuotaWeights, now: i64) -> i64 {
        self.weights.iter().filter(|(_, at, _)| *at > now - weighted.window_ms).map(|(.., weight)| weight).sum()
    }

    /// The first part that refuses this weight.
    fn refusal(&self, quota: &Quota, weight: i64, now: i64) -> Option<Wall> {
        if self.throttled_until > now {
            return Some((QuotaPart::Throttle, 0, 0));
        }
        if let Some(rate) = &quota.rate {
            let used = self.started(rate, now);
            let passes = match rate.mode {
                RateMode::Sliding => used < rate.limit,
                RateMode::Smooth => self.free_at <= now,
            };
            if !passes {
                return Some((QuotaPart::Rate, used, rate.limit));
            }
        }
        if let Some(cap) = quota.concurrency.filter(|cap| self.inside.len() as i64 >= *cap) {
            return Some((QuotaPart::Concurrency, self.inside.len() as i64, cap));
        }
        if let Some(weighted) = &quota.weighted {
            let used = self.weight(weighted, now);
            if used + weight > weighted.limit {
                return Some((QuotaPart::Weighted, used, weighted.limit));
            }
        }
        None
    }

    fn enter(&mut self, quota: &Quota, who: String, weight: i64, now: i64) {
        if let Some(rate) = &quota.rate {
            self.starts.push((who.clone(), now));
            if rate.mode == RateMode::Smooth {
                self.free_at = now + spacing(rate);
            }
        }
        if quota.weighted.is_some() {
            self.weights.push((who.clone(), now, weight));
        }
        self.inside.push(who);
    }

    fn leave(&mut self, quota: Option<&Quota>, who: &str, unused: bool) {
        let Some(at) = self.inside.iter().position(|other| other == who) else { return };
        self.inside.remove(at);
        let Some(quota) = quota.filter(|_| unused) else { return };
        if let Some(at) = self.starts.iter().position(|(other, _)| other == who) {
            let (_, started) = self.starts.remove(at);
            // Only the last start can be undone, because the spacing of later starts depends on it.
            if let Some(rate) = quota.rate.as_ref().filter(|rate| rate.mode == RateMode::Smooth)
                && self.free_at == started + spacing(rate)
            {
                self.free_at = started;
            }
        }
        self.weights.retain(|(other, ..)| other != who);
    }
}

/// The distance between the starts of a smooth rate.
fn spacing(rate: &QuotaRate) -> i64 {
    (rate.window_ms + rate.limit - 1) / rate.limit
}

impl Policies {
    fn live(&mut self, id: QuotaPolicyId) -> Option<&mut Policy> {
        self.all.get_mut(&id).filter(|policy| !policy.deleted)
    }

    fn expect(&mut self, request: &Request, now: i64, entered: &BTreeSet<String>, found: Option<&Answer>) -> Answer {
        const UNKNOWN: Answer = Answer::Refused("quota_not_found");
        match request {
            Request::PutQuota(call) => self.put(call),
            // Deleted before: a repeated delete is fine.
            Request::DeleteQuota(call) => match self.all.get_mut(&call.quota_id) {
                Some(policy) => {
                    policy.deleted = true;
                    Answer::Done
                }
                None => UNKNOWN,
            },
            Request::AdmitQuota(call) => {
                let Some(policy) = self.live(call.quota_id) else { return UNKNOWN };
                let said = |index: usize| match found {
                    Some(Answer::Asked(items)) => items.get(index),
                    _ => None,
                };
                let asked = call.candidates.iter().enumerate();
                Answer::Asked(asked.map(|(index, c)| policy.ask(c, now, entered, said(index))).collect())
            }
            Request::ReturnQuota(call) => {
                let Some(policy) = self.all.get_mut(&call.quota_id) else { return Answer::Done };
                let quota = Some(&policy.quota).filter(|_| !policy.deleted);
                for item in &call.items {
                    let line = policy.lines.iter_mut().find(|(key, _)| digest(key) == item.key_digest);
                    if let Some((_, line)) = line {
                        line.leave(quota, &member(item.execution_id, item.holder_id), item.unused);
                    }
                }
                Answer::Done
            }
            Request::SettleQuota(call) => {
                let Some(policy) = self.live(call.quota_id) else { return UNKNOWN };
                let (Some(weighted), Some(line)) = (&policy.quota.weighted, policy.lines.get_mut(&call.key)) else {
                    return Answer::Gone;
                };
                let who = member(call.execution_id, call.holder_id);
                let entry =
                    line.weights.iter_mut().find(|(other, at, _)| *other == who && *at > now - weighted.window_ms);
                let Some(entry) = entry else { return Answer::Gone };
                entry.2 = call.weight;
                Answer::Settled(line.weight(weighted, now))
            }
            Request::ThrottleQuota(call) => {
                let Some(policy) = self.live(call.quota_id) else { return UNKNOWN };
                let line = policy.lines.entry(call.key.clone()).or_default();
                // A time in the past changes nothing; 0 ends the throttle.
                line.throttled_until = if call.until == 0 { 0 } else { line.throttled_until.max(call.until) };
                if line.throttled_until <= now {
                    return Answer::Cleared;
                }
                Answer::Throttled(line.throttled_until)
            }
            _ => Answer::Done,
        }
    }

    fn put(&mut self, call: &PutQuota) -> Answer {
        let Some(known) = self.all.get_mut(&call.quota.quota_id) else {
            let policy = Policy { quota: call.quota.clone(), version: 1, deleted: false, lines: BTreeMap::new() };
            self.all.insert(call.quota.quota_id, policy);
            return Answer::Put("Created");
        };
        if known.deleted {
            return Answer::Refused("quota_not_found");
        }
        if known.quota == call.quota {
            return Answer::Put("Duplicate");
        }
        if call.version != Some(known.version) {
            return Answer::Refused("quota_version_conflict");
        }
        known.quota = call.quota.clone();
        known.version += 1;
        Answer::Put("Replaced")
    }

    /// Checks one call to a partition of quotas; `entered` names the candidates that are holders afterwards.
    pub fn observe(&mut self, request: &Request, outcome: &Outcome, now: i64, entered: &BTreeSet<String>) -> Check {
        let mut after = self.clone();
        let found = match outcome {
            Outcome::Reply(reply) => Some(answer_of(reply)),
            _ => None,
        };
        let expected = after.expect(request, now, entered, found.as_ref());
        let name = request.name();
        match outcome {
            Outcome::Failed(_) => {}
            Outcome::Refused(error) => {
                require!(
                    33,
                    matches!(expected, Answer::Refused(code) if code == error.code()),
                    "{name} must answer {expected:?}, was refused: {error}"
                );
            }
            Outcome::Reply(_) => {
                let found = found.expect("it was answered");
                let concurrency = |answer: &Answer| {
                    let Answer::Asked(items) = answer else { return false };
                    items.iter().any(|item| matches!(item, Err(Some((QuotaPart::Concurrency, ..)))))
                };
                let number = if concurrency(&expected) { 32 } else { 33 };
                require!(number, expected == found, "{name} must return {expected:?}, returned {found:?}");
            }
        }
        if outcome.committed() && !matches!(expected, Answer::Refused(_)) {
            *self = after;
        }
        Ok(())
    }

    /// Compares the state of a key with the counts.
    pub fn check(&self, id: QuotaPolicyId, key: &str, state: &QuotaKeyState, now: i64) -> Check {
        let Some(policy) = self.all.get(&id) else { return Ok(()) };
        let empty = Line::default();
        let line = policy.lines.get(key).unwrap_or(&empty);
        let inside = line.inside.len() as i64;
        require!(
            32,
            state.held == inside,
            "quota {id} {key}: {} inside, {inside} entered and did not leave",
            state.held
        );
        for part in &state.parts {
            let used = match part.part {
                QuotaPart::Throttle | QuotaPart::Line => continue,
                QuotaPart::Rate => policy.quota.rate.as_ref().map(|rate| line.started(rate, now)),
                QuotaPart::Concurrency => Some(inside),
                QuotaPart::Weighted => policy.quota.weighted.as_ref().map(|weighted| line.weight(weighted, now)),
            };
            require!(
                33,
                used == Some(part.used),
                "quota {id} {key}: {} of {} used, must be {used:?}",
                part.used,
                part.part
            );
        }
        let throttled = Some(line.throttled_until).filter(|at| *at > now);
        require!(33, state.throttled_until == throttled, "quota {id} {key} is throttled until {throttled:?}");
        Ok(())
    }

    /// The keys of live quotas that were ever used.
    pub fn keys(&self) -> Vec<(QuotaPolicyId, String)> {
        let live = self.all.iter().filter(|(_, policy)| !policy.deleted);
        live.flat_map(|(id, policy)| policy.lines.keys().map(|key| (*id, key.clone()))).collect()
    }

    /// All holders of all quotas, with their sets.
    pub fn inside(&self) -> impl Iterator<Item = (QuotaPolicyId, &str, &str)> {
        self.all.iter().flat_map(|(id, policy)| {
            policy
                .lines
                .iter()
                .flat_map(move |(key, line)| line.inside.iter().map(move |who| (*id, key.as_str(), who.as_str())))
        })
    }

    /// True if the execution is a holder under the key; if a holder is given, only as that one.
    pub fn is_inside(
        &self,
        id: QuotaPolicyId,
        key: &str,
        execution_id: ExecutionId,
        holder: Option<uuid::Uuid>,
    ) -> bool {
        let wanted = holder.map(|holder| member(execution_id, holder));
        let execution_id = execution_id.to_string();
        let line = self.all.get(&id).and_then(|policy| policy.lines.get(key));
        line.is_some_and(|line| {
            line.inside.iter().any(|who| match &wanted {
                Some(wanted) => who == wanted,
                None => who.starts_with(&execution_id),
            })
        })
    }

    pub fn exists(&self, id: QuotaPolicyId) -> bool {
        self.all.get(&id).is_some_and(|policy| !policy.deleted)
    }

    pub fn holds_aside(&self, id: QuotaPolicyId) -> bool {
        self.all.get(&id).is_some_and(|policy| policy.quota.hold_while_suspended)
    }
}

impl Policy {
    fn ask(&mut self, c: &QuotaCandidate, now: i64, entered: &BTreeSet<String>, said: Option<&Asked>) -> Asked {
        let who = member(c.execution_id, c.holder_id);
        let set = set_of(self.quota.quota_id, &c.key);
        let enters = entered.contains(&format!("{set} {who}"));
        let keep = self.quota.hold_while_suspended.then_some(set);
        let line = self.lines.entry(c.key.clone()).or_default();
        if line.inside.contains(&who) {
            return Ok(keep);
        }
        if c.expires_at <= now {
            return Err(None);
        }
        // Its execution asked under a later grant. While it waits in line for that one, an earlier grant decides
        // nothing.
        let earlier = line.asked.get(&c.execution_id).is_some_and(|number| c.number < *number);
        if earlier && said == Some(&Err(None)) {
            return Err(None);
        }
        let wall = line.refusal(&self.quota, c.weight, now).or_else(|| {
            // Other executions were called or are before it in line. Only refused executions can be.
            let others = line.refused.iter().any(|other| !other.starts_with(&c.execution_id.to_string()));
            let line_said = matches!(said, Some(Err(Some((QuotaPart::Line, ..)))));
            let unheard = said.is_none() && !enters && !line.refused.contains(&who);
            (others && (line_said || unheard)).then_some((QuotaPart::Line, -1, -1))
        });
        match wall {
            Some(wall) => {
                line.refused.insert(who);
                let number = line.asked.entry(c.execution_id).or_default();
                *number = c.number.max(*number);
                Err(Some(wall))
            }
            // Asked again under a refused grant: while its execution waits in line, it stays there.
            None if line.refused.contains(&who) && !enters => Err(None),
            None => {
                line.enter(&self.quota, who, c.weight, now);
                Ok(keep)
            }
        }
    }
}

fn answer_of(reply: &Reply) -> Answer {
    match reply {
        Reply::AdmitQuota(AdmitQuotaReply::Answered { items }) => Answer::Asked(
            items
                .iter()
                .map(|item| match (item.admitted, item.part) {
                    (true, _) => Ok(item.keep.clone()),
                    (false, Some(part)) => Err(Some((part, item.used.unwrap_or(-1), item.limit.unwrap_or(-1)))),
                    (false, None) => Err(None),
                })
                .collect(),
        ),
        Reply::SettleQuota(SettleQuotaReply::Settled { used, .. }) => Answer::Settled(*used),
        Reply::SettleQuota(SettleQuotaReply::Gone) => Answer::Gone,
        Reply::ThrottleQuota(ThrottleQuotaReply::Throttled { until }) => Answer::Throttled(*until),
        Reply::ThrottleQuota(ThrottleQuotaReply::Cleared) => Answer::Cleared,
        Reply::PutQuota(reply) => Answer::Put(match reply {
            PutQuotaReply::Created { .. } => "Created",
            PutQuotaReply::Duplicate { .. } => "Duplicate",
            PutQuotaReply::Replaced { .. } => "Replaced",
        }),
        _ => Answer::Done,
    }
}
