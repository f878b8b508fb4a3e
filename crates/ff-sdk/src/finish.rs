//! Completions on their way to the engine: what ends while requests are out goes with the next, and the worker's next tasks come back
//! with it. Nothing waits while nothing is out.
//!
//! When many end together, they travel in two requests, half in each: the store works on one while the worker runs what the other
//! brought. A few travel in one, because a second request would cost more than it saves.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ff_core::EngineError;
use ff_core::error::TransportKind;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

use crate::backend::{End, Finished, Take};
use crate::error::worth_repeating;
use crate::lease::Lease;
use crate::worker::{Shared, WorkerState};
use crate::{ClaimedTask, SdkError};

/// The most of one request.
const ENDS_MAX: usize = 64;
/// Requests that may be out at once.
const OUT_MAX: usize = 2;
/// A second request goes out when this many wait.
const SECOND_MIN: usize = 8;
const BYTES_MAX: usize = 448 * 1024;
/// A larger result travels alone.
const ALONE: usize = 64 * 1024;
const REPEAT_FIRST: Duration = Duration::from_millis(50);
const REPEAT_MAX: Duration = Duration::from_secs(2);

/// A completion that waits for its answer. Its permit goes to the next task, or back to it when it has to be repeated.
struct Ending {
    end: End,
    lease: Arc<Lease>,
    permit: OwnedSemaphorePermit,
    span: tracing::Span,
    answer: oneshot::Sender<(Result<(), SdkError>, Option<OwnedSemaphorePermit>)>,
}

#[derive(Default)]
struct Waiting {
    endings: VecDeque<Ending>,
    /// Requests that are out.
    out: usize,
    /// Where the next tasks go; without it none are taken.
    taker: Option<mpsc::UnboundedSender<ClaimedTask>>,
}

impl Waiting {
    /// True when one more request is to go out; it counts as out from now on.
    fn begins(&mut self) -> bool {
        let least = if self.out == 0 { 1 } else { SECOND_MIN };
        let begins = self.out < OUT_MAX && self.endings.len() >= least;
        self.out += usize::from(begins);
        begins
    }
}

/// What a worker has finished.
#[derive(Default)]
pub(crate) struct Finisher(Mutex<Waiting>);

impl Finisher {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a completion brings the worker's next tasks along.
    pub(crate) fn take_along(&self) -> mpsc::UnboundedReceiver<ClaimedTask> {
        let (taker, taken) = mpsc::unbounded_channel();
        self.lock().taker = Some(taker);
        taken
    }

    /// Nothing new is taken any more.
    pub(crate) fn take_nothing(&self) {
        self.lock().taker = None;
    }

    /// The next completions to send; none ends the sending. The flag says that a second request is to go out as well.
    fn next(&self) -> (Vec<Ending>, bool) {
        let mut waiting = self.lock();
        let half = waiting.endings.len().div_ceil(2);
        let most = if waiting.out < OUT_MAX && half >= SECOND_MIN { half.min(ENDS_MAX) } else { ENDS_MAX };
        let (mut list, mut bytes) = (Vec::new(), 0);
        while list.len() < most
            && let Some(ending) = waiting.endings.front()
        {
            let size = ending.end.size();
            if !list.is_empty() && (size > ALONE || bytes + size > BYTES_MAX) {
                break;
            }
            let ending = waiting.endings.pop_front().expect("it was looked at");
            // Its caller has gone.
            if ending.answer.is_closed() {
                continue;
            }
            bytes += size;
            list.push(ending);
            if size > ALONE {
                break;
            }
        }
        if list.is_empty() {
            waiting.out -= 1;
        }
        let more = waiting.begins();
        (list, more)
    }
}

/// Completes a task, together with what else ends. A permit that comes back belongs to a completion that may be repeated.
pub(crate) async fn complete(
    worker: &Arc<Shared>,
    end: End,
    lease: Arc<Lease>,
    permit: OwnedSemaphorePermit,
) -> (Result<(), SdkError>, Option<OwnedSemaphorePermit>) {
    let (answer, answered) = oneshot::channel();
    let begins = {
        let mut waiting = worker.finisher.lock();
        waiting.endings.push_back(Ending { end, lease, permit, span: tracing::Span::current(), answer });
        waiting.begins()
    };
    if begins {
        Sending::spawn(worker);
    }
    answered.await.unwrap_or_else(|_| {
        let detail = "the results were not sent".to_owned();
        (Err(EngineError::Transport { kind: TransportKind::Unavailable, detail }.into()), None)
    })
}

/// The one who sends. If it goes down, the next completion sends again.
struct Sending {
    worker: Weak<Shared>,
    done: bool,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.done
            && let Some(worker) = self.worker.upgrade()
        {
            worker.finisher.lock().out -= 1;
        }
    }
}

impl Sending {
    fn spawn(worker: &Arc<Shared>) {
        tokio::spawn(Self { worker: Arc::downgrade(worker), done: false }.run(Arc::clone(worker)));
    }

    async fn run(mut self, worker: Arc<Shared>) {
        loop {
            let (list, more) = worker.finisher.next();
            if more {
                Self::spawn(&worker);
            }
            if list.is_empty() {
                self.done = true;
                return;
            }
            send(&worker, list).await;
        }
    }
}

/// Sends one list until it is answered, or none of its leases can be trusted any more.
async fn send(worker: &Arc<Shared>, list: Vec<Ending>) {
    let taker = worker.finisher.lock().taker.clone().filter(|_| worker.state() == WorkerState::Serving);
    let mut permits: Vec<OwnedSemaphorePermit> = Vec::new();
    if taker.is_some() {
        while list.len() + permits.len() < ENDS_MAX
            && let Some(permit) = worker.permit()
        {
            permits.push(permit);
        }
    }
    let who = worker.who();
    let take = taker.is_some().then(|| Take {
        lanes: who.lanes.clone(),
        max: u16::try_from(list.len() + permits.len()).unwrap_or(u16::MAX),
        request_id: Uuid::now_v7(),
    });
    let ends: Vec<&End> = list.iter().map(|ending| &ending.end).collect();
    // A request of one belongs to what it ends.
    let span = if let [ending] = &list[..] { ending.span.clone() } else { tracing::Span::none() };
    let mut pause = REPEAT_FIRST;
    // A repeat brings leases that may have begun with the first try.
    let sent = Instant::now();
    let finished = loop {
        match worker.backend.reach().finish(&who, &ends, take.as_ref()).instrument(span.clone()).await {
            // The answer may be lost and tasks taken: the same request asks for the same ones.
            Err(error) if worth_repeating(&error) && list.iter().any(|ending| ending.lease.is_trusted()) => {
                tracing::debug!(%error, ends = list.len(), "results were lost on the way and are sent again");
                tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..=1.0))).await;
                pause = (pause * 2).min(REPEAT_MAX);
            }
            answer => break answer,
        }
    };
    let Finished { ends, tasks } = finished.unwrap_or_else(|error| Finished {
        ends: list.iter().map(|_| Err(error.again())).collect(),
        tasks: Vec::new(),
    });
    let mut answers = Vec::with_capacity(list.len());
    for (ending, answer) in list.into_iter().zip(ends) {
        let permit = match &answer {
            // It may be repeated, and holds its place until then.
            Err(error) if worth_repeating(error) => Some(ending.permit),
            _ => {
                permits.push(ending.permit);
                None
            }
        };
        answers.push((ending.answer, answer, permit));
    }
    for claim in tasks {
        // One more than there is room for: a completion that came with it did not end.
        let Some(permit) = permits.pop().or_else(|| worker.permit()) else {
            worker.hand_back(claim.lease);
            continue;
        };
        let task = worker.task(claim, sent, permit);
        if let Some(taker) = &taker
            && let Err(refused) = taker.send(task)
        {
            tokio::spawn(hand_back(refused.0));
        }
    }
    // Whoever is answered finds its place free.
    drop(permits);
    for (caller, answer, permit) in answers {
        // A caller that has gone needs no answer.
        let _ = caller.send((answer, permit));
    }
}

/// Gives a task back that came too late.
pub(crate) async fn hand_back(task: ClaimedTask) {
    let execution = *task.execution_id();
    if let Err(error) = task.yield_back().await {
        tracing::debug!(%error, %execution, "a lease nobody took is left to run out");
    }
}
