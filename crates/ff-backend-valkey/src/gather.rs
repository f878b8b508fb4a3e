//! Operations that wait for the store share its calls: an idle store gets a list of one at once, and what comes while as many lists
//! are out as may be goes together in the next.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_script::list::{Class, LIST_BYTES_MAX, LIST_MAX};
use ff_script::{HostError, Invocation, Route};
use tokio::sync::oneshot;

/// Lists that are out at once, and the most when the way to the store is long.
const OUT: usize = 2;
const OUT_MAX: usize = 16;
/// How much longer the way may be before one more list is sent along it.
const WAY_PER_LIST: Duration = Duration::from_micros(400);
/// What may wait for one place; beyond it the store counts as unavailable.
const WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;

/// An operation that waits for its answer.
pub(crate) struct Job {
    pub invocation: Invocation,
    pub class: Class,
    pub queued: Instant,
    answer: oneshot::Sender<Answer>,
}

pub(crate) type Answer = Result<Vec<u8>, HostError>;

impl Job {
    pub(crate) fn new(invocation: Invocation) -> (Job, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        let class = Class::of(&invocation);
        (Job { invocation, class, queued: Instant::now(), answer }, answered)
    }

    /// True when the caller has gone.
    pub(crate) fn is_left(&self) -> bool {
        self.answer.is_closed()
    }

    pub(crate) fn answer(self, answer: Answer) {
        // A caller that has gone needs no answer.
        let _ = self.answer.send(answer);
    }
}

/// Which lists share a line: on a cluster those of one partition, elsewhere all. Reads have a line of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub route: Option<Route>,
    pub reads: bool,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Job>,
    bytes: usize,
    out: usize,
}

/// The lines of a store.
pub(crate) struct Gather {
    lines: Mutex<HashMap<Place, Line>>,
    /// The way to the store and back, in microseconds: the shortest seen, forgotten slowly.
    way: AtomicU64,
}

impl Gather {
    pub(crate) fn new() -> Gather {
        Gather { lines: Mutex::default(), way: AtomicU64::new(0) }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Place, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts jobs in their lines. Returns the places that need one more carrier.
    pub(crate) fn queue(&self, jobs: impl IntoIterator<Item = (Place, Job)>) -> Vec<Place> {
        let out_max = self.out_max();
        let mut begin = Vec::new();
        let mut lines = self.lines();
        for (place, job) in jobs {
            let line = lines.entry(place).or_default();
            let size = job.invocation.args.len();
            if line.bytes + size > WAITING_BYTES_MAX && !line.waiting.is_empty() {
                let detail = format!("{} calls already wait for the store", line.waiting.len());
                job.answer(Err(HostError::Unavailable { detail }));
                continue;
            }
            line.bytes += size;
            line.waiting.push_back(job);
            if line.out < out_max && !begin.contains(&place) {
                line.out += 1;
                begin.push(place);
            }
        }
        begin
    }

    /// The next lists of a line, oldest first; none ends the carrying.
    pub(crate) fn next(&self, place: Place, lists_max: usize) -> Vec<Vec<Job>> {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(&place) else {
            return Vec::new();
        };
        let mut lists: Vec<Vec<Job>> = Vec::new();
        while lists.len() < lists_max {
            let (mut list, mut bytes) = (Vec::new(), 0);
            while list.len() < LIST_MAX
                && let Some(next) = line.waiting.front()
            {
                let size = next.invocation.args.len();
                if !list.is_empty() && bytes + size > LIST_BYTES_MAX {
                    break;
                }
                let job = line.waiting.pop_front().expect("it was looked at");
                line.bytes -= size;
                if job.is_left() {
                    continue;
                }
                bytes += size;
                list.push(job);
            }
            if list.is_empty() {
                break;
            }
            lists.push(list);
        }
        if lists.is_empty() {
            line.out -= 1;
            if line.out == 0 {
                lines.remove(&place);
            }
        }
        lists
    }

    /// A carrier went down with its list: the next operation of the line begins another one.
    pub(crate) fn lost(&self, place: Place) {
        if let Some(line) = self.lines().get_mut(&place) {
            line.out -= 1;
        }
    }

    /// A list came back after this long.
    pub(crate) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let shortest = self.way.load(Ordering::Relaxed);
        let way = if shortest == 0 || time < shortest { time } else { shortest + (time - shortest) / 64 };
        self.way.store(way, Ordering::Relaxed);
    }

    /// How many lists of a line may be out: more, the longer the way is.
    fn out_max(&self) -> usize {
        let longer = Duration::from_micros(self.way.load(Ordering::Relaxed)).as_micros() / WAY_PER_LIST.as_micros();
        (OUT + usize::try_from(longer).unwrap_or(OUT_MAX)).min(OUT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { route: None, reads: false };

    fn job(bytes: usize) -> (Job, oneshot::Receiver<Answer>) {
        Job::new(Invocation {
            route: Route::Execution(0),
            function: "ff_one",
            read_only: false,
            args: vec![0x80; bytes],
            now_ms: None,
            count_calls: false,
        })
    }

    #[test]
    fn an_idle_store_gets_one_at_once_and_what_comes_meanwhile_goes_together() {
        let gather = Gather::new();
        let (first, _a) = job(1);
        assert_eq!(gather.queue([(PLACE, first)]), [PLACE]);
        assert_eq!(gather.next(PLACE, 1)[0].len(), 1);
        let (second, _b) = job(1);
        assert_eq!(gather.queue([(PLACE, second)]), [PLACE], "a second list may be out");
        assert_eq!(gather.next(PLACE, 1)[0].len(), 1);
        let waiting: Vec<_> = (0..70).map(|_| job(1)).collect();
        let (jobs, answers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        assert_eq!(gather.queue(jobs.into_iter().map(|job| (PLACE, job))), [], "no third one");
        drop(answers.into_iter().take(3).collect::<Vec<_>>());
        // The other receivers were dropped too: every caller has gone.
        assert!(gather.next(PLACE, 1).is_empty());
    }

    #[test]
    fn lists_are_bounded_by_number_and_bytes_and_leave_out_who_left() {
        let gather = Gather::new();
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
        let lists = gather.next(PLACE, 8);
        assert_eq!(lists.iter().map(Vec::len).collect::<Vec<_>>(), [LIST_MAX, 90 - LIST_MAX]);
        let (large, _a) = job(LIST_BYTES_MAX);
        let (small, _b) = job(1);
        gather.queue([(PLACE, small), (PLACE, large)]);
        assert_eq!(gather.next(PLACE, 1)[0].len(), 1);
        assert_eq!(gather.next(PLACE, 1)[0].len(), 1, "a large one travels alone");
    }

    #[test]
    fn more_lists_are_out_on_a_long_way() {
        let gather = Gather::new();
        gather.took(Duration::from_micros(120));
        assert_eq!(gather.out_max(), 2);
        for _ in 0..1_000 {
            gather.took(Duration::from_millis(2));
        }
        assert_eq!(gather.out_max(), 6);
        gather.took(Duration::from_micros(100));
        assert_eq!(gather.out_max(), 2);
    }
}
