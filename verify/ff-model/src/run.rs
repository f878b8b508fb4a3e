//! Compares a library with the model: random cases on an embedded store, each reproducible from its seed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use ff_script::generated::{DescribeExecution, DescribeExecutionReply};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::model::Model;
use crate::op::Op;
use crate::step::{Memory, Step, steps};
use crate::store::{ROUTE, Store};

/// The virtual time at which every case starts.
pub const START_MS: i64 = 1_700_000_000_000;

/// Steps between two full comparisons.
const LOOK_EVERY: usize = 20;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed of the first case; the others follow it.
    pub seed: u64,
    pub cases: u64,
    pub steps: usize,
    /// How often a failing case is tried again with fewer calls.
    pub shrink: u32,
}

/// A call and its time.
type Told = (i64, Op);

/// The statistics of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub cases: u64,
    pub calls: u64,
    /// Calls that succeeded.
    pub accepted: u64,
    /// How often each function returned each reply: a variant, or the code of a refusal.
    pub answers: BTreeMap<(&'static str, String), u64>,
    /// Frames that were appended.
    pub frames: u64,
}

impl Report {
    /// How often the function returned this reply.
    pub fn count(&self, function: &str, answer: &str) -> u64 {
        self.answers.iter().filter(|((f, a), _)| *f == function && a == answer).map(|(_, count)| count).sum()
    }

    fn add(&mut self, one: Report) {
        self.cases += 1;
        self.calls += one.calls;
        self.accepted += one.accepted;
        self.frames += one.frames;
        for (answer, count) in one.answers {
            *self.answers.entry(answer).or_default() += count;
        }
    }

    /// Counts the reply of a call.
    fn note(&mut self, op: &Op, reply: &[u8], accepted: bool) {
        self.calls += 1;
        self.accepted += u64::from(accepted);
        let mut rest = reply;
        let mut next = || rmpv::decode::read_value(&mut rest).expect("it was read before");
        let (word, fields) = (next(), next());
        let answer = word.as_str().or(fields.as_str()).unwrap_or("?").to_owned();
        if let Op::AppendFrames(call) = op
            && accepted
            && fields["replayed"] == rmpv::Value::from(false)
        {
            self.frames += call.frames.len() as u64;
        }
        *self.answers.entry((op.function(), answer)).or_default() += 1;
    }
}

/// A case that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed that reproduces the case.
    pub seed: u64,
    /// The case within the run, from 0.
    pub case: u64,
    /// The failure, with the shortest list of steps found.
    pub story: String,
}

/// Runs cases on as many threads as there are processors, until one fails.
pub fn run(library: &str, plan: Plan) -> Result<Report, Failure> {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let report = Mutex::new(Report::default());
    let failure = Mutex::new(None::<Failure>);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    if case >= plan.cases {
                        return;
                    }
                    let seed = plan.seed.wrapping_add(case);
                    match run_case(library, seed, plan) {
                        Ok(one) => {
                            report.lock().expect("no holder of the lock panics").add(one);
                        }
                        Err(story) => {
                            stop.store(true, Ordering::Relaxed);
                            failure.lock().expect("no holder of the lock panics").get_or_insert(Failure {
                                seed,
                                case,
                                story,
                            });
                        }
                    }
                }
            });
        }
    });
    match failure.into_inner().expect("no holder of the lock panics") {
        Some(failure) => Err(failure),
        None => Ok(report.into_inner().expect("no holder of the lock panics")),
    }
}

fn run_case(library: &str, seed: u64, plan: Plan) -> Result<Report, String> {
    let mut told = Vec::new();
    replay(library, &case(seed, plan.steps), &mut told).map_err(|problem| shorten(library, told, problem, plan.shrink))
}

/// The steps of a case.
pub fn case(seed: u64, count: usize) -> Vec<Step> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    steps(count).new_tree(&mut runner).expect("every step can be made").current()
}

/// Runs these steps on a fresh store and a fresh model, and records the resulting calls.
fn replay(library: &str, steps: &[Step], told: &mut Vec<Told>) -> Result<Report, String> {
    let mut run = Run::new(library)?;
    let mut memory = Memory::default();
    for (number, step) in steps.iter().enumerate() {
        let ops = memory.resolve(step, &mut run.model);
        told.extend(ops.iter().map(|op| (run.model.now, op.clone())));
        run.list(&ops)?;
        memory.learn(&run.model);
        if number % LOOK_EVERY == LOOK_EVERY - 1 || number + 1 == steps.len() {
            run.look()?;
        }
    }
    Ok(run.report)
}

/// Makes exactly these calls on a fresh store and a fresh model.
fn repeat(library: &str, told: &[Told]) -> Result<(), String> {
    let mut run = Run::new(library)?;
    for (now, op) in told {
        run.model.now = *now;
        run.list(std::slice::from_ref(op))?;
    }
    run.look()
}

/// Removes calls, first many at a time, then one by one, as long as the case still fails. Returns the rest.
fn shorten(library: &str, mut told: Vec<Told>, mut problem: String, tries: u32) -> String {
    let (mut left, mut size) = (tries, told.len() / 2);
    while size > 0 && left > 0 {
        let (mut at, before) = (0, told.len());
        while at < told.len() && left > 0 {
            left -= 1;
            let mut fewer = told.clone();
            fewer.drain(at..(at + size).min(told.len()));
            match repeat(library, &fewer) {
                Err(other) => (told, problem) = (fewer, other),
                Ok(()) => at += size,
            }
        }
        if size > 1 || told.len() == before {
            size /= 2;
        }
    }
    let mut text = String::new();
    for (now, op) in &told {
        writeln!(text, "+{:>6} {}", now - START_MS, brief(&format!("{op:?}"))).expect("writing to memory cannot fail");
    }
    text + &brief(&problem)
}

/// A store and a model in the same state.
struct Run {
    store: Store,
    model: Model,
    report: Report,
}

impl Run {
    fn new(library: &str) -> Result<Run, String> {
        let mut run = Run { store: Store::open(library), model: Model::at(START_MS), report: Report::default() };
        for op in Memory::preamble() {
            run.list(&[op])?;
        }
        Ok(run)
    }

    /// Makes the calls on both: on the store in one list, on the model one by one.
    fn list(&mut self, ops: &[Op]) -> Result<(), String> {
        let invocations = ops.iter().map(|op| op.invocation(ROUTE, self.model.now)).collect();
        for (op, reply) in ops.iter().zip(self.store.send_all(invocations)) {
            let reply = reply.map_err(|error| error.to_string())?;
            let accepted = op.check(&mut self.model, &reply).map_err(|disagreement| disagreement.to_string())?;
            self.report.note(op, &reply, accepted);
        }
        Ok(())
    }

    /// Compares everything: the description of every execution, and the invariants of the store.
    fn look(&self) -> Result<(), String> {
        for (id, execution) in &self.model.executions {
            let answer = self.store.call(&DescribeExecution { execution_id: *id }, self.model.now);
            let expected = DescribeExecutionReply::Found { execution: execution.view() };
            if answer.as_ref() != Ok(&expected) {
                return Err(format!("the description of {id} differs\n  library: {answer:?}\n  model:   {expected:?}"));
            }
        }
        let findings = self.store.fsck(self.model.now);
        if findings.is_empty() {
            return Ok(());
        }
        let mut text = "broken invariants".to_owned();
        for finding in findings {
            write!(text, "\n  {} {}: {}", finding.invariant, String::from_utf8_lossy(&finding.key), finding.problem)
                .expect("writing to memory cannot fail");
        }
        Err(text)
    }
}

/// Leaves out empty fields.
fn brief(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for part in text.split_inclusive(", ") {
        let bare = part.trim_end_matches(", ");
        if !bare.ends_with(": None") && !bare.ends_with(": Some([])") {
            kept.push(part);
        }
    }
    kept.concat()
}

/// A number from the environment.
pub fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// The first seed: `FF_SEED`, or the clock.
pub fn seed() -> u64 {
    setting("FF_SEED").unwrap_or_else(|| {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        clock.map_or(0, |elapsed| elapsed.as_millis() as u64) * 1_000_000
    })
}

/// Prints the statistics and the duration of a run.
pub fn print(what: &str, report: &Report, since: Instant) {
    println!(
        "{what}: {} cases, {} calls, {} accepted, {:.1} s",
        report.cases,
        report.calls,
        report.accepted,
        since.elapsed().as_secs_f64()
    );
}
