//! Two workers made of bash and curl do everything through HTTP alone, also when one of them is stopped past its lease.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{Api, eventually};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shell/worker.sh");

fn tools_are_there() -> bool {
    let there =
        |tool: &&str| Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    match ["curl", "bash"].iter().find(|tool| !there(tool)) {
        Some(tool) => {
            eprintln!("skipped: {tool} is not installed");
            false
        }
        None => true,
    }
}

/// A script with everything it starts, in a process group of its own.
struct Script {
    process: Child,
    directory: TempDir,
}

impl Script {
    fn start(api: &Api, instance: &str) -> Script {
        let directory = tempfile::tempdir().expect("a directory");
        let log = std::fs::File::create(directory.path().join("log")).expect("a log");
        let process = Command::new("bash")
            .args([SCRIPT, &api.base, instance])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("bash runs");
        Script { process, directory }
    }

    fn lines(&self, start: &str) -> Vec<String> {
        let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        log.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
    }

    fn signal(&self, name: &str) {
        let group = format!("-{}", self.process.id());
        let sent = Command::new("kill").args([&format!("-{name}"), "--", &group]).status();
        assert!(sent.expect("kill runs").success());
    }

    async fn end(mut self) {
        let ended = eventually("the script ends", async || self.process.try_wait().expect("it is ours")).await;
        assert!(ended.success(), "{ended}: {:?}", self.lines(""));
        assert_eq!(self.lines("left").len(), 1);
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.signal("KILL");
            let _ = self.process.wait();
        }
    }
}

async fn completed(api: &Api, count: usize) {
    eventually("everything is done", async || {
        let page = api.get("/v1/executions?state=completed&limit=100").await.with(200);
        (page["items"].as_array().expect("items").len() == count).then_some(())
    })
    .await;
}

async fn drain(api: &Api, instance: &str) {
    api.post(&format!("/v1/workers/{instance}/drain"), json!({})).await.with(200);
}

/// Every execution has its result, by exactly one attempt that succeeded.
async fn each_is_done_once(api: &Api, ids: &[String]) {
    for (n, id) in ids.iter().enumerate() {
        let shown = api.execution(id).await;
        assert_eq!(shown["result"], json!({"doubled": 2 * n}), "{shown}");
        let attempts = shown["attempts"].as_array().expect("attempts");
        let succeeded = attempts.iter().filter(|attempt| attempt["state"] == "succeeded").count();
        assert_eq!(succeeded, 1, "{shown}");
    }
}

fn input(n: usize, seconds: f64) -> Value {
    json!({"n": n, "seconds": seconds})
}

on_both_hosts! {
    async fn two_shell_scripts_do_all_the_work(kit) {
        if !tools_are_there() {
            return;
        }
        let api = kit.api().await;
        let mut ids = Vec::new();
        for n in 0..12 {
            let kind = match n % 4 { 0 => "flaky", 1 => "later", _ => "plain" };
            let retry = json!({"backoff": {"type": "fixed", "delay_ms": 10}, "jitter": "none"});
            ids.push(api.submit(json!({"kind": kind, "input": input(n, 0.01), "retry": retry})).await);
        }
        let scripts = ["shell-1", "shell-2"].map(|instance| Script::start(&api, instance));
        completed(&api, ids.len()).await;
        for (script, instance) in scripts.into_iter().zip(["shell-1", "shell-2"]) {
            drain(&api, instance).await;
            script.end().await;
        }
        each_is_done_once(&api, &ids).await;
        assert_eq!(api.get("/v1/workers").await.with(200)["items"], json!([]), "both said goodbye");
    }

    async fn a_shell_script_stopped_past_its_lease_loses_nothing_and_does_nothing_twice(kit) {
        if !tools_are_there() {
            return;
        }
        let api = kit.api().await;
        let first = Script::start(&api, "shell-1");
        let mut ids = vec![api.submit(json!({"kind": "plain", "input": input(0, 3.0)})).await];
        eventually("the first one works", async || (first.lines("began").len() == 1).then_some(())).await;
        first.signal("STOP");
        let second = Script::start(&api, "shell-2");
        for n in 1..6 {
            ids.push(api.submit(json!({"kind": "plain", "input": input(n, 0.05)})).await);
        }
        completed(&api, ids.len()).await;
        // It writes its line once it has the answer.
        eventually("the other one did all of it", async || (second.lines("complete").len() == ids.len()).then_some(())).await;
        first.signal("CONT");
        let refused = eventually("its write is refused", async || first.lines("refused").pop()).await;
        assert_eq!(refused, format!("refused {} stale_lease", ids[0]));
        assert_eq!(first.lines("complete"), Vec::<String>::new());
        each_is_done_once(&api, &ids).await;
        let shown = api.execution(&ids[0]).await;
        assert_eq!((&shown["attempts"][0]["state"], &shown["reclaim_count"]), (&json!("interrupted"), &json!(1)), "{shown}");

        // It goes on as if nothing had happened.
        drain(&api, "shell-2").await;
        second.end().await;
        let late = api.submit(json!({"kind": "plain", "input": input(6, 0.01)})).await;
        completed(&api, ids.len() + 1).await;
        eventually("it says so", async || {
            first.lines("complete").iter().any(|line| line.contains(&late)).then_some(())
        })
        .await;
        drain(&api, "shell-1").await;
        first.end().await;
    }
}
