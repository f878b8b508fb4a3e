//! Webhooks: carried to their receivers by this server, signed, and never to a network it may not reach.

mod address;
mod courier;
mod message;

pub use address::WebhookOptions;
pub use courier::{HttpCourier, NoClient};
