//! `ff webhook`: what receivers of webhooks need.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ff_api::Ask;
use ff_api::lanes::NamespaceQuery;
use ff_api::webhooks::GetWebhookKeys;

use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::times::moment;

/// What receivers of webhooks need.
#[derive(Args)]
pub struct WebhookCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Prints the key that a receiver checks the webhooks of a namespace with. It is a secret.
    #[command(
        after_help = "The newest key is printed; `-o json` shows the others that sign while a rotation goes on. Example:
  ff webhook key --namespace team-a > team-a.webhook-key"
    )]
    Key(Key),
}

#[derive(Args)]
struct Key {
    /// Whose webhooks.
    #[arg(long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl WebhookCommand {
    /// Prints the key.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Verb::Key(Key { namespace, server, output }) = self.verb;
        let ask = Ask::<GetWebhookKeys>::by((), NamespaceQuery { namespace: Some(namespace) });
        let Answered { value, bytes, .. } = Api::new(&server)?.ask(&ask).await?;
        if output.output == Output::Json {
            say_raw(&bytes)?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some((newest, older)) = value.keys.split_first() else { anyhow::bail!("the server has no key") };
        match output.output {
            Output::Ids => say(&newest.key_id)?,
            Output::Table | Output::Json => say(&newest.key)?,
        }
        for key in older {
            let until = key.signs_until.map(moment).unwrap_or_default();
            eprintln!("the one before it, {}, signs until {until} as well", key.key_id);
        }
        Ok(ExitCode::SUCCESS)
    }
}
