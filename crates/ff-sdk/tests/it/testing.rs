//! The test kit itself: time, crashes, one effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ff_core::state::{AttemptState, Outcome};
use ff_sdk::runtime::{HandlerResult, WorkerRuntime};
use ff_sdk::testing::{Call, CrashPoint, START_MS, TestEngine};
use ff_sdk::{NewExecution, SdkError};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_moves_only_when_told_and_timers_fire_on_the_way() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    assert_eq!(engine.now_ms(), START_MS);
    let mut new = NewExecution::new("default", "default", "k");
    new.fields.delay_ms = Some(3_600_000);
    let id = engine.submit_new(new).await?;
    let worker = engine.worker("w-1").await?;
    assert!(worker.claim_next().await?.is_none());
    engine.advance(Duration::from_secs(3_599)).await?;
    assert!(worker.claim_next().await?.is_none());
    engine.advance(Duration::from_secs(1)).await?;
    let task = worker.claim_next().await?.expect("its time has come");
    assert_eq!(task.execution_id(), &id);
    task.complete(None).await?;
    engine.assert_exactly_one_effect(&id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_worker_keeps_its_lease_through_a_long_advance_and_a_dead_one_does_not() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let id = engine.submit("k", b"{}").await?;
    let first = engine.worker("w-1").await?;
    let task = first.claim_next().await?.expect("one waits");
    engine.advance(Duration::from_secs(600)).await?;
    task.renew_lease().await?;
    assert!(!task.cancellation().is_cancelled());

    engine.crash(&first, CrashPoint::Now);
    assert!(task.cancellation().is_lease_lost());
    let second = engine.worker("w-2").await?;
    assert!(second.claim_next().await?.is_none());
    engine.advance(Duration::from_secs(31)).await?;
    let again = second.claim_next().await?.expect("the lease ran out");
    assert_eq!(again.execution_id(), &id);
    assert!(task.complete(None).await.is_err());
    again.complete(None).await?;
    engine.assert_exactly_one_effect(&id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wherever_a_worker_dies_the_work_takes_effect_once() -> Result<(), SdkError> {
    let points = [
        CrashPoint::AfterCall(Call::Claim),
        CrashPoint::BeforeCall(Call::Progress),
        CrashPoint::AfterCall(Call::Progress),
        CrashPoint::BeforeCall(Call::Complete),
        CrashPoint::AfterCall(Call::Complete),
    ];
    for point in points {
        let engine = TestEngine::start().await?;
        let id = engine.submit("k", b"{}").await?;
        let ran = Arc::new(AtomicUsize::new(0));
        let handler = {
            let ran = ran.clone();
            move |ctx: ff_sdk::runtime::Ctx| {
                let ran = ran.clone();
                async move {
                    ran.fetch_add(1, Ordering::SeqCst);
                    ctx.progress(50, "half").await?;
                    HandlerResult::<SdkError>::Ok(Some(b"1".to_vec()))
                }
            }
        };
        let first = engine.worker("w-1").await?;
        engine.crash(&first, point);
        let ended = engine.run(WorkerRuntime::new(first).on("k", handler.clone()));
        tokio::time::timeout(crate::world::SOON, ended.wait()).await.expect("a dead worker's runtime ends")?;

        let second = engine.run(WorkerRuntime::new(engine.worker("w-2").await?).on("k", handler));
        engine.advance(Duration::from_secs(31)).await?;
        assert_eq!(engine.result(&id).await?.outcome, Outcome::Success, "{point:?}");
        engine.assert_exactly_one_effect(&id).await?;
        let attempts = engine.describe(&id).await?.attempts;
        let repeated = point != CrashPoint::AfterCall(Call::Complete);
        assert_eq!(attempts.len(), if repeated { 2 } else { 1 }, "{point:?}");
        if repeated {
            assert_eq!(attempts[0].state, AttemptState::Interrupted, "{point:?}");
        }
        assert!(ran.load(Ordering::SeqCst) <= 2);
        second.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[should_panic(expected = "must take effect exactly once")]
async fn work_that_has_not_ended_has_no_effect() {
    let engine = TestEngine::start().await.unwrap();
    let id = engine.submit("k", b"{}").await.unwrap();
    engine.assert_exactly_one_effect(&id).await.unwrap();
}
