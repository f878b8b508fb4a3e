//! The HTTP API: one port for executions, lanes, workers and the worker protocol of any language.
//!
//! [`Server::start`] runs an engine and a dispatcher over a host and serves them. Every answer is JSON or
//! `application/problem+json`; a request is checked at the door, read strictly, turned into one typed operation and its
//! answer into the shape of the API. Nothing here decides about state: what may happen is the library's word.

mod access;
mod answering;
mod app;
mod body;
mod carried;
mod door;
#[cfg(test)]
mod error_pages;
mod form;
mod http2;
mod line;
mod metrics;
mod openapi;
mod outside;
mod problem;
mod query;
mod routes;
mod serve;
mod tails;
mod times;
mod tls;
mod tokens;
mod unread;
mod webhooks;

pub use access::{Access, routes};
pub use metrics::{Kind as MetricKind, METRICS, Metric, Source as MetricSource};
pub use openapi::openapi_json;
pub use outside::Origin;
pub use serve::{Auth, CONNECTIONS_MAX, NotStarted, Server, ServerOptions};
pub use times::Times;
pub use tls::{BadTls, Tls};
pub use webhooks::WebhookOptions;
