//! Lanes: list, read, define, and their states.

use ff_api::lanes::{DefineLane, DisableLane, DrainLane, GetLane, ListLanes, PauseLane, ResumeLane};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListLanes>()
        .answering::<GetLane>()
        .answering::<DefineLane>()
        .answering::<PauseLane>()
        .answering::<ResumeLane>()
        .answering::<DrainLane>()
        .answering::<DisableLane>()
}
