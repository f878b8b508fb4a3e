//! Holders of tokens, valid or found: they signal once, repeatedly, late, with old tokens, with other tokens and with
//! forged ones.

use ff_core::types::{ExecutionId, SignalId};
use ff_script::generated::*;

use super::{Actor, Scene, Token, draw_digest, submitter};
use crate::request::{Outcome, Request};

/// Number of sent signals that an outsider keeps for repetition.
const SENT_MAX: usize = 24;

#[derive(Default)]
pub(crate) struct Outsider {
    sent: Vec<DeliverSignal>,
}

/// All names of signals.
pub(crate) const NAMES: &[&str] = &["approved", "paid", "timeout"];

impl Outsider {
    fn fresh(scene: &mut Scene<'_>, token: Token) -> DeliverSignal {
        let name = (*scene.rng.pick(NAMES)).to_owned();
        let signal_id = SignalId::from_uuid(scene.rng.uuid());
        let mut call = DeliverSignal::new(token.execution_id, name, signal_id, token.digest, token.waitpoint_id);
        call.payload = submitter::draw_bytes(scene.rng);
        call.idempotency_key = scene.rng.percent(40).then(|| format!("key-{}", scene.rng.below(2)));
        // The caller's own claim of identity never counts.
        call.source_identity = scene.rng.percent(50).then(|| (*scene.rng.pick(&["ann", "bob"])).to_owned());
        call
    }

    fn say(&mut self, scene: &mut Scene<'_>, call: DeliverSignal) {
        self.sent.push(call.clone());
        if self.sent.len() > SENT_MAX {
            self.sent.remove(0);
        }
        scene.tell(call.execution_id, call);
    }
}

impl Actor for Outsider {
    fn name(&self) -> String {
        "outsider".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        let tokens = &scene.board.tokens;
        if tokens.is_empty() {
            return 150;
        }
        let lately = tokens.len().saturating_sub(4);
        let from = if scene.rng.percent(80) { lately } else { 0 };
        let mut token = scene.rng.pick(&tokens[from..]).clone();
        match scene.rng.weighted(&[64, 16, 4, 4, 10, 4]) {
            0 => {
                let call = Self::fresh(scene, token);
                self.say(scene, call);
            }
            1 if !self.sent.is_empty() => {
                let mut call = scene.rng.pick(&self.sent).clone();
                // The same signal, or another one with the same key.
                if scene.rng.percent(40) {
                    call.signal_id = SignalId::from_uuid(scene.rng.uuid());
                    call.payload = submitter::draw_bytes(scene.rng);
                }
                scene.tell(call.execution_id, call);
            }
            2 => {
                token.digest = draw_digest(scene.rng);
                let call = Self::fresh(scene, token);
                scene.tell(call.execution_id, call);
            }
            3 => {
                // A valid token for another waitpoint.
                token.digest = scene.rng.pick(&scene.board.tokens).digest.clone();
                let call = Self::fresh(scene, token);
                self.say(scene, call);
            }
            4 => {
                // A valid token and its waitpoint for another execution: one in the same partition that recently had
                // waitpoints or frames.
                let home = scene.board.route_of(&token.execution_id);
                let lately = scene.board.tokens.iter().rev().take(12).map(|token| token.execution_id);
                let others: Vec<ExecutionId> = lately
                    .chain(scene.board.streams.iter().rev().take(6).copied())
                    .filter(|id| *id != token.execution_id && scene.board.route_of(id) == home)
                    .collect();
                let anyone = &scene.board.known;
                token.execution_id = *scene.rng.pick(if others.is_empty() { anyone } else { &others });
                let call = Self::fresh(scene, token);
                self.say(scene, call);
            }
            _ => {
                // Another waitpoint, possibly of the same execution.
                let other = scene.rng.pick(&scene.board.tokens).clone();
                token.waitpoint_id = other.waitpoint_id;
                let call = Self::fresh(scene, token);
                self.say(scene, call);
            }
        }
        scene.rng.between(40, 220)
    }

    fn answer(&mut self, _request: &Request, _outcome: &Outcome, _scene: &mut Scene<'_>) {}
}
