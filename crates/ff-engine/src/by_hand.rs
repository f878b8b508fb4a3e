//! Background work done by hand, for a clock that a test moves.

use ff_core::types::ExecutionId;
use ff_script::generated::{NextDue, NextDueReply};
use ff_script::{Error, Route};

use crate::Engine;
use crate::background::{outbox, schedules, timers, unblock};

/// How many events one call reads.
const EVENTS: u16 = 500;

impl Engine {
    fn routes(&self) -> Vec<Route> {
        let client = self.operations().client();
        let apart = client.budget_routes().chain(client.quota_routes()).chain(client.schedule_routes());
        client.execution_routes().chain(apart).chain([Route::Fleet]).collect()
    }

    /// When the next timer of the store is due.
    pub async fn next_due(&self) -> Result<Option<i64>, Error> {
        let mut next = None;
        for route in self.routes() {
            let NextDueReply::Next { next_at, .. } = self.operations().client().call(route, &NextDue {}).await?;
            next = match (next, next_at) {
                (Some(next), Some(at)) => Some(at.min(next)),
                (next, at) => next.or(at),
            };
        }
        Ok(next)
    }

    /// Fires everything that is due, and does what is owed for it, until nothing is.
    pub async fn do_what_is_due(&self) -> Result<(), Error> {
        let client = self.operations().client();
        loop {
            let mut done = 0;
            for route in self.routes() {
                loop {
                    let step = timers::run_once(client, route).await?;
                    done += step.count;
                    if !step.more {
                        break;
                    }
                }
                let struck = match route {
                    Route::Schedule(_) => schedules::run_once(self.operations(), route).await?.struck,
                    _ => outbox::run_once(client, route).await?.struck,
                };
                done += i64::try_from(struck).unwrap_or(i64::MAX);
            }
            for route in client.budget_routes() {
                // The engine takes the marks away in its own time.
                done += unblock::run_once(self.operations(), route, false).await?.executions;
            }
            if done == 0 {
                return Ok(());
            }
        }
    }

    /// How many events of a type there are about an execution.
    pub async fn count_events(&self, id: ExecutionId, r#type: &str) -> Result<usize, Error> {
        let client = self.operations().client();
        let (mut after, mut count): (Option<String>, usize) = (None, 0);
        loop {
            let events = client.events(client.route_of(&id), after.as_deref(), EVENTS).await?;
            count += events.iter().filter(|event| event.execution_id == Some(id) && event.r#type == r#type).count();
            match events.last() {
                Some(last) => after = Some(last.id.clone()),
                None => return Ok(count),
            }
        }
    }
}
