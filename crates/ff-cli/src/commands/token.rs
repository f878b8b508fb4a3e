//! `ff token`: access tokens of the API, and waitpoint tokens.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ff_api::Ask;
use ff_api::tokens::{AccessToken, CreateToken, CreateTokenBody, RevokeToken, TokensQuery};
use ff_api::waitpoints::{ReissueBody, ReissueToken};
use ff_script::generated::Role;

use crate::client::{Answered, Api, ServerArgs};
use crate::ids::id;
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::table::{self, Table, text};
use crate::times::{moment, time};
use crate::values::words;

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
    /// Lists access tokens: name, roles, scope and end; never the tokens themselves.
    List(ListTokens),
    /// Refuses a token from now on. An unknown id exits 4.
    Revoke(Revoke),
    /// Makes a new token for a waitpoint; the old one is refused from then on. An unknown id exits 4.
    #[command(after_help = "Example:
  ff token reissue 0192f3a1-… --approver ann > ann.token
  ff signal --name approved --token @ann.token")]
    Reissue(Reissue),
}

#[derive(Args)]
struct Reissue {
    /// The waitpoint.
    #[arg(value_name = "WAITPOINT")]
    waitpoint: String,
    /// The approver whose token it is; needed when there are several.
    #[arg(long)]
    approver: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
struct Create {
    /// The name of its holder; it is the actor of what is done with the token.
    name: String,
    /// What it may be used for; may be repeated.
    #[arg(long = "role", required = true, value_name = "ROLE", value_parser = words(Role::ALL))]
    roles: Vec<Role>,
    /// A namespace it covers (default: all of them).
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// A lane it covers (default: all of them).
    #[arg(long = "lane", value_name = "LANE")]
    lanes: Vec<String>,
    /// A capability its workers may have (default: all of them).
    #[arg(long = "capability", value_name = "CAPABILITY")]
    capabilities: Vec<String>,
    /// When it ends, e.g. 2026-11-20T09:00 (default: never).
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires_at: Option<i64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Create {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
        let body = CreateTokenBody {
            name: self.name,
            roles: self.roles,
            namespaces: some(self.namespaces),
            lanes: some(self.lanes),
            capabilities: some(self.capabilities),
            expires_at: self.expires_at,
        };
        let Answered { value, bytes, .. } = Api::new(&self.server)?.ask(&Ask::<CreateToken>::with((), body)).await?;
        let AccessToken { name, token_id, .. } = &value.facts;
        match self.output.output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => say(&token_id.to_string())?,
            Output::Table => {
                eprintln!("{name} may act with this token; it is not shown again (id {token_id})");
                say(&value.token)?;
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
        let query = TokensQuery { limit: Some(1_000), cursor: None };
        let ask = Ask::<ff_api::tokens::ListTokens>::by((), query);
        let Answered { value, bytes, .. } = Api::new(&self.server)?.ask(&ask).await?;
        match self.output.output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => value.items.iter().try_for_each(|token| say(&token.token_id.to_string()))?,
            Output::Table => table(&value.items).iter().try_for_each(|line| say(line))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(tokens: &[AccessToken]) -> Vec<String> {
    let all = |names: &Option<Vec<String>>| names.as_ref().map_or("all".to_owned(), |names| names.join(","));
    let mut table = Table::new(["ID", "NAME", "ROLES", "NAMESPACES", "LANES", "ENDS (UTC)"]).sparing(&["LANES"]);
    for token in tokens {
        let roles: Vec<&str> = token.roles.iter().map(|role| role.as_str()).collect();
        table.row([
            table::id(token.token_id),
            text(&token.name),
            text(roles.join(",")),
            text(all(&token.namespaces)),
            text(all(&token.lanes)),
            text(token.expires_at.map_or("never".to_owned(), moment)),
        ]);
    }
    table.lines()
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
        Api::new(&self.server)?.ask(&Ask::<RevokeToken>::at(id("a token", &self.id)?)).await?;
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
        let ask =
            Ask::<ReissueToken>::with(id("a waitpoint", &self.waitpoint)?, ReissueBody { approver: self.approver });
        let Answered { value, bytes, .. } = Api::new(&self.server)?.ask(&ask).await?;
        match self.output.output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => say(&value.waitpoint_id.to_string())?,
            Output::Table => {
                let whom = value.approver.map(|approver| format!(" for {approver}")).unwrap_or_default();
                eprintln!("a new token{whom}; it is not shown again, and the old one is refused");
                say(value.token.as_str())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
