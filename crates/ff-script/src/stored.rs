//! Reads the stored bytes that a reply passes through: tasks, executions in lists, and events.
//!
//! The library returns records as they are stored. What callers see is derived here.

use std::collections::BTreeMap;

use ff_core::types::{AttemptId, ExecutionId, FlowId, LaneId, LeaseId, Namespace, TimestampMs};

use crate::generated::{
    AttemptType, BlockingReason, EventEntry, ExecutionRecord, Failure, LifecyclePhase, Outcome, PassedValue,
    PublicState, Resume, SpecRecord, StepRecord,
};
use crate::wire::{Bytes, DecodeError, Reader, Wire, write_array_len, write_bytes, write_map_len};

impl ExecutionRecord {
    /// A waiting execution without special settings.
    #[must_use]
    pub fn plain(path: &str, kind: &str) -> Self {
        let mut out = Vec::new();
        write_array_len(&mut out, 11);
        for text in [path, kind] {
            write_bytes(&mut out, text.as_bytes());
        }
        0_i64.write(&mut out);
        write_bytes(&mut out, b"any");
        0_i64.write(&mut out);
        LifecyclePhase::Runnable.write(&mut out);
        for _ in 0..3 {
            0_i64.write(&mut out);
        }
        false.write(&mut out);
        write_bytes(&mut out, b"");
        Self::read(&out).expect("required fields are present")
    }

    /// The namespace: the first part of the path.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.path.split_once('/').map_or(&self.path, |(namespace, _)| namespace)
    }

    /// The lane: the second part of the path.
    #[must_use]
    pub fn lane(&self) -> &str {
        self.path.split_once('/').map_or("", |(_, lane)| lane)
    }

    /// The state as users see it. The library derives the same from the same record.
    #[must_use]
    pub fn public_state(&self) -> PublicState {
        match (self.phase, self.outcome) {
            (LifecyclePhase::Active, _) => return PublicState::Active,
            (LifecyclePhase::Suspended, _) => return PublicState::Suspended,
            (LifecyclePhase::Terminal, Some(Outcome::Success)) => return PublicState::Completed,
            (LifecyclePhase::Terminal, Some(Outcome::Cancelled)) => return PublicState::Cancelled,
            (LifecyclePhase::Terminal, Some(Outcome::Expired)) => return PublicState::Expired,
            (LifecyclePhase::Terminal, Some(Outcome::Skipped)) => return PublicState::Skipped,
            (LifecyclePhase::Terminal, Some(Outcome::Failed) | None) => return PublicState::Failed,
            (LifecyclePhase::Runnable, _) => {}
        }
        match self.reason {
            Some(BlockingReason::WaitingForQuota | BlockingReason::WaitingForBudget) => PublicState::RateLimited,
            Some(BlockingReason::WaitingForDependencies | BlockingReason::WaitingForChildren) => {
                PublicState::WaitingChildren
            }
            Some(BlockingReason::WaitingForCapableWorker | BlockingReason::HeldByOperator) => PublicState::Waiting,
            None if self.delay.is_some() => PublicState::Delayed,
            None if self.resume.is_some() => PublicState::Resumable,
            None => PublicState::Waiting,
        }
    }

    /// The tags, which are stored as a flat list.
    pub fn tags(&self) -> Result<BTreeMap<String, String>, DecodeError> {
        self.tags.as_ref().map_or_else(|| Ok(BTreeMap::new()), |packed| texts(packed))
    }
}

/// A packed flat list of names and values as a map.
fn texts(packed: &[u8]) -> Result<BTreeMap<String, String>, DecodeError> {
    let flat: Vec<String> = crate::wire::parse(packed).map_err(|error| error.within("tags"))?;
    Ok(flat.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

/// A claimed execution as its worker sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub execution_id: ExecutionId,
    /// The number of the attempt, from 0.
    pub attempt_index: i64,
    pub attempt_id: AttemptId,
    /// Why there is this attempt.
    pub attempt_type: AttemptType,
    pub lease_id: LeaseId,
    pub lease_epoch: i64,
    /// When the lease ends unless it is renewed.
    pub lease_expires_at: i64,
    pub namespace: String,
    pub lane: String,
    pub kind: String,
    pub input: Bytes,
    /// How the input is encoded.
    pub input_encoding: String,
    pub tags: BTreeMap<String, String>,
    pub priority: i64,
    /// When it was submitted.
    pub created_at: i64,
    /// Index of the fallback for this attempt.
    pub fallback_index: Option<i64>,
    /// The fallback with that index.
    pub fallback: Option<Bytes>,
    /// The trace it belongs to.
    pub trace_parent: Option<String>,
    /// When it expires.
    pub deadline_at: Option<i64>,
    /// When the attempt times out.
    pub attempt_deadline_at: Option<i64>,
    /// Why a continued attempt goes on; `None` for a new attempt.
    pub resume: Option<Resume>,
    /// Number of frames the attempt has written.
    pub frames: i64,
    /// The results passed by its upstreams.
    pub passed: Option<BTreeMap<String, PassedValue>>,
    /// The flow it is a member of.
    pub flow_id: Option<FlowId>,
    /// The execution that spawned it.
    pub parent_id: Option<ExecutionId>,
    /// Its key in its flow or under its parent.
    pub key: Option<String>,
    /// What earlier runs of the handler recorded, in the order of the first recording.
    pub steps: Vec<StepRecord>,
    /// Whether more steps are recorded than fit here.
    pub steps_more: bool,
}

/// Fields that only some tasks have.
#[derive(Default)]
struct Extras {
    steps: Option<Vec<Bytes>>,
    steps_more: Option<bool>,
    spec: Option<Bytes>,
    resume: Option<Resume>,
    passed: Option<BTreeMap<String, PassedValue>>,
}

impl Extras {
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut extras = Self::default();
        if input.absent() {
            return Ok(extras);
        }
        for _ in 0..input.map()? {
            match input.text()? {
                "spec" => extras.spec = crate::wire::field(input, "spec")?,
                "resume" => extras.resume = crate::wire::field(input, "resume")?,
                "passed" => extras.passed = crate::wire::field(input, "passed")?,
                "steps" => extras.steps = crate::wire::field(input, "steps")?,
                "steps_more" => extras.steps_more = crate::wire::field(input, "steps_more")?,
                _ => input.skip()?,
            }
        }
        Ok(extras)
    }
}

/// The number of frames an attempt has written, from the packed state of its stream.
fn frames_written(record: &ExecutionRecord) -> Result<i64, DecodeError> {
    let Some(packed) = &record.frames else { return Ok(0) };
    let mut input = Reader::new(packed);
    input.list()?;
    input.integer()
}

impl Task {
    fn open(id: ExecutionId, record: &[u8], input: Bytes, extras: Extras) -> Result<Self, DecodeError> {
        let record = ExecutionRecord::read(record).map_err(|error| error.within("record"))?;
        let spec = extras.spec.map(|spec| SpecRecord::read(&spec)).transpose().map_err(|error| error.within("spec"))?;
        let missing = |name: &str| DecodeError::new("is missing").within(name.to_owned()).within("record");
        let fallback = record.tier.and_then(|tier| {
            let fallbacks = spec.as_ref()?.fallbacks.as_ref()?;
            usize::try_from(tier).ok().and_then(|tier| fallbacks.get(tier)).cloned()
        });
        let steps = extras.steps.unwrap_or_default();
        let steps = steps.iter().map(|step| StepRecord::read(step)).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            steps: steps.map_err(|error| error.within("steps"))?,
            steps_more: extras.steps_more.unwrap_or(false),
            execution_id: id,
            attempt_index: record.attempt.ok_or_else(|| missing("attempt"))?,
            attempt_id: record.attempt_id.ok_or_else(|| missing("attempt_id"))?,
            attempt_type: record.attempt_type.ok_or_else(|| missing("attempt_type"))?,
            lease_id: record.lease_id.ok_or_else(|| missing("lease_id"))?,
            lease_epoch: record.epoch.ok_or_else(|| missing("epoch"))?,
            lease_expires_at: record.lease_until.ok_or_else(|| missing("lease_until"))?,
            namespace: record.namespace().to_owned(),
            lane: record.lane().to_owned(),
            tags: record.tags()?,
            frames: frames_written(&record).map_err(|error| error.within("frames"))?,
            input,
            input_encoding: record.input_in.unwrap_or_else(|| "json".to_owned()),
            priority: record.prio,
            created_at: record.created,
            fallback_index: record.tier,
            fallback,
            trace_parent: spec.and_then(|spec| spec.trace_parent),
            deadline_at: record.deadline,
            attempt_deadline_at: record.timeout_at,
            resume: extras.resume,
            passed: extras.passed,
            flow_id: record.flow_id,
            parent_id: record.parent_id,
            key: record.key,
            kind: record.kind,
        })
    }
}

impl Wire for Task {
    /// Tasks are only in replies. Tests write them; this writes no fallback and no frames.
    fn write(&self, out: &mut Vec<u8>) {
        let flat: Vec<String> = self.tags.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect();
        let mut tags = Vec::new();
        flat.write(&mut tags);
        let record = ExecutionRecord {
            phase: LifecyclePhase::Active,
            created: self.created_at,
            prio: self.priority,
            tags: (!flat.is_empty()).then_some(Bytes(tags)),
            attempt: Some(self.attempt_index),
            attempt_id: Some(self.attempt_id),
            attempt_type: Some(self.attempt_type),
            lease_id: Some(self.lease_id),
            epoch: Some(self.lease_epoch),
            lease_until: Some(self.lease_expires_at),
            input_in: Some(self.input_encoding.clone()),
            deadline: self.deadline_at,
            timeout_at: self.attempt_deadline_at,
            flow_id: self.flow_id,
            parent_id: self.parent_id,
            key: self.key.clone(),
            ..ExecutionRecord::plain(&format!("{}/{}", self.namespace, self.lane), &self.kind)
        };
        write_array_len(out, 4);
        self.execution_id.write(out);
        write_bytes(out, &record.write());
        self.input.write(out);
        let present = [self.resume.is_some(), self.passed.is_some(), !self.steps.is_empty(), self.steps_more];
        write_map_len(out, present.into_iter().filter(|one| *one).count());
        if !self.steps.is_empty() {
            write_bytes(out, b"steps");
            self.steps.iter().map(|step| Bytes(step.write())).collect::<Vec<_>>().write(out);
        }
        if self.steps_more {
            write_bytes(out, b"steps_more");
            true.write(out);
        }
        if let Some(resume) = &self.resume {
            write_bytes(out, b"resume");
            resume.write(out);
        }
        if let Some(passed) = &self.passed {
            write_bytes(out, b"passed");
            passed.write(out);
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = input.list()?;
        if len < 4 {
            return Err(DecodeError::new(format!("a task has 4 parts, got {len}")));
        }
        let id = ExecutionId::read(input)?;
        let record = input.bytes()?;
        let bytes = Bytes::read(input)?;
        let extras = Extras::read(input)?;
        for _ in 4..len {
            input.skip()?;
        }
        Self::open(id, record, bytes, extras)
    }
}

/// An execution in a list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ExecutionSummary))]
pub struct Summary {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its namespace.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub namespace: Namespace,
    /// Its lane.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub lane: LaneId,
    /// Its kind.
    pub kind: String,
    /// Its state, as users see it.
    pub state: PublicState,
    /// Runnable, active, suspended or terminal.
    pub lifecycle_phase: LifecyclePhase,
    /// Why it cannot start, if it is blocked.
    pub blocking_reason: Option<BlockingReason>,
    /// Its outcome, if it has ended.
    pub outcome: Option<Outcome>,
    /// Higher priorities start first.
    pub priority: i64,
    /// When it was submitted.
    #[cfg_attr(feature = "openapi", schema(value_type = i64))]
    pub created_at: TimestampMs,
    /// The time of its last change.
    #[cfg_attr(feature = "openapi", schema(value_type = i64))]
    pub updated_at: TimestampMs,
    /// When it ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>))]
    pub ended_at: Option<TimestampMs>,
    /// The number of its last attempt.
    pub attempt_index: Option<i64>,
    /// The instance of the worker that runs it.
    pub worker_instance: Option<String>,
    /// Why it failed.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// The flow, if it is a member.
    pub flow_id: Option<FlowId>,
    /// Its parent, if it is a child.
    pub parent_id: Option<ExecutionId>,
    /// Its key in its flow or under its parent.
    pub key: Option<String>,
}

impl Summary {
    fn of(id: ExecutionId, record: ExecutionRecord) -> Result<Self, DecodeError> {
        let failure = record.failure.as_ref().map(|packed| read_failure(&packed.0)).transpose();
        Ok(Self {
            execution_id: id,
            failure: failure.map_err(|error| error.within("failure"))?,
            namespace: Namespace::new(record.namespace()),
            lane: LaneId::new(record.lane()),
            state: record.public_state(),
            lifecycle_phase: record.phase,
            blocking_reason: record.reason,
            outcome: record.outcome,
            priority: record.prio,
            created_at: TimestampMs(record.created),
            updated_at: TimestampMs(record.updated),
            ended_at: record.ended.map(TimestampMs),
            attempt_index: record.attempt,
            worker_instance: record.worker.filter(|_| record.phase == LifecyclePhase::Active),
            flow_id: record.flow_id,
            parent_id: record.parent_id,
            key: record.key,
            kind: record.kind,
        })
    }
}

/// A failure as a record keeps it: its reason and its category.
fn read_failure(packed: &[u8]) -> Result<Failure, DecodeError> {
    let mut input = Reader::new(packed);
    let len = input.list()?;
    if len < 2 {
        return Err(DecodeError::new(format!("a failure has 2 parts, got {len}")));
    }
    Ok(Failure { reason: String::read(&mut input)?, category: String::read(&mut input)? })
}

fn write_failure(failure: &Failure) -> Bytes {
    let mut out = Vec::new();
    write_array_len(&mut out, 2);
    failure.reason.write(&mut out);
    failure.category.write(&mut out);
    Bytes(out)
}

impl Wire for Summary {
    /// Summaries are only in replies. Tests write them.
    fn write(&self, out: &mut Vec<u8>) {
        let record = ExecutionRecord {
            phase: self.lifecycle_phase,
            created: self.created_at.as_millis(),
            updated: self.updated_at.as_millis(),
            prio: self.priority,
            reason: self.blocking_reason,
            outcome: self.outcome,
            ended: self.ended_at.map(TimestampMs::as_millis),
            attempt: self.attempt_index,
            worker: self.worker_instance.clone(),
            failure: self.failure.as_ref().map(write_failure),
            flow_id: self.flow_id,
            parent_id: self.parent_id,
            key: self.key.clone(),
            ..ExecutionRecord::plain(&format!("{}/{}", self.namespace, self.lane), &self.kind)
        };
        write_array_len(out, 2);
        self.execution_id.write(out);
        write_bytes(out, &record.write());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = input.list()?;
        if len < 2 {
            return Err(DecodeError::new(format!("an execution in a list has 2 parts, got {len}")));
        }
        let id = ExecutionId::read(input)?;
        let record = input.bytes()?;
        for _ in 2..len {
            input.skip()?;
        }
        Self::of(id, ExecutionRecord::read(record).map_err(|error| error.within("record"))?)
    }
}

/// A value of an event's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventValue {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl EventValue {
    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The number, if it is one.
    #[must_use]
    pub const fn as_i64(&self) -> Option<i64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }
}

impl std::fmt::Display for EventValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
        }
    }
}

/// One transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its position: the id of its entry. Followed by a dot and its number there, unless it is the last event of the
    /// entry.
    pub id: String,
    /// What happened.
    pub r#type: String,
    /// When.
    pub at: i64,
    pub namespace: Option<String>,
    pub lane: Option<String>,
    pub kind: Option<String>,
    pub execution_id: Option<ExecutionId>,
    pub flow_id: Option<FlowId>,
    /// The number of the attempt.
    pub attempt_index: Option<i64>,
    pub worker_instance: Option<String>,
    pub tags: BTreeMap<String, String>,
    /// Further data, by name.
    pub data: BTreeMap<String, EventValue>,
}

fn optional<T: Wire>(input: &mut Reader<'_>) -> Result<Option<T>, DecodeError> {
    if input.absent() { Ok(None) } else { T::read(input).map(Some) }
}

fn event_value(input: &mut Reader<'_>) -> Result<EventValue, DecodeError> {
    let mut ahead = *input;
    if let Ok(flag) = ahead.boolean() {
        *input = ahead;
        return Ok(EventValue::Flag(flag));
    }
    let mut ahead = *input;
    if let Ok(number) = ahead.integer() {
        *input = ahead;
        return Ok(EventValue::Number(number));
    }
    input.text().map(|text| EventValue::Text(text.to_owned()))
}

/// Number of fixed values of an event, before its data.
const FIXED: usize = 9;

impl Event {
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = input.list()?;
        if len < FIXED {
            return Err(DecodeError::new(format!("an event has at least {FIXED} values, got {len}")));
        }
        let kind_of = input.text()?.to_owned();
        let at = input.integer()?;
        let path = input.text()?;
        let (namespace, lane) = path.split_once('/').unwrap_or((path, ""));
        let present = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (namespace, lane) = (present(namespace), present(lane));
        let kind = optional(input)?;
        let execution_id = optional(input)?;
        let flow_id = optional(input)?;
        let attempt_index = optional(input)?;
        let worker_instance = optional(input)?;
        let tags = optional::<Bytes>(input)?.map_or_else(|| Ok(BTreeMap::new()), |packed| texts(&packed))?;
        let mut data = BTreeMap::new();
        for _ in 0..(len - FIXED) / 2 {
            let name = input.text()?.to_owned();
            let value = event_value(input).map_err(|error| error.within(name.clone()))?;
            data.insert(name, value);
        }
        Ok(Self {
            id: String::new(),
            r#type: kind_of,
            at,
            namespace,
            lane,
            kind,
            execution_id,
            flow_id,
            attempt_index,
            worker_instance,
            tags,
            data,
        })
    }

    /// The data, each value as text.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.data.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
    }

    /// The events of some entries, in order. At most `limit`, and only those after `after` if that is a position inside
    /// an entry.
    pub fn read_all(entries: &[EventEntry], after: Option<&str>, limit: usize) -> Result<Vec<Event>, DecodeError> {
        let inside = after.and_then(|place| place.split_once('.'));
        let mut events = Vec::new();
        for entry in entries {
            let mut input = Reader::new(&entry.events);
            let seen = match inside {
                Some((id, number)) if id == entry.id => number.parse::<usize>().map_or(0, |number| number + 1),
                _ => 0,
            };
            let mut number = 0_usize;
            while !input.is_empty() && events.len() < limit {
                if number < seen {
                    input.skip()?;
                } else {
                    let mut event = Self::read(&mut input).map_err(|error| error.within(entry.id.clone()))?;
                    event.id = if input.is_empty() { entry.id.clone() } else { format!("{}.{number}", entry.id) };
                    events.push(event);
                }
                number += 1;
            }
        }
        Ok(events)
    }
}

#[cfg(any(test, feature = "samples"))]
mod samples {
    use super::{Summary, Task, write_failure};
    use crate::generated::{ExecutionRecord, Failure, LifecyclePhase, Outcome};
    use crate::sample::{Rng, Sample};

    impl Sample for Task {
        fn sample(rng: &mut Rng) -> Self {
            Self {
                steps: Vec::new(),
                steps_more: false,
                execution_id: Sample::sample(rng),
                attempt_index: i64::sample(rng).abs(),
                attempt_id: Sample::sample(rng),
                attempt_type: Sample::sample(rng),
                lease_id: Sample::sample(rng),
                lease_epoch: i64::sample(rng).abs(),
                lease_expires_at: i64::sample(rng),
                namespace: "a-namespace".to_owned(),
                lane: "a/lane".to_owned(),
                kind: Sample::sample(rng),
                input: Sample::sample(rng),
                input_encoding: "base64".to_owned(),
                tags: Sample::sample(rng),
                priority: Sample::sample(rng),
                created_at: Sample::sample(rng),
                fallback_index: None,
                fallback: None,
                trace_parent: None,
                deadline_at: Sample::sample(rng),
                attempt_deadline_at: Sample::sample(rng),
                resume: Sample::sample(rng),
                frames: 0,
                passed: Sample::sample(rng),
                flow_id: Sample::sample(rng),
                parent_id: Sample::sample(rng),
                key: Sample::sample(rng),
            }
        }
    }

    impl Sample for Summary {
        fn sample(rng: &mut Rng) -> Self {
            let mut record = ExecutionRecord::plain("n/l", "a kind");
            record.phase = Sample::sample(rng);
            record.outcome = (record.phase == LifecyclePhase::Terminal).then(|| Sample::sample(rng));
            record.reason = if record.phase == LifecyclePhase::Runnable { Sample::sample(rng) } else { None };
            record.attempt = Sample::sample(rng);
            record.ended = Sample::sample(rng);
            record.key = Sample::sample(rng);
            record.failure = (record.outcome == Some(Outcome::Failed)).then(|| {
                write_failure(&Failure { reason: "no such address".to_owned(), category: "bounce".to_owned() })
            });
            Summary::of(Sample::sample(rng), record).expect("a record that was written is read")
        }
    }
}
