//! Dispatchers over a real store in real time, on both hosts, with the library as it is shipped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

mod blocked;
mod contention;
mod counted;
mod flaky;
mod kit;
mod quotas;
mod rooms;
mod slots;
mod zombies;
