//! FlowFabric in one dependency: durable executions, and the workers that run them.
//!
//! ```
//! # #[cfg(feature = "embedded")]
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use flowfabric::{EmbeddedEngine, FlowFabricWorker, NewExecution, WorkerConfig};
//!
//! let directory = tempfile::tempdir().unwrap();
//! let engine = EmbeddedEngine::open(directory.path()).await?;
//! let id = engine.admin().submit(NewExecution::new("default", "mail", "send")).await?;
//!
//! let worker = FlowFabricWorker::connect(WorkerConfig::embedded(&engine, "mailer", "mailer-1", "default", "mail")).await?;
//! let task = worker.claim_next().await?.expect("one execution waits");
//! assert_eq!(task.execution_id(), &id);
//! task.complete(None).await?;
//! # Ok::<(), flowfabric::SdkError>(())
//! # }).unwrap();
//! ```

#![warn(missing_docs)]

pub use ff_core::{condition, contracts, error, policy, state, types};
pub use ff_sdk::*;

/// The engine itself: operations, event feed, timers and reconcilers.
pub use ff_engine as engine;

/// The library's typed calls and the seam to storage.
pub use ff_script as script;

/// The worker that everybody sees first, so that it compiles.
#[cfg(doctest)]
#[cfg(feature = "http")]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The guide for people who write workers, so that what it shows runs.
#[cfg(doctest)]
#[cfg(feature = "embedded")]
#[doc = include_str!("../../../docs/workers.md")]
struct WorkersGuide;

/// The guide to webhooks, for the same reason.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/webhooks.md")]
struct WebhooksGuide;

/// The guides to durable steps, for the same reason.
#[cfg(doctest)]
#[cfg(feature = "embedded")]
#[doc = include_str!("../../../docs/guides/steps.md")]
#[doc = include_str!("../../../docs/guides/durable-programs.md")]
struct StepsGuides;

/// The guide to budgets and quotas, for the same reason.
#[cfg(doctest)]
#[cfg(feature = "embedded")]
#[doc = include_str!("../../../docs/budgets.md")]
struct BudgetsGuide;

/// The guide to schedules, for the same reason.
#[cfg(doctest)]
#[cfg(feature = "embedded")]
#[doc = include_str!("../../../docs/guides/schedules.md")]
struct SchedulesGuide;
