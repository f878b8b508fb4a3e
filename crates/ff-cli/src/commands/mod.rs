//! One file per command.

pub mod cancel;
pub mod dev;
pub mod fsck;
pub mod list;
pub mod replay;
pub mod result;
pub mod server;
pub mod show;
pub mod submit;
