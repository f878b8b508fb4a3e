//! One frame of `ff top`: what the server says now, sorted and cut to the terminal.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ff_api::server::{ServerCapabilities, Stats};
use ff_api::workers::Worker;

use super::rates::Rate;
use crate::commands::lane::rows::{self, Name, Row, Rows};
use crate::commands::worker::list::lanes as served;
use crate::table::{Table, number, text};
use crate::terminal::Key;
use crate::times::span;

/// What is left of each list however many lines the other one has.
const LEAST: usize = 3;

/// What the server says now.
pub struct Shown {
    pub stats: Stats,
    pub rows: Rows,
    pub workers: Vec<Worker>,
    /// The server knows more workers than these.
    pub more_workers: bool,
}

/// What the lanes are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    /// Most work first: what waits, runs, is delayed or blocked.
    #[default]
    Work,
    Name,
    Oldest,
    Done,
    Failed,
}

impl Sort {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Work, "work"),
        (Self::Name, "name"),
        (Self::Oldest, "oldest"),
        (Self::Done, "done/s"),
        (Self::Failed, "failed/s"),
    ];

    fn at(self) -> usize {
        Self::ALL.iter().position(|(sort, _)| *sort == self).unwrap_or(0)
    }

    fn next(self) -> Self {
        Self::ALL[(self.at() + 1) % Self::ALL.len()].0
    }

    fn name(self) -> &'static str {
        Self::ALL[self.at()].1
    }
}

/// Which part is looked at, and in which order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    sort: Sort,
    /// The first lane and the first worker that are shown.
    lane: usize,
    worker: usize,
    /// The keys move through the workers.
    in_workers: bool,
}

impl Place {
    /// What a key does; false for one that leaves.
    pub fn press(&mut self, key: Key, rows: usize) -> bool {
        let page = rows.saturating_sub(10).max(1);
        let first = if self.in_workers { &mut self.worker } else { &mut self.lane };
        match key {
            Key::Char('q' | 'Q') => return false,
            Key::Char('s') => (self.sort, self.lane) = (self.sort.next(), 0),
            Key::Char('\t' | 'w') => self.in_workers = !self.in_workers,
            Key::Up | Key::Char('k') => *first = first.saturating_sub(1),
            Key::Down | Key::Char('j') => *first += 1,
            Key::PageUp | Key::Char('b') => *first = first.saturating_sub(page),
            Key::PageDown | Key::Char(' ') => *first += page,
            Key::Char('g') => *first = 0,
            Key::Char(_) => {}
        }
        true
    }
}

/// How much room there is; without a limit where the frame is not drawn over the last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    pub columns: Option<usize>,
    pub rows: Option<usize>,
}

/// Where the server is, what it can do, and how fast it is; no rates when nothing was counted yet.
pub struct About<'a> {
    pub url: &'a str,
    pub facts: &'a ServerCapabilities,
    pub rates: Option<&'a BTreeMap<Name, Rate>>,
    pub now: i64,
}

/// The lines of one frame. A place behind the last line is moved back to it.
pub fn frame(about: &About<'_>, shown: &Shown, place: &mut Place, room: Room) -> Vec<String> {
    let mut lines = head(about, &shown.stats, room.columns.unwrap_or(usize::MAX));
    lines.push(String::new());
    let (lanes, workers) =
        (lanes(about, shown, place.sort, room.columns), workers(&shown.workers, about.now, room.columns));
    // Below the head: two headings, a blank line between, and the keys at the end.
    let left = room.rows.map(|rows| rows.saturating_sub(lines.len() + 5));
    let (for_lanes, for_workers) = match left {
        None => (usize::MAX, usize::MAX),
        Some(left) => {
            let workers = (workers.len() - 1).min(left.saturating_sub(lanes.len() - 1).max(left / 3).max(LEAST));
            (left.saturating_sub(workers).max(1), workers)
        }
    };
    lines.extend(part(lanes, &mut place.lane, for_lanes, false));
    lines.push(String::new());
    lines.extend(part(workers, &mut place.worker, for_workers, shown.more_workers));
    if room.rows.is_some() {
        let moving = if place.in_workers { "workers" } else { "lanes" };
        lines.push(format!(
            "q leaves, s sorts (by {}), ↑ ↓ and space move through the {moving}, w turns",
            place.sort.name()
        ));
    }
    lines
}

/// The heading, as many rows as fit from a place on, and how many are not shown.
fn part(mut rows: Vec<String>, first: &mut usize, room: usize, more: bool) -> Vec<String> {
    let mut lines: Vec<String> = rows.drain(..1).collect();
    // One line says how many there are beside those that are shown.
    let cut = rows.len() > room;
    let shown = if cut { room.saturating_sub(1).max(1) } else { rows.len() };
    *first = (*first).min(rows.len() - shown);
    let (before, all) = (*first, rows.len());
    lines.extend(rows.into_iter().skip(before).take(shown));
    let behind = all.saturating_sub(before + shown);
    if cut {
        let above = if before > 0 { format!(", {before} above") } else { String::new() };
        lines.push(format!("… {behind} more{above}"));
    } else if more {
        lines.push("… more: `ff worker list`".to_owned());
    }
    lines
}

fn head(about: &About<'_>, stats: &Stats, width: usize) -> Vec<String> {
    let (facts, url) = (about.facts, about.url);
    let mut lines = vec![format!(
        "FlowFabric {} at {url}   {} store, {}   {} partitions",
        facts.version, facts.store.kind, facts.store.durability, stats.partitions
    )];
    // What only the whole store has is not told to a token that covers a part of it.
    let counted = |n: Option<i64>, name: &str| n.map(|n| format!("{n} {name}"));
    let work: Vec<String> = [Some(format!("{} executions", stats.executions)), counted(stats.flows, "flows")]
        .into_iter()
        .flatten()
        .collect();
    let inner: Vec<String> =
        [counted(stats.timers, "timers"), counted(stats.outbox, "in the outbox"), counted(stats.stuck, "stuck")]
            .into_iter()
            .flatten()
            .collect();
    let work = [work.join(", "), inner.join(", ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let work = work.join("   ");
    let team = stats.workers;
    let team = format!("workers {} live, {} draining, {} slots", team.live, team.draining, team.slots);
    if work.len() + 3 + team.len() <= width {
        lines.push(format!("{work}   {team}"));
    } else {
        lines.extend([work, team]);
    }
    if let Some(rates) = about.rates {
        // The sum of nothing is minus zero.
        let sum = |part: fn(&Rate) -> f64| rates.values().map(part).sum::<f64>() + 0.0;
        lines.push(format!(
            "per second: {:.1} submitted, {:.1} completed, {:.1} failed, {:.1} retried",
            sum(|rate| rate.submitted),
            sum(|rate| rate.completed),
            sum(|rate| rate.failed),
            sum(|rate| rate.retried)
        ));
    }
    lines
}

/// The heading and a row for each lane.
fn lanes(about: &About<'_>, shown: &Shown, sort: Sort, width: Option<usize>) -> Vec<String> {
    let rate_of = |lane: &Name, part: fn(&Rate) -> f64| about.rates.map(|rates| rates.get(lane).map_or(0.0, part));
    let mut rows: Vec<(&Name, &Row)> = shown.rows.iter().collect();
    match sort {
        Sort::Name => {}
        Sort::Work => {
            rows.sort_by_key(|(_, row)| Reverse(row.counts.all() - row.counts.terminal));
        }
        Sort::Oldest => rows.sort_by_key(|(_, row)| row.counts.oldest_eligible_at.unwrap_or(i64::MAX)),
        Sort::Done => rows.sort_by(|a, b| {
            rate_of(b.0, |r| r.completed)
                .partial_cmp(&rate_of(a.0, |r| r.completed))
                .unwrap_or(std::cmp::Ordering::Equal)
        }),
        Sort::Failed => rows.sort_by(|a, b| {
            rate_of(b.0, |r| r.failed).partial_cmp(&rate_of(a.0, |r| r.failed)).unwrap_or(std::cmp::Ordering::Equal)
        }),
    }
    let mut table = Table::new([
        "LANE",
        "STATE",
        "WAITING",
        "RUNNING",
        "DELAYED",
        "SUSPENDED",
        "BLOCKED",
        "OLDEST",
        "DONE/S",
        "FAILED/S",
    ])
    .sparing(&["SUSPENDED", "DELAYED", "STATE", "BLOCKED", "OLDEST"])
    .within(width);
    for (lane, row) in rows {
        let rate = |part| rate_of(lane, part).map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
        table.row([
            text(rows::named(lane)),
            text(row.state()),
            number(row.waiting()),
            number(row.counts.active),
            number(row.counts.delayed),
            number(row.counts.suspended),
            number(row.counts.blocked.all()),
            number(row.oldest(about.now)),
            number(rate(|rate| rate.completed)),
            number(rate(|rate| rate.failed)),
        ]);
    }
    table.lines()
}

/// The heading and a row for each worker, in the words of `ff worker list`.
fn workers(workers: &[Worker], now: i64, width: Option<usize>) -> Vec<String> {
    if workers.is_empty() {
        return vec!["no worker is registered; start one, e.g. `ff worker exec --lane L --kind K -- CMD`".to_owned()];
    }
    let mut table = Table::new(["INSTANCE", "WORKER", "STATE", "SLOTS", "SINCE", "LANES"])
        .sparing(&["WORKER", "SINCE"])
        .within(width);
    for worker in workers {
        table.row([
            text(&worker.instance),
            text(&worker.worker_id),
            text(worker.state.as_str()),
            number(worker.slots),
            number(span(Some(now - worker.registered_at))),
            text(served(worker)),
        ]);
    }
    table.lines()
}

#[cfg(test)]
mod tests {
    use ff_api::lanes::{BlockedCounts, LaneCounts};
    use ff_api::server::{LaneStats, WorkerStats};
    use serde_json::json;

    use super::*;

    fn facts() -> ServerCapabilities {
        let facts = json!({"version": "0.1.0", "library": {"number": 1, "hash": "x"},
            "store": {"kind": "embedded", "durability": "fsync", "loss_window": "nothing", "partitions": 8},
            "authentication": "none", "features": [], "worker_capabilities": {},
            "limits": {"input_bytes": 1, "result_bytes": 1, "reason_bytes": 1, "batch_items": 1, "claim_max": 1, "wait_ms": 1, "list_limit": 1}});
        serde_json::from_value(facts).expect("capabilities")
    }

    fn shown(lanes: usize, workers: usize) -> Shown {
        let held = |at: usize| LaneStats {
            namespace: "default".to_owned(),
            lane: format!("lane-{at:03}"),
            counts: LaneCounts { eligible: at as i64, granted: 1, ..LaneCounts::default() },
        };
        let worker = |at: usize| Worker {
            kinds: None,
            instance: format!("w-{at}"),
            worker_id: "mailer".to_owned(),
            namespace: "default".to_owned(),
            lanes: vec!["mail".to_owned(), "bulk".to_owned()],
            capabilities: Vec::new(),
            slots: 4,
            state: ff_script::generated::WorkerState::Live,
            registered_at: 0,
            expires_at: 0,
        };
        let stats = Stats {
            executions: 31,
            partitions: 8,
            lanes: (0..lanes).map(held).collect(),
            workers: WorkerStats { live: workers, draining: 0, slots: 4 },
            timers: Some(9),
            outbox: Some(0),
            stuck: Some(0),
            flows: Some(2),
            ..Stats::default()
        };
        let rows = rows::rows(Vec::new(), &stats, None);
        Shown { stats, rows, workers: (0..workers).map(worker).collect(), more_workers: false }
    }

    fn drawn(shown: &Shown, place: &mut Place, room: Room) -> Vec<String> {
        let rate = Rate { submitted: 3.0, completed: 2.25, failed: 0.5, retried: 0.0 };
        let rates = BTreeMap::from([(("default".to_owned(), "lane-000".to_owned()), rate)]);
        let about = About { url: "http://h:1", facts: &facts(), rates: Some(&rates), now: 100_000 };
        frame(&about, shown, place, room)
    }

    #[test]
    fn a_frame_shows_lanes_workers_and_rates() {
        let mut shown = shown(1, 1);
        let row = shown.rows.values_mut().next().expect("a lane");
        let blocked = BlockedCounts { waiting_for_quota: 5, ..BlockedCounts::default() };
        row.counts = LaneCounts {
            eligible: 12,
            granted: 1,
            active: 4,
            delayed: 2,
            suspended: 3,
            blocked,
            oldest_eligible_at: Some(40_000),
            ..LaneCounts::default()
        };
        assert_eq!(
            drawn(&shown, &mut Place::default(), Room::default()).join("\n"),
            "\
FlowFabric 0.1.0 at http://h:1   embedded store, fsync   8 partitions
31 executions, 2 flows   9 timers, 0 in the outbox, 0 stuck   workers 1 live, 0 draining, 4 slots
per second: 3.0 submitted, 2.2 completed, 0.5 failed, 0.0 retried

LANE      STATE   WAITING  RUNNING  DELAYED  SUSPENDED  BLOCKED  OLDEST  DONE/S  FAILED/S
lane-000  active       13        4        2          3        5     60s     2.2       0.5

INSTANCE  WORKER  STATE  SLOTS  SINCE  LANES
w-0       mailer  live       4   100s  mail,bulk"
        );
    }

    #[test]
    fn lanes_and_workers_are_seen_on_a_small_terminal_and_the_rest_is_counted() {
        let (shown, room) = (shown(260, 6), Room { columns: Some(80), rows: Some(24) });
        let mut place = Place::default();
        let lines = drawn(&shown, &mut place, room);
        assert!(lines.len() < 24 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("lane-259")), "most work first: {lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("… 25")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("w-0")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("FAILED/S")), "rates stay: {lines:#?}");
        assert!(lines.last().is_some_and(|line| line.starts_with("q leaves")), "{lines:#?}");
        for key in [Key::Down, Key::Down, Key::PageDown, Key::Up] {
            assert!(place.press(key, 24));
        }
        let lines = drawn(&shown, &mut place, room);
        assert!(lines.iter().any(|line| line.ends_with(", 15 above")), "{lines:#?}");
        assert!(!lines.iter().any(|line| line.starts_with("lane-259")), "{lines:#?}");
        assert!(place.press(Key::Char('s'), 24));
        let lines = drawn(&shown, &mut place, room);
        assert!(lines.iter().any(|line| line.starts_with("lane-000")), "by name, from the first: {lines:#?}");
        for _ in 0..100 {
            place.press(Key::PageDown, 24);
        }
        let lines = drawn(&shown, &mut place, room);
        assert!(lines.iter().any(|line| line.starts_with("lane-259")), "the end is the end: {lines:#?}");
        assert!(!place.press(Key::Char('q'), 24));
    }
}
