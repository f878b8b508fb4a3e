//! Children: spawned once, waited for without a worker, and what their parent hears of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ff_core::state::{Outcome, PublicState};
use ff_core::types::{AttemptIndex, ExecutionId};
use ff_sdk::runtime::{Ctx, Data, HandlerResult, Passed, Payload, SuspendError, WorkerRuntime};
use ff_sdk::task::{ResumeCause, WaitChildrenOutcome};
use ff_sdk::testing::{Call, CrashPoint, TestEngine};
use ff_sdk::{ChildSpec, MemberSpec, Retry, SdkError};
use tokio_util::sync::CancellationToken;

use crate::flows::flow;
use crate::world::{World, claim, until};

fn once() -> Retry {
    Retry { max_attempts: Some(1), ..Retry::default() }
}

fn child(key: &str) -> ChildSpec {
    ChildSpec::new("child").key(key).retry(once())
}

/// Spawns two children and waits for them; counts its runs.
async fn parent(ctx: Ctx, Data(runs): Data<Arc<AtomicUsize>>) -> HandlerResult {
    runs.fetch_add(1, Ordering::SeqCst);
    ctx.spawn(vec![ChildSpec::new("child").input(b"1"), ChildSpec::new("child").input(b"2").retry(once())]).await?;
    let first = ctx.wait_children().await?;
    // A second round, spawned by a run that has waited before.
    ctx.spawn(vec![ChildSpec::new("child").key("last").input(b"3")]).await?;
    let all = ctx.wait_children().await?;
    assert!((2..=3).contains(&first.len()), "{first:?}");
    let said = all.iter().map(|child| match (&child.result, &child.failure) {
        (Some(result), _) => String::from_utf8_lossy(result).into_owned(),
        (None, Some(failure)) => failure.category.clone(),
        (None, None) => "nothing".to_owned(),
    });
    Ok(Some(said.collect::<Vec<_>>().join(" ").into_bytes()))
}

async fn square(Payload(n): Payload<u64>) -> HandlerResult {
    if n == 2 { Err("two is odd".into()) } else { Ok(Some((n * n).to_string().into_bytes())) }
}

/// Returns a result although it waits: the execution waits all the same.
async fn careless(ctx: Ctx) -> HandlerResult {
    ctx.spawn(vec![ChildSpec::new("child").input(b"4")]).await?;
    match ctx.wait_children().await {
        Ok(children) => Ok(children[0].result.clone()),
        Err(SuspendError::WaitingForChildren { open: 1 }) => Ok(Some(b"too early".to_vec())),
        Err(error) => Err(error.into()),
    }
}

async fn total(Passed(parts): Passed<std::collections::BTreeMap<String, Option<u64>>>) -> HandlerResult {
    Ok(Some(parts.values().flatten().sum::<u64>().to_string().into_bytes()))
}

async fn nothing() -> HandlerResult {
    Ok(None)
}

for_each_transport! {
    async fn a_parent_goes_on_with_the_outcomes_of_its_children(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("parent", b"{}").await;
        let task = claim(&worker).await;
        let (attempt, epoch) = (*task.attempt_id(), task.lease_epoch());
        let ids = task.spawn(vec![child("good").input(b"\x00in"), child("bad"), child("null")]).await.unwrap();
        assert_eq!(ids.len(), 3);
        assert!(task.resume_children().await.unwrap().is_empty(), "this claim resumes nothing");
        let so_far = task.children().await.unwrap();
        assert_eq!(so_far.iter().map(|child| child.execution_id).collect::<Vec<_>>(), ids);
        assert!(so_far.iter().all(|child| child.outcome.is_none()));
        task.move_to_waiting_children().await.unwrap();
        assert_eq!(world.describe(&id).await.state, PublicState::WaitingChildren);

        for _ in 0..3 {
            let task = claim(&worker).await;
            assert_eq!((task.parent_id(), task.flow_id()), (Some(&id), None));
            match task.key() {
                Some("good") => {
                    assert_eq!(task.input_payload(), b"\x00in");
                    task.complete(Some(b"\x00\xff".to_vec())).await.unwrap();
                }
                Some("bad") => drop(task.fail("no luck", "luck").await.unwrap()),
                _ => task.complete(None).await.unwrap(),
            }
        }

        let task = claim(&worker).await;
        assert_eq!((task.execution_id(), task.attempt_id()), (&id, &attempt));
        assert!(task.lease_epoch() > epoch);
        assert_eq!(task.resume().map(|resume| resume.cause), Some(ResumeCause::Children));
        let children = task.resume_children().await.unwrap();
        assert_eq!(children.iter().map(|child| child.execution_id).collect::<Vec<_>>(), ids);
        let seen: Vec<_> = children.iter().map(|child| (child.key.as_deref().unwrap(), child.outcome.unwrap())).collect();
        assert_eq!(seen, [("good", Outcome::Success), ("bad", Outcome::Failed), ("null", Outcome::Success)]);
        assert_eq!(children[0].result.as_deref(), Some(b"\x00\xff".as_slice()));
        let failure = children[1].failure.as_ref().expect("it failed");
        assert_eq!((failure.reason.as_str(), failure.category.as_str()), ("no luck", "luck"));
        assert!(children[2].succeeded() && children[2].result.is_none());
        task.complete(None).await.unwrap();
        assert_eq!(world.result(&id).await.outcome, Outcome::Success);
    }

    async fn a_child_that_was_quicker_is_no_reason_to_give_the_lease_back(world: &World) {
        let mut config = world.config("w-1");
        config.max_concurrent_tasks = 2;
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        let id = world.submit("parent", b"{}").await;
        let task = claim(&worker).await;
        let epoch = task.lease_epoch();
        task.spawn(vec![child("quick")]).await.unwrap();
        claim(&worker).await.complete(Some(b"1".to_vec())).await.unwrap();
        let outcome = task.wait_children().await.unwrap();
        let WaitChildrenOutcome::Ended { task, children } = outcome else { panic!("{outcome:?}") };
        assert_eq!((children.len(), task.lease_epoch()), (1, epoch));
        task.renew_lease().await.unwrap();

        // Told to move anyway, the attempt lets go of its lease and goes on with its children in the next claim.
        task.move_to_waiting_children().await.unwrap();
        let task = claim(&worker).await;
        assert_eq!((task.execution_id(), task.attempt_index()), (&id, AttemptIndex::new(0)));
        assert!(task.lease_epoch() > epoch);
        assert!(task.resume_children().await.unwrap()[0].succeeded());
        task.complete(None).await.unwrap();
    }

    async fn more_children_than_a_claim_carries_are_paged_in(world: &World) {
        let mut config = world.config("w-1");
        config.max_concurrent_tasks = 100;
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        world.submit("parent", b"{}").await;
        let task = claim(&worker).await;
        let ids = task.spawn((0..150).map(|n| child(&n.to_string())).collect()).await.unwrap();
        task.move_to_waiting_children().await.unwrap();
        let mut left = ids.len();
        while left > 0 {
            for task in worker.claim_many(100, Duration::from_secs(20)).await.unwrap() {
                let result = vec![7; 2_000];
                task.complete(Some(result)).await.unwrap();
                left -= 1;
            }
        }
        let task = claim(&worker).await;
        let children = task.resume_children().await.unwrap();
        assert_eq!(children.iter().map(|child| child.execution_id).collect::<Vec<ExecutionId>>(), ids);
        assert!(children.iter().all(|child| child.result.as_ref().is_some_and(|result| result.len() == 2_000)));
        task.complete(None).await.unwrap();
    }

    async fn a_parent_that_ends_takes_its_children_with_it_unless_they_were_abandoned(world: &World) {
        let worker = world.worker("w-1").await;
        world.submit("parent", b"{}").await;
        let task = claim(&worker).await;
        let ids = task.spawn(vec![child("bound"), child("free").abandoned()]).await.unwrap();
        task.complete(None).await.unwrap();
        assert_eq!(world.result(&ids[0]).await.outcome, Outcome::Cancelled);
        let free = claim(&worker).await;
        assert_eq!(free.execution_id(), &ids[1]);
        free.complete(None).await.unwrap();
        assert_eq!(world.result(&ids[1]).await.outcome, Outcome::Success);
    }

    async fn answers_that_are_lost_spawn_once_and_wait_once(world: &World) {
        let (worker, faults) = world.faulty_worker("w-1").await;
        let id = world.submit("parent", b"{}").await;
        let task = claim(&worker).await;
        faults.lose_answer(Call::Spawn);
        // One by its key, one by the request.
        let ids = task.spawn(vec![child("a"), ChildSpec::new("child")]).await.unwrap();
        assert_eq!(task.spawn(vec![child("a")]).await.unwrap(), [ids[0]], "a key is spawned once");
        let again = task.spawn(vec![ChildSpec::new("child")]).await.unwrap();
        assert_ne!(again[0], ids[1], "another call without a key is another child");
        let twice = task.spawn(vec![child("x"), child("x")]).await.unwrap_err();
        assert!(matches!(&twice, SdkError::Config { field: Some(field), .. } if field == "children[1].key"), "{twice:?}");
        let other = task.spawn(vec![child("a").input(b"other")]).await.unwrap_err();
        assert_eq!(other.engine().map(|error| error.code()), Some("idempotency_conflict"));
        assert_eq!(world.admin.children(&id).await.unwrap().len(), 3);

        faults.lose_answer(Call::WaitChildren);
        let waited = task.wait_children().await.unwrap();
        assert!(matches!(waited, WaitChildrenOutcome::Waiting { open: 3 }), "{waited:?}");
        for _ in 0..3 {
            claim(&worker).await.complete(None).await.unwrap();
        }
        let task = claim(&worker).await;
        assert_eq!((task.execution_id(), task.resume_children().await.unwrap().len()), (&id, 3));
        task.complete(None).await.unwrap();
    }

    async fn a_handler_spawns_once_however_often_it_is_called(world: &World) {
        let (token, runs) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .data(Arc::clone(&runs))
            .on("parent", parent)
            .on("careless", careless)
            .on("child", square)
            .without_signals()
            .shutdown_on(token.clone());
        let running = tokio::spawn(runtime.run());
        let id = world.submit("parent", b"{}").await;
        let result = world.result(&id).await;
        assert_eq!(result.result.as_deref(), Some(b"1 handler_error 9".as_slice()), "{result:?}");
        assert_eq!((world.admin.children(&id).await.unwrap().len(), world.describe(&id).await.attempts.len()), (3, 1));
        assert!(runs.load(Ordering::SeqCst) >= 1);
        let id = world.submit("careless", b"{}").await;
        assert_eq!(world.result(&id).await.result.as_deref(), Some(b"16".as_slice()));
        token.cancel();
        running.await.unwrap().unwrap();
    }

    async fn a_handler_takes_what_was_passed_as_one_value(world: &World) {
        let token = CancellationToken::new();
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .on("square", square)
            .on("nothing", nothing)
            .on("total", total)
            .without_signals()
            .shutdown_on(token.clone());
        let running = tokio::spawn(runtime.run());
        let spec = flow("sum")
            .member(MemberSpec::new("a", "square").input(b"3"))
            .member(MemberSpec::new("b", "square").input(b"4"))
            .member(MemberSpec::new("c", "nothing"))
            .member(MemberSpec::new("total", "total").takes("a", "x").takes("b", "y").takes("c", "z"));
        let submitted = world.admin.submit_flow(spec).await.unwrap();
        assert_eq!(world.result(&submitted.members["total"]).await.result.as_deref(), Some(b"25".as_slice()));
        token.cancel();
        running.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_attempt_after_a_crash_finds_the_children_of_the_one_before() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let id = engine.submit("parent", b"{}").await?;
    let first = engine.worker("w-1").await?;
    let task = first.claim_next().await?.expect("one waits");
    engine.crash(&first, CrashPoint::AfterCall(Call::Spawn));
    task.spawn(vec![child("a"), child("b")]).await.unwrap_err();
    drop(task);
    engine.advance(Duration::from_secs(60)).await?;

    let second = engine.worker("w-2").await?;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let task = second.claim_next().await?.expect("the parent and its children");
        if task.parent_id().is_some() {
            task.complete(None).await?;
            continue;
        }
        assert_eq!((task.execution_id(), task.attempt_index()), (&id, AttemptIndex::new(1)));
        ids = task.spawn(vec![child("a"), child("b")]).await?;
        task.move_to_waiting_children().await?;
    }
    let task = second.claim_next().await?.expect("the parent goes on");
    assert_eq!(task.children().await?.iter().map(|child| child.execution_id).collect::<Vec<_>>(), ids);
    assert_eq!(ids.len(), 2);
    task.complete(None).await?;
    engine.assert_exactly_one_effect(&id).await?;
    for id in &ids {
        engine.assert_exactly_one_effect(id).await?;
    }
    Ok(())
}

/// Each run asks for the same children, without keys.
async fn two_children(ctx: Ctx) -> HandlerResult {
    ctx.spawn(vec![ChildSpec::new("child").input(b"5"), ChildSpec::new("child").input(b"6")]).await?;
    let children = ctx.wait_children().await?;
    let squares: Vec<&[u8]> = children.iter().filter_map(|child| child.result.as_deref()).collect();
    Ok(Some(squares.join(b" ".as_slice())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_whose_worker_died_after_a_spawn_or_a_wait_spawns_nothing_again() -> Result<(), SdkError> {
    for call in [Call::Spawn, Call::WaitChildren, Call::Complete] {
        let engine = TestEngine::start().await?;
        let id = engine.submit("two_children", b"{}").await?;
        let runtime = |worker| WorkerRuntime::new(worker).on("two_children", two_children).on("child", square);
        let first = engine.worker("w-1").await?;
        engine.crash(&first, CrashPoint::AfterCall(call));
        let dead = tokio::spawn(runtime(first).without_signals().run());
        until("the first worker dies", || async { dead.is_finished() }).await;
        engine.advance(Duration::from_secs(120)).await?;
        let running = engine.run(runtime(engine.worker("w-2").await?));
        assert_eq!(engine.result(&id).await?.result.as_deref(), Some(b"25 36".as_slice()), "{call:?}");
        let children = engine.admin().children(&id).await?;
        assert_eq!(children.len(), 2, "{call:?}");
        for id in children.iter().map(|child| &child.execution_id).chain([&id]) {
            engine.assert_exactly_one_effect(id).await?;
        }
        running.stop().await?;
    }
    Ok(())
}
