//! A load that is killed while it runs, a journal of its acknowledgements, and the check of what must have survived.
//!
//! An entry is written to the journal only after its reply arrived. So every entry must be true of the store from then
//! on, whatever was killed in between.

pub mod check;
pub mod journal;
pub mod load;
pub mod open;

pub use ff_testkit::tier::rounds;
