//! Asks a quota or a budget for several errands at once: whatever is asked while a call is under way goes into the next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ff_script::{Error, HostError};
use tokio::sync::oneshot;
use uuid::Uuid;

/// The most one call of the library takes.
const BATCH: usize = 64;

struct Question<C, A> {
    candidates: Vec<C>,
    answer: oneshot::Sender<Result<Vec<A>, Error>>,
}

/// The questions that wait, by whom they are for. An entry is there as long as somebody asks.
type Waiting<C, A> = Arc<Mutex<BTreeMap<Uuid, VecDeque<Question<C, A>>>>>;

/// Puts questions to the same one together.
pub(crate) struct Combiner<C, A>(Waiting<C, A>);

impl<C, A> Clone for Combiner<C, A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C, A> Default for Combiner<C, A> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

fn lock<C, A>(waiting: &Waiting<C, A>) -> MutexGuard<'_, BTreeMap<Uuid, VecDeque<Question<C, A>>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: Send + 'static, A: Send + 'static> Combiner<C, A> {
    /// Up to 64 candidates for one; `call` asks, and answers each candidate in order.
    pub async fn ask<F, Fut>(&self, id: Uuid, candidates: Vec<C>, call: F) -> Result<Vec<A>, Error>
    where
        F: Fn(Vec<C>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Vec<A>, Error>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let first = {
            let mut waiting = lock(&self.0);
            let first = !waiting.contains_key(&id);
            waiting.entry(id).or_default().push_back(Question { candidates, answer });
            first
        };
        if first {
            // Whoever asked first may go away; those behind it still want to know.
            tokio::spawn(Asking { waiting: Arc::clone(&self.0), id, done: false }.run(call));
        }
        answered.await.unwrap_or(Err(Error::Host(HostError::Closed)))
    }
}

/// The one who asks. If it goes down, whoever waits hears of it, and the next one asks anew.
struct Asking<C, A> {
    waiting: Waiting<C, A>,
    id: Uuid,
    /// The entry is gone already; one that is there belongs to another.
    done: bool,
}

impl<C, A> Drop for Asking<C, A> {
    fn drop(&mut self) {
        if !self.done {
            lock(&self.waiting).remove(&self.id);
        }
    }
}

impl<C, A> Asking<C, A> {
    async fn run<F, Fut>(mut self, call: F)
    where
        F: Fn(Vec<C>) -> Fut,
        Fut: Future<Output = Result<Vec<A>, Error>>,
    {
        while let Some(questions) = self.next() {
            let mut candidates = Vec::new();
            let mut askers = Vec::new();
            for question in questions {
                askers.push((question.candidates.len(), question.answer));
                candidates.extend(question.candidates);
            }
            match call(candidates).await {
                Ok(answers) => {
                    let mut answers = answers.into_iter();
                    for (count, asker) in askers {
                        // One that went away left a grant that runs out.
                        let _ = asker.send(Ok(answers.by_ref().take(count).collect()));
                    }
                }
                Err(error) => {
                    for (_, asker) in askers {
                        let _ = asker.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    /// As many questions as fit into one call; when there are none, the entry goes in the same moment.
    fn next(&mut self) -> Option<Vec<Question<C, A>>> {
        let mut waiting = lock(&self.waiting);
        let queue = waiting.get_mut(&self.id)?;
        let (mut taken, mut size) = (Vec::new(), 0);
        while let Some(question) = queue.front() {
            size += question.candidates.len();
            if size > BATCH && !taken.is_empty() {
                break;
            }
            taken.extend(queue.pop_front());
        }
        if taken.is_empty() {
            waiting.remove(&self.id);
            self.done = true;
            return None;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn questions_of_one_moment_are_one_call_and_each_gets_its_own_answers() {
        let combiner: Combiner<usize, usize> = Combiner::default();
        let calls = Arc::new(AtomicUsize::new(0));
        let ask = |id, from: usize, count: usize| {
            let (combiner, calls) = (combiner.clone(), Arc::clone(&calls));
            async move {
                let call = move |candidates: Vec<usize>| {
                    assert!(candidates.len() <= BATCH, "{} in one call", candidates.len());
                    calls.fetch_add(1, Ordering::SeqCst);
                    async move {
                        tokio::task::yield_now().await;
                        Ok(candidates.into_iter().map(|n| n * 2).collect())
                    }
                };
                let answers = combiner.ask(id, (from..from + count).collect(), call).await.expect("answered");
                assert_eq!(answers, (from..from + count).map(|n| n * 2).collect::<Vec<_>>());
            }
        };
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let many = (0..32).map(|n| ask(one, n * 10, 4)).collect::<Vec<_>>();
        join_all(many).await;
        assert_eq!(calls.swap(0, Ordering::SeqCst), 2, "128 candidates are two calls");
        futures::join!(ask(one, 0, 64), ask(one, 0, 64), ask(other, 0, 1));
        assert_eq!(calls.load(Ordering::SeqCst), 3);
        assert!(lock(&combiner.0).is_empty(), "nobody asks any more");
    }

    #[tokio::test]
    async fn who_asks_hears_of_a_failure_and_the_next_is_asked_for() {
        let combiner: Combiner<u8, u8> = Combiner::default();
        let fails = |_| async { Err(Error::Host(HostError::Closed)) };
        assert!(combiner.ask(Uuid::nil(), vec![1], fails).await.is_err());
        let answers = combiner.ask(Uuid::nil(), vec![1, 2], |all| async { Ok(all) }).await;
        assert_eq!(answers.expect("answered"), [1, 2]);
    }
}
