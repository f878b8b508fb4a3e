//! `ff signal`: answers a waitpoint with the token that was handed out for it.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::client::{Api, Output, OutputArgs, WrongUsage, say, say_raw, segment, text};

/// Answers a waitpoint. The token is the only credential; no other is sent.
#[derive(Args)]
#[command(after_help = "Example:
  FF_WAITPOINT_TOKEN=wp1.… ff signal 0192f3a1-… --execution 0192f3a0-… --name approved --payload '{\"by\":\"ann\"}'
  pass show approval-token | ff signal 0192f3a1-… --execution 0192f3a0-… --name approved --token -")]
pub struct Signal {
    /// The waitpoint.
    #[arg(value_name = "WAITPOINT")]
    waitpoint: String,
    /// The execution it belongs to.
    #[arg(long, value_name = "ID")]
    execution: String,
    /// What the signal says, e.g. approved.
    #[arg(long)]
    name: String,
    /// A JSON value, @file, or - for stdin.
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The token, @file, or - for stdin. Others on this machine can read arguments: prefer FF_WAITPOINT_TOKEN, @file or -.
    #[arg(long, env = "FF_WAITPOINT_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// Where it comes from.
    #[arg(long)]
    source: Option<String>,
    /// What it belongs to elsewhere.
    #[arg(long)]
    correlation_id: Option<String>,
    /// Delivers it once, however often the command is run within a day.
    #[arg(long)]
    idempotency_key: Option<String>,
    /// The server's address.
    #[arg(long, env = "FF_URL", default_value = "http://127.0.0.1:7433")]
    url: String,
    /// The certificate that signed the server's, as PEM, when the system does not know it.
    #[arg(long, env = "FF_CA_CERT", value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Body<'a> {
    execution_id: &'a str,
    name: &'a str,
    token: &'a str,
    payload: Option<Box<RawValue>>,
    source: Option<&'a str>,
    correlation_id: Option<&'a str>,
    idempotency_key: Option<&'a str>,
}

impl Signal {
    /// Sends it, and says what it did.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        if self.token.as_deref() == Some("-") && self.payload.as_deref() == Some("-") {
            bail!(WrongUsage(
                "stdin can hold the token or the payload, not both; put one of them into a file and say @file"
                    .to_owned()
            ));
        }
        let Some(token) = &self.token else {
            bail!(WrongUsage(
                "the waitpoint's token is missing; set FF_WAITPOINT_TOKEN, or say --token @file or --token -"
                    .to_owned()
            ));
        };
        let token = read("token", token)?;
        let payload = match &self.payload {
            None => None,
            Some(payload) => {
                Some(RawValue::from_string(read("payload", payload)?.trim().to_owned()).with_context(|| {
                    WrongUsage("--payload is not JSON; a text needs quotes: '\"hello\"'".to_owned())
                })?)
            }
        };
        let body = Body {
            execution_id: &self.execution,
            name: &self.name,
            token: token.trim(),
            payload,
            source: self.source.as_deref(),
            correlation_id: self.correlation_id.as_deref(),
            idempotency_key: self.idempotency_key.as_deref(),
        };
        let path = format!("/v1/waitpoints/{}/signals", segment(&self.waitpoint));
        let reply = Api::anonymous(&self.url, self.ca_cert.as_deref())?
            .post(&path, serde_json::to_string(&body)?)
            .await?
            .accepted()?;
        let answer = reply.json()?;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&answer["signal_id"]))?,
            Output::Table => {
                let meaning = match (answer["outcome"].as_str(), answer["effect"].as_str()) {
                    (Some("triggered_resume"), _) => "the execution goes on",
                    (Some("duplicate"), _) => "it had been delivered before",
                    (_, Some("counted")) => "it counts; more is needed",
                    (_, Some("buffered")) => "it is kept until the execution waits",
                    _ => "it is kept, but the execution does not wait for it",
                };
                say(&format!("{}  {}: {meaning}", text(&answer["signal_id"]), text(&answer["outcome"])))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The value itself, the content of `@file`, or stdin for `-`.
fn read(what: &str, value: &str) -> anyhow::Result<String> {
    if value == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).with_context(|| format!("cannot read the {what} from stdin"))?;
        return Ok(text);
    }
    match value.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).with_context(|| WrongUsage(format!("cannot read the {what} from {file}")))
        }
        None => Ok(value.to_owned()),
    }
}
