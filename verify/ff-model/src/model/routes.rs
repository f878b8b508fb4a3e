//! Work that no live worker can run is blocked, and unblocked when one can.

use ff_core::types::ExecutionId;
use ff_script::generated::{BlockingReason, ReviewRoutes, ReviewRoutesReply};

use super::lane::{Queue, Taker, Uncovered};
use super::{Answer, Model, route_block};

/// How long a requirement set must be uncovered before its work is blocked.
const GRACE_MS: i64 = 1_000;

impl Model {
    pub fn review_routes(&mut self, call: &ReviewRoutes) -> Answer<ReviewRoutesReply> {
        let path = format!("{}/{}", call.namespace, call.lane);
        let classes: Vec<Taker<'_>> = call
            .workers
            .iter()
            .map(|class| Taker { capabilities: &class.capabilities, kinds: class.kinds.clone() })
            .collect();
        let covered = |queue: &Queue| classes.iter().any(|class| class.takes(queue));
        let (mut blocked, mut more, mut again_at) = (0, false, None::<i64>);
        for (name, queue) in self.queues(&path) {
            let Some(lane) = self.lanes.get_mut(&path) else { break };
            if covered(&queue) {
                lane.uncovered.remove(&name);
                continue;
            }
            // While a lane has no worker, what requires nothing waits where it is.
            if classes.is_empty() && queue.requires.is_empty() {
                continue;
            }
            let now = self.now;
            let kind_missing = !classes.is_empty() && !classes.iter().any(|class| class.takes_kind(&queue.kind));
            let fresh = Uncovered { queue: queue.clone(), kind_missing, since: now, confirmed: false };
            let known = lane.uncovered.entry(name.clone()).or_insert(fresh);
            known.confirmed |= now - known.since >= GRACE_MS;
            if !known.confirmed {
                let due_at = known.since + GRACE_MS;
                again_at = Some(again_at.map_or(due_at, |at| at.min(due_at)));
                continue;
            }
            known.kind_missing = kind_missing;
            if self.blocked_by_route(&path).is_empty() && self.queue_is_empty(&path, &name) {
                self.lanes.get_mut(&path).expect("looked up above").uncovered.remove(&name);
            }
            for (at, id) in self.eligible(&path, &[name].into()).into_iter().enumerate() {
                if at as i64 >= call.limit || blocked >= call.limit {
                    more = true;
                    break;
                }
                let block = route_block(&self.executions[&id], kind_missing, now);
                self.edit(id, |execution| {
                    execution.waiting_mut().expect("eligible work waits").block = Some(block);
                });
                blocked += 1;
            }
        }

        let offset = call.cursor.unwrap_or(0);
        let page: Vec<ExecutionId> =
            self.blocked_by_route(&path).into_iter().skip(offset as usize).take(call.limit as usize + 1).collect();
        let full = page.len() as i64 > call.limit;
        let (mut unblocked, mut kept) = (0, 0);
        for id in page.into_iter().take(call.limit as usize) {
            let execution = &self.executions[&id];
            let (kind, requires) = (execution.said.kind.clone(), execution.said.requires.clone());
            if covered(&Queue { kind, requires, admission: false }) {
                self.settle(id);
                unblocked += 1;
            } else {
                kept += 1;
            }
        }
        Ok(ReviewRoutesReply::Reviewed {
            again_at,
            blocked,
            more,
            next_cursor: full.then_some(offset + kept),
            next_skip: None,
            unblocked,
        })
    }

    /// Work of a lane that waits for a capable worker, longest first.
    fn blocked_by_route(&self, path: &str) -> Vec<ExecutionId> {
        let mut found: Vec<(i64, String, ExecutionId)> = self
            .executions
            .values()
            .filter(|e| e.path() == path)
            .filter_map(|e| {
                let block = e.waiting()?.block.as_ref()?;
                (block.reason == BlockingReason::WaitingForCapableWorker).then(|| (block.since, e.id.to_string(), e.id))
            })
            .collect();
        found.sort();
        found.into_iter().map(|(_, _, id)| id).collect()
    }
}
