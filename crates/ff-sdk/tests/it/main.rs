//! What a worker can rely on, on every transport.

#[macro_use]
mod world;

mod grants;
mod middleware;
mod processes;
mod registration;
mod runtime;
mod signatures;
mod tasks;
mod testing;
