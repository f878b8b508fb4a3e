//! A server whose disk is full: new work is refused as `store_full`, what ends work goes on, and room is noticed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ff_testkit::SmallDisk;
use serde_json::{Value, json};

/// Only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(90);
/// Refusals in a row that show that a size does not fit.
const REFUSALS: usize = 15;

struct Server {
    process: Child,
    url: String,
    http: reqwest::Client,
}

impl Server {
    fn start(disk: &SmallDisk) -> Self {
        let mut process = disk
            .command(env!("CARGO_BIN_EXE_ff"))
            .args(["server", "--no-auth", "--listen", "127.0.0.1:0", "--store"])
            .arg(format!("embedded:{}", disk.path().join("store").display()))
            .stderr(Stdio::piped())
            .spawn()
            .expect("ff starts");
        let mut lines = BufReader::new(process.stderr.take().expect("stderr")).lines();
        let mut said = Vec::new();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let url =
                    line.split_once("listening on ").map(|(_, rest)| rest.split(',').next().unwrap_or(rest).to_owned());
                said.push(line);
                url
            })
            .unwrap_or_else(|| panic!("the server does not say where it listens: {said:#?}"));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self {
            process,
            url,
            http: reqwest::Client::builder().no_proxy().tls_built_in_root_certs(false).build().expect("a client"),
        }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self.http.get(format!("{}{path}", self.url)).send().await.expect("the server answers");
        (answer.status().as_u16(), answer.text().await.expect("the answer arrives"))
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.http.post(format!("{}{path}", self.url)).body(body.to_string());
        let answer = request.send().await.expect("the server answers");
        let status = answer.status().as_u16();
        let text = answer.text().await.expect("the answer arrives");
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    async fn submit(&self, bytes: usize) -> (u16, Value) {
        self.post("/v1/executions", json!({ "kind": "k", "lane": "filler", "input": "x".repeat(bytes) })).await
    }

    /// Submits inputs of this size until nothing of it fits; every refusal says that the store is full.
    async fn fill(&self, bytes: usize, accepted: &mut BTreeSet<String>) {
        let mut refused = 0;
        while refused < REFUSALS {
            let (status, answer) = self.submit(bytes).await;
            if status == 201 {
                refused = 0;
                accepted.insert(answer["execution_id"].as_str().expect("an id").to_owned());
            } else {
                assert_eq!((status, answer["code"].as_str()), (507, Some("store_full")), "{bytes} bytes: {answer}");
                refused += 1;
            }
        }
    }

    fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !look().await {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_new_work_and_lets_work_end() {
    let disk = SmallDisk::mount(40).expect("a small disk");
    let ballast = disk.from_outside().join("ballast");
    std::fs::write(&ballast, vec![7; 12 << 20]).expect("the disk has room");
    let mut server = Server::start(&disk);
    let mut accepted = BTreeSet::new();

    let (status, _) =
        server.post("/v1/workers/w1/register", json!({ "worker_id": "w", "lanes": ["held"], "slots": 64 })).await;
    assert_eq!(status, 200);
    for _ in 0..8 {
        let (status, answer) = server.post("/v1/executions", json!({ "kind": "k", "lane": "held" })).await;
        assert_eq!(status, 201, "{answer}");
        accepted.insert(answer["execution_id"].as_str().expect("an id").to_owned());
    }
    let mut held = Vec::new();
    while held.len() < 8 {
        let claim = json!({ "max": 8, "wait_ms": 5_000, "lease_ttl_ms": 3_600_000 });
        let (status, claimed) = server.post("/v1/workers/w1/claim", claim).await;
        assert_eq!(status, 200, "{claimed}");
        held.extend(claimed["tasks"].as_array().expect("tasks").clone());
    }

    for bytes in [60_000, 3_000, 0] {
        server.fill(bytes, &mut accepted).await;
    }
    eventually("/readyz says so", async || server.get("/readyz").await == (503, "store_full".to_owned())).await;
    assert_eq!(server.get("/livez").await.0, 200, "a full disk is no reason to start anew");

    let complete = async |server: &Server, task: &Value| {
        let fence = json!({ "attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"] });
        let path = format!("/v1/tasks/{}/complete", task["execution_id"].as_str().expect("an id"));
        server.post(&path, json!({ "fence": fence, "result": "done" })).await
    };
    for task in held.drain(..4) {
        let (status, answer) = complete(&server, &task).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(server.submit(60_000).await.0, 507, "what was kept back is not for new work");
    }
    server.kill();
    server = Server::start(&disk);
    for task in held.drain(..) {
        let (status, answer) = complete(&server, &task).await;
        assert_eq!(status, 200, "after a restart on the full disk: {answer}");
    }

    std::fs::remove_file(&ballast).expect("room is made");
    eventually("new work is accepted again", async || {
        let (status, answer) = server.submit(60_000).await;
        if status == 201 {
            accepted.insert(answer["execution_id"].as_str().expect("an id").to_owned());
        }
        status == 201
    })
    .await;
    eventually("/readyz says so again", async || server.get("/readyz").await == (200, "ok".to_owned())).await;

    let mut seen = BTreeSet::new();
    let mut path = "/v1/executions?limit=1000".to_owned();
    loop {
        let (_, page) = server.get(&path).await;
        let page: Value = serde_json::from_str(&page).expect("JSON");
        let items = page["items"].as_array().expect("items");
        seen.extend(items.iter().map(|item| item["execution_id"].as_str().expect("an id").to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/executions?limit=1000&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, accepted, "what was answered is there, and nothing else");
    server.kill();
    let checked = disk
        .command(env!("CARGO_BIN_EXE_ff"))
        .args(["fsck", "--store"])
        .arg(format!("embedded:{}", disk.path().join("store").display()))
        .output()
        .expect("ff runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
