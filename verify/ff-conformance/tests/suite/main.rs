//! What every host must do, area by area; each test runs on every host.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing fails by panicking")]

mod access;
mod announcements;
mod arguments;
mod budgets;
mod children;
mod claim;
mod codec;
mod conditions;
mod contract;
mod events;
mod fence;
mod flows;
mod fsck;
mod grants;
mod lanes;
mod leases;
mod lines;
mod lists;
mod operators;
mod quotas;
mod retry;
mod routes;
mod signals;
mod slots;
mod storage;
mod streams;
mod submit;
mod suspend;
mod tally;
mod time;
mod usage;
mod visits;
mod waitpoints;
mod webhooks;
mod workers;
