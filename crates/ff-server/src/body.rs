//! Reads request bodies: bounded, strict, with the name of the field that is wrong.

use std::time::Duration;

use axum::body::BodyDataStream;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::problem::{Answer, Problem};
use crate::times::Times;

const KIB: usize = 1024;
/// Submit and complete: one payload and what describes it.
pub const PAYLOAD: usize = 2 * KIB * KIB;
/// Batches and results.
pub const BATCH: usize = 64 * KIB * KIB;
/// Everything else.
pub const SMALL: usize = 512 * KIB;
/// How much of a body that is too large is read before the refusal, and for how long.
const DISCARD_MAX: usize = BATCH;
const DISCARD_TIME: Duration = Duration::from_secs(5);
/// How fast a body must come that takes longer than it may.
const BYTES_PER_SECOND: u64 = 32 * KIB as u64;
/// How deep JSON may nest.
const DEPTH_MAX: usize = 64;

/// How long the body of a request may take.
#[derive(Clone, Copy)]
pub struct BodyTime(pub Duration);

/// A JSON body of at most `MAX` bytes; an empty one is `{}`.
pub struct Body<T, const MAX: usize = SMALL>(pub T);

impl<T: DeserializeOwned, S: Send + Sync, const MAX: usize> FromRequest<S> for Body<T, MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Answer<Self> {
        Ok(Self(read(&whole(request, MAX).await?)?))
    }
}

/// The bytes of a body, if there are not too many of them.
pub async fn whole(request: Request, max: usize) -> Answer<Bytes> {
    let said = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let time = request.extensions().get::<BodyTime>().map_or(Times::default().body, |BodyTime(time)| *time);
    // A client that asks first has not sent anything yet.
    let asks_first = request.headers().contains_key(EXPECT);
    let mut chunks = request.into_body().into_data_stream();
    if said.is_some_and(|length| length > max) {
        if !asks_first {
            discard(&mut chunks).await;
        }
        return Err(Problem::too_large("body", max));
    }
    // What a client announces is not there yet: room for it comes with it.
    let mut bytes = BytesMut::with_capacity(said.unwrap_or(0).min(SMALL));
    let began = Instant::now();
    loop {
        let earned = Duration::from_secs(u64::try_from(bytes.len()).unwrap_or(u64::MAX) / BYTES_PER_SECOND);
        let Ok(chunk) = timeout_at(began + time + earned, chunks.next()).await else {
            return Err(Problem::too_slow(bytes.len(), began.elapsed()));
        };
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|error| Problem::invalid("body", format!("did not arrive whole: {error}")))?;
        if bytes.len() + chunk.len() > max {
            discard(&mut chunks).await;
            return Err(Problem::too_large("body", max));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

/// Reads on for a while and keeps nothing: a client that sends its whole body before it listens must get to the answer,
/// and a connection closed on unread bytes is reset before the answer is read.
async fn discard(chunks: &mut BodyDataStream) {
    let mut left = DISCARD_MAX;
    let reading = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                break;
            }
        }
    };
    // Out of time is out of patience: the answer goes out either way.
    let _ = tokio::time::timeout(DISCARD_TIME, reading).await;
}

/// Reads a JSON object; nothing at all is an empty one.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    // A list would be taken for the object's fields in their order.
    match bytes.trim_ascii_start().first() {
        Some(b'[') => Err(Problem::invalid("body", "must be an object")),
        _ => read_any(bytes),
    }
}

/// Reads any JSON.
pub fn read_any<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    check_depth(bytes)?;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        refused(&path, error.inner())
    })?;
    json.end().map_err(|error| refused(".", &error))?;
    Ok(read)
}

fn check_depth(bytes: &[u8]) -> Answer<()> {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(Problem::invalid("body", format!("nests deeper than {DEPTH_MAX}")));
        }
    }
    Ok(())
}

/// The problem a reader's error means; `path` is where it was, `.` at the top.
fn refused(path: &str, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let top = path.is_empty() || path == "." || path == "?";
    if error.is_syntax() || error.is_eof() {
        return Problem::invalid(if top { "body" } else { path }, format!("is not JSON: {text}"));
    }
    let within = |name: &str| match path.rsplit_once('.') {
        _ if top || path == name => name.to_owned(),
        Some((_, last)) if last == name => path.to_owned(),
        Some((parent, "?")) => format!("{parent}.{name}"),
        _ => format!("{path}.{name}"),
    };
    for (start, problem) in [
        ("unknown field `", "is not a field of this request"),
        ("missing field `", "is missing"),
        ("duplicate field `", "is given twice"),
    ] {
        if let Some((name, _)) = text.strip_prefix(start).and_then(|rest| rest.split_once('`')) {
            return Problem::invalid(within(name), problem);
        }
    }
    Problem::invalid(if top { "body" } else { path }, unrepeated(text))
}

/// What a reader expected instead of what it got. What it got is not repeated: it may be a payload, or a token in the wrong
/// field.
pub fn unrepeated(text: &str) -> String {
    match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("cannot be read: expected {expected}"),
        None if text.contains(['"', '`']) => "cannot be read".to_owned(),
        None => format!("cannot be read: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its type matters")]
        n: i64,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only their types matter")]
    struct Outer {
        kind: String,
        inner: Option<Inner>,
        list: Option<Vec<Inner>>,
        tags: Option<BTreeMap<String, String>>,
        input: Option<Box<RawValue>>,
    }

    fn field_of(json: &str) -> String {
        let problem = read::<Outer>(json.as_bytes()).expect_err(json);
        let document: serde_json::Value = serde_json::from_slice(&problem.document("r")).unwrap();
        document["fields"].as_object().expect("fields").keys().next().expect("one").clone()
    }

    #[test]
    fn a_wrong_field_is_named_wherever_it_is() {
        for (json, field) in [
            (r#"{}"#, "kind"),
            (r#""#, "kind"),
            (r#"{"kind":"k","colour":1}"#, "colour"),
            (r#"{"kind":7}"#, "kind"),
            (r#"{"kind":"k","inner":{"n":"x"}}"#, "inner.n"),
            (r#"{"kind":"k","inner":{"n":1,"m":2}}"#, "inner.m"),
            (r#"{"kind":"k","inner":{}}"#, "inner.n"),
            (r#"{"kind":"k","list":[{"n":1},{"n":1.5}]}"#, "list[1].n"),
            (r#"{"kind":"k","tags":{"a":1}}"#, "tags.a"),
            (r#"{"kind":"k","kind":"k"}"#, "kind"),
            (r#"[1]"#, "body"),
            (r#"{"kind":"k"} x"#, "body"),
        ] {
            assert_eq!(field_of(json), field, "{json}");
        }
    }

    #[test]
    fn a_payload_keeps_its_text() {
        let json = r#"{"kind":"k","input":{"z":12345678901234567890123,"a":[1.0,1e2]}}"#;
        let outer: Outer = read(json.as_bytes()).unwrap();
        assert_eq!(outer.input.unwrap().get(), r#"{"z":12345678901234567890123,"a":[1.0,1e2]}"#);
        let absent: Outer = read(br#"{"kind":"k","input":null}"#).unwrap();
        assert!(absent.input.is_none());
    }

    #[test]
    fn nesting_is_bounded_and_brackets_in_texts_do_not_count() {
        let deep = format!(r#"{{"kind":"k","input":{}{}}}"#, "[".repeat(64), "]".repeat(64));
        assert_eq!(field_of(&deep), "body");
        let text = format!(r#"{{"kind":"k","input":"\"{}"}}"#, "[".repeat(500));
        assert!(read::<Outer>(text.as_bytes()).is_ok());
    }
}
