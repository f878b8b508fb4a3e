//! The keys that sign waitpoint tokens.

use ff_api::keys::{ListKeys, RevokeKey, RotateKeys};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new().answering::<ListKeys>().answering::<RotateKeys>().answering::<RevokeKey>()
}
