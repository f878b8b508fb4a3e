//! Concurrent operations share calls of the store. An idle store gets a list of one at once. While the maximum number
//! of lists is in flight, new operations wait and leave together in the next list.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_script::list::{Class, LIST_BYTES_MAX, LIST_MAX};
use ff_script::{HostError, Invocation, Route};
use tokio::sync::oneshot;

/// Lists in flight at once over a short round trip, and the most over a long one.
pub(crate) const OUT: usize = 2;
const OUT_MAX: usize = 16;
/// For each of these in the round trip, one more list may be in flight.
const WAY_PER_LIST: Duration = Duration::from_micros(400);
/// The part of a list that is reserved for each waiting kind of work. Beside other work, background
/// work never gets more.
const SHARE: usize = LIST_MAX / 4;
/// How many lists may leave before an operation that is heavier than its share.
const PASSED_OVER_MAX: usize = 3;
/// The most bytes that may wait for one place. Beyond it the store counts as unavailable.
const WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;

/// An operation that waits for its reply.
pub(crate) struct Job {
    pub invocation: Invocation,
    pub class: Class,
    /// Whether it goes before work that ends nothing.
    pub goes_first: bool,
    pub queued: Instant,
    answer: oneshot::Sender<Answer>,
}

pub(crate) type Answer = Result<Vec<u8>, HostError>;

impl Job {
    pub(crate) fn new(invocation: Invocation) -> (Job, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        let class = Class::of(&invocation);
        (Job { invocation, class, goes_first: class == Class::End, queued: Instant::now(), answer }, answered)
    }

    /// True when the caller has gone.
    pub(crate) fn is_left(&self) -> bool {
        self.answer.is_closed()
    }

    pub(crate) fn answer(self, answer: Answer) {
        // A caller that has gone needs no reply.
        let _ = self.answer.send(answer);
    }
}

/// Operations with the same place share a queue: on a cluster those of one partition, elsewhere all. Reads have their
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub route: Option<Route>,
    pub reads: bool,
}

/// The operations waiting at a place. Ends go first, but none of the three queues blocks the others for ever.
#[derive(Default)]
struct Line {
    ends: VecDeque<Job>,
    others: VecDeque<Job>,
    background: VecDeque<Job>,
    bytes: usize,
    out: usize,
    /// Lists that left while an operation heavier than its share waited.
    passed_over: usize,
}

impl Line {
    fn len(&self) -> usize {
        self.ends.len() + self.others.len() + self.background.len()
    }

    fn push(&mut self, job: Job) {
        self.bytes += job.invocation.args.len();
        let queue = if job.invocation.terms.background {
            &mut self.background
        } else if job.goes_first {
            &mut self.ends
        } else {
            &mut self.others
        };
        queue.push_back(job);
    }

    /// The next list. Operations that waited beyond the deadline fail without being sent. Operations whose caller has
    /// gone are dropped.
    fn next(&mut self, deadline: Duration) -> Vec<Job> {
        let mut filling = Filling::default();
        // An operation heavier than its share does not fit into a started list. After enough lists have passed it, it
        // goes alone.
        let is_heavy = |queue: &VecDeque<Job>| queue.front().is_some_and(|job| job.invocation.terms.weight > SHARE);
        if is_heavy(&self.others) || is_heavy(&self.background) {
            self.passed_over += 1;
        }
        if self.passed_over > PASSED_OVER_MAX {
            self.passed_over = 0;
            let queue = if is_heavy(&self.others) { &mut self.others } else { &mut self.background };
            self.bytes -= filling.take_from(queue, 0, deadline);
        }
        let for_background = kept_for(&self.background);
        let for_others = kept_for(&self.others) + for_background;
        for (queue, weight_max) in [
            (&mut self.ends, LIST_MAX - for_others),
            (&mut self.others, LIST_MAX - for_background),
            (&mut self.background, LIST_MAX),
        ] {
            self.bytes -= filling.take_from(queue, weight_max, deadline);
        }
        // The writes of one partition are flushed together.
        filling.jobs.sort_by_key(|job| job.invocation.route);
        filling.jobs
    }
}

/// The weight that a list reserves for this queue: one share at most.
fn kept_for(queue: &VecDeque<Job>) -> usize {
    let mut kept = 0;
    for job in queue {
        let weight = kept + job.invocation.terms.weight;
        if weight > SHARE {
            break;
        }
        kept = weight;
    }
    kept
}

/// A list under construction.
#[derive(Default)]
struct Filling {
    jobs: Vec<Job>,
    weight: usize,
    bytes: usize,
}

impl Filling {
    /// Takes jobs from a queue up to this weight. One job always fits into an empty list. Returns the bytes removed
    /// from the queue.
    fn take_from(&mut self, queue: &mut VecDeque<Job>, weight_max: usize, deadline: Duration) -> usize {
        let mut taken = 0;
        // Beside other work, background work gets only its share, even if space is left.
        let mut share = if self.jobs.is_empty() { LIST_MAX } else { SHARE };
        while let Some(next) = queue.front() {
            let (size, weight) = (next.invocation.args.len(), next.invocation.terms.weight);
            let is_late = next.queued.elapsed() >= deadline;
            if !next.is_left() && !is_late && !self.jobs.is_empty() {
                let too_much = next.invocation.terms.background && weight > share;
                if too_much || self.weight + weight > weight_max || self.bytes + size > LIST_BYTES_MAX {
                    break;
                }
            }
            let job = queue.pop_front().expect("it was looked at");
            taken += size;
            if job.is_left() {
                continue;
            }
            if is_late {
                let detail = format!("waited {} ms and was not sent", job.queued.elapsed().as_millis());
                job.answer(Err(HostError::Unavailable { detail }));
                continue;
            }
            share = share.saturating_sub(weight);
            self.weight += weight;
            self.bytes += size;
            self.jobs.push(job);
        }
        taken
    }
}

/// The queues of a store.
pub(crate) struct Gather {
    lines: Mutex<HashMap<Place, Line>>,
    /// The round trip to the store in microseconds: the shortest one seen, forgotten slowly.
    way: AtomicU64,
    out: usize,
}

impl Gather {
    /// Allows `out` lists of a place in flight at once, and more for a long round trip.
    pub(crate) fn new(out: usize) -> Gather {
        Gather { lines: Mutex::default(), way: AtomicU64::new(0), out }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Place, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues jobs. Returns the places that need one more carrier.
    pub(crate) fn queue(&self, jobs: impl IntoIterator<Item = (Place, Job)>) -> Vec<Place> {
        let out_max = self.out_max();
        let mut begin = Vec::new();
        let mut lines = self.lines();
        for (place, job) in jobs {
            let line = lines.entry(place).or_default();
            let size = job.invocation.args.len();
            if line.bytes + size > WAITING_BYTES_MAX && line.len() > 0 {
                let detail = format!("{} calls already wait for the store", line.len());
                job.answer(Err(HostError::Unavailable { detail }));
                continue;
            }
            line.push(job);
            if line.out < out_max && !begin.contains(&place) {
                line.out += 1;
                begin.push(place);
            }
        }
        begin
    }

    /// The next lists of a place. `None` ends the carrier.
    pub(crate) fn next(&self, place: Place, lists_max: usize, deadline: Duration) -> Vec<Vec<Job>> {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(&place) else {
            return Vec::new();
        };
        let lists: Vec<Vec<Job>> =
            std::iter::from_fn(|| Some(line.next(deadline)).filter(|list| !list.is_empty())).take(lists_max).collect();
        if lists.is_empty() {
            line.out -= 1;
            if line.out == 0 {
                lines.remove(&place);
            }
        }
        lists
    }

    /// A carrier ended early with its list: the next operation of the place starts another one.
    pub(crate) fn lost(&self, place: Place) {
        if let Some(line) = self.lines().get_mut(&place) {
            line.out -= 1;
        }
    }

    /// Records the time that a list took.
    pub(crate) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let shortest = self.way.load(Ordering::Relaxed);
        let way = if shortest == 0 || time < shortest { time } else { shortest + (time - shortest) / 64 };
        self.way.store(way, Ordering::Relaxed);
    }

    /// How many lists of a place may be in flight; a longer round trip allows more.
    fn out_max(&self) -> usize {
        let longer = Duration::from_micros(self.way.load(Ordering::Relaxed)).as_micros() / WAY_PER_LIST.as_micros();
        (self.out + usize::try_from(longer).unwrap_or(OUT_MAX)).min(OUT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use ff_script::Terms;

    use super::*;

    const PLACE: Place = Place { route: None, reads: false };
    const SOON: Duration = Duration::from_secs(600);

    fn job(bytes: usize) -> (Job, oneshot::Receiver<Answer>) {
        job_of("ff_one", bytes, Terms::default())
    }

    fn job_of(function: &'static str, bytes: usize, terms: Terms) -> (Job, oneshot::Receiver<Answer>) {
        Job::new(Invocation {
            route: Route::Execution(0),
            function,
            read_only: false,
            args: vec![0x80; bytes],
            now_ms: None,
            count_calls: false,
            terms,
        })
    }

    #[test]
    fn an_idle_store_gets_one_at_once_and_what_comes_meanwhile_goes_together() {
        let gather = Gather::new(OUT);
        let (first, _a) = job(1);
        assert_eq!(gather.queue([(PLACE, first)]), [PLACE]);
        assert_eq!(gather.next(PLACE, 1, SOON)[0].len(), 1);
        let (second, _b) = job(1);
        assert_eq!(gather.queue([(PLACE, second)]), [PLACE], "a second list may be out");
        assert_eq!(gather.next(PLACE, 1, SOON)[0].len(), 1);
        let waiting: Vec<_> = (0..70).map(|_| job(1)).collect();
        let (jobs, answers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        assert_eq!(gather.queue(jobs.into_iter().map(|job| (PLACE, job))), [], "no third one");
        drop(answers.into_iter().take(3).collect::<Vec<_>>());
        // The other receivers were dropped too, so every caller has gone.
        assert!(gather.next(PLACE, 1, SOON).is_empty());
    }

    #[test]
    fn lists_are_bounded_by_number_and_bytes_and_leave_out_who_left() {
        let gather = Gather::new(OUT);
        let mut kept = Vec::new();
        let mut jobs = Vec::new();
        for n in 0..100 {
            let (job, answered) = job(1);
            jobs.push((PLACE, job));
            if n % 10 != 0 {
                kept.push(answered);
            }
        }
        gather.queue(jobs);
        let lists = gather.next(PLACE, 8, SOON);
        assert_eq!(lists.iter().map(Vec::len).collect::<Vec<_>>(), [LIST_MAX, 90 - LIST_MAX]);
        let (large, _a) = job(LIST_BYTES_MAX);
        let (small, _b) = job(1);
        gather.queue([(PLACE, small), (PLACE, large)]);
        assert_eq!(gather.next(PLACE, 1, SOON)[0].len(), 1);
        assert_eq!(gather.next(PLACE, 1, SOON)[0].len(), 1, "a large one travels alone");
    }

    #[test]
    fn more_lists_are_out_on_a_long_way() {
        let gather = Gather::new(OUT);
        gather.took(Duration::from_micros(120));
        assert_eq!(gather.out_max(), 2);
        for _ in 0..1_000 {
            gather.took(Duration::from_millis(2));
        }
        assert_eq!(gather.out_max(), 6);
        gather.took(Duration::from_micros(100));
        assert_eq!(gather.out_max(), 2);
    }

    #[test]
    fn a_list_is_bounded_by_weight_and_nothing_waits_for_good() {
        let gather = Gather::new(OUT);
        let (mut jobs, mut kept) = (Vec::new(), Vec::new());
        let mut add = |count: usize, function, terms: Terms| {
            for _ in 0..count {
                let (job, answered) = job_of(function, 1, terms);
                jobs.push((PLACE, job));
                kept.push(answered);
            }
        };
        add(100, "ff_submit_execution", Terms::default());
        add(100, "ff_complete_execution", Terms::default());
        add(40, "ff_fire_due", Terms { background: true, weight: 8, ..Terms::default() });
        add(1, "ff_claim_executions", Terms { weight: 64, ..Terms::default() });
        gather.queue(jobs);
        let list = gather.next(PLACE, 1, SOON).remove(0);
        let count = |function| list.iter().filter(|job| job.invocation.function == function).count();
        assert_eq!((count("ff_complete_execution"), count("ff_submit_execution")), (32, 16));
        assert_eq!(count("ff_fire_due"), 2, "background work has a quarter");
        let mut alone = 0;
        loop {
            let lists = gather.next(PLACE, 1, SOON);
            let Some(list) = lists.first() else { break };
            let weight: usize = list.iter().map(|job| job.invocation.terms.weight).sum();
            assert!(weight <= LIST_MAX || list.len() == 1, "{weight} in a list of {}", list.len());
            alone += usize::from(list.iter().any(|job| job.invocation.function == "ff_claim_executions"));
        }
        assert_eq!(alone, 1);
    }

    #[test]
    fn what_waited_too_long_is_answered_and_not_sent() {
        let gather = Gather::new(OUT);
        let (late, mut answered) = job(1);
        gather.queue([(PLACE, late)]);
        assert!(gather.next(PLACE, 1, Duration::ZERO).is_empty());
        let answer = answered.try_recv().expect("it is answered");
        assert!(matches!(answer, Err(HostError::Unavailable { .. })), "{answer:?}");
    }

    #[test]
    fn a_heavy_operation_is_not_passed_over_for_good() {
        let gather = Gather::new(OUT);
        let heavy = Terms { weight: LIST_MAX, ..Terms::default() };
        let (claim, _answered) = job_of("ff_submit_execution", 1, heavy);
        gather.queue([(PLACE, claim)]);
        let mut kept = Vec::new();
        for lists in 0.. {
            assert!(lists <= PASSED_OVER_MAX, "it waits behind {lists} lists");
            for _ in 0..LIST_MAX {
                let (end, answered) = job_of("ff_complete_execution", 1, Terms::default());
                gather.queue([(PLACE, end)]);
                kept.push(answered);
            }
            let list = gather.next(PLACE, 1, SOON).remove(0);
            if list.iter().any(|job| job.invocation.terms.weight == LIST_MAX) {
                break;
            }
        }
    }
}
