//! Every write of a worker carries its fence: a zombie changes nothing, and a repeated call gets the lost reply again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ff_conformance::work::{Fenced, LEASE_MS};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{AttemptId, ExecutionId, LeaseId, SuspensionId};
use ff_script::Error;
use ff_script::generated::*;

type Answer = Pin<Box<dyn Future<Output = Result<String, ErrorCode>> + Send>>;
type Write = fn(Arc<Store>, ExecutionId, Fence) -> Answer;

/// The reply as text, or the code of the refusal.
fn said<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Result<String, ErrorCode> {
    match outcome {
        Ok(reply) => Ok(format!("{reply:?}")),
        Err(Error::Engine(error)) => Err(error.error_code().expect("a refusal has a code")),
        Err(other) => panic!("{other}"),
    }
}

/// Every write of a worker, by name.
const WRITES: [(&str, Write); 12] = [
    ("renew", |store, id, fence| Box::pin(async move { said(store.ask(&RenewLease::new(id, fence)).await) })),
    ("progress", |store, id, fence| {
        Box::pin(async move { said(store.ask(&UpdateProgress::new(id, fence, 50)).await) })
    }),
    ("complete", |store, id, fence| {
        Box::pin(async move {
            said(store.ask(&CompleteExecution { result: Some("r".into()), ..CompleteExecution::new(id, fence) }).await)
        })
    }),
    ("fail for good", |store, id, fence| {
        Box::pin(async move {
            said(
                store
                    .ask(&FailExecution {
                        retryable: Some(false),
                        ..FailExecution::new("net".into(), 500, id, fence, "down".into())
                    })
                    .await,
            )
        })
    }),
    ("fail", |store, id, fence| {
        Box::pin(async move { said(store.ask(&FailExecution::new("net".into(), 500, id, fence, "down".into())).await) })
    }),
    ("cancel", |store, id, fence| Box::pin(async move { said(store.ask(&CancelAttempt::new(id, fence)).await) })),
    ("delay", |store, id, fence| {
        Box::pin(async move {
            said(store.ask(&DelayExecution { delay_ms: Some(500), ..DelayExecution::new(id, fence) }).await)
        })
    }),
    ("yield", |store, id, fence| {
        Box::pin(async move { said(store.ask(&YieldExecution { execution_id: id, fence }).await) })
    }),
    ("suspend", |store, id, fence| {
        Box::pin(async move {
            let door = store.waitpoint("suspend");
            said(
                store
                    .ask(&SuspendExecution::new(
                        vec![],
                        id,
                        fence,
                        SuspensionReason::ManualPause,
                        SuspensionId::from_uuid(store.uuid(0)),
                        TimeoutBehavior::Fail,
                        vec![door],
                    ))
                    .await,
            )
        })
    }),
    ("create waitpoint", |store, id, fence| {
        Box::pin(async move {
            let waitpoint = store.waitpoint("create");
            said(store.ask(&CreateWaitpoint::new(id, fence, waitpoint)).await)
        })
    }),
    ("close waitpoint", |store, id, fence| {
        Box::pin(async move {
            let open = store.find(id).await.ok().and_then(|e| e.waitpoints.first().map(|open| open.waitpoint_id));
            let waitpoint_id = open.unwrap_or_else(|| store.waitpoint_id());
            said(store.ask(&CloseWaitpoint { execution_id: id, fence, waitpoint_id }).await)
        })
    }),
    ("append frames", |store, id, fence| {
        Box::pin(async move {
            let frame = NewFrame { payload: Some("f".into()), ..NewFrame::new("token".into(), FrameMode::Durable) };
            said(store.ask(&AppendFrames::new(id, fence, vec![frame])).await)
        })
    }),
];

/// Writes that do not end the lease, so no earlier reply can be returned again.
const WHILE_RUNNING: [&str; 6] =
    ["renew", "renew many", "progress", "create waitpoint", "close waitpoint", "append frames"];

/// Every write with this fence fails with the code and leaves the store unchanged.
async fn all_refused(store: &Arc<Store>, id: ExecutionId, fence: &Fence, code: ErrorCode, why: &str) {
    let before = store.dump().await;
    for (name, write) in WRITES {
        assert_eq!(write(store.clone(), id, *fence).await, Err(code), "{name} {why}");
    }
    assert_eq!(store.dump().await, before, "a refused write {why} leaves nothing behind");
}

for_each_host! {
    async fn every_write_of_a_zombie_is_refused(store) {
        store.install_default_lane().await;
        let zombie = store.start("mail", "w1").await;
        let id = zombie.execution_id;
        store.open_early(&zombie, &store.waitpoint("early")).await;
        store.go_to(zombie.lease_expires_at);
        all_refused(&store, id, &zombie.fence(), ErrorCode::LeaseExpired, "at the end of the lease, before any timer").await;
        store.fire_all().await;
        all_refused(&store, id, &zombie.fence(), ErrorCode::LeaseExpired, "after the lease was lost").await;
        let task = store.claim_one("w2").await;
        store.open_early(&task, &store.waitpoint("its own")).await;
        all_refused(&store, id, &zombie.fence(), ErrorCode::StaleLease, "after another worker has it").await;
        store.complete(&task).await;
        all_refused(&store, id, &zombie.fence(), ErrorCode::StaleLease, "after another worker completed it").await;
    }

    async fn a_fence_is_right_in_all_of_its_parts_or_refused(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let right = task.fence();
        let wrong = [
            Fence { attempt_id: AttemptId::from_uuid(store.uuid(0)), ..right },
            Fence { lease_id: LeaseId::from_uuid(store.uuid(0)), ..right },
            Fence { lease_epoch: right.lease_epoch - 1, ..right },
            Fence { lease_epoch: right.lease_epoch + 1, ..right },
        ];
        for fence in &wrong {
            all_refused(&store, task.execution_id, fence, ErrorCode::StaleLease, "with a wrong part").await;
        }
        // A wrong fence is reported first, even if the execution does not run.
        store.complete(&task).await;
        for fence in &wrong {
            all_refused(&store, task.execution_id, fence, ErrorCode::StaleLease, "with a wrong part after the end").await;
        }
        let waiting = store.submit_kind("mail").await;
        all_refused(&store, waiting, &right, ErrorCode::StaleLease, "with a fence of another execution").await;
        all_refused(&store, store.execution_id(), &right, ErrorCode::ExecutionNotFound, "to nothing").await;
    }

    async fn writes_after_an_operator_took_over_are_refused(store) {
        store.install_default_lane().await;
        let revoked = store.start("mail", "w1").await;
        store.ask(&RevokeLease::new("ann".into(), revoked.execution_id)).await.unwrap();
        all_refused(&store, revoked.execution_id, &revoked.fence(), ErrorCode::LeaseRevoked, "after a revoke").await;

        let task = store.claim_one("w1").await;
        store.ask(&CancelExecution::new("ann".into(), task.execution_id)).await.unwrap();
        all_refused(&store, task.execution_id, &task.fence(), ErrorCode::ExecutionNotActive, "after a cancel").await;

        let late = store.start_with(Submission { deadline_ms: Some(100), ..store.submission("mail") }, "w1").await;
        store.advance(100);
        store.fire_all().await;
        all_refused(&store, late.execution_id, &late.fence(), ErrorCode::ExecutionNotActive, "after the deadline").await;

        let slow = store.start_with(Submission { attempt_timeout_ms: Some(100), ..store.submission("mail") }, "w1").await;
        store.advance(100);
        store.fire_all().await;
        all_refused(&store, slow.execution_id, &slow.fence(), ErrorCode::ExecutionNotActive, "after the attempt timed out").await;
    }

    async fn a_refused_worker_learns_which_outcome_won(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        store.ask(&CancelExecution::new("ann".into(), task.execution_id)).await.unwrap();
        let error = store.ask(&RenewLease::new(task.execution_id, task.fence())).await.unwrap_err();
        assert_eq!(error.to_string(), format!("execution not active: it is terminal, outcome cancelled, epoch {}", task.lease_epoch));
    }

    async fn a_lost_reply_is_answered_again_and_changes_nothing(store) {
        store.install_default_lane().await;
        let again = |name: &str, first: &str| match name {
            "complete" | "cancel" | "yield" => "Replayed".to_owned(),
            "complete many" => first.replace("replayed: Some(false)", "replayed: Some(true)"),
            _ => first.replace("replayed: false", "replayed: true"),
        };
        for (name, write) in WRITES.into_iter().filter(|(name, _)| !WHILE_RUNNING.contains(name)) {
            let task = store.start_with(Submission { kind: name.into(), ..store.submission(name) }, "w1").await;
            let (id, fence) = (task.execution_id, task.fence());
            let first = write(store.clone(), id, fence).await.unwrap();
            assert!(!first.contains("eplayed: true") && first != "Replayed", "{name}: {first}");
            store.advance(7);
            let before = store.dump().await;
            for _ in 0..2 {
                assert_eq!(write(store.clone(), id, fence).await, Ok(again(name, &first)), "{name}");
            }
            assert_eq!(store.dump().await, before, "a repeated {name} writes nothing");
            // Another way to end the same lease is not a repetition.
            for (other, write) in WRITES {
                let same = other.trim_end_matches(" many").trim_end_matches(" for good") == name.trim_end_matches(" many").trim_end_matches(" for good");
                if !same {
                    assert_eq!(write(store.clone(), id, fence).await, Err(ErrorCode::ExecutionNotActive), "{other} after {name}");
                }
            }
            assert_eq!(store.dump().await, before);
            // The next round starts with an empty lane.
            store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap();
        }
    }

    async fn a_lost_reply_is_still_answered_after_the_lease_would_have_ended(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        store.complete(&task).await;
        store.advance(10 * LEASE_MS);
        store.fire_all().await;
        let call = CompleteExecution::new(task.execution_id, task.fence());
        assert_eq!(store.ask(&call).await, Ok(CompleteExecutionReply::Replayed));
    }

    async fn many_are_completed_each_on_its_own(store) {
        store.install_default_lane().await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let tasks = store.claim("w1", 3).await;
        store.complete(&tasks[0]).await;
        store.ask(&RevokeLease::new("ann".into(), tasks[1].execution_id)).await.unwrap();
        let call = |task: &Task| CompleteExecution { result: Some("r".into()), ..CompleteExecution::new(task.execution_id, task.fence()) };
        let answers: Vec<_> = store.ask_all(&tasks.iter().map(call).collect::<Vec<_>>()).await.into_iter().map(said).collect();
        assert_eq!(answers, [Ok("Replayed".to_owned()), Err(ErrorCode::LeaseRevoked), Ok("Completed".to_owned())]);
        assert_eq!(store.describe(tasks[2].execution_id).await.result, Some("r".into()));
        assert_eq!(store.describe(tasks[0].execution_id).await.result, None, "the first completion stands");
    }
}
