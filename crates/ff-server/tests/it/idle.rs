//! Workers that wait leave the store alone.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::kit::{eventually, open_connections};

const WORKERS: usize = 100;
/// Commands a second a server with waiting workers may cost.
const LIMIT: f64 = 5.0;

// Measured over twenty seconds, so it is not of the quick tier.
on_both_hosts! {
    async fn a_hundred_waiting_workers_cost_less_than_five_commands_a_second(kit) {
        if ff_testkit::tier::tier() == ff_testkit::tier::Tier::Quick {
            return;
        }
        let api = kit.api().await;
        let server = api.base.trim_start_matches("http://").parse().expect("an address");
        api.submit(json!({"kind": "later", "delay_ms": 3_600_000})).await;
        let mut polls = Vec::new();
        for n in 0..WORKERS {
            let (api, instance) = (api.clone(), format!("w-{n}"));
            api.register(&instance, 1).await;
            polls.push(tokio::spawn(async move {
                loop {
                    let tasks = api.claim(&instance, json!({"max": 1, "wait_ms": 30_000})).await;
                    if !tasks.is_empty() {
                        return tasks;
                    }
                }
            }));
        }
        eventually("all of them wait", async || (open_connections(server) >= WORKERS).then_some(())).await;
        let host = kit.host();
        let count = async || host.store_commands().await.expect("a count");
        eventually("the start is over", async || {
            let before = count().await;
            tokio::time::sleep(Duration::from_millis(500)).await;
            (count().await - before < 20).then_some(())
        })
        .await;
        let (before, began) = (count().await, Instant::now());
        // Two of the heartbeats that come every ten seconds.
        tokio::time::sleep(Duration::from_secs(20)).await;
        let took = began.elapsed().as_secs_f64();
        // The question itself is a command of the store.
        let commands = count().await - before - 1;
        eprintln!("{commands} commands in {took:.1} s: {:.2} a second", commands as f64 / took);
        assert!(commands as f64 / took < LIMIT, "{commands} commands in {took:.1} s with {WORKERS} workers waiting");
        for _ in 0..WORKERS {
            api.submit(json!({"kind": "k"})).await;
        }
        for poll in polls {
            assert_eq!(poll.await.expect("it ends well").len(), 1);
        }
    }
}
