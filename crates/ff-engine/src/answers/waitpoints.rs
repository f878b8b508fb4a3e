//! Waitpoints: opened and closed by a task, listed and shown, and the signals that arrive at them.

use ff_api::steps::check_name;
use ff_api::waitpoints::{
    CloseOutcome, CloseWaitpoint, CreateWaitpoint, DeliverSignal, DeliveryOutcome, GetWaitpoint,
    ListExecutionWaitpoints, ListSignals, ListWaitpoints, OpenedWaitpoint, ReissueToken, ReissuedToken, Signal,
    SignalDelivered, TaskSignals, Waitpoint, WaitpointClosed,
};
use ff_api::{Ask, Listed, Payload, Problem, page};
use ff_core::limits::{APPROVER_BYTES_MAX, APPROVERS_MAX, SIGNAL_PAYLOAD_BYTES_MAX};
use ff_core::types::{LeaseId, WaitpointId};
use ff_script::generated::SignalEffect;
use uuid::Uuid;

use super::{about, request_id_of, stored};
use crate::principal::Principal;
use crate::service::{Handle, Service};
use crate::waitpoints::{NewSignal, SignalOutcome, StepWaitpoint, WaitpointSpec, invalid_token};

impl Handle<CreateWaitpoint> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CreateWaitpoint>) -> Result<OpenedWaitpoint, Problem> {
        let Ask { at: id, body, .. } = ask;
        let fence = body.fence;
        let spec = WaitpointSpec {
            key: body.key,
            expires_in_ms: body.expires_in_ms,
            allowed_signals: body.allowed_signals.unwrap_or_default(),
            approvers: approvers("", body.approvers)?,
            uses: body.uses,
        };
        let (request_id, step, anew) = (request_id_of(body.request_id.as_deref()), body.step, body.waitpoint_id);
        match &step {
            Some(step) => check_name("step", step)?,
            None if anew.is_some() => {
                return Err(Problem::invalid("waitpoint_id", "belongs to the waitpoint of a step"));
            }
            None => {}
        }
        let opening = async {
            let (namespace, waitpoints) = (self.namespace_under(fence.lease_id), self.waitpoints()?);
            let step = step.as_deref();
            let made = waitpoints.create_for(id, fence, namespace.as_deref(), &spec, request_id, step, anew).await;
            let known = |waitpoint_id, done| {
                let key = spec.key.clone();
                OpenedWaitpoint { waitpoint_id, key, expires_at: None, tokens: Vec::new(), done }
            };
            Ok(match made.map_err(about(id))? {
                StepWaitpoint::Opened(opened) => opened,
                StepWaitpoint::Open { waitpoint_id } => known(waitpoint_id, false),
                StepWaitpoint::Done => known(WaitpointId::from_uuid(Uuid::nil()), true),
            })
        };
        self.fenced(by, id, fence, |_| false, opening).await
    }
}

impl Handle<CloseWaitpoint> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CloseWaitpoint>) -> Result<WaitpointClosed, Problem> {
        let Ask { at: (id, waitpoint_id), body, .. } = ask;
        let closing = async { self.waitpoints()?.close(id, body.fence, waitpoint_id).await.map_err(about(id)) };
        let replayed = self.fenced(by, id, body.fence, |_| false, closing).await?;
        Ok(WaitpointClosed { execution_id: id, waitpoint_id, outcome: CloseOutcome::Closed, replayed })
    }
}

impl Handle<ListSignals> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListSignals>) -> Result<TaskSignals, Problem> {
        let signals = self.operations.signals(ask.at, true).await.map_err(about(ask.at))?;
        Ok(TaskSignals { execution_id: ask.at, signals: signals.into_iter().map(Signal::from).collect() })
    }
}

impl Handle<DeliverSignal> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<DeliverSignal>) -> Result<SignalDelivered, Problem> {
        let Ask { at: waitpoint_id, body, .. } = ask;
        let token = body.token.ok_or_else(invalid_token)?;
        let payload = Payload::read("payload", body.payload.as_deref(), body.payload_encoding)?;
        let (payload, payload_encoding) = stored("payload", payload, SIGNAL_PAYLOAD_BYTES_MAX)?;
        let signal = NewSignal {
            signal_id: body.signal_id,
            name: body.name,
            payload: payload.map(|bytes| bytes.0),
            payload_encoding,
            category: body.category,
            source: body.source,
            source_identity: body.source_identity,
            correlation_id: body.correlation_id,
            idempotency_key: body.idempotency_key,
        };
        // The problem names no execution: it must be the same whatever the reason.
        let delivered = self.waitpoints()?.deliver(body.execution_id, waitpoint_id, &token, signal).await?;
        let (outcome, signal_id, effect) = match delivered {
            SignalOutcome::Accepted { signal_id, effect } => (DeliveryOutcome::Accepted, signal_id, Some(effect)),
            SignalOutcome::TriggeredResume { signal_id } => {
                (DeliveryOutcome::TriggeredResume, signal_id, Some(SignalEffect::Counted))
            }
            SignalOutcome::Duplicate { signal_id } => (DeliveryOutcome::Duplicate, signal_id, None),
        };
        Ok(SignalDelivered { outcome, signal_id, effect })
    }
}

/// The approvers of a waitpoint: each once, by a name that fits into a token. `field` stands before the name of the field.
pub(super) fn approvers(field: &str, labels: Option<Vec<String>>) -> Result<Vec<String>, Problem> {
    let labels = labels.unwrap_or_default();
    let wrong = |problem: String| Err(Problem::invalid(format!("{field}approvers"), problem));
    if i64::try_from(labels.len()).is_ok_and(|count| count > APPROVERS_MAX) {
        return wrong(format!("must be at most {APPROVERS_MAX}, got {}", labels.len()));
    }
    if labels.iter().any(|label| !(1..=APPROVER_BYTES_MAX).contains(&label.len())) {
        return wrong(format!("must each be 1 to {APPROVER_BYTES_MAX} bytes"));
    }
    if labels.iter().enumerate().any(|(at, label)| labels[..at].contains(label)) {
        return wrong("must not name anyone twice".to_owned());
    }
    Ok(labels)
}

impl Service {
    /// The namespace of an execution under this lease, when its worker is known here: a worker runs work of its own
    /// namespace only.
    pub(super) fn namespace_under(&self, lease: LeaseId) -> Option<String> {
        self.fleet.holder(lease).map(|worker| worker.namespace())
    }
}

impl Handle<ListWaitpoints> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListWaitpoints>) -> Result<Listed<Waitpoint>, Problem> {
        let limit = page::length(ask.query.limit)?;
        let after = ask.query.cursor.as_deref().map(str::parse).transpose()?;
        let namespace = by.namespace(ask.query.namespace)?;
        let page = self.operations.open_waitpoints(namespace.as_deref(), after, limit).await?;
        // Waitpoints beyond the caller's scope leave only their place: a page may be short while more follows.
        let seen = page.items.into_iter().filter(|item| by.covers(&item.namespace, Some(&item.lane)));
        let items = seen.map(Waitpoint::from).collect();
        Ok(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) })
    }
}

impl Handle<GetWaitpoint> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetWaitpoint>) -> Result<Waitpoint, Problem> {
        let found = self.operations.waitpoint(ask.at).await;
        Ok(found.map_err(|error| Problem::from(error).about(ask.at))?.into())
    }
}

impl Handle<ListExecutionWaitpoints> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListExecutionWaitpoints>) -> Result<Listed<Waitpoint>, Problem> {
        let found = self.operations.waitpoints_of(ask.at).await;
        let waitpoints = found.map_err(|error| Problem::from(error).about(ask.at))?;
        Ok(Listed { items: waitpoints.into_iter().map(Waitpoint::from).collect(), next_cursor: None })
    }
}

impl Handle<ReissueToken> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReissueToken>) -> Result<ReissuedToken, Problem> {
        let issued = self.waitpoints()?.reissue(ask.at, ask.body.approver.as_deref(), by.name()).await;
        let issued = issued.map_err(|error| Problem::from(error).about(ask.at))?;
        Ok(ReissuedToken { waitpoint_id: ask.at, approver: issued.approver, token: issued.token })
    }
}
