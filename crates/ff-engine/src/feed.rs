//! The event feed: every partition's stream as one, from a durable cursor, filtered.
//!
//! Order is exact within a partition and close to exact over them. A cursor says up to which time every partition was
//! delivered, and where those are that have been delivered further.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ff_api::Problem;
use ff_core::error::{EngineError, ValidationKind};
use ff_core::types::{ExecutionId, FlowId, TimestampMs};
use ff_script::generated::{Event, ReadEvents, ReadEventsReply};
use ff_script::{Client, DecodeError, Error, HostError, Route, Wake};
use futures::stream::{self, StreamExt};

use crate::news::{Listener, News};

/// Events of one partition read at once, and about how many of all.
const BATCH: usize = 256;
const BATCH_OF_ALL: usize = 1_024;
const AT_ONCE: usize = 32;
/// Whoever writes hears only after a while that somebody listens, and announces from then on: so long partitions are looked at
/// every second, later this often in case something was not heard.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_LATER: Duration = Duration::from_secs(10);
const LOOKS_AT_FIRST: u32 = 20;
/// Events are kept this long; an older cursor has lost some.
const KEPT_MS: i64 = 7 * 24 * 3600 * 1000;

/// The place of an event in its partition's stream: its entry, and its number there. The last one of an entry stands for all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    ms: u64,
    seq: u64,
    inside: u32,
}

/// The number of an entry's last event.
const WHOLE: u32 = u32::MAX;

impl Place {
    const fn entry(ms: u64, seq: u64) -> Self {
        Self { ms, seq, inside: WHOLE }
    }

    fn parse(id: &str) -> Option<Self> {
        let (entry, inside) = match id.split_once('.') {
            Some((entry, inside)) => (entry, inside.parse().ok()?),
            None => (id, WHOLE),
        };
        let (ms, seq) = entry.split_once('-')?;
        Some(Self { ms: ms.parse().ok()?, seq: seq.parse().ok()?, inside })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)?;
        if self.inside == WHOLE { Ok(()) } else { write!(f, ".{}", self.inside) }
    }
}

/// Where a reader is in the feed: opaque, URL-safe text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Everything up to this millisecond was delivered, in every partition.
    all_to_ms: u64,
    /// Partitions delivered beyond it.
    ahead: BTreeMap<u32, Place>,
}

impl Cursor {
    /// Before the oldest event kept.
    #[must_use]
    pub fn start() -> Self {
        Self { all_to_ms: 0, ahead: BTreeMap::new() }
    }

    /// After everything up to this time.
    #[must_use]
    pub fn at(time: TimestampMs) -> Self {
        Self { all_to_ms: u64::try_from(time.as_millis()).unwrap_or(0), ahead: BTreeMap::new() }
    }

    fn of(&self, partition: u32) -> Option<Place> {
        let floor = (self.all_to_ms > 0).then_some(Place::entry(self.all_to_ms, u64::MAX));
        self.ahead.get(&partition).copied().max(floor)
    }

    fn deliver(&mut self, partition: u32, place: Place) {
        if self.of(partition).is_none_or(|known| known < place) {
            self.ahead.insert(partition, place);
        }
    }

    /// Every partition was read at these times by its own clock: what comes later lies behind them.
    fn raise(&mut self, all_to_ms: u64) {
        if all_to_ms > self.all_to_ms {
            self.all_to_ms = all_to_ms;
            self.ahead.retain(|_, place| place.ms > all_to_ms);
        }
    }
}

fn put(out: &mut Vec<u8>, mut n: u64) {
    loop {
        let low = u8::try_from(n & 0x7f).expect("seven bits");
        n >>= 7;
        if n == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(first & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        n |= part << shift;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// The version of what a cursor says.
const VERSION: u8 = 2;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![VERSION];
        put(&mut bytes, self.all_to_ms);
        for (partition, place) in &self.ahead {
            put(&mut bytes, u64::from(*partition));
            put(&mut bytes, place.ms - self.all_to_ms);
            put(&mut bytes, place.seq);
            put(&mut bytes, u64::from(place.inside.wrapping_add(1)));
        }
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Cursor {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let read = || {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let (version, mut rest) = bytes.split_first()?;
            if *version != VERSION {
                return None;
            }
            let all_to_ms = take(&mut rest)?;
            let mut ahead = BTreeMap::new();
            while !rest.is_empty() {
                let partition = u32::try_from(take(&mut rest)?).ok()?;
                let ms = all_to_ms.checked_add(take(&mut rest)?)?;
                let (seq, inside) = (take(&mut rest)?, u32::try_from(take(&mut rest)?).ok()?);
                ahead.insert(partition, Place { ms, seq, inside: inside.wrapping_sub(1) });
            }
            Some(Self { all_to_ms, ahead })
        };
        read().ok_or_else(|| EngineError::Validation {
            kind: ValidationKind::InvalidArgument { field: "after".to_owned() },
            detail: "is not a cursor of this feed".to_owned(),
        })
    }
}

/// Which events a reader wants; everything given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedFilter {
    /// Of this namespace.
    pub namespace: Option<String>,
    /// Of this lane.
    pub lane: Option<String>,
    /// Of executions of this kind.
    pub kind: Option<String>,
    /// Of executions with this tag and value.
    pub tag: Option<(String, String)>,
    /// Of these types; a type that ends in `.` means all that begin with it. Empty means all.
    pub types: Vec<String>,
    /// Of this execution.
    pub execution_id: Option<ExecutionId>,
    /// Of this flow.
    pub flow_id: Option<FlowId>,
    /// Of this worker's instance.
    pub worker: Option<String>,
}

impl FeedFilter {
    fn matches(&self, event: &Event) -> bool {
        let same = |wanted: &Option<String>, got: &Option<String>| wanted.is_none() || wanted == got;
        same(&self.namespace, &event.namespace)
            && same(&self.lane, &event.lane)
            && same(&self.kind, &event.kind)
            && same(&self.worker, &event.worker_instance)
            && self.execution_id.is_none_or(|id| event.execution_id == Some(id))
            && self.flow_id.is_none_or(|id| event.flow_id == Some(id))
            && self.tag.as_ref().is_none_or(|(key, value)| event.tags.get(key) == Some(value))
            && (self.types.is_empty()
                || self.types.iter().any(|wanted| {
                    *wanted == event.r#type || (wanted.ends_with('.') && event.r#type.starts_with(wanted))
                }))
    }
}

/// An event and the cursor behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The event.
    pub event: Event,
    /// Where a reader that has seen it goes on.
    pub cursor: Cursor,
}

/// Why a feed cannot go on.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum FeedError {
    /// Events behind the cursor are no longer kept.
    #[error("the cursor is older than what is kept; go on from {oldest}")]
    CursorExpired {
        /// The oldest cursor that loses nothing.
        oldest: Cursor,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<FeedError> for Problem {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::CursorExpired { oldest } => {
                let detail =
                    "events behind this cursor are no longer kept; go on from the oldest cursor or from `start`";
                Self::new(410, "cursor_expired", detail).fact("oldest", oldest)
            }
            FeedError::Store(error) => error.into(),
        }
    }
}

/// How many readers of events this process has; while there is one, its calls announce events, and the server's record
/// asks the other servers to do the same.
#[derive(Clone, Debug, Default)]
pub struct Readers(Arc<AtomicUsize>);

impl Readers {
    /// True while someone reads.
    #[must_use]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// One reader, counted until it is dropped.
struct Counted(Readers);

impl Counted {
    fn new(readers: Readers) -> Self {
        readers.0.fetch_add(1, Ordering::Relaxed);
        Self(readers)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reader of the feed.
pub struct Feed {
    client: Client,
    filter: FeedFilter,
    cursor: Cursor,
    news: Listener,
    /// Partitions to read before waiting.
    unread: Vec<Route>,
    /// When all of them are read again.
    look_at: tokio::time::Instant,
    looks: u32,
    _counted: Counted,
}

/// Fleet events are filed under a number no partition of executions has; budgets, quotas and schedules are numbered behind it. A cursor
/// made before these were read says nothing of them but the time, and goes on from there.
const FLEET: u32 = 0xffff;
const BUDGETS: u32 = 0x1_0000;
const QUOTAS: u32 = 0x2_0000;
const SCHEDULES: u32 = 0x3_0000;

fn number(route: Route) -> u32 {
    match route {
        Route::Execution(n) => u32::from(n),
        Route::Budget(n) => BUDGETS | u32::from(n),
        Route::Quota(n) => QUOTAS | u32::from(n),
        Route::Schedule(n) => SCHEDULES | u32::from(n),
        Route::Fleet | Route::Config => FLEET,
    }
}

impl Feed {
    /// Reads on from a cursor.
    #[must_use]
    pub fn new(client: Client, readers: Readers, filter: FeedFilter, cursor: Cursor) -> Self {
        let news = Listener::new(client.host().as_ref());
        let counted = Counted::new(readers);
        client.host().set_listening(true);
        let unread = routes(&client);
        Self {
            client,
            filter,
            cursor,
            news,
            unread,
            look_at: tokio::time::Instant::now() + LOOK_EVERY,
            looks: 0,
            _counted: counted,
        }
    }

    /// Where this reader is.
    #[must_use]
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// True when every partition was read to its end since the last look.
    pub fn is_caught_up(&self) -> bool {
        self.unread.is_empty()
    }

    /// The next matching events; waits until there are some or `timeout` is over.
    pub async fn next(&mut self, timeout: Duration) -> Result<Vec<Delivered>, FeedError> {
        let until = tokio::time::Instant::now() + timeout;
        loop {
            if tokio::time::Instant::now() >= self.look_at {
                self.look_everywhere();
            }
            let delivered = self.read().await?;
            if !delivered.is_empty() {
                return Ok(delivered);
            }
            if tokio::time::Instant::now() >= until {
                return Ok(Vec::new());
            }
            if self.unread.is_empty() {
                tokio::select! {
                    () = tokio::time::sleep_until(self.look_at.min(until)) => {}
                    heard = self.news.next() => match heard {
                        Some(heard) => self.hear(heard),
                        None => return Err(Error::Host(HostError::Closed).into()),
                    },
                }
            }
        }
    }

    fn look_everywhere(&mut self) {
        self.unread = routes(&self.client);
        self.looks = self.looks.saturating_add(1);
        let pause = if self.looks < LOOKS_AT_FIRST { LOOK_EVERY } else { LOOK_LATER };
        self.look_at = tokio::time::Instant::now() + pause;
    }

    fn hear(&mut self, heard: Vec<News>) {
        for item in heard {
            match item {
                News::Said(route, Wake::Events) => {
                    if !self.unread.contains(&route) {
                        self.unread.push(route);
                    }
                }
                News::Said(..) => {}
                News::Lost(_) | News::LostAny => self.look_everywhere(),
            }
        }
    }

    /// Reads every unread partition once and delivers what it found in the order of time.
    async fn read(&mut self) -> Result<Vec<Delivered>, FeedError> {
        if self.unread.is_empty() {
            return Ok(Vec::new());
        }
        let reading = std::mem::take(&mut self.unread);
        let all = reading.len() == routes(&self.client).len();
        let limit = (BATCH_OF_ALL / reading.len()).clamp(4, BATCH);
        let (client, cursor) = (&self.client, &self.cursor);
        let pages: Vec<(Route, Result<ReadEventsReply, Error>)> = stream::iter(reading)
            .map(|route| async move {
                let after = cursor.of(number(route)).map(|place| place.to_string());
                (
                    route,
                    client
                        .call(route, &ReadEvents { after, from_ms: None, limit: i64::try_from(limit).unwrap_or(4) })
                        .await,
                )
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut found: Vec<(Place, u32, Event)> = Vec::new();
        let mut complete_to = u64::MAX;
        for (route, page) in pages {
            let ReadEventsReply::Events { entries, oldest, latest, full, now } = page?;
            self.check_age(route, oldest.as_deref(), full, now)?;
            let after = self.cursor.of(number(route)).map(|place| place.to_string());
            let unreadable =
                |error: DecodeError| Error::Decode { function: "ff_read_events", detail: error.to_string() };
            let events = Event::read_all(&entries, after.as_deref(), limit).map_err(unreadable)?;
            let more = events.last().is_some_and(|last| Some(&last.id) != latest.as_ref());
            for event in events {
                let place = Place::parse(&event.id).ok_or_else(|| Error::Decode {
                    function: "ff_read_events",
                    detail: format!("{} is not an event id", event.id),
                })?;
                complete_to = if more { complete_to.min(place.ms.saturating_sub(1)) } else { complete_to };
                found.push((place, number(route), event));
            }
            if more {
                self.unread.push(route);
            } else {
                // What this partition appends later has an id of its own time or later.
                complete_to = complete_to.min(u64::try_from(now).unwrap_or(0).saturating_sub(1));
            }
        }
        found.sort_by_key(|(place, partition, _)| (*place, *partition));
        let mut delivered = Vec::new();
        for (place, partition, event) in found {
            self.cursor.deliver(partition, place);
            if self.filter.matches(&event) {
                delivered.push(Delivered { event, cursor: self.cursor.clone() });
            }
        }
        if all && complete_to != u64::MAX {
            self.cursor.raise(complete_to);
        }
        Ok(delivered)
    }

    fn check_age(&self, route: Route, oldest: Option<&str>, full: bool, now: i64) -> Result<(), FeedError> {
        let (Some(place), Some(oldest)) = (self.cursor.of(number(route)), oldest.and_then(Place::parse)) else {
            return Ok(());
        };
        let oldest = Place { inside: 0, ..oldest };
        let too_old = i64::try_from(place.ms).unwrap_or(i64::MAX) < now - KEPT_MS;
        if oldest > place && (full || too_old) {
            return Err(FeedError::CursorExpired { oldest: Cursor::start() });
        }
        Ok(())
    }
}

fn routes(client: &Client) -> Vec<Route> {
    let admission = client.budget_routes().chain(client.quota_routes());
    client.execution_routes().chain(admission).chain(client.schedule_routes()).chain([Route::Fleet]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text() {
        let mut cursor = Cursor::at(TimestampMs(1_794_781_129_219));
        assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        cursor.deliver(3, Place::entry(1_794_781_129_300, 0));
        cursor.deliver(FLEET, Place::entry(1_794_781_129_219, 0));
        cursor.deliver(255, Place { inside: 5, ..Place::entry(1_794_781_130_000, 17) });
        cursor.deliver(number(Route::Budget(3)), Place::entry(1_794_781_130_001, 0));
        cursor.deliver(number(Route::Quota(3)), Place::entry(1_794_781_130_002, 0));
        assert_eq!(cursor.ahead.len(), 4, "a place behind the floor is not ahead");
        assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        assert!(cursor.to_string().chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)));
    }

    #[test]
    fn a_place_is_an_entry_or_inside_of_one() {
        let whole = Place::parse("17-3").unwrap();
        let inside = Place::parse("17-3.2").unwrap();
        assert!(inside < whole && inside > Place::parse("17-3.1").unwrap() && inside > Place::parse("17-2").unwrap());
        assert_eq!((whole.to_string(), inside.to_string()), ("17-3".to_owned(), "17-3.2".to_owned()));
    }

    #[test]
    fn raising_the_floor_forgets_who_was_ahead_of_the_old_one() {
        let mut cursor = Cursor::start();
        cursor.deliver(1, Place::entry(50, 0));
        cursor.deliver(2, Place::entry(70, 3));
        cursor.raise(60);
        assert_eq!(cursor.of(1), Some(Place::entry(60, u64::MAX)));
        assert_eq!(cursor.of(2), Some(Place::entry(70, 3)));
        cursor.raise(10);
        assert_eq!(cursor.all_to_ms, 60);
    }

    #[test]
    fn other_text_is_refused_by_name() {
        for text in ["", "now", "AA", "AQ", "////", "Af////////////8B"] {
            let error = text.parse::<Cursor>().unwrap_err();
            assert_eq!(error.code(), "invalid_argument", "{text}");
        }
    }
}
