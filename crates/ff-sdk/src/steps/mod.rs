//! What the handler of a task has recorded under names, in this attempt and in earlier ones, and how its attempt is set aside.

mod aside;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ff_api::Ask;
use ff_api::steps::{GetTaskStep, PutStep, PutStepBody, StepFound, StepPut, TaskStep, check_name};
use ff_api::{Encoding, Payload};
use ff_core::ErrorCode;
use ff_script::generated::{StepKind, StepRecord, StepState};
use tokio::time::Instant;

pub(crate) use aside::{Aside, Wait};

use crate::SdkError;
use crate::task::TaskCore;
use crate::waits::{Resume, ResumeCause, ResumeSignal, unexpected};

/// A step that was recorded before.
#[derive(Clone, Debug)]
pub struct RecordedStep {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: StepKind,
    /// What became of it.
    pub state: StepState,
    /// What it returned; absent when it is too large to come with the claim.
    pub result: Option<Vec<u8>>,
    /// The digest of its input.
    pub input_digest: Option<String>,
    /// How often it was tried.
    pub tries: u64,
    /// When a sleep ends, or when a failed step is tried again.
    pub due_at: Option<i64>,
    /// What its wait came to, as far as this process has seen it.
    came: Option<Came>,
}

impl RecordedStep {
    /// True once there is nothing to do for it any more.
    pub(crate) fn is_done(&self, now_ms: i64) -> bool {
        let over = self.kind == StepKind::Sleep && self.due_at.is_some_and(|due| due <= now_ms);
        self.state == StepState::Done || over
    }
}

impl From<StepRecord> for RecordedStep {
    fn from(step: StepRecord) -> Self {
        let result = (step.kind == StepKind::Run).then_some(step.result).flatten();
        Self {
            name: step.name,
            kind: step.kind,
            state: step.state,
            result: result.map(|bytes| bytes.0),
            input_digest: step.digest,
            tries: step.tries.map_or(1, i64::unsigned_abs),
            due_at: step.due,
            came: None,
        }
    }
}

/// A result as it was stored; a null that has an encoding beside it is a result.
fn result_of(
    result: Option<&serde_json::value::RawValue>,
    encoding: Option<Encoding>,
) -> Result<Option<Vec<u8>>, SdkError> {
    let read = Payload::read("result", result, encoding).map_err(|error| unexpected(&format!("a step: {error}")))?;
    Ok(read.map(|payload| payload.bytes))
}

impl TryFrom<TaskStep> for RecordedStep {
    type Error = SdkError;

    fn try_from(step: TaskStep) -> Result<Self, SdkError> {
        Ok(Self {
            result: result_of(step.result.as_deref(), step.result_encoding)?,
            name: step.name,
            kind: step.kind,
            state: step.state,
            input_digest: step.input_digest,
            tries: step.tries.unsigned_abs(),
            due_at: step.due_at,
            came: None,
        })
    }
}

impl TryFrom<StepFound> for RecordedStep {
    type Error = SdkError;

    fn try_from(found: StepFound) -> Result<Self, SdkError> {
        let came = match found.resume {
            Some(resume) => Some(Came::from(Resume::try_from(resume)?)),
            None => None,
        };
        Ok(Self {
            result: result_of(found.result.as_deref(), found.result_encoding)?,
            name: found.step.name,
            kind: found.step.kind,
            state: found.step.state,
            input_digest: found.step.input_digest,
            tries: found.step.tries.unsigned_abs(),
            due_at: found.step.due_at,
            came,
        })
    }
}

/// What the wait of a step came to.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    pub(crate) cause: ResumeCause,
    pub(crate) signals: Vec<ResumeSignal>,
    pub(crate) actor: Option<String>,
}

impl From<Resume> for Came {
    fn from(resume: Resume) -> Self {
        Self { cause: resume.cause, signals: resume.signals, actor: resume.actor }
    }
}

/// The steps of one task: what is known of them, and where this run of the handler stands.
pub(crate) struct Steps {
    known: Mutex<HashMap<String, RecordedStep>>,
    /// Not all came with the claim: a name that is not known here is asked for.
    more: bool,
    /// The engine's time when the task was claimed, and when that was.
    clock: Mutex<(i64, Instant)>,
    run: Mutex<Run>,
}

/// One run of a handler, from its top.
#[derive(Default)]
struct Run {
    /// How often each name was used.
    uses: HashMap<String, u32>,
    /// How the attempt is set aside once the handler has returned.
    aside: Option<Aside>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Steps {
    pub(crate) fn new(known: Vec<RecordedStep>, more: bool, claimed_at_ms: i64) -> Self {
        let known = known.into_iter().map(|step| (step.name.clone(), step)).collect();
        let clock = Mutex::new((claimed_at_ms, Instant::now()));
        Self { known: Mutex::new(known), more, clock, run: Mutex::default() }
    }

    /// The handler is entered from its top.
    pub(crate) fn begin_run(&self) {
        *locked(&self.run) = Run::default();
    }

    /// The name of this use of a step: a key names it, else its uses are numbered in order.
    pub(crate) fn name(&self, name: &str, key: Option<&str>) -> Result<String, SdkError> {
        let full = match key {
            Some(key) => format!("{name}:{key}"),
            None => {
                let mut run = locked(&self.run);
                let uses = run.uses.entry(name.to_owned()).or_default();
                *uses += 1;
                if *uses == 1 { name.to_owned() } else { format!("{name}#{uses}") }
            }
        };
        check_name("name", &full).map_err(|wrong| SdkError::config("step", &wrong.field, wrong.problem))?;
        Ok(full)
    }

    /// The engine's time, by what the claim said and what has passed since.
    pub(crate) fn now_ms(&self) -> i64 {
        let (claimed_at, since) = *locked(&self.clock);
        claimed_at + i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// The engine has said that this time has come.
    fn not_before(&self, at_ms: i64) {
        if at_ms > self.now_ms() {
            *locked(&self.clock) = (at_ms, Instant::now());
        }
    }

    pub(crate) fn note(&self, step: RecordedStep) {
        locked(&self.known).insert(step.name.clone(), step);
    }

    /// The first wish counts; the others are met by the runs that follow.
    pub(crate) fn wants_aside(&self, aside: Aside) {
        locked(&self.run).aside.get_or_insert(aside);
    }

    /// The step at which this run wants its attempt set aside.
    pub(crate) fn aside_at(&self) -> Option<String> {
        locked(&self.run).aside.as_ref().map(|aside| aside.step().to_owned())
    }

    pub(crate) fn take_aside(&self) -> Option<Aside> {
        locked(&self.run).aside.take()
    }
}

impl TaskCore {
    /// What is recorded under a name.
    pub(crate) async fn recorded(&self, name: &str) -> Result<Option<RecordedStep>, SdkError> {
        let known = locked(&self.steps.known).get(name).cloned();
        if known.is_some() || !self.steps.more {
            return Ok(known);
        }
        match self.ask_for_step(name).await {
            Ok(step) => Ok(Some(step)),
            Err(error) if is_code(&error, ErrorCode::StepNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn ask_for_step(&self, name: &str) -> Result<RecordedStep, SdkError> {
        let (reach, ask) =
            (self.backend.reach(), Ask::<GetTaskStep>::at((self.lease.at.execution_id, name.to_owned())));
        let step = RecordedStep::try_from(self.repeat(|| reach.ask(ask.clone())).await?)?;
        self.steps.note(step.clone());
        Ok(step)
    }

    /// What a step that is done returned.
    pub(crate) async fn result_of_step(&self, step: RecordedStep) -> Result<Vec<u8>, SdkError> {
        match step.result {
            Some(result) => Ok(result),
            None => Ok(self.ask_for_step(&step.name).await?.result.unwrap_or_default()),
        }
    }

    /// What the wait of a step that is done came to.
    pub(crate) async fn came_of_step(&self, name: &str) -> Result<Came, SdkError> {
        let known = locked(&self.steps.known).get(name).and_then(|step| step.came.clone());
        if let Some(came) = known {
            return Ok(came);
        }
        if let Some(resume) = self.claim.resume.as_ref().filter(|resume| resume.step.as_deref() == Some(name)) {
            let signals = self.resume_signals();
            return Ok(Came { cause: resume.cause, signals, actor: resume.actor.clone() });
        }
        let came = self.ask_for_step(name).await?.came;
        came.ok_or_else(|| unexpected("a wait that is over without its end"))
    }

    /// Stores what became of a step, under the lease.
    pub(crate) async fn put_step(&self, name: &str, body: PutStepBody) -> Result<StepPut, SdkError> {
        let (reach, at) = (self.backend.reach(), (self.lease.at.execution_id, name.to_owned()));
        let ask = Ask::<PutStep>::with(at, body);
        self.repeat(|| reach.ask(ask.clone())).await
    }

    /// The step is done with this result.
    pub(crate) fn note_done(&self, name: &str, result: Vec<u8>, input_digest: Option<String>) {
        self.steps.note(RecordedStep {
            name: name.to_owned(),
            kind: StepKind::Run,
            state: StepState::Done,
            result: Some(result),
            input_digest,
            tries: 1,
            due_at: None,
            came: None,
        });
    }

    fn note_over(&self, name: &str, kind: StepKind, due_at: Option<i64>, came: Option<Came>) {
        let (name, state) = (name.to_owned(), StepState::Done);
        self.steps.note(RecordedStep { name, kind, state, result: None, input_digest: None, tries: 1, due_at, came });
    }
}

/// What a step that is stored now was answered: the result that counts, when it is another one.
pub(crate) fn known_result(put: &StepPut) -> Result<Vec<u8>, SdkError> {
    Ok(result_of(put.result.as_deref(), put.result_encoding)?.unwrap_or_default())
}

/// True when the engine refused with this code.
pub(crate) fn is_code(error: &SdkError, code: ErrorCode) -> bool {
    error.engine().and_then(ff_core::EngineError::error_code) == Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_of_a_name_are_numbered_in_order_and_a_key_names_one() {
        let steps = Steps::new(Vec::new(), false, 0);
        let name = |key| steps.name("fetch", key).unwrap();
        assert_eq!([name(None), name(None), name(Some("7")), name(None)], ["fetch", "fetch#2", "fetch:7", "fetch#3"]);
        steps.begin_run();
        assert_eq!(name(None), "fetch");
        assert!(
            matches!(steps.name("a\nb", None), Err(SdkError::Config { field: Some(field), .. }) if field == "name")
        );
        assert!(steps.name(&"x".repeat(257), None).is_err());
    }
}
