//! `ff token`: access tokens of the API, and waitpoint tokens.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ff_script::generated::Role;
use serde_json::json;

use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, segment, text, time, words};

/// Access tokens and waitpoint tokens.
#[derive(Args)]
pub struct TokenCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Makes an access token; it is printed once.
    #[command(after_help = "Roles: read, submit, signal, worker, operator, admin, metrics. Example:
  ff token create ci --role submit --namespace team-a > ci.token
  FF_TOKEN=@ci.token ff submit --namespace team-a --kind build")]
    Create(Create),
    /// Lists who may act by a token; never the tokens.
    List(ListTokens),
    /// Refuses a token from now on. An unknown id exits 4.
    Revoke(Revoke),
    /// Makes a new token for a waitpoint; the old one is refused from then on. An unknown id exits 4.
    #[command(after_help = "Example:
  ff token reissue 0192f3a1-… --approver ann > ann.token
  ff signal 0192f3a1-… --execution 0192f3a0-… --name approved --token @ann.token")]
    Reissue(Reissue),
}

#[derive(Args)]
struct Reissue {
    /// The waitpoint.
    #[arg(value_name = "WAITPOINT")]
    waitpoint: String,
    /// Whose token; not said where there is only one.
    #[arg(long)]
    approver: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
struct Create {
    /// Who acts with it: the actor of what is done.
    name: String,
    /// What it may be used for; may be repeated.
    #[arg(long = "role", required = true, value_name = "ROLE", value_parser = words(Role::ALL))]
    roles: Vec<String>,
    /// A namespace it covers; all of them unless said.
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// A lane it covers; all of them unless said.
    #[arg(long = "lane", value_name = "LANE")]
    lanes: Vec<String>,
    /// A capability its workers may have; all of them unless said.
    #[arg(long = "capability", value_name = "CAPABILITY")]
    capabilities: Vec<String>,
    /// When it ends, in epoch milliseconds; never unless said.
    #[arg(long, value_name = "MS")]
    expires_at: Option<i64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Create {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
        let body = json!({
            "name": self.name, "roles": self.roles, "namespaces": some(self.namespaces), "lanes": some(self.lanes),
            "capabilities": some(self.capabilities), "expires_at": self.expires_at,
        });
        let reply = Api::new(&self.server)?.post("/v1/admin/tokens", body.to_string()).await?.accepted()?;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&reply.json()?["token_id"]))?,
            Output::Table => {
                let answer = reply.json()?;
                eprintln!(
                    "{} may act with this token; it is not shown again (id {})",
                    text(&answer["name"]),
                    text(&answer["token_id"])
                );
                say(&text(&answer["token"]))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Args)]
struct ListTokens {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ListTokens {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let query = [("limit", "1000".to_owned())];
        let reply = Api::new(&self.server)?.get("/v1/admin/tokens", &query).await?.accepted()?;
        if self.output.output == Output::Json {
            return say_raw(&reply.bytes).map(|()| ExitCode::SUCCESS);
        }
        let answer = reply.json()?;
        for token in answer["items"].as_array().into_iter().flatten() {
            if self.output.output == Output::Ids {
                say(&text(&token["token_id"]))?;
                continue;
            }
            let words = |field: &str| match token[field].as_array() {
                Some(words) => words.iter().map(text).collect::<Vec<_>>().join(","),
                None => "all".to_owned(),
            };
            let ends = token["expires_at"].as_i64().map_or("never".to_owned(), |_| time(&token["expires_at"]));
            say(&format!(
                "{}  {:<16} {:<24} namespaces {}  lanes {}  ends {ends}",
                text(&token["token_id"]),
                text(&token["name"]),
                words("roles"),
                words("namespaces"),
                words("lanes"),
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Args)]
struct Revoke {
    /// The token's id, as `ff token list` shows it.
    #[arg(value_name = "TOKEN_ID")]
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

impl Revoke {
    async fn run(self) -> anyhow::Result<ExitCode> {
        Api::new(&self.server)?.delete(&format!("/v1/admin/tokens/{}", segment(&self.id))).await?.accepted()?;
        Ok(ExitCode::SUCCESS)
    }
}

impl TokenCommand {
    /// Prints a token alone, so that it can go straight into a file.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::Create(create) => create.run().await,
            Verb::List(list) => list.run().await,
            Verb::Revoke(revoke) => revoke.run().await,
            Verb::Reissue(reissue) => reissue.run().await,
        }
    }
}

impl Reissue {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let reissue = self;
        let path = format!("/v1/waitpoints/{}/tokens", segment(&reissue.waitpoint));
        let body = json!({ "approver": reissue.approver }).to_string();
        let reply = Api::new(&reissue.server)?.post(&path, body).await?.accepted()?;
        match reissue.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&reply.json()?["waitpoint_id"]))?,
            Output::Table => {
                let answer = reply.json()?;
                let whom = answer["approver"].as_str().map(|approver| format!(" for {approver}")).unwrap_or_default();
                eprintln!("a new token{whom}; it is not shown again, and the old one is refused");
                say(&text(&answer["token"]))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
