//! The effects of time: nothing happens early, and everything due happens at the next call.

use ff_core::types::ExecutionId;
use ff_script::generated::{AttemptState, Failure, FireDue, FireDueReply, NextDue, NextDueReply, Outcome};

use super::end::Failing;
use super::execution::{Ending, Stage};
use super::{Answer, Model, Timer};

impl Model {
    pub fn fire_due(&mut self, call: &FireDue) -> Answer<FireDueReply> {
        let due: Vec<Timer> =
            self.timers().into_iter().take_while(|(at, _)| *at <= self.now).map(|(_, timer)| timer).collect();
        let mut count = 0;
        for timer in due.into_iter().take(call.limit as usize) {
            count += 1;
            // One draw for the whole call, varied for each item.
            let draw = (call.draw + count * 397) % 1_001;
            match timer {
                Timer::Key(namespace, key) => {
                    self.keys.remove(&(namespace, key));
                }
                Timer::Execution(id) => self.fire(id, draw),
            }
        }
        let next_at = self.next_wake_up();
        Ok(FireDueReply::Fired {
            count,
            stuck: 0,
            more: next_at.is_some_and(|at| at <= self.now),
            next_at,
            now: self.now,
        })
    }

    pub fn next_due(&self, _call: &NextDue) -> Answer<NextDueReply> {
        Ok(NextDueReply::Next { next_at: self.next_wake_up(), now: self.now })
    }

    fn fire(&mut self, id: ExecutionId, draw: i64) {
        let now = self.now;
        let passed = |at: Option<i64>| at.is_some_and(|at| at <= now);
        let execution = &self.executions[&id];
        if execution.ended().is_some() {
            return self.retire(id);
        }
        if passed(execution.deadline) {
            return self.expire(id, "deadline");
        }
        let cancel = execution
            .running()
            .and_then(|running| running.cancel.as_ref())
            .or(execution.paused().and_then(|paused| paused.cancel.as_ref()));
        if let Some((by, reason)) = cancel
            && *by <= now
        {
            let failure = Failure { reason: reason.clone().unwrap_or_default(), category: "cancelled".to_owned() };
            let how = Some((Ending::Other, AttemptState::Cancelled));
            return self.edit(id, |execution| execution.end(Outcome::Cancelled, how, Some(failure), None, now));
        }
        match &execution.stage {
            Stage::Ended(_) => {}
            Stage::Suspended(_) => self.wait_is_due(id),
            Stage::Running(running) => {
                if passed(running.timeout_at) && running.timeout_at <= Some(running.until) {
                    let failing = Failing {
                        state: AttemptState::TimedOut,
                        reason: "attempt timeout passed",
                        category: "timeout",
                        retryable: true,
                        retry_after_ms: None,
                        draw,
                        by_holder: false,
                    };
                    self.attempt_failed(id, &failing);
                } else if running.until <= now {
                    let at = running.until;
                    self.lose(id, Ending::Expired { at });
                } else {
                    self.wait_is_due(id);
                }
            }
            Stage::Waiting(_) if passed(execution.start_by) => self.expire(id, "start_within"),
            Stage::Waiting(_) => self.settle(id),
        }
    }

    fn expire(&mut self, id: ExecutionId, cause: &str) {
        let now = self.now;
        let failure = Failure { reason: format!("{cause} passed"), category: cause.to_owned() };
        self.edit(id, |execution| {
            execution.end(Outcome::Expired, Some((Ending::Other, AttemptState::Interrupted)), Some(failure), None, now);
        });
    }
}
