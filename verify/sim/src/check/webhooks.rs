//! The webhooks owed to receivers: every end of an execution with an address owes exactly one, which leaves only with
//! its own event.

use std::collections::BTreeMap;

use ff_backend_embedded::DumpValue;
use ff_core::types::ExecutionId;
use ff_script::Wake;
use ff_script::generated::*;
use uuid::Uuid;

use super::{Check, Checker, Step, require};
use crate::request::{Outcome, Reply, Request};
use crate::store::Store;

/// How long a taken webhook is hidden from other couriers, which is also the longest try.
const HOLD_MS: i64 = 20_000;
const DAY_MS: i64 = 86_400_000;
const TRIES_MAX: i64 = 40;

const ENDS: [&str; 5] =
    ["execution.completed", "execution.failed", "execution.cancelled", "execution.expired", "execution.skipped"];

/// An end of an execution that owes a webhook.
type End = (ExecutionId, i64);

#[derive(Default)]
pub(super) struct Deliveries {
    /// Number of owed webhooks for each end: two ends at the same time owe two.
    owed: BTreeMap<End, i64>,
    /// The webhooks that were taken.
    taken: BTreeMap<Uuid, Known>,
}

struct Known {
    end: End,
    tries: i64,
    /// The earliest time at which it may be taken again.
    not_before: i64,
}

impl Checker {
    /// Every end owes a webhook if the execution has an address. Called after the events of the step were checked.
    pub(super) fn note_ends(&mut self, step: &Step<'_>, told_before: &[ExecutionId]) -> Check {
        let mut any = false;
        for event in step.events.iter().filter(|event| ENDS.contains(&event.r#type.as_str())) {
            let Some(id) = event.execution_id else { continue };
            let tells = |execution: &Execution| execution.completion_webhook.is_some();
            if self.seen(&id).is_some_and(tells) || told_before.contains(&id) {
                *self.deliveries.owed.entry((id, event.at)).or_default() += 1;
                any = true;
            }
        }
        if any && matches!(step.outcome, Outcome::Reply(_)) {
            let said = step.heard.iter().any(|(route, wake)| *route == step.route && *wake == Wake::Webhook);
            require!(0, said, "{} owes a webhook and no courier hears of it", step.request.name());
        }
        Ok(())
    }

    /// The executions with an address among those of these events.
    pub(super) fn tellers(&self, step: &Step<'_>) -> Vec<ExecutionId> {
        let ids = step.events.iter().filter_map(|event| event.execution_id);
        ids.filter(|id| self.seen(id).is_some_and(|execution| execution.completion_webhook.is_some())).collect()
    }

    /// A courier takes webhooks, or reports the outcome of one.
    pub(super) fn observe_courier(&mut self, step: &Step<'_>, store: &Store) -> Check {
        for event in step.events {
            self.left(step, event)?;
        }
        match (step.request, step.outcome) {
            (Request::TakeWebhooks(call), Outcome::Reply(Reply::TakeWebhooks(reply))) => {
                let TakeWebhooksReply::Taken { items, next_at, .. } = reply;
                require!(32, items.len() as i64 <= call.limit, "{} of {} webhooks were given", items.len(), call.limit);
                let mut each: BTreeMap<&str, i64> = BTreeMap::new();
                for webhook in items {
                    *each.entry(&webhook.receiver).or_default() += 1;
                    self.given(step, webhook)?;
                }
                let most = each.values().max().copied().unwrap_or_default();
                require!(32, most <= call.each, "{most} webhooks for one receiver, {} may be", call.each);
                require!(
                    6,
                    next_at.is_none_or(|at| at > step.now),
                    "the next webhook is due at {next_at:?}, before now"
                );
            }
            (Request::NoteWebhook(call), Outcome::Reply(Reply::NoteWebhook(reply))) => {
                let emitted: Vec<&str> = step.events.iter().map(|event| event.r#type.as_str()).collect();
                let expected: &[&str] = match reply {
                    NoteWebhookReply::Delivered => &["webhook.delivered"],
                    NoteWebhookReply::Failed => &["webhook.failed"],
                    NoteWebhookReply::PutOff { .. } | NoteWebhookReply::Stale => &[],
                };
                require!(41, emitted == expected, "a webhook's {reply:?} emitted {emitted:?}");
                if let (NoteWebhookReply::PutOff { next_at, .. }, Some(known)) =
                    (reply, self.deliveries.taken.get_mut(&call.delivery_id))
                {
                    require!(14, *next_at > step.now, "a webhook is tried again at {next_at}, at once");
                    known.not_before = *next_at;
                }
            }
            _ => {}
        }
        // A courier changes no execution, only owed webhooks.
        for (id, found) in self
            .live()
            .filter(|(id, ..)| step.partition() == self.partitions.of_execution(id))
            .take(3)
            .map(|(id, _, seen)| (*id, seen.clone()))
            .collect::<Vec<_>>()
        {
            let after = store.describe(id)?;
            require!(41, after.as_ref() == Some(&found), "{} changed {id}", step.request.name());
        }
        Ok(())
    }

    /// A webhook was given to a courier: it is owed, and no other courier holds it.
    fn given(&mut self, step: &Step<'_>, webhook: &Webhook) -> Check {
        let id = webhook.delivery_id;
        // Flows of the simulation have no webhooks.
        let Some(execution_id) = webhook.execution_id else {
            return Err(super::Violation::new(8, format!("{id} tells of nothing")));
        };
        let end = (execution_id, webhook.at);
        require!(8, self.deliveries.owed.contains_key(&end), "{id} tells of an end of {execution_id} that never was");
        let known = self.deliveries.taken.entry(id).or_insert(Known { end, tries: 0, not_before: webhook.at });
        require!(12, known.end == end, "{id} is the webhook of two ends");
        require!(2, webhook.tries > known.tries, "{id} is tried for the {}. time again", webhook.tries);
        require!(15, step.now >= known.not_before, "{id} was given at {}, not before {}", step.now, known.not_before);
        known.tries = webhook.tries;
        known.not_before = step.now + HOLD_MS;
        Ok(())
    }

    /// A webhook was removed, because a courier reported its outcome.
    fn left(&mut self, step: &Step<'_>, event: &Event) -> Check {
        let Request::NoteWebhook(call) = step.request else {
            return Err(super::Violation::new(41, format!("{} emitted {}", step.request.name(), event.r#type)));
        };
        let id = call.delivery_id;
        let named = event.data.get("delivery_id").and_then(EventValue::as_str) == Some(id.to_string().as_str());
        require!(41, named, "{} is about another webhook than {id}", event.r#type);
        let Some(known) = self.deliveries.taken.remove(&id) else {
            return Err(super::Violation::new(41, format!("{id} was removed although no courier had taken it")));
        };
        require!(41, event.execution_id == Some(known.end.0), "{} names {:?}", event.r#type, event.execution_id);
        let allowed = match (event.r#type.as_str(), call.result) {
            ("webhook.delivered", WebhookResult::Delivered) | ("webhook.failed", WebhookResult::Refused) => true,
            // Given up: tried for long enough, or often enough.
            ("webhook.failed", WebhookResult::Failed) => {
                known.tries >= TRIES_MAX || step.now + 2 * 3_600_000 > known.end.1 + DAY_MS
            }
            _ => false,
        };
        require!(14, allowed, "{} after {:?} of try {}", event.r#type, call.result, known.tries);
        let left = self.deliveries.owed.get_mut(&known.end).expect("a taken webhook is owed");
        *left -= 1;
        if *left == 0 {
            self.deliveries.owed.remove(&known.end);
        }
        Ok(())
    }

    /// The stored webhooks are exactly the owed ones, each in its queue.
    pub(super) fn check_deliveries(&self, dump: &BTreeMap<String, DumpValue>) -> Check {
        let mut found: BTreeMap<End, i64> = BTreeMap::new();
        let mut records = 0;
        for (key, value) in dump.iter().filter(|(key, _)| key.starts_with("ff:hook:")) {
            let DumpValue::String(stored) = value else { continue };
            let Ok(record) = WebhookRecord::read(stored) else {
                return Err(super::Violation::new(8, format!("{key} tells of nothing")));
            };
            *found.entry((ExecutionId::from(record.owner), record.owed)).or_default() += 1;
            records += 1;
        }
        require!(8, found == self.deliveries.owed, "owed are {:?}, the store owes {found:?}", self.deliveries.owed);
        let in_line: usize = dump
            .iter()
            .filter(|(key, _)| key.starts_with("ff:outbox:") && key.contains(":receiver:"))
            .map(|(_, value)| if let DumpValue::Zset(members) = value { members.len() } else { 0 })
            .sum();
        require!(10, in_line == records, "{records} webhooks, {in_line} in line");
        Ok(())
    }
}
