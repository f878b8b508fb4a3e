//! `ff top`: lanes, workers and rates, live in the terminal.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::client::{Api, ServerArgs, now_ms, print, span, text};
use crate::terminal;

/// Rates are means over so many seconds.
const WINDOW: usize = 10;
/// How many workers are shown.
const WORKERS_MAX: usize = 100;

/// Shows lanes (waiting, running, delayed, oldest), workers and rates, live until Ctrl-C.
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
    /// Draws until Ctrl-C; off a terminal, frame after frame.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let facts = api.get("/v1/capabilities", &[]).await?.accepted()?.json()?;
        let at = self.server.url();
        if self.once {
            let shown = look(&api).await?;
            print(&joined(&frame(at, &facts, &shown, None, now_ms())))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut events = api.lines("/v1/events", &[("types", "execution.".to_owned())]).await?;
        let mut rates = Rates::default();
        let live = terminal::is_live();
        let _screen = live.then(Screen::enter).transpose()?;
        let mut tick = tokio::time::interval(Duration::from_millis(self.every_ms));
        let (mut bytes, mut listening) = (Vec::new(), true);
        // Listens all the time: one made anew for each wait would miss a Ctrl-C between two of them.
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        loop {
            tokio::select! {
                _ = &mut interrupted => return Ok(ExitCode::SUCCESS),
                chunk = events.chunk(), if listening => match chunk {
                    Ok(Some(chunk)) => {
                        bytes.extend_from_slice(&chunk);
                        rates.read(&mut bytes, Instant::now());
                    }
                    // The next look says what is the matter.
                    Ok(None) | Err(_) => listening = false,
                },
                _ = tick.tick() => {
                    let shown = look(&api).await?;
                    let lines = frame(at, &facts, &shown, Some(&rates.means(Instant::now())), now_ms());
                    let (columns, rows) = terminal::size();
                    if live {
                        let cut: Vec<String> = lines.iter().map(|line| line.chars().take(columns).collect()).collect();
                        print(&terminal::redrawn(&joined(&cut), rows))?;
                    } else {
                        print(&format!("{}\n", joined(&lines)))?;
                    }
                    if !listening {
                        events = api.lines("/v1/events", &[("types", "execution.".to_owned())]).await?;
                        (listening, rates) = (true, Rates::default());
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

/// The lines of one frame; without rates when nothing was counted yet.
fn frame(at: &str, facts: &Value, shown: &Shown, rates: Option<&BTreeMap<Lane, Rate>>, now: i64) -> Vec<String> {
    let (stats, store) = (&shown.stats, &facts["store"]);
    let mut lines = vec![format!(
        "FlowFabric {} at {at}   {} store, {}   {} partitions",
        text(&facts["version"]),
        text(&store["kind"]),
        text(&store["durability"]),
        text(&stats["partitions"])
    )];
    let of = |name: &str| text(&stats[name]);
    lines.push(format!(
        "{} executions, {} flows   {} timers, {} in the outbox, {} stuck   workers {} live, {} draining, {} slots",
        of("executions"),
        of("flows"),
        of("timers"),
        of("outbox"),
        of("stuck"),
        text(&stats["workers"]["live"]),
        text(&stats["workers"]["draining"]),
        text(&stats["workers"]["slots"])
    ));
    if let Some(rates) = rates {
        let sum = |part: fn(&Rate) -> f64| rates.values().map(part).sum::<f64>();
        lines.push(format!(
            "per second: {:.1} submitted, {:.1} completed, {:.1} failed, {:.1} retried",
            sum(|rate| rate.submitted),
            sum(|rate| rate.completed),
            sum(|rate| rate.failed),
            sum(|rate| rate.retried)
        ));
    }
    lines.push(String::new());
    lines.extend(lanes(shown, rates, now));
    lines.push(String::new());
    lines.extend(workers(&shown.workers, now));
    lines
}

fn lanes(shown: &Shown, rates: Option<&BTreeMap<Lane, Rate>>, now: i64) -> Vec<String> {
    let name = |lane: &Value| (text(&lane["namespace"]), text(&lane["lane"]));
    let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let states: BTreeMap<Lane, String> =
        each(&shown.lanes["items"]).iter().map(|lane| (name(lane), text(&lane["state"]))).collect();
    let mut rows: BTreeMap<Lane, Value> =
        each(&shown.stats["lanes"]).iter().map(|lane| (name(lane), lane["counts"].clone())).collect();
    for lane in states.keys() {
        rows.entry(lane.clone()).or_default();
    }
    let mut lines = vec![format!(
        "{:24}  {:9}  {:>8}  {:>8}  {:>8}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}",
        "LANE", "STATE", "WAITING", "RUNNING", "DELAYED", "SUSPENDED", "BLOCKED", "OLDEST", "DONE/S", "FAILED/S"
    )];
    for (lane, counts) in rows {
        let of = |field: &str| counts[field].as_i64().unwrap_or(0);
        let blocked: i64 = counts["blocked"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_i64()).sum();
        let rate = |part: fn(&Rate) -> f64| match rates {
            Some(rates) => format!("{:.1}", rates.get(&lane).map_or(0.0, part)),
            None => "-".to_owned(),
        };
        let shown = if lane.0 == "default" { lane.1.clone() } else { format!("{}/{}", lane.0, lane.1) };
        lines.push(format!(
            "{shown:24}  {:9}  {:>8}  {:>8}  {:>8}  {:>9}  {blocked:>8}  {:>8}  {:>8}  {:>8}",
            states.get(&lane).map_or("active", String::as_str),
            of("eligible") + of("granted"),
            of("active"),
            of("delayed"),
            of("suspended"),
            span(counts["oldest_eligible_at"].as_i64().map(|at| now - at)),
            rate(|rate| rate.completed),
            rate(|rate| rate.failed)
        ));
    }
    lines
}

fn workers(workers: &Value, now: i64) -> Vec<String> {
    let items = workers["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return vec!["no worker is registered; start one, e.g. `ff worker exec --lane L --kind K -- CMD`".to_owned()];
    }
    let mut lines =
        vec![format!("{:32}  {:20}  {:9}  {:>5}  {:>6}  {}", "WORKER", "KIND OF", "STATE", "SLOTS", "SINCE", "LANES")];
    for worker in items {
        let lanes: Vec<String> = worker["lanes"].as_array().into_iter().flatten().map(text).collect();
        lines.push(format!(
            "{:32}  {:20}  {:9}  {:>5}  {:>6}  {}",
            text(&worker["instance"]),
            text(&worker["worker_id"]),
            text(&worker["state"]),
            text(&worker["slots"]),
            span(worker["registered_at"].as_i64().map(|at| now - at)),
            lanes.join(",")
        ));
    }
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
            joined(&frame("http://h:1", &facts, &shown, Some(&rates), 100_000)),
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
