//! Completions that travel together, with the claim of the worker that made them.

use std::time::Duration;

use ff_api::claims::ClaimBody;
use ff_api::results::{ResultAnswer, ResultBody, ResultOp, ResultsBody, ResultsOrList, SendResults};
use ff_api::{Ask, Payload};
use ff_core::EngineError;
use ff_core::error::TransportKind;
use serde_json::value::{RawValue, to_raw_value};

use super::http::{Http, of_item};
use super::{Claim, End, Finished, Identity, Take, ttl};
use crate::SdkError;

impl Http {
    /// Ends attempts with their results, and asks for the next tasks when the worker takes some.
    pub(super) async fn finish_together(
        &self,
        who: &Identity,
        ends: &[&End],
        take: Option<&Take>,
    ) -> Result<Finished, SdkError> {
        let results: Vec<Box<RawValue>> = ends.iter().map(|end| completed(end)).collect();
        let claim = take.map(|take| ClaimBody {
            lanes: Some(take.lanes.clone()),
            kinds: None,
            max: Some(take.max),
            wait_ms: None,
            lease_ttl_ms: Some(ttl(who)),
            request_id: Some(take.request_id),
            incarnation: Some(who.incarnation),
        });
        let body = ResultsBody { results: results.into(), claim, incarnation: None, request_id: None };
        let answers = self
            .ask(&Ask::<SendResults>::with(who.instance.clone(), ResultsOrList::With(body)), Duration::ZERO)
            .await?;
        if answers.results.len() != ends.len() {
            let detail = format!("{} results of {} were answered", answers.results.len(), ends.len());
            return Err(EngineError::Transport { kind: TransportKind::Defect, detail }.into());
        }
        if let Some(problem) = answers.claim_error {
            let error = of_item(problem);
            tracing::debug!(%error, "a claim that went along with results failed");
        }
        let tasks = answers.tasks.unwrap_or_default().into_iter().map(Claim::try_from).collect::<Result<_, _>>()?;
        Ok(Finished { ends: answers.results.into_iter().map(outcome).collect(), tasks })
    }
}

fn completed(end: &End) -> Box<RawValue> {
    // A JSON result keeps its text, whatever its order of keys and its numbers.
    let (result, result_encoding) = end.result.clone().map(|bytes| Payload::of(bytes).written()).unzip();
    let body = ResultBody {
        execution_id: end.lease.execution_id,
        fence: end.lease.fence(),
        op: ResultOp::Complete,
        result,
        result_encoding,
        reason: None,
        category: None,
        retryable: None,
        retry_after_ms: None,
    };
    to_raw_value(&body).expect("a body is JSON")
}

fn outcome(answer: ResultAnswer) -> Result<(), SdkError> {
    match answer {
        ResultAnswer::Done(_) => Ok(()),
        ResultAnswer::Refused(refused) => Err(of_item(refused.problem)),
    }
}
