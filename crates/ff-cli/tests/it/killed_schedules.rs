//! A server that is killed again and again while a schedule fires: each time of the schedule is submitted once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::kit::{Server, out};
use ff_testkit::{Aof, TestServer};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(180);
const KILLS: u64 = 6;

fn shown(server: &Server) -> Value {
    serde_json::from_str(&out(&server.ff(&["schedule", "show", "tick", "-o", "json"]))).expect("JSON")
}

fn fired(server: &Server, at_least: i64) -> Value {
    let began = Instant::now();
    loop {
        let schedule = shown(server);
        if schedule["counts"]["fired"].as_i64().expect("a count") >= at_least && schedule["unsubmitted"] == 0 {
            return schedule;
        }
        assert!(began.elapsed() < SOON, "{at_least} firings: not within {SOON:?}, {schedule}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn survive(mut server: Server) {
    let put = ["schedule", "put", "tick", "--every", "1s", "--overlap", "allow", "--catch-up", "1h"];
    out(&server.ff(&[&put[..], &["--kind", "tick", "--lane", "ticks"]].concat()));
    let mut seen = fired(&server, 1)["counts"]["fired"].as_i64().expect("a count");
    for kill in 0..KILLS {
        // Somewhere between the moment a time is due and the moment its execution is there.
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_millis() as u64;
        std::thread::sleep(Duration::from_millis(1_000 - now % 1_000 + kill * 4));
        server.kill_and_start_again();
        seen = fired(&server, seen + 1)["counts"]["fired"].as_i64().expect("a count");
    }
    out(&server.ff(&["schedule", "pause", "tick"]));
    let schedule = fired(&server, seen);
    let counts = &schedule["counts"];
    assert_eq!((&counts["missed"], &counts["skipped"]), (&json!(0), &json!(0)));
    let ids = out(&server.ff(&["list", "--lane", "ticks", "--limit", "1000", "-o", "ids"]));
    let mut times = BTreeSet::new();
    for id in ids.lines() {
        let execution: Value = serde_json::from_str(&out(&server.ff(&["show", id, "-o", "json"]))).expect("JSON");
        assert_eq!(execution["schedule"], "tick");
        assert!(times.insert(execution["nominal_at"].as_i64().expect("a time")), "{execution} came twice");
    }
    let (first, last) = (times.first().expect("it fired"), times.last().expect("it fired"));
    assert_eq!((last - first) / 1_000 + 1, times.len() as i64, "no time is left out: {times:?}");
    assert_eq!(counts["fired"].as_i64(), Some(times.len() as i64));
}

#[test]
fn an_embedded_server_that_is_killed_submits_each_time_once() {
    survive(Server::start());
}

#[test]
fn a_server_on_valkey_that_is_killed_submits_each_time_once() {
    let store = TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }).expect("valkey");
    let directory = tempfile::tempdir().expect("a directory");
    survive(Server::on(directory, store.url()));
}
