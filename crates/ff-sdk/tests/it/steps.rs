//! Durable steps of handlers: done once, found again by every later run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ff_core::state::{Outcome, PublicState};
use ff_core::types::{ExecutionId, WaitpointToken};
use ff_script::generated::{Backoff, BackoffType, Jitter, Retry, StepKind, StepState};
use ff_sdk::runtime::{Ctx, Data, HandlerResult, StepError, TaskInfo, WorkerRuntime};
use ff_sdk::testing::{Call, CrashPoint, TestEngine};
use ff_sdk::{ChildSpec, ForkBody, ReplayFrom, SdkError};
use tokio_util::sync::CancellationToken;

use crate::waits::signal;
use crate::world::{World, until};

/// What happened outside, by name.
#[derive(Default)]
struct Outside {
    effects: Mutex<BTreeMap<String, usize>>,
    tokens: Mutex<BTreeMap<String, Vec<WaitpointToken>>>,
}

impl Outside {
    fn done(&self, what: &str) -> Result<usize, std::io::Error> {
        let mut effects = self.effects.lock().unwrap();
        let times = effects.entry(what.to_owned()).or_default();
        *times += 1;
        Ok(*times)
    }

    fn times(&self, what: &str) -> usize {
        self.effects.lock().unwrap().get(what).copied().unwrap_or_default()
    }

    fn mailed(&self, who: &str, token: WaitpointToken) -> Result<(), std::io::Error> {
        self.tokens.lock().unwrap().entry(who.to_owned()).or_default().push(token);
        Ok(())
    }

    fn last_token(&self, who: &str) -> Option<WaitpointToken> {
        self.tokens.lock().unwrap().get(who).and_then(|tokens| tokens.last().cloned())
    }
}

type Shared = Data<Arc<Outside>>;

fn quickly(attempts: i64) -> Retry {
    let backoff = Backoff { delay_ms: Some(0), ..Backoff::new(BackoffType::Fixed) };
    Retry { max_attempts: Some(attempts), backoff: Some(backoff), jitter: Some(Jitter::None), ..Retry::default() }
}

/// Steps by name, by number and by key, some at the same time; its first two attempts fail behind them.
async fn counting(ctx: Ctx, info: TaskInfo, Data(outside): Shared) -> HandlerResult {
    let first = ctx.step("once", || async { outside.done("once") }).await?;
    let again = ctx.step("once", || async { outside.done("again") }).await?;
    let mut keyed = Vec::new();
    for key in ["b", "a"] {
        keyed.push(ctx.step("loop", || async { outside.done(&format!("loop {key}")) }).key(key).await?);
    }
    let (left, right) = tokio::join!(
        ctx.step("left", || async { outside.done("left") }),
        ctx.step("right", || async { outside.done("right") }),
    );
    let large: String = ctx.step("large", || async { Ok::<_, std::io::Error>("x".repeat(10_000)) }).await?;
    ctx.step("nothing", || async { Ok::<(), std::io::Error>(()) }).await?;
    let key = ctx.step("key", || async { Ok::<_, std::io::Error>(ctx.step_key("once")) }).await?;
    assert_eq!(key, ctx.step_key("once"), "it is the same in every attempt");
    if info.attempt_index.get() < 2 {
        return Err("broken".into());
    }
    let sum = first + again + keyed.iter().sum::<usize>() + left? + right?;
    Ok(Some(format!("{sum} {}", large.len()).into_bytes()))
}

/// Passes over that its sleep set the attempt aside.
async fn careless(ctx: Ctx) -> HandlerResult {
    let _ = ctx.sleep(Duration::from_secs(3_600)).await;
    Ok(Some(b"too early".to_vec()))
}

/// Asks two people; its first attempt with their answer fails.
async fn release(ctx: Ctx, info: TaskInfo, Data(outside): Shared) -> HandlerResult {
    let signed = ctx.approval("sign-off").of(["ann", "bob"]).deliver(|who, token| {
        let outside = Arc::clone(&outside);
        async move { outside.mailed(&who, token) }
    });
    let signed = signed.await?;
    if info.attempt_index.get() == 0 {
        return Err("broken behind the approval".into());
    }
    let paid = ctx.wait_for_signal("paid").deliver(|token| {
        let outside = Arc::clone(&outside);
        async move { outside.mailed("bank", token) }
    });
    let paid = paid.await?;
    Ok(Some(format!("{} {}", signed.approvers().join(","), paid.signal_name).into_bytes()))
}

async fn answer(world: &World, id: &ExecutionId, key: &str, token: &WaitpointToken, name: &str) {
    let open = world.operations.waitpoints_of(*id).await.unwrap();
    let at = open.iter().find(|waitpoint| waitpoint.key == key).expect("it is there").waitpoint_id;
    let sender = world.worker("sender").await;
    sender.deliver_signal(id, &at, signal(name, token)).await.unwrap();
    sender.disconnect().await.unwrap();
}

struct Runs {
    token: CancellationToken,
    handle: tokio::task::JoinHandle<Result<(), SdkError>>,
}

async fn runs(world: &World, runtime: impl FnOnce(WorkerRuntime) -> WorkerRuntime) -> Runs {
    let token = CancellationToken::new();
    let runtime = runtime(WorkerRuntime::new(world.worker("w-1").await)).without_signals();
    Runs { handle: tokio::spawn(runtime.shutdown_on(token.clone()).run()), token }
}

impl Runs {
    async fn stop(self) {
        self.token.cancel();
        self.handle.await.unwrap().unwrap();
    }
}

async fn submit(world: &World, kind: &str, retry: Retry) -> ExecutionId {
    let mut new = world.new_execution(kind);
    new.fields.retry = Some(retry);
    world.admin.submit(new).await.unwrap()
}

for_each_transport! {
    async fn every_step_runs_once_however_many_attempts_there_are(world: &World) {
        let outside = Arc::new(Outside::default());
        let running = runs(world, |runtime| runtime.data(Arc::clone(&outside)).on("counting", counting)).await;
        let id = submit(world, "counting", quickly(3)).await;
        let result = world.result(&id).await;
        assert_eq!((result.outcome, result.result.as_deref()), (Outcome::Success, Some(b"6 10000".as_slice())));
        assert!(outside.effects.lock().unwrap().values().all(|times| *times == 1), "{:?}", outside.effects);
        let steps = world.admin.steps(&id).await.unwrap();
        let mut names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["key", "large", "left", "loop:a", "loop:b", "nothing", "once", "once#2", "right"]);
        assert!(steps.iter().all(|step| step.state == StepState::Done && step.attempt_index == 0), "{steps:?}");
        assert_eq!(world.describe(&id).await.attempts.len(), 3);
        running.stop().await;
    }

    async fn a_handler_that_passes_over_its_rest_fails_clearly(world: &World) {
        let running = runs(world, |runtime| runtime.on("careless", careless)).await;
        let id = submit(world, "careless", quickly(3)).await;
        assert_eq!(world.result(&id).await.outcome, Outcome::Failed);
        let failure = world.describe(&id).await.failure.expect("it failed");
        assert_eq!(failure.category, "set_aside_swallowed");
        assert!(failure.reason.contains("sleep") && failure.reason.contains("hand the step's error on"), "{}", failure.reason);
        running.stop().await;
    }

    async fn an_approval_that_was_given_stays_given(world: &World) {
        let outside = Arc::new(Outside::default());
        let running = runs(world, |runtime| runtime.data(Arc::clone(&outside)).on("release", release)).await;
        let id = submit(world, "release", quickly(2)).await;
        let waits = async |reason: &'static str| {
            until("it waits", || async {
                let seen = world.describe(&id).await;
                assert_eq!(seen.outcome, None, "{:?}", seen.failure);
                seen.suspension.is_some_and(|suspension| suspension.reason.as_str() == reason)
            })
            .await;
        };
        waits("waiting_for_approval").await;
        for who in ["ann", "bob"] {
            answer(world, &id, "sign-off", &outside.last_token(who).unwrap(), "yes").await;
        }
        waits("waiting_for_signal").await;
        assert_eq!(world.describe(&id).await.attempts.len(), 2, "it failed behind the approval");
        answer(world, &id, "paid", &outside.last_token("bank").unwrap(), "paid").await;
        assert_eq!(world.result(&id).await.result.as_deref(), Some(b"ann,bob paid".as_slice()));
        assert!(outside.tokens.lock().unwrap().values().all(|tokens| tokens.len() == 1), "each was asked once");
        running.stop().await;
    }
}

/// A program that uses everything: steps, a rest, a retry, a signal, an approval, children.
async fn everything(ctx: Ctx, Data(outside): Shared) -> HandlerResult {
    let a = ctx.step("a", || async { outside.done("a").map(|_| 1_usize) }).await?;
    ctx.sleep(Duration::from_secs(600)).await?;
    let tried = ctx.step("b", || async {
        let times = outside.done("b")?;
        if times < 2 { Err(std::io::Error::other("not yet")) } else { Ok(2_usize) }
    });
    let backoff = Backoff { delay_ms: Some(60_000), ..Backoff::new(BackoffType::Fixed) };
    let b = tried
        .retry(Retry { backoff: Some(backoff), jitter: Some(Jitter::None), max_attempts: Some(9), ..Retry::default() })
        .await?;
    ctx.spawn_as("fan out", vec![ChildSpec::new("child"), ChildSpec::new("child")]).await?;
    let children = ctx.wait_children_as("join").await?.len();
    let paid = ctx.wait_for_signal("paid").deliver(|token| {
        let outside = Arc::clone(&outside);
        async move { outside.mailed("bank", token) }
    });
    let paid = paid.await?.signal_name;
    let signed = ctx.approval("sign-off").of(["ann", "bob", "cid"]).need(2).deliver(|who, token| {
        let outside = Arc::clone(&outside);
        async move { outside.mailed(&who, token) }
    });
    let signed = signed.await?.approvers().len();
    ctx.step("c", || async { outside.done("c").map(|_| ()) }).await?;
    Ok(Some(format!("{} {children} {paid} {signed}", a + b).into_bytes()))
}

async fn child() -> HandlerResult {
    Ok(None)
}

/// Answers what it waits for, and moves the time when it rests; until it has ended.
async fn drive(engine: &TestEngine, id: &ExecutionId) -> Result<bool, SdkError> {
    for waitpoint in engine.waitpoints(id).await? {
        if waitpoint.suspension_id.is_none() {
            continue;
        }
        match waitpoint.key.as_str() {
            "paid" => drop(engine.signal(id, "paid", "paid", b"{}").await?),
            key => {
                for who in ["ann", "cid"] {
                    // The second may come when the first was enough: it is signed again after a crash.
                    drop(engine.signal_as(id, key, Some(who), "yes", b"{}").await);
                }
            }
        }
    }
    Ok(engine.describe(id).await?.outcome.is_some())
}

/// Runs the program with workers that die at these points, one after the other, and says what happened outside.
async fn with_deaths(points: &[CrashPoint]) -> Result<(Arc<Outside>, String), SdkError> {
    let engine = TestEngine::start().await?;
    let outside = Arc::new(Outside::default());
    let id = engine.submit("everything", b"{}").await?;
    for nth in 0..=points.len() {
        let worker = engine.worker(&format!("w-{nth}")).await?;
        if let Some(point) = points.get(nth) {
            engine.crash(&worker, *point);
        }
        let dead = worker.watch_state();
        let runtime =
            WorkerRuntime::new(worker).data(Arc::clone(&outside)).on("everything", everything).on("child", child);
        let running = engine.run(runtime);
        let deadline = tokio::time::Instant::now() + crate::world::SOON;
        loop {
            assert!(tokio::time::Instant::now() < deadline, "{points:?} {:#?}", engine.describe(&id).await?);
            if drive(&engine, &id).await? {
                break;
            }
            if *dead.borrow() == ff_sdk::WorkerState::Disconnected || running.is_finished() {
                break;
            }
            let seen = engine.describe(&id).await?;
            // Only a rest needs the time. At any other moment a worker may hold a lease that must not run out.
            if seen.state == PublicState::Delayed {
                engine.advance(Duration::from_secs(60)).await?;
            } else {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        engine.advance(Duration::from_secs(60)).await?;
        drop(running);
    }
    let result = engine.result(&id).await?;
    assert_eq!(result.outcome, Outcome::Success, "{:?}", engine.describe(&id).await?.failure);
    engine.assert_exactly_one_effect(&id).await?;
    Ok((outside, String::from_utf8(result.result.unwrap()).unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wherever_workers_die_the_result_is_the_same_and_what_was_stored_is_not_done_again() -> Result<(), SdkError> {
    let (outside, expected) = with_deaths(&[]).await?;
    assert_eq!(expected, "3 2 paid 2");
    let counted: Vec<usize> = ["a", "b", "c"].iter().map(|what| outside.times(what)).collect();
    assert_eq!(counted, [1, 2, 1]);
    let calls = [
        Call::Step,
        Call::Sleep,
        Call::Spawn,
        Call::WaitChildren,
        Call::Waitpoint,
        Call::Suspend,
        Call::Claim,
        Call::Complete,
    ];
    let mut series: Vec<Vec<CrashPoint>> = Vec::new();
    for call in calls {
        series.push(vec![CrashPoint::AfterCall(call)]);
        series.push(vec![CrashPoint::BeforeCall(call)]);
    }
    // Every store of a step is hit, one worker after the other.
    series.push(vec![CrashPoint::AfterCall(Call::Step); 6]);
    for points in &series {
        if !ff_testkit::tier::is_sampled(&format!("{points:?}"), 4) {
            continue;
        }
        let (outside, result) = with_deaths(points).await?;
        assert_eq!(result, expected, "{points:?}");
        let lost = points.iter().filter(|point| matches!(point, CrashPoint::BeforeCall(Call::Step))).count();
        let total: usize = ["a", "b", "c"].iter().map(|what| outside.times(what)).sum();
        assert!((4..=4 + lost).contains(&total), "{points:?}: {:?}", outside.effects);
    }
    Ok(())
}

/// Fails three times before it succeeds, or with what it is told.
async fn stubborn(ctx: Ctx, Data(tries): Data<Arc<AtomicUsize>>) -> HandlerResult {
    let run = ctx.step("call", || async {
        match tries.fetch_add(1, Ordering::SeqCst) {
            0..3 => Err(std::io::Error::other("503")),
            tried => Ok(tried),
        }
    });
    let backoff = Backoff { delay_ms: Some(3_600_000), ..Backoff::new(BackoffType::Fixed) };
    let tried = run
        .retry(Retry { backoff: Some(backoff), jitter: Some(Jitter::None), max_attempts: Some(5), ..Retry::default() })
        .await?;
    Ok(Some(tried.to_string().into_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_fails_is_tried_again_by_the_engines_time_in_the_same_attempt() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let tries = Arc::new(AtomicUsize::new(0));
    let id = engine.submit("stubborn", b"{}").await?;
    let running =
        engine.run(WorkerRuntime::new(engine.worker("w-1").await?).data(Arc::clone(&tries)).on("stubborn", stubborn));
    for tried in 1..=3 {
        until("it rests", || async {
            let seen = engine.describe(&id).await.unwrap();
            tries.load(Ordering::SeqCst) == tried && seen.delay_until.is_some() && seen.lease.is_none()
        })
        .await;
        let step = engine.admin().steps(&id).await?.remove(0);
        assert_eq!(
            (step.state, step.tries, step.failure.unwrap().reason.as_str()),
            (StepState::Failed, i64::try_from(tried).unwrap(), "503")
        );
        engine.advance(Duration::from_secs(3_600)).await?;
    }
    assert_eq!(engine.result(&id).await?.result.as_deref(), Some(b"3".as_slice()));
    let seen = engine.describe(&id).await?;
    assert_eq!((seen.attempts.len(), seen.steps), (1, 1));
    assert_eq!(engine.admin().steps(&id).await?[0].tries, 4);
    running.stop().await
}

/// One step with the input it is given; says how often it ran.
async fn dependent(ctx: Ctx, Data(said): Data<Arc<Mutex<(u32, bool, u32)>>>) -> HandlerResult {
    let (input, rerun, _) = *said.lock().unwrap();
    let run = ctx.step("price", || async {
        said.lock().unwrap().2 += 1;
        Ok::<_, std::io::Error>(input)
    });
    let run = run.input(&input);
    let price = if rerun { run.rerun_if_changed().await } else { run.await };
    match price {
        Err(StepError::Changed { .. }) => Err(price.unwrap_err().into()),
        price => Ok(Some(price?.to_string().into_bytes())),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replay_and_fork_keep_what_they_say_and_a_changed_input_is_noticed() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let said = Arc::new(Mutex::new((1_u32, false, 0_u32)));
    let id = engine.submit("dependent", b"{}").await?;
    let running =
        engine.run(WorkerRuntime::new(engine.worker("w-1").await?).data(Arc::clone(&said)).on("dependent", dependent));
    assert_eq!(engine.result(&id).await?.result.as_deref(), Some(b"1".as_slice()));
    let ended = async |id: &ExecutionId, attempts: usize| {
        until("it has ended", || async {
            let seen = engine.describe(id).await.unwrap();
            seen.outcome.is_some() && seen.attempts.len() == attempts
        })
        .await;
        engine.describe(id).await.unwrap()
    };
    said.lock().unwrap().0 = 2;
    engine.admin().replay(&id).await?;
    let seen = ended(&id, 2).await;
    assert_eq!((seen.outcome, seen.failure.unwrap().category.as_str()), (Some(Outcome::Failed), "step_changed"));
    said.lock().unwrap().1 = true;
    engine.admin().replay(&id).await?;
    assert_eq!(ended(&id, 3).await.result.as_deref(), Some(b"2".as_slice()));
    assert_eq!(said.lock().unwrap().2, 2);
    engine.admin().replay(&id).await?;
    ended(&id, 4).await;
    assert_eq!(said.lock().unwrap().2, 2, "it is stored with this input now");
    engine.admin().replay_from(&id, ReplayFrom::Step("price".to_owned())).await?;
    ended(&id, 5).await;
    assert_eq!(said.lock().unwrap().2, 3);
    let fork = engine.admin().fork(&id, ForkBody::default()).await?;
    assert_eq!(engine.result(&fork).await?.result.as_deref(), Some(b"2".as_slice()));
    let forked_from = engine.describe(&fork).await?.forked_from;
    assert_eq!((said.lock().unwrap().2, forked_from), (3, Some(id)));
    let steps = engine.admin().steps(&fork).await?;
    assert_eq!(
        steps.iter().map(|step| (step.name.as_str(), step.kind)).collect::<Vec<_>>(),
        [("price", StepKind::Run)]
    );
    running.stop().await
}

/// Needs both, and gets one.
async fn unapproved(ctx: Ctx) -> HandlerResult {
    ctx.approval("sign-off").of(["ann", "bob"]).within(Duration::from_secs(60)).await?;
    Ok(None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_that_is_not_given_in_time_is_missing_for_good() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let id = engine.submit("unapproved", b"{}").await?;
    let running = engine.run(WorkerRuntime::new(engine.worker("w-1").await?).on("unapproved", unapproved));
    until("it waits", || async { engine.describe(&id).await.unwrap().suspension.is_some() }).await;
    engine.signal_as(&id, "sign-off", Some("ann"), "yes", b"{}").await?;
    engine.advance(Duration::from_secs(60)).await?;
    assert_eq!(engine.result(&id).await?.outcome, Outcome::Failed);
    let seen = engine.describe(&id).await?;
    let failure = seen.failure.unwrap();
    assert_eq!((failure.category.as_str(), seen.attempts.len()), ("approval_missing", 1));
    assert!(failure.reason.contains("its time before 2"), "{}", failure.reason);
    running.stop().await
}

/// More steps than a claim carries.
async fn many(ctx: Ctx, info: TaskInfo, Data(outside): Shared) -> HandlerResult {
    for at in 0..100 {
        let text: String =
            ctx.step("part", || async { outside.done("part").map(|_| "x".repeat(4_000)) }).key(at).await?;
        assert_eq!(text.len(), 4_000);
    }
    if info.attempt_index.get() == 0 { Err("broken".into()) } else { Ok(None) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_that_do_not_come_with_the_claim_are_asked_for() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let outside = Arc::new(Outside::default());
    let mut new = ff_sdk::NewExecution::new("default", "default", "many");
    new.fields.retry = Some(quickly(2));
    let id = engine.submit_new(new).await?;
    let running =
        engine.run(WorkerRuntime::new(engine.worker("w-1").await?).data(Arc::clone(&outside)).on("many", many));
    until("it has failed once", || async {
        engine.describe(&id).await.unwrap().attempts.len() > 1
            || engine.advance(Duration::from_millis(1)).await.is_err()
    })
    .await;
    assert_eq!(engine.result(&id).await?.outcome, Outcome::Success);
    assert_eq!(outside.times("part"), 100);
    running.stop().await
}
