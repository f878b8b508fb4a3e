//! Counts of what happened. A run with too few events shows nothing.

use std::collections::BTreeMap;
use std::fmt;

/// Counts by name; several runs add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals(pub BTreeMap<String, u64>);

impl Totals {
    pub(crate) fn count(&mut self, group: &str, name: &str) {
        *self.0.entry(format!("{group}.{name}")).or_default() += 1;
    }

    /// The count with this name, e.g. `event.execution.completed`.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds another run's counts.
    pub fn add(&mut self, other: &Totals) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.0 {
            writeln!(f, "{count:>9}  {name}")?;
        }
        Ok(())
    }
}
