//! What the API shows: one file per thing, each a plain struct that becomes JSON.

pub mod blocked;
pub mod budget;
pub mod child;
pub mod event;
pub mod execution;
pub mod flow;
pub mod frame;
pub mod lane;
pub mod quota;
pub mod suspension;

pub use ff_api::Listed;
