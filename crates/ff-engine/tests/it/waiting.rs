//! Waiting for a result costs nothing while nothing happens and ends at once when it does.

use ff_script::generated::{AwaitResultReply, Outcome};

use crate::kit::*;
use crate::on_both_hosts;

on_both_hosts! {
    async fn a_result_reaches_who_waits_without_polling(kit) {
        let engine = kit.engine().await;
        let other = kit.tool(kit.another_host().await).await;
        let operations = engine.operations();
        let id = submit(operations, work("slow")).await;
        let task = claim_one(operations, &worker("w", 60_000), id).await;
        let waiters: Vec<_> = (0..20)
            .map(|n| {
                let waiting = if n % 2 == 0 { engine.waiting() } else { other.waiting() };
                let waiting = std::sync::Arc::clone(waiting);
                // Who is not told comes back with nothing when the time is over.
                tokio::spawn(async move { waiting.result(id, ms(60_000)).await })
            })
            .collect();
        let host = kit.host();
        // Everyone has asked when the commands of a second are those of an engine that has nothing to do.
        let (before, after) = eventually("everyone waits", async || {
            let before = host.store_commands().await.unwrap();
            tokio::time::sleep(ms(1_000)).await;
            let after = host.store_commands().await.unwrap();
            (after - before <= 12).then_some((before, after))
        })
        .await;
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "{before} to {after}");
        complete(operations, &task, b"\x00\xff result").await;
        for waiter in waiters {
            let AwaitResultReply::Ended { outcome, result, .. } = waiter.await.unwrap().unwrap() else { panic!("not ended") };
            assert_eq!((outcome, result.unwrap().0), (Outcome::Success, b"\x00\xff result".to_vec()));
        }
        // Who comes late is answered at once.
        let late = engine.waiting().result(id, ms(0)).await.unwrap();
        assert!(matches!(late, AwaitResultReply::Ended { .. }));
        engine.stop().await;
        other.stop().await;
    }

    async fn who_waits_longer_than_he_wanted_hears_where_it_stands(kit) {
        let engine = kit.engine().await;
        let id = submit(engine.operations(), work("never")).await;
        let answer = engine.waiting().result(id, ms(200)).await.unwrap();
        assert!(matches!(answer, AwaitResultReply::Waiting { .. }), "{answer:?}");
        let both = [submit(engine.operations(), work("cancelled")).await, id];
        let waits = both.map(|id| {
            let waiting = std::sync::Arc::clone(engine.waiting());
            tokio::spawn(async move { waiting.result(id, ms(60_000)).await })
        });
        tokio::time::sleep(ms(100)).await;
        for id in both {
            engine.operations().cancel(id, "ann", None, None).await.unwrap();
        }
        for wait in waits {
            let AwaitResultReply::Ended { outcome, .. } = wait.await.unwrap().unwrap() else { panic!("not ended") };
            assert_eq!(outcome, Outcome::Cancelled);
        }
        engine.stop().await;
    }
}
