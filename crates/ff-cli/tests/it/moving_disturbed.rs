//! An export that somebody disturbs and an import that is killed are never taken for whole ones.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::kit::{Server, err, out, posted};
use ff_backend_valkey::ValkeyHost;
use ff_core::PartitionConfig;
use ff_script::generated::{DeregisterWorker, HeartbeatWorkers, RegisterWorker};
use ff_script::{Client, Library, Route};
use ff_testkit::{Aof, TestServer};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(180);

fn ff(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ff")).args(args).env_remove("FF_STORE").output().expect("ff runs")
}

fn valkey() -> TestServer {
    TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }).expect("valkey")
}

/// Submits executions with an input of 1 KiB each.
fn submit(server: &Server, count: usize) {
    for first in (0..count).step_by(100) {
        let item = |n| json!({"kind": "k", "input": {"n": n, "text": "x".repeat(1_000)}});
        let items: Vec<Value> = (first..count.min(first + 100)).map(item).collect();
        let answer = String::from_utf8(posted(&server.url, "/v1/executions:batch", &json!(items))).expect("text");
        assert_eq!(answer.lines().filter(|line| line.contains("execution_id")).count(), items.len(), "{answer}");
    }
}

#[track_caller]
fn until(what: &str, mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What the data of an embedded store takes on disk.
fn taken(directory: &Path) -> u64 {
    std::fs::metadata(directory.join("data.mdb")).map_or(0, |file| file.blocks() * 512)
}

/// Starts an import, and kills it as soon as it has written something.
fn kill_half_way(file: &str, store: &str, mut begun: impl FnMut() -> bool) {
    let import = Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(["import", file, "--store", store])
        .stderr(Stdio::piped())
        .spawn()
        .expect("ff starts");
    let mut import = Killed(import);
    until("the import has begun", &mut begun);
    import.0.kill().expect("it runs");
    assert_eq!(import.0.wait().expect("it ended").code(), None, "it was killed before its end");
}

/// A process that does not outlive the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_does_not_start_on_half_an_import_and_the_import_can_be_run_again() {
    let server = Server::start();
    submit(&server, 3_000);
    let (files, store) = server.stop();
    let file = |name: &str| files.path().join(name).display().to_string();
    let whole = file("whole.ffx");
    let exported = ff(&["export", &whole, "--store", &store]);
    out(&exported);

    let valkey = valkey();
    let (half, on_valkey) = (files.path().join("half"), valkey.url());
    let embedded = format!("embedded:{}", half.display());
    kill_half_way(&whole, &embedded, || taken(&half) > 1 << 20);
    kill_half_way(&whole, &on_valkey, || valkey.command::<u64>(&["DBSIZE"]).expect("it answers") > 500);
    for store in [embedded, on_valkey] {
        let data = file("data");
        let refused = ff(&["server", "--no-auth", "--listen", "127.0.0.1:0", "--store", &store, "--data-dir", &data]);
        assert!(!refused.status.success());
        for words in ["import_unfinished", "--again"] {
            assert!(err(&refused).contains(words), "{store}: {}", err(&refused));
        }
        for args in [vec!["fsck"], vec!["export", &file("half.ffx")], vec!["import", &whole]] {
            let refused = ff(&[args.as_slice(), &["--store", &store]].concat());
            assert!(!refused.status.success() && err(&refused).contains("--again"), "{args:?}: {}", err(&refused));
        }
        out(&ff(&["import", &whole, "--store", &store, "--again"]));
        let checked = out(&ff(&["fsck", "--store", &store]));
        assert!(checked.contains("3000 executions") && checked.contains(" 0 findings"), "{checked}");
        let full = ff(&["import", &whole, "--store", &store, "--again"]);
        assert!(err(&full).contains("not empty"), "{}", err(&full));
        // As many keys as in the first place: nothing of the killed import is left over.
        let again = ff(&["export", &file("again.ffx"), "--store", &store]);
        assert!(err(&again).ends_with(&err(&exported)), "{}", err(&again));
    }
}

#[test]
fn an_export_that_a_server_disturbs_has_no_end_and_replaces_nothing() {
    let valkey = valkey();
    let server = Server::on(tempfile::tempdir().expect("a directory"), valkey.url());
    submit(&server, 300);
    let (files, store) = server.stop();
    let file = |name: &str| files.path().join(name).display().to_string();
    let (backup, partial, torn) = (file("b.ffx"), file("b.ffx.partial"), file("torn.ffx"));
    out(&ff(&["export", &backup, "--store", &store]));
    let good = std::fs::read(&backup).expect("the backup");
    assert!(good.len() > 200_000, "more than a pipe holds: {}", good.len());

    for to in ["-", &backup] {
        // The export stands still while nobody reads what it writes: that is when a server comes.
        let mut export = Command::new(env!("CARGO_BIN_EXE_ff"));
        export.args(["export", to, "--store", &store]).stderr(Stdio::piped());
        let mut from: Box<dyn Read> = if to == "-" {
            let mut child = Killed(export.stdout(Stdio::piped()).spawn().expect("ff starts"));
            let stdout = child.0.stdout.take().expect("stdout");
            Box::new(Exporting { child, from: stdout })
        } else {
            assert!(Command::new("mkfifo").arg(&partial).status().expect("mkfifo runs").success());
            let child = Killed(export.spawn().expect("ff starts"));
            Box::new(Exporting { child, from: std::fs::File::open(&partial).expect("it is written") })
        };
        let mut written = vec![0; 9];
        from.read_exact(&mut written).expect("it has begun");
        let server = Server::on(tempfile::tempdir().expect("a directory"), store.clone());
        from.read_to_end(&mut written).expect("it ends with an error that says who");
        server.stop();
        std::fs::write(&torn, &written).expect("a file");
        let refused = ff(&["import", &torn, "--store", &format!("embedded:{}", file("nowhere"))]);
        assert!(err(&refused).contains("damaged"), "{}", err(&refused));
        assert!(std::fs::read(&backup).expect("the backup") == good, "the good backup is as it was");
        assert!(!Path::new(&partial).exists());
    }
}

/// What an export writes; at the end of it, it must have failed for the server that came.
struct Exporting<R> {
    child: Killed,
    from: R,
}

impl<R: Read> Read for Exporting<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(to)?;
        if read == 0 {
            let mut said = String::new();
            self.child.0.stderr.take().expect("it ends once").read_to_string(&mut said)?;
            assert!(!self.child.0.wait()?.success(), "{said}");
            assert!(said.contains("is alive on this store"), "{said}");
        }
        Ok(read)
    }
}

#[test]
fn a_worker_that_needs_no_server_is_not_exported_under() {
    let valkey = valkey();
    let (files, store) = Server::on(tempfile::tempdir().expect("a directory"), valkey.url()).stop();
    let file = files.path().join("b.ffx").display().to_string();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let client = runtime.block_on(async {
        let options = ff_backend_valkey::Options::new(valkey.url(), Library::shipped());
        let host = ValkeyHost::connect(options).await.expect("it connects");
        let client = Client::new(Arc::new(host), PartitionConfig::standalone());
        let register = RegisterWorker {
            capabilities: Vec::new(),
            kinds: None,
            incarnation: None,
            instance: "direct-1".to_owned(),
            lanes: vec!["default".to_owned()],
            namespace: "default".to_owned(),
            owner: None,
            slots: 1,
            take_over: None,
            worker_id: "direct".to_owned(),
        };
        client.call(Route::Fleet, &register).await.expect("it registers");
        client
    });
    let beating = {
        let client = client.clone();
        runtime.spawn(async move {
            let mut beats = tokio::time::interval(Duration::from_millis(100));
            loop {
                beats.tick().await;
                let beat = HeartbeatWorkers { instances: vec!["direct-1".to_owned()] };
                client.call(Route::Fleet, &beat).await.expect("it is heard");
            }
        })
    };
    let refused = ff(&["export", &file, "--store", &store]);
    assert!(!refused.status.success() && !Path::new(&file).exists());
    assert!(err(&refused).contains("worker direct-1 is alive on this store"), "{}", err(&refused));
    beating.abort();
    assert!(runtime.block_on(beating).expect_err("it never ends by itself").is_cancelled());
    let leave = DeregisterWorker::new("direct-1".to_owned());
    runtime.block_on(client.call(Route::Fleet, &leave)).expect("it leaves");
    out(&ff(&["export", &file, "--store", &store]));
}
