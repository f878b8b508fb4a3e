//! Two workers made of bash and curl do everything through HTTP alone.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::kit::eventually;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/worker.sh");

on_both_hosts! {
    async fn two_shell_scripts_do_all_the_work(kit) {
        for tool in ["curl", "bash"] {
            if Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
                eprintln!("skipped: {tool} is not installed");
                return;
            }
        }
        let api = kit.api().await;
        let mut ids = Vec::new();
        for n in 0..12 {
            let kind = match n % 4 { 0 => "flaky", 1 => "later", _ => "plain" };
            let retry = json!({"backoff": {"type": "fixed", "delay_ms": 10}, "jitter": "none"});
            ids.push(api.submit(json!({"kind": kind, "input": {"n": n}, "retry": retry})).await);
        }
        let workers: Vec<_> = ["shell-1", "shell-2"]
            .map(|instance| {
                Command::new("bash").arg(SCRIPT).arg(&api.base).arg(instance).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().expect("bash runs")
            })
            .into_iter()
            .collect();
        eventually("everything is done", std::time::Duration::from_secs(60), async || {
            let page = api.get("/v1/executions?state=completed&limit=100").await.with(200);
            (page["items"].as_array().expect("items").len() == ids.len()).then_some(())
        }).await;
        for instance in ["shell-1", "shell-2"] {
            api.post(&format!("/v1/workers/{instance}/drain"), json!({})).await.with(200);
        }
        for mut worker in workers {
            let done = tokio::task::spawn_blocking(move || worker.wait()).await.expect("joined").expect("it ends");
            assert!(done.success(), "{done}");
        }
        for (n, id) in ids.iter().enumerate() {
            let shown = api.execution(id).await;
            assert_eq!(shown["result"], json!({"doubled": 2 * n}), "{shown}");
        }
        assert_eq!(api.get("/v1/workers").await.with(200)["items"], json!([]), "both said goodbye");
    }
}
