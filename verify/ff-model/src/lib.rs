//! A reference model of one partition, and the tools that compare the library with it.
//!
//! [`step`] creates random steps. [`Steps`](step::Runner) turns each into a concrete call, using the model. [`store`] runs
//! it on an embedded store, and [`op`] compares the two replies. The tests of this crate are the model run, the
//! differential run against a server, and the n-th-call failures. Mutants show that the model run finds defects.

pub mod model;
pub mod op;
pub mod run;
pub mod step;
pub mod store;
