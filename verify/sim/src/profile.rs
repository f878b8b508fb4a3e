//! The conditions of a seed: how bad the network is, how often the host dies, how late the timers run.

use crate::rng::Rng;

#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Partitions of executions.
    pub partitions: u16,
    /// Permille of requests that are lost, of lost replies, of duplicated requests, and of delayed ones.
    pub lose_request: u32,
    pub lose_reply: u32,
    pub duplicate: u32,
    pub late: u32,
    /// Permille of calls in which the host dies, after whose commit it dies, and in which its disk fails once.
    pub crash: u32,
    pub die: u32,
    pub broken: u32,
    /// Permille of calls after which the disk is full for a while, and after which the whole world stops for a while.
    pub full: u32,
    pub stall: u32,
    /// Percent of the host's deaths after which its clock is behind.
    pub clock_back: u32,
    /// Percent of timer rounds after which the timers sleep for seconds.
    pub lazy_timers: u32,
    pub workers: usize,
    pub submitters: usize,
    pub submissions: u32,
    /// Whether flows are submitted.
    pub flows: bool,
    /// Percent of a worker's calls under a lease that spawn children or wait for them.
    pub spawns: u32,
    /// Whether there are quotas and budgets, and whether quotas are raised at the end.
    pub limits: bool,
    pub widened: bool,
}

impl Profile {
    pub fn draw(rng: &mut Rng, limits: Option<bool>) -> Self {
        let bad = [0, 1, 1, 2, 4][rng.below(5)];
        let dies = [0, 1, 2, 4][rng.below(4)];
        let mut profile = Profile {
            partitions: rng.between(1, 3) as u16,
            lose_request: 25 * bad,
            lose_reply: 30 * bad,
            duplicate: 30 * bad,
            late: 30 * bad,
            crash: 4 * dies,
            die: 4 * dies,
            broken: 3 * dies,
            full: if rng.percent(30) { 8 } else { 0 },
            clock_back: if rng.percent(50) { 30 } else { 0 },
            stall: if rng.percent(40) { 8 } else { 0 },
            lazy_timers: [0, 5, 20][rng.below(3)],
            workers: rng.between(2, 4) as usize,
            submitters: rng.between(1, 2) as usize,
            submissions: rng.between(15, 45) as u32,
            flows: rng.percent(75),
            spawns: [0, 8, 16][rng.below(3)],
            limits: rng.percent(30),
            widened: rng.percent(50),
        };
        profile.limits = limits.unwrap_or(profile.limits);
        if profile.limits {
            // A past window is forgotten, and does not return with the clock.
            profile.clock_back = 0;
        }
        profile
    }
}
