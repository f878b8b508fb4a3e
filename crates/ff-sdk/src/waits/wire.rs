//! The end of a wait as the API has it.

use super::Resume;
use crate::SdkError;

impl TryFrom<ff_api::claims::Resume> for Resume {
    type Error = SdkError;

    fn try_from(resume: ff_api::claims::Resume) -> Result<Self, SdkError> {
        Ok(Self {
            suspension_id: resume.suspension_id,
            cause: resume.cause.into(),
            continuation: resume.continuation,
            signals: resume.signals.into_iter().map(Into::into).collect(),
            children: resume.children.unwrap_or_default(),
            more_children: resume.more_children == Some(true),
            step: resume.step,
            actor: resume.actor,
        })
    }
}
