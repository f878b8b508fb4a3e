//! Talks to a running server: where it is, and the credential to present.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use ff_api::{Ask, Nothing, Operation};
use ff_sdk::http::{Health, HttpClient, HttpError, HttpOptions, Lines};
use ff_sdk::{Secret, WorkerConfig};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{Refused, WrongUsage, failed};
use crate::store::state_directory;

pub use ff_sdk::http::Answered;

/// How long a request may take beyond what it asks the server to wait: one for everything a lane holds takes a while.
const REQUEST_LIMIT: Duration = Duration::from_secs(120);

/// Where the server is.
#[derive(Args, Clone, Debug)]
pub struct ServerArgs {
    /// The server's address.
    #[arg(long, env = "FF_URL", default_value = "http://127.0.0.1:7433")]
    url: String,
    /// The token to present, or @FILE to read it from. The default for a server on this machine is the root token of the
    /// state directory.
    #[arg(long, env = "FF_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The certificate, as PEM, of the authority that signed the server's; needed when the system does not know it.
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

/// A client of one server.
pub struct Api {
    http: HttpClient,
}

impl Api {
    /// A client; nothing is sent yet.
    pub fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        Self::at(server.url(), server.token()?, server.ca_cert.as_deref())
    }

    /// A client that presents no credential.
    pub fn anonymous(url: &str, ca_cert: Option<&Path>) -> anyhow::Result<Self> {
        Self::at(url, None, ca_cert)
    }

    fn at(url: &str, token: Option<String>, ca_cert: Option<&Path>) -> anyhow::Result<Self> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!(WrongUsage(format!(
                "{url} is not the address of a server; it looks like http://127.0.0.1:7433 (--url or FF_URL)"
            )));
        }
        let options = HttpOptions {
            token: token.map(Secret::new),
            ca_cert: ca_cert.map(Path::to_owned),
            through_proxy: true,
            limit: REQUEST_LIMIT,
            ..HttpOptions::new(url)
        };
        Ok(Self { http: HttpClient::new(options).map_err(|error| WrongUsage(error.to_string()))? })
    }

    /// Asks for one operation; a refusal is an error.
    pub async fn ask<O>(&self, ask: &Ask<O>) -> anyhow::Result<Answered<O::Answer>>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
    {
        self.ask_within(ask, Duration::ZERO).await
    }

    /// Asks for one operation whose answer may take `wait` longer than usual.
    pub async fn ask_within<O>(&self, ask: &Ask<O>, wait: Duration) -> anyhow::Result<Answered<O::Answer>>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
    {
        self.http.ask(ask, wait).await.map_err(|error| self.failed(error))
    }

    /// Opens an answer that goes on: one JSON object per line. A refusal is an error.
    pub async fn lines<O>(&self, ask: &Ask<O>) -> anyhow::Result<Lines>
    where
        O: Operation<Query: Serialize, Body = Nothing>,
    {
        self.http.lines(ask).await.map_err(|error| self.failed(error))
    }

    /// Submits a line for each execution; the answer has a line for each.
    pub async fn submit_lines(&self, lines: String) -> anyhow::Result<Vec<u8>> {
        self.http.submit_lines(lines.into_bytes()).await.map_err(|error| self.failed(error))
    }

    /// How the server is.
    pub async fn health(&self) -> anyhow::Result<Health> {
        self.http.health().await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: HttpError) -> anyhow::Error {
        failed(self.http.url(), error)
    }
}

/// Reads one line of a stream, or of an answer to many: an item, or the problem in its place.
pub fn item<T: DeserializeOwned>(line: &[u8]) -> anyhow::Result<T> {
    #[derive(serde::Deserialize)]
    struct Instead {
        error: ff_api::problem::Facts,
    }
    serde_json::from_slice(line).map_err(|unreadable| match serde_json::from_slice::<Instead>(line) {
        Ok(Instead { error }) => Refused::new(error).into(),
        Err(_) => anyhow::Error::new(unreadable).context("the server's answer has a line this version does not know"),
    })
}
