//! Load that is killed while it runs, a journal of what it was answered, and the check of what must have survived.
//!
//! An entry is written to the journal only after its reply came, so whatever the journal says must be true of the store
//! from then on, whoever was killed in between.

pub mod check;
pub mod journal;
pub mod load;
pub mod open;

pub use ff_testkit::tier::rounds;
