//! `ff top`: lanes, workers and rates, live in the terminal.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior};

use crate::away::{Patience, WAITING};
use crate::client::{Api, ServerArgs, now_ms, print, span, text};
use crate::terminal::{self, Keys};

/// Rates are means over so many seconds.
const WINDOW: usize = 10;
/// What is left of a name at least, on a narrow terminal.
const NAME_MIN: usize = 12;
/// How many workers are shown.
const WORKERS_MAX: usize = 100;

/// Shows lanes (waiting, running, delayed, oldest), workers and rates, live until q or Ctrl-C.
#[derive(Args)]
#[command(after_help = "Example:
  ff top
  ff top --once")]
pub struct Top {
    /// Prints one frame and ends.
    #[arg(long)]
    once: bool,
    /// How often it is drawn.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    every_ms: u64,
    #[command(flatten)]
    server: ServerArgs,
}

impl Top {
    /// Draws until q or Ctrl-C; off a terminal, frame after frame.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let facts = api.get("/v1/capabilities", &[]).await?.accepted()?.json()?;
        let at = self.server.url();
        if self.once {
            let shown = look(&api).await?;
            let width = if terminal::is_live() { terminal::size().0 } else { usize::MAX };
            print(&joined(&frame(at, &facts, &shown, None, now_ms(), width)))?;
            return Ok(ExitCode::SUCCESS);
        }
        let types = [("types", "execution.".to_owned())];
        let mut events = api.lines("/v1/events", &types).await?;
        let (mut rates, mut patience) = (Rates::default(), Patience::default());
        patience.answered();
        let live = terminal::is_live();
        let _screen = live.then(Screen::enter).transpose()?;
        let mut keys = Keys::listen(live);
        let mut tick = tokio::time::interval(Duration::from_millis(self.every_ms));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut bytes, mut listening, mut drawn) = (Vec::new(), true, Vec::new());
        // Listens all the time: one made anew for each wait would miss a Ctrl-C between two of them.
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        loop {
            tokio::select! {
                _ = &mut interrupted => return Ok(ExitCode::SUCCESS),
                key = keys.next() => if matches!(key, b'q' | b'Q') {
                    return Ok(ExitCode::SUCCESS);
                },
                chunk = events.chunk(), if listening => match chunk {
                    Ok(Some(chunk)) => {
                        bytes.extend_from_slice(&chunk);
                        rates.read(&mut bytes, Instant::now());
                    }
                    // The server stops; it is listened to again when it is back.
                    Ok(None) | Err(_) => listening = false,
                },
                _ = tick.tick() => {
                    let (columns, rows) = terminal::size();
                    match look(&api).await {
                        Ok(shown) => {
                            patience.answered();
                            let width = if live { columns } else { usize::MAX };
                            drawn = frame(at, &facts, &shown, Some(&rates.means(Instant::now())), now_ms(), width);
                        }
                        Err(error) => {
                            let pause = patience.pause(error)?;
                            if patience.is_new() {
                                drawn.splice(..drawn.len().min(1), [WAITING.to_owned()]);
                                if !live {
                                    eprintln!("{WAITING}");
                                }
                            }
                            tick.reset_after(pause);
                        }
                    }
                    if live {
                        let cut: Vec<String> = drawn.iter().map(|line| line.chars().take(columns).collect()).collect();
                        print(&terminal::redrawn(&joined(&cut), rows))?;
                    } else if patience.is_answered() {
                        print(&format!("{}\n", joined(&drawn)))?;
                    }
                    if !listening && patience.is_answered() && let Ok(opened) = api.lines("/v1/events", &types).await {
                        (events, listening, rates) = (opened, true, Rates::default());
                        bytes.clear();
                    }
                }
            }
        }
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The terminal's other screen, without a cursor; the first one comes back when this goes.
struct Screen;

impl Screen {
    fn enter() -> anyhow::Result<Self> {
        print("\x1b[?1049h\x1b[?25l\x1b[2J")?;
        Ok(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = print("\x1b[?25h\x1b[?1049l");
    }
}

/// What the server says now.
struct Shown {
    stats: Value,
    lanes: Value,
    workers: Value,
}

async fn look(api: &Api) -> anyhow::Result<Shown> {
    Ok(Shown {
        stats: api.get("/v1/stats", &[]).await?.accepted()?.json()?,
        lanes: api.get("/v1/lanes", &[("limit", "1000".to_owned())]).await?.accepted()?.json()?,
        workers: api.get("/v1/workers", &[("limit", WORKERS_MAX.to_string())]).await?.accepted()?.json()?,
    })
}

/// Events per second, by what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    submitted: f64,
    completed: f64,
    failed: f64,
    retried: f64,
}

type Lane = (String, String);

/// Counts of the last seconds, by lane.
#[derive(Default)]
struct Rates {
    began: Option<Instant>,
    seconds: VecDeque<(Instant, BTreeMap<Lane, Rate>)>,
}

#[derive(Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    lane: Option<String>,
}

impl Rates {
    /// Takes whole lines out of what has come.
    fn read(&mut self, bytes: &mut Vec<u8>, now: Instant) {
        self.began.get_or_insert(now);
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else { return };
        let whole: Vec<u8> = bytes.drain(..=end).collect();
        for line in whole.split(|byte| *byte == b'\n') {
            let Ok(event) = serde_json::from_slice::<Event>(line) else { continue };
            let lane = (event.namespace.unwrap_or_default(), event.lane.unwrap_or_default());
            if self.seconds.back().is_none_or(|(from, _)| now - *from >= Duration::from_secs(1)) {
                self.seconds.push_back((now, BTreeMap::new()));
            }
            let Some((_, counts)) = self.seconds.back_mut() else { continue };
            let count = counts.entry(lane).or_default();
            match event.r#type {
                "execution.submitted" => count.submitted += 1.0,
                "execution.completed" => count.completed += 1.0,
                "execution.failed" => count.failed += 1.0,
                "execution.retried" => count.retried += 1.0,
                _ => {}
            }
        }
    }

    fn means(&mut self, now: Instant) -> BTreeMap<Lane, Rate> {
        let window = Duration::from_secs(WINDOW as u64);
        while self.seconds.front().is_some_and(|(from, _)| now - *from > window) {
            self.seconds.pop_front();
        }
        let over = self.began.map_or(1.0, |began| (now - began).min(window).as_secs_f64().max(1.0));
        let mut means: BTreeMap<Lane, Rate> = BTreeMap::new();
        for (lane, count) in self.seconds.iter().flat_map(|(_, counts)| counts) {
            let mean = means.entry(lane.clone()).or_default();
            mean.submitted += count.submitted / over;
            mean.completed += count.completed / over;
            mean.failed += count.failed / over;
            mean.retried += count.retried / over;
        }
        means
    }
}

/// The lines of one frame, as wide as the terminal; without rates when nothing was counted yet.
fn frame(
    at: &str,
    facts: &Value,
    shown: &Shown,
    rates: Option<&BTreeMap<Lane, Rate>>,
    now: i64,
    width: usize,
) -> Vec<String> {
    let (stats, store) = (&shown.stats, &facts["store"]);
    let mut lines = vec![format!(
        "FlowFabric {} at {at}   {} store, {}   {} partitions",
        text(&facts["version"]),
        text(&store["kind"]),
        text(&store["durability"]),
        text(&stats["partitions"])
    )];
    let of = |name: &str| text(&stats[name]);
    let work = format!(
        "{} executions, {} flows   {} timers, {} in the outbox, {} stuck",
        of("executions"),
        of("flows"),
        of("timers"),
        of("outbox"),
        of("stuck")
    );
    let team = &stats["workers"];
    let team = format!(
        "workers {} live, {} draining, {} slots",
        text(&team["live"]),
        text(&team["draining"]),
        text(&team["slots"])
    );
    if work.len() + 3 + team.len() <= width {
        lines.push(format!("{work}   {team}"));
    } else {
        lines.extend([work, team]);
    }
    if let Some(rates) = rates {
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
    lines.push(String::new());
    lines.extend(lanes(shown, rates, now, width));
    lines.push(String::new());
    lines.extend(workers(&shown.workers, now, width));
    lines
}

/// A column of a table: its name, how wide it is where there is room, and whether its values stand at the right.
#[derive(Clone, Copy)]
struct Column(&'static str, usize, bool);

/// The rows under their names. Where the terminal is too narrow columns become as narrow as what they hold, and then those of
/// `spare` go, the first one first.
fn table(columns: &[Column], spare: &[&str], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let widest =
        |at: usize| rows.iter().map(|row| row[at].chars().count()).chain([columns[at].0.len()]).max().unwrap_or(0);
    let total = |shown: &[(usize, usize)]| shown.iter().map(|(_, wide)| wide + 2).sum::<usize>().saturating_sub(2);
    let mut shown: Vec<(usize, usize)> =
        columns.iter().map(|column| column.1).enumerate().map(|(at, wide)| (at, wide.max(widest(at)))).collect();
    if total(&shown) > width {
        shown = (0..columns.len()).map(|at| (at, widest(at))).collect();
    }
    for name in spare {
        if total(&shown) > width {
            shown.retain(|(at, _)| columns[*at].0 != *name);
        }
    }
    // At last the names are cut: what is counted stays in sight.
    let over = total(&shown).saturating_sub(width);
    if over > 0 {
        shown[0].1 = shown[0].1.saturating_sub(over).max(NAME_MIN);
    }
    let names: Vec<String> = columns.iter().map(|column| column.0.to_owned()).collect();
    let line = |row: &Vec<String>| {
        let cells = shown.iter().map(|(at, wide)| match columns[*at].2 {
            true => format!("{:>wide$}", row[*at]),
            false if row[*at].chars().count() > *wide => {
                format!("{}…", row[*at].chars().take(wide - 1).collect::<String>())
            }
            false => format!("{:wide$}", row[*at]),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    std::iter::once(&names).chain(rows).map(line).collect()
}

const LANES: [Column; 10] = [
    Column("LANE", 24, false),
    Column("STATE", 9, false),
    Column("WAITING", 8, true),
    Column("RUNNING", 8, true),
    Column("DELAYED", 8, true),
    Column("SUSPENDED", 9, true),
    Column("BLOCKED", 8, true),
    Column("OLDEST", 8, true),
    Column("DONE/S", 8, true),
    Column("FAILED/S", 8, true),
];
const WORKERS: [Column; 6] = [
    Column("WORKER", 32, false),
    Column("KIND OF", 20, false),
    Column("STATE", 9, false),
    Column("SLOTS", 5, true),
    Column("SINCE", 6, true),
    Column("LANES", 5, false),
];

fn lanes(shown: &Shown, rates: Option<&BTreeMap<Lane, Rate>>, now: i64, width: usize) -> Vec<String> {
    let name = |lane: &Value| (text(&lane["namespace"]), text(&lane["lane"]));
    let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let states: BTreeMap<Lane, String> =
        each(&shown.lanes["items"]).iter().map(|lane| (name(lane), text(&lane["state"]))).collect();
    let mut rows: BTreeMap<Lane, Value> =
        each(&shown.stats["lanes"]).iter().map(|lane| (name(lane), lane["counts"].clone())).collect();
    for lane in states.keys() {
        rows.entry(lane.clone()).or_default();
    }
    let mut lines = Vec::new();
    for (lane, counts) in rows {
        let of = |field: &str| counts[field].as_i64().unwrap_or(0);
        let blocked: i64 = counts["blocked"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_i64()).sum();
        let rate = |part: fn(&Rate) -> f64| match rates {
            Some(rates) => format!("{:.1}", rates.get(&lane).map_or(0.0, part)),
            None => "-".to_owned(),
        };
        let name = if lane.0 == "default" { lane.1.clone() } else { format!("{}/{}", lane.0, lane.1) };
        lines.push(vec![
            name,
            states.get(&lane).map_or("active", String::as_str).to_owned(),
            (of("eligible") + of("granted")).to_string(),
            of("active").to_string(),
            of("delayed").to_string(),
            of("suspended").to_string(),
            blocked.to_string(),
            span(counts["oldest_eligible_at"].as_i64().map(|at| now - at)),
            rate(|rate| rate.completed),
            rate(|rate| rate.failed),
        ]);
    }
    table(&LANES, &["SUSPENDED", "DELAYED", "STATE", "BLOCKED", "OLDEST"], &lines, width)
}

fn workers(workers: &Value, now: i64, width: usize) -> Vec<String> {
    let items = workers["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return vec!["no worker is registered; start one, e.g. `ff worker exec --lane L --kind K -- CMD`".to_owned()];
    }
    let mut rows = Vec::new();
    for worker in items {
        let lanes: Vec<String> = worker["lanes"].as_array().into_iter().flatten().map(text).collect();
        rows.push(vec![
            text(&worker["instance"]),
            text(&worker["worker_id"]),
            text(&worker["state"]),
            text(&worker["slots"]),
            span(worker["registered_at"].as_i64().map(|at| now - at)),
            lanes.join(","),
        ]);
    }
    let mut lines = table(&WORKERS, &["KIND OF", "SINCE"], &rows, width);
    if workers["next_cursor"].is_string() {
        lines.push("… more: `ff worker list`".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_shows_lanes_workers_and_rates() {
        let facts = json!({"version": "0.1.0", "store": {"kind": "embedded", "durability": "fsync"}});
        let counts = json!({"eligible": 12, "granted": 1, "active": 4, "delayed": 2, "suspended": 3,
            "blocked": {"waiting_for_quota": 5}, "oldest_eligible_at": 40_000});
        let stats = json!({"partitions": 8, "executions": 31, "flows": 2, "timers": 9, "outbox": 0, "stuck": 0,
            "workers": {"live": 1, "draining": 0, "slots": 4}, "lanes": [{"namespace": "default", "lane": "mail", "counts": counts}]});
        let lanes = json!({"items": [{"namespace": "acme", "lane": "bulk", "state": "paused"}]});
        let workers = json!({"items": [{"instance": "w-1", "worker_id": "mailer", "state": "live", "slots": 4, "registered_at": 0, "lanes": ["mail", "bulk"]}], "next_cursor": null});
        let rate = Rate { submitted: 3.0, completed: 2.25, failed: 0.5, retried: 0.0 };
        let rates = BTreeMap::from([(("default".to_owned(), "mail".to_owned()), rate)]);
        let shown = Shown { stats, lanes, workers };
        assert_eq!(
            joined(&frame("http://h:1", &facts, &shown, Some(&rates), 100_000, usize::MAX)),
            "\
FlowFabric 0.1.0 at http://h:1   embedded store, fsync   8 partitions
31 executions, 2 flows   9 timers, 0 in the outbox, 0 stuck   workers 1 live, 0 draining, 4 slots
per second: 3.0 submitted, 2.2 completed, 0.5 failed, 0.0 retried

LANE                      STATE       WAITING   RUNNING   DELAYED  SUSPENDED   BLOCKED    OLDEST    DONE/S  FAILED/S
acme/bulk                 paused            0         0         0          0         0         -       0.0       0.0
mail                      active           13         4         2          3         5       60s       2.2       0.5

WORKER                            KIND OF               STATE      SLOTS   SINCE  LANES
w-1                               mailer                live           4    100s  mail,bulk
"
        );
        assert_eq!(
            joined(&frame("http://h:1", &facts, &shown, Some(&rates), 100_000, 80)),
            "\
FlowFabric 0.1.0 at http://h:1   embedded store, fsync   8 partitions
31 executions, 2 flows   9 timers, 0 in the outbox, 0 stuck
workers 1 live, 0 draining, 4 slots
per second: 3.0 submitted, 2.2 completed, 0.5 failed, 0.0 retried

LANE       STATE   WAITING  RUNNING  DELAYED  BLOCKED  OLDEST  DONE/S  FAILED/S
acme/bulk  paused        0        0        0        0       -     0.0       0.0
mail       active       13        4        2        5     60s     2.2       0.5

WORKER  KIND OF  STATE  SLOTS  SINCE  LANES
w-1     mailer   live       4   100s  mail,bulk
"
        );
    }

    #[test]
    fn rates_are_seen_however_narrow_the_terminal_and_long_the_names() {
        let row = |name: &str| [name].into_iter().chain(["0"; 9]).map(str::to_owned).collect::<Vec<_>>();
        let lines = table(&LANES, &["SUSPENDED", "DELAYED", "STATE", "BLOCKED", "OLDEST"], &[row(&"x".repeat(40))], 80);
        assert!(lines[0].ends_with("WAITING  RUNNING  DONE/S  FAILED/S") && lines[0].len() <= 80, "{}", lines[0]);
    }

    #[test]
    fn rates_are_means_over_the_last_seconds() {
        let mut rates = Rates::default();
        let began = Instant::now();
        let line = br#"{"type":"execution.completed","namespace":"default","lane":"mail"}"#;
        let mut bytes = Vec::new();
        for second in 0..4 {
            for _ in 0..5 {
                bytes.extend_from_slice(line);
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(b"{\"type\":\"exec");
            rates.read(&mut bytes, began + Duration::from_secs(second));
            bytes.clear();
        }
        let lane = ("default".to_owned(), "mail".to_owned());
        assert_eq!(rates.means(began + Duration::from_secs(4))[&lane].completed, 5.0);
        assert_eq!(rates.means(began + Duration::from_secs(8))[&lane].completed, 2.5);
        assert!(rates.means(began + Duration::from_secs(30)).is_empty());
    }
}
