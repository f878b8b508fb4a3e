//! What a worker can rely on, on every transport.
#![expect(clippy::unwrap_used, reason = "a test fails where an answer is not the expected one")]
#![expect(clippy::type_complexity, reason = "tables of a test")]

#[macro_use]
mod world;

mod alike;
mod children;
mod explaining;
mod flows;
mod grants;
mod lossy;
mod lost_answers;
mod middleware;
mod own_waits;
mod processes;
mod registration;
mod runtime;
mod signatures;
mod steps;
mod store_calls;
mod streams;
mod tasks;
mod testing;
mod traces;
mod usage;
mod usage_runtime;
mod waits;
mod waits_runtime;
mod warnings;
