//! What an engine does by itself over a real store in real time, on both hosts, with the library as it is shipped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

mod budgets;
mod events;
mod flows;
mod fsck;
mod idle;
mod kit;
mod lanes;
mod lists;
mod quotas;
mod routes;
mod schedules;
mod share;
mod streams;
mod submission;
mod timers;
mod waiting;
mod waitpoints;
mod wiretap;
mod workers;
