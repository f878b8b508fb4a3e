//! What every host must do, area by area; each test runs on every host.

mod submit;
mod time;
mod claim;
mod lanes;
mod leases;
mod fence;
mod retry;
mod operators;
mod grants;
mod routes;
mod storage;
mod lists;
mod workers;
mod events;
mod announcements;
mod fsck;
mod contract;
mod arguments;
