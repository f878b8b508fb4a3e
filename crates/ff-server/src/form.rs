//! How a stream is written: as server-sent events or as NDJSON.

use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::Bytes;

use crate::problem::Problem;

/// How a stream is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Server-sent events.
    Sse,
    /// One JSON object per line.
    Ndjson,
}

impl Form {
    /// NDJSON when the request accepts it, else server-sent events.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
        if accept.contains(Self::Ndjson.content_type()) { Self::Ndjson } else { Self::Sse }
    }

    /// The form of an answer that is a stream.
    pub fn of(answer: &Response) -> Option<Self> {
        let content_type = answer.headers().get(header::CONTENT_TYPE)?;
        [Self::Sse, Self::Ndjson].into_iter().find(|form| content_type == form.content_type())
    }

    /// The media type of the stream.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// The last piece of a stream that cannot go on.
    pub fn failed(self, problem: &Problem) -> Bytes {
        let problem = String::from_utf8(problem.document("")).expect("JSON is UTF-8");
        match self {
            Self::Sse => format!("event: error\ndata: {problem}\n\n").into(),
            Self::Ndjson => format!("{{\"error\":{problem}}}\n").into(),
        }
    }
}
