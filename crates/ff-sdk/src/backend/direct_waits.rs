//! Waits of an engine in reach: tokens are minted and verified in this process, with keys that are found when first needed.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ff_core::types::{ExecutionId, SignalId, TimestampMs, WaitpointId};
use ff_engine::{
    NewSignal, NewSuspension, OpenedWaitpoint, SignalOutcome as Delivered, Suspended as Answer, WaitpointSpec,
    Waitpoints, WaitpointsError,
};
use ff_keys::{Keys, Source};
use uuid::Uuid;

use super::direct::{Direct, fence, millis};
use super::waits::invalid_token;
use super::{LeaseRef, Suspended, Suspending, Waits, is_json};
use crate::SdkError;
use crate::config::WorkerConfig;
use crate::waits::{ResumeSignal, Signal, SignalOutcome, Suspension};

/// Where a process looks for its keys, as far as somebody said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyPlaces {
    /// The keys file.
    pub keys: Option<PathBuf>,
    /// The data directory, where a keys file is made when it is first needed.
    pub data_dir: Option<PathBuf>,
    /// The directory of the embedded store, which is its data directory.
    pub embedded: Option<PathBuf>,
}

impl KeyPlaces {
    /// What a worker's settings say.
    #[must_use]
    pub fn of(config: &WorkerConfig) -> Self {
        Self { keys: config.keys.clone(), data_dir: config.data_dir.clone(), embedded: None }
    }
}

/// Where a process looks for its keys. It does not look before it needs them.
#[derive(Default)]
pub(super) struct Places(Mutex<Option<KeyPlaces>>);

impl Places {
    /// The keys in these places.
    pub(super) fn find(&self) -> Result<Keys, ff_keys::Error> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        let places = ff_keys::Places {
            keys: places.keys.as_deref(),
            data_dir: places.data_dir.as_deref(),
            embedded: places.embedded.as_deref(),
        };
        Source::find(&places).and_then(Keys::open)
    }

    /// Looks in these places; the default changes nothing. Fails when other places were given, or used, before: one
    /// engine signs with one ring.
    fn look_in(&self, places: KeyPlaces, used: bool) -> Result<(), SdkError> {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places == KeyPlaces::default() || given.as_ref() == Some(&places) {
            return Ok(());
        }
        if given.is_some() || used {
            let field = if places.keys.is_some() { "keys" } else { "data_dir" };
            let message = "must be the same for every worker of one engine in a process";
            return Err(SdkError::config("connect", field, message));
        }
        *given = Some(places);
        Ok(())
    }
}

/// A problem with the keys is one of the settings; its text names the file and what to do with it.
fn bad_keys(context: &str, error: &ff_keys::Error) -> SdkError {
    match error {
        ff_keys::Error::ClaimTooLong { field, .. } => SdkError::config(context, field, error.to_string()),
        _ => SdkError::config(context, "keys", error.to_string()),
    }
}

/// What a caller hears of a failed wait.
pub(crate) fn waitpoints_error(context: &str, error: WaitpointsError) -> SdkError {
    match error {
        WaitpointsError::Engine(error) => error.into(),
        WaitpointsError::Keys(error) => bad_keys(context, &error),
        WaitpointsError::InvalidToken(_) => invalid_token(),
    }
}

fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl Direct {
    /// Looks for the keys that sign waitpoint tokens in these places. Without it, and in what they leave open, the environment
    /// says: `FF_KEYS` or `FF_KEYS_FILE`, else the file `keys` in the data directory.
    pub fn look_for_keys_in(&self, places: KeyPlaces) -> Result<(), SdkError> {
        self.key_places.look_in(places, self.service().has_keys())
    }

    /// Suspensions and waitpoints of the engine, signed with this process's keys.
    pub fn waitpoints(&self) -> Result<&Waitpoints, SdkError> {
        self.waitpoints_for("waitpoints")
    }

    /// Keys that cannot be used are a problem of the settings; the text names the file and what to do with it.
    fn waitpoints_for(&self, context: &str) -> Result<&Waitpoints, SdkError> {
        self.service().waitpoints().map_err(|problem| SdkError::config(context, "keys", problem.detail()))
    }
}

#[async_trait]
impl Waits for Direct {
    async fn suspend(&self, lease: LeaseRef, suspending: &Suspending) -> Result<Suspended, SdkError> {
        let new = NewSuspension {
            execution_id: lease.execution_id,
            fence: fence(lease),
            namespace: Some(suspending.namespace.as_str().to_owned()),
            reason: suspending.reason,
            waitpoints: suspending.waitpoints.clone(),
            adopt: (!suspending.adopt.is_empty()).then(|| suspending.adopt.clone()),
            condition: suspending.condition.clone(),
            timeout_ms: suspending.timeout_ms.map(millis),
            timeout_behavior: suspending.timeout_behavior.into(),
            continuation: suspending.continuation.clone(),
            continuation_encoding: None,
            step: suspending.step.clone(),
            request_id: Some(suspending.request_id),
        };
        let waitpoints = self.waitpoints_for("suspend")?;
        match waitpoints.suspend(new).await.map_err(|error| waitpoints_error("suspend", error))? {
            Answer::Waiting { suspension_id, waitpoints, timeout_at, .. } => {
                let timeout_at = timeout_at.map(TimestampMs);
                Ok(Suspended::Waiting(Suspension { suspension_id, waitpoints, timeout_at }))
            }
            Answer::AlreadySatisfied { suspension_id, signals } => {
                let signals = signals.into_iter().map(Into::into).collect();
                Ok(Suspended::AlreadySatisfied { suspension_id, signals })
            }
        }
    }

    async fn create_waitpoint(
        &self,
        lease: LeaseRef,
        namespace: &str,
        spec: &WaitpointSpec,
        request_id: Uuid,
    ) -> Result<OpenedWaitpoint, SdkError> {
        let context = "create_pending_waitpoint";
        let waitpoints = self.waitpoints_for(context)?;
        let opened = waitpoints.create(lease.execution_id, fence(lease), Some(namespace), spec, Some(request_id)).await;
        opened.map_err(|error| waitpoints_error(context, error))
    }

    async fn resume_signals(&self, lease: LeaseRef) -> Result<Vec<ResumeSignal>, SdkError> {
        let signals = self.engine().operations().signals(lease.execution_id, true).await?;
        Ok(signals.into_iter().map(Into::into).collect())
    }

    async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint_id: WaitpointId,
        signal_id: SignalId,
        signal: &Signal,
    ) -> Result<SignalOutcome, SdkError> {
        let context = "deliver_signal";
        let new = NewSignal {
            signal_id: Some(signal_id),
            name: signal.signal_name.clone(),
            payload: signal.payload.clone(),
            payload_encoding: signal.payload.as_deref().filter(|bytes| !is_json(bytes)).map(|_| "base64".to_owned()),
            category: said(&signal.signal_category),
            source: said(&signal.source_type),
            source_identity: said(&signal.source_identity),
            correlation_id: None,
            idempotency_key: signal.idempotency_key.clone(),
        };
        let waitpoints = self.waitpoints_for(context)?;
        let delivered = waitpoints.deliver(execution_id, waitpoint_id, &signal.waitpoint_token, new).await;
        Ok(match delivered.map_err(|error| waitpoints_error(context, error))? {
            Delivered::Accepted { signal_id, effect } => SignalOutcome::Accepted { signal_id, effect },
            Delivered::TriggeredResume { signal_id } => SignalOutcome::TriggeredResume { signal_id },
            Delivered::Duplicate { signal_id } => SignalOutcome::Duplicate { existing_signal_id: signal_id },
        })
    }
}
