//! What the API shows: one file per thing, each a plain struct that becomes JSON.

pub mod child;
pub mod event;
pub mod flow;
pub mod frame;
pub mod lane;
pub mod suspension;

pub use ff_api::Listed;
