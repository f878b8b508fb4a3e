//! Real processes: one is stopped past its lease and wakes as a zombie, one is told to end under load.
//!
//! The child is this test binary itself, running the ignored test `child`.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ff_core::state::{AttemptState, Outcome};
use ff_sdk::backend::Transport;
use ff_sdk::runtime::{Ctx, HandlerResult, Payload, WorkerRuntime};
use ff_sdk::{FlowFabricWorker, WorkerConfig};
use tempfile::TempDir;

use crate::world::{Behind, LANE, World, until};

const REACHES: &str = "FF_TEST_CHILD_REACHES";
const INSTANCE: &str = "FF_TEST_CHILD_INSTANCE";
const NOTES: &str = "FF_TEST_CHILD_NOTES";

/// Appends a line to the notes of this child.
fn note(line: &str) {
    use std::io::Write;
    let path = std::env::var(NOTES).expect("the parent says where");
    let mut file = std::fs::File::options().create(true).append(true).open(path).expect("the notes open");
    // In one piece: handlers note side by side.
    file.write_all(format!("{line}\n").as_bytes()).expect("the line is written");
}

/// The instance that only ends work without a length when it is told to stop; any other ends it at once.
const ZOMBIE: &str = "zombie";

/// Works as long as the input says, in milliseconds of its own: a process that is stopped makes no headway meanwhile. Told to
/// stop, it tries one more write, as a zombie would, and notes what came of it.
async fn work(Payload(ms): Payload<Option<u64>>, ctx: Ctx) -> HandlerResult<String> {
    const STEP: u64 = 20;
    let id = *ctx.execution_id();
    let instance = std::env::var(INSTANCE).expect("it has a name");
    note(&format!("began {id}"));
    let steps = match ms {
        Some(ms) => ms / STEP,
        None if instance == ZOMBIE => u64::MAX,
        None => 0,
    };
    for _ in 0..steps {
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
    Ok(Some(instance.into_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests of this file, as a process of its own"]
async fn child() {
    let reaches = std::env::var(REACHES).expect("only as a child");
    let instance = std::env::var(INSTANCE).expect("only as a child");
    let mut config = match reaches.parse::<u16>() {
        Ok(port) => WorkerConfig::new("127.0.0.1", port, "child", instance, "default", LANE),
        Err(_) => WorkerConfig::http(reaches, "child", instance, "default", LANE),
    };
    config.lease_ttl_ms = 2_000;
    let worker = match FlowFabricWorker::connect(config).await {
        Ok(worker) => worker,
        Err(error) => {
            note(&format!("not connected {error}"));
            std::process::exit(3);
        }
    };
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
        let reaches = match &world.behind {
            Behind::Valkey { server, .. } => server.port().to_string(),
            Behind::Http { server, .. } => format!("http://{}", server.address()),
            Behind::Embedded(_) => unreachable!("an embedded engine lives in one process"),
        };
        let directory = tempfile::tempdir().expect("a directory");
        let child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["processes::child", "--exact", "--ignored", "--nocapture"])
            .env(REACHES, reaches)
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

/// Writes one test per transport that other processes can use.
macro_rules! between_processes {
    ($($name:ident => $check:ident),+ $(,)?) => {
        $(
            mod $name {
                use super::*;

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn valkey() {
                    $check(&World::valkey().await).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn http() {
                    $check(&World::http().await).await;
                }
            }
        )+
    };
}

between_processes! {
    a_zombie_is_cancelled_its_writes_refused_and_the_other_worker_finishes => zombie,
    sigterm_under_load_finishes_or_hands_back_and_exits_cleanly => sigterm,
    a_killed_worker_restarts_at_once_with_its_instance_id => killed,
    a_second_process_is_refused_while_the_first_lives => second_process,
}

async fn zombie(world: &World) {
    let first = Process::start(world, ZOMBIE);
    until("the first is ready", || async { first.noted("ready") == 1 }).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.submit("work", b"null").await);
    }
    until("it runs them", || async { first.noted("began") == 3 }).await;
    first.signal("STOP");
    let second = Process::start(world, "second");
    for id in &ids {
        let result = world.result(id).await;
        assert_eq!((result.outcome, result.result.as_deref()), (Outcome::Success, Some(b"second".as_slice())));
    }
    first.signal("CONT");
    let all = |what: &str| ids.iter().all(|id| first.noted(&format!("{what} {id}")) >= 1);
    until("its handlers are told to stop and try one more write", || async { all("refused stale_lease") }).await;
    assert!(all("lease_lost"), "{:?}", first.notes());
    assert_eq!((first.noted("ended"), first.noted("accepted")), (0, 0), "{:?}", first.notes());
    let late = world.submit("work", b"10").await;
    assert_eq!(world.result(&late).await.outcome, Outcome::Success);
    for id in &ids {
        let seen = world.describe(id).await;
        assert_eq!(seen.result.as_deref(), Some(b"second".as_slice()), "what was committed stays");
        // Over HTTP a claim of the stopped process still stands with the server, and may get the work once more.
        let states: Vec<AttemptState> = seen.attempts.iter().map(|attempt| attempt.state).collect();
        let (last, before) = states.split_last().expect("it was tried");
        assert_eq!(*last, AttemptState::Succeeded);
        let interrupted = before.iter().filter(|state| **state == AttemptState::Interrupted).count();
        assert!(interrupted == before.len() && (1..=2).contains(&interrupted), "{states:?}");
        assert!(interrupted == 1 || world.transport == Transport::Http, "{states:?}");
    }
    assert_eq!(second.noted("ended"), 3 + second.noted(&format!("ended {late}")), "each was done once");
}

async fn sigterm(world: &World) {
    let mut process = Process::start(world, "leaving");
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

async fn killed(world: &World) {
    let mut first = Process::start(world, "same");
    until("the first is ready", || async { first.noted("ready") == 1 }).await;
    // Once while it waits for work, once while every one of its slots is taken.
    for busy in [0, 4] {
        let mut ids = Vec::new();
        for _ in 0..busy {
            ids.push(world.submit("work", b"1000").await);
        }
        until("it is busy", || async { first.noted("began") == busy }).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        first.signal("KILL");
        first.exit().await;
        let next = restarted(world).await;
        for id in &ids {
            assert_eq!(world.result(id).await.outcome, Outcome::Success, "what the dead one held is done");
        }
        first = next;
    }
}

/// The next process under the id of a killed one. A server that has no time sees the end of a connection late and refuses the
/// first ones; all of them together ask for less time than the registration would last by itself.
async fn restarted(world: &World) -> Process {
    let mut refused = Vec::new();
    for _ in 0..8 {
        let next = Process::start(world, "same");
        until("it is there again", || async { next.noted("ready") + next.noted("not connected") == 1 }).await;
        if next.noted("ready") == 1 {
            return next;
        }
        refused.extend(next.notes());
    }
    panic!("the instance id of a killed process stays taken: {refused:?}");
}

async fn second_process(world: &World) {
    let first = Process::start(world, "same");
    until("the first is ready", || async { first.noted("ready") == 1 }).await;
    for _ in 0..2 {
        let mut second = Process::start(world, "same");
        assert_eq!(second.exit().await.code(), Some(3), "{:?}", second.notes());
        assert_eq!(second.noted("not connected connect: worker_instance_id"), 1, "{:?}", second.notes());
    }
    let id = world.submit("work", b"10").await;
    assert_eq!(world.result(&id).await.outcome, Outcome::Success, "the first goes on");
    assert_eq!(first.noted(&format!("ended {id}")), 1);
}
