//! Brings waiting workers and ready work together: one call per claim, no polling.
//!
//! The [`Dispatcher`] keeps, for each lane and capability set somebody waits with, the partitions known to hold work and
//! the score of each one's head. A waiting worker is sent to the best one; nobody else is sent to the same partition until
//! the claim has answered, so one piece of work never wakes a hundred workers. [`choose`] is the pure part.

pub mod admission;
mod board;
pub mod choose;
mod combine;
mod dispatcher;
mod granting;

pub use admission::{Admission, Admitted, StoreAdmission};
pub use dispatcher::{Dispatcher, DispatcherOptions, Held, Profile};
