//! The simulator: many seeds, the same seed twice, and defects it must find.

mod mutants;
mod replay;
mod seeds;
