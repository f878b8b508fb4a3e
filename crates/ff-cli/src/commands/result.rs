//! `ff result`: the outcome of an execution, waiting for it when asked to.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use reqwest::StatusCode;
use tokio::time::Instant;

use crate::away::{Patience, WAITING};
use crate::client::{
    Api, IdArgs, Output, OutputArgs, Refused, Reply, ServerArgs, exit_code, explained, say, say_raw, segment, text,
};

/// The longest wait of one request.
const POLL: Duration = Duration::from_secs(30);
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
        let (mut code, mut patience) = (ExitCode::SUCCESS, Patience::default());
        for id in self.ids.read()? {
            let one = match self.ask(&api, &id, &mut patience).await {
                Ok(reply) => self.print(&id, &reply)?,
                Err(error) if error.downcast_ref::<Refused>().is_some() => {
                    eprintln!("ff: {}", explained(&error));
                    exit_code(&error)
                }
                Err(error) => return Err(error),
            };
            if code == ExitCode::SUCCESS {
                code = one;
            }
        }
        Ok(code)
    }

    /// Asks until it has ended or the time is over; a server that goes away meanwhile is waited for.
    async fn ask(&self, api: &Api, id: &str, patience: &mut Patience) -> anyhow::Result<Reply> {
        let path = format!("/v1/executions/{}/result", segment(id));
        // Further away than there is time: for ever.
        let until = Instant::now().checked_add(Duration::from_millis(self.wait_ms.unwrap_or(0))).filter(|_| !self.wait);
        loop {
            let left = until.map_or(POLL, |until| until.saturating_duration_since(Instant::now())).min(POLL);
            // Whether there is a server at all is known at once.
            let wait = if patience.has_answer() { left } else { Duration::ZERO };
            let query = [("wait_ms", wait.as_millis().to_string())];
            match api.get(&path, &query).await.and_then(Reply::accepted) {
                Ok(reply) => {
                    patience.answered();
                    if reply.status != StatusCode::ACCEPTED || left.is_zero() {
                        return Ok(reply);
                    }
                }
                Err(error) if left.is_zero() => return Err(error),
                Err(error) => {
                    let pause = patience.pause(error)?;
                    if patience.is_new() {
                        eprintln!("{WAITING}");
                    }
                    tokio::time::sleep(pause.min(left)).await;
                }
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
