//! `ff signal`: answers a waitpoint with the token that was handed out for it.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use ff_api::Ask;
use ff_api::waitpoints::{DeliverSignal, DeliveryOutcome, SignalBody};
use ff_core::types::WaitpointToken;
use ff_script::generated::SignalEffect;
use serde_json::value::RawValue;

use crate::client::Api;
use crate::ids::id;
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::problem::WrongUsage;

/// Answers a waitpoint. The token is the only credential, and it names the waitpoint and the execution.
#[derive(Args)]
#[command(after_help = "Example:
  FF_WAITPOINT_TOKEN=wp1.… ff signal --name approved --payload '{\"by\":\"ann\"}'
  pass show approval-token | ff signal --name approved --token -")]
pub struct Signal {
    /// The waitpoint (default: the one of the token).
    #[arg(value_name = "WAITPOINT")]
    waitpoint: Option<String>,
    /// The execution it belongs to (default: the one of the token).
    #[arg(long, value_name = "ID")]
    execution: Option<String>,
    /// What the signal says, e.g. approved.
    #[arg(long)]
    name: String,
    /// A JSON value, @file, or - for stdin.
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The token, @file, or - for stdin. Others on this machine can read arguments: prefer FF_WAITPOINT_TOKEN, @file or -.
    #[arg(long, env = "FF_WAITPOINT_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// The system it comes from.
    #[arg(long)]
    source: Option<String>,
    /// The id of what it belongs to in another system.
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
        let named = ff_keys::read_claims(token.trim());
        let waitpoint_id = match (&self.waitpoint, &named) {
            (Some(waitpoint), _) => id("a waitpoint", waitpoint)?,
            (None, Some(named)) => named.waitpoint_id,
            (None, None) => bail!(WrongUsage(UNNAMED.to_owned())),
        };
        let execution_id = match (&self.execution, &named) {
            (Some(execution), _) => id("an execution", execution)?,
            (None, Some(named)) => named.execution_id,
            (None, None) => bail!(WrongUsage(UNNAMED.to_owned())),
        };
        let body = SignalBody {
            execution_id,
            name: self.name,
            payload,
            payload_encoding: None,
            source: self.source,
            source_identity: None,
            category: None,
            correlation_id: self.correlation_id,
            idempotency_key: self.idempotency_key,
            signal_id: None,
            token: Some(WaitpointToken::new(token.trim())),
        };
        let api = Api::anonymous(&self.url, self.ca_cert.as_deref())?;
        let answered = api.ask(&Ask::<DeliverSignal>::with(waitpoint_id, body)).await?;
        let delivered = answered.value;
        match self.output.output {
            Output::Json => say_raw(&answered.bytes)?,
            Output::Ids => say(&delivered.signal_id.to_string())?,
            Output::Table => {
                let (outcome, meaning) = match (delivered.outcome, delivered.effect) {
                    (DeliveryOutcome::TriggeredResume, _) => ("triggered_resume", "the execution goes on"),
                    (DeliveryOutcome::Duplicate, _) => ("duplicate", "it had been delivered before"),
                    (DeliveryOutcome::Accepted, Some(SignalEffect::Counted)) => {
                        ("accepted", "it counts; more is needed")
                    }
                    (DeliveryOutcome::Accepted, Some(SignalEffect::Buffered)) => {
                        ("accepted", "it is kept until the execution waits")
                    }
                    (DeliveryOutcome::Accepted, _) => {
                        ("accepted", "it is kept, but the execution does not wait for it")
                    }
                };
                say(&format!("{}  {outcome}: {meaning}", delivered.signal_id))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What is said when nothing names the waitpoint.
const UNNAMED: &str = "this is no waitpoint token; use it as it was handed out, or ask for another: `ff token reissue`";

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
