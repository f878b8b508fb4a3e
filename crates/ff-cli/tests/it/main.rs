//! The commands as a person or a script runs them, against real servers.

mod kit;

mod access;
mod client;
mod dev;
mod exec;
mod explaining;
mod flows;
mod full_disk;
mod killed;
mod killed_limits;
mod killed_schedules;
mod moving;
mod moving_disturbed;
mod moving_under_load;
mod operating;
mod people;
mod restarted;
mod shell;
mod telemetry;
mod waits;
mod webhooks;
