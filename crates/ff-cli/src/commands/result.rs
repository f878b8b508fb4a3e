//! `ff result`: the outcome of an execution, waiting for it when asked to.

use std::process::ExitCode;

use clap::Args;
use reqwest::StatusCode;

use crate::client::{Api, IdArgs, Output, OutputArgs, Reply, ServerArgs, exit_code, say, say_raw, segment, text};

/// The longest wait of one request.
const POLL_MS: u64 = 30_000;
/// The exit code when an execution has not ended yet.
const NOT_ENDED: u8 = 5;

/// Prints results. Exits 0 when the outcome is success, 1 when it is another, 4 for an unknown id, 5 when it has not ended.
#[derive(Args)]
pub struct ResultCommand {
    #[command(flatten)]
    ids: IdArgs,
    /// Wait until it has ended.
    #[arg(long, conflicts_with = "wait_ms")]
    wait: bool,
    /// Wait this long at most.
    #[arg(long)]
    wait_ms: Option<u64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ResultCommand {
    /// Prints each result; the first that is not a success decides the exit code.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let mut code = ExitCode::SUCCESS;
        for id in self.ids.read()? {
            let one = match self.ask(&api, &id).await?.accepted() {
                Ok(reply) => self.print(&id, &reply)?,
                Err(error) => {
                    eprintln!("ff: {error:#}");
                    exit_code(&error)
                }
            };
            if code == ExitCode::SUCCESS {
                code = one;
            }
        }
        Ok(code)
    }

    async fn ask(&self, api: &Api, id: &str) -> anyhow::Result<Reply> {
        let path = format!("/v1/executions/{}/result", segment(id));
        let mut left = if self.wait { u64::MAX } else { self.wait_ms.unwrap_or(0) };
        loop {
            let wait = left.min(POLL_MS);
            let reply = api.get(&path, &[("wait_ms", wait.to_string())]).await?;
            left = if self.wait { left } else { left - wait };
            if reply.status != StatusCode::ACCEPTED || left == 0 {
                return Ok(reply);
            }
        }
    }

    fn print(&self, id: &str, reply: &Reply) -> anyhow::Result<ExitCode> {
        let answer = reply.json()?;
        let ended = reply.status != StatusCode::ACCEPTED;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&answer["execution_id"]))?,
            Output::Table if !ended => {
                eprintln!("{id} has not ended, it is {}; wait with --wait", text(&answer["state"]))
            }
            Output::Table if answer["outcome"] == "success" => say(&raw_result(&reply.bytes)?)?,
            Output::Table => {
                let failure = &answer["failure"];
                let why = format!("{} {}", text(&failure["category"]), text(&failure["reason"]));
                eprintln!("{id} ended {}: {}", text(&answer["outcome"]), why.trim());
            }
        }
        Ok(match (ended, answer["outcome"] == "success") {
            (false, _) => ExitCode::from(NOT_ENDED),
            (true, true) => ExitCode::SUCCESS,
            (true, false) => ExitCode::FAILURE,
        })
    }
}

/// The result with the text it came with.
fn raw_result(bytes: &[u8]) -> anyhow::Result<String> {
    #[derive(serde::Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        result: Option<&'a serde_json::value::RawValue>,
    }
    let answer: Answer = serde_json::from_slice(bytes)?;
    Ok(answer.result.map_or_else(String::new, |result| result.get().to_owned()))
}
