//! Real processes: one is stopped past its lease and wakes as a zombie, one is told to end under load.
//!
//! The child is this test binary itself, running the ignored test `child`.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ff_core::state::{AttemptState, Outcome};
use ff_sdk::FlowFabricWorker;
use ff_sdk::runtime::{Ctx, HandlerResult, Payload, WorkerRuntime};
use tempfile::TempDir;

use crate::world::{World, until};

const PORT: &str = "FF_TEST_CHILD_PORT";
const INSTANCE: &str = "FF_TEST_CHILD_INSTANCE";
const NOTES: &str = "FF_TEST_CHILD_NOTES";

/// Appends a line to the notes of this child.
fn note(line: &str) {
    use std::io::Write;
    let path = std::env::var(NOTES).expect("the parent says where");
    let mut file = std::fs::File::options().create(true).append(true).open(path).expect("the notes open");
    writeln!(file, "{line}").expect("the line is written");
}

/// Works as long as the input says, in milliseconds of its own: a process that is stopped makes no headway meanwhile. Told to
/// stop, it tries one more write, as a zombie would, and notes what came of it.
async fn work(Payload(ms): Payload<u64>, ctx: Ctx) -> HandlerResult<String> {
    const STEP: u64 = 20;
    let id = *ctx.execution_id();
    note(&format!("began {id}"));
    for _ in 0..ms / STEP {
        tokio::select! {
            biased;
            reason = ctx.cancellation().cancelled() => {
                note(&format!("{reason} {id}"));
                match ctx.progress(99, "one more word").await {
                    Ok(()) => note(&format!("accepted {id}")),
                    Err(error) => note(&format!("refused {} {id}", error.engine().map_or("?", |error| error.code()))),
                }
                return Err(format!("told to stop: {reason}"));
            }
            () = tokio::time::sleep(Duration::from_millis(STEP)) => {}
        }
    }
    note(&format!("ended {id}"));
    Ok(Some(std::env::var(INSTANCE).expect("it has a name").into_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests of this file, as a process of its own"]
async fn child() {
    let port = std::env::var(PORT).expect("only as a child").parse().expect("a port");
    let instance = std::env::var(INSTANCE).expect("only as a child");
    let mut config = ff_sdk::WorkerConfig::new("127.0.0.1", port, "child", instance, "default", crate::world::LANE);
    config.lease_ttl_ms = 2_000;
    let worker = FlowFabricWorker::connect(config).await.expect("the child connects");
    note("ready");
    let ended =
        WorkerRuntime::new(worker).concurrency(4).drain_grace(Duration::from_secs(2)).on("work", work).run().await;
    note(&format!("run {ended:?}"));
    ended.expect("a clean end");
}

struct Process {
    child: Child,
    directory: TempDir,
}

impl Process {
    fn start(world: &World, instance: &str) -> Process {
        let crate::world::Behind::Valkey { server, .. } = &world.behind else { panic!("children talk to Valkey") };
        let directory = tempfile::tempdir().expect("a directory");
        let child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["processes::child", "--exact", "--ignored", "--nocapture"])
            .env(PORT, server.port().to_string())
            .env(INSTANCE, instance)
            .env(NOTES, directory.path().join("notes"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the child starts");
        Process { child, directory }
    }

    fn notes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join("notes")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn noted(&self, start: &str) -> usize {
        self.notes().iter().filter(|line| line.starts_with(start)).count()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    async fn exit(&mut self) -> std::process::ExitStatus {
        for _ in 0..1_000 {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the child has not ended: {:?}", self.notes());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zombie_is_cancelled_its_writes_refused_and_the_other_worker_finishes() {
    let world = World::valkey().await;
    let first = Process::start(&world, "first");
    until("the first is ready", || async { first.noted("ready") == 1 }).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.submit("work", b"1500").await);
    }
    until("it runs them", || async { first.noted("began") == 3 }).await;
    first.signal("STOP");
    let second = Process::start(&world, "second");
    for id in &ids {
        let result = world.result(id).await;
        assert_eq!((result.outcome, result.result.as_deref()), (Outcome::Success, Some(b"second".as_slice())));
    }
    first.signal("CONT");
    until("its handlers are told to stop", || async { first.noted("refused") + first.noted("accepted") == 3 }).await;
    assert_eq!((first.noted("lease_lost"), first.noted("ended")), (3, 0), "{:?}", first.notes());
    assert_eq!(first.noted("refused stale_lease"), 3, "every write of the zombie is refused: {:?}", first.notes());
    let late = world.submit("work", b"10").await;
    assert_eq!(world.result(&late).await.outcome, Outcome::Success);
    for id in &ids {
        let seen = world.describe(id).await;
        assert_eq!(seen.result.as_deref(), Some(b"second".as_slice()), "what was committed stays");
        let states: Vec<AttemptState> = seen.attempts.iter().map(|attempt| attempt.state).collect();
        assert_eq!(states, [AttemptState::Interrupted, AttemptState::Succeeded]);
    }
    assert_eq!(second.noted("ended"), 3 + second.noted(&format!("ended {late}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_finishes_or_hands_back_and_exits_cleanly() {
    let world = World::valkey().await;
    let mut process = Process::start(&world, "leaving");
    until("it is ready", || async { process.noted("ready") == 1 }).await;
    let mut ids = Vec::new();
    for n in 0..20 {
        // Some end within the grace, some do not.
        let ms: &[u8] = if n % 4 == 3 { b"60000" } else { b"200" };
        ids.push(world.submit("work", ms).await);
    }
    until("it is busy", || async { process.noted("began") >= 4 }).await;
    process.signal("TERM");
    let status = process.exit().await;
    assert!(status.success(), "{status}: {:?}", process.notes());
    assert_eq!(process.noted("run Ok"), 1, "{:?}", process.notes());
    assert!(world.admin.list_workers().await.unwrap().is_empty(), "its liveness is gone");
    let (began, finished, handed_back) = (process.noted("began"), process.noted("ended"), process.noted("shutdown"));
    assert_eq!(began, finished + handed_back, "{:?}", process.notes());
    let mut completed = 0;
    for id in &ids {
        let seen = world.describe(id).await;
        assert!(seen.lease.is_none(), "nothing is left leased");
        assert_eq!(seen.reclaim_count, 0, "nothing was lost");
        completed += usize::from(seen.outcome == Some(Outcome::Success));
    }
    assert_eq!(completed, finished);
}
