//! Executions, whichever way the engine is reached.

use std::time::Duration;

use ff_api::executions::{
    self, CancelExecution, ExecutionFilter, GetExecution, GetResult, ListChildren, ListExecutions, ListQuery,
    ReplayExecution, ResultAnswer, ResultQuery, RevokeBody, RevokeLease,
};
use ff_api::steps::{ListSteps, ReplayBody, ReplayFrom, Step};
use ff_api::{Ask, PageQuery};
use ff_core::types::ExecutionId;
use ff_engine::ListCursor;

use super::Reach;
use super::reach::WAIT_MAX;
use crate::SdkError;
use crate::snapshot::{ChildSnapshot, ExecutionPage, ExecutionResult, ExecutionSnapshot};

/// How many children or steps one request reads.
const CHILDREN: i64 = 1_000;

impl Reach {
    /// Everything about one execution.
    pub(crate) async fn describe(&self, id: ExecutionId) -> Result<ExecutionSnapshot, SdkError> {
        self.ask(Ask::<GetExecution>::at(id)).await
    }

    /// One page of executions, newest first.
    pub(crate) async fn list(
        &self,
        filter: &ExecutionFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<ExecutionPage, SdkError> {
        let query = ListQuery {
            limit: Some(i64::try_from(limit).unwrap_or(i64::MAX)),
            cursor: after.map(|cursor| cursor.to_string()),
            ..ListQuery::from(filter.clone())
        };
        let page = self.ask(Ask::<ListExecutions>::by((), query)).await?;
        Ok(ExecutionPage { items: page.items, next: page.next_cursor.map(|cursor| cursor.parse()).transpose()? })
    }

    /// The outcome, or nothing when it is not there after `wait`.
    pub(crate) async fn result(&self, id: ExecutionId, wait: Duration) -> Result<Option<ExecutionResult>, SdkError> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            let wait = until.saturating_duration_since(tokio::time::Instant::now()).min(WAIT_MAX);
            let query = ResultQuery { wait_ms: i64::try_from(wait.as_millis()).ok() };
            let answer = self.ask_within(Ask::<GetResult>::by(id, query), wait).await?;
            match answer {
                ResultAnswer::Ended(result) => return Ok(Some(result)),
                ResultAnswer::Pending(_) if tokio::time::Instant::now() >= until => return Ok(None),
                ResultAnswer::Pending(_) => {}
            }
        }
    }

    /// Cancels an execution, at once or within a grace.
    pub(crate) async fn cancel(&self, id: ExecutionId, reason: &str, grace_ms: Option<u64>) -> Result<(), SdkError> {
        let grace_ms = grace_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        let body = executions::CancelBody { reason: Some(reason.to_owned()), grace_ms };
        self.ask(Ask::<CancelExecution>::with(id, body)).await.map(|_| ())
    }

    /// Runs an ended execution again.
    pub(crate) async fn replay(&self, id: ExecutionId, from: Option<ReplayFrom>) -> Result<(), SdkError> {
        let body = ReplayBody { reason: None, from };
        self.ask(Ask::<ReplayExecution>::with(id, body)).await.map(|_| ())
    }

    /// Every step of an execution, in the order in which they were first recorded.
    pub(crate) async fn steps(&self, id: ExecutionId) -> Result<Vec<Step>, SdkError> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let query = PageQuery { limit: Some(CHILDREN), cursor };
            let page = self.ask(Ask::<ListSteps>::by(id, query)).await?;
            all.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// Takes a lease away, at once or by asking the worker to yield.
    pub(crate) async fn revoke(&self, id: ExecutionId, grace: bool) -> Result<(), SdkError> {
        let body = RevokeBody { reason: None, grace: Some(grace) };
        self.ask(Ask::<RevokeLease>::with(id, body)).await.map(|_| ())
    }

    /// Every child of an execution, in the order they were spawned.
    pub(crate) async fn children(&self, parent: ExecutionId) -> Result<Vec<ChildSnapshot>, SdkError> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let query = PageQuery { limit: Some(CHILDREN), cursor };
            let page = self.ask(Ask::<ListChildren>::by(parent, query)).await?;
            all.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }
}
