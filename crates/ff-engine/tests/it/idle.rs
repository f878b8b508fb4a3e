//! An engine with nothing to do leaves the store alone.

use ff_engine::{Engine, EngineOptions};

use crate::kit::*;
use crate::on_both_hosts;
use crate::wiretap::Wiretap;

/// Commands a second an idle engine may cost.
const LIMIT: f64 = 5.0;

on_both_hosts! {
    async fn an_idle_engine_costs_less_than_five_commands_a_second(kit) {
        let engine = kit.plain_engine().await;
        let operations = engine.operations();
        // It has worked before, and something lies far ahead.
        let mut new = work("much later");
        new.fields.delay_ms = Some(3_600_000);
        submit(operations, new).await;
        let id = submit(operations, work("done")).await;
        let task = claim_one(operations, &worker("w", 30_000), id).await;
        complete(operations, &task, b"").await;

        let host = kit.host();
        eventually("the start is over", async || {
            let before = host.store_commands().await.unwrap();
            tokio::time::sleep(ms(500)).await;
            (host.store_commands().await.unwrap() - before < 20).then_some(())
        })
        .await;
        let (before, started) = (host.store_commands().await.unwrap(), std::time::Instant::now());
        tokio::time::sleep(ms(6_000)).await;
        let took = started.elapsed().as_secs_f64();
        // The question itself is a command of the store.
        let commands = host.store_commands().await.unwrap() - before - 1;
        let rate = commands as f64 / took;
        eprintln!("{commands} commands in {took:.1} s: {rate:.2} a second");
        assert!(rate < LIMIT, "{commands} commands in {took:.1} s");
        engine.stop().await;
    }
}

/// Calls of the library a Valkey server has carried out so far, each a list of one or more operations.
fn library_calls(server: &ff_testkit::TestServer) -> usize {
    let stats: String = server.command(&["INFO", "commandstats"]).unwrap();
    let calls = stats.lines().filter(|line| line.starts_with("cmdstat_fcall")).map(|line| {
        let count = line.split_once("calls=").and_then(|(_, rest)| rest.split(',').next()).unwrap();
        count.parse::<usize>().unwrap()
    });
    calls.sum()
}

#[test]
fn a_start_on_an_empty_valkey_makes_at_most_three_calls_per_partition() {
    run(Kind::Valkey, |kit| async move {
        let server = kit.server().unwrap();
        let tap = Wiretap::on(kit.host());
        let options = EngineOptions { sweep_every: ms(3_600_000), ..EngineOptions::default() };
        let engine = Engine::start(tap.clone(), options).await.unwrap();
        let client = engine.operations().client();
        let apart = client.quota_routes().chain(client.budget_routes()).chain(client.schedule_routes());
        let places = 1 + client.execution_routes().count() + apart.count();
        // A server that lives says so now and then, however long this takes.
        let started = || library_calls(server) - tap.calls("ff_heartbeat_server");
        let calls = eventually("the start is over", async || {
            let before = started();
            tokio::time::sleep(ms(1_000)).await;
            (started() == before).then_some(before)
        })
        .await;
        assert!((1..=3 * places).contains(&calls), "{calls} calls for {places} partitions");
        engine.stop().await;
    });
}
