//! Typed calls through any host.

use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use ff_core::types::{BudgetId, ExecutionId, FlowId, QuotaPolicyId, WaitpointId};
use ff_core::{EngineError, PartitionConfig};
use sha2::{Digest, Sha256};

use crate::call::Call;
use crate::error::Error;
use crate::generated::{Event, ReadEvents, ReadEventsReply};
use crate::holder_set::HolderSet;
use crate::host::{Host, HostError, Invocation, Route, Terms, Visits};
use crate::library::Library;
use crate::refusal;
use crate::wire::{DecodeError, Reader};

/// The number of the library from whose contracts the types of this crate were generated.
static NUMBER: LazyLock<u32> = LazyLock::new(|| Library::shipped().number);

/// Makes typed calls to one store.
#[derive(Clone)]
pub struct Client {
    host: Arc<dyn Host>,
    partitions: PartitionConfig,
    now_ms: Option<i64>,
    background: bool,
    visits: bool,
}

/// Operations of any functions, sent to the store together.
#[derive(Default)]
pub struct List(Vec<Result<Invocation, Error>>);

/// An operation of a [`List`]; takes the matching reply from [`Answers`].
pub struct Asked<C>(usize, PhantomData<fn() -> C>);

/// The replies to a [`List`]. Each can be taken once.
#[derive(Default)]
pub struct Answers(Vec<Option<Result<Vec<u8>, Error>>>);

impl List {
    /// Adds an operation. If its arguments are out of bounds, it fails without being sent.
    pub fn add<C: Call>(&mut self, client: &Client, route: Route, call: &C) -> Asked<C> {
        self.0.push(client.invocation(route, call, false));
        Asked(self.0.len() - 1, PhantomData)
    }
}

impl Answers {
    /// Takes the reply of an operation. A second take of the same operation fails.
    pub fn take<C: Call>(&mut self, asked: Asked<C>) -> Result<C::Reply, Error> {
        let answer = self.0.get_mut(asked.0).and_then(Option::take);
        let bytes = answer.unwrap_or(Err(Error::Host(HostError::Closed)))?;
        Ok(read_reply::<C>(&bytes)?.0)
    }
}

/// A reply and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted<T> {
    pub reply: T,
    /// Number of store calls that the function made.
    pub calls: u32,
}

impl Client {
    /// A client for a host and the partition counts of its store.
    #[must_use]
    pub fn new(host: Arc<dyn Host>, partitions: PartitionConfig) -> Self {
        let visits = host.facts().kind != "valkey-cluster";
        Self { host, partitions, now_ms: None, background: false, visits }
    }

    /// The same client at a fixed time; only the test bundle uses it.
    #[must_use]
    pub fn at(&self, now_ms: i64) -> Self {
        Self { now_ms: Some(now_ms), ..self.clone() }
    }

    /// The same client for background work, which leaves most of a list to other work.
    #[must_use]
    pub fn in_background(&self) -> Self {
        Self { background: true, ..self.clone() }
    }

    /// The same client, but each operation uses one partition only, as on a cluster.
    #[must_use]
    pub fn without_visits(&self) -> Self {
        Self { visits: false, ..self.clone() }
    }

    /// True if a claim visits quotas and budgets itself, because they share a store with executions.
    #[must_use]
    pub const fn admits_in_claims(&self) -> bool {
        self.visits
    }

    /// The host behind this client.
    #[must_use]
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// The partition counts of the store.
    #[must_use]
    pub const fn partitions(&self) -> PartitionConfig {
        self.partitions
    }

    /// The partition of an execution.
    #[must_use]
    pub const fn route_of(&self, id: &ExecutionId) -> Route {
        Route::Execution(self.partitions.of_execution(id))
    }

    /// The partition of a flow and its members.
    #[must_use]
    pub const fn route_of_flow(&self, id: &FlowId) -> Route {
        Route::Execution(self.partitions.of_flow(id))
    }

    /// The partition of a waitpoint, which is that of its execution, because they share the seed.
    #[must_use]
    pub const fn route_of_waitpoint(&self, id: &WaitpointId) -> Route {
        Route::Execution(self.partitions.of_waitpoint(id))
    }

    /// The partition of a budget.
    #[must_use]
    pub const fn route_of_budget(&self, id: &BudgetId) -> Route {
        Route::Budget(self.partitions.of_budget(id))
    }

    /// The partition of a quota.
    #[must_use]
    pub const fn route_of_quota(&self, id: &QuotaPolicyId) -> Route {
        Route::Quota(self.partitions.of_quota(id))
    }

    /// The partition of a holder set: that of the quota or budget whose id the name contains, otherwise one chosen by
    /// the name's hash.
    #[must_use]
    pub fn route_of_holder_set(&self, set: &str) -> Route {
        match HolderSet::read(set) {
            Some(HolderSet::Quota { id, .. }) => return self.route_of_quota(&id),
            Some(HolderSet::Budget { id }) => return self.route_of_budget(&id),
            Some(HolderSet::Lane { .. }) | None => {}
        }
        let digest = Sha256::digest(set);
        Route::Quota(u16::from_be_bytes([digest[0], digest[1]]) % self.partitions.quotas)
    }

    /// Where a schedule lives: its namespace and name decide.
    #[must_use]
    pub fn route_of_schedule(&self, namespace: &str, name: &str) -> Route {
        let digest = Sha256::new().chain_update(namespace).chain_update("/").chain_update(name).finalize();
        Route::Schedule(u16::from_be_bytes([digest[0], digest[1]]) % self.partitions.schedules)
    }

    /// All partitions of schedules.
    pub fn schedule_routes(&self) -> impl Iterator<Item = Route> + use<> {
        (0..self.partitions.schedules).map(Route::Schedule)
    }

    /// All partitions of quotas.
    pub fn quota_routes(&self) -> impl Iterator<Item = Route> + use<> {
        (0..self.partitions.quotas).map(Route::Quota)
    }

    /// All partitions of budgets.
    pub fn budget_routes(&self) -> impl Iterator<Item = Route> + use<> {
        (0..self.partitions.budgets).map(Route::Budget)
    }

    /// All partitions of executions.
    pub fn execution_routes(&self) -> impl Iterator<Item = Route> + use<> {
        (0..self.partitions.executions).map(Route::Execution)
    }

    /// Runs one function.
    pub async fn call<C: Call>(&self, route: Route, call: &C) -> Result<C::Reply, Error> {
        let bytes = self.host.call(self.invocation(route, call, false)?).await?;
        Ok(read_reply::<C>(&bytes)?.0)
    }

    /// Runs one function many times, in this order and in as few lists as possible. Each operation has its own reply.
    pub async fn call_all<C: Call>(&self, calls: &[(Route, C)]) -> Vec<Result<C::Reply, Error>> {
        let mut list = List::default();
        let asked: Vec<Asked<C>> = calls.iter().map(|(route, call)| list.add(self, *route, call)).collect();
        let mut answers = self.run(list).await;
        asked.into_iter().map(|one| answers.take(one)).collect()
    }

    /// Runs operations of any functions, in this order and in as few lists as possible.
    pub async fn run(&self, list: List) -> Answers {
        let mut operations = Vec::with_capacity(list.0.len());
        let mut answers: Vec<Option<Result<Vec<u8>, Error>>> = Vec::with_capacity(list.0.len());
        for one in list.0 {
            match one {
                Ok(operation) => {
                    operations.push(operation);
                    answers.push(None);
                }
                Err(error) => answers.push(Some(Err(error))),
            }
        }
        let mut ran = self.host.run(operations).await.into_iter();
        for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
            *answer = Some(ran.next().unwrap_or(Err(HostError::Closed)).map_err(Error::from));
        }
        Answers(answers)
    }

    /// Runs one function and counts the store calls it made.
    pub async fn call_counted<C: Call>(&self, route: Route, call: &C) -> Result<Counted<C::Reply>, Error> {
        let bytes = self.host.call(self.invocation(route, call, true)?).await?;
        let (reply, calls) = read_reply::<C>(&bytes)?;
        let calls =
            calls.ok_or_else(|| Error::Decode { function: C::FUNCTION, detail: "calls: is missing".to_owned() })?;
        Ok(Counted { reply, calls })
    }

    /// Up to `limit` events of a partition, oldest first, after the last one seen.
    pub async fn events(&self, route: Route, after: Option<&str>, limit: u16) -> Result<Vec<Event>, Error> {
        let call = ReadEvents { after: after.map(str::to_owned), from_ms: None, limit: i64::from(limit) };
        let ReadEventsReply::Events { entries, .. } = self.call(route, &call).await?;
        Event::read_all(&entries, after, usize::from(limit))
            .map_err(|error| Error::Decode { function: ReadEvents::FUNCTION, detail: error.to_string() })
    }

    /// The invocation for the host, if the arguments are within their bounds.
    fn invocation<C: Call>(&self, route: Route, call: &C, count_calls: bool) -> Result<Invocation, Error> {
        call.check().map_err(EngineError::from)?;
        Ok(Invocation {
            route,
            function: C::FUNCTION,
            read_only: C::READ_ONLY,
            args: call.encode(),
            now_ms: self.now_ms,
            count_calls,
            terms: Terms {
                checked_by: Some(*NUMBER),
                weight: call.weight(),
                background: self.background,
                visits: self.visits.then_some(Visits {
                    executions: self.partitions.executions,
                    budgets: self.partitions.budgets,
                    quotas: self.partitions.quotas,
                }),
                step_by_step: false,
            },
        })
    }
}

/// Reads a reply. It is an outcome and its fields; or false, the code of a refusal and its detail. The number of store
/// calls follows if it was requested.
fn read_reply<C: Call>(bytes: &[u8]) -> Result<(C::Reply, Option<u32>), Error> {
    let unreadable = |error: DecodeError| Error::Decode { function: C::FUNCTION, detail: error.to_string() };
    let mut input = Reader::new(bytes);
    if bytes.first() == Some(&rmp::Marker::False.to_u8()) {
        input.skip().map_err(unreadable)?;
        return Err(Error::Engine(refusal::read(&mut input).map_err(unreadable)?));
    }
    let reply = C::decode_reply(&mut input).map_err(unreadable)?;
    let calls = if input.is_empty() || input.nil() { None } else { Some(input.integer().map_err(unreadable)?) };
    let calls = calls.map(u32::try_from).transpose().map_err(|_| unreadable(DecodeError::new("calls: negative")))?;
    Ok((reply, calls))
}

#[cfg(test)]
mod tests {
    use ff_core::error::StateKind;
    use rmpv::Value;

    use super::*;

    struct Ping;
    impl Call for Ping {
        const FUNCTION: &'static str = "ff_ping";
        const READ_ONLY: bool = true;
        type Reply = i64;
        fn encode(&self) -> Vec<u8> {
            vec![0x80]
        }
        fn decode_reply(input: &mut Reader<'_>) -> Result<i64, DecodeError> {
            input.integer().map_err(|error| error.within("pong"))
        }
    }

    fn packed(values: &[Value]) -> Vec<u8> {
        let mut out = Vec::new();
        for value in values {
            rmpv::encode::write_value(&mut out, value).unwrap();
        }
        out
    }

    fn map(entries: Vec<(&str, Value)>) -> Value {
        Value::Map(entries.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    #[test]
    fn a_reply_is_an_outcome_with_its_count_or_a_refusal() {
        assert_eq!(read_reply::<Ping>(&packed(&[7.into(), 3.into()])), Ok((7, Some(3))));
        assert_eq!(read_reply::<Ping>(&packed(&[7.into()])), Ok((7, None)));

        let stale = packed(&[false.into(), "stale_lease".into(), Value::Array(vec![])]);
        assert_eq!(read_reply::<Ping>(&stale), Err(Error::Engine(EngineError::State(StateKind::StaleLease))));

        let detail = map(vec![("field", "pong".into()), ("problem", "is missing".into())]);
        let invalid = packed(&[false.into(), "invalid_argument".into(), detail]);
        let error = read_reply::<Ping>(&invalid).unwrap_err();
        assert_eq!(error.to_string(), "invalid argument pong: is missing");
    }

    #[test]
    fn an_unreadable_reply_names_function_and_place() {
        for (bytes, text) in [
            (vec![0xc1], "cannot read the reply of ff_ping: pong: expected an integer, got nil"),
            (vec![], "cannot read the reply of ff_ping: pong: not msgpack: cut short"),
            (packed(&[false.into()]), "cannot read the reply of ff_ping: code: not msgpack: cut short"),
            (
                packed(&[false.into(), "moon_phase".into(), Value::Nil]),
                "cannot read the reply of ff_ping: unknown error code: \"moon_phase\"",
            ),
        ] {
            assert_eq!(read_reply::<Ping>(&bytes).unwrap_err().to_string(), text);
        }
    }
}
