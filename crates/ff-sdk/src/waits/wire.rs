//! The end of a wait as the API has it.

use super::Resume;
use crate::SdkError;
use crate::backend::bytes;

impl TryFrom<ff_api::claims::Resume> for Resume {
    type Error = SdkError;

    fn try_from(resume: ff_api::claims::Resume) -> Result<Self, SdkError> {
        Ok(Self {
            suspension_id: resume.suspension_id,
            cause: resume.cause.into(),
            continuation: bytes("continuation", resume.continuation.as_deref(), resume.continuation_encoding)?,
            signals: resume.signals.into_iter().map(Into::into).collect(),
            more: false,
            children: resume.children.unwrap_or_default(),
            more_children: resume.more_children == Some(true),
            step: resume.step,
            actor: resume.actor,
        })
    }
}
