//! Ends of many attempts in one request to the store, with the next claim of their worker.

use ff_api::tasks::{TaskDone, TaskOutcome};
use ff_core::types::ExecutionId;
use ff_script::client::Asked;
use ff_script::generated::{CompleteExecution, CompleteExecutionReply, FailExecution};
use ff_script::{Answers, Call, Client, Error, List, Route};

use crate::Engine;

/// How one attempt ends.
#[derive(Clone, Debug)]
pub enum End {
    /// With a result.
    Complete(CompleteExecution),
    /// With a failure.
    Fail(FailExecution),
}

/// Operations that end leases, ready to be sent.
#[derive(Default)]
pub struct Ends {
    /// The operations.
    pub list: List,
    /// How many there are.
    pub count: usize,
    /// The partition of the last one.
    pub last: Option<Route>,
}

impl Ends {
    fn add<C: Call>(&mut self, client: &Client, id: ExecutionId, call: &C) -> Asked<C> {
        let route = client.route_of(&id);
        self.count += 1;
        self.last = Some(route);
        self.list.add(client, route, call)
    }
}

/// An end on its way.
enum Sent {
    Complete(Asked<CompleteExecution>, CompleteExecution),
    Fail(Asked<FailExecution>, ExecutionId),
}

impl Engine {
    /// Ends attempts; one answer for each, in order. `send` carries them to the store, and may take a claim along.
    ///
    /// Waiters of this process hear of completions from the store's replies.
    pub async fn finish<T, F: Future<Output = (Answers, T)>>(
        &self,
        ends: Vec<End>,
        send: impl FnOnce(Ends) -> F,
    ) -> (Vec<Result<TaskDone, Error>>, T) {
        let completes = ends.iter().filter_map(|end| match end {
            End::Complete(call) => Some(call.execution_id),
            End::Fail(_) => None,
        });
        let carried = self.waiting().carry(completes);
        let client = self.operations().client();
        let mut list = Ends::default();
        let sent: Vec<Sent> = ends
            .into_iter()
            .map(|end| match end {
                End::Complete(call) => Sent::Complete(list.add(client, call.execution_id, &call), call),
                End::Fail(call) => Sent::Fail(list.add(client, call.execution_id, &call), call.execution_id),
            })
            .collect();
        let (mut answers, came) = send(list).await;
        let done = sent.into_iter().map(|sent| match sent {
            Sent::Complete(asked, call) => {
                let reply = answers.take(asked)?;
                let replayed = match reply {
                    CompleteExecutionReply::Completed => {
                        carried.completed(&call);
                        false
                    }
                    CompleteExecutionReply::Replayed => true,
                };
                Ok(TaskDone::new(call.execution_id, TaskOutcome::Completed, replayed))
            }
            Sent::Fail(asked, id) => answers.take(asked).map(|reply| TaskDone::failed(id, reply)),
        });
        (done.collect(), came)
    }
}
