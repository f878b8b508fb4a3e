//! Many seeds, every invariant; and enough of everything that can go wrong.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ff_sim::{Options, STEPS, Totals, Violation, run};

/// What a thousand seeds must at least have met, by its name in the totals.
const LEAST_PER_THOUSAND: &[(&str, u64)] = &[
    ("event.execution.submitted", 15_000),
    ("event.execution.completed", 8_000),
    ("event.execution.failed", 500),
    ("event.execution.retried", 500),
    ("event.execution.reclaimed", 1_500),
    ("event.execution.delayed", 150),
    ("event.execution.yielded", 150),
    ("event.execution.cancelled", 500),
    ("event.execution.expired", 500),
    ("event.execution.held", 300),
    ("event.execution.released", 300),
    ("event.execution.changed", 500),
    ("event.execution.replayed", 300),
    ("event.execution.blocked", 300),
    ("event.execution.ready", 1_000),
    ("event.execution.granted", 1_500),
    ("event.worker.expired", 100),
    ("event.worker.marked_dead", 50),
    ("refused.stale_lease", 300),
    ("refused.lease_expired", 300),
    ("refused.lease_revoked", 30),
    ("refused.idempotency_conflict", 100),
    ("failed.Crashed", 200),
    ("failed.Died", 200),
    ("failed.Broken", 100),
    ("failed.Full", 300),
    ("fault.lost request", 2_000),
    ("fault.lost reply", 2_000),
    ("fault.duplicated request", 2_000),
    ("fault.late request", 2_000),
    ("fault.stall", 200),
];

#[test]
fn every_invariant_holds_whatever_the_seed() {
    let seeds: u64 = std::env::var("FF_SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let first: u64 = std::env::var("FF_SIM_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let begin = Instant::now();
    let next = AtomicU64::new(first);
    let totals = Mutex::new(Totals::default());
    let broken: Mutex<Vec<(u64, Violation)>> = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(8));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    let stop = broken.lock().unwrap().len() >= 5;
                    if seed >= first + seeds || stop {
                        return;
                    }
                    let report = run(&Options::new(seed, STEPS));
                    totals.lock().unwrap().add(&report.totals);
                    if let Some(violation) = report.violation {
                        broken.lock().unwrap().push((seed, violation));
                    }
                }
            });
        }
    });
    let totals = totals.into_inner().unwrap();
    println!("{totals}\n{seeds} seeds in {:.1} s", begin.elapsed().as_secs_f64());
    let mut broken = broken.into_inner().unwrap();
    broken.sort_by_key(|(seed, _)| *seed);
    let texts: Vec<String> = broken
        .iter()
        .map(|(seed, violation)| format!("seed {seed}: {violation}\n  replay: cargo run -p ff-sim -- --seed {seed} --steps {STEPS}"))
        .collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    for (name, least) in LEAST_PER_THOUSAND {
        let least = least * seeds / 1000;
        assert!(totals.of(name) >= least, "{name} happened {} times in {seeds} seeds, at least {least} are needed", totals.of(name));
    }
}
