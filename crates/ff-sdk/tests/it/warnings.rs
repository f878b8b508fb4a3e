//! What a worker says in the log, and how often.

use std::io::Write;
use std::sync::{Arc, Mutex};

use ff_sdk::{FlowFabricWorker, WorkerConfig};
use ff_testkit::TestServer;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::{LANE, World, claim};

/// The warnings of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;
    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

impl Log {
    fn start() -> (Log, tracing::subscriber::DefaultGuard) {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .with_writer(log.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn lines_with(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.0.lock().unwrap()).lines().filter(|line| line.contains(text)).count()
    }
}

// One thread runs everything, so that its log has everything.
async fn a_dropped_task_warns_once(world: World) {
    let (log, _guard) = Log::start();
    // A dropped task keeps its slot until its lease runs out.
    let worker = FlowFabricWorker::connect(world.config("w-1").with_max_concurrent_tasks(8)).await.unwrap();
    for turn in 1..=2 {
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        assert_eq!(task.execution_id(), &id);
        drop(task);
        assert_eq!(log.lines_with("dropped without an ending"), turn);
        assert_eq!(log.lines_with(&id.to_string()), 1, "it says which one");
    }
    world.submit("k", b"{}").await;
    claim(&worker).await.complete(None).await.unwrap();
    let cancelled = world.submit("k", b"{}").await;
    let task = claim(&worker).await;
    world.admin.cancel(&cancelled, "gone", None).await.unwrap();
    assert!(task.complete(None).await.is_err(), "ended by someone else");
    assert_eq!(log.lines_with("dropped without an ending"), 2, "a task that was ended says nothing");
}

mod a_task_dropped_without_an_ending_warns_exactly_once {
    use super::*;

    #[tokio::test]
    async fn embedded() {
        a_dropped_task_warns_once(World::embedded().await).await;
    }

    #[tokio::test]
    async fn valkey() {
        a_dropped_task_warns_once(World::valkey().await).await;
    }

    #[tokio::test]
    async fn http() {
        a_dropped_task_warns_once(World::http().await).await;
    }
}

#[tokio::test]
async fn connecting_to_a_store_that_no_server_serves_warns() {
    let (log, _guard) = Log::start();
    let server = TestServer::start(ff_testkit::Options::default()).unwrap();
    let config = WorkerConfig::new("127.0.0.1", server.port(), "tester", "w-1", "default", LANE);
    FlowFabricWorker::connect(config).await.unwrap().disconnect().await.unwrap();
    assert_eq!(log.lines_with("no ff server is alive"), 1);

    let (log, _guard) = Log::start();
    let world = World::valkey().await;
    let before = log.lines_with("no ff server is alive");
    world.worker("w-1").await.disconnect().await.unwrap();
    assert_eq!(log.lines_with("no ff server is alive"), before, "one is alive");
}
