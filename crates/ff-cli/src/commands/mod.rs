//! One file per command.

pub mod dev;
pub mod fsck;
