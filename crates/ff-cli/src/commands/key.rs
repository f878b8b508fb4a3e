//! `ff key`: the keys that sign waitpoint tokens. They stay on the server; only their names and times are shown.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, segment, text, time};

/// The keys that sign waitpoint tokens.
#[derive(Args)]
pub struct KeyCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Lists the keys, the signing one first.
    #[command(after_help = "Example:
  ff key list")]
    List(Where),
    /// Signs with a new key from now on; tokens of the old one are accepted until the grace is over.
    #[command(after_help = "Example:
  ff key rotate --grace-ms 86400000")]
    Rotate(Rotate),
    /// Accepts no token of a key any more, at once. An unknown key exits 4.
    #[command(after_help = "Example:
  ff key revoke k7m2xq9a")]
    Revoke(Revoke),
}

#[derive(Args)]
struct Where {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
struct Rotate {
    /// How long tokens of the old key are accepted; a day unless said.
    #[arg(long)]
    grace_ms: Option<u64>,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Revoke {
    /// The key's name, as `ff key list` shows it.
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    at: Where,
}

impl KeyCommand {
    /// Prints the keys as they are afterwards.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (at, reply) = match self.verb {
            Verb::List(at) => {
                let reply = Api::new(&at.server)?.get("/v1/admin/keys", &[]).await?;
                (at, reply)
            }
            Verb::Rotate(Rotate { grace_ms, at }) => {
                let body = json!({ "grace_ms": grace_ms }).to_string();
                let reply = Api::new(&at.server)?.post("/v1/admin/keys/rotate", body).await?;
                (at, reply)
            }
            Verb::Revoke(Revoke { key, at }) => {
                let path = format!("/v1/admin/keys/{}/revoke", segment(&key));
                let reply = Api::new(&at.server)?.post(&path, String::new()).await?;
                (at, reply)
            }
        };
        let reply = reply.accepted()?;
        if at.output.output == Output::Json {
            say_raw(&reply.bytes)?;
            return Ok(ExitCode::SUCCESS);
        }
        let answer = reply.json()?;
        let keys = answer["items"].as_array().or_else(|| answer["keys"].as_array()).cloned().unwrap_or_default();
        match at.output.output {
            Output::Ids => {
                for key in &keys {
                    say(&text(&key["key_id"]))?;
                }
            }
            Output::Table | Output::Json => table(&keys)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(keys: &[Value]) -> anyhow::Result<()> {
    if keys.is_empty() {
        eprintln!("there is no key yet; the first waitpoint makes one");
    }
    say(&format!("{:32}  {:8}  {:23}  {}", "KEY", "DOES", "MADE (UTC)", "ACCEPTED UNTIL (UTC)"))?;
    for key in keys {
        say(&format!(
            "{:32}  {:8}  {:23}  {}",
            text(&key["key_id"]),
            if key["signs"] == true { "signs" } else { "accepts" },
            time(&key["made_at"]),
            time(&key["accepted_until"])
        ))?;
    }
    Ok(())
}
