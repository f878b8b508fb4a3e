//! The HTTP API over real connections, on both hosts.

#[macro_use]
mod kit;

mod access;
mod budgets;
mod bulk;
mod canary;
mod children;
mod clients;
mod described;
mod documentation;
mod events;
mod executions;
mod explain_lane;
mod exposition;
mod flows;
mod http2;
mod idle;
mod lanes;
mod metrics;
mod outside;
mod payloads;
mod quotas;
mod receiver;
mod refusals;
mod schedules;
mod shell;
mod signals;
mod standing;
mod steps;
mod streams;
mod tasks;
mod telemetry;
mod waitpoints;
mod webhooks;
mod wire;
mod workers;
