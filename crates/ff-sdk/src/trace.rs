//! The trace a piece of work belongs to, as far as this process takes part in it.
//!
//! Without the feature `otel` there is no trace here: what came with an execution is passed on, and nothing is added.

/// The place of the current span, when it is exported.
pub(crate) fn current() -> Option<String> {
    #[cfg(feature = "otel")]
    return ff_trace::current().map(|parent| parent.to_string());
    #[cfg(not(feature = "otel"))]
    None
}

/// Makes a span a part of this trace.
pub(crate) fn follow(span: &tracing::Span, trace_parent: Option<&str>) {
    #[cfg(feature = "otel")]
    ff_trace::follow(span, trace_parent);
    #[cfg(not(feature = "otel"))]
    let _ = (span, trace_parent);
}

/// Names a span for the collector.
pub(crate) fn name(span: &tracing::Span, name: impl FnOnce() -> String) {
    #[cfg(feature = "otel")]
    ff_trace::name(span, name);
    #[cfg(not(feature = "otel"))]
    let _ = (span, name);
}

/// Marks a span as one of something that failed.
pub(crate) fn fail(span: &tracing::Span) {
    #[cfg(feature = "otel")]
    ff_trace::fail(span);
    #[cfg(not(feature = "otel"))]
    let _ = span;
}
