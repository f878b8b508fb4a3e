//! The check of a store's invariants.

use ff_api::fsck::CheckStore;

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new().answering::<CheckStore>()
}
