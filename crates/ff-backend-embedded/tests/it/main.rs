//! The embedded host: commands as Valkey runs them, durability, damage, and crashes.

mod support;

mod commands;
mod crash;
mod damage;
mod host;
mod parity;
