//! A reference model of one partition, and the means to hold the library against it.
//!
//! [`step`] makes random steps, [`Steps`](step::Runner) turns each into a concrete call with the model's help, [`store`] runs it on an
//! embedded store, and [`op`] compares the two answers. The tests of this crate are the model run, the differential run
//! against a server, the n-th-call failures and the mutants that show that the model run sees defects.

pub mod model;
pub mod op;
pub mod run;
pub mod step;
pub mod store;
