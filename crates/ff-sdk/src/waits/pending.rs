//! Waitpoints a task opens while it still runs, and the tokens it remembers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ff_core::types::{WaitpointId, WaitpointToken};
use ff_engine::{IssuedToken, OpenedWaitpoint, WaitpointSpec};
use uuid::Uuid;

use crate::error::worth_repeating;
use crate::task::TaskCore;
use crate::{ClaimedTask, SdkError};

/// The waitpoints a task asked for. Whatever it asked for is noted before it is asked, so that a waitpoint whose answer was
/// lost is known when the task suspends: asked for again, it answers the same tokens.
#[derive(Default)]
pub(crate) struct Pending(Mutex<Vec<Asked>>);

#[derive(Clone)]
struct Asked {
    request_id: Uuid,
    spec: WaitpointSpec,
    opened: Option<OpenedWaitpoint>,
}

impl Pending {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, request_id: Uuid, opened: Option<&OpenedWaitpoint>) {
        let mut asked = self.asked();
        match opened {
            Some(opened) => {
                if let Some(entry) = asked.iter_mut().find(|entry| entry.request_id == request_id) {
                    entry.opened = Some(opened.clone());
                }
            }
            None => asked.retain(|entry| entry.request_id != request_id),
        }
    }

    /// The tokens this task has for a waitpoint.
    pub(super) fn tokens(&self, waitpoint_id: WaitpointId) -> Option<Vec<IssuedToken>> {
        let asked = self.asked();
        let mut opened = asked.iter().filter_map(|entry| entry.opened.as_ref());
        opened.find(|opened| opened.waitpoint_id == waitpoint_id).map(|opened| opened.tokens.clone())
    }

    /// Nothing is pending any more.
    pub(super) fn clear(&self) {
        self.asked().clear();
    }

    fn unanswered(&self) -> Vec<Asked> {
        self.asked().iter().filter(|entry| entry.opened.is_none()).cloned().collect()
    }
}

impl TaskCore {
    pub(crate) async fn create_waitpoint(&self, spec: WaitpointSpec) -> Result<OpenedWaitpoint, SdkError> {
        let request_id = Uuid::now_v7();
        self.pending.asked().push(Asked { request_id, spec: spec.clone(), opened: None });
        self.ask_for_waitpoint(request_id, &spec).await
    }

    async fn ask_for_waitpoint(&self, request_id: Uuid, spec: &WaitpointSpec) -> Result<OpenedWaitpoint, SdkError> {
        let reach = self.backend.reach();
        let answer = self.repeat(|| reach.create_waitpoint(self.lease.at, spec, request_id)).await;
        match &answer {
            Ok(opened) => self.pending.settle(request_id, Some(opened)),
            // It may have been opened.
            Err(error) if worth_repeating(error) => {}
            Err(_) => self.pending.settle(request_id, None),
        }
        answer
    }

    /// Learns the tokens of waitpoints whose answer was lost.
    pub(super) async fn settle_pending(&self) -> Result<(), SdkError> {
        for asked in self.pending.unanswered() {
            match self.ask_for_waitpoint(asked.request_id, &asked.spec).await {
                Err(error) if worth_repeating(&error) => return Err(error),
                // One that is refused is not there; the suspend hears by itself when the lease is over.
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) async fn create_pending_waitpoint(
        &self,
        key: &str,
        expires_in_ms: u64,
    ) -> Result<(WaitpointId, WaitpointToken), SdkError> {
        let expires_in_ms = Some(i64::try_from(expires_in_ms).unwrap_or(i64::MAX));
        let spec = WaitpointSpec { key: key.to_owned(), expires_in_ms, ..WaitpointSpec::default() };
        let opened = self.create_waitpoint(spec).await?;
        let id = opened.waitpoint_id;
        let token = opened
            .tokens
            .into_iter()
            .next()
            .ok_or_else(|| super::suspend::unexpected("a waitpoint without a token"))?;
        Ok((id, token.token))
    }
}

impl ClaimedTask {
    /// Opens a waitpoint while the task still runs, so that its token can be handed out before the task suspends. Signals
    /// that arrive before then are kept and count.
    ///
    /// The waitpoint takes signals for `expires_in_ms`. [`ClaimedTask::suspend`] waits at it; the end of the attempt closes
    /// it.
    pub async fn create_pending_waitpoint(
        &self,
        key: &str,
        expires_in_ms: u64,
    ) -> Result<(WaitpointId, WaitpointToken), SdkError> {
        self.core().create_pending_waitpoint(key, expires_in_ms).await
    }

    /// Like [`ClaimedTask::create_pending_waitpoint`], with approvers, signal names, uses, or without an expiry.
    pub async fn create_pending_waitpoint_with(&self, spec: WaitpointSpec) -> Result<OpenedWaitpoint, SdkError> {
        self.core().create_waitpoint(spec).await
    }
}
