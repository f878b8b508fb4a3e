//! What an execution waits for, and why it goes on.

use ff_api::waitpoints::{IssuedToken, OpenedWaitpoint, Signal};
use ff_core::types::SuspensionId;
use ff_script::generated::{Resume, ResumeCause};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::child::ChildShape;
use crate::continuation;
use crate::openapi::vocabulary;
use crate::payload::Encoding;

/// A waitpoint that was opened now, with the tokens that are shown this once.
pub fn opened(opened: ff_engine::OpenedWaitpoint) -> OpenedWaitpoint {
    OpenedWaitpoint {
        waitpoint_id: opened.waitpoint_id,
        key: opened.key,
        expires_at: opened.expires_at,
        tokens: opened.tokens.into_iter().map(|one| IssuedToken { approver: one.approver, token: one.token }).collect(),
    }
}

/// Why an attempt goes on, for the worker that continues it.
#[derive(Serialize, ToSchema)]
pub struct ResumeShape {
    suspension_id: SuspensionId,
    #[schema(value_type = ResumeCause)]
    cause: &'static str,
    signals: Vec<Signal>,
    #[schema(value_type = vocabulary::Payload, required = false)]
    continuation: Option<Box<RawValue>>,
    #[schema(value_type = Option<Encoding>)]
    continuation_encoding: Option<&'static str>,
    /// What became of the children it waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<ChildShape>>,
    /// Their results are too much for one answer: the others are read with `GET /v1/executions/{id}/children`.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_children: Option<bool>,
    /// The wait that ended, by the name it was suspended under.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<vocabulary::StepName>)]
    step: Option<String>,
}

impl From<Resume> for ResumeShape {
    fn from(resume: Resume) -> Self {
        let encoding = resume.continuation_encoding.as_deref();
        let (continuation, continuation_encoding) =
            resume.continuation.map(|kept| continuation::shown(&kept.0, encoding)).unzip();
        Self {
            suspension_id: resume.suspension_id,
            cause: resume.cause.as_str(),
            signals: resume.signals.into_iter().map(Signal::from).collect(),
            continuation,
            continuation_encoding,
            children: resume.children.map(|all| all.into_iter().map(ChildShape::from).collect()),
            more_children: resume.more_children.filter(|more| *more),
            step: resume.step,
        }
    }
}
