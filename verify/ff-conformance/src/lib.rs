//! What every host must do: the harness, and under `tests/` the suite that runs on each host.

pub mod flows;
pub mod harness;
pub mod naive;
pub mod stored;
pub mod waits;
pub mod work;

pub use harness::{Kind, Store};
