//! Checks completion webhooks as their receiver.
//!
//! An execution submitted with [`NewExecution::completion_webhook`](crate::NewExecution::completion_webhook), or a flow with
//! [`FlowSpec::completion_webhook`](crate::FlowSpec::completion_webhook), tells that address when it has ended; a server delivers it.

pub use ff_keys::{InvalidWebhook, WEBHOOK_TOLERANCE_MS, WebhookHeaders, verify_webhook};
