//! Keeps a number of calls in flight and records their times.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use tokio::sync::Barrier;

/// The times of one phase.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Number of completed items.
    pub count: usize,
    /// From the first start to the last end.
    pub wall: Duration,
    /// The time of each item, sorted.
    pub each: Vec<Duration>,
}

impl Timed {
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.wall.as_secs_f64()
    }

    /// The time within which this share of the items completed.
    pub fn quantile(&self, share: f64) -> Duration {
        let last = self.each.len().saturating_sub(1);
        let index = (self.each.len() as f64 * share) as usize;
        self.each.get(index.min(last)).copied().unwrap_or_default()
    }
}

/// Runs the work on every item, `in_flight` at a time. Each slot runs one item after the other.
pub async fn drive<T, R, F, Fut>(in_flight: usize, items: Vec<T>, work: F) -> Result<(Timed, Vec<R>)>
where
    T: Send + 'static,
    R: Send + 'static,
    F: Fn(usize, T) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send,
{
    let count = items.len();
    let mut shares: Vec<Vec<T>> = (0..in_flight).map(|_| Vec::with_capacity(count / in_flight + 1)).collect();
    for (index, item) in items.into_iter().enumerate() {
        shares[index % in_flight].push(item);
    }
    let work = Arc::new(work);
    let start = Arc::new(Barrier::new(in_flight + 1));
    let slots: Vec<_> = shares
        .into_iter()
        .enumerate()
        .map(|(slot, share)| {
            let (work, start) = (Arc::clone(&work), Arc::clone(&start));
            tokio::spawn(async move {
                let (mut times, mut results) = (Vec::with_capacity(share.len()), Vec::with_capacity(share.len()));
                start.wait().await;
                for item in share {
                    let began = Instant::now();
                    results.push(work(slot, item).await?);
                    times.push(began.elapsed());
                }
                Ok::<_, anyhow::Error>((times, results))
            })
        })
        .collect();
    start.wait().await;
    let began = Instant::now();
    let (mut each, mut all) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut failure = None;
    for slot in slots {
        match slot.await {
            Ok(Ok((times, results))) => {
                each.extend(times);
                all.extend(results);
            }
            Ok(Err(error)) => failure = Some(error),
            Err(error) => failure = Some(anyhow!(error)),
        }
    }
    let wall = began.elapsed();
    if let Some(error) = failure {
        return Err(error);
    }
    each.sort_unstable();
    Ok((Timed { count, wall, each }, all))
}
