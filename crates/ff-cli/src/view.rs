//! Views: printed once or, with --watch, again whenever they change.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ff_api::Ask;
use ff_api::events::{EventsQuery, ReadEvents};
use ff_sdk::http::Lines;
use tokio::time::Instant;

use crate::away::{Patience, WAITING};
use crate::client::Api;
use crate::output::{Output, print};
use crate::terminal;

/// A view is looked at this often even when no event says that something has changed: ages grow by themselves.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Events that come close together are one change.
const GATHER: Duration = Duration::from_millis(100);

/// Whether a view goes on.
#[derive(Args, Clone, Copy, Debug)]
pub struct WatchArgs {
    /// Shows it again whenever it changes, until Ctrl-C: in place on a terminal, else one block per change.
    #[arg(long)]
    watch: bool,
}

/// What a look at the server gave.
#[derive(Debug, Default)]
pub struct View {
    /// For stdout, with a final newline.
    pub text: String,
    /// For stderr, e.g. how to get more.
    pub note: Option<String>,
    /// What it is about, where the text changes with every second that passes.
    pub about: Option<String>,
}

impl View {
    /// A view without a note.
    pub fn of(text: String) -> Self {
        Self { text, note: None, about: None }
    }

    /// An answer as it came.
    pub fn raw(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut text = String::from_utf8(bytes.to_vec())?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(Self::of(text))
    }

    /// A view of these lines.
    pub fn lines<I: IntoIterator<Item = String>>(lines: I) -> Self {
        let mut text = String::new();
        for line in lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        Self::of(text)
    }

    /// A view that is the same while this is, however old what it shows becomes.
    pub fn about(mut self, what: String) -> Self {
        self.about = Some(what);
        self
    }

    /// True when there is something new to see.
    fn differs(&self, shown: &View, live: bool) -> bool {
        match (&self.about, &shown.about) {
            (Some(now), Some(before)) if !live => now != before,
            _ => self.text != shown.text,
        }
    }

    /// Prints it.
    pub fn print(&self) -> anyhow::Result<()> {
        print(&self.text)?;
        if let Some(note) = &self.note {
            eprintln!("{note}");
        }
        Ok(())
    }
}

impl WatchArgs {
    /// True when the view goes on.
    pub fn is_on(self) -> bool {
        self.watch
    }

    /// Prints what `look` gives, once or on every change. `about` narrows the events that announce one.
    pub async fn show(
        self,
        api: &Api,
        output: Output,
        about: &EventsQuery,
        look: impl AsyncFn() -> anyhow::Result<View>,
    ) -> anyhow::Result<ExitCode> {
        if !self.watch {
            look().await?.print()?;
            return Ok(ExitCode::SUCCESS);
        }
        let live = terminal::is_live() && output == Output::Table;
        let mut pulse = Pulse::open(api, about).await;
        let mut shown: Option<View> = None;
        let mut patience = Patience::default();
        if live {
            print("\x1b[2J")?;
        }
        // Listens all the time: one made anew for each wait would miss a Ctrl-C between two of them.
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        loop {
            let view = match look().await {
                Ok(view) => view,
                Err(error) => {
                    let pause = patience.pause(error)?;
                    if patience.is_new() {
                        eprintln!("{WAITING}");
                        // What stands on the terminal is drawn anew when the server is back, over these words.
                        shown = shown.filter(|_| !live);
                    }
                    tokio::select! {
                        () = tokio::time::sleep(pause) => continue,
                        _ = &mut interrupted => return Ok(ExitCode::SUCCESS),
                    }
                }
            };
            patience.answered();
            if shown.as_ref().is_none_or(|shown| view.differs(shown, live)) {
                if live {
                    print(&terminal::redrawn(&view.text, terminal::size().1))?;
                } else {
                    if shown.is_some() && output == Output::Table {
                        print("\n")?;
                    }
                    view.print()?;
                }
                shown = Some(view);
            }
            pulse.keep_open(api, about).await;
            tokio::select! {
                () = pulse.wait(LOOK_EVERY) => {}
                _ = &mut interrupted => return Ok(ExitCode::SUCCESS),
            }
        }
    }
}

/// The events of these types.
pub fn types(types: &str) -> EventsQuery {
    EventsQuery { types: Some(types.to_owned()), ..EventsQuery::default() }
}

/// Says when something happened on the server, by its event feed.
pub struct Pulse {
    events: Option<Lines>,
    /// There is a feed, for us too.
    heard_of: bool,
}

impl Pulse {
    /// Listens from now on. Without a feed only time passes.
    pub async fn open(api: &Api, about: &EventsQuery) -> Self {
        let events = api.lines(&Ask::<ReadEvents>::by((), about.clone())).await.ok();
        Self { heard_of: events.is_some(), events }
    }

    /// Opens a feed that has ended anew, e.g. after the server was started again.
    pub async fn keep_open(&mut self, api: &Api, about: &EventsQuery) {
        if self.events.is_none() && self.heard_of {
            self.events = api.lines(&Ask::<ReadEvents>::by((), about.clone())).await.ok();
        }
    }

    /// Returns when something has happened, or after `at_most`.
    pub async fn wait(&mut self, at_most: Duration) {
        let until = Instant::now() + at_most;
        if self.heard(until).await {
            // Whatever follows at once belongs to the same change.
            let until = Instant::now() + GATHER;
            while self.heard(until).await {}
        }
    }

    /// True when an event came before `until`.
    async fn heard(&mut self, until: Instant) -> bool {
        loop {
            let Some(events) = &mut self.events else {
                tokio::time::sleep_until(until).await;
                return false;
            };
            match tokio::time::timeout_at(until, events.next()).await {
                Err(_) => return false,
                Ok(Ok(Some(_))) => return true,
                Ok(Ok(None) | Err(_)) => self.events = None,
            }
        }
    }
}
