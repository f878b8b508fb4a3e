//! Trace context as text, and spans that continue it.

use std::fmt;
use std::str::FromStr;

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The position of a span in its trace: `00-<trace>-<span>-<flags>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    trace: TraceId,
    span: SpanId,
    flags: TraceFlags,
}

impl TraceParent {
    /// The trace id, as 32 digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        self.trace.to_string()
    }

    fn of(context: &SpanContext) -> Option<Self> {
        let parent = Self { trace: context.trace_id(), span: context.span_id(), flags: context.trace_flags() };
        context.is_valid().then_some(parent)
    }
}

/// The text is not a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotATraceParent;

impl FromStr for TraceParent {
    type Err = NotATraceParent;

    /// Later versions of the format may have more parts. The first four keep their meaning.
    fn from_str(text: &str) -> Result<Self, NotATraceParent> {
        let read = || {
            let mut parts = text.split('-');
            let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            let digits = |part: &str, count: usize| {
                part.len() == count && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            };
            let known = digits(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
            if !known || !digits(trace, 32) || !digits(span, 16) || !digits(flags, 2) {
                return None;
            }
            let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
            let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()? & TraceFlags::SAMPLED.to_u8());
            (trace != TraceId::INVALID && span != SpanId::INVALID).then_some(Self { trace, span, flags })
        };
        read().ok_or(NotATraceParent)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// Makes a span part of the trace in the text; the span must not have been entered. An invalid `traceparent` is
/// ignored, because a trace must never cause a failure.
pub fn follow(span: &Span, trace_parent: Option<&str>) {
    let Some(parent) = trace_parent.and_then(|text| text.parse::<TraceParent>().ok()) else { return };
    let remote = SpanContext::new(parent.trace, parent.span, parent.flags, true, TraceState::default());
    // No exporter, or the span is filtered out: there is nothing to connect.
    let _ = span.set_parent(Context::new().with_remote_span_context(remote));
}

/// Sets the name that the collector shows. In the code, all spans of a kind have the same name.
pub fn name(span: &Span, name: impl FnOnce() -> String) {
    let context = span.context();
    if context.span().span_context().is_valid() {
        context.span().update_name(name());
    }
}

/// Adds an attribute for the collector only; the log does not show it.
pub fn note(span: &Span, name: &'static str, value: i64) {
    span.set_attribute(name, value);
}

/// Marks the span as failed.
pub fn fail(span: &Span) {
    span.set_status(Status::error(""));
}

/// The position of the current span, if its trace is exported.
#[must_use]
pub fn current() -> Option<TraceParent> {
    TraceParent::of(Span::current().context().span().span_context())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_parent_survives_its_text() {
        let parent: TraceParent = TEXT.parse().unwrap_or_else(|_| panic!("{TEXT}"));
        assert_eq!(parent.to_string(), TEXT);
        assert_eq!(parent.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        let later: TraceParent = format!("cc{}-more", &TEXT[2..]).parse().unwrap_or_else(|_| panic!("a later version"));
        assert_eq!(later, parent);
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "trace",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        ] {
            assert_eq!(text.parse::<TraceParent>(), Err(NotATraceParent), "{text}");
        }
    }

    #[test]
    fn without_anyone_who_exports_there_is_no_current_trace() {
        let span = tracing::info_span!("work");
        follow(&span, Some(TEXT));
        assert_eq!(span.in_scope(current), None);
    }
}
