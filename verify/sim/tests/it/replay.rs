//! A seed is a whole run: the same seed gives the same history, to the byte.

use ff_sim::{Options, run};

#[test]
fn the_same_seed_gives_the_same_trace_twice() {
    for seed in [3, 4, 12] {
        let mut options = Options::new(seed, 150);
        options.trace = true;
        let (first, second) = (run(&options), run(&options));
        assert!(first.trace.len() > 150, "a trace of {} lines", first.trace.len());
        for (line, (a, b)) in first.trace.iter().zip(&second.trace).enumerate() {
            assert_eq!(a, b, "line {line} of seed {seed}");
        }
        assert_eq!(first.trace.len(), second.trace.len());
        assert_eq!(first.totals, second.totals);
    }
}
