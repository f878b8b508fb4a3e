//! Schedules: defined, read, steered and fired.

use ff_api::schedules::{
    BackfillSchedule, DeleteSchedule, GetSchedule, ListFirings, ListSchedules, NextOfSchedule, PauseSchedule,
    PutSchedule, ResumeSchedule, StopBackfill, TriggerSchedule,
};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListSchedules>()
        .answering::<PutSchedule>()
        .answering::<GetSchedule>()
        .answering::<DeleteSchedule>()
        .answering::<PauseSchedule>()
        .answering::<ResumeSchedule>()
        .answering::<TriggerSchedule>()
        .answering::<BackfillSchedule>()
        .answering::<StopBackfill>()
        .answering::<NextOfSchedule>()
        .answering::<ListFirings>()
}
