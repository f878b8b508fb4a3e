//! Tasks as the engine hands them out.

use ff_api::claims::{Passed, Task};
use ff_core::types::{LaneId, Namespace, TimestampMs};

use super::{Claim, LeaseRef};
use crate::SdkError;
use crate::flows::{Place, Upstream};
use crate::snapshot::attempt_index;
use crate::steps::RecordedStep;
use crate::waits::Resume;

impl TryFrom<Task> for Claim {
    type Error = SdkError;

    fn try_from(task: Task) -> Result<Self, SdkError> {
        let lease = LeaseRef::new(task.execution_id, task.fence());
        let mut place = Place { flow_id: task.flow_id, parent_id: task.parent_id, key: task.key, ..Place::default() };
        for (name, one) in task.passed.unwrap_or_default() {
            take_in(&mut place, name, one);
        }
        Ok(Self {
            lease,
            attempt_index: attempt_index(task.attempt_index),
            namespace: Namespace::new(task.namespace),
            lane: LaneId::new(task.lane),
            kind: task.kind,
            input: task.input,
            input_encoding: task.input_encoding.unwrap_or(ff_api::Encoding::Json).as_str().to_owned(),
            tags: task.tags.into_iter().collect(),
            fallback: task.fallback,
            trace_parent: task.trace_parent,
            deadline_at: task.deadline_at.map(TimestampMs),
            resume: task.resume.map(Resume::try_from).transpose()?,
            frames: Some(task.frames.unsigned_abs()),
            place,
            lease_expires_at: task.lease_expires_at,
            steps: task.steps.into_iter().map(RecordedStep::try_from).collect::<Result<_, _>>()?,
            steps_more: task.steps_more,
        })
    }
}

/// Takes in what one upstream passed.
fn take_in(place: &mut Place, name: String, passed: Passed) {
    if let Some(value) = passed.value {
        place.passed.insert(name.clone(), value);
    }
    let failure = passed.failure;
    let upstream = Upstream { execution_id: passed.execution_id, outcome: passed.outcome, failure };
    place.upstreams.insert(name, upstream);
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use ff_core::state::Outcome;
    use ff_core::types::ExecutionId;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_passed_is_read_with_who_passed_it() {
        let (ann, bob) = (ExecutionId::mint(), ExecutionId::mint());
        let passed = json!({
            "ann": { "value": { "n": 1 }, "encoding": "json", "execution_id": ann, "outcome": "success" },
            "bob": { "value": null, "execution_id": bob, "outcome": "failed", "failure": { "reason": "no", "category": "x" } },
        });
        let passed: BTreeMap<String, Passed> = serde_json::from_str(&passed.to_string()).unwrap();
        let mut place = Place::default();
        for (name, one) in passed {
            take_in(&mut place, name, one);
        }
        assert_eq!(place.passed, HashMap::from([("ann".to_owned(), br#"{"n":1}"#.to_vec())]));
        assert_eq!((place.upstreams["ann"].execution_id, place.upstreams["ann"].outcome), (ann, Outcome::Success));
        assert_eq!(place.upstreams["bob"].failure.as_ref().map(|failure| failure.category.as_str()), Some("x"));
    }
}
