//! Handlers: what they take, how their tasks end, how a runtime goes down.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ff_core::state::Outcome;
use ff_core::types::ExecutionId;
use ff_script::generated::Retry;
use ff_sdk::middleware::TaskError;
use ff_sdk::runtime::{Ctx, Data, HandlerResult, Payload, PayloadBytes, TaskInfo, WorkerRuntime};
use ff_sdk::{CancelReason, SdkError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::world::{SOON, World, until};

#[derive(serde::Deserialize)]
struct Order {
    amount: u64,
}

struct Prefix(&'static str);

async fn nothing() -> HandlerResult {
    Ok(None)
}

async fn everything(
    Payload(order): Payload<Order>,
    PayloadBytes(bytes): PayloadBytes,
    Data(prefix): Data<Prefix>,
    info: TaskInfo,
    ctx: Ctx,
    again: Payload<serde_json::Value>,
) -> HandlerResult<SdkError> {
    ctx.progress(10, "started").await?;
    assert_eq!(again.0["amount"], order.amount);
    Ok(Some(format!("{} {} {} {}", prefix.0, order.amount, bytes.len(), info.kind).into_bytes()))
}

async fn refuses() -> Result<Option<Vec<u8>>, std::io::Error> {
    Err(std::io::Error::other("no disk"))
}

async fn own_category() -> HandlerResult {
    Err(TaskError::new("try later", "rate_limited").fatal().into())
}

async fn panics() -> HandlerResult {
    panic!("the sky fell")
}

async fn needs_state(_: Data<u128>) -> HandlerResult {
    Ok(None)
}

struct Stop {
    token: CancellationToken,
    handle: tokio::task::JoinHandle<Result<(), SdkError>>,
}

impl Stop {
    async fn now(self) -> Result<(), SdkError> {
        self.token.cancel();
        tokio::time::timeout(SOON, self.handle).await.expect("it stops in time").unwrap()
    }
}

fn start(runtime: WorkerRuntime) -> Stop {
    let token = CancellationToken::new();
    let runtime = runtime.without_signals().shutdown_on(token.clone());
    Stop { token, handle: tokio::spawn(runtime.run()) }
}

async fn submit_once(world: &World, kind: &str, input: &[u8]) -> ExecutionId {
    let mut new = world.new_execution(kind);
    new.fields.input = Some(input.to_vec().into());
    new.fields.retry =
        Some(Retry { max_attempts: Some(1), backoff: None, jitter: None, retry_on: None, never_on: None });
    world.admin.submit(new).await.unwrap()
}

for_each_transport! {
    async fn handlers_take_what_they_name_and_tasks_end_by_what_they_say(world: &World) {
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .data(Prefix("paid"))
            .on("nothing", nothing)
            .on("everything", everything)
            .on("refuses", refuses)
            .on("own_category", own_category)
            .on("panics", panics)
            .on("needs_state", needs_state)
            .on("wants_order", |Payload(order): Payload<Order>| async move { HandlerResult::<SdkError>::Ok(Some(order.amount.to_string().into_bytes())) });
        let health = runtime.health();
        let running = start(runtime);
        let input: &[u8] = br#"{"amount":7}"#;
        let table: &[(&str, &[u8], Result<Option<&str>, &str>)] = &[
            ("nothing", b"", Ok(None)),
            ("everything", input, Ok(Some("paid 7 12 everything"))),
            ("wants_order", input, Ok(Some("7"))),
            ("wants_order", b"[]", Err("extractor_payload_decode")),
            ("refuses", input, Err("handler_error")),
            ("own_category", input, Err("rate_limited")),
            ("panics", input, Err("handler_panic")),
            ("needs_state", input, Err("extractor_missing_state")),
        ];
        for (kind, input, expected) in table {
            let id = submit_once(world, kind, input).await;
            let result = world.result(&id).await;
            match expected {
                Ok(bytes) => {
                    assert_eq!(result.outcome, Outcome::Success, "{kind}: {:?}", result.failure);
                    assert_eq!(result.result.as_deref(), bytes.map(str::as_bytes), "{kind}");
                }
                Err(category) => assert_eq!(result.failure.expect("it failed").category, *category, "{kind}"),
            }
        }
        assert!(health.check().is_green());
        running.now().await.unwrap();
        assert!(world.admin.list_workers().await.unwrap().is_empty());
    }

    async fn a_runtime_takes_the_kinds_it_has_handlers_for(world: &World) {
        let running = start(WorkerRuntime::new(world.worker("w-1").await).on("mail", nothing).on("call", nothing));
        let (other, mail) = (submit_once(world, "fax", b"").await, submit_once(world, "mail", b"").await);
        assert_eq!(world.result(&mail).await.outcome, Outcome::Success);
        let worker = world.admin.list_workers().await.unwrap().remove(0);
        assert_eq!(worker.kinds, Some(vec!["call".to_owned(), "mail".to_owned()]));
        let execution = world.describe(&other).await;
        assert!(execution.attempts.is_empty(), "it was not handed a kind it lacks: {:?}", execution.attempts);
        running.now().await.unwrap();
    }

    async fn a_task_without_a_handler_is_given_back_and_counted_nowhere(world: &World) {
        let mut config = world.config("w-1");
        config.kinds = Some(vec!["fax".to_owned()]);
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        let running = start(WorkerRuntime::new(worker).on("mail", nothing));
        let fax = submit_once(world, "fax", b"").await;
        let given_back = async || {
            let seen = world.describe(&fax).await;
            seen.attempts.len() == 1 && seen.delay_until.is_some()
        };
        until("the task is given back", given_back).await;
        let seen = world.describe(&fax).await;
        assert!(seen.failure.is_none() && seen.reclaim_count == 0, "it is counted nowhere: {seen:?}");
        running.now().await.unwrap();
    }

    async fn many_run_at_once_within_the_bound(world: &World) {
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let handler = {
            let (running, most) = (running.clone(), most.clone());
            move || {
                let (running, most) = (running.clone(), most.clone());
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    HandlerResult::<SdkError>::Ok(None)
                }
            }
        };
        let runtime = WorkerRuntime::new(world.worker("w-1").await).concurrency(8).on("k", handler);
        let runtime = start(runtime);
        let mut ids = Vec::new();
        for _ in 0..40 {
            ids.push(world.submit("k", b"{}").await);
        }
        for id in &ids {
            assert_eq!(world.result(id).await.outcome, Outcome::Success);
        }
        let most = most.load(Ordering::SeqCst);
        assert!((2..=8).contains(&most), "{most} at once");
        runtime.now().await.unwrap();
    }

    async fn shutdown_lets_tasks_end_and_hands_back_what_outlasts_the_grace(world: &World) {
        let started = Arc::new(Notify::new());
        let told = Arc::new(std::sync::Mutex::new(None));
        let slow = {
            let (started, told) = (started.clone(), told.clone());
            move |ctx: Ctx| {
                let (started, told) = (started.clone(), told.clone());
                async move {
                    started.notify_one();
                    let reason = ctx.cancellation().cancelled().await;
                    *told.lock().unwrap() = Some(reason);
                    HandlerResult::<String>::Err(format!("stopped: {reason}"))
                }
            }
        };
        let begun = Arc::new(Notify::new());
        let quick = {
            let begun = begun.clone();
            move || {
                let begun = begun.clone();
                async move {
                    begun.notify_one();
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    HandlerResult::<SdkError>::Ok(None)
                }
            }
        };
        let runtime = WorkerRuntime::new(world.worker("w-1").await).drain_grace(Duration::from_secs(3)).on("slow", slow).on("quick", quick);
        let runtime = start(runtime);
        let slow = world.submit("slow", b"{}").await;
        let quick = world.submit("quick", b"{}").await;
        tokio::time::timeout(SOON, started.notified()).await.unwrap();
        tokio::time::timeout(SOON, begun.notified()).await.unwrap();
        runtime.now().await.unwrap();
        assert_eq!(world.result(&quick).await.outcome, Outcome::Success);
        assert_eq!(*told.lock().unwrap(), Some(CancelReason::Shutdown));
        let seen = world.describe(&slow).await;
        assert!(seen.lease.is_none() && seen.outcome.is_none() && seen.reclaim_count == 0, "handed back: {seen:?}");
        assert!(world.admin.list_workers().await.unwrap().is_empty());
    }

    async fn a_cancel_request_reaches_the_handler_and_cancels_the_task(world: &World) {
        let mut config = world.config("w-1");
        config.lease_ttl_ms = 1_000;
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        let handler = |ctx: Ctx| async move {
            let reason = ctx.cancellation().cancelled().await;
            HandlerResult::<String>::Err(reason.to_string())
        };
        let runtime = start(WorkerRuntime::new(worker).on("k", handler));
        let id = world.submit("k", b"{}").await;
        until("it runs", || async { world.describe(&id).await.lease.is_some() }).await;
        world.admin.cancel(&id, "changed my mind", Some(60_000)).await.unwrap();
        assert_eq!(world.result(&id).await.outcome, Outcome::Cancelled);
        runtime.now().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_goes_away_and_comes_back_does_not_end_the_run() {
    let mut world = World::valkey().await;
    let runtime = WorkerRuntime::new(world.worker("w-1").await)
        .claim_backoff(ff_sdk::runtime::BackoffPolicy::fixed(Duration::from_millis(100)))
        .on("k", nothing);
    let running = start(runtime);
    let before = world.submit("k", b"{}").await;
    assert_eq!(world.result(&before).await.outcome, Outcome::Success);
    if let crate::world::Behind::Valkey { server, .. } = &mut world.behind {
        server.kill_9();
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.restart().unwrap();
    }
    let mut after = None;
    for _ in 0..100 {
        match world.admin.submit(world.new_execution("k")).await {
            Ok(id) => {
                after = Some(id);
                break;
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    assert_eq!(world.result(&after.expect("the store is back")).await.outcome, Outcome::Success);
    running.now().await.unwrap();
}

async fn most_at_once(config: ff_sdk::WorkerConfig, world: &World) -> usize {
    #[derive(Default)]
    struct Seen {
        now: AtomicUsize,
        most: AtomicUsize,
    }
    async fn busy(Data(seen): Data<Arc<Seen>>) -> HandlerResult {
        let now = seen.now.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        seen.now.fetch_sub(1, Ordering::SeqCst);
        Ok(None)
    }
    let seen = Arc::new(Seen::default());
    let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
    let token = CancellationToken::new();
    let runtime = WorkerRuntime::new(worker).data(Arc::clone(&seen)).on("busy", busy);
    let running = tokio::spawn(runtime.without_signals().shutdown_on(token.clone()).run());
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(world.submit("busy", b"{}").await);
    }
    for id in &ids {
        assert_eq!(world.result(id).await.outcome, Outcome::Success);
    }
    token.cancel();
    running.await.unwrap().unwrap();
    seen.most.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_at_a_time_is_kept_when_it_was_said() {
    let world = World::embedded().await;
    assert!(most_at_once(world.config("w-1"), &world).await > 1, "a runtime's own default is larger");
    assert_eq!(most_at_once(world.config("w-2").with_max_concurrent_tasks(1), &world).await, 1);
    assert_eq!(most_at_once(world.config("w-3").with_max_concurrent_tasks(2), &world).await, 2);
}
