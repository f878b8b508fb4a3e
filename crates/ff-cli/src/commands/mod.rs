//! One file per command.

pub mod acting;
pub mod approvals;
pub mod cancel;
pub mod dev;
pub mod events;
pub mod explain;
pub mod flow;
pub mod fsck;
pub mod history;
pub mod hold;
pub mod key;
pub mod lane;
pub mod list;
pub mod quota;
pub mod release;
pub mod replay;
pub mod result;
pub mod resume;
pub mod server;
pub mod show;
pub mod signal;
pub mod submit;
pub mod tail;
pub mod token;
pub mod worker;
