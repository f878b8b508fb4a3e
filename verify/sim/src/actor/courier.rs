//! Delivers webhooks like a server: takes what is due, reports some as delivered and others as failed, and drops a few.

use ff_script::generated::*;

use super::{Actor, Scene};
use crate::request::{Outcome, Reply, Request};

/// Number of receivers in the simulation.
const RECEIVERS: u64 = 3;

/// Which executions have a webhook, and its address. The id decides, so that every copy of a submission has the same.
pub(crate) fn address(draw: u64) -> Option<String> {
    draw.is_multiple_of(4).then(|| format!("https://receiver-{}.example.org/done", (draw / 4) % RECEIVERS))
}

#[derive(Default)]
pub(crate) struct Courier;

impl Actor for Courier {
    fn name(&self) -> String {
        "courier".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        let routes: Vec<_> = scene.board.routes().collect();
        let route = *scene.rng.pick(&routes);
        let (limit, each) = (scene.rng.between(1, 6), scene.rng.between(1, 3));
        scene.say(route, TakeWebhooks { each, in_flight: [].into(), limit });
        scene.rng.between(700, 2_500)
    }

    fn answer(&mut self, _: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        let Outcome::Reply(Reply::TakeWebhooks(TakeWebhooksReply::Taken { items, .. })) = outcome else { return };
        let Some(route) = scene.from else { return };
        for webhook in items {
            let result = match scene.rng.weighted(&[50, 30, 5, 15]) {
                0 => WebhookResult::Delivered,
                1 => WebhookResult::Failed,
                2 => WebhookResult::Refused,
                // The courier died before it reported.
                _ => continue,
            };
            let draw = scene.rng.between(0, 1000);
            scene.say(route, NoteWebhook::new(webhook.delivery_id, draw, result, webhook.tries));
        }
    }
}
