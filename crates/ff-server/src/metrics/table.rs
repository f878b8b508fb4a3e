//! Every metric, declared once: its name, what it measures, and by what it is told apart.

/// A metric of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name without the suffix of counters.
    pub family: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// Who says it.
    pub source: Source,
    /// The labels that tell its numbers apart.
    pub labels: &'static [&'static str],
    /// What it measures, in a sentence without its final dot.
    pub help: &'static str,
}

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// How many fell under which bound.
    Histogram,
}

/// Who says a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The store: every server says the same.
    Store,
    /// The process: every server says its own.
    Process,
}

impl Metric {
    /// Its name as queries have it.
    #[must_use]
    pub fn name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.family),
            Kind::Gauge | Kind::Histogram => self.family.to_owned(),
        }
    }
}

macro_rules! metrics {
    ($($name:ident = $source:ident $kind:ident $family:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $name: Metric = Metric {
                family: $family,
                kind: Kind::$kind,
                source: Source::$source,
                labels: &[$($label),*],
                help: $help,
            };
        )*
        /// All of them, in the order of the page.
        pub const METRICS: &[Metric] = &[$($name),*];
    };
}

metrics! {
    // What happened, from the event history.
    SUBMITTED = Store Counter "ff_executions_submitted" ["namespace", "lane"] "Executions submitted";
    STARTED = Store Counter "ff_executions_started" ["namespace", "lane", "type"] "Leases given, by what the attempt is: initial, retry, reclaim or replay, or a continuation of one that had been set aside";
    FINISHED = Store Counter "ff_executions_finished" ["namespace", "lane", "outcome"] "Executions that ended: success, failed, cancelled, expired or skipped";
    RETRIED = Store Counter "ff_executions_retried" ["namespace", "lane"] "Attempts that failed or timed out and are tried again";
    SUSPENDED = Store Counter "ff_executions_suspended" ["namespace", "lane", "reason"] "Executions set aside until a signal comes";
    RESUMED = Store Counter "ff_executions_resumed" ["namespace", "lane"] "Executions that may go on after they had been set aside";
    BLOCKED = Store Counter "ff_executions_blocked" ["namespace", "lane", "reason"] "Executions that came to wait for a worker, a quota, a budget or others";
    REPLAYED = Store Counter "ff_executions_replayed" ["namespace", "lane"] "Ended executions that were put to run again";
    LEASES_EXPIRED = Store Counter "ff_lease_expiries" ["namespace", "lane"] "Leases that ran out under a worker";
    LEASES_REVOKED = Store Counter "ff_lease_revocations" ["namespace", "lane"] "Leases that an operator took away";
    FLOWS_CREATED = Store Counter "ff_flows_created" ["namespace"] "Flows created";
    FLOWS_FINISHED = Store Counter "ff_flows_finished" ["namespace", "outcome"] "Flows that ended: completed, failed or cancelled";
    SCHEDULE_FIRINGS = Store Counter "ff_schedule_firings" ["namespace", "outcome"] "Firings of schedules that were submitted (fired), skipped or missed; times that are missed in one go count once";
    EVENTS = Store Counter "ff_events" ["type"] "Events of the history by their type";
    WAITED = Store Histogram "ff_schedule_to_start_seconds" ["namespace", "lane"] "How long executions that could run stood in line until a worker took them";
    RAN = Store Histogram "ff_execution_run_seconds" ["namespace", "lane"] "How long executions ran under one lease";
    TOOK = Store Histogram "ff_execution_duration_seconds" ["namespace", "lane"] "How long executions took from their submission to their end";
    HISTORY_GAPS = Store Counter "ff_history_gaps" [] "How often a partition dropped events before they were counted; the counters above miss those";
    HISTORY_LAG = Store Gauge "ff_history_lag_seconds" [] "How far the counters above are behind the history; it shrinks with every reading";
    // What is on hand.
    LANE_EXECUTIONS = Store Gauge "ff_lane_executions" ["namespace", "lane", "state"] "Executions kept, by state";
    LANE_OLDEST = Store Gauge "ff_lane_oldest_age_seconds" ["namespace", "lane"] "Age of the oldest execution that could run and is not running; 0 when there is none";
    EXECUTIONS = Store Gauge "ff_executions" [] "Executions kept, ended ones included";
    WAITPOINTS = Store Gauge "ff_waitpoints_open" [] "Open waitpoints";
    WAITPOINT_OLDEST = Store Gauge "ff_waitpoint_oldest_age_seconds" [] "For how long the oldest open waitpoint has been open";
    TIMERS = Store Gauge "ff_timers" [] "Wake-ups planned for executions and flows";
    TIMERS_DUE = Store Gauge "ff_timers_due" [] "Wake-ups whose time has come and which nobody has served yet";
    TIMER_LAG = Store Gauge "ff_timer_lag_seconds" [] "For how long the most overdue wake-up has been due";
    TIMERS_STUCK = Store Gauge "ff_timers_stuck" [] "Wake-ups that raised and were set aside; ff fsck names them";
    OUTBOX = Store Gauge "ff_outbox_effects" [] "Effects that partitions owe each other";
    OUTBOX_OLDEST = Store Gauge "ff_outbox_oldest_age_seconds" [] "For how long the oldest of them has been owed";
    EVENTS_KEPT = Store Gauge "ff_events_kept" [] "Events kept for the feed";
    FLOWS = Store Gauge "ff_flows" [] "Flows kept";
    SCHEDULES = Store Gauge "ff_schedules" [] "Schedules there are";
    CANCEL_FLOWS = Store Gauge "ff_cancel_backlog_flows" [] "Stopped flows whose members are still being cancelled";
    CANCEL_MEMBERS = Store Gauge "ff_cancel_backlog_members" [] "Members of stopped flows that are still to be cancelled";
    BUDGETS = Store Gauge "ff_budgets" [] "Budgets there are; the following show the first 100 that are not of flows";
    BUDGET_USED = Store Gauge "ff_budget_used" ["namespace", "budget", "scope", "dimension"] "What was used of a budget in its period";
    BUDGET_HELD = Store Gauge "ff_budget_held" ["namespace", "budget", "scope", "dimension"] "What is reserved of a budget";
    BUDGET_LIMIT = Store Gauge "ff_budget_limit" ["namespace", "budget", "scope", "dimension"] "The hard limit of a budget, where it has one";
    BUDGET_REMAINING = Store Gauge "ff_budget_remaining" ["namespace", "budget", "scope", "dimension"] "What is left of a budget to its hard limit, where it has one";
    QUOTAS = Store Gauge "ff_quotas" [] "Quotas there are; the following show the first 100, each over the first 64 of its keys";
    QUOTA_KEYS = Store Gauge "ff_quota_keys" ["namespace", "quota"] "Keys of a quota that are in use";
    QUOTA_HELD = Store Gauge "ff_quota_held" ["namespace", "quota"] "Slots of a quota that are held";
    QUOTA_WAITING = Store Gauge "ff_quota_waiting" ["namespace", "quota"] "Executions that wait for a quota";
    QUOTA_THROTTLED = Store Gauge "ff_quota_throttled_keys" ["namespace", "quota"] "Keys of a quota that a provider throttles";
    WORKERS = Store Gauge "ff_workers" ["state"] "Registered workers";
    WORKER_SLOTS = Store Gauge "ff_worker_slots" [] "Executions that registered workers can run at once";
    STORE_COMMANDS = Store Counter "ff_store_commands" [] "Commands the store processed since it started, those of functions included";
    STORE_UP = Process Gauge "ff_store_up" ["store"] "1 when this server could read the store for this page, else 0; without it the page has nothing of the store";
    // What this process does.
    HTTP_REQUESTS = Process Counter "ff_http_requests" ["method", "route", "status"] "Requests answered; status 499 are those whose client left before";
    HTTP_SECONDS = Process Histogram "ff_http_request_seconds" ["method", "route"] "How long requests took until their answer began, waiting in long polls included";
    HTTP_CONNECTIONS = Process Gauge "ff_http_connections" [] "Connections that are open";
    HTTP_TURNED_AWAY = Process Counter "ff_http_connections_turned_away" [] "Connections answered 503 or closed because there were too many";
    HTTP_IN_FLIGHT = Process Gauge "ff_http_requests_in_flight" [] "Requests whose answer has not begun";
    LONG_POLLS = Process Gauge "ff_http_long_polls_open" [] "Requests that wait for something to happen";
    STREAMS = Process Gauge "ff_http_streams_open" [] "Streams of events or frames that are being read";
    FENCE_REFUSALS = Process Counter "ff_fence_refusals" ["code"] "Writes refused because their lease was not the current one: stale_lease, lease_expired or lease_revoked";
    STORE_CALLS = Process Counter "ff_store_calls" ["function", "result"] "Calls of the store's functions: ok, or failed when the store did not answer";
    STORE_CALL_SECONDS = Process Histogram "ff_store_call_seconds" ["mode"] "How long calls of the store took, by whether they read or write";
    BUILD = Process Gauge "ff_build_info" ["version", "library"] "1; its labels are the version of this server and the number of its library";
    START_TIME = Process Gauge "ff_process_start_time_seconds" [] "When this process started, in seconds since 1970";
    UPTIME = Process Gauge "ff_process_uptime_seconds" [] "For how long this process has run";
    MEMORY = Process Gauge "ff_process_resident_memory_bytes" [] "Memory this process occupies; on Linux";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_carry_their_units() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.family).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            assert!(metric.family.starts_with("ff_") && !metric.family.ends_with("_total"), "{}", metric.family);
            assert_eq!(
                metric.kind == Kind::Histogram,
                metric.family.ends_with("_seconds") && metric.kind == Kind::Histogram
            );
            assert!(!metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.family);
            for word in ["age", "lag", "uptime", "duration"] {
                let time = metric.family.split('_').any(|part| part == word);
                assert!(!time || metric.family.ends_with("_seconds"), "{} is a time without its unit", metric.family);
            }
        }
    }
}
