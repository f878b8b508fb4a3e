//! Waits of a handler that are steps: a signal, an approval. They belong to the execution and outlive the attempt.

use std::collections::BTreeSet;
use std::error::Error;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use ff_api::steps::PutStepBody;
use ff_core::types::WaitpointToken;
use ff_script::generated::{StepKind, StepState, SuspensionReason};
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use super::Ctx;
use super::steps::{StepError, changed_kind};
use crate::SdkError;
use crate::steps::{Aside, Came, Wait};
use crate::task::TaskCore;
use crate::waits::{Condition, OpenedWaitpoint, Over, ResumeCause, ResumeSignal, WaitpointSpec};

/// Hands out one token: to an approver, or to whoever is to send the signal.
type Deliver<'a> =
    Box<dyn FnMut(String, WaitpointToken) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> + Send + 'a>;

fn boxed<'a, Fut, E>(delivery: Fut) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>>
where
    Fut: Future<Output = Result<(), E>> + Send + 'a,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    delivery.map(|delivered| delivered.map_err(Into::into)).boxed()
}

fn millis(within: Option<Duration>) -> Option<u64> {
    within.map(|within| u64::try_from(within.as_millis()).unwrap_or(u64::MAX))
}

/// A wait for a signal that is about to begin. It begins when it is awaited.
#[must_use = "a wait begins when it is awaited"]
pub struct SignalWait<'a> {
    core: Arc<TaskCore>,
    signal: String,
    within: Option<Duration>,
    deliver: Option<Deliver<'a>>,
}

impl<'a> SignalWait<'a> {
    /// Waits no longer than this; then the signal is one named `timeout`. The time runs from the first asking.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// Hands the token out, once: at least once, and when it has to be done again the earlier token dies.
    pub fn deliver<F, Fut, E>(mut self, mut deliver: F) -> Self
    where
        F: FnMut(WaitpointToken) -> Fut + Send + 'a,
        Fut: Future<Output = Result<(), E>> + Send + 'a,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.deliver = Some(Box::new(move |_, token| boxed(deliver(token))));
        self
    }
}

impl<'a> IntoFuture for SignalWait<'a> {
    type Output = Result<ResumeSignal, StepError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let step = self.core.steps.name(&self.signal, None);
        Box::pin(async move {
            let step = step?;
            let wait = Wait {
                reason: SuspensionReason::WaitingForSignal,
                spec: WaitpointSpec { key: key_of(&step), ..WaitpointSpec::default() },
                condition: Condition::from_matchers([&self.signal]),
                timeout_ms: millis(self.within),
            };
            let came = wait_as_step(&self.core, &step, wait, self.deliver).await?;
            let named = |signal: &&ResumeSignal| signal.signal_name == self.signal || signal.signal_name == "timeout";
            let found = came.signals.iter().find(named).or(came.signals.first()).cloned();
            found.ok_or_else(|| {
                let by = came.actor.map(|actor| format!(" by {actor}")).unwrap_or_default();
                StepError::Unfit { step, problem: format!("was ended{by} before the signal came") }
            })
        })
    }
}

/// What approvers said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    /// Their signals, in order of arrival.
    pub signals: Vec<ResumeSignal>,
}

impl Approved {
    /// Who approved, each once, in order of arrival.
    #[must_use]
    pub fn approvers(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let named = self.signals.iter().filter_map(|signal| signal.approver.as_deref());
        named.filter(|name| seen.insert(*name)).collect()
    }
}

/// An approval that is about to be asked for. It is asked for when it is awaited.
#[must_use = "an approval is asked for when it is awaited"]
pub struct Approval<'a> {
    core: Arc<TaskCore>,
    name: String,
    approvers: Vec<String>,
    need: Option<usize>,
    within: Option<Duration>,
    deliver: Option<Deliver<'a>>,
}

impl<'a> Approval<'a> {
    /// Those who may approve; each gets a token of its own.
    pub fn of<I>(mut self, approvers: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.approvers = approvers.into_iter().map(Into::into).collect();
        self
    }

    /// How many of them have to; the default is all.
    pub fn need(mut self, approvers: usize) -> Self {
        self.need = Some(approvers);
        self
    }

    /// Waits no longer than this; then the approval is missing. The time runs from the first asking.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// Hands each approver its token, once: at least once, and when it has to be done again the earlier tokens die.
    pub fn deliver<F, Fut, E>(mut self, mut deliver: F) -> Self
    where
        F: FnMut(String, WaitpointToken) -> Fut + Send + 'a,
        Fut: Future<Output = Result<(), E>> + Send + 'a,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.deliver = Some(Box::new(move |who, token| boxed(deliver(who, token))));
        self
    }
}

impl<'a> IntoFuture for Approval<'a> {
    type Output = Result<Approved, StepError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let step = self.core.steps.name(&self.name, None);
        Box::pin(async move {
            let (step, count) = (step?, self.approvers.len());
            let need = self.need.unwrap_or(count);
            if count == 0 {
                return Err(SdkError::config("approval", "of", "must name at least one approver").into());
            }
            if !(1..=count).contains(&need) {
                let message = format!("must be in 1..={count}, as many as there are approvers, got {need}");
                return Err(SdkError::config("approval", "need", message).into());
            }
            let wait = Wait {
                reason: SuspensionReason::WaitingForApproval,
                spec: WaitpointSpec { key: key_of(&step), approvers: self.approvers, ..WaitpointSpec::default() },
                condition: Condition::Count {
                    n: u32::try_from(need).unwrap_or(u32::MAX),
                    over: Over::Approvers,
                    of: None,
                },
                timeout_ms: millis(self.within),
            };
            let came = wait_as_step(&self.core, &step, wait, self.deliver).await?;
            let signals: Vec<ResumeSignal> = came.signals;
            let approved = Approved { signals };
            // Whatever else ended it, an operator or its time, is no approval.
            if came.cause != ResumeCause::Signal && approved.approvers().len() < need {
                let by = came.actor.unwrap_or_else(|| "its time".to_owned());
                return Err(StepError::ApprovalMissing { step, by, need });
            }
            Ok(approved)
        })
    }
}

/// The waitpoint of a step is known to people by the step's name, as far as it fits.
fn key_of(step: &str) -> String {
    crate::task::cut(step.to_owned(), ff_core::limits::WAITPOINT_KEY_BYTES_MAX)
}

/// What a wait came to; while it is not over, the attempt is set aside for it.
async fn wait_as_step(
    core: &TaskCore,
    step: &str,
    wait: Wait,
    deliver: Option<Deliver<'_>>,
) -> Result<Came, StepError> {
    if let Some(known) = core.recorded(step).await? {
        if known.kind != StepKind::Signal {
            return Err(changed_kind(step, known.kind));
        }
        if known.state == StepState::Done {
            return Ok(core.came_of_step(step).await?);
        }
    }
    if let Some(deliver) = deliver
        && !hand_out(core, step, &wait.spec, deliver).await?
    {
        return Ok(core.came_of_step(step).await?);
    }
    core.steps.wants_aside(Aside::Wait { step: step.to_owned(), wait: Box::new(wait) });
    Err(StepError::SetAside { step: step.to_owned() })
}

/// Opens the waitpoint and hands its tokens out, as a step of its own. False when the wait is over.
async fn hand_out(
    core: &TaskCore,
    step: &str,
    spec: &WaitpointSpec,
    mut deliver: Deliver<'_>,
) -> Result<bool, StepError> {
    let name = core.steps.name(&format!("{step}: deliver"), None)?;
    if core.recorded(&name).await?.is_some_and(|known| known.state == StepState::Done) {
        return Ok(true);
    }
    let started_at = core.steps.now_ms();
    let Some(opened) = open_for(core, step, spec).await? else { return Ok(false) };
    for issued in opened.tokens {
        let delivered = deliver(issued.approver.unwrap_or_default(), issued.token).await;
        delivered.map_err(|source| StepError::Failed { step: name.clone(), source })?;
    }
    let body = PutStepBody { started_at: Some(started_at), ..PutStepBody::new(core.lease.at.fence()) };
    core.put_step(&name, body).await?;
    core.note_done(&name, Vec::new(), None);
    Ok(true)
}

/// The waitpoint with tokens to hand out: one that an earlier run has opened gets new ones.
async fn open_for(core: &TaskCore, step: &str, spec: &WaitpointSpec) -> Result<Option<OpenedWaitpoint>, SdkError> {
    let (reach, mut anew) = (core.backend.reach(), None);
    loop {
        let request = Uuid::now_v7();
        let opened = core.repeat(|| reach.create_step_waitpoint(core.lease.at, spec, step, anew, request)).await?;
        match opened {
            Some(opened) if opened.tokens.is_empty() && anew.is_none() => anew = Some(opened.waitpoint_id),
            answer => return Ok(answer),
        }
    }
}

/// Waits that are steps. Once over they answer the same again; asked for, they stay asked for: a later attempt finds the
/// waitpoint with the signals it has.
impl Ctx {
    /// Waits for a signal of this name, without holding a worker.
    ///
    /// An operator who resumes the execution before the signal came ends the wait with an error.
    pub fn wait_for_signal<'a>(&self, signal: impl Into<String>) -> SignalWait<'a> {
        SignalWait { core: Arc::clone(&self.0), signal: signal.into(), within: None, deliver: None }
    }

    /// Asks people to approve, and waits until enough have. People are asked once per execution, and what they have signed
    /// stays signed.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use std::time::Duration;
    /// use ff_sdk::runtime::{Ctx, HandlerResult, WorkerRuntime};
    /// # use ff_core::types::WaitpointToken;
    ///
    /// async fn mail(who: String, token: WaitpointToken) -> Result<(), std::io::Error> {
    ///     // … a link with token.as_str() in it …
    ///     Ok(())
    /// }
    ///
    /// async fn release(ctx: Ctx) -> HandlerResult {
    ///     let signed = ctx.approval("sign-off").of(["ann", "bob", "cid"]).need(2).within(Duration::from_secs(86_400))
    ///         .deliver(|who, token| mail(who, token)).await?;
    ///     Ok(Some(signed.approvers().join(",").into_bytes()))
    /// }
    ///
    /// let engine = ff_sdk::testing::TestEngine::start().await?;
    /// let id = engine.submit("release", b"{}").await?;
    /// let running = engine.run(WorkerRuntime::new(engine.worker("w-1").await?).on("release", release));
    /// # while engine.describe(&id).await?.lifecycle_phase != ff_core::state::LifecyclePhase::Suspended {
    /// #     tokio::task::yield_now().await;
    /// # }
    /// engine.signal_as(&id, "sign-off", Some("ann"), "yes", b"{}").await?;
    /// engine.signal_as(&id, "sign-off", Some("cid"), "yes", b"{}").await?;
    /// assert_eq!(engine.result(&id).await?.result.as_deref(), Some(b"ann,cid".as_slice()));
    /// # running.stop().await?;
    /// # Ok::<(), ff_sdk::SdkError>(())
    /// # }).unwrap();
    /// ```
    pub fn approval<'a>(&self, name: impl Into<String>) -> Approval<'a> {
        let core = Arc::clone(&self.0);
        Approval { core, name: name.into(), approvers: Vec::new(), need: None, within: None, deliver: None }
    }
}
