//! Streams of the server that go on however often their connection breaks.

use std::time::Duration;

use ff_api::{Ask, Nothing, Operation};
use ff_sdk::http::Lines;
use serde::Serialize;

use crate::away::{Patience, WAITING};
use crate::client::Api;

/// A stream that ended too early is opened again after this.
const AGAIN: Duration = Duration::from_millis(100);

/// A stream, opened again behind the last line that was read when the connection breaks or the server is started again.
pub struct Follow<'a, F> {
    api: &'a Api,
    /// The request for what comes behind a cursor.
    ask: F,
    lines: Option<Lines>,
    patience: Patience,
    /// The server ends the stream when there is nothing more; else it goes on for ever.
    ends: bool,
}

impl<'a, O, F> Follow<'a, F>
where
    O: Operation<Query: Serialize, Body = Nothing>,
    F: Fn(Option<&str>) -> Ask<O>,
{
    /// A stream that is not open yet.
    pub fn new(api: &'a Api, ends: bool, ask: F) -> Self {
        Self { api, ask, lines: None, patience: Patience::default(), ends }
    }

    /// The next line; nothing when a stream that ends has ended. A server that has answered before is waited for.
    pub async fn next(&mut self, cursor: Option<&str>) -> anyhow::Result<Option<Vec<u8>>> {
        loop {
            if let Some(lines) = &mut self.lines {
                match lines.next().await {
                    Ok(Some(line)) => return Ok(Some(line)),
                    Ok(None) if self.ends => return Ok(None),
                    Ok(None) | Err(_) => self.lines = None,
                }
                tokio::time::sleep(AGAIN).await;
            }
            match self.api.lines(&(self.ask)(cursor)).await {
                Ok(lines) => {
                    self.patience.answered();
                    self.lines = Some(lines);
                }
                Err(error) => {
                    let pause = self.patience.pause(error)?;
                    if self.patience.is_new() {
                        eprintln!("{WAITING}");
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}
