//! Talks to a running server: where it is, what it answered, and what to do when it did not.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, anyhow, bail};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use ff_api::{Ask, Operation};
use ff_sdk::WorkerConfig;
use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::progress::Progress;
use crate::store::state_directory;

/// The exit code when the command line or the configuration is wrong.
pub const WRONG_USAGE: u8 = 2;
/// The exit code when an id is unknown.
const UNKNOWN_ID: u8 = 4;

/// The command line, or a file it names, is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub String);

/// There was no answer, or only a part of one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Away(String);

impl Away {
    /// Why there was none.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Where the server is.
#[derive(Args, Clone, Debug)]
pub struct ServerArgs {
    /// The server's address.
    #[arg(long, env = "FF_URL", default_value = "http://127.0.0.1:7433")]
    url: String,
    /// The token to present, or @FILE to read it from; a server on this machine is shown the root token of the state
    /// directory unless said.
    #[arg(long, env = "FF_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The certificate that signed the server's, as PEM, when the system does not know it.
    #[arg(long, env = "FF_CA_CERT", value_name = "FILE")]
    ca_cert: Option<PathBuf>,
}

impl ServerArgs {
    /// The token to present.
    fn token(&self) -> anyhow::Result<Option<String>> {
        if let Some(token) = &self.token {
            return Ok(Some(match token.strip_prefix('@') {
                Some(file) => {
                    let text = std::fs::read_to_string(file)
                        .with_context(|| WrongUsage(format!("cannot read the token in {file}")))?;
                    text.trim().to_owned()
                }
                None => token.clone(),
            }));
        }
        // The root token is shown to nobody but this machine.
        let host = self.url.split_once("://").map_or("", |(_, rest)| rest).split(['/', '?']).next().unwrap_or("");
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_matches(['[', ']']);
        let local = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let Some(directory) = state_directory().ok().filter(|_| local) else { return Ok(None) };
        let known = ff_keys::known_root_token(&directory.join("server"))?;
        Ok(known.map(|token| token.reveal().to_owned()))
    }

    /// The same worker, which presents this token and trusts this certificate.
    pub fn equip(&self, mut worker: WorkerConfig) -> anyhow::Result<WorkerConfig> {
        if let Some(token) = self.token()? {
            worker = worker.with_token(token);
        }
        if let Some(file) = &self.ca_cert {
            worker = worker.with_ca_cert(file);
        }
        Ok(worker)
    }

    /// Lets a process that this one starts present the same token and trust the same certificate.
    pub fn equip_process(&self, command: &mut tokio::process::Command) -> anyhow::Result<()> {
        if let Some(token) = self.token()? {
            command.env("FF_TOKEN", token);
        }
        if let Some(file) = &self.ca_cert {
            command.arg("--ca-cert").arg(file);
        }
        Ok(())
    }

    /// The server's address.
    pub fn url(&self) -> &str {
        self.url.trim_end_matches('/')
    }
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// The API's answer as it came.
    Json,
    /// Execution ids, one per line.
    Ids,
}

/// How answers are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputArgs {
    /// How answers are printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// Which executions a command is about.
#[derive(Args, Clone, Debug)]
pub struct IdArgs {
    /// Execution ids; `-` reads them from stdin.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

impl IdArgs {
    /// The ids, those on stdin included.
    pub fn read(&self) -> anyhow::Result<Vec<String>> {
        read_ids(&self.ids)
    }
}

/// An id of the command line.
pub fn id<T: std::str::FromStr>(what: &str, text: &str) -> anyhow::Result<T> {
    text.parse().map_err(|_| WrongUsage(format!("{text:?} is not the id of {what}: it must be a UUID")).into())
}

/// Ids as they were named; `-` stands for those on stdin.
pub fn read_ids(named: &[String]) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for id in named {
        if id == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read ids from stdin")?;
            ids.extend(text.split_whitespace().map(str::to_owned));
        } else {
            ids.push(id.clone());
        }
    }
    Ok(ids)
}

/// An answer: what it means, and the bytes it came as.
pub struct Answered<T> {
    /// What it means.
    pub value: T,
    /// The bytes, for `-o json`.
    pub bytes: Vec<u8>,
}

/// What the server said.
#[derive(Debug)]
pub struct Reply {
    /// Whether it did what was asked.
    pub status: StatusCode,
    /// The body, as it came.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_slice(&self.bytes).context("the server's answer is not JSON")
    }

    /// The answer, or the refusal as an error that says what to do next.
    pub fn accepted(self) -> anyhow::Result<Self> {
        if self.status.is_success() {
            return Ok(self);
        }
        let Some(problem) = self.json().ok().filter(|problem| problem["code"].is_string()) else {
            let said = String::from_utf8_lossy(&self.bytes);
            let said: String = said.chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect();
            bail!(
                "this is not a FlowFabric server: it answered {} {said:?}; say where one is with --url or FF_URL",
                self.status
            );
        };
        let code = problem["code"].as_str().unwrap_or("unknown");
        let detail = problem["detail"].as_str().unwrap_or("no detail was given");
        Err(Refused { code: code.to_owned(), text: format!("{detail} ({code}){}", next_step(code)) }.into())
    }
}

/// A refusal of the server.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refused {
    code: String,
    text: String,
}

impl Refused {
    /// True when the server is about to stop or waits for its store: asking again later may help.
    pub fn passes(&self) -> bool {
        matches!(self.code.as_str(), "store_unavailable" | "closed")
    }
}

/// What a user can do about a refusal, where it is not plain from its words.
fn next_step(code: &str) -> &'static str {
    match code {
        "execution_not_found" => "; `ff list` shows what is there",
        "flow_not_found" => "; `ff flow list` shows what is there",
        "flow_terminal" => "; nothing can be added to it any more, nor run again in a cancelled one",
        "member_started" => "; add a member behind it instead",
        "idempotency_conflict" => "; use another --idempotency-key (for a flow: flow_id) for another body",
        "lane_full" => "; wait for its work to be done, or raise the lane's max_depth",
        "at_capacity" => "; wait for running work to end, or raise the lane's max_active",
        "lane_disabled" => "; resume the lane or choose another with --lane",
        "execution_not_terminal" => "; cancel it first, or wait with `ff result --wait`",
        "max_replays" => "; submit it anew",
        "unauthenticated" => {
            "; present a token with --token TOKEN or @FILE (the server's data directory has the root token in the file root-token), or set FF_TOKEN"
        }
        "invalid_token" => "; use the waitpoint token as it was handed out, or ask for another: `ff token reissue`",
        "waitpoint_not_found" => "; `ff approvals` shows the open ones",
        "waitpoint_not_open" => {
            "; it was answered, has expired, or the token was replaced or spent: `ff approvals` shows what is open"
        }
        "signal_not_allowed" => "; `ff approvals -o json` says which names it takes",
        "execution_not_suspended" => "; `ff show` says what it is doing",
        "attempt_not_found" => "; `ff show` lists its attempts",
        "access_not_found" => "; `ff token list` shows those there are",
        "forbidden" => "; use a token with that role or scope: `ff token create` makes one",
        "key_not_found" => "; `ff key list` shows those there are",
        "quota_not_found" => "; `ff quota list` shows those there are",
        "budget_not_found" => "; `ff budget list` shows those there are",
        "budget_in_use" => "; delete those below it first, and let what holds it end",
        "reservation_not_found" => "; it was given back, or its time is over",
        "lane_not_found" => "; `ff lane list` shows those there are, `ff lane set` defines one",
        "worker_not_registered" => "; `ff worker list` shows those that are alive",
        "cursor_expired" => "; start anew with --after start",
        "store_unavailable" => "; the server cannot reach its store, try again",
        _ => "",
    }
}

/// A client of one server.
pub struct Api {
    url: String,
    token: Option<String>,
    http: reqwest::Client,
}

impl Api {
    /// A client; nothing is sent yet.
    pub fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        Self::at(server.url(), server.token()?, server.ca_cert.as_deref())
    }

    /// A client that presents no credential.
    pub fn anonymous(url: &str, ca_cert: Option<&Path>) -> anyhow::Result<Self> {
        Self::at(url.trim_end_matches('/'), None, ca_cert)
    }

    fn at(url: &str, token: Option<String>, ca_cert: Option<&Path>) -> anyhow::Result<Self> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!(WrongUsage(format!(
                "{url} is not the address of a server; it looks like http://127.0.0.1:7433 (--url or FF_URL)"
            )));
        }
        // Reading all authorities the system trusts takes a while, and nothing in the clear needs them.
        let mut http = reqwest::Client::builder().tls_built_in_root_certs(url.starts_with("https://"));
        if let Some(file) = ca_cert {
            let pem = std::fs::read(file)
                .with_context(|| WrongUsage(format!("cannot read the certificate in {}", file.display())))?;
            let certificate = reqwest::Certificate::from_pem(&pem)
                .with_context(|| WrongUsage(format!("cannot use the certificate in {}", file.display())))?;
            http = http.add_root_certificate(certificate);
        }
        Ok(Self { url: url.to_owned(), token, http: http.build().context("cannot make an HTTP client")? })
    }

    /// Opens an answer that goes on: one JSON object per line. A refusal is an error.
    pub async fn lines(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<reqwest::Response> {
        let request = self.http.request(Method::GET, format!("{}{path}", self.url)).query(query);
        let response = self.answer(request.header("accept", "application/x-ndjson")).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let bytes = response
            .bytes()
            .await
            .with_context(|| Away::new("the server stopped in the middle of its answer"))?
            .to_vec();
        Err(Reply { status, bytes }.accepted().err().unwrap_or_else(|| anyhow!("the server answered {status}")))
    }

    /// The server's clock as its answers say it, in whole seconds; nothing when they do not.
    pub async fn date(&self) -> anyhow::Result<Option<i64>> {
        let answer = self.answer(self.http.request(Method::GET, format!("{}/livez", self.url))).await?;
        let said = answer.headers().get("date").and_then(|date| date.to_str().ok());
        let date = said.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        Ok(date.map(|date| date.timestamp().as_millisecond()))
    }

    /// Asks for one operation; a refusal is an error.
    pub async fn ask<O>(&self, ask: &Ask<O>) -> anyhow::Result<Answered<O::Answer>>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
    {
        let method = Method::from_bytes(O::METHOD.as_str().as_bytes()).expect("operations have methods of HTTP");
        let mut request = self.http.request(method, format!("{}{}", self.url, O::url(&ask.at, &ask.query)));
        // An empty body is left out.
        if size_of::<O::Body>() > 0 {
            request = request.header("content-type", "application/json").body(serde_json::to_vec(&ask.body)?);
        }
        let Reply { bytes, .. } = self.send(request).await?.accepted()?;
        let text = if bytes.is_empty() { b"{}" } else { bytes.as_slice() };
        let value = serde_json::from_slice(text)
            .with_context(|| format!("the server's answer to {} is not what this version knows", O::NAME))?;
        Ok(Answered { value, bytes })
    }

    /// Reads something.
    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> anyhow::Result<Reply> {
        self.send(self.http.request(Method::GET, format!("{}{path}", self.url)).query(query)).await
    }

    /// Asks for something.
    pub async fn post(&self, path: &str, body: String) -> anyhow::Result<Reply> {
        self.with_body(Method::POST, path, body).await
    }

    /// Defines something.
    pub async fn put(&self, path: &str, body: String) -> anyhow::Result<Reply> {
        self.with_body(Method::PUT, path, body).await
    }

    /// Changes something.
    pub async fn patch(&self, path: &str, body: String) -> anyhow::Result<Reply> {
        self.with_body(Method::PATCH, path, body).await
    }

    /// Removes something.
    pub async fn delete(&self, path: &str) -> anyhow::Result<Reply> {
        self.send(self.http.request(Method::DELETE, format!("{}{path}", self.url))).await
    }

    async fn with_body(&self, method: Method, path: &str, body: String) -> anyhow::Result<Reply> {
        let request =
            self.http.request(method, format!("{}{path}", self.url)).header("content-type", "application/json");
        self.send(request.body(body)).await
    }

    async fn answer(&self, mut request: reqwest::RequestBuilder) -> anyhow::Result<reqwest::Response> {
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request.send().await.map_err(|error| self.unanswered(error))
    }

    /// Why there was no answer, and what to do about it.
    fn unanswered(&self, error: reqwest::Error) -> anyhow::Error {
        let url = &self.url;
        if let Some(problem) = certificate_problem(&error) {
            return anyhow!(
                "the certificate of {url} is not trusted: {problem}; name the one that signed it with --ca-cert or FF_CA_CERT"
            );
        }
        if let Some(other) = other_scheme(url, &error) {
            return WrongUsage(format!("the server at {url} speaks another protocol; use {other} (--url or FF_URL)"))
                .into();
        }
        if error.is_connect() {
            return Away(format!(
                "no server answers at {url}; start one with `ff dev` or `ff server`, or say where it is with --url or FF_URL"
            ))
            .into();
        }
        anyhow!(error).context(Away(format!("{url} did not answer")))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Reply> {
        let response = self.answer(request).await?;
        let status = response.status();
        let bytes = response
            .bytes()
            .await
            .with_context(|| Away(format!("{} stopped in the middle of its answer", self.url)))?
            .to_vec();
        Ok(Reply { status, bytes })
    }
}

/// What is wrong with the server's certificate, when that is why there was no answer.
fn certificate_problem(error: &reqwest::Error) -> Option<String> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let said = error.to_string();
        if error.source().is_none() && said.contains("certificate") {
            return Some(said);
        }
        cause = error.source();
    }
    None
}

/// The same address with the other scheme, when what came back shows that the server speaks that one.
fn other_scheme(url: &str, error: &reqwest::Error) -> Option<String> {
    let mut cause = std::error::Error::source(error);
    let mut said = String::new();
    while let Some(error) = cause {
        said.push_str(&error.to_string());
        cause = error.source();
    }
    match url.split_once("://")? {
        // A TLS server answers plain text with an alert, which is no HTTP.
        ("http", rest) if said.contains("invalid HTTP version") => Some(format!("https://{rest}")),
        ("https", rest) if said.contains("InvalidContentType") => Some(format!("http://{rest}")),
        _ => None,
    }
}

/// The error with its causes; what the text before has said already is left out.
pub fn explained(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        _ if said.contains(&cause) => said,
        _ => format!("{said}: {cause}"),
    })
}

/// The exit code of a command that failed: 2 when the command line is wrong, 4 for an unknown id, 1 otherwise.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<WrongUsage>().is_some() {
        return ExitCode::from(WRONG_USAGE);
    }
    match error.downcast_ref::<Refused>() {
        Some(refused)
            if matches!(refused.code.as_str(), "invalid_argument" | "capability_invalid" | "cycle_detected") =>
        {
            ExitCode::from(WRONG_USAGE)
        }
        Some(refused)
            if matches!(
                refused.code.as_str(),
                "execution_not_found"
                    | "flow_not_found"
                    | "waitpoint_not_found"
                    | "waitpoint_not_open"
                    | "attempt_not_found"
                    | "key_not_found"
                    | "quota_not_found"
                    | "budget_not_found"
                    | "reservation_not_found"
                    | "access_not_found"
                    | "lane_not_found"
                    | "worker_not_registered"
            ) =>
        {
            ExitCode::from(UNKNOWN_ID)
        }
        _ => ExitCode::FAILURE,
    }
}

/// Runs a command for each id, goes on past refusals, and answers with the first failure's exit code.
pub async fn for_each<F: Future<Output = anyhow::Result<()>>>(
    ids: Vec<String>,
    run: impl Fn(String) -> F,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut progress = Progress::new("done", Some(ids.len() as u64));
    for id in ids {
        progress.advance(1);
        if let Err(error) = run(id).await {
            if error.downcast_ref::<Refused>().is_none() {
                return Err(error);
            }
            eprintln!("ff: {}", explained(&error));
            if code == ExitCode::SUCCESS {
                code = exit_code(&error);
            }
        }
    }
    Ok(code)
}

/// Prints one line; a reader that has seen enough is not an error.
pub fn say(line: &str) -> anyhow::Result<()> {
    write_out(format!("{line}\n").as_bytes())
}

/// Prints a text.
pub fn print(text: &str) -> anyhow::Result<()> {
    write_out(text.as_bytes())
}

/// Prints an answer as it came.
pub fn say_raw(bytes: &[u8]) -> anyhow::Result<()> {
    write_out(bytes)?;
    if bytes.last() == Some(&b'\n') { Ok(()) } else { write_out(b"\n") }
}

fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        done => done.context("cannot write to stdout"),
    }
}

/// A path segment as it may stand in a URL.
pub fn segment(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Takes one of these words.
pub fn words<T: ToString>(all: &[T]) -> PossibleValuesParser {
    PossibleValuesParser::new(all.iter().map(ToString::to_string))
}

/// A `key=value` (or `key:value`) of the command line.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once(['=', ':']) {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text} is not key=value")),
    }
}

/// A `dimension=n` of the command line.
pub fn amount(text: &str) -> Result<(String, i64), String> {
    match text.split_once('=') {
        Some((name, n)) if !name.is_empty() => match n.parse() {
            Ok(n) => Ok((name.to_owned(), n)),
            Err(_) => Err(format!("{n} of {name} is not a whole number")),
        },
        _ => Err(format!("{text} is not dimension=n")),
    }
}

/// A text field of an answer, empty when it is absent.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Epoch milliseconds as a UTC time; nothing when there is no time.
pub fn time(value: &Value) -> String {
    value.as_i64().map(moment).unwrap_or_default()
}

/// Epoch milliseconds as a UTC time.
pub fn moment(ms: i64) -> String {
    match Timestamp::from_millisecond(ms) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string(),
        Err(_) => ms.to_string(),
    }
}

/// Now, in epoch milliseconds.
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_millis());
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// A duration in its largest unit.
pub fn span(ms: Option<i64>) -> String {
    let Some(seconds) = ms.map(|ms| ms.max(0) / 1_000) else { return "-".to_owned() };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_short() {
        for (ms, shown) in
            [(0, "0s"), (-5, "0s"), (119_999, "119s"), (120_000, "2m"), (7_200_000, "2h"), (172_800_000, "2d")]
        {
            assert_eq!(span(Some(ms)), shown);
        }
        assert_eq!(span(None), "-");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(time(&0.into()), "1970-01-01 00:00:00.000");
        assert_eq!(time(&1_709_251_199_999_i64.into()), "2024-02-29 23:59:59.999");
        assert_eq!(time(&1_794_781_129_219_i64.into()), "2026-11-15 22:18:49.219");
    }

    #[test]
    fn a_pair_has_a_key() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a:b"), Ok(("a".to_owned(), "b".to_owned())));
        assert!(pair("a").is_err() && pair("=b").is_err());
    }

    #[test]
    fn causes_are_said_once() {
        let error =
            anyhow!("the disk is full").context("cannot write x: the disk is full; make room").context("cannot start");
        assert_eq!(explained(&error), "cannot start: cannot write x: the disk is full; make room");
    }

    #[test]
    fn a_segment_cannot_leave_its_place() {
        assert_eq!(segment("a/../b?c"), "a%2F..%2Fb%3Fc");
    }
}
