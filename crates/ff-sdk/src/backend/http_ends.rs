//! Completions that travel together, with the claim of the worker that made them.

use std::time::Duration;

use ff_api::problem::Facts;
use ff_core::EngineError;
use ff_core::error::TransportKind;
use ff_core::types::ExecutionId;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::http::{Http, TaskShape, fence, of_item, read};
use super::http_waits::shown;
use super::{End, Finished, Identity, Take};
use crate::SdkError;

#[derive(Serialize)]
struct Completed {
    execution_id: ExecutionId,
    op: &'static str,
    fence: Value,
    result: Option<Box<RawValue>>,
    result_encoding: Option<&'static str>,
}

#[derive(Serialize)]
struct Results<'a> {
    results: Vec<Completed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<ClaimAlong<'a>>,
}

#[derive(Serialize)]
struct ClaimAlong<'a> {
    lanes: &'a [String],
    max: u16,
    lease_ttl_ms: u64,
    request_id: Uuid,
    incarnation: Uuid,
}

#[derive(Deserialize)]
struct Answers {
    results: Vec<ItemShape>,
    tasks: Option<Vec<TaskShape>>,
    claim_error: Option<Facts>,
}

/// What became of one: a problem has a code.
#[derive(Deserialize)]
struct ItemShape {
    code: Option<String>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

impl Http {
    /// Ends attempts with their results, and asks for the next tasks when the worker takes some.
    pub(super) async fn finish_together(
        &self,
        who: &Identity,
        ends: &[&End],
        take: Option<&Take>,
    ) -> Result<Finished, SdkError> {
        let path = format!("/v1/workers/{}/results", who.instance);
        let results = ends.iter().map(|end| Completed::of(end)).collect();
        let claim = take.map(|take| ClaimAlong {
            lanes: &take.lanes,
            max: take.max,
            lease_ttl_ms: who.lease_ttl_ms,
            request_id: take.request_id,
            incarnation: who.incarnation,
        });
        let body = serde_json::to_vec(&Results { results, claim }).expect("a body is JSON");
        let (_, answer) = self.send(Method::POST, &path, Some(body), Duration::ZERO).await?;
        let answers: Answers = read(&path, &answer)?;
        if answers.results.len() != ends.len() {
            let detail = format!("{path} answered {} results of {}", answers.results.len(), ends.len());
            return Err(EngineError::Transport { kind: TransportKind::Defect, detail }.into());
        }
        if let Some(problem) = answers.claim_error {
            let error = of_item(problem);
            tracing::debug!(%error, "a claim that went along with results failed");
        }
        let tasks =
            answers.tasks.unwrap_or_default().into_iter().map(|task| task.claim(who)).collect::<Result<_, _>>()?;
        Ok(Finished { ends: answers.results.into_iter().map(ItemShape::outcome).collect(), tasks })
    }
}

impl Completed {
    fn of(end: &End) -> Self {
        // A JSON result keeps its text, whatever its order of keys and its numbers.
        let (result, result_encoding) = end.result.as_deref().map(shown).unzip();
        let lease = end.lease;
        Self { execution_id: lease.execution_id, op: "complete", fence: fence(lease), result, result_encoding }
    }
}

impl ItemShape {
    fn outcome(self) -> Result<(), SdkError> {
        let Some(code) = self.code else { return Ok(()) };
        let mut rest = self.rest;
        rest.insert("code".to_owned(), code.into());
        let problem: Facts = serde_json::from_value(Value::Object(rest)).map_err(|error| {
            let detail = format!("a result's problem cannot be read: {error}");
            SdkError::from(EngineError::Transport { kind: TransportKind::Defect, detail })
        })?;
        Err(of_item(problem))
    }
}
