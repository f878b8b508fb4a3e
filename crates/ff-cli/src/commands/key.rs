//! `ff key`: the keys that sign waitpoint tokens. They stay on the server; only their names and times are shown.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ff_api::Ask;
use ff_api::keys::{ListKeys, RevokeKey, RotateBody, RotateKeys, SigningKey};

use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::table::{Table, text};
use crate::times::{duration, moment};

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
  ff key rotate --grace 1d")]
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
    /// How long tokens of the old key are accepted (default: 1d).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    grace: Option<i64>,
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
        let (output, keys, bytes) = match self.verb {
            Verb::List(at) => {
                let Answered { value, bytes, .. } = Api::new(&at.server)?.ask(&Ask::<ListKeys>::at(())).await?;
                (at.output.output, value.items, bytes)
            }
            Verb::Rotate(Rotate { grace, at }) => {
                let ask = Ask::<RotateKeys>::with((), RotateBody { grace_ms: grace.map(i64::unsigned_abs) });
                let Answered { value, bytes, .. } = Api::new(&at.server)?.ask(&ask).await?;
                (at.output.output, value.keys, bytes)
            }
            Verb::Revoke(Revoke { key, at }) => {
                let Answered { value, bytes, .. } = Api::new(&at.server)?.ask(&Ask::<RevokeKey>::at(key)).await?;
                (at.output.output, value.keys, bytes)
            }
        };
        match output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => keys.iter().try_for_each(|key| say(&key.key_id))?,
            Output::Table => table(&keys)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(keys: &[SigningKey]) -> anyhow::Result<()> {
    if keys.is_empty() {
        eprintln!("there is no key yet; the first waitpoint makes one");
    }
    let mut table = Table::new(["KEY", "DOES", "MADE (UTC)", "ACCEPTED UNTIL (UTC)"]);
    for key in keys {
        table.row([
            text(&key.key_id),
            text(if key.signs { "signs" } else { "accepts" }),
            text(moment(key.made_at)),
            text(key.accepted_until.map(moment).unwrap_or_default()),
        ]);
    }
    table.lines().iter().try_for_each(|line| say(line))
}
