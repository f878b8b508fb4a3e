//! A real `ff server` process and the `ff` that talks to it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// How long anything may take that should happen at once.
const SOON: Duration = Duration::from_secs(180);
const ANY_PORT: &str = "127.0.0.1:0";

/// A running server on a free port; killed when it goes.
pub struct Server {
    process: Child,
    pub url: String,
    directory: Option<tempfile::TempDir>,
    store: String,
    /// How it lets callers in and more flags, and variables.
    flags: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Server {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = format!("embedded:{}", directory.path().join("store").display());
        Self::on(directory, store)
    }

    /// A server on this store.
    pub fn on(directory: tempfile::TempDir, store: String) -> Self {
        Self::letting_in(directory, store, &["--no-auth"])
    }

    /// A server on this store in the place of one that has stopped: its clients find it where that one was.
    pub fn instead_of(url: &str, directory: tempfile::TempDir, store: String) -> Self {
        let (flags, variables) = (vec!["--no-auth".to_owned()], Vec::new());
        let listen = url.trim_start_matches("http://");
        let (process, url) = Self::spawn(directory.path(), &store, &flags, &variables, listen);
        Self { process, url, directory: Some(directory), store, flags, variables }
    }

    /// A server on this store that lets callers in as these flags say.
    pub fn letting_in(directory: tempfile::TempDir, store: String, flags: &[&str]) -> Self {
        Self::begin(directory, store, flags, &[])
    }

    /// A server on this store with more flags and variables, which it has after a restart too.
    pub fn with(directory: tempfile::TempDir, store: String, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let flags: Vec<&str> = ["--no-auth"].iter().chain(flags).copied().collect();
        Self::begin(directory, store, &flags, variables)
    }

    fn begin(directory: tempfile::TempDir, store: String, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let variables: Vec<(String, String)> = variables.iter().map(own).collect();
        let (process, url) = Self::spawn(directory.path(), &store, &flags, &variables, ANY_PORT);
        Self { process, url, directory: Some(directory), store, flags, variables }
    }

    /// Kills the process without a word and starts another one on the same store.
    pub fn kill_and_start_again(&mut self) {
        self.kill();
        (self.process, self.url) = Self::spawn(self.directory(), &self.store, &self.flags, &self.variables, ANY_PORT);
    }

    /// Kills the process without a word.
    pub fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ended");
    }

    /// Ends it as an operator would; what is left is its directory and its store.
    pub fn stop(mut self) -> (tempfile::TempDir, String) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        assert_eq!(self.process.wait().expect("it ends").code(), Some(0));
        (self.directory.take().expect("it is there until the end"), self.store.clone())
    }

    fn spawn(
        directory: &Path,
        store: &str,
        flags: &[String],
        variables: &[(String, String)],
        listen: &str,
    ) -> (Child, String) {
        let mut process = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(["server", "--listen", listen, "--store", store])
            .args(flags)
            .envs(variables.iter().cloned())
            .arg("--data-dir")
            .arg(directory.join("data"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("ff starts");
        let mut lines = BufReader::new(process.stderr.take().expect("stderr")).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("listening on ")?.1.split(',').next()?.to_owned()))
            .expect("the server says where it listens");
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        (process, url)
    }

    /// The store, as `--store` names it.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Where the store is, and beside it whatever a test needs.
    pub fn directory(&self) -> &Path {
        self.directory.as_ref().expect("it is there until the end").path()
    }

    pub fn ff(&self, args: &[&str]) -> Output {
        self.ff_with(args, "", &[])
    }

    pub fn ff_with(&self, args: &[&str], stdin: &str, env: &[(&str, &str)]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(args)
            .env("FF_URL", &self.url)
            .envs(env.iter().copied())
            .current_dir(self.directory())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ff starts");
        let mut input = child.stdin.take().expect("stdin");
        // A command that does not read its input may be gone already.
        let _ = input.write_all(stdin.as_bytes());
        drop(input);
        child.wait_with_output().expect("it ends")
    }

    /// A command that goes on, with its stdout to read line by line; ended when it goes.
    pub fn going(&self, args: &[&str]) -> Going {
        self.going_with(args, &[])
    }

    pub fn going_with(&self, args: &[&str], env: &[(&str, &str)]) -> Going {
        let mut process = Command::new(env!("CARGO_BIN_EXE_ff"))
            .args(args)
            .env("FF_URL", &self.url)
            .envs(env.iter().copied())
            .current_dir(self.directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ff starts");
        Going {
            out: read_lines(process.stdout.take().expect("stdout")),
            err: read_lines(process.stderr.take().expect("stderr")),
            process,
        }
    }

    /// What a worker posts.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let answer = posted(&self.url, path, body);
        serde_json::from_slice(&answer)
            .unwrap_or_else(|error| panic!("{path}: {error}: {}", String::from_utf8_lossy(&answer)))
    }
}

/// A command that goes on.
pub struct Going {
    out: Receiver<String>,
    err: Receiver<String>,
    process: Child,
}

fn read_lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// The first line that has this text.
#[track_caller]
fn awaited(lines: &Receiver<String>, text: &str) -> String {
    let mut seen = Vec::new();
    loop {
        match lines.recv_timeout(SOON) {
            Ok(line) if line.contains(text) => return line,
            Ok(line) => seen.push(line),
            Err(_) => panic!("{text:?} did not come within {SOON:?}; what came: {seen:#?}"),
        }
    }
}

impl Going {
    /// Waits for a line of stdout with this text.
    #[track_caller]
    pub fn says(&self, text: &str) -> String {
        awaited(&self.out, text)
    }

    /// Waits for a line of stderr with this text.
    #[track_caller]
    pub fn complains(&self, text: &str) -> String {
        awaited(&self.err, text)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the exit code of a command that ends by itself.
    pub fn ended(mut self) -> Option<i32> {
        self.process.wait().expect("it ends").code()
    }

    /// Sends a signal and waits for the exit code.
    pub fn end(mut self, signal: &str) -> Option<i32> {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A command that talks to no server of ours.
pub fn ff(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ff")).args(args).stdin(Stdio::null()).output().expect("ff starts")
}

/// The bytes of an answer; none when there was none.
pub fn posted(url: &str, path: &str, body: &Value) -> Vec<u8> {
    let done = Command::new("curl")
        .args(["-sS", "--data-binary", "@-", &format!("{url}{path}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            child.stdin.take().expect("stdin").write_all(body.to_string().as_bytes())?;
            child.wait_with_output()
        })
        .expect("curl runs");
    done.stdout
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a command that succeeds prints.
#[track_caller]
pub fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", err(output));
    String::from_utf8(output.stdout.clone()).expect("text")
}

pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
