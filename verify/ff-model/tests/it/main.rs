//! Compares the library with the reference model and one host with the other, and tries every call at every failure.

mod differential;
mod model;
mod mutants;
mod nth_call;
mod visits;
