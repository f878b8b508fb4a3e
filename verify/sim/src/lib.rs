//! A seeded simulation: submitters, workers, operators and timers use the embedded host over a bad network in virtual
//! time.
//!
//! One `u64` decides everything. The host is real: the library's text in Lua over a store on disk. It is killed at any
//! store command and opened again. After every call the checker compares replies and announcements with the history. At
//! the end the faults stop. Then everything must end in time, and after retention nothing may be left.
//!
//! ```text
//! cargo run -p ff-sim -- --seed 17            one run with its trace
//! cargo nextest run -p ff-sim                 a sample of seeds; FF_SIM_SEEDS=10000 for a long run
//! ```

mod actor;
mod admission;
mod check;
mod profile;
mod request;
mod rng;
mod settle;
mod store;
mod totals;
mod world;

pub use check::Violation;
pub use totals::Totals;

/// The default number of calls before the faults stop.
pub const STEPS: u32 = 240;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decides everything that happens.
    pub seed: u64,
    /// The number of calls that the host runs before the faults stop.
    pub steps: u32,
    /// The library's text: the test bundle, or a mutant.
    pub library: String,
    /// Whether to record a readable line per step.
    pub trace: bool,
    /// Whether there are quotas and budgets; `None` lets the seed decide.
    pub limits: Option<bool>,
}

impl Options {
    /// A run of the test bundle with this seed.
    #[must_use]
    pub fn new(seed: u64, steps: u32) -> Self {
        Self { seed, steps, library: tight(&ff_script::Library::test().text), trace: false, limits: None }
    }
}

/// The library with small limits per call. Debts and walks over members then take several calls even in a small flow.
///
/// # Panics
/// If the text does not contain the limits.
#[must_use]
pub fn tight(library: &str) -> String {
    let mut text = library.to_owned();
    for (from, to, times) in [
        ("consequences_max = 64", "consequences_max = 3", 1),
        ("walk.step(tx, f, limits.batch_max)", "walk.step(tx, f, 2)", 3),
    ] {
        assert_eq!(text.matches(from).count(), times, "the library holds this text more or less often: {from}");
        text = text.replace(from, to);
    }
    text
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Counts of what happened.
    pub totals: Totals,
    /// The trace, if it was requested.
    pub trace: Vec<String>,
    /// The first broken invariant.
    pub violation: Option<Violation>,
}

/// Runs one seed to its end or to the first violation.
#[must_use]
pub fn run(options: &Options) -> Report {
    let mut world = world::World::new(options);
    let violation = world.run().err();
    let (totals, trace) = world.into_parts();
    Report { totals, trace, violation }
}
