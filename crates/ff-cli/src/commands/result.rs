//! `ff result`: the outcome of an execution, waiting for it when asked to.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ff_api::Ask;
use ff_api::executions::{ExecutionResult, GetResult, ResultAnswer, ResultPending, ResultQuery};
use ff_api::payload::Payload;
use ff_core::types::ExecutionId;
use ff_script::generated::Outcome;
use tokio::time::Instant;

use crate::away::{Patience, WAITING};
use crate::client::{Answered, Api, ServerArgs};
use crate::ids::{IdArgs, id};
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::problem::{Refused, exit_code, explained};
use crate::times::duration;

/// The longest wait of one request.
pub const POLL: Duration = Duration::from_secs(30);
/// The exit code when an execution or a flow has not ended yet.
pub const NOT_ENDED: u8 = 5;

/// Prints results. Exits 0 when the outcome is success, 1 when it is another, 4 for an unknown id, 5 when it has not ended.
#[derive(Args)]
#[command(after_help = "Example:
  ff result 0192f3a0-… --wait
  ff result 0192f3a0-… --wait=30s")]
pub struct ResultCommand {
    #[command(flatten)]
    ids: IdArgs,
    /// Waits until it has ended, or for this long at most.
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1, require_equals = true, default_missing_value = "365d", hide_default_value = true)]
    wait: Option<i64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ResultCommand {
    /// Prints each result; the first that is not a success decides the exit code.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let (mut code, mut waiting) = (ExitCode::SUCCESS, Waiting::within(self.wait.unwrap_or(0)));
        for name in self.ids.read()? {
            waiting.begin();
            let one = match waiting.show(&api, id("an execution", &name)?, self.output.output).await {
                Ok(code) => code,
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
}

/// A wait for something to end; a server that goes away meanwhile is waited for.
pub struct Waiting {
    wait: Duration,
    until: Option<Instant>,
    patience: Patience,
}

impl Waiting {
    /// A wait of so many milliseconds.
    pub fn within(wait: i64) -> Self {
        let wait = Duration::from_millis(u64::try_from(wait).unwrap_or(0));
        // Further away than there is time: for ever.
        Self { wait, until: Instant::now().checked_add(wait), patience: Patience::default() }
    }

    /// The time counts from now on.
    pub fn begin(&mut self) {
        self.until = Instant::now().checked_add(self.wait);
    }

    /// Asks until there is an answer to keep, or the time is over; then with the last answer, whatever it is.
    pub async fn until<T>(
        &mut self,
        ask: impl AsyncFn(Duration) -> anyhow::Result<T>,
        has_ended: impl Fn(&T) -> bool,
    ) -> anyhow::Result<T> {
        loop {
            let left = self.until.map_or(POLL, |until| until.saturating_duration_since(Instant::now())).min(POLL);
            // Whether there is a server at all is known at once.
            let wait = if self.patience.has_answer() { left } else { Duration::ZERO };
            match ask(wait).await {
                Ok(answer) => {
                    self.patience.answered();
                    if has_ended(&answer) || left.is_zero() {
                        return Ok(answer);
                    }
                }
                Err(error) if left.is_zero() => return Err(error),
                Err(error) => {
                    let pause = self.patience.pause(error)?;
                    if self.patience.is_new() {
                        eprintln!("{WAITING}");
                    }
                    tokio::time::sleep(pause.min(left)).await;
                }
            }
        }
    }

    /// Waits for the end of an execution and prints its result.
    pub async fn show(&mut self, api: &Api, id: ExecutionId, output: Output) -> anyhow::Result<ExitCode> {
        let ask = async |wait: Duration| {
            let query = ResultQuery { wait_ms: i64::try_from(wait.as_millis()).ok() };
            api.ask_within(&Ask::<GetResult>::by(id, query), wait).await
        };
        let answered = self.until(ask, |answered| matches!(answered.value, ResultAnswer::Ended(_))).await?;
        print(&answered, output)
    }
}

/// Prints a result, and exits by the outcome.
fn print(answered: &Answered<ResultAnswer>, output: Output) -> anyhow::Result<ExitCode> {
    let (id, code) = match &answered.value {
        ResultAnswer::Pending(pending) => (pending.execution_id, NOT_ENDED),
        ResultAnswer::Ended(ended) => (ended.execution_id, u8::from(ended.outcome != Outcome::Success)),
    };
    match (output, &answered.value) {
        (Output::Json, _) => say_raw(&answered.bytes)?,
        (Output::Ids, _) => say(&id.to_string())?,
        (Output::Table, ResultAnswer::Pending(ResultPending { state, .. })) => {
            eprintln!("{id} has not ended, it is {state}; wait with --wait");
        }
        (Output::Table, ResultAnswer::Ended(ended)) if ended.outcome == Outcome::Success => say(&shown(ended))?,
        (Output::Table, ResultAnswer::Ended(ended)) => {
            let why = ended.failure.as_ref().map(|failure| format!(": {} {}", failure.category, failure.reason));
            eprintln!("{id} ended {}{}", ended.outcome, why.unwrap_or_default());
        }
    }
    Ok(ExitCode::from(code))
}

/// The result as it was given: JSON keeps its text, other bytes are base64 in quotes. Nothing when none was given.
fn shown(ended: &ExecutionResult) -> String {
    match (&ended.result, ended.result_encoding) {
        (Some(bytes), Some(encoding)) => Payload { bytes: bytes.clone(), encoding }.written().0.get().to_owned(),
        _ => String::new(),
    }
}
