//! Workers in Rust: write handlers, and claiming, leases, retries of lost answers and shutdown are taken care of.
//!
//! [`runtime::WorkerRuntime`] runs handlers; [`FlowFabricWorker`] claims one task at a time for those who want the loop
//! themselves. Both work the same over Valkey, an embedded engine, and `ff server`: the transport is a setting.
//!
//! ```
//! # #[cfg(feature = "embedded")]
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use ff_sdk::runtime::{HandlerResult, Payload, WorkerRuntime};
//! use ff_sdk::testing::TestEngine;
//!
//! async fn greet(Payload(name): Payload<String>) -> HandlerResult {
//!     Ok(Some(format!("hello {name}").into_bytes()))
//! }
//!
//! let engine = TestEngine::start().await?;
//! let id = engine.submit("greet", br#""world""#).await?;
//! let running = engine.run(WorkerRuntime::new(engine.worker("w-1").await?).on("greet", greet));
//! assert_eq!(engine.result(&id).await?.result.as_deref(), Some(b"hello world".as_slice()));
//! running.stop().await?;
//! # Ok::<(), ff_sdk::SdkError>(())
//! # }).unwrap();
//! ```

#![warn(missing_docs)]

mod config;
mod error;
mod finish;

pub mod backend;
#[cfg(feature = "embedded")]
mod embedded;
#[cfg(feature = "http")]
pub mod http;
pub mod snapshot;

mod admin;
mod cancellation;
mod flows;
mod lease;
pub mod schedules;
mod steps;
mod streams;
pub mod task;
mod trace;
mod usage;
mod waits;
pub mod webhook;
mod worker;

pub mod middleware;
pub mod runtime;
#[cfg(feature = "embedded")]
pub mod testing;

pub use admin::FlowFabricAdminClient;
pub use cancellation::{CancelReason, TaskCancellation};
pub use config::{BackendConfig, LEASE_TTL_MS, Secret, WorkerConfig};
#[cfg(feature = "embedded")]
pub use embedded::EmbeddedEngine;
pub use error::SdkError;
pub use ff_api::executions::ExecutionFilter;
pub use ff_api::steps::{ForkBody, ReplayFrom};
pub use ff_core::EngineError;
pub use ff_engine::{ListCursor, NewExecution};
pub use ff_script::generated::{Backoff, BackoffType, Jitter, Retry};
pub use flows::{ChildSpec, FlowCursor, FlowFilter, FlowSpec, MemberSpec};
pub use task::ClaimedTask;
pub use usage::{BudgetChange, BudgetSpec, QuotaChange, QuotaSpec};
pub use worker::{FlowFabricWorker, WorkerState};
