//! Durable steps of a handler: what it has done is recorded under names, and later runs go on behind it.

use std::error::Error;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ff_api::Payload;
use ff_api::steps::{PutStepBody, PutStepOutcome, StepFailure};
use ff_core::ErrorCode;
use ff_core::limits::{REASON_BYTES_MAX, STEP_RESULT_BYTES_MAX};
use ff_core::types::{ExecutionId, TimestampMs};
use ff_script::generated::{BackoffType, Jitter, Retry, StepKind, StepState};
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::Ctx;
use crate::SdkError;
use crate::flows::{ChildSpec, Waited};
use crate::middleware::{FailureClass, TaskError};
use crate::snapshot::ChildSnapshot;
use crate::steps::{Aside, is_code, known_result};
use crate::task::{TaskCore, cut};

/// A rest up to this long is spent in place; a longer one gives the worker's slot back.
const REST_IN_PLACE_MS: i64 = 1_000;
/// A retry up to this far away is waited for in place.
const RETRY_IN_PLACE_MS: i64 = 5_000;

/// The class of what is no failure: the attempt is set aside.
static SET_ASIDE: LazyLock<FailureClass> = LazyLock::new(|| TaskError::new("", TaskError::SUSPENDED).class().clone());

/// Why a step has no result to show.
///
/// It becomes the handler's own error by `?`. [`StepError::SetAside`] has to be handed on: a handler that passes over it fails
/// with category `set_aside_swallowed`.
#[derive(Debug)]
#[non_exhaustive]
pub enum StepError {
    /// The attempt is set aside: this run of the handler is over, and another one goes on behind what is recorded.
    SetAside {
        /// The step that rests or waits.
        step: String,
    },
    /// The step has failed, and is not tried again in this attempt.
    Failed {
        /// The step.
        step: String,
        /// What it failed with.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The step is recorded with another input, or as something else.
    Changed {
        /// The step.
        step: String,
        /// What differs.
        problem: String,
    },
    /// What is recorded cannot be read as what the step returns, or what it returned cannot be recorded.
    Unfit {
        /// The step.
        step: String,
        /// What is wrong.
        problem: String,
    },
    /// An approval ended without enough approvers. It is not asked for again.
    ApprovalMissing {
        /// The step.
        step: String,
        /// What ended it.
        by: String,
        /// How many approvers were needed.
        need: usize,
    },
    /// The engine refused, or could not be asked.
    Engine(SdkError),
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetAside { step } => {
                write!(f, "the attempt is set aside at step {step:?}; this run of its handler is over")
            }
            Self::Failed { step, .. } => write!(f, "step {step:?} failed"),
            Self::Changed { step, problem } | Self::Unfit { step, problem } => write!(f, "step {step:?} {problem}"),
            Self::ApprovalMissing { step, by, need } => {
                write!(f, "approval {step:?} was ended by {by} before {need} had approved")
            }
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl Error for StepError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        static CHANGED: LazyLock<FailureClass> = LazyLock::new(|| fatal("step_changed"));
        static UNFIT: LazyLock<FailureClass> = LazyLock::new(|| fatal("step_unfit"));
        static MISSING: LazyLock<FailureClass> = LazyLock::new(|| fatal("approval_missing"));
        match self {
            Self::SetAside { .. } => Some(&*SET_ASIDE),
            Self::Failed { source, .. } => Some(&**source),
            Self::Changed { .. } => Some(&*CHANGED),
            Self::Unfit { .. } => Some(&*UNFIT),
            Self::ApprovalMissing { .. } => Some(&*MISSING),
            Self::Engine(error) => error.source(),
        }
    }
}

fn fatal(category: &str) -> FailureClass {
    TaskError::new("", category).fatal().class().clone()
}

impl From<SdkError> for StepError {
    fn from(error: SdkError) -> Self {
        Self::Engine(error)
    }
}

/// The step is recorded as another kind of step.
pub(super) fn changed_kind(step: &str, known: StepKind) -> StepError {
    let problem = format!("is recorded as a step of another kind: {}", known.as_str());
    StepError::Changed { step: step.to_owned(), problem }
}

/// A step that is about to run. It runs when it is awaited.
#[must_use = "a step runs when it is awaited"]
pub struct Step<'a, F> {
    core: Arc<TaskCore>,
    name: String,
    key: Option<String>,
    input: Option<Result<String, String>>,
    rerun: bool,
    retry: Option<Retry>,
    timeout: Option<Duration>,
    run: F,
    lives: PhantomData<&'a ()>,
}

impl<F> Step<'_, F> {
    /// Names this use of the step, for steps in a loop over data. Without a key the uses of a name are numbered in order.
    pub fn key(mut self, key: impl ToString) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// Keeps a digest of the step's input. A later run with another input fails with [`StepError::Changed`].
    pub fn input<I: Serialize + ?Sized>(mut self, input: &I) -> Self {
        let digest = serde_json::to_vec(input).map(|json| hex::encode(&Sha256::digest(json)[..16]));
        self.input = Some(digest.map_err(|error| error.to_string()));
        self
    }

    /// Runs again when the input is another one, in place of failing.
    pub fn rerun_if_changed(mut self) -> Self {
        self.rerun = true;
        self
    }

    /// Tries the step again when it fails. A try that is more than 5 s away gives the worker's slot back.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Ends a try that takes longer than this, as a failure of category `step_timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl<'a, F, Fut, T, E> IntoFuture for Step<'a, F>
where
    F: FnMut() -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    T: Serialize + DeserializeOwned + Send + 'a,
    E: Into<Box<dyn Error + Send + Sync>> + Send + 'a,
{
    type Output = Result<T, StepError>;
    type IntoFuture = BoxFuture<'a, Result<T, StepError>>;

    fn into_future(self) -> Self::IntoFuture {
        // Names are given in the order in which steps are written, not in the order in which they come to run.
        let name = self.core.steps.name(&self.name, self.key.as_deref());
        let digest = self.input.clone().transpose();
        Box::pin(async move {
            let name = name?;
            let digest = digest.map_err(|problem| unfit(&name, format!("has an input that is no JSON: {problem}")))?;
            self.go(name, digest).await
        })
    }
}

fn unfit(step: &str, problem: String) -> StepError {
    StepError::Unfit { step: step.to_owned(), problem }
}

/// A stored result as the value a step returns. Nothing stored reads as `null`.
fn decoded<T: DeserializeOwned>(step: &str, result: &[u8]) -> Result<T, StepError> {
    let result = if result.is_empty() { b"null" } else { result };
    serde_json::from_slice(result).map_err(|error| unfit(step, format!("has a stored result of another type: {error}")))
}

/// Whether a failed try is followed by another one, and after how many milliseconds.
fn next_try(retry: Option<&Retry>, tries: u64, failure: &TaskError) -> Option<i64> {
    let retry = retry?;
    let listed = |list: &Option<Vec<String>>| list.as_ref().map(|list| list.contains(&failure.category));
    let may = failure.retryable != Some(false)
        && listed(&retry.retry_on) != Some(false)
        && listed(&retry.never_on) != Some(true);
    if !may || tries >= retry.max_attempts.unwrap_or(3).unsigned_abs() {
        return None;
    }
    if let Some(after) = failure.retry_after_ms {
        return Some(i64::try_from(after).unwrap_or(i64::MAX));
    }
    let backoff = retry.backoff.as_ref();
    let longest = match backoff.map(|backoff| backoff.r#type) {
        Some(BackoffType::Fixed) => backoff.and_then(|backoff| backoff.delay_ms).unwrap_or(1_000),
        Some(BackoffType::Exponential) | None => {
            let initial = backoff.and_then(|backoff| backoff.initial_ms).unwrap_or(1_000);
            let factor = backoff.and_then(|backoff| backoff.factor).unwrap_or(2);
            let max = backoff.and_then(|backoff| backoff.max_ms).unwrap_or(60_000);
            let times = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX);
            initial.saturating_mul(factor.saturating_pow(times)).min(max)
        }
    };
    Some(match retry.jitter {
        Some(Jitter::None) => longest,
        Some(Jitter::Full) | None => rand::random_range(0..=longest.max(0)),
    })
}

impl<'a, F, Fut, T, E> Step<'a, F>
where
    F: FnMut() -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    T: Serialize + DeserializeOwned + Send + 'a,
    E: Into<Box<dyn Error + Send + Sync>> + Send + 'a,
{
    async fn go(mut self, name: String, digest: Option<String>) -> Result<T, StepError> {
        let core = Arc::clone(&self.core);
        let known = core.recorded(&name).await?;
        let mut tries = 0;
        if let Some(known) = known {
            if known.kind != StepKind::Run {
                return Err(changed_kind(&name, known.kind));
            }
            let changed = digest.is_some() && known.input_digest.is_some() && known.input_digest != digest;
            match known.state {
                StepState::Done if !changed => {
                    let result = core.result_of_step(known).await?;
                    return decoded(&name, &result);
                }
                StepState::Done if !self.rerun => {
                    let problem = "is recorded with another input".to_owned();
                    return Err(StepError::Changed { step: name, problem });
                }
                StepState::Done => {}
                StepState::Failed | StepState::Waiting => {
                    // A series of tries goes on; a new attempt of the step begins anew.
                    tries = if self.retry.is_some() && known.due_at.is_some() { known.tries } else { 0 };
                    let due = known.due_at.filter(|due| tries > 0 && *due > core.steps.now_ms());
                    if let Some(due) = due {
                        pause(&core, &name, due - core.steps.now_ms()).await?;
                    }
                }
            }
        }
        loop {
            tries += 1;
            let started_at = core.steps.now_ms();
            let failure = match self.once().await {
                Ok(value) => {
                    let returned = Returned { input_digest: digest, rerun: self.rerun, started_at, tries };
                    return store(&core, &name, value, returned).await;
                }
                Err(failure) => failure,
            };
            let told = TaskError::described(&*failure);
            // A step inside of this one is set aside, or something else of this run.
            if told.category == TaskError::SUSPENDED {
                return Err(StepError::SetAside { step: core.steps.aside_at().unwrap_or(name) });
            }
            let next = next_try(self.retry.as_ref(), tries, &told);
            let retry_at = next.map(|delay| core.steps.now_ms().saturating_add(delay));
            let body = PutStepBody {
                input_digest: digest.clone(),
                started_at: Some(started_at),
                tries: i64::try_from(tries).ok(),
                failure: Some(StepFailure {
                    reason: cut(told.reason.clone(), REASON_BYTES_MAX),
                    category: told.category.clone(),
                }),
                retry_at,
                ..PutStepBody::new(core.lease.at.fence())
            };
            core.put_step(&name, body).await?;
            let Some(delay) = next else {
                return Err(StepError::Failed { step: name, source: failure });
            };
            pause(&core, &name, delay).await?;
        }
    }

    async fn once(&mut self) -> Result<T, Box<dyn Error + Send + Sync>> {
        let running = (self.run)();
        match self.timeout {
            None => running.await.map_err(Into::into),
            Some(limit) => match tokio::time::timeout(limit, running).await {
                Ok(outcome) => outcome.map_err(Into::into),
                Err(_) => Err(Box::new(TaskError::new(format!("took longer than {limit:?}"), "step_timeout"))),
            },
        }
    }
}

/// Waits for the next try, in place when it is near and nobody asks for the attempt back.
async fn pause(core: &TaskCore, name: &str, delay_ms: i64) -> Result<(), StepError> {
    let in_place = core.backend.rests_in_place();
    // Clocks are read at different moments: what is almost there is there.
    if delay_ms <= 0 || (!in_place && delay_ms <= REST_IN_PLACE_MS) {
        return Ok(());
    }
    if delay_ms <= RETRY_IN_PLACE_MS && in_place {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(delay_ms.unsigned_abs())) => return Ok(()),
            _ = core.lease.cancellation.cancelled() => {}
        }
    }
    core.steps.wants_aside(Aside::Retry { step: name.to_owned(), ms: delay_ms });
    Err(StepError::SetAside { step: name.to_owned() })
}

/// What a step returned, on its way into the store.
struct Returned {
    input_digest: Option<String>,
    rerun: bool,
    started_at: i64,
    tries: u64,
}

async fn store<T>(core: &TaskCore, name: &str, value: T, returned: Returned) -> Result<T, StepError>
where
    T: Serialize + DeserializeOwned + Send,
{
    let result = serde_json::to_vec(&value)
        .map_err(|error| unfit(name, format!("returned what cannot be written as JSON: {error}")))?;
    if result.len() > STEP_RESULT_BYTES_MAX {
        return Err(unfit(name, format!("returned {} bytes, more than {STEP_RESULT_BYTES_MAX}", result.len())));
    }
    let (sent, encoding) = Payload { bytes: result.clone(), encoding: ff_api::Encoding::Json }.sent();
    let body = PutStepBody {
        result: Some(sent),
        result_encoding: encoding,
        input_digest: returned.input_digest.clone(),
        rerun: returned.rerun.then_some(true),
        started_at: Some(returned.started_at),
        tries: i64::try_from(returned.tries).ok(),
        ..PutStepBody::new(core.lease.at.fence())
    };
    let put = core.put_step(name, body).await.map_err(|error| {
        if is_code(&error, ErrorCode::StepChanged) {
            StepError::Changed { step: name.to_owned(), problem: "is recorded as a step of another kind".to_owned() }
        } else {
            error.into()
        }
    })?;
    if put.outcome == PutStepOutcome::Known {
        let first = known_result(&put)?;
        let value = decoded(name, &first)?;
        core.note_done(name, first, put.input_digest);
        return Ok(value);
    }
    core.note_done(name, result, returned.input_digest);
    Ok(value)
}

/// The key of a step for systems outside: the same in every attempt.
fn step_key(execution: &ExecutionId, name: &str) -> String {
    format!("{execution}-{}", hex::encode(&Sha256::digest(name)[..8]))
}

/// Durable steps. What a handler has done under a name is recorded, and no later run does it again: not after a crash, a retry, a
/// reclaim or a wait. There is no order to keep: steps are found by their names.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use std::time::Duration;
/// use ff_sdk::runtime::{Ctx, HandlerResult, WorkerRuntime};
///
/// async fn charge(amount: u32, idempotency_key: String) -> Result<String, std::io::Error> {
///     // … the provider takes the key, because the step runs again when the process dies before its result is stored …
///     Ok(format!("receipt for {amount}, {idempotency_key}"))
/// }
///
/// async fn order(ctx: Ctx) -> HandlerResult {
///     let key = ctx.step_key("charge");
///     let receipt = ctx.step("charge", || charge(42, key.clone())).await?;
///     ctx.sleep(Duration::from_secs(86_400)).await?;
///     let mailed = ctx.step("mail", || async { Ok::<_, std::io::Error>(receipt.len()) }).await?;
///     Ok(Some(mailed.to_string().into_bytes()))
/// }
///
/// let engine = ff_sdk::testing::TestEngine::start().await?;
/// let id = engine.submit("order", b"{}").await?;
/// let running = engine.run(WorkerRuntime::new(engine.worker("w-1").await?).on("order", order));
/// while engine.describe(&id).await?.state.as_str() != "delayed" {
///     tokio::task::yield_now().await;
/// }
/// engine.advance(Duration::from_secs(86_400)).await?;
/// assert!(engine.result(&id).await?.result.is_some());
/// # running.stop().await?;
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
impl Ctx {
    /// Runs a closure once and records its result; a later call with this name returns what is recorded.
    ///
    /// At least once: a process that dies after the closure's effect and before its result is stored runs it again. Give a system
    /// outside the key of [`Ctx::step_key`], so that it can tell.
    ///
    /// The name used again in one run is numbered (`fetch`, `fetch#2`, …); [`Step::key`] names the use instead. Steps may run at the
    /// same time, for example with `tokio::join!`.
    pub fn step<'a, T, E, F, Fut>(&self, name: impl Into<String>, run: F) -> Step<'a, F>
    where
        F: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, E>> + Send + 'a,
    {
        Step {
            core: Arc::clone(&self.0),
            name: name.into(),
            key: None,
            input: None,
            rerun: false,
            retry: None,
            timeout: None,
            run,
            lives: PhantomData,
        }
    }

    /// The idempotency key of a step for a system outside: the same in every attempt of this execution. A step with a key is
    /// called `name:key`, the second use of a name `name#2`.
    #[must_use]
    pub fn step_key(&self, name: &str) -> String {
        step_key(self.execution_id(), name)
    }

    /// Sleeps. The wake-up time is recorded by the first call, so a later run sleeps for the rest. Beyond a second the worker is
    /// given back, and the attempt goes on by itself.
    pub async fn sleep(&self, duration: Duration) -> Result<(), StepError> {
        let ms = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.sleep_as_step(None, Some(ms)).await
    }

    /// Sleeps until a time, like [`Ctx::sleep`].
    pub async fn sleep_until(&self, until: TimestampMs) -> Result<(), StepError> {
        self.sleep_as_step(Some(until.0), None).await
    }

    async fn sleep_as_step(&self, until: Option<i64>, ms: Option<i64>) -> Result<(), StepError> {
        let core = &self.0;
        let step = core.steps.name("sleep", None)?;
        let now = core.steps.now_ms();
        let known = core.recorded(&step).await?;
        let due = match &known {
            Some(known) if known.kind != StepKind::Sleep => return Err(changed_kind(&step, known.kind)),
            Some(known) if known.is_done(now) => return Ok(()),
            Some(known) => known.due_at.unwrap_or(now),
            None => until.unwrap_or_else(|| now.saturating_add(ms.unwrap_or(0))),
        };
        let left = due - now;
        if left <= 0 || (left <= REST_IN_PLACE_MS && core.backend.rests_in_place()) {
            tokio::time::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0))).await;
            if known.is_none() && core.rest(Some(&step), None, Some(0)).await? {
                return Err(StepError::SetAside { step });
            }
            return Ok(());
        }
        let (until, ms) = if known.is_some() { (Some(due), None) } else { (until, ms) };
        core.steps.wants_aside(Aside::Sleep { step: step.clone(), until, ms });
        Err(StepError::SetAside { step })
    }

    /// Spawns children as a step: a later run is answered the children of the first one, whatever it asks for.
    pub async fn spawn_as(&self, step: &str, children: Vec<ChildSpec>) -> Result<Vec<ExecutionId>, StepError> {
        let step = self.0.steps.name(step, None)?;
        // Ids go by the name: a call whose answer was lost asks for the same children.
        let mut request = [0; 16];
        request.copy_from_slice(&Sha256::digest(format!("spawn {step}"))[..16]);
        let request = uuid::Builder::from_custom_bytes(request).into_uuid();
        Ok(self.0.spawn(children, request, Some(&step)).await?)
    }

    /// Waits until every child has ended, as a step: once they have, a later run is answered the same outcomes, whatever was
    /// spawned since.
    pub async fn wait_children_as(&self, step: &str) -> Result<Vec<ChildSnapshot>, StepError> {
        let step = self.0.steps.name(step, None)?;
        match self.0.wait_children(false, Some(&step)).await? {
            Waited::Ended(children) => Ok(children),
            Waited::Aside { .. } => Err(StepError::SetAside { step }),
        }
    }
}

#[cfg(test)]
mod tests {
    use ff_script::generated::Backoff;

    use super::*;

    #[test]
    fn a_key_is_the_same_for_the_same_step() {
        let id: ExecutionId = "0192f3a0-0000-7000-8000-000000000001".parse().unwrap();
        assert_eq!(step_key(&id, "charge"), format!("{id}-{}", hex::encode(&Sha256::digest("charge")[..8])));
        assert_ne!(step_key(&id, "charge"), step_key(&id, "charge#2"));
    }

    #[test]
    fn a_try_follows_as_the_policy_says() {
        let backoff = Backoff {
            delay_ms: None,
            initial_ms: Some(100),
            factor: Some(3),
            max_ms: Some(500),
            ..Backoff::new(BackoffType::Exponential)
        };
        let retry = Retry {
            max_attempts: Some(4),
            backoff: Some(backoff),
            jitter: Some(Jitter::None),
            never_on: Some(vec!["content_policy".to_owned()]),
            ..Retry::default()
        };
        let failure = TaskError::new("503", "provider");
        let delays: Vec<Option<i64>> = (1..=4).map(|tries| next_try(Some(&retry), tries, &failure)).collect();
        assert_eq!(delays, [Some(100), Some(300), Some(500), None]);
        assert_eq!(next_try(None, 1, &failure), None);
        assert_eq!(next_try(Some(&retry), 1, &TaskError::new("no", "content_policy")), None);
        assert_eq!(next_try(Some(&retry), 1, &failure.clone().fatal()), None);
        assert_eq!(next_try(Some(&retry), 1, &failure.retry_after_ms(7)), Some(7));
    }
}
