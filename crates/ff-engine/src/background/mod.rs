//! The work nobody asks for: each part does a bounded amount per step and is woken, not polled.

pub mod events;
pub mod holders;
pub mod outbox;
pub mod routes;
pub mod schedules;
pub mod share;
pub mod timers;
pub mod unblock;
pub mod webhooks;

mod clock;

pub use clock::Clock;
