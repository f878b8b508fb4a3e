//! What the API shows: one file per thing, each a plain struct that becomes JSON.

pub mod suspension;

pub use ff_api::Listed;
