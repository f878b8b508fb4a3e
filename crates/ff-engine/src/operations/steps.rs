//! Durable steps: read by name or page by page, and copied to a fork.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::ExecutionId;
use ff_script::generated::{
    ForkExecution, ForkExecutionReply, GetStep, GetStepReply, ListSteps, ListStepsReply, Resume, Step, Submission,
};
use ff_script::wire::Wire;
use ff_script::{Bytes, Error};
use sha2::{Digest, Sha256};

use super::Operations;
use super::flow::derived_id;

/// A lane may have to be installed and its depth counted before a fork passes.
const TRIES: usize = 4;

/// A step with its result, or with what its wait came to.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundStep {
    /// The step.
    pub step: Step,
    /// What it returned.
    pub result: Option<Vec<u8>>,
    /// How the result is encoded.
    pub result_encoding: Option<String>,
    /// What its wait came to, whole.
    pub resume: Option<Resume>,
}

/// What a fork changes of its origin's submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fork {
    /// It starts with copies of the finished steps before this one; of all when absent.
    pub from_step: Option<String>,
    /// Another input.
    pub input: Option<Vec<u8>>,
    /// How that input is encoded.
    pub input_encoding: Option<String>,
    /// Another lane.
    pub lane: Option<String>,
    /// Another priority.
    pub priority: Option<i64>,
    /// Other tags.
    pub tags: Option<BTreeMap<String, String>>,
    /// The same key for the same origin forks once.
    pub idempotency_key: Option<String>,
}

impl Fork {
    /// What tells two forks of one origin under one key apart.
    fn digest(&self, origin: ExecutionId) -> String {
        let mut said = Vec::new();
        origin.write(&mut said);
        for text in [&self.from_step, &self.lane, &self.input_encoding] {
            text.clone().write(&mut said);
        }
        self.input.clone().map(Bytes).write(&mut said);
        self.priority.write(&mut said);
        self.tags.clone().write(&mut said);
        hex::encode(&Sha256::digest(&said)[..16])
    }

    /// The fork's id, on its origin's partition.
    fn id(&self, origin: ExecutionId) -> ExecutionId {
        match &self.idempotency_key {
            Some(key) => derived_id(origin.as_uuid(), &[b"fork", key.as_bytes()]),
            None => ExecutionId::mint_with_seed(origin.seed()),
        }
    }
}

impl Operations {
    /// Steps in the order in which they were first recorded, after the step of a number; and whether more follow.
    pub async fn steps(&self, id: ExecutionId, after: i64, limit: i64) -> Result<(Vec<Step>, bool), Error> {
        let call = ListSteps { after: Some(after).filter(|after| *after > 0), ..ListSteps::new(id, limit) };
        let ListStepsReply::Page { steps, more } = self.client.call(self.client.route_of(&id), &call).await?;
        Ok((steps, more))
    }

    /// One step, with everything its wait came to.
    pub async fn step(&self, id: ExecutionId, name: &str) -> Result<FoundStep, Error> {
        let mut call = GetStep::new(id, name.to_owned());
        let route = self.client.route_of(&id);
        let GetStepReply::Found { step, result, result_encoding, mut resume } = self.client.call(route, &call).await?;
        while let Some(known) = resume.as_mut().filter(|known| known.more || known.more_children == Some(true)) {
            let children = known.children.get_or_insert_default();
            let read = if known.more { known.signals.len() } else { children.len() };
            call.from = Some(i64::try_from(read).unwrap_or(i64::MAX) + 1);
            let GetStepReply::Found { resume: next, .. } = self.client.call(route, &call).await?;
            let Some(next) = next else { break };
            known.signals.extend(next.signals);
            children.extend(next.children.unwrap_or_default());
            (known.more, known.more_children) = (next.more, next.more_children);
        }
        Ok(FoundStep { step, result: result.map(|bytes| bytes.0), result_encoding, resume })
    }

    /// Submits a new execution that starts with copies of another one's finished steps.
    pub async fn fork(
        &self,
        origin: ExecutionId,
        fork: Fork,
        actor: &str,
    ) -> Result<(ExecutionId, ForkExecutionReply), Error> {
        let known = self.describe(origin).await?;
        let (namespace, lane) = (known.namespace, fork.lane.clone().unwrap_or(known.lane));
        // The origin's own budgets are copied with its submission; those of its place come on top.
        let mut place = Submission::new(origin, namespace.clone(), lane.clone(), known.kind, String::new());
        self.attach_budgets(&mut place, &[]).await?;
        let (fork_id, body_digest) = (fork.id(origin), fork.digest(origin));
        let mut call = ForkExecution {
            from_step: fork.from_step,
            input: fork.input.map(Bytes),
            input_encoding: fork.input_encoding,
            lane: fork.lane,
            priority: fork.priority,
            tags: fork.tags,
            budgets: place.budgets,
            ..ForkExecution::new(actor.to_owned(), body_digest, origin, fork_id)
        };
        let (route, lanes) = (self.client.route_of(&origin), BTreeSet::from([(namespace, lane)]));
        let mut tries = 1;
        loop {
            let error = match self.client.call(route, &call).await {
                Ok(reply) => return Ok((fork_id, reply)),
                Err(error) if tries < TRIES => error,
                Err(error) => return Err(error),
            };
            tries += 1;
            self.tell_lanes(route, &error, &lanes, |_, depth| call.lane_depth = Some(depth)).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_decides_the_id_of_a_fork_and_the_digest_what_it_is() {
        let origin = ExecutionId::mint();
        let keyed = |key: &str| Fork { idempotency_key: Some(key.to_owned()), ..Fork::default() };
        assert_eq!(keyed("a").id(origin), keyed("a").id(origin));
        assert_ne!(keyed("a").id(origin), keyed("b").id(origin));
        assert_ne!(Fork::default().id(origin), Fork::default().id(origin));
        assert_eq!(keyed("a").id(origin).seed(), origin.seed());
        let other = Fork { priority: Some(1), ..keyed("a") };
        assert_eq!(keyed("a").digest(origin), keyed("b").digest(origin));
        assert_ne!(other.digest(origin), keyed("a").digest(origin));
    }
}
