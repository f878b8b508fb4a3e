//! Submissions that share requests: a few are out at once, and what is submitted meanwhile goes together with the next. Nothing waits
//! while there is a place.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_api::Ask;
use ff_api::executions::{SubmitBody, SubmitExecution, Submitted};
use ff_core::EngineError;
use ff_core::error::TransportKind;
use ff_core::types::ExecutionId;
use serde::Deserialize;
use tokio::sync::oneshot;
use tracing::Instrument;

use ff_api::problem::Facts;

use super::http::{Http, of_item};
use crate::SdkError;
use crate::http::read;

/// Requests that are out at once: while the server works on one, the next is on its way.
const OUT_MAX: usize = 2;
/// The most of one request.
const ITEMS_MAX: usize = 64;
const BYTES_MAX: usize = 448 * 1024;

/// A submission that waits for its answer.
struct Queued {
    body: SubmitBody,
    /// About how many bytes it takes.
    size: usize,
    /// Where it was made: a request of one belongs to it.
    span: tracing::Span,
    answer: oneshot::Sender<Result<(ExecutionId, bool), SdkError>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Queued>,
    out: usize,
}

/// What waits to be submitted.
#[derive(Default)]
pub(super) struct Submissions(Mutex<Queue>);

/// What became of one of many.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Submitted(Submitted),
    Refused { error: Facts },
}

impl Submissions {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next to send; none gives the place back.
    fn next(&self) -> Vec<Queued> {
        let mut queue = self.lock();
        let (mut list, mut bytes) = (Vec::new(), 0);
        while list.len() < ITEMS_MAX
            && let Some(next) = queue.waiting.front()
            && (list.is_empty() || bytes + next.size <= BYTES_MAX)
        {
            let one = queue.waiting.pop_front().expect("it was looked at");
            // Its caller has gone.
            if !one.answer.is_closed() {
                bytes += one.size;
                list.push(one);
            }
        }
        if list.is_empty() {
            queue.out -= 1;
        }
        list
    }
}

/// Frees the sender's place when it ends early, by a panic or with its runtime.
struct Sending {
    submissions: Arc<Submissions>,
    done: bool,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.done {
            self.submissions.lock().out -= 1;
        }
    }
}

impl Http {
    /// Submits an execution, together with what else is submitted.
    pub(super) async fn submit_together(&self, body: SubmitBody, size: usize) -> Result<(ExecutionId, bool), SdkError> {
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut queue = self.submissions.lock();
            queue.waiting.push_back(Queued { body, size, span: tracing::Span::current(), answer });
            let begins = queue.out < OUT_MAX;
            queue.out += usize::from(begins);
            begins
        };
        if begins {
            tokio::spawn(self.clone().send_submissions());
        }
        answered.await.unwrap_or_else(|_| {
            let detail = "the submission was not sent".to_owned();
            Err(EngineError::Transport { kind: TransportKind::Unavailable, detail }.into())
        })
    }

    async fn send_submissions(self) {
        let mut sending = Sending { submissions: Arc::clone(&self.submissions), done: false };
        loop {
            let mut list = self.submissions.next();
            match list.len() {
                0 => break,
                1 => {
                    let Queued { body, span, answer, .. } = list.remove(0);
                    let sent = self.ask(&Ask::<SubmitExecution>::with((), body), Duration::ZERO).instrument(span).await;
                    // A caller that has gone needs no answer.
                    let _ = answer.send(sent.map(|one| (one.execution_id, one.duplicate)));
                }
                _ => self.send_many(list).await,
            }
        }
        sending.done = true;
    }

    async fn send_many(&self, list: Vec<Queued>) {
        let mut lines = Vec::new();
        let mut callers = Vec::with_capacity(list.len());
        for Queued { mut body, span, answer, .. } in list {
            // Each continues the trace it was made in.
            if let Some(trace) = span.in_scope(crate::trace::current) {
                body.trace_parent.get_or_insert(trace);
            }
            serde_json::to_writer(&mut lines, &body).expect("a body is JSON");
            lines.push(b'\n');
            callers.push(answer);
        }
        let sent = self.client.submit_lines(lines).await.map_err(SdkError::from);
        let answers = sent.and_then(|body| {
            let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let answers: Vec<Line> = lines.map(|line| read("a batch", line)).collect::<Result<_, _>>()?;
            if answers.len() == callers.len() {
                return Ok(answers);
            }
            let detail = format!("a batch was answered with {} lines for {}", answers.len(), callers.len());
            Err(EngineError::Transport { kind: TransportKind::Defect, detail }.into())
        });
        match answers {
            Ok(answers) => {
                for (caller, line) in callers.into_iter().zip(answers) {
                    let _ = caller.send(match line {
                        Line::Submitted(one) => Ok((one.execution_id, one.duplicate)),
                        Line::Refused { error } => Err(of_item(error)),
                    });
                }
            }
            Err(error) => {
                for caller in callers {
                    let _ = caller.send(Err(error.again()));
                }
            }
        }
    }
}
