//! Load that is killed while it runs, a journal of what it was answered, and the check of what must have survived.
//!
//! An entry is written to the journal only after its reply came, so whatever the journal says must be true of the store
//! from then on, whoever was killed in between.

pub mod check;
pub mod journal;
pub mod load;
pub mod open;

/// True for `cargo xtask test --long`: more kills, more damage.
#[must_use]
pub fn long() -> bool {
    std::env::var("FF_LONG").is_ok_and(|value| !value.is_empty() && value != "0")
}

/// A number of rounds for the quick tier and one for the long one.
#[must_use]
pub fn rounds(quick: usize, long_run: usize) -> usize {
    if long() { long_run } else { quick }
}
