//! `ff tail`: follows what an execution writes until it ends.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::{Api, Output, OutputArgs, Refused, ServerArgs, say, segment};
use crate::terminal;

/// How often a broken connection is opened anew before giving up.
const TRIES_MAX: u32 = 10;

/// Follows what an execution writes, all attempts in one stream, until it ends. Payloads go to stdout, one per line; what
/// happens to attempts goes to stderr. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff tail 0192f3a0-…
  ff tail 0192f3a0-… --attempt 0 -o json")]
pub struct Tail {
    /// The execution.
    #[arg(value_name = "ID")]
    id: String,
    /// Goes on where an earlier reader stopped; everything unless said.
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

/// One line of the merged stream.
#[derive(Deserialize)]
struct Line<'a> {
    event: &'a str,
    cursor: Option<&'a str>,
    attempt_index: Option<u32>,
    closed_reason: Option<&'a str>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    payload_encoding: Option<&'a str>,
}

/// A page of one attempt's stream.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    frames: Vec<&'a RawValue>,
    next: String,
    closed_at: Option<i64>,
    closed_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    id: &'a str,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    payload_encoding: Option<&'a str>,
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

    /// Follows over all attempts; a connection that breaks is opened anew behind the last line seen.
    async fn follow(&self, api: &Api) -> anyhow::Result<ExitCode> {
        let path = format!("/v1/executions/{}/stream", segment(&self.id));
        let (mut cursor, mut tries) = (self.after.clone(), 0);
        loop {
            let query: Vec<(&str, String)> = cursor.clone().map(|after| ("after", after)).into_iter().collect();
            match api.lines(&path, &query).await {
                Ok(mut answer) => {
                    let mut bytes: Vec<u8> = Vec::new();
                    while let Ok(Some(chunk)) = answer.chunk().await {
                        bytes.extend_from_slice(&chunk);
                        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                            let line: Vec<u8> = bytes.drain(..=end).collect();
                            if line.trim_ascii().is_empty() {
                                continue;
                            }
                            tries = 0;
                            if self.print(&line, &mut cursor)? {
                                return Ok(ExitCode::SUCCESS);
                            }
                        }
                    }
                }
                Err(error) if tries == 0 || error.downcast_ref::<Refused>().is_some() => return Err(error),
                Err(_) => {}
            }
            tries += 1;
            if tries > TRIES_MAX {
                let from = cursor.map(|cursor| format!(" --after {cursor}")).unwrap_or_default();
                bail!("the server went away; go on with `ff tail {}{from}` when it is back", self.id);
            }
            tokio::time::sleep(Duration::from_millis(100 << tries.min(5))).await;
        }
    }

    /// Prints one line; true when it was the last.
    fn print(&self, line: &[u8], cursor: &mut Option<String>) -> anyhow::Result<bool> {
        let text = std::str::from_utf8(line)?.trim_end();
        let line: Line = serde_json::from_str(text)?;
        if line.event == "error" {
            bail!("the server cannot read on: {text}");
        }
        *cursor = line.cursor.map(str::to_owned).or(cursor.take());
        let closed = line.event == "closed";
        match self.output.output {
            Output::Json => say(text)?,
            Output::Ids => say(line.cursor.unwrap_or_default())?,
            Output::Table if line.event == "frame" => say(&shown(line.payload, line.payload_encoding))?,
            Output::Table => {
                let attempt = line.attempt_index.map_or_else(|| "it".to_owned(), |index| format!("attempt {index}"));
                let what = if closed { "the end" } else { "the next attempt goes on" };
                eprintln!("{attempt} {}: {what}", line.closed_reason.unwrap_or("ended"));
            }
        }
        Ok(closed)
    }

    async fn follow_attempt(&self, api: &Api, attempt: u32) -> anyhow::Result<ExitCode> {
        let path = format!("/v1/executions/{}/attempts/{attempt}/stream", segment(&self.id));
        let mut after = self.after.clone().unwrap_or_else(|| "start".to_owned());
        loop {
            let query = [("after", after.clone()), ("limit", "1000".to_owned()), ("block_ms", "30000".to_owned())];
            let reply = api.get(&path, &query).await?.accepted()?;
            let page: Page = serde_json::from_slice(&reply.bytes)?;
            for raw in &page.frames {
                let frame: Frame = serde_json::from_str(raw.get())?;
                match self.output.output {
                    Output::Json => say(&raw.get().replace(['\n', '\r'], " "))?,
                    Output::Ids => say(frame.id)?,
                    Output::Table => say(&shown(frame.payload, frame.payload_encoding))?,
                }
            }
            if page.closed_at.is_some() {
                let known = api.get(&format!("/v1/executions/{}/attempts/{attempt}", segment(&self.id)), &[]).await?;
                if known.status == StatusCode::NOT_FOUND {
                    bail!("attempt {attempt} was never started; `ff show {}` lists those that were", self.id);
                }
                if self.output.output == Output::Table {
                    eprintln!("attempt {attempt} {}: the end", page.closed_reason.unwrap_or("ended"));
                }
                return Ok(ExitCode::SUCCESS);
            }
            after = page.next;
        }
    }
}

/// A payload for people: a text as it is, other JSON as it was written, bytes that are text as text.
fn shown(payload: Option<&RawValue>, encoding: Option<&str>) -> String {
    let Some(payload) = payload else { return String::new() };
    let text = serde_json::from_str::<String>(payload.get());
    let shown = match (text, encoding) {
        (Ok(base64), Some("base64")) => {
            STANDARD.decode(&base64).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(base64)
        }
        (Ok(text), _) => text,
        (Err(_), _) => payload.get().replace(['\n', '\r'], " "),
    };
    if terminal::is_live() { terminal::harmless(&shown) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_shown_as_people_write_them() {
        for (json, encoding, text) in [
            (r#""hello""#, "json", "hello"),
            (r#"{"a":12345678901234567890}"#, "json", r#"{"a":12345678901234567890}"#),
            ("{\n\"a\":1}", "json", r#"{ "a":1}"#),
            (r#""aGVsbG8=""#, "base64", "hello"),
            (r#""AAH/""#, "base64", "AAH/"),
        ] {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            assert_eq!(shown(Some(&raw), Some(encoding)), text);
        }
    }
}
