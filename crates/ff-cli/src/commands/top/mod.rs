//! `ff top`: lanes, workers and rates, live in the terminal.

mod frame;
mod rates;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ff_api::events::{Event, ReadEvents};
use ff_api::server::{GetCapabilities, GetStats};
use ff_api::workers::ListWorkers;
use ff_api::{Ask, PageQuery};
use tokio::time::{Instant, MissedTickBehavior};

use super::lane::rows;
use crate::away::{Patience, WAITING};
use crate::client::{Api, ServerArgs, item};
use crate::output::print;
use crate::terminal::{self, Keys};
use crate::times::{duration, now_ms};
use crate::view::types;
use frame::{About, Place, Room, Shown, frame};
use rates::Rates;

/// How many workers are shown.
const WORKERS_MAX: i64 = 1_000;
/// How often it may be drawn.
const EVERY: std::ops::RangeInclusive<i64> = 100..=60_000;

/// Shows lanes (waiting, running, delayed, oldest), workers and rates, live until q or Ctrl-C. s sorts, arrows and space move.
#[derive(Args)]
#[command(after_help = "Example:
  ff top
  ff top --once")]
pub struct Top {
    /// Prints one frame and ends.
    #[arg(long)]
    once: bool,
    /// How often it is drawn, 100ms to 1m.
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = every)]
    every: i64,
    #[command(flatten)]
    server: ServerArgs,
}

fn every(text: &str) -> Result<i64, String> {
    duration(text).and_then(|ms| if EVERY.contains(&ms) { Ok(ms) } else { Err("it must be 100ms to 1m".to_owned()) })
}

impl Top {
    /// Draws until q or Ctrl-C; off a terminal, frame after frame.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let facts = api.ask(&Ask::<GetCapabilities>::at(())).await?.value;
        let url = self.server.url();
        let mut place = Place::default();
        if self.once {
            let shown = look(&api).await?;
            let columns = terminal::is_live().then(|| terminal::size().0);
            let about = About { url, facts: &facts, rates: None, now: now_ms() };
            print(&joined(&frame(&about, &shown, &mut place, Room { columns, rows: None })))?;
            return Ok(ExitCode::SUCCESS);
        }
        let listen = Ask::<ReadEvents>::by((), types("execution."));
        let mut events = Some(api.lines(&listen).await?);
        let (mut rates, mut patience) = (Rates::default(), Patience::default());
        patience.answered();
        let live = terminal::is_live();
        let _screen = live.then(Screen::enter).transpose()?;
        let mut keys = Keys::listen(live);
        let mut tick = tokio::time::interval(Duration::from_millis(self.every.unsigned_abs()));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut shown, mut away): (Option<Shown>, bool) = (None, false);
        // Listens all the time: one made anew for each wait would miss a Ctrl-C between two of them.
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        loop {
            let next_event = async {
                match &mut events {
                    Some(events) => events.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = &mut interrupted => return Ok(ExitCode::SUCCESS),
                line = next_event => {
                    match line {
                        Ok(Some(line)) => rates.count(&item::<Event>(&line)?, Instant::now()),
                        // The server stops; it is listened to again when it is back.
                        Ok(None) | Err(_) => events = None,
                    }
                    continue;
                }
                key = keys.next() => if !place.press(key, terminal::size().1) {
                    return Ok(ExitCode::SUCCESS);
                },
                _ = tick.tick() => match look(&api).await {
                    Ok(now) => {
                        patience.answered();
                        (shown, away) = (Some(now), false);
                    }
                    Err(error) => {
                        let pause = patience.pause(error)?;
                        away = true;
                        if patience.is_new() && !live {
                            eprintln!("{WAITING}");
                        }
                        tick.reset_after(pause);
                    }
                },
            }
            if events.is_none()
                && !away
                && let Ok(opened) = api.lines(&listen).await
            {
                (events, rates) = (Some(opened), Rates::default());
            }
            let Some(shown) = &shown else { continue };
            let (columns, rows) = terminal::size();
            let room = if live { Room { columns: Some(columns), rows: Some(rows) } } else { Room::default() };
            let means = rates.means(Instant::now());
            let about = About { url, facts: &facts, rates: Some(&means), now: now_ms() };
            let mut lines = frame(&about, shown, &mut place, room);
            if live {
                if away {
                    lines.splice(..1, [WAITING.to_owned()]);
                }
                let cut: Vec<String> = lines.iter().map(|line| line.chars().take(columns).collect()).collect();
                print(&terminal::redrawn(&joined(&cut), rows))?;
            } else if !away {
                print(&format!("{}\n", joined(&lines)))?;
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

async fn look(api: &Api) -> anyhow::Result<Shown> {
    let stats = api.ask(&Ask::<GetStats>::at(())).await?.value;
    let rows = rows::rows(rows::defined(api, None).await?, &stats, None);
    let query = PageQuery { limit: Some(WORKERS_MAX), cursor: None };
    let workers = api.ask(&Ask::<ListWorkers>::by((), query)).await?.value;
    Ok(Shown { stats, rows, more_workers: workers.next_cursor.is_some(), workers: workers.items })
}
