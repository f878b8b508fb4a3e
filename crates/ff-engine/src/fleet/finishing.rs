//! Operations that end leases, ready to be sent to the store in one list, with the next claim of their worker.

use ff_core::types::ExecutionId;
use ff_script::client::Asked;
use ff_script::{Call, Client, List, Route};

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
    /// Adds the end of an execution's lease.
    pub(crate) fn add<C: Call>(&mut self, client: &Client, id: ExecutionId, call: &C) -> Asked<C> {
        let route = client.route_of(&id);
        self.count += 1;
        self.last = Some(route);
        self.list.add(client, route, call)
    }
}
