//! The same calls on the embedded host and on a real server give equal replies and equal content.
//!
//! A third of the calls come from the model's steps. The rest are calls about flows, quotas and budgets, calls that are
//! not in the model, and calls that no typed client makes. `FF_SEED` selects the calls, `FF_CALLS` their number.
//!
//! Some rounds also compare two ways to the same result. Either one host uses the fast paths of common transitions and
//! the other goes step by step. Or one gets its calls in lists and the other one by one.

mod flows;
mod hooks;
mod limits;
mod odd;
mod other;
mod schedules;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Instant;

use ff_conformance::{Kind, Store as Server};
use ff_model::model::Model;
use ff_model::run::{START_MS, case, seed, setting};
use ff_model::step::Memory;
use ff_model::store::{ROUTE, Store};
use ff_script::dump::{Dump, DumpValue};
use ff_script::generated::{FUNCTIONS, FixPartitions, PartitionDefaults};
use ff_script::{Call, HostError, Invocation, Library, Route, Visits};
use ff_testkit::tier::rounds;
use flows::Flows;
use hooks::Hooks;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rmpv::Value;
use tokio::runtime::Runtime;

/// Number of calls on one pair of stores before both start empty again.
const ROUND: usize = 400;

/// Number of calls between two comparisons of the whole content.
const COMPARE_EVERY: usize = 200;

/// Its effect depends on the ids that a server gives its events, which follow the server's own clock.
const LEFT_OUT: [&str; 1] = ["ff_trim_events"];

/// The difference between the two hosts in a round, apart from their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Same,
    /// One of them uses no fast paths.
    StepByStep {
        embedded: bool,
    },
    /// One of them gets its calls in lists.
    Lists {
        embedded: bool,
    },
}

impl Mode {
    fn of(round: u64) -> Mode {
        match round % 6 {
            1 => Mode::StepByStep { embedded: false },
            2 => Mode::Lists { embedded: true },
            4 => Mode::StepByStep { embedded: true },
            5 => Mode::Lists { embedded: false },
            _ => Mode::Same,
        }
    }
}

/// Maximum number of calls in one list.
const LISTED_MAX: usize = 12;

/// Their replies show which events were appended together.
const SHOWS_ENTRIES: [&str; 3] = ["ff_read_events", "ff_tally_events", "ff_trim_events"];

#[test]
fn both_hosts_answer_and_store_the_same() {
    if !Kind::Valkey.is_wanted() {
        return;
    }
    let calls = setting("FF_CALLS").unwrap_or(rounds(2_000, 20_000, 1_000_000));
    let (seed, since) = (seed(), Instant::now());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts");
    let server = runtime.block_on(Server::open(Kind::Valkey));
    let mut sum = Sum::default();
    for round in 0..calls.div_ceil(ROUND as u64) {
        let seed = seed.wrapping_add(round);
        runtime.block_on(server.wipe());
        let mode = Mode::of(seed);
        let embedded = Store::open(&Library::test().text);
        let visits = (seed / 6 % 2 == 1).then_some(Visits { executions: 4, budgets: 2, quotas: 2 });
        let pair = Pair { embedded, server: &server, runtime: &runtime, mode, visits, listed: RefCell::default() };
        if let Err(problem) = pair.round(seed, &mut sum) {
            panic!(
                "seed {seed} ({mode:?}): {problem}\nreplay: FF_SEED={seed} FF_CALLS={ROUND} cargo nextest run -p ff-model differential:: --no-capture"
            );
        }
    }
    println!(
        "differential: {} calls, {} accepted, {} refused, {} raised, {} functions, {} dumps, {:.1} s",
        sum.accepted + sum.refused + sum.raised,
        sum.accepted,
        sum.refused,
        sum.raised,
        sum.functions.len(),
        sum.dumps,
        since.elapsed().as_secs_f64()
    );
    let missing: Vec<_> =
        FUNCTIONS.iter().filter(|name| !sum.functions.contains(*name) && !LEFT_OUT.contains(name)).collect();
    assert!(calls < 20_000 || missing.is_empty(), "never called: {missing:?}");
    let known = limits::FUNCTIONS.iter().chain(&hooks::FUNCTIONS).chain(&schedules::FUNCTIONS);
    let refused: Vec<_> = known.filter(|name| !sum.served.contains(*name)).collect();
    assert!(calls < 20_000 || refused.is_empty(), "never accepted: {refused:?}");
    assert!(sum.accepted * 3 > calls, "too few calls were accepted");
}

/// The statistics of the comparison.
#[derive(Default)]
struct Sum {
    accepted: u64,
    refused: u64,
    raised: u64,
    dumps: u64,
    functions: BTreeSet<&'static str>,
    /// The functions that succeeded.
    served: BTreeSet<&'static str>,
}

struct Pair<'a> {
    embedded: Store,
    server: &'a Server,
    runtime: &'a Runtime,
    mode: Mode,
    /// Set in rounds whose operations visit other partitions.
    visits: Option<Visits>,
    /// Calls that will be sent in one list.
    listed: RefCell<Vec<[Invocation; 2]>>,
}

/// The outcome of a call on one host.
#[derive(Debug, PartialEq)]
enum Outcome {
    Answered(Vec<Value>),
    /// The library raised; the hosts' messages differ.
    Raised,
    Failed(HostError),
}

impl Pair<'_> {
    fn round(&self, seed: u64, sum: &mut Sum) -> Result<(), String> {
        let (mut model, mut memory, mut rng) = (Model::at(START_MS), Memory::default(), StdRng::seed_from_u64(seed));
        let partitions = PartitionDefaults { executions: 4, budgets: 2, quotas: 2, schedules: 2 };
        // The harness of the server has done so already.
        self.embedded
            .send(call(Route::Config, &FixPartitions::new(partitions.clone()), START_MS))
            .map_err(|error| error.to_string())?;
        self.both(
            call(Route::Config, &FixPartitions::new(PartitionDefaults { executions: 9, ..partitions }), START_MS),
            sum,
        )?;
        for op in Memory::preamble() {
            self.both(op.invocation(ROUTE, model.now), sum)?;
            op.imagine(&mut model);
        }
        let (mut flows, mut hooks) = (Flows::default(), Hooks::default());
        self.both(Flows::preamble(model.now), sum)?;
        for invocation in limits::preamble(&mut rng, model.now) {
            self.both(invocation, sum)?;
        }
        for (number, step) in case(seed, ROUND).iter().enumerate() {
            let ops = memory.resolve(step, &mut model);
            match rng.random_range(0..20) {
                18.. => self.both(schedules::call_of(&mut rng, model.now), sum)?,
                17.. => {
                    let invocation = hooks.call_of(&mut rng, &model);
                    let function = invocation.function;
                    if let Some(reply) = self.each([invocation.clone(), invocation], sum)? {
                        hooks.learn(function, &reply);
                    }
                }
                13.. => self.both(limits::call_of(&mut rng, &model), sum)?,
                10.. if rng.random_ratio(1, 8) => {
                    for invocation in flows.ends(&mut rng, model.now) {
                        self.both(invocation, sum)?;
                    }
                    self.flush(sum)?;
                }
                10.. => {
                    let invocation = flows.call_of(&mut rng, model.now);
                    let function = invocation.function;
                    if let Some(reply) = self.each([invocation.clone(), invocation], sum)? {
                        flows.learn(function, &reply);
                    }
                }
                0..=5 => {
                    for op in &ops {
                        self.both(op.invocation(ROUTE, model.now), sum)?;
                        op.imagine(&mut model);
                    }
                    memory.learn(&model);
                }
                6 | 7 => self.acknowledge_or(other::call_or_acknowledge(&mut rng, &model), &mut rng, sum)?,
                _ => self.both(odd::spoil(ops[0].invocation(ROUTE, model.now), &mut rng), sum)?,
            }
            if number % COMPARE_EVERY == COMPARE_EVERY - 1 {
                self.compare(sum)?;
            }
        }
        Ok(())
    }

    /// Makes the call, or acknowledges the oldest effects, whose ids differ between hosts.
    fn acknowledge_or(&self, made: other::Made, rng: &mut StdRng, sum: &mut Sum) -> Result<(), String> {
        match made {
            other::Made::Call(invocation) => self.both(*invocation, sum),
            other::Made::Acknowledge { now } => {
                self.flush(sum)?;
                let count = rng.random_range(0..3);
                let on = |dump: Dump| match dump.get("ff:outbox:{w}") {
                    Some(DumpValue::Stream(entries)) => entries.iter().take(count).map(|(id, _)| id.clone()).collect(),
                    _ => Vec::new(),
                };
                let (here, there) = (on(self.embedded.dump()), on(self.runtime.block_on(self.server.dump())));
                let calls = [here, there].map(|ids| call(Route::Fleet, &ff_script::generated::AckOutbox { ids }, now));
                self.each(calls, sum).map(drop)
            }
        }
    }

    fn both(&self, mut invocation: Invocation, sum: &mut Sum) -> Result<(), String> {
        invocation.terms.visits = self.visits;
        if !matches!(self.mode, Mode::Lists { .. }) || invocation.read_only {
            return self.each([invocation.clone(), invocation], sum).map(drop);
        }
        if SHOWS_ENTRIES.contains(&invocation.function) {
            return Ok(());
        }
        self.listed.borrow_mut().push([invocation.clone(), invocation]);
        if self.listed.borrow().len() == LISTED_MAX { self.flush(sum).map(drop) } else { Ok(()) }
    }

    /// Makes the call on both hosts. Returns the reply if it succeeded.
    fn each(&self, mut pair: [Invocation; 2], sum: &mut Sum) -> Result<Option<Vec<u8>>, String> {
        pair.iter_mut().for_each(|one| one.terms.visits = self.visits);
        match self.mode {
            Mode::Lists { .. } if SHOWS_ENTRIES.contains(&pair[0].function) => Ok(None),
            Mode::Lists { .. } => {
                // Reads may run before writes.
                if pair[0].read_only {
                    self.flush(sum)?;
                }
                self.listed.borrow_mut().push(pair);
                self.flush(sum)
            }
            Mode::StepByStep { embedded } => {
                let mut pair = pair;
                pair.iter_mut().for_each(|one| one.count_calls = false);
                pair[usize::from(!embedded)].terms.step_by_step = true;
                self.one(pair, sum)
            }
            Mode::Same => self.one(pair, sum),
        }
    }

    /// Makes the collected calls, in a list on one host and one by one on the other. Returns the last reply if that
    /// call succeeded.
    fn flush(&self, sum: &mut Sum) -> Result<Option<Vec<u8>>, String> {
        let mut pairs = std::mem::take(&mut *self.listed.borrow_mut());
        pairs.iter_mut().flatten().for_each(|one| one.count_calls = false);
        // Only calls of one partition keep their order in a list.
        pairs.sort_by_key(|[one, _]| one.route);
        let in_lists = match self.mode {
            Mode::Lists { embedded: true } => {
                self.embedded.send_all(pairs.iter().map(|[here, _]| here.clone()).collect())
            }
            _ => {
                let list = pairs.iter().map(|[_, there]| there.clone()).collect();
                self.runtime.block_on(self.server.host().run(list))
            }
        };
        let mut last = None;
        for ([here, there], listed) in pairs.into_iter().zip(in_lists) {
            let shown = shown(&here);
            let function = here.function;
            let single = match self.mode {
                Mode::Lists { embedded: true } => self.runtime.block_on(self.server.host().call(there)),
                _ => self.embedded.send(here),
            };
            last = agreed(&shown, function, listed, single, sum)?;
        }
        Ok(last)
    }

    fn one(&self, [here, there]: [Invocation; 2], sum: &mut Sum) -> Result<Option<Vec<u8>>, String> {
        let (shown, function) = (shown(&here), here.function);
        let (embedded, server) = (self.embedded.send(here), self.runtime.block_on(self.server.host().call(there)));
        agreed(&shown, function, embedded, server, sum)
    }

    fn compare(&self, sum: &mut Sum) -> Result<(), String> {
        self.flush(sum)?;
        let apart = |dump| if matches!(self.mode, Mode::Lists { .. }) { joined(dump) } else { dump };
        let [here, there] =
            [self.embedded.dump(), self.runtime.block_on(self.server.dump())].map(|dump| apart(renumbered(dump)));
        sum.dumps += 1;
        let keys: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
        for key in keys {
            if here.get(key) != there.get(key) {
                return Err(format!(
                    "{key} differs\n  embedded: {:?}\n  server:   {:?}",
                    here.get(key),
                    there.get(key)
                ));
            }
        }
        Ok(())
    }
}

fn shown(call: &Invocation) -> String {
    format!("{} on {} at {:?} with {}", call.function, call.route, call.now_ms, show(&call.args))
}

/// Fails unless both hosts had the same outcome. Returns the reply if the call succeeded.
fn agreed(
    shown: &str,
    function: &'static str,
    one: Result<Vec<u8>, HostError>,
    other: Result<Vec<u8>, HostError>,
    sum: &mut Sum,
) -> Result<Option<Vec<u8>>, String> {
    let (mine, theirs) = (outcome(one.clone()), outcome(other));
    let served =
        !matches!(mine, Outcome::Failed(HostError::Unavailable { .. } | HostError::Closed | HostError::Corrupt { .. }));
    if mine != theirs || !served {
        return Err(format!("{shown}\n  one:   {mine:?} {one:?}\n  other: {theirs:?}"));
    }
    sum.functions.insert(function);
    match mine {
        Outcome::Answered(reply) if reply.first() != Some(&Value::Boolean(false)) => {
            sum.accepted += 1;
            sum.served.insert(function);
            return Ok(one.ok());
        }
        Outcome::Answered(_) | Outcome::Failed(_) => sum.refused += 1,
        Outcome::Raised => sum.raised += 1,
    }
    Ok(None)
}

/// The dump with the events of each partition in one entry, because entries depend on the lists of the calls.
pub fn joined(mut dump: Dump) -> Dump {
    for (key, value) in &mut dump {
        if let DumpValue::Stream(entries) = value
            && key.starts_with("ff:events:")
        {
            let events = entries.drain(..).flat_map(|(_, fields)| fields).flat_map(|(_, events)| events).collect();
            entries.push((String::new(), vec![(Vec::new(), events)]));
        }
    }
    dump
}

fn call<C: Call>(route: Route, call: &C, now: i64) -> Invocation {
    Invocation {
        route,
        function: C::FUNCTION,
        read_only: C::READ_ONLY,
        args: call.encode(),
        now_ms: Some(now),
        count_calls: true,
        terms: ff_script::Terms::default(),
    }
}

fn outcome(result: Result<Vec<u8>, HostError>) -> Outcome {
    match result {
        Ok(bytes) => {
            let (mut rest, mut values) = (bytes.as_slice(), Vec::new());
            while !rest.is_empty() {
                values.push(normal(rmpv::decode::read_value(&mut rest).expect("a reply is msgpack")));
            }
            // A fast path omits the count of calls if it was not requested.
            while values.len() > 2 && values.last() == Some(&Value::Nil) {
                values.pop();
            }
            Outcome::Answered(values)
        }
        Err(HostError::Raised { .. }) => Outcome::Raised,
        Err(error) => Outcome::Failed(error),
    }
}

/// The value with sorted maps, and without the ids of events and effects, which follow each host's own clock. Ids of
/// frames and signals stay, because they follow the time of the call.
fn normal(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        Value::Map(entries) => {
            let timed = entries.iter().any(|(name, _)| matches!(name.as_str(), Some("sequence" | "received_at")));
            let hidden = |name: &Value| match name.as_str() {
                Some("id") => !timed,
                name => matches!(name, Some("oldest" | "latest")),
            };
            let mut entries: Vec<(Value, Value)> = entries
                .into_iter()
                .map(|(name, value)| if hidden(&name) { (name, Value::Nil) } else { (name, normal(value)) })
                .collect();
            entries.sort_by_key(|(name, _)| name.to_string());
            Value::Map(entries)
        }
        Value::String(text) => Value::Binary(ff_script::dump::ordered_bytes(text.as_bytes())),
        plain => plain,
    }
}

/// The dump with events and effects numbered by position.
pub fn renumbered(mut dump: Dump) -> Dump {
    for (key, value) in &mut dump {
        let own_clock = key.starts_with("ff:events:") || key.starts_with("ff:outbox:");
        if let DumpValue::Stream(entries) = value
            && own_clock
        {
            for (number, (id, _)) in entries.iter_mut().enumerate() {
                *id = number.to_string();
            }
        }
        // The position of the tally is the id of an event.
        if let DumpValue::Hash(fields) = value
            && key.starts_with("ff:tally:")
        {
            fields.remove(&b"at"[..]);
        }
    }
    dump
}

fn show(args: &[u8]) -> String {
    let text = rmpv::decode::read_value(&mut &args[..])
        .map_or_else(|error| format!("{args:02x?} ({error})"), |value| value.to_string());
    text.chars().take(3_000).collect()
}
