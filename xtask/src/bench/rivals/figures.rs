//! The figures of every driver, by name.

/// The direction in which a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A rate.
    Higher,
    /// A time, or CPU seconds.
    Lower,
}

/// A figure for the comparison of systems.
pub struct Figure {
    /// The name in the drivers' output.
    pub name: &'static str,
    /// The name for readers.
    pub title: &'static str,
    pub better: Better,
    /// Whether README.md and the chart show it.
    pub headline: bool,
}

impl Figure {
    const fn rate(name: &'static str, title: &'static str, headline: bool) -> Figure {
        Figure { name, title, better: Better::Higher, headline }
    }

    const fn cost(name: &'static str, title: &'static str, headline: bool) -> Figure {
        Figure { name, title, better: Better::Lower, headline }
    }

    /// How much better `ours` is than `theirs`: 2 is twice the rate, or half the time.
    pub fn ratio(&self, ours: f64, theirs: f64) -> f64 {
        match self.better {
            Better::Higher => ours / theirs,
            Better::Lower => theirs / ours,
        }
    }
}

pub const FIGURES: &[Figure] = &[
    Figure::rate("submit_per_s", "no-ops submitted/s", false),
    Figure::rate("drain_per_s", "no-ops drained/s", true),
    Figure::rate("end_to_end_per_s", "no-ops end to end/s", true),
    Figure::cost("idle_p50_ms", "idle, submit to result, p50 ms", true),
    Figure::cost("idle_p99_ms", "idle, submit to result, p99 ms", false),
    Figure::cost("chain_p50_ms", "chain of ten, p50 ms", true),
    Figure::rate("chains_per_s", "chains of ten/s", true),
    Figure::cost("signal_p50_ms", "signal to result, p50 ms", true),
    Figure::cost("wait_p50_ms", "submit, suspend, signal, result, p50 ms", false),
    Figure::cost("fan_p50_ms", "fan-out of 100 with a join, p50 ms", true),
    Figure::rate("groups_per_s", "fan-outs of 100/s", true),
    Figure::cost("cpu_total", "CPU s per 1_000 drained, all processes", true),
    Figure::cost("cpu_store", "of it the store", false),
    Figure::cost("cpu_server", "of it the server", false),
    Figure::cost("cpu_worker", "of it the worker", false),
    Figure::cost("cpu_client", "of it the submitter", false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_one_is_better() {
        assert_eq!(Figure::rate("", "", false).ratio(20.0, 10.0), 2.0);
        assert_eq!(Figure::cost("", "", false).ratio(5.0, 10.0), 2.0);
    }
}
