//! What a program wrote: its lines as they come, its result, and the end of its complaints.

use std::io::Write;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

/// The largest frame; longer lines become several.
const LINE_MAX: usize = 60 * 1024;
/// The largest result.
const RESULT_MAX: usize = ff_core::limits::RESULT_BYTES_MAX;
/// How much of stderr becomes the reason.
const TAIL: usize = 3_500;

/// What may become the result.
#[derive(Debug, Default)]
pub struct Written {
    /// The whole output while it could be a result.
    all: Vec<u8>,
    /// It could not be one any more.
    too_large: bool,
    /// The last line that is JSON.
    json: Option<Vec<u8>>,
}

impl Written {
    fn line(&mut self, line: &[u8]) {
        if self.all.len() + line.len() < RESULT_MAX {
            self.all.extend_from_slice(line);
            self.all.push(b'\n');
        } else {
            self.too_large = true;
            self.all = Vec::new();
        }
        let line = line.trim_ascii();
        if line.len() <= RESULT_MAX && is_json(line) {
            self.json = Some(line.to_vec());
        }
    }

    /// The last line that is JSON, else everything as a text; nothing when nothing was written.
    pub fn result(self) -> Result<Option<Vec<u8>>, String> {
        if let Some(json) = self.json {
            return Ok(Some(json));
        }
        if self.too_large {
            return Err(format!(
                "the output has no line of JSON and is larger than a result may be ({RESULT_MAX} bytes); end with a line of JSON"
            ));
        }
        let text = self.all.trim_ascii_end();
        if text.is_empty() {
            return Ok(None);
        }
        let result = as_json(text);
        if result.len() > RESULT_MAX {
            return Err(format!(
                "the output is larger than a result may be ({RESULT_MAX} bytes); end with a line of JSON"
            ));
        }
        Ok(Some(result))
    }
}

fn is_json(line: &[u8]) -> bool {
    !line.is_empty() && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

/// A text as a JSON text; bytes that are none as they are.
fn as_json(bytes: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::to_vec(text).unwrap_or_else(|_| bytes.to_vec()),
        Err(_) => bytes.to_vec(),
    }
}

/// Reads to the end; each line goes on as a frame's payload: JSON as it is, other text as a JSON text.
pub async fn lines(mut from: impl AsyncRead + Unpin, written: &mut Written, to: &mpsc::Sender<Vec<u8>>) {
    let mut rest: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let read = match from.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        rest.extend_from_slice(&chunk[..read]);
        let mut begin = 0;
        while let Some(end) = rest[begin..].iter().position(|byte| *byte == b'\n') {
            pass(&rest[begin..begin + end], written, to).await;
            begin += end + 1;
        }
        rest.drain(..begin);
        // A line without end is cut, so that memory stays bounded.
        if rest.len() > RESULT_MAX {
            pass(&rest, written, to).await;
            rest.clear();
        }
    }
    if !rest.is_empty() {
        pass(&rest, written, to).await;
    }
}

async fn pass(line: &[u8], written: &mut Written, to: &mpsc::Sender<Vec<u8>>) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    written.line(line);
    if line.trim_ascii().is_empty() {
        return;
    }
    let whole = line.trim_ascii();
    if whole.len() <= LINE_MAX && is_json(whole) {
        let _ = to.send(whole.to_vec()).await;
        return;
    }
    // Quotes and escapes may double a text.
    for piece in pieces(line, LINE_MAX / 2) {
        let _ = to.send(as_json(piece)).await;
    }
}

/// Pieces of at most `max` bytes, cut between characters where these are text.
fn pieces(mut line: &[u8], max: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while line.len() > max {
        let mut end = max;
        while end > max - 4 && line[end] & 0b1100_0000 == 0b1000_0000 {
            end -= 1;
        }
        let (piece, rest) = line.split_at(end);
        pieces.push(piece);
        line = rest;
    }
    pieces.push(line);
    pieces
}

/// The end of what a program wrote to stderr.
#[derive(Debug, Default)]
pub struct Tail(Vec<u8>);

impl Tail {
    /// Reads to the end, passing everything on to our own stderr.
    pub async fn read(from: Option<impl AsyncRead + Unpin>) -> Self {
        let mut tail = Self::default();
        let Some(mut from) = from else { return tail };
        let mut chunk = vec![0; 4 * 1024];
        while let Ok(read @ 1..) = from.read(&mut chunk).await {
            let _ = std::io::stderr().write_all(&chunk[..read]);
            tail.push(&chunk[..read]);
        }
        tail
    }

    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let over = self.0.len().saturating_sub(TAIL);
        self.0.drain(..over);
    }

    /// The reason of a failure: what happened, and the program's last words.
    pub fn after(&self, what: &str) -> String {
        let said = String::from_utf8_lossy(&self.0);
        let said = said.trim().trim_start_matches('\u{fffd}');
        if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ran(output: &[u8]) -> (Vec<String>, Result<Option<String>, String>) {
        let (send, mut receive) = mpsc::channel(4);
        let mut written = Written::default();
        let reading = async {
            let send = send;
            lines(output, &mut written, &send).await;
        };
        let collecting = async {
            let mut frames = Vec::new();
            while let Some(frame) = receive.recv().await {
                frames.push(String::from_utf8(frame).expect("text"));
            }
            frames
        };
        let ((), frames) = tokio::join!(reading, collecting);
        (frames, written.result().map(|result| result.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())))
    }

    #[tokio::test]
    async fn lines_become_frames_and_the_last_json_the_result() {
        let table: &[(&str, &[&str], Option<&str>)] = &[
            ("", &[], None),
            ("\n\n", &[], None),
            ("hello\n", &[r#""hello""#], Some(r#""hello""#)),
            ("a\nb", &[r#""a""#, r#""b""#], Some(r#""a\nb""#)),
            (
                "working\r\n{\"b\": 1, \"a\": 2}\n",
                &[r#""working""#, "{\"b\": 1, \"a\": 2}"],
                Some("{\"b\": 1, \"a\": 2}"),
            ),
            ("{\"n\":1}\n{\"n\":2}\ndone\n", &[r#"{"n":1}"#, r#"{"n":2}"#, r#""done""#], Some(r#"{"n":2}"#)),
            ("12345678901234567890\n", &["12345678901234567890"], Some("12345678901234567890")),
        ];
        for (output, frames, result) in table {
            let (got, end) = ran(output.as_bytes()).await;
            assert_eq!(got, *frames, "{output:?}");
            assert_eq!(end, Ok(result.map(str::to_owned)), "{output:?}");
        }
    }

    #[tokio::test]
    async fn long_lines_are_cut_and_output_without_end_is_bounded() {
        let (frames, _) = ran("ä".repeat(LINE_MAX).as_bytes()).await;
        assert!(frames.len() >= 4 && frames.iter().all(|frame| frame.len() <= 64 * 1024), "{}", frames.len());
        assert_eq!(frames.iter().map(|frame| frame.chars().filter(|c| *c == 'ä').count()).sum::<usize>(), LINE_MAX);
        let (_, result) = ran("no json here\n".repeat(100_000).as_bytes()).await;
        assert!(result.expect_err("it is too large").contains("line of JSON"));
        let (_, result) = ran(format!("{}{{\"ok\":true}}\n", "no json here\n".repeat(100_000)).as_bytes()).await;
        assert_eq!(result, Ok(Some("{\"ok\":true}".to_owned())));
    }

    #[test]
    fn the_reason_is_the_end_of_what_was_said() {
        let mut tail = Tail::default();
        assert_eq!(tail.after("exit code 3"), "exit code 3");
        tail.push("x".repeat(10_000).as_bytes());
        tail.push(b"disk full\n");
        let reason = tail.after("exit code 3");
        assert!(reason.starts_with("exit code 3: xx") && reason.ends_with("disk full") && reason.len() < 4_096);
    }
}
