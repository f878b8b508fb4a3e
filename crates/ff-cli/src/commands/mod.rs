//! One file per command.

pub mod approvals;
pub mod budget;
pub mod cancel;
pub mod dev;
pub mod flow;
pub mod fsck;
pub mod key;
pub mod list;
pub mod quota;
pub mod replay;
pub mod result;
pub mod resume;
pub mod server;
pub mod show;
pub mod signal;
pub mod submit;
pub mod tail;
pub mod token;
