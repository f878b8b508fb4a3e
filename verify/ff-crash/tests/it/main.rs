//! Kills, stops and damages real processes and files under load. Everything acknowledged must still be true.

mod cluster;
mod corrupt;
mod embedded;
mod judge;
mod kit;
mod valkey;
mod zombie;
