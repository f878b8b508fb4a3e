//! Ids, partitions, states, policies and errors, shared by every other crate.
//!
//! Nothing here does I/O or knows a store. Every value is valid: text that is not a state, an id or a known error code
//! has no Rust value.

mod text_enum;

pub mod bounds;
pub mod types;

pub mod partition;

pub mod state;

pub mod policy;

pub mod contracts;

pub mod condition;

pub mod graph;

pub mod merge_patch;

pub mod json;
pub mod limits;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod webhook;

pub mod error;
#[rustfmt::skip]
pub mod error_code;

pub use error::{Class, EngineError};
pub use error_code::ErrorCode;
pub use partition::PartitionConfig;
