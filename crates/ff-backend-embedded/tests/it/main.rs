//! The embedded host: Valkey's commands, durability, damage, and crashes.

mod support;

mod commands;
mod crash;
mod damage;
mod host;
mod parity;
