//! Layers around tasks: none of them can lose one.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ff_sdk::middleware::{
    ConcurrencyByKeyLayer, MetricsLayer, TaskError, TaskMetrics, TaskRequest, TimeoutLayer, TracingLayer,
};
use ff_sdk::runtime::{HandlerResult, TaskInfo, WorkerRuntime};
use ff_sdk::testing::TestEngine;
use ff_sdk::{NewExecution, SdkError};
use futures::future::BoxFuture;
use tower::{Layer, Service};

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl TaskMetrics for Heard {
    fn started(&self, task: &TaskInfo) {
        self.0.lock().unwrap().push(format!("started {}", task.kind));
    }
    fn ended(&self, task: &TaskInfo, _: Duration, failure: Option<&str>) {
        self.0.lock().unwrap().push(format!("ended {} {failure:?}", task.kind));
    }
}

async fn once(engine: &TestEngine, kind: &str) -> Result<ff_core::types::ExecutionId, SdkError> {
    let mut new = NewExecution::new("default", "default", kind);
    new.fields.retry = Some(ff_script::generated::Retry {
        max_attempts: Some(1),
        backoff: None,
        jitter: None,
        retry_on: None,
        never_on: None,
    });
    engine.submit_new(new).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timeouts_metrics_and_spans_wrap_every_task() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let heard = Arc::new(Heard::default());
    let runtime = WorkerRuntime::new(engine.worker("w-1").await?)
        .on("quick", || async { HandlerResult::<SdkError>::Ok(None) })
        .on("slow", || async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            HandlerResult::<SdkError>::Ok(None)
        })
        .layer(TimeoutLayer::new(Duration::from_millis(100)))
        .layer(MetricsLayer::new(heard.clone()))
        .layer(TracingLayer);
    let running = engine.run(runtime);
    let quick = once(&engine, "quick").await?;
    assert!(engine.result(&quick).await?.failure.is_none());
    let slow = once(&engine, "slow").await?;
    assert_eq!(engine.result(&slow).await?.failure.expect("too slow").category, "handler_timeout");
    running.stop().await?;
    let heard = heard.0.lock().unwrap().clone();
    assert_eq!(heard, ["started quick", "ended quick None", "started slow", "ended slow Some(\"handler_timeout\")"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_one_key_wait_for_each_other_and_others_do_not() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let total_most = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (running, most, total_most) = (running.clone(), most.clone(), total_most.clone());
        move |info: TaskInfo| {
            let (running, most, total_most) = (running.clone(), most.clone(), total_most.clone());
            async move {
                let bounded = info.tags.get("tenant").is_some_and(|tenant| tenant == "a");
                if bounded {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                } else {
                    total_most.fetch_add(1, Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(30)).await;
                if bounded {
                    running.fetch_sub(1, Ordering::SeqCst);
                }
                HandlerResult::<SdkError>::Ok(None)
            }
        }
    };
    let runtime = WorkerRuntime::new(engine.worker("w-1").await?)
        .on("k", handler)
        .layer(ConcurrencyByKeyLayer::by_tag(1, "tenant"));
    let background = engine.run(runtime);
    let mut ids = Vec::new();
    for n in 0..12 {
        let mut new = NewExecution::new("default", "default", "k");
        if n % 2 == 0 {
            new.fields.tags = Some([("tenant".to_owned(), "a".to_owned())].into());
        }
        ids.push(engine.submit_new(new).await?);
    }
    for id in &ids {
        assert!(engine.result(id).await?.failure.is_none());
    }
    assert_eq!((most.load(Ordering::SeqCst), total_most.load(Ordering::SeqCst)), (1, 6));
    background.stop().await
}

/// A layer that panics: the runtime still ends the task.
#[derive(Clone)]
struct Broken;

#[derive(Clone)]
struct BrokenService;

impl<S> Layer<S> for Broken {
    type Service = BrokenService;
    fn layer(&self, _: S) -> BrokenService {
        BrokenService
    }
}

impl Service<TaskRequest> for BrokenService {
    type Response = Option<Vec<u8>>;
    type Error = TaskError;
    type Future = BoxFuture<'static, Result<Option<Vec<u8>>, TaskError>>;
    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), TaskError>> {
        std::task::Poll::Ready(Ok(()))
    }
    fn call(&mut self, _: TaskRequest) -> Self::Future {
        Box::pin(async { panic!("the layer broke") })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_layer_loses_no_task() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let runtime = WorkerRuntime::new(engine.worker("w-1").await?)
        .on("k", || async { HandlerResult::<SdkError>::Ok(None) })
        .layer(Broken);
    let running = engine.run(runtime);
    let id = once(&engine, "k").await?;
    let failure = engine.result(&id).await?.failure.expect("it failed");
    assert_eq!((failure.category.as_str(), failure.reason.as_str()), ("handler_panic", "the layer broke"));
    running.stop().await
}
