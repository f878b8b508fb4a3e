//! Suspensions and the tokens that end them: mints and verifies tokens, so that the store only ever sees digests.
//!
//! Ids and tokens are functions of what is asked for. A call repeated after a lost reply, with the same request id, asks
//! for the same waitpoints and gets the same tokens.

use std::time::Duration;

use ff_api::Problem;
pub use ff_api::waitpoints::{IssuedToken, OpenedWaitpoint};
use ff_core::condition::{Condition, Op, Over};
use ff_core::error::{EngineError, ValidationKind};
use ff_core::error_code::ErrorCode;
use ff_core::types::{ExecutionId, SignalId, SuspensionId, TimestampMs, WaitpointId, WaitpointToken};
use ff_keys::{Claims, InvalidToken, KeyId, Keys, digest, fresh_nonce};
use ff_script::generated::{
    CloseWaitpoint, CloseWaitpointReply, ConditionNode, ConditionOp, CountOver, CreateWaitpoint, CreateWaitpointReply,
    DeliverSignal, DeliverSignalReply, Fence, NewWaitpoint, NoteKeys, NoteKeysReply, ReissueToken, ReissueTokenReply,
    Resume, Signal, SignalEffect, SuspendExecution, SuspendExecutionReply, SuspensionReason, Task, TimeoutBehavior,
    Token,
};
use ff_script::{Bytes, Error, Route};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::operations::Operations;

/// What can go wrong between a waitpoint and its signal.
#[derive(Debug, thiserror::Error)]
pub enum WaitpointsError {
    /// The store refused, or could not be asked.
    #[error(transparent)]
    Engine(#[from] Error),
    /// No token can be minted.
    #[error(transparent)]
    Keys(#[from] ff_keys::Error),
    /// The token was not signed with one of this store's keys.
    #[error("invalid token")]
    InvalidToken(#[from] InvalidToken),
}

impl From<WaitpointsError> for Problem {
    fn from(error: WaitpointsError) -> Self {
        match error {
            WaitpointsError::Engine(error) => error.into(),
            WaitpointsError::Keys(error) => keys_problem(error),
            WaitpointsError::InvalidToken(_) => invalid_token(),
        }
    }
}

/// The token was not signed with one of this store's keys, or there is none.
#[must_use]
pub fn invalid_token() -> Problem {
    Problem::new(401, "invalid_token", "the waitpoint token is missing or not genuine")
}

/// What goes wrong with keys, as a problem: a caller can correct some of it, the rest is for an operator.
#[must_use]
pub fn keys_problem(error: ff_keys::Error) -> Problem {
    use ff_keys::Error;
    let text = error.to_string();
    match error {
        Error::ClaimTooLong { field, .. } => Problem::invalid(field, text),
        Error::Fixed => Problem::new(409, "keys_fixed", text),
        Error::UnknownKey { .. } => Problem::new(404, "key_not_found", text),
        Error::Malformed { .. }
        | Error::OpenToOthers { .. }
        | Error::Missing { .. }
        | Error::Exists { .. }
        | Error::Io { .. }
        | Error::TwoPlaces
        | Error::NoDataDir
        | Error::ForeignRing { .. } => {
            tracing::error!(error = text, "no token can be signed");
            Problem::new(503, "keys_unavailable", text)
        }
    }
}

impl From<EngineError> for WaitpointsError {
    fn from(error: EngineError) -> Self {
        Self::Engine(Error::Engine(error))
    }
}

/// A waitpoint to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitpointSpec {
    /// What people call it; one open waitpoint of an execution has it.
    pub key: String,
    /// How long it takes signals.
    pub expires_in_ms: Option<i64>,
    /// The signal names it takes; any when empty.
    pub allowed_signals: Vec<String>,
    /// Who may answer, each with a token of their own; one token without a label when empty.
    pub approvers: Vec<String>,
    /// How often each token may be used; without a bound when absent.
    pub uses: Option<u32>,
}

/// What a running attempt asks to wait for.
#[derive(Clone, Debug)]
pub struct NewSuspension {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its lease.
    pub fence: Fence,
    /// The execution's namespace, which tokens are bound to; looked up when absent.
    pub namespace: Option<String>,
    /// Why.
    pub reason: SuspensionReason,
    /// Waitpoints to open.
    pub waitpoints: Vec<WaitpointSpec>,
    /// Pending waitpoints to wait at too: these, or all the attempt has when absent.
    pub adopt: Option<Vec<WaitpointId>>,
    /// What must arrive.
    pub condition: Condition,
    /// How long it may take.
    pub timeout_ms: Option<i64>,
    /// What happens then.
    pub timeout_behavior: TimeoutBehavior,
    /// What whoever continues the attempt gets back.
    pub continuation: Option<Vec<u8>>,
    /// How the continuation is encoded, for those who show it.
    pub continuation_encoding: Option<String>,
    /// Names the wait: whoever continues the attempt finds it in the resume.
    pub wait: Option<String>,
    /// Makes the wait a step of this name: it outlives the attempt, and once it is over it is answered the same again.
    pub step: Option<String>,
    /// The same in every repetition of one call.
    pub request_id: Option<Uuid>,
}

/// What became of a suspend.
#[derive(Clone, Debug)]
pub enum Suspended {
    /// The lease is released; the execution waits.
    Waiting {
        /// The suspension.
        suspension_id: SuspensionId,
        /// Where signals arrive.
        waitpoints: Vec<OpenedWaitpoint>,
        /// When it takes too long.
        timeout_at: Option<i64>,
        /// The same call had been answered before.
        replayed: bool,
    },
    /// Signals that came early are enough: the lease is still held.
    AlreadySatisfied {
        /// The suspension that did not happen.
        suspension_id: SuspensionId,
        /// The signals.
        signals: Vec<Signal>,
    },
    /// The wait of this step was over before: the lease is still held.
    Done {
        /// What it came to.
        resume: Box<Resume>,
    },
}

/// A waitpoint of a step's wait.
#[derive(Clone, Debug)]
pub enum StepWaitpoint {
    /// It was opened now, or got new tokens.
    Opened(OpenedWaitpoint),
    /// An earlier run of the handler opened it, and was shown its tokens.
    Open {
        /// Its id.
        waitpoint_id: WaitpointId,
    },
    /// The wait is over.
    Done,
}

/// A signal to deliver.
#[derive(Clone, Debug, Default)]
pub struct NewSignal {
    /// Its id, the same in every repetition; a fresh one when absent.
    pub signal_id: Option<SignalId>,
    /// What it says.
    pub name: String,
    /// What it brings.
    pub payload: Option<Vec<u8>>,
    /// How the payload is encoded.
    pub payload_encoding: Option<String>,
    /// The kind of signal.
    pub category: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
    /// Who sent it, by their own account.
    pub source_identity: Option<String>,
    /// What it belongs to elsewhere.
    pub correlation_id: Option<String>,
    /// Delivers it once within a day.
    pub idempotency_key: Option<String>,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOutcome {
    /// It was kept.
    Accepted {
        /// Its id.
        signal_id: SignalId,
        /// Whether it counted, waits for the suspend, or was not asked for.
        effect: SignalEffect,
    },
    /// It was what the execution waited for.
    TriggeredResume {
        /// Its id.
        signal_id: SignalId,
    },
    /// It had been delivered before.
    Duplicate {
        /// The id it got then.
        signal_id: SignalId,
    },
}

/// Suspensions, waitpoints and signals of one store, with the keys that sign its tokens.
pub struct Waitpoints {
    operations: Operations,
    keys: Keys,
    /// The key ids the store was last told by this process.
    noted: Mutex<Vec<KeyId>>,
}

impl Waitpoints {
    /// Waitpoints of a store whose tokens these keys sign.
    #[must_use]
    pub fn new(operations: Operations, keys: Keys) -> Self {
        Self { operations, keys, noted: Mutex::default() }
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Sets a running attempt aside until its condition is met.
    pub async fn suspend(&self, new: NewSuspension) -> Result<Suspended, WaitpointsError> {
        new.condition.check().map_err(|error| invalid("condition", &error.to_string()))?;
        let id = new.execution_id;
        let signer = self.signer(id, new.namespace.as_deref()).await?;
        let asked = new.request_id.unwrap_or_else(Uuid::now_v7);
        let named = |what: &str, key: &str| derived(id, new.fence.lease_epoch, what, asked, key);
        let suspension_id = SuspensionId::from_uuid(named("suspension", ""));
        let opens = new
            .waitpoints
            .iter()
            .map(|spec| signer.open(spec, WaitpointId::from_uuid(named("waitpoint", &spec.key))))
            .collect::<Result<Vec<_>, _>>()?;
        let spare = WaitpointSpec { key: "signal".to_owned(), ..WaitpointSpec::default() };
        let otherwise = signer.open(&spare, WaitpointId::from_uuid(named("otherwise", "")))?;
        let condition = if new.condition == Condition::default() { Vec::new() } else { nodes(&new.condition) };
        let call = SuspendExecution {
            adopt: new.adopt.clone(),
            condition,
            continuation: new.continuation.map(Bytes),
            continuation_encoding: new.continuation_encoding,
            step: new.step.clone(),
            wait: new.wait,
            execution_id: id,
            fence: new.fence,
            otherwise: Some(otherwise.to_store.clone()),
            reason: new.reason,
            review_waitpoint_id: (new.timeout_behavior == TimeoutBehavior::Escalate)
                .then(|| WaitpointId::from_uuid(named("review", ""))),
            suspension_id,
            timeout_behavior: new.timeout_behavior,
            timeout_ms: new.timeout_ms,
            waitpoints: opens.iter().map(|made| made.to_store.clone()).collect(),
        };
        let client = self.operations.client();
        match client.call(client.route_of(&id), &call).await? {
            SuspendExecutionReply::Suspended { suspension_id, waitpoints, timeout_at, replayed } => {
                let mut made = opens;
                made.push(otherwise);
                let mut opened = Vec::with_capacity(waitpoints.len());
                for waitpoint in waitpoints {
                    let waitpoint_id = waitpoint.waitpoint_id;
                    let now = made.iter().position(|made| made.to_store.waitpoint_id == waitpoint_id);
                    // A call repeated without its request id asked for other ids; the store has the first call's.
                    let before = made.iter().find(|made| replayed && made.to_store.key == waitpoint.key);
                    let tokens = match (now, before) {
                        (Some(at), _) => made.swap_remove(at).tokens,
                        (None, Some(made)) => signer.open(made.spec, waitpoint_id)?.tokens,
                        (None, None) => Vec::new(),
                    };
                    opened.push(OpenedWaitpoint {
                        waitpoint_id,
                        key: waitpoint.key,
                        expires_at: waitpoint.expires_at,
                        tokens,
                        done: false,
                    });
                }
                Ok(Suspended::Waiting { suspension_id, waitpoints: opened, timeout_at, replayed })
            }
            SuspendExecutionReply::AlreadySatisfied { signals, more } => {
                let signals = if more { self.operations.signals(id, true).await? } else { signals };
                Ok(Suspended::AlreadySatisfied { suspension_id, signals })
            }
            SuspendExecutionReply::Done { resume } => {
                let whole = match &new.step {
                    Some(step) if resume.more => self.operations.step(id, step).await?.resume,
                    _ => None,
                };
                Ok(Suspended::Done { resume: Box::new(whole.unwrap_or(resume)) })
            }
        }
    }

    /// Opens a waitpoint while the attempt still runs. The same request answers the same waitpoint and tokens; without a
    /// request id every call asks for a waitpoint of its own.
    pub async fn create(
        &self,
        id: ExecutionId,
        fence: Fence,
        namespace: Option<&str>,
        spec: &WaitpointSpec,
        request_id: Option<Uuid>,
    ) -> Result<OpenedWaitpoint, WaitpointsError> {
        match self.create_for(id, fence, namespace, spec, request_id, None, None).await? {
            StepWaitpoint::Opened(opened) => Ok(opened),
            StepWaitpoint::Open { .. } | StepWaitpoint::Done => {
                let detail = "a waitpoint without a step was answered as one of a step".to_owned();
                Err(Error::Decode { function: "ff_create_waitpoint", detail }.into())
            }
        }
    }

    /// Opens a waitpoint for the wait of a step, which outlives the attempt. One that is open already is answered without
    /// tokens; asked for by its id (`anew`) it gets new ones, and the old ones die.
    #[expect(clippy::too_many_arguments, reason = "each is a field of the one request")]
    pub async fn create_for(
        &self,
        id: ExecutionId,
        fence: Fence,
        namespace: Option<&str>,
        spec: &WaitpointSpec,
        request_id: Option<Uuid>,
        step: Option<&str>,
        anew: Option<WaitpointId>,
    ) -> Result<StepWaitpoint, WaitpointsError> {
        let signer = self.signer(id, namespace).await?;
        let asked = request_id.unwrap_or_else(Uuid::now_v7);
        let named = |what: &str| derived(id, fence.lease_epoch, what, asked, &spec.key);
        let waitpoint_id = anew.unwrap_or_else(|| WaitpointId::from_uuid(named("pending")));
        let salt = anew.map(|_| named("anew"));
        let made = signer.open_salted(spec, waitpoint_id, salt.as_ref().map_or(&[], |salt| salt.as_bytes()))?;
        let call = CreateWaitpoint { step: step.map(str::to_owned), ..CreateWaitpoint::new(id, fence, made.to_store) };
        let client = self.operations.client();
        Ok(match client.call(client.route_of(&id), &call).await? {
            CreateWaitpointReply::Created { expires_at, .. } => {
                let key = spec.key.clone();
                StepWaitpoint::Opened(OpenedWaitpoint {
                    waitpoint_id,
                    key,
                    expires_at,
                    tokens: made.tokens,
                    done: false,
                })
            }
            CreateWaitpointReply::Open { waitpoint_id, .. } => StepWaitpoint::Open { waitpoint_id },
            CreateWaitpointReply::Done => StepWaitpoint::Done,
        })
    }

    /// The worker gives up a pending waitpoint.
    pub async fn close(
        &self,
        id: ExecutionId,
        fence: Fence,
        waitpoint_id: WaitpointId,
    ) -> Result<bool, WaitpointsError> {
        let client = self.operations.client();
        let call = CloseWaitpoint { execution_id: id, fence, waitpoint_id };
        let CloseWaitpointReply::Closed { replayed } = client.call(client.route_of(&id), &call).await?;
        Ok(replayed)
    }

    /// Delivers a signal under a waitpoint token. The mac is checked before the store is asked; a token of ours that the
    /// waitpoint does not take answers the same whatever the reason.
    pub async fn deliver(
        &self,
        id: ExecutionId,
        waitpoint_id: WaitpointId,
        token: &WaitpointToken,
        signal: NewSignal,
    ) -> Result<SignalOutcome, WaitpointsError> {
        let claims = self.keys.verify(token.as_str())?;
        if claims.execution_id != id || claims.waitpoint_id != waitpoint_id {
            return Err(
                EngineError::from_refusal(ErrorCode::WaitpointNotOpen, ff_core::error::Detail::default()).into()
            );
        }
        let call = DeliverSignal {
            category: signal.category,
            correlation_id: signal.correlation_id,
            execution_id: id,
            idempotency_key: signal.idempotency_key,
            name: signal.name,
            payload: signal.payload.map(Bytes),
            payload_encoding: signal.payload_encoding,
            signal_id: signal.signal_id.unwrap_or_else(SignalId::mint),
            source: signal.source,
            source_identity: signal.source_identity,
            token_digest: digest(token),
            waitpoint_id,
        };
        let client = self.operations.client();
        Ok(match client.call(client.route_of(&id), &call).await? {
            DeliverSignalReply::Accepted { signal_id, effect } => SignalOutcome::Accepted { signal_id, effect },
            DeliverSignalReply::TriggeredResume { signal_id } => SignalOutcome::TriggeredResume { signal_id },
            DeliverSignalReply::Duplicate { signal_id } => SignalOutcome::Duplicate { signal_id },
        })
    }

    /// An operator replaces the token of one approver, or the waitpoint's only one; the old token dies.
    pub async fn reissue(
        &self,
        waitpoint_id: WaitpointId,
        approver: Option<&str>,
        actor: &str,
    ) -> Result<IssuedToken, WaitpointsError> {
        let found = self.operations.waitpoint(waitpoint_id).await?;
        let signer = self.signer(found.execution_id, Some(&found.namespace)).await?;
        let uses = found.approvers.iter().find(|state| state.approver.as_deref() == approver).and_then(|s| s.uses_left);
        let token = self.keys.mint(&Claims {
            expires_at: found.expires_at.map(TimestampMs::from_millis),
            uses: uses.and_then(|n| u32::try_from(n).ok()),
            nonce: fresh_nonce(),
            ..signer.claims(waitpoint_id, approver, None)
        })?;
        let call = ReissueToken {
            actor: actor.to_owned(),
            approver: approver.map(str::to_owned),
            digest: digest(&token),
            execution_id: found.execution_id,
            waitpoint_id,
        };
        let client = self.operations.client();
        let ReissueTokenReply::Reissued { .. } = client.call(client.route_of_waitpoint(&waitpoint_id), &call).await?;
        Ok(IssuedToken { approver: approver.map(str::to_owned), token })
    }

    /// Makes sure that the store knows whose keys sign its tokens, and that they are the ones this process has.
    async fn signer(&self, id: ExecutionId, namespace: Option<&str>) -> Result<Signer<'_>, WaitpointsError> {
        self.note_keys().await?;
        let namespace = match namespace {
            Some(namespace) => namespace.to_owned(),
            None => self.operations.describe(id).await?.namespace,
        };
        Ok(Signer { keys: &self.keys, namespace, execution_id: id })
    }

    /// Signs with a new key from now on, accepts tokens of the old one until the grace is over, and tells the store.
    pub async fn rotate_keys(&self, grace: Duration) -> Result<KeyId, WaitpointsError> {
        self.note_keys().await?;
        let signing = self.keys.rotate(grace)?;
        self.note_keys().await?;
        Ok(signing)
    }

    /// Accepts no token of this key any more and tells the store. Says the key that signs now.
    pub async fn revoke_key(&self, id: &KeyId) -> Result<KeyId, WaitpointsError> {
        self.note_keys().await?;
        let signing = self.keys.revoke(id)?;
        self.note_keys().await?;
        Ok(signing)
    }

    /// Tells the store the ids of the keys here, once and after every change.
    pub async fn note_keys(&self) -> Result<(), WaitpointsError> {
        let mut noted = self.noted.lock().await;
        let mut here = self.keys.key_ids();
        if here.is_empty() {
            // A process that should have been given the keys must not make others.
            self.tell(&[], &[]).await?.map_or(Ok(()), |known| self.keys.check_known(&known))?;
            self.keys.make()?;
            here = self.keys.key_ids();
        }
        if *noted == here {
            return Ok(());
        }
        let gone: Vec<KeyId> = noted.iter().filter(|id| !here.contains(id)).cloned().collect();
        if let Some(known) = self.tell(&here, &gone).await? {
            if !gone.iter().any(|id| known.iter().any(|known| known == id.as_str())) {
                // Fine only when the file has changed since; then the next call tells.
                return Ok(self.keys.check_known(&known)?);
            }
            // The last key this store knew of was replaced here. It vouches for the new ones, and leaves.
            let both: Vec<KeyId> = here.iter().chain(&gone).cloned().collect();
            self.tell(&both, &[]).await?;
            self.tell(&here, &gone).await?;
        }
        *noted = here;
        Ok(())
    }

    /// Answers the ids the store knows when none of these is among them.
    async fn tell(&self, here: &[KeyId], gone: &[KeyId]) -> Result<Option<Vec<String>>, WaitpointsError> {
        let texts = |ids: &[KeyId]| ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
        let call = NoteKeys { key_ids: texts(here), gone: (!gone.is_empty()).then(|| texts(gone)) };
        Ok(match self.operations.client().call(Route::Fleet, &call).await? {
            NoteKeysReply::Noted { .. } => None,
            NoteKeysReply::Foreign { key_ids } => Some(key_ids),
        })
    }
}

impl Operations {
    /// Fetches the signals of a resumed task that did not fit into its claim.
    pub async fn complete_resume(&self, task: &mut Task) -> Result<(), Error> {
        let id = task.execution_id;
        if let Some(resume) = task.resume.as_mut().filter(|resume| resume.more) {
            resume.signals = self.signals(id, true).await?;
            resume.more = false;
        }
        Ok(())
    }
}

/// Mints the tokens of one execution.
struct Signer<'a> {
    keys: &'a Keys,
    namespace: String,
    execution_id: ExecutionId,
}

/// A waitpoint to open with its tokens. They are minted once: the ring may change at any time, and what is handed out must
/// be what the store was told.
struct Made<'a> {
    spec: &'a WaitpointSpec,
    to_store: NewWaitpoint,
    tokens: Vec<IssuedToken>,
}

impl Signer<'_> {
    /// The claims of a token, the same each time: a repeated call mints the same token.
    fn claims(&self, waitpoint_id: WaitpointId, approver: Option<&str>, uses: Option<u32>) -> Claims {
        self.salted_claims(waitpoint_id, approver, uses, &[])
    }

    fn salted_claims(
        &self,
        waitpoint_id: WaitpointId,
        approver: Option<&str>,
        uses: Option<u32>,
        salt: &[u8],
    ) -> Claims {
        let mut hash = Sha256::new();
        hash.update(waitpoint_id.as_uuid().as_bytes());
        hash.update(salt);
        hash.update(approver.unwrap_or_default());
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&hash.finalize()[..16]);
        Claims {
            namespace: self.namespace.clone(),
            execution_id: self.execution_id,
            waitpoint_id,
            approver: approver.map(str::to_owned),
            // The store judges a waitpoint's end by its own clock.
            expires_at: None,
            uses,
            nonce,
        }
    }

    fn open<'a>(&self, spec: &'a WaitpointSpec, waitpoint_id: WaitpointId) -> Result<Made<'a>, ff_keys::Error> {
        self.open_salted(spec, waitpoint_id, &[])
    }

    /// Another salt makes other tokens for the same waitpoint.
    fn open_salted<'a>(
        &self,
        spec: &'a WaitpointSpec,
        waitpoint_id: WaitpointId,
        salt: &[u8],
    ) -> Result<Made<'a>, ff_keys::Error> {
        let labels: Vec<Option<&str>> = if spec.approvers.is_empty() {
            vec![None]
        } else {
            spec.approvers.iter().map(|label| Some(label.as_str())).collect()
        };
        let mint = |approver: Option<&str>| {
            let token = self.keys.mint(&self.salted_claims(waitpoint_id, approver, spec.uses, salt))?;
            Ok(IssuedToken { approver: approver.map(str::to_owned), token })
        };
        let tokens = labels.into_iter().map(mint).collect::<Result<Vec<_>, ff_keys::Error>>()?;
        let digests = tokens.iter().map(|t| Token { approver: t.approver.clone(), digest: digest(&t.token) });
        let to_store = NewWaitpoint {
            allowed_signals: (!spec.allowed_signals.is_empty()).then(|| spec.allowed_signals.clone()),
            expires_in_ms: spec.expires_in_ms,
            key: spec.key.clone(),
            tokens: digests.collect(),
            uses: spec.uses.map(i64::from),
            waitpoint_id,
        };
        Ok(Made { spec, to_store, tokens })
    }
}

/// An id that is the same whenever the same is asked for; it lives in its execution's partition.
fn derived(id: ExecutionId, lease_epoch: i64, what: &str, asked: Uuid, key: &str) -> Uuid {
    let mut hash = Sha256::new();
    for part in [
        id.as_uuid().as_bytes().as_slice(),
        &lease_epoch.to_be_bytes(),
        what.as_bytes(),
        asked.as_bytes(),
        key.as_bytes(),
    ] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    let mut uuid = *uuid::Builder::from_custom_bytes(bytes).into_uuid().as_bytes();
    uuid[14..].copy_from_slice(&id.seed().to_be_bytes());
    Uuid::from_bytes(uuid)
}

fn nodes(condition: &Condition) -> Vec<ConditionNode> {
    let flat = condition.flatten().into_iter();
    flat.map(|node| ConditionNode {
        n: node.n.map(i64::from),
        name: node.name,
        op: match node.op {
            Op::Signal => ConditionOp::Signal,
            Op::AnyOf => ConditionOp::AnyOf,
            Op::AllOf => ConditionOp::AllOf,
            Op::Count => ConditionOp::Count,
        },
        over: node.over.map(|over| match over {
            Over::Signals => CountOver::Signals,
            Over::Waitpoints => CountOver::Waitpoints,
            Over::Approvers => CountOver::Approvers,
        }),
        parent: node.parent.map(|at| i64::try_from(at).unwrap_or(i64::MAX)),
        waitpoint: node.waitpoint,
    })
    .collect()
}

fn invalid(field: &str, detail: &str) -> EngineError {
    EngineError::Validation {
        kind: ValidationKind::InvalidArgument { field: field.to_owned() },
        detail: detail.to_owned(),
    }
}
