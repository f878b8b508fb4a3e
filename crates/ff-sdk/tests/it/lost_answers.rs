//! An ending whose answer was lost is repeated with the same fence and gets what was committed.

use std::sync::Arc;

use ff_backend_embedded::Embedded;
use ff_core::state::{AttemptState, Outcome, PublicState};
use ff_core::types::TimestampMs;
use ff_script::Library;
use ff_sdk::backend::Transport;
use ff_sdk::task::FailOutcome;
use ff_sdk::{Backoff, BackoffType, EmbeddedEngine, FlowFabricWorker, Jitter, Retry, WorkerConfig};

use crate::lossy::{Loss, LossyHost, proxy};
use crate::world::{Behind, LANE, World, claim};

/// A worker that reaches the world through something that loses answers.
struct Lossy {
    world: World,
    worker: FlowFabricWorker,
    loss: Loss,
}

impl Lossy {
    /// What the request that ends a task mentions on its way.
    fn lose_next(&self, verb: &str) {
        let needle = match (self.world.transport, verb) {
            (Transport::Http, "complete") => "/results HTTP".to_owned(),
            (Transport::Http, verb) => format!("/{verb} HTTP"),
            (_, "cancel") => "ff_cancel_attempt".to_owned(),
            (_, verb) => format!("ff_{verb}_execution"),
        };
        self.loss.lose_next(&needle);
    }

    async fn embedded() -> Lossy {
        let loss = Loss::default();
        let directory = tempfile::tempdir().unwrap();
        let options = ff_backend_embedded::Options::new(directory.path().join("store"), Library::shipped().text);
        let host = LossyHost { inner: Arc::new(Embedded::open(options).unwrap()), loss: loss.clone() };
        let engine = EmbeddedEngine::start(Arc::new(host)).await.unwrap();
        let config = WorkerConfig::embedded(&engine, "tester", "w-1", "default", LANE);
        let world = World::over_engine(&engine, config.clone(), directory);
        Lossy { worker: FlowFabricWorker::connect(config).await.unwrap(), world, loss }
    }

    async fn valkey() -> Lossy {
        let (world, loss) = (World::valkey().await, Loss::default());
        let Behind::Valkey { server, .. } = &world.behind else { unreachable!("it is Valkey") };
        let port = proxy(server.port(), loss.clone()).await;
        let config = WorkerConfig::new("127.0.0.1", port, "tester", "w-1", "default", LANE);
        Lossy { worker: FlowFabricWorker::connect(config).await.unwrap(), world, loss }
    }

    async fn http() -> Lossy {
        let (world, loss) = (World::http().await, Loss::default());
        let Behind::Http { server, .. } = &world.behind else { unreachable!("it is HTTP") };
        let port = proxy(server.address().port(), loss.clone()).await;
        let config = WorkerConfig::http(format!("http://127.0.0.1:{port}"), "tester", "w-1", "default", LANE);
        Lossy { worker: FlowFabricWorker::connect(config).await.unwrap(), world, loss }
    }

    async fn check(self) {
        let (world, worker) = (&self.world, &self.worker);
        let id = world.submit("k", b"{}").await;
        let task = claim(worker).await;
        self.lose_next("complete");
        task.complete(Some(b"once".to_vec())).await.unwrap();
        assert_eq!(self.loss.lost(), 1, "its answer was lost");
        let seen = world.describe(&id).await;
        assert_eq!((seen.outcome, seen.result.as_deref()), (Some(Outcome::Success), Some(b"once".as_slice())));
        let states: Vec<AttemptState> = seen.attempts.iter().map(|attempt| attempt.state).collect();
        assert_eq!(states, [AttemptState::Succeeded], "it took effect once");

        let mut new = world.new_execution("k");
        // Long enough to be seen: with jitter it may be over before anyone looks.
        let backoff = Backoff { delay_ms: Some(60_000), ..Backoff::new(BackoffType::Fixed) };
        new.fields.retry = Some(Retry { backoff: Some(backoff), jitter: Some(Jitter::None), ..Retry::default() });
        let id = world.admin.submit(new).await.unwrap();
        let task = claim(worker).await;
        self.lose_next("fail");
        let outcome = task.fail("no luck", "weather").await.unwrap();
        assert_eq!(self.loss.lost(), 2);
        let seen = world.describe(&id).await;
        let delay_until = seen.delay_until.unwrap_or(TimestampMs(0));
        assert_eq!(outcome, FailOutcome::RetryScheduled { delay_until }, "what was committed is what is answered");
        assert_eq!(seen.attempts.len(), 1);
        world.admin.cancel(&id, "enough", None).await.unwrap();

        let id = world.submit("k", b"{}").await;
        let task = claim(worker).await;
        self.lose_next("cancel");
        task.cancel("not wanted").await.unwrap();
        assert_eq!(self.loss.lost(), 3);
        assert_eq!(world.describe(&id).await.outcome, Some(Outcome::Cancelled));

        let id = world.submit("k", b"{}").await;
        let task = claim(worker).await;
        self.lose_next("delay");
        let until = TimestampMs::from_millis(TimestampMs::now().0 + 3_600_000);
        task.delay_execution(until).await.unwrap();
        assert_eq!(self.loss.lost(), 4);
        let seen = world.describe(&id).await;
        assert_eq!((seen.state, seen.delay_until), (PublicState::Delayed, Some(until)));
    }
}

mod an_ending_whose_answer_was_lost_is_repeated_and_gets_what_was_committed {
    use super::Lossy;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn embedded() {
        Lossy::embedded().await.check().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn valkey() {
        Lossy::valkey().await.check().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn http() {
        Lossy::http().await.check().await;
    }
}
