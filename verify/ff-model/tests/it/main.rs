//! The library against the reference model, one host against the other, and every call at every failure.

mod differential;
mod model;
mod mutants;
mod nth_call;
mod visits;
