//! `ff tail`: follows what an execution writes until it ends.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use ff_api::Ask;
use ff_api::executions::GetAttempt;
use ff_api::payload::{Encoding, Payload};
use ff_api::streams::{ReadStream, StreamEvent, StreamItem, StreamLine, StreamQuery, TailQuery, TailStream};
use ff_core::types::ExecutionId;

use crate::client::{Api, ServerArgs, item};
use crate::follow::Follow;
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::problem::Refused;
use crate::terminal;

/// How long a request for the frames of one attempt waits for the first of them.
const BLOCK: Duration = Duration::from_secs(30);

/// Follows what an execution writes, all attempts in one stream, until it ends. Payloads go to stdout, one per line; what
/// happens to attempts goes to stderr. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff tail 0192f3a0-…
  ff tail 0192f3a0-… --attempt 0 -o json")]
pub struct Tail {
    /// The execution.
    #[arg(value_name = "ID")]
    id: ExecutionId,
    /// Goes on where an earlier reader stopped (default: from the beginning).
    #[arg(long)]
    after: Option<String>,
    /// Only this attempt, until it ends.
    #[arg(long)]
    attempt: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Tail {
    /// Prints frames as they come.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        match self.attempt {
            Some(attempt) => self.follow_attempt(&api, attempt).await,
            None => self.follow(&api).await,
        }
    }

    /// Follows over all attempts; a connection that breaks is opened again behind the last line seen.
    async fn follow(&self, api: &Api) -> anyhow::Result<ExitCode> {
        let mut cursor = self.after.clone();
        let mut stream = Follow::new(api, false, |after: Option<&str>| {
            Ask::<TailStream>::by(self.id, TailQuery { after: after.map(str::to_owned) })
        });
        while let Some(text) = stream.next(cursor.as_deref()).await? {
            let line: StreamLine = item(&text)?;
            self.print(&text, &line)?;
            if line.event == StreamEvent::Closed {
                break;
            }
            cursor = Some(line.cursor);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, text: &[u8], line: &StreamLine) -> anyhow::Result<()> {
        match (self.output.output, &line.item) {
            (Output::Json, _) => say_raw(text)?,
            (Output::Ids, _) => say(&line.cursor)?,
            (Output::Table, StreamItem::Frame(frame)) => say(&shown(frame.payload.as_deref(), frame.payload_encoding))?,
            (Output::Table, StreamItem::End { closed_reason, .. }) => {
                let attempt = line.attempt_index.map_or_else(|| "it".to_owned(), |index| format!("attempt {index}"));
                let closed = line.event == StreamEvent::Closed;
                let what = if closed { "the end" } else { "the next attempt goes on" };
                eprintln!("{attempt} {}: {what}", closed_reason.map_or("ended", |reason| reason.as_str()));
            }
        }
        Ok(())
    }

    async fn follow_attempt(&self, api: &Api, attempt: u32) -> anyhow::Result<ExitCode> {
        let (mut after, mut seen) = (self.after.clone().unwrap_or_else(|| "start".to_owned()), false);
        loop {
            let block_ms = i64::try_from(BLOCK.as_millis()).ok();
            let query = StreamQuery { after: Some(after.clone()), to: None, limit: Some(1_000), block_ms };
            let page = api.ask_within(&Ask::<ReadStream>::by((self.id, attempt), query), BLOCK).await?.value;
            seen |= !page.frames.is_empty();
            for frame in &page.frames {
                match self.output.output {
                    // One line for each, whatever space the payload was written with.
                    Output::Json => say(&serde_json::to_string(frame)?.replace(['\n', '\r'], " "))?,
                    Output::Ids => say(&frame.id)?,
                    Output::Table => say(&shown(frame.payload.as_deref(), frame.payload_encoding))?,
                }
            }
            if page.closed_at.is_some() {
                // An attempt that never started has no frames, and reads like one that has ended.
                if !seen
                    && let Err(error) = api.ask(&Ask::<GetAttempt>::at((self.id, attempt))).await
                    && error.downcast_ref::<Refused>().is_some()
                {
                    bail!("attempt {attempt} was never started; `ff show {}` lists those that were", self.id);
                }
                if self.output.output == Output::Table {
                    eprintln!(
                        "attempt {attempt} {}: the end",
                        page.closed_reason.map_or("ended", |reason| reason.as_str())
                    );
                }
                return Ok(ExitCode::SUCCESS);
            }
            after = page.next;
        }
    }
}

/// A payload for people: a text as it is, other JSON as it was written, bytes that are text as text.
fn shown(bytes: Option<&[u8]>, encoding: Option<Encoding>) -> String {
    let Some(bytes) = bytes else { return String::new() };
    let payload = Payload { bytes: bytes.to_vec(), encoding: encoding.unwrap_or(Encoding::Json) };
    let (field, encoding) = payload.written();
    let text = match encoding {
        Encoding::Base64 => String::from_utf8(payload.bytes).ok(),
        Encoding::Json => None,
    };
    let text = text.or_else(|| serde_json::from_str(field.get()).ok());
    let shown = text.unwrap_or_else(|| field.get().replace(['\n', '\r'], " "));
    if terminal::is_live() { terminal::harmless(&shown) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_shown_as_people_write_them() {
        for (json, encoding, text) in [
            (r#""hello""#, Encoding::Json, "hello"),
            (r#"{"a":12345678901234567890}"#, Encoding::Json, r#"{"a":12345678901234567890}"#),
            ("{\n\"a\":1}", Encoding::Json, r#"{ "a":1}"#),
            ("hello", Encoding::Base64, "hello"),
        ] {
            assert_eq!(shown(Some(json.as_bytes()), Some(encoding)), text);
        }
        assert_eq!(shown(Some(&[0, 1, 255]), Some(Encoding::Base64)), "AAH/");
    }
}
