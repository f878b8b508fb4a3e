//! A killed process loses nothing that it acknowledged, and leaves the directory free.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{commands, invocation, open, options};
use ff_backend_embedded::{DumpValue, Durability, Embedded};
use ff_script::Host;

const CHILD: &str = "FF_EMBEDDED_CRASH_CHILD";

/// Not a test of its own: it writes until it is killed, and prints what was acknowledged.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(directory) = std::env::var(CHILD) else {
        return;
    };
    let (mut options, _) = options(&PathBuf::from(directory));
    if std::env::var("FF_EMBEDDED_RELAXED").is_ok() {
        options.durability = Durability::Relaxed;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let host = std::sync::Arc::new(Embedded::open(options).unwrap());
        let mut tasks = Vec::new();
        for lane in 0..8 {
            let host = std::sync::Arc::clone(&host);
            tasks.push(tokio::spawn(async move {
                for i in 0.. {
                    let name = format!("{lane}-{i}");
                    let score = i.to_string();
                    let list: &[&[&str]] = &[
                        &["ZADD", "z", &score, &name],
                        &["HSET", "h", &name, &score],
                        &["XADD", "x", "*", "n", &name],
                    ];
                    host.call(invocation("t_commit", commands(list))).await.unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "acked {name}").unwrap();
                    out.flush().unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn killed_process_loses_nothing(relaxed: bool) {
    let directory = tempfile::tempdir().unwrap();
    let mut acked: Vec<String> = Vec::new();
    for round in 1..=3 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "crash::child_that_writes_until_it_is_killed", "--nocapture"])
            .env(CHILD, directory.path());
        if relaxed {
            command.env("FF_EMBEDDED_RELAXED", "1");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines.by_ref() {
            if let Some(name) = line.unwrap().strip_prefix("acked ") {
                acked.push(name.to_owned());
                seen += 1;
                if seen == 100 * round {
                    break;
                }
            }
        }
        let second = Embedded::open(options(directory.path()).0).err().expect("the child holds the directory");
        assert!(second.to_string().contains(&format!("in use by process {}", child.id())), "{second}");
        child.kill().unwrap();
        child.wait().unwrap();
        // Acknowledgements between the last line read and the child's end count as well.
        acked.extend(lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("acked ").map(str::to_owned)));
        let fixture = open(directory.path());
        let dump = fixture.host.dump().await.unwrap();
        let (DumpValue::Zset(z), DumpValue::Hash(h), DumpValue::Stream(x)) = (&dump["z"], &dump["h"], &dump["x"])
        else {
            panic!("the store holds other things")
        };
        for name in &acked {
            assert!(z.contains_key(name.as_bytes()), "{name} was acknowledged and is gone");
            assert!(h.contains_key(name.as_bytes()), "{name} was acknowledged and is half there");
        }
        assert_eq!(z.len(), h.len());
        assert!(x.len() >= z.len(), "every call is there as a whole");
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_it_has_answered() {
    killed_process_loses_nothing(false).await;
}

#[tokio::test]
async fn a_killed_process_loses_nothing_even_when_relaxed() {
    killed_process_loses_nothing(true).await;
}
