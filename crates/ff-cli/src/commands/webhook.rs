//! `ff webhook`: what receivers of webhooks need.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, text, time};

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
        let reply = Api::new(&server)?.get("/v1/webhooks/key", &[("namespace", namespace)]).await?.accepted()?;
        if output.output == Output::Json {
            say_raw(&reply.bytes)?;
            return Ok(ExitCode::SUCCESS);
        }
        let answer = reply.json()?;
        let keys = answer["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some((newest, older)) = keys.split_first() else { anyhow::bail!("the server has no key") };
        match output.output {
            Output::Ids => say(&text(&newest["key_id"]))?,
            Output::Table | Output::Json => say(&text(&newest["key"]))?,
        }
        for key in older {
            eprintln!("the one before it, {}, signs until {} as well", text(&key["key_id"]), time(&key["signs_until"]));
        }
        Ok(ExitCode::SUCCESS)
    }
}
