//! What `ff server` says: JSON lines that name their request and hold no secret, and traces to a collector.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(180);

/// A server whose stderr is kept line by line.
struct Logged {
    process: Child,
    lines: Receiver<String>,
    url: String,
    seen: Vec<String>,
}

impl Logged {
    fn start(directory: &std::path::Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory)
            .args(args)
            .envs(env.iter().copied())
            .current_dir(directory)
            .stderr(Stdio::piped())
            .spawn()
            .expect("ff starts");
        let (send, lines) = channel();
        let stderr = BufReader::new(process.stderr.take().expect("stderr"));
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| drop(send.send(line))));
        let mut logged = Self { process, lines, url: String::new(), seen: Vec::new() };
        let line = logged.next_with("listening on ");
        let (_, url) = line.split_once("listening on ").expect("a place");
        logged.url = url.split([',', '"']).next().expect("a URL").to_owned();
        logged
    }

    #[track_caller]
    fn next_with(&mut self, text: &str) -> String {
        loop {
            let line =
                self.lines.recv_timeout(SOON).unwrap_or_else(|_| panic!("{text:?} did not come: {:#?}", self.seen));
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends a request and answers its status and body.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-X", method, "-w", "\n%{http_code}", "--data-binary", "@-"]);
        for (name, value) in headers {
            curl.arg("-H").arg(format!("{name}: {value}"));
        }
        let mut child = curl
            .arg(format!("{}{path}", self.url))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("curl runs");
        child.stdin.take().expect("stdin").write_all(body.to_string().as_bytes()).expect("written");
        let text = String::from_utf8(child.wait_with_output().expect("curl ends").stdout).expect("text");
        let (body, status) = text.rsplit_once('\n').expect("a status");
        (status.parse().expect("a status"), serde_json::from_str(body).unwrap_or_default())
    }

    /// Ends it as an operator would, and answers everything it said.
    fn stop(mut self) -> Vec<String> {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        assert_eq!(self.process.wait().expect("it ends").code(), Some(0));
        let mut seen = std::mem::take(&mut self.seen);
        seen.extend(self.lines.iter());
        seen
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_whole_run_logged_as_json_names_its_requests_and_holds_no_secret() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Logged::start(directory.path(), &["--log", "trace", "--log-format", "json"], &[]);
    let root = find(directory.path(), "root-token").trim().to_owned();
    let authorization = format!("Bearer {root}");
    let auth = ("authorization", authorization.as_str());
    let payload = "PAYLOAD-4f1c9be0";
    let ask = |method, path: &str, body: Value| server.ask(method, path, &[auth, ("x-request-id", "run-7")], &body);

    let (status, submitted) = ask("POST", "/v1/executions", json!({"kind": "k", "input": payload}));
    assert_eq!(status, 201, "{submitted}");
    let id = submitted["execution_id"].as_str().expect("an id").to_owned();
    ask("POST", "/v1/workers/w1/register", json!({"worker_id": "w", "lanes": ["default"], "slots": 1}));
    let (_, claimed) = ask("POST", "/v1/workers/w1/claim", json!({"wait_ms": 10_000}));
    let task = &claimed["tasks"][0];
    let fence =
        json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]});
    let wait = json!({"fence": fence, "reason": "waiting_for_approval", "waitpoints": [{"key": "ok"}], "condition": {"signal": "go"}});
    let (status, suspended) = ask("POST", &format!("/v1/tasks/{id}/suspend"), wait);
    assert_eq!(status, 200, "{suspended}");
    let waitpoint = &suspended["waitpoints"][0];
    let token = waitpoint["tokens"][0]["token"].as_str().expect("a token").to_owned();
    let signals = format!("/v1/waitpoints/{}/signals", waitpoint["waitpoint_id"].as_str().expect("an id"));
    let signal = json!({"execution_id": id, "name": "go", "payload": payload, "token": token});
    assert_eq!(server.ask("POST", &signals, &[], &signal).0, 200);
    let (_, made) = ask("POST", "/v1/admin/tokens", json!({"name": "ci", "roles": ["read"]}));
    let bearer = made["token"].as_str().expect("a token").to_owned();
    assert_eq!(server.ask("GET", "/v1/stats", &[("authorization", &format!("Bearer {bearer}"))], &json!({})).0, 200);
    assert_eq!(server.ask("GET", "/v1/stats", &[("authorization", &format!("Bearer {bearer}x"))], &json!({})).0, 401);
    let keys = find(directory.path(), "keys");

    let seen = server.stop();
    let lines: Vec<Value> =
        seen.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let answered = lines.iter().filter(|line| line["message"] == "answered").collect::<Vec<_>>();
    let submission = answered
        .iter()
        .find(|line| line["spans"][0]["route"] == "/v1/executions")
        .unwrap_or_else(|| panic!("no line of the submission in {answered:#?}"));
    let request = &submission["spans"][0];
    assert_eq!((&submission["level"], &submission["status"]), (&json!("DEBUG"), &json!(201)));
    assert_eq!((&request["request_id"], &request["method"]), (&json!("run-7"), &json!("POST")));
    assert_eq!((&request["namespace"], &request["lane"]), (&json!("default"), &json!("default")));
    assert_eq!(request["execution_id"], json!(id));
    assert!(submission["duration_ms"].as_f64().is_some_and(|ms| ms > 0.0));
    let turned = lines.iter().find(|line| line["message"] == "turned away").expect("the wrong token");
    assert_eq!((&turned["level"], &turned["code"]), (&json!("INFO"), &json!("unauthenticated")));

    let mac = token.rsplit('.').next().expect("a mac");
    let mut secrets: Vec<&str> = keys.split_whitespace().filter(|word| word.len() >= 32).collect();
    assert!(!secrets.is_empty(), "{keys}");
    secrets.extend([root.as_str(), bearer.as_str(), mac, payload]);
    for line in &seen {
        let found = secrets.iter().find(|secret| line.contains(**secret));
        assert_eq!(found, None, "in the log: {line}");
    }
}

/// The content of a file of this name, wherever it is.
fn find(directory: &std::path::Path, name: &str) -> String {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.file_name().is_some_and(|file| file == name) {
                return std::fs::read_to_string(path).expect("text");
            }
        }
    }
    panic!("no {name} in the data directory")
}

#[test]
fn text_is_for_people_and_a_wrong_level_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Logged::start(directory.path(), &["--no-auth"], &[("FF_LOG", "debug")]);
    server.ask("GET", "/v1/lanes", &[], &json!({}));
    let line = server.next_with("answered");
    assert!(line.contains("DEBUG") && line.contains("route=\"/v1/lanes\"") && line.contains("status=200"), "{line}");
    assert!(!line.contains('\u{1b}'), "no colours where there is no terminal: {line}");
    server.stop();
    for (args, said) in [
        (["--log", "warn,ff_server=loud"], "does not say what to log"),
        (["--log", "blah"], "use error, warn, info, debug, trace or off"),
        (["--otlp-endpoint", "collector"], "name a collector as http://HOST:4318"),
    ] {
        let refused = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(["server", "--no-auth", "--data-dir"])
            .arg(directory.path())
            .args(args)
            .output()
            .expect("ff runs");
        assert_eq!(refused.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&refused.stderr).contains(said), "{refused:?}");
    }
}

#[test]
fn traces_go_where_a_flag_or_the_usual_variable_says() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (send, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let send = send.clone();
            std::thread::spawn(move || collect(stream, &send));
        }
    });
    for (args, env) in [
        (vec!["--no-auth", "--otlp-endpoint", &url], vec![]),
        (vec!["--no-auth"], vec![("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())]),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Logged::start(directory.path(), &args, &env);
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let header = format!("00-{trace}-b7ad6b7169203331-01");
        let (status, _) = server.ask("POST", "/v1/executions", &[("traceparent", &header)], &json!({"kind": "k"}));
        assert_eq!(status, 201);
        // What is left is sent before the process ends.
        server.stop();
        let id: Vec<u8> =
            (0..32).step_by(2).map(|at| u8::from_str_radix(&trace[at..at + 2], 16).expect("hex")).collect();
        let mut all = Vec::new();
        while !(holds(&all, &id) && holds(&all, b"POST /v1/executions") && holds(&all, b"ff_submit_execution")) {
            let body: Vec<u8> = received.recv_timeout(SOON).expect("the request's span is sent");
            all.extend(body);
        }
        assert!(holds(&all, b"flowfabric"), "the service has a name");
    }
}

fn holds(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Takes the bodies of one connection's requests.
fn collect(stream: std::net::TcpStream, send: &std::sync::mpsc::Sender<Vec<u8>>) {
    let mut answer = stream.try_clone().expect("a second handle");
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).is_err() || send.send(body).is_err() {
            return;
        }
        if answer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}
