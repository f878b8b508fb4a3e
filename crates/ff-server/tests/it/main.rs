//! The HTTP API over real connections, on both hosts.

#[macro_use]
mod kit;

mod access;
mod budgets;
mod bulk;
mod children;
mod described;
mod documentation;
mod events;
mod executions;
mod flows;
mod lanes;
mod payloads;
mod quotas;
mod refusals;
mod shell;
mod signals;
mod streams;
mod tasks;
mod waitpoints;
mod workers;
