//! Completions that travel together: at most one request of them is out, and what ends meanwhile goes with the next. Nothing waits
//! while nothing is out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::EngineError;
use ff_core::error::TransportKind;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tracing::Instrument;

use super::LeaseRef;
use super::http::{Http, Problem, fence, of_problem, read};
use super::http_waits::shown;
use crate::SdkError;

/// The most of one request.
const ITEMS_MAX: usize = 64;
const BYTES_MAX: usize = 448 * 1024;
/// A larger result travels alone.
const ALONE: usize = 64 * 1024;

struct End {
    body: Box<RawValue>,
    /// Where it was ended: a request of one belongs to it.
    span: tracing::Span,
    answer: oneshot::Sender<Result<(), SdkError>>,
}

#[derive(Default)]
struct Waiting {
    /// Whose results they are; nobody's before it registered.
    instance: Option<String>,
    ends: VecDeque<End>,
    is_out: bool,
}

/// What waits to be sent.
#[derive(Default)]
pub(super) struct Ends(Mutex<Waiting>);

#[derive(Serialize)]
struct Completed {
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<ff_core::types::ExecutionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<&'static str>,
    fence: Value,
    result: Option<Box<RawValue>>,
    result_encoding: Option<&'static str>,
}

#[derive(Serialize)]
struct Results<'a> {
    results: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Answers {
    results: Vec<ItemShape>,
}

/// What became of one: a problem has a code.
#[derive(Deserialize)]
struct ItemShape {
    code: Option<String>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

impl Ends {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker that ends things from now on.
    pub(super) fn belong_to(&self, instance: &str) {
        self.lock().instance = Some(instance.to_owned());
    }

    /// The next to send and the worker's instance; `None` when nothing waits, which ends the sending.
    fn next(&self) -> Option<(String, Vec<End>)> {
        let mut waiting = self.lock();
        let (mut list, mut bytes) = (Vec::new(), 0);
        while list.len() < ITEMS_MAX
            && let Some(end) = waiting.ends.front()
        {
            let size = end.body.get().len();
            if !list.is_empty() && bytes + size > BYTES_MAX {
                break;
            }
            let end = waiting.ends.pop_front().expect("it was looked at");
            // Its caller has gone.
            if end.answer.is_closed() {
                continue;
            }
            bytes += size;
            list.push(end);
        }
        if list.is_empty() {
            waiting.is_out = false;
            return None;
        }
        Some((waiting.instance.clone().unwrap_or_default(), list))
    }
}

impl Http {
    /// Ends the attempt with a result, together with what else ends.
    pub(super) async fn complete_together(&self, lease: LeaseRef, result: Option<&[u8]>) -> Result<(), SdkError> {
        // A JSON result keeps its text, whatever its order of keys and its numbers.
        let (result, result_encoding) = result.map(shown).unzip();
        let mut body = Completed { execution_id: None, op: None, fence: fence(lease), result, result_encoding };
        let large = body.result.as_ref().is_some_and(|result| result.get().len() > ALONE);
        if large || self.ends.lock().instance.is_none() {
            let path = format!("/v1/tasks/{}/complete", lease.execution_id);
            return self.post_as::<Value>(&path, &body).await.map(|_| ());
        }
        body.execution_id = Some(lease.execution_id);
        body.op = Some("complete");
        let body = serde_json::value::to_raw_value(&body).expect("a body is JSON");
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut waiting = self.ends.lock();
            waiting.ends.push_back(End { body, span: tracing::Span::current(), answer });
            !std::mem::replace(&mut waiting.is_out, true)
        };
        if begins {
            tokio::spawn(self.clone().send_ends());
        }
        let gone = || {
            SdkError::from(EngineError::Transport {
                kind: TransportKind::Unavailable,
                detail: "the results were not sent".to_owned(),
            })
        };
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn send_ends(self) {
        let mut sending = Sending { ends: &self.ends, done: false };
        while let Some((instance, list)) = self.ends.next() {
            let path = format!("/v1/workers/{instance}/results");
            let body = Results { results: list.iter().map(|end| &*end.body).collect() };
            let body = serde_json::to_vec(&body).expect("a body is JSON");
            let span = if let [end] = &list[..] { end.span.clone() } else { tracing::Span::none() };
            let sent = self.send(Method::POST, &path, Some(body), Duration::ZERO).instrument(span).await;
            let answers = sent.and_then(|(_, body)| read::<Answers>(&path, &body));
            match answers {
                Ok(Answers { results }) if results.len() == list.len() => {
                    for (end, item) in list.into_iter().zip(results) {
                        // A caller that has gone needs no answer.
                        let _ = end.answer.send(item.outcome());
                    }
                }
                Ok(Answers { results }) => {
                    for end in list {
                        let detail = format!("{path} answered {} results", results.len());
                        let _ =
                            end.answer.send(Err(EngineError::Transport { kind: TransportKind::Defect, detail }.into()));
                    }
                }
                Err(error) => {
                    for end in list {
                        let _ = end.answer.send(Err(again(&error)));
                    }
                }
            }
        }
        sending.done = true;
    }
}

/// Lets the next completion send again when this sender ends early, by a panic or with its runtime.
struct Sending<'a> {
    ends: &'a Ends,
    done: bool,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.ends.lock().is_out = false;
        }
    }
}

impl ItemShape {
    fn outcome(self) -> Result<(), SdkError> {
        let Some(code) = self.code else { return Ok(()) };
        let mut rest = self.rest;
        rest.insert("code".to_owned(), code.into());
        let problem: Problem = serde_json::from_value(Value::Object(rest)).map_err(|error| {
            let detail = format!("a result's problem cannot be read: {error}");
            SdkError::from(EngineError::Transport { kind: TransportKind::Defect, detail })
        })?;
        Err(of_problem(409, problem))
    }
}

/// The same error for another one it befell.
fn again(error: &SdkError) -> SdkError {
    match error {
        SdkError::Http { status, code, detail, retryable } => {
            SdkError::Http { status: *status, code: code.clone(), detail: detail.clone(), retryable: *retryable }
        }
        SdkError::Engine(error) => SdkError::Engine(error.clone()),
        SdkError::Transport { context, source } => {
            SdkError::Transport { context: context.clone(), source: source.to_string().into() }
        }
        other => EngineError::Transport { kind: TransportKind::Unavailable, detail: other.to_string() }.into(),
    }
}
