//! Submission: accepted as a whole, refused as a whole, or a repetition.

use std::collections::BTreeSet;

use ff_script::generated::{
    AttemptType, InstallLane, InstallLaneReply, QuotaRef, Submission, SubmitExecution, SubmitExecutionReply,
};

use super::execution::{Execution, Said, Stage, Waiting};
use super::retry::Policy;
use super::stream::Streams;
use super::waits::Waits;
use super::{Answer, Key, Lane, Model, invalid, refused};

const DAY_MS: i64 = 86_400_000;

impl Model {
    pub fn submit(&mut self, call: &SubmitExecution) -> Answer<SubmitExecutionReply> {
        self.submit_one(&call.submission)
    }

    fn submit_one(&mut self, s: &Submission) -> Answer<SubmitExecutionReply> {
        if s.delay_until.is_some() && s.delay_ms.is_some() {
            return Err(invalid("delay_ms", "give delay_until or delay_ms, not both"));
        }
        if s.deadline_at.is_some() && s.deadline_ms.is_some() {
            return Err(invalid("deadline_ms", "give deadline_at or deadline_ms, not both"));
        }
        if s.idempotency_ttl_ms.is_some() && s.idempotency_key.is_none() {
            return Err(invalid("idempotency_ttl_ms", "needs idempotency_key"));
        }
        if let Some(answer) = self.repeated(s) {
            return answer;
        }
        let path = format!("{}/{}", s.namespace, s.lane);
        let Some(lane) = self.lanes.get(&path) else {
            return Err(refused(
                "lane_unseen",
                &[("namespace", Some(s.namespace.clone())), ("lane", Some(s.lane.clone()))],
            ));
        };
        accepts(lane, s)?;
        if self.executions.contains_key(&s.execution_id) {
            return Err(conflict(&s.execution_id.to_string()));
        }

        let now = self.now;
        let said = said(s, lane, now);
        let lane = self.lanes.get_mut(&path).expect("looked up above");
        let priority = s.priority.unwrap_or(0);
        let (score, turn) = lane.score(now, priority, s.fairness_key.as_deref(), now);
        if let Some(key) = &s.idempotency_key {
            let until = now + s.idempotency_ttl_ms.unwrap_or(DAY_MS);
            let record = Key { execution_id: s.execution_id, body_digest: s.body_digest.clone(), until };
            self.keys.insert((s.namespace.clone(), key.clone()), record);
        }
        let execution = Execution {
            id: s.execution_id,
            lane: s.lane.clone(),
            priority,
            score,
            turn,
            tags: s.tags.clone().unwrap_or_default(),
            deadline: s.deadline_at.or(s.deadline_ms.map(|ms| now + ms)),
            start_by: said.start_within_ms.map(|ms| now + ms),
            updated_at: now,
            stage: Stage::Waiting(Waiting {
                delay: s.delay_until.or(s.delay_ms.map(|ms| now + ms)),
                ..Waiting::next(AttemptType::Initial)
            }),
            attempts: Vec::new(),
            past: None,
            failures: 0,
            lost_in_a_row: 0,
            replays: 0,
            tier: None,
            progress: None,
            actions: Vec::new(),
            awaited: false,
            grants: 0,
            waits: Waits::default(),
            streams: Streams::default(),
            said,
        };
        self.executions.insert(s.execution_id, execution);
        self.settle(s.execution_id);
        let state = self.executions[&s.execution_id].state();
        Ok(SubmitExecutionReply::Created { execution_id: s.execution_id, state })
    }

    /// The reply to a repeated submission. It is found by key, which outlives its execution, or by id.
    fn repeated(&self, s: &Submission) -> Option<Answer<SubmitExecutionReply>> {
        let (id, digest) = match &s.idempotency_key {
            Some(key) => {
                let record =
                    self.keys.get(&(s.namespace.clone(), key.clone())).filter(|record| record.until > self.now)?;
                (record.execution_id, &record.body_digest)
            }
            None => (s.execution_id, &self.executions.get(&s.execution_id)?.said.body_digest),
        };
        if *digest != s.body_digest {
            return Some(Err(conflict(&id.to_string())));
        }
        let state = self.executions.get(&id).map(Execution::state);
        Some(Ok(SubmitExecutionReply::Duplicate { execution_id: id, state }))
    }

    pub fn install_lane(&mut self, call: &InstallLane) -> Answer<InstallLaneReply> {
        let entry = &call.entry;
        let path = format!("{}/{}", entry.namespace, entry.lane);
        match self.lanes.get_mut(&path) {
            Some(lane) if lane.version >= entry.version => {
                return Ok(InstallLaneReply::Newer { version: lane.version });
            }
            Some(lane) => (lane.version, lane.definition) = (entry.version, entry.definition.clone()),
            None => {
                self.lanes.insert(path, Lane::new(entry.version, entry.definition.clone()));
            }
        }
        Ok(InstallLaneReply::Installed)
    }
}

fn conflict(id: &str) -> super::Refusal {
    refused("idempotency_conflict", &[("execution_id", Some(id.to_owned()))])
}

fn accepts(lane: &Lane, s: &Submission) -> Answer<()> {
    let name = ("lane", Some(s.lane.clone()));
    if !lane.accepts() {
        return Err(refused("lane_disabled", &[name, ("state", Some(lane.definition.state.to_string()))]));
    }
    let Some(max_depth) = lane.definition.max_depth else { return Ok(()) };
    match s.lane_depth {
        None => Err(refused("lane_depth_needed", &[name])),
        Some(depth) if depth >= max_depth => Err(refused(
            "lane_full",
            &[
                name,
                ("depth", Some(depth.to_string())),
                ("max_depth", Some(max_depth.to_string())),
                ("depth_age_ms_max", Some("1000".to_owned())),
            ],
        )),
        Some(_) => Ok(()),
    }
}

fn set(tokens: Option<&Vec<String>>) -> Vec<String> {
    tokens.into_iter().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn said(s: &Submission, lane: &Lane, now: i64) -> Said {
    let quotas = s.quotas.iter().flatten();
    Said {
        namespace: s.namespace.clone(),
        kind: s.kind.clone(),
        input: s.input.clone().unwrap_or_default(),
        input_encoding: s.input_encoding.clone().unwrap_or_else(|| "json".to_owned()),
        created_at: now,
        start_within_ms: s.start_within_ms,
        attempt_timeout_ms: s.attempt_timeout_ms.or(lane.definition.attempt_timeout_ms),
        max_reclaims: s.max_reclaims.unwrap_or(5),
        max_replays: s.max_replays.unwrap_or(10),
        requires: set(s.requires.as_ref()),
        prefers: set(s.prefers.as_ref()),
        fairness_key: s.fairness_key.clone(),
        budgets: s.budgets.clone().unwrap_or_default(),
        quotas: quotas.map(|quota| QuotaRef { weight: Some(quota.weight.unwrap_or(1)), ..quota.clone() }).collect(),
        fallbacks: s.fallbacks.clone().unwrap_or_default(),
        retention_ms: s.retention_ms.or(lane.definition.retention_ms).unwrap_or(7 * DAY_MS),
        max_frames: s.stream.as_ref().and_then(|stream| stream.max_frames).unwrap_or(10_000),
        trace_parent: s.trace_parent.clone(),
        completion_webhook: s.completion_webhook.clone(),
        retry: Policy::of(s.retry.as_ref(), lane.definition.retry.as_ref()),
        body_digest: s.body_digest.clone(),
    }
}
