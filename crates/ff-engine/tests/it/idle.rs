//! An engine with nothing to do leaves the store alone.

use crate::kit::*;
use crate::on_both_hosts;

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
