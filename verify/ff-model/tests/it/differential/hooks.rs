//! Calls about webhooks, which are not in the model. Later calls use the results of earlier ones.

use ff_model::model::Model;
use ff_model::op::read_answer;
use ff_model::store::ROUTE;
use ff_script::generated as g;
use ff_script::{Call, Invocation};
use rand::Rng;
use rand::rngs::StdRng;
use uuid::Uuid;

use super::call;
use super::other::{id, maybe, some_execution};

/// Each of them must succeed at least once, not only fail.
pub const FUNCTIONS: [&str; 3] = ["ff_take_webhooks", "ff_note_webhook", "ff_describe_webhook"];

/// Webhooks that were taken for delivery, with the number of the try.
#[derive(Default)]
pub struct Hooks(Vec<(Uuid, i64)>);

impl Hooks {
    /// One call.
    pub fn call_of(&self, rng: &mut StdRng, model: &Model) -> Invocation {
        let now = model.now;
        match rng.random_range(0..6) {
            0..=2 => {
                let busy = |rng: &mut StdRng| (format!("{:020x}", rng.random_range(0..3)), rng.random_range(0..4));
                let in_flight = (0..rng.random_range(0..3)).map(|_| busy(rng)).collect();
                let (limit, each) = (rng.random_range(1..5), rng.random_range(1..4));
                call(ROUTE, &g::TakeWebhooks { each, in_flight, limit }, now)
            }
            3 | 4 => {
                let (delivery_id, tries) = match self.0.len() {
                    0 => (id(rng), 1),
                    count => self.0[rng.random_range(0..count)],
                };
                let result = g::WebhookResult::ALL[rng.random_range(0..3)];
                let note = g::NoteWebhook {
                    status: maybe(rng, |rng| rng.random_range(200..600)),
                    error: maybe(rng, |_| "answered".to_owned()),
                    retry_after_ms: maybe(rng, |rng| rng.random_range(0..10_000_000)),
                    ..g::NoteWebhook::new(delivery_id, rng.random_range(0..=1000), result, tries)
                };
                call(ROUTE, &note, now)
            }
            _ => {
                let execution_id = Some(some_execution(rng, model));
                call(ROUTE, &g::DescribeWebhook { execution_id, flow_id: None }, now)
            }
        }
    }

    /// Records what was taken.
    pub fn learn(&mut self, function: &str, reply: &[u8]) {
        if function != g::TakeWebhooks::FUNCTION {
            return;
        }
        if let Ok(Ok(g::TakeWebhooksReply::Taken { items, .. })) = read_answer::<g::TakeWebhooks>(reply) {
            self.0.extend(items.into_iter().map(|webhook| (webhook.delivery_id, webhook.tries)));
        }
    }
}
