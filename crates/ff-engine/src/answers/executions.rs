//! Executions: found, read, and steered one by one.

use std::time::Duration;

use ff_api::executions::{
    ActionOutcome, Attempt, CancelExecution, ChangeBody, ChangeExecution, Child, DeleteExecution, Execution,
    ExecutionChanged, ExecutionDone, ExecutionFilter, ExecutionSummary, GetAttempt, GetExecution, GetHistory,
    GetResult, History, HoldExecution, ListChildren, ListExecutions, ReleaseExecution, ReplayExecution, ResultAnswer,
    RevokeLease,
};
use ff_api::operation::Nothing;
use ff_api::steps::{ReplayFrom, check_name};
use ff_api::suspensions::Suspension;
use ff_api::{Ask, Listed, Problem, page};
use ff_core::limits::{REASON_BYTES_MAX, TIME_MS_MAX};
use ff_core::types::TimestampMs;
use ff_script::generated::{
    self, CancelExecutionReply, ChangeExecutionReply, HoldExecutionReply, ReleaseExecutionReply, ReplayExecutionReply,
    RevokeLeaseReply,
};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{bounded, wait_of};
use crate::operations::ListCursor;
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// The most older attempts that a history shows.
const ATTEMPTS_MAX: u32 = 1_000;
const AT_ONCE: usize = 16;

/// The filter within what the caller may see.
pub(super) fn seen_by(by: &Principal, filter: ExecutionFilter) -> Result<ExecutionFilter, Problem> {
    filter.check()?;
    let (namespace, lane) = (by.namespace(filter.namespace.clone())?, by.lane(filter.lane.clone())?);
    Ok(ExecutionFilter { namespace, lane, ..filter })
}

/// Where a page begins; an empty cursor is none.
pub(super) fn place_of(cursor: Option<&str>) -> Result<Option<ListCursor>, Problem> {
    Ok(cursor.filter(|cursor| !cursor.is_empty()).map(str::parse).transpose()?)
}

impl Handle<ListExecutions> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListExecutions>) -> Result<Listed<ExecutionSummary>, Problem> {
        let limit = page::length(ask.query.limit)?;
        let after = place_of(ask.query.cursor.as_deref())?;
        let page = self.operations.list(&seen_by(by, ask.query.filter())?, after, limit).await?;
        Ok(Listed { items: page.items, next_cursor: page.next.map(|cursor| cursor.to_string()) })
    }
}

impl Handle<GetExecution> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetExecution>) -> Result<Execution, Problem> {
        let about = |error| Problem::from(error).about(ask.at);
        let mut execution = Execution::from(self.operations.describe(ask.at).await.map_err(about)?);
        if execution.completion_webhook.is_some() {
            execution.webhook = self.operations.webhook_of(ask.at).await.map_err(about)?;
        }
        Ok(execution)
    }
}

impl Handle<GetResult> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetResult>) -> Result<ResultAnswer, Problem> {
        let wait = wait_of("wait_ms", ask.query.wait_ms)?;
        let waiting = self.engine.waiting();
        let reply = tokio::select! {
            reply = waiting.result(ask.at, wait) => reply,
            () = self.stop.cancelled(), if !wait.is_zero() => waiting.result(ask.at, Duration::ZERO).await,
        };
        Ok(ResultAnswer::new(ask.at, reply.map_err(|error| Problem::from(error).about(ask.at))?))
    }
}

impl Handle<GetHistory> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetHistory>) -> Result<History, Problem> {
        let (id, operations) = (ask.at, &self.operations);
        let execution = operations.describe(id).await.map_err(|error| Problem::from(error).about(id))?;
        let older = u32::try_from(execution.attempts_spilled).unwrap_or(u32::MAX);
        let mut attempts: Vec<Attempt> = stream::iter(older.saturating_sub(ATTEMPTS_MAX)..older)
            .map(|index| async move { operations.attempt(id, index).await.map(Attempt::from) })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        attempts.extend(execution.attempts.into_iter().map(Attempt::from));
        Ok(History {
            execution_id: id,
            attempts,
            suspension: execution.suspension.map(Suspension::from),
            past_suspensions: execution.past_suspensions,
            operator_actions: execution.operator_actions,
        })
    }
}

impl Handle<GetAttempt> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetAttempt>) -> Result<Attempt, Problem> {
        let (id, index) = ask.at;
        let attempt = self.operations.attempt(id, index).await;
        Ok(attempt.map_err(|error| Problem::from(error).about(id))?.into())
    }
}

impl Handle<ListChildren> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListChildren>) -> Result<Listed<Child>, Problem> {
        let limit = i64::try_from(page::length(ask.query.limit)?).unwrap_or(i64::MAX);
        let from = match ask.query.cursor.as_deref() {
            None => None,
            Some(cursor) => match cursor.parse::<i64>() {
                Ok(number) if (0..=TIME_MS_MAX).contains(&number) => Some(number).filter(|number| *number > 0),
                _ => return Err(Problem::invalid("cursor", "is not a cursor of this list")),
            },
        };
        let page = self.operations.children(ask.at, from, limit).await;
        let (children, next) = page.map_err(|error| Problem::from(error).about(ask.at))?;
        let items = children.into_iter().map(Child::from).collect();
        Ok(Listed { items, next_cursor: next.map(|number| number.to_string()) })
    }
}

impl Handle<CancelExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CancelExecution>) -> Result<ExecutionDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let reply = self.operations.cancel(id, by.name(), body.reason.as_deref(), body.grace_ms).await;
        Ok(match reply.map_err(|error| Problem::from(error).about(id))? {
            CancelExecutionReply::Cancelled => ExecutionDone::new(id, ActionOutcome::Cancelled),
            CancelExecutionReply::Requested { cancel_by } => ExecutionDone {
                cancel_by: Some(TimestampMs(cancel_by)),
                ..ExecutionDone::new(id, ActionOutcome::Requested)
            },
            CancelExecutionReply::Already { outcome } => {
                ExecutionDone { terminal_outcome: Some(outcome), ..ExecutionDone::new(id, ActionOutcome::Already) }
            }
        })
    }
}

impl Handle<ReplayExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReplayExecution>) -> Result<ExecutionDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        if let Some(ReplayFrom::Step(name)) = &body.from {
            check_name("from.step", name)?;
        }
        let reply = self.operations.replay_from(id, by.name(), body.reason.as_deref(), body.from).await;
        let ReplayExecutionReply::Replayed { replay_count, state } =
            reply.map_err(|error| Problem::from(error).about(id))?;
        let done = ExecutionDone::new(id, ActionOutcome::Replayed).in_state(state);
        Ok(ExecutionDone { replay_count: Some(replay_count), ..done })
    }
}

impl Handle<HoldExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<HoldExecution>) -> Result<ExecutionDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let reply = self.operations.hold(id, by.name(), body.reason.as_deref()).await;
        Ok(match reply.map_err(|error| Problem::from(error).about(id))? {
            HoldExecutionReply::Held => ExecutionDone::new(id, ActionOutcome::Held),
            HoldExecutionReply::Already => ExecutionDone::new(id, ActionOutcome::Already),
        })
    }
}

impl Handle<ReleaseExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReleaseExecution>) -> Result<ExecutionDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let reply = self.operations.release(id, by.name(), body.reason.as_deref()).await;
        Ok(match reply.map_err(|error| Problem::from(error).about(id))? {
            ReleaseExecutionReply::Released { state } => {
                ExecutionDone::new(id, ActionOutcome::Released).in_state(state)
            }
            ReleaseExecutionReply::Already { state } => ExecutionDone::new(id, ActionOutcome::Already).in_state(state),
        })
    }
}

impl Handle<RevokeLease> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<RevokeLease>) -> Result<ExecutionDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let grace = body.grace.unwrap_or(false);
        let reply = self.operations.revoke(id, by.name(), body.reason.as_deref(), grace).await;
        Ok(match reply.map_err(|error| Problem::from(error).about(id))? {
            RevokeLeaseReply::Revoked { state } => ExecutionDone::new(id, ActionOutcome::Revoked).in_state(state),
            RevokeLeaseReply::Requested => ExecutionDone::new(id, ActionOutcome::Requested),
        })
    }
}

impl Handle<ChangeExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ChangeExecution>) -> Result<ExecutionChanged, Problem> {
        let Ask { at: id, body, .. } = ask;
        let ChangeBody { priority, lane, tags, deadline_at, delay_until } = body;
        if priority.is_none() && lane.is_none() && tags.is_none() && deadline_at.is_none() && delay_until.is_none() {
            return Err(Problem::invalid(
                "body",
                "must name at least one of priority, lane, tags, deadline_at, delay_until",
            ));
        }
        let about = |error| Problem::from(error).about(id);
        if let Some(lane) = &lane
            && by.is_scoped()
        {
            by.check(&self.operations.describe(id).await.map_err(about)?.namespace, Some(lane))?;
        }
        let change = generated::ChangeExecution {
            actor: by.name().to_owned(),
            deadline_at,
            delay_until,
            execution_id: id,
            lane,
            priority,
            tags,
        };
        let ChangeExecutionReply::Changed { state } = self.operations.change(change).await.map_err(about)?;
        Ok(ExecutionChanged { execution_id: id, state })
    }
}

impl Handle<DeleteExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<DeleteExecution>) -> Result<Nothing, Problem> {
        let deleted = self.operations.delete(ask.at, by.name()).await;
        deleted.map_err(|error| Problem::from(error).about(ask.at))?;
        Ok(Nothing {})
    }
}
