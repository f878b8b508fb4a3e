//! What this process does: requests, streams, refusals, calls of the store.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::http::Method;
use ff_script::Library;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric as Registered, Registry};

use super::sheet::Sheet;
use super::table::{self as t, Metric};

/// Bounds of requests and calls, in seconds.
const BOUNDS: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];
/// A client that left before its answer.
const LEFT: u16 = 499;
/// Refusals of a lease that is not the current one.
const FENCE_CODES: [&str; 3] = ["stale_lease", "lease_expired", "lease_revoked"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    function: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabels {
    mode: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

fn histograms<L: Clone + std::hash::Hash + Eq>() -> Histograms<L> {
    Family::new_with_constructor(|| Histogram::new(BOUNDS))
}

/// The metrics of this process.
#[derive(Debug)]
pub struct Process {
    registry: Registry,
    requests: Family<AnswerLabels, Counter>,
    request_seconds: Histograms<RouteLabels>,
    connections: Gauge,
    turned_away: Counter,
    in_flight: Gauge,
    long_polls: Gauge,
    streams: Gauge,
    refusals: Family<CodeLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    call_seconds: Histograms<ModeLabels>,
}

impl Process {
    /// A process that begins now.
    pub fn begin() -> Arc<Self> {
        let mut process = Self {
            registry: Registry::default(),
            requests: Family::default(),
            request_seconds: histograms(),
            connections: Gauge::default(),
            turned_away: Counter::default(),
            in_flight: Gauge::default(),
            long_polls: Gauge::default(),
            streams: Gauge::default(),
            refusals: Family::default(),
            calls: Family::default(),
            call_seconds: histograms(),
        };
        for code in FENCE_CODES {
            drop(process.refusals.get_or_create(&CodeLabels { code }));
        }
        let registry = &mut process.registry;
        register(registry, &t::HTTP_REQUESTS, process.requests.clone());
        register(registry, &t::HTTP_SECONDS, process.request_seconds.clone());
        register(registry, &t::HTTP_CONNECTIONS, process.connections.clone());
        register(registry, &t::HTTP_TURNED_AWAY, process.turned_away.clone());
        register(registry, &t::HTTP_IN_FLIGHT, process.in_flight.clone());
        register(registry, &t::LONG_POLLS, process.long_polls.clone());
        register(registry, &t::STREAMS, process.streams.clone());
        register(registry, &t::FENCE_REFUSALS, process.refusals.clone());
        register(registry, &t::STORE_CALLS, process.calls.clone());
        register(registry, &t::STORE_CALL_SECONDS, process.call_seconds.clone());
        registry.register_collector(Box::new(Vitals {
            began: Instant::now(),
            at: SystemTime::now(),
            library: Library::shipped().number,
        }));
        Arc::new(process)
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// A request has come; it is counted when it is answered, or when its client leaves.
    pub fn request(self: &Arc<Self>, method: &Method, route: Option<&str>) -> Answering {
        self.in_flight.inc();
        let method = match method.as_str() {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            "OPTIONS" => "OPTIONS",
            _ => "other",
        };
        // What nobody serves has no name of its own: anybody may ask for anything.
        let route = route.unwrap_or("none").to_owned();
        Answering {
            process: Arc::clone(self),
            labels: RouteLabels { method, route },
            began: Instant::now(),
            status: LEFT,
        }
    }

    /// A connection, open until the guard goes.
    pub fn connection(&self) -> Held {
        Held::new(&self.connections)
    }

    /// A connection found no room.
    pub fn turned_away(&self) {
        self.turned_away.inc();
    }

    /// A long poll, open until the guard goes.
    pub fn long_poll(&self) -> Held {
        Held::new(&self.long_polls)
    }

    /// A stream, read until the guard goes.
    pub fn stream(&self) -> Held {
        Held::new(&self.streams)
    }

    /// A refusal was answered.
    pub fn refused(&self, code: &str) {
        if let Some(code) = FENCE_CODES.into_iter().find(|known| *known == code) {
            self.refusals.get_or_create(&CodeLabels { code }).inc();
        }
    }

    /// A function of the store was called.
    pub fn called(&self, function: &'static str, read_only: bool, answered: bool, took: Duration) {
        let result = if answered { "ok" } else { "failed" };
        self.calls.get_or_create(&CallLabels { function, result }).inc();
        let mode = if read_only { "read" } else { "write" };
        self.call_seconds.get_or_create(&ModeLabels { mode }).observe(took.as_secs_f64());
    }
}

fn register(registry: &mut Registry, metric: &Metric, counted: impl Registered) {
    registry.register(metric.family, metric.help, counted);
}

/// A request on its way to its answer.
pub struct Answering {
    process: Arc<Process>,
    labels: RouteLabels,
    began: Instant,
    status: u16,
}

impl Answering {
    /// The answer begins; how long it took.
    pub fn answered(mut self, status: u16) -> Duration {
        self.status = status;
        self.began.elapsed()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let Self { process, labels, began, status } = self;
        process.in_flight.dec();
        process.request_seconds.get_or_create(labels).observe(began.elapsed().as_secs_f64());
        let answer = AnswerLabels { method: labels.method, route: std::mem::take(&mut labels.route), status: *status };
        process.requests.get_or_create(&answer).inc();
    }
}

/// Counts as open until it goes.
pub struct Held(Gauge);

impl Held {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What the process is, and how it is.
#[derive(Debug)]
struct Vitals {
    began: Instant,
    at: SystemTime,
    library: u32,
}

impl Collector for Vitals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet(&mut encoder);
        sheet.gauge(&t::BUILD, [([env!("CARGO_PKG_VERSION").to_owned(), self.library.to_string()], 1)])?;
        let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        sheet.seconds(&t::START_TIME, [([], ms(since))])?;
        sheet.seconds(&t::UPTIME, [([], ms(self.began.elapsed()))])?;
        sheet.gauge(&t::MEMORY, resident_bytes().map(|bytes| ([], bytes)))
    }
}

/// The memory this process occupies, where the system says it.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    kilobytes.trim().parse::<i64>().ok().map(|kb| kb * 1_024)
}
