//! An operator who makes random calls.

use std::collections::BTreeMap;

use ff_script::Route;
use ff_script::generated::*;

use super::{Actor, CAPABILITIES, LANES, NAMESPACE, Scene, draw_digest, flows};
use crate::admission::needs_admission;
use crate::request::{Outcome, Reply, Request};

pub(crate) struct Operator;

fn me() -> String {
    "ada".to_owned()
}

impl Operator {
    fn change(scene: &mut Scene<'_>) {
        let id = *scene.rng.pick(&scene.board.known);
        let mut call = ChangeExecution::new(me(), id);
        match scene.rng.below(5) {
            0 => call.priority = Some(*scene.rng.pick(&[0, 3, 9_000])),
            1 => call.lane = Some(scene.rng.pick(LANES).0.to_owned()),
            2 => call.delay_until = Some(scene.now + scene.rng.between(-500, 2_000)),
            3 => call.deadline_at = Some(scene.now + scene.rng.between(200, 6_000)),
            _ => {
                let value = format!("value-{}", scene.rng.below(3));
                call.tags = Some(BTreeMap::from([("tag-0".to_owned(), value)]));
            }
        }
        if scene.rng.percent(20) {
            call.priority = Some(7);
        }
        scene.tell(id, call);
    }
}

impl Actor for Operator {
    fn name(&self) -> String {
        "operator".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        if scene.board.known.is_empty() {
            return 200;
        }
        let id = *scene.rng.pick(&scene.board.known);
        let instance = scene.rng.pick(&scene.board.instances).clone();
        match scene.rng.weighted(&[12, 10, 12, 14, 12, 30, 3, 6, 6, 2, 2, 8, 2, 10, 5]) {
            14 if !scene.board.flows.is_empty() => {
                let flow_id = *scene.rng.pick(&scene.board.flows);
                let policy = CancelPolicy::ALL[scene.rng.below(CancelPolicy::ALL.len())];
                let reason = scene.rng.percent(50).then(|| "not needed".to_owned());
                flows::tell(flow_id, scene, CancelFlow { reason, ..CancelFlow::new(me(), flow_id, policy) });
            }
            11 => scene.tell(id, ResumeExecution::new(me(), id)),
            12 => {
                let (category, reason) = ("refused".to_owned(), "no".to_owned());
                scene.tell(id, FailSuspension { actor: me(), category, execution_id: id, reason });
            }
            13 if !scene.board.tokens.is_empty() => {
                let lately = scene.board.tokens.len().saturating_sub(8);
                let mut token = scene.rng.pick(&scene.board.tokens[lately..]).clone();
                token.digest = draw_digest(scene.rng);
                let (id, waitpoint_id) = (token.execution_id, token.waitpoint_id);
                let mut call = ReissueToken::new(me(), token.digest.clone(), id, waitpoint_id);
                call.approver = scene.rng.percent(60).then(|| (*scene.rng.pick(&["ann", "bob"])).to_owned());
                scene.board.tokens.push(token);
                scene.tell(id, call);
            }
            0 => {
                let mut call = CancelExecution::new(me(), id);
                call.grace_ms = scene.rng.percent(60).then(|| scene.rng.between(0, 2_000));
                call.reason = scene.rng.percent(50).then(|| "not needed".to_owned());
                scene.tell(id, call);
            }
            1 => scene.tell(id, HoldExecution::new(me(), id)),
            2 => scene.tell(id, ReleaseExecution::new(me(), id)),
            3 => Self::change(scene),
            4 => {
                let mut call = RevokeLease::new(me(), id);
                call.grace = scene.rng.percent(40).then_some(true);
                scene.tell(id, call);
            }
            5 => scene.tell(id, ReplayExecution::new(me(), id)),
            6 => scene.tell(id, DeleteExecution { actor: me(), execution_id: id }),
            7 => {
                let reason = *scene.rng.pick(&[AdmissionReason::WaitingForQuota, AdmissionReason::WaitingForBudget]);
                scene.tell(id, UnblockExecution { execution_id: id, holder_id: None, reason });
            }
            8 => {
                let call = GrantReclaim {
                    actor: me(),
                    execution_id: id,
                    grant_id: scene.rng.uuid(),
                    instance,
                    ttl_ms: scene.rng.between(100, 2_000),
                    // The server passes on what the worker registered; the library must refuse missing capabilities.
                    capabilities: CAPABILITIES.iter().map(|&token| token.to_owned()).collect(),
                    kinds: None,
                    lanes: LANES.iter().map(|(lane, ..)| (*lane).to_owned()).collect(),
                    namespace: NAMESPACE.to_owned(),
                };
                scene.tell(id, call);
            }
            9 => scene.say(Route::Fleet, DrainWorker { actor: me(), instance }),
            _ => scene.say(Route::Fleet, MarkWorkerDead { actor: me(), instance }),
        }
        scene.rng.between(60, 300)
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        if let (
            Request::GrantReclaim(call),
            Outcome::Reply(Reply::GrantReclaim(GrantReclaimReply::Granted { grant })),
        ) = (request, outcome)
        {
            if scene.board.limits.on && needs_admission(grant) {
                return scene.board.limits.reclaims.push(grant.clone());
            }
            scene.board.saw_grant(call.execution_id, call.grant_id, &call.instance);
        }
    }
}
