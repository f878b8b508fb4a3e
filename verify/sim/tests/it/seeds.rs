//! Many seeds, every invariant, and enough of every fault.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ff_sim::{Options, STEPS, Totals, Violation, run};
use ff_testkit::tier::{Tier, rounds, sample, tier};

/// The minimum counts for a thousand seeds, by name in the totals.
const LEAST_PER_THOUSAND: &[(&str, u64)] = &[
    ("event.execution.submitted", 15_000),
    ("event.execution.completed", 10_000),
    ("event.execution.failed", 700),
    ("event.execution.retried", 600),
    ("event.execution.reclaimed", 2_500),
    ("event.execution.delayed", 220),
    ("event.execution.yielded", 200),
    ("event.execution.cancelled", 1_500),
    ("event.execution.cancel_requested", 50),
    ("event.execution.expired", 2_500),
    ("event.execution.held", 600),
    ("event.execution.released", 400),
    ("event.execution.changed", 900),
    ("event.execution.replayed", 330),
    ("event.execution.blocked", 800),
    ("event.execution.ready", 5_000),
    ("event.execution.granted", 3_500),
    ("event.execution.retired", 15_000),
    ("event.execution.suspended", 1_000),
    ("event.execution.resumed", 700),
    ("event.execution.already_satisfied", 15),
    ("event.execution.escalated", 25),
    ("event.waitpoint.created", 400),
    ("event.waitpoint.signalled", 700),
    ("event.waitpoint.expired", 25),
    ("event.waitpoint.token_reissued", 80),
    ("reply.deliver_signal.TriggeredResume", 200),
    ("reply.deliver_signal.Duplicate", 15),
    ("reply.append_frames.Appended", 600),
    ("reply.read_stream.Page", 2_000),
    ("refused.waitpoint_not_open", 5_000),
    ("refused.signal_not_allowed", 80),
    ("event.flow.created", 1_200),
    ("event.flow.sealed", 1_000),
    ("event.flow.completed", 650),
    ("event.flow.failed", 80),
    ("event.flow.cancelled", 250),
    ("event.flow.reopened", 15),
    ("event.execution.skipped", 1_600),
    ("event.execution.reopened", 15),
    ("event.execution.waiting", 180),
    ("cause.dependencies", 850),
    ("cause.children", 150),
    ("cause.cancel_remaining", 8),
    ("cause.parent_ended", 80),
    ("cause.flow_cancelled", 900),
    ("reached.unsealed flow removed", 130),
    ("unpaid.debt", 5_000),
    ("unpaid.cancel walk", 5_000),
    ("unpaid.release walk", 5_000),
    ("cause.waiting_for_budget", 150),
    ("reply.admit_quota.Answered", 2_000),
    ("reply.admit_budget.Answered", 1_500),
    ("reply.return_quota.Returned", 2_000),
    ("reply.release_budget.Released", 1_500),
    ("reply.confirm_holders.Confirmed", 150),
    ("reply.settle_quota.Settled", 8),
    ("reply.throttle_quota.Throttled", 100),
    ("reply.put_quota.Replaced", 150),
    ("reply.apply_usage.Ok", 150),
    ("reply.apply_usage.SoftBreach", 25),
    ("reply.apply_usage.HardBreach", 70),
    ("reply.apply_usage.AlreadyApplied", 30),
    ("reply.reserve_budget.Reserved", 90),
    ("reply.reserve_budget.HardBreach", 50),
    ("reply.settle_reservation.Ok", 8),
    ("reply.correct_budget.Corrected", 60),
    ("reply.approve_budget.Approved", 80),
    ("reply.reset_budget.Reset", 40),
    ("reply.acknowledge_cleared.Acknowledged", 300),
    ("reached.ledger read", 60),
    ("event.webhook.delivered", 3_000),
    ("event.webhook.failed", 30),
    ("event.worker.expired", 1_500),
    ("event.worker.marked_dead", 300),
    ("refused.stale_lease", 400),
    ("refused.lease_expired", 700),
    ("refused.lease_revoked", 150),
    ("refused.idempotency_conflict", 1_500),
    ("failed.Crashed", 300),
    ("failed.Died", 800),
    ("failed.Broken", 200),
    ("failed.Full", 3_000),
    ("fault.lost request", 5_000),
    ("fault.lost reply", 5_000),
    ("fault.duplicated request", 5_000),
    ("fault.late request", 5_000),
    ("fault.stall", 400),
    ("fault.clock went back", 150),
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_invariant_holds_whatever_the_seed() {
    let count = number("FF_SIM_SEEDS").unwrap_or_else(|| rounds(30, 300, 10_000));
    let first = number("FF_SIM_FIRST").unwrap_or_else(|| 1 + sample() % 1_000 * count);
    let last = first + count;
    let begin = Instant::now();
    let next = AtomicU64::new(first);
    let done = AtomicU64::new(0);
    let totals = Mutex::new(Totals::default());
    let broken: Mutex<Vec<(u64, Violation)>> = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(8));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= last || broken.lock().unwrap().len() >= 5 {
                        return;
                    }
                    let report = run(&Options::new(seed, STEPS));
                    done.fetch_add(1, Ordering::SeqCst);
                    totals.lock().unwrap().add(&report.totals);
                    if let Some(violation) = report.violation {
                        broken.lock().unwrap().push((seed, violation));
                    }
                }
            });
        }
    });
    let seeds = done.into_inner();
    let totals = totals.into_inner().unwrap();
    println!("{totals}\n{seeds} seeds from {first} on in {:.1} s", begin.elapsed().as_secs_f64());
    let mut broken = broken.into_inner().unwrap();
    broken.sort_by_key(|(seed, _)| *seed);
    let texts: Vec<String> = broken
        .iter()
        .map(|(seed, violation)| {
            format!("seed {seed}: {violation}\n  replay: cargo run -p ff-sim -- --seed {seed} --steps {STEPS}")
        })
        .collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    // Rare events need not occur in the few seeds of the quick tier.
    if tier() == Tier::Quick {
        return;
    }
    for (name, least) in LEAST_PER_THOUSAND {
        let least = least * seeds / 1000;
        assert!(
            totals.of(name) >= least,
            "{name} happened {} times in {seeds} seeds, at least {least} are needed",
            totals.of(name)
        );
    }
}
