//! `ff step`: runs a command once per execution, inside a program of `ff worker exec`.

use std::ffi::OsString;
use std::io::Write;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, bail};
use clap::Args;
use ff_api::steps::{GetTaskStep, PutStep, PutStepBody, PutStepOutcome, StepFailure};
use ff_api::tasks::Fence;
use ff_api::{Ask, Encoding, Payload};
use ff_core::limits::STEP_RESULT_BYTES_MAX;
use ff_core::types::ExecutionId;
use ff_script::generated::{StepKind, StepState};
use serde_json::value::RawValue;
use tokio::process::Command;

use crate::client::{Api, ServerArgs};
use crate::problem::{Refused, WrongUsage};
use crate::times::now_ms;

/// Runs a command once per execution and prints what it wrote to stdout; a later attempt prints the same without running it.
///
/// It is for programs of `ff worker exec`, whose variables say which execution and lease it is about. The step is known by its name,
/// in a loop by its name and --key. A command that fails stores nothing: `ff step` ends with its exit code, and the next attempt
/// runs it again. A command runs at least once: when the machine dies between its effect and the store, it runs again.
#[derive(Args)]
#[command(after_help = "Example:
  ff step fetch -- curl -fsS https://example.com/data > data.json
  for part in 1 2 3; do ff step upload --key $part -- ./upload.sh $part; done")]
pub struct Step {
    /// The step's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Names this use of the step, in a loop over data.
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A variable that `ff worker exec` sets.
fn told<T: std::str::FromStr>(name: &str) -> anyhow::Result<T> {
    let missing =
        || WrongUsage(format!("{name} is not set: `ff step` runs inside a program that `ff worker exec` has started"));
    let text = std::env::var(name).map_err(|_| missing())?;
    text.parse().map_err(|_| WrongUsage(format!("{name} is {text:?}, which is not what `ff worker exec` sets")).into())
}

/// What a command wrote, as the result of a step: a text when it is one.
fn result_of(stdout: Vec<u8>) -> (Box<RawValue>, Encoding) {
    match String::from_utf8(stdout) {
        Ok(text) => {
            let bytes = serde_json::to_vec(&text).expect("a text is JSON");
            Payload { bytes, encoding: Encoding::Json }.written()
        }
        Err(error) => Payload { bytes: error.into_bytes(), encoding: Encoding::Base64 }.written(),
    }
}

/// What the command of a recorded step wrote.
fn written(result: Option<&RawValue>, encoding: Option<Encoding>) -> anyhow::Result<Vec<u8>> {
    let Some(payload) = Payload::read("result", result, encoding)? else { return Ok(Vec::new()) };
    if payload.encoding == Encoding::Json
        && let Ok(text) = serde_json::from_slice::<String>(&payload.bytes)
    {
        return Ok(text.into_bytes());
    }
    Ok(payload.bytes)
}

fn print(bytes: &[u8]) -> anyhow::Result<ExitCode> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}

impl Step {
    /// Prints what is recorded, or runs the command and records what it wrote.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let execution_id: ExecutionId = told("FF_EXECUTION_ID")?;
        let fence = Fence {
            attempt_id: told("FF_ATTEMPT_ID")?,
            lease_id: told("FF_LEASE_ID")?,
            lease_epoch: told("FF_LEASE_EPOCH")?,
        };
        let name = self.key.as_ref().map_or_else(|| self.name.clone(), |key| format!("{}:{key}", self.name));
        ff_api::steps::check_name("NAME", &name).map_err(|wrong| WrongUsage(wrong.to_string()))?;
        let (api, at) = (Api::new(&self.server)?, (execution_id, name));
        let found = match api.ask(&Ask::<GetTaskStep>::at(at.clone())).await {
            Ok(found) => Some(found.value),
            Err(error) if error.downcast_ref::<Refused>().is_some_and(|refused| refused.is("step_not_found")) => None,
            Err(error) => return Err(error),
        };
        let mut tries = 1;
        if let Some(found) = found {
            if found.step.kind != StepKind::Run {
                bail!("step {:?} is recorded as a step of another kind: {}", at.1, found.step.kind.as_str());
            }
            if found.step.state == StepState::Done {
                return print(&written(found.result.as_deref(), found.result_encoding)?);
            }
            tries = found.step.tries + 1;
        }
        let started_at = Some(now_ms());
        let program = self.command[0].to_string_lossy().into_owned();
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdout(Stdio::piped()).kill_on_drop(true);
        let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let output = child.wait_with_output().await.with_context(|| format!("cannot wait for {program}"))?;
        let body = PutStepBody { started_at, tries: Some(tries), ..PutStepBody::new(fence) };
        if !output.status.success() {
            let reason = format!("{program}: {}", output.status);
            let failure = Some(StepFailure { reason, category: "exit_code".to_owned() });
            api.ask(&Ask::<PutStep>::with(at, PutStepBody { failure, ..body })).await?;
            let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
            print(&output.stdout)?;
            return Ok(ExitCode::from(code));
        }
        let (result, encoding) = result_of(output.stdout.clone());
        if output.stdout.len() > STEP_RESULT_BYTES_MAX {
            bail!("{program} wrote {} bytes; a step holds at most {STEP_RESULT_BYTES_MAX}", output.stdout.len());
        }
        let body = PutStepBody { result: Some(result), result_encoding: Some(encoding), ..body };
        let put = api.ask(&Ask::<PutStep>::with(at, body)).await?.value;
        match put.outcome {
            // Another one of this name was faster: what counts is what it wrote.
            PutStepOutcome::Known => print(&written(put.result.as_deref(), put.result_encoding)?),
            PutStepOutcome::Stored | PutStepOutcome::Noted => print(&output.stdout),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_wrote_comes_back_byte_for_byte() {
        for bytes in [b"".as_slice(), b"text\n", b"{\"a\":1}\n", b"\xff\x00", "ä\u{0}".as_bytes()] {
            let (result, encoding) = result_of(bytes.to_vec());
            assert_eq!(written(Some(&result), Some(encoding)).unwrap(), bytes);
        }
        let json = RawValue::from_string("{\"a\":1}".to_owned()).unwrap();
        assert_eq!(written(Some(&json), None).unwrap(), b"{\"a\":1}");
    }
}
