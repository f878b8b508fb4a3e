//! The two forms of the page: the text every scraper reads, and OpenMetrics for those that ask for it.

use std::fmt::Write as _;

use axum::http::{HeaderMap, header};

/// How the page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The Prometheus text format, version 0.0.4.
    Plain,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Form {
    /// The form a request asks for.
    pub fn asked(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Plain }
    }

    /// What the answer says it is.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// An OpenMetrics page in this form.
    pub fn of(self, page: String) -> String {
        match self {
            Self::OpenMetrics => page,
            Self::Plain => plain(&page),
        }
    }
}

/// In the plain form a counter is declared by the name its numbers have, and nothing marks the end.
fn plain(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        if line.starts_with("# HELP ") {
            help = Some(line);
            continue;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            let suffix = if kind == "counter" { "_total" } else { "" };
            if let Some((_, text)) = help.take().and_then(|help| help["# HELP ".len()..].split_once(' ')) {
                let _ = writeln!(out, "# HELP {name}{suffix} {text}");
            }
            let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
        } else if line != "# EOF" {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_declared_as_they_are_named() {
        let page = "# HELP ff_x Things.\n# TYPE ff_x counter\nff_x_total{a=\"b\"} 3\n# HELP ff_y Others.\n# TYPE ff_y gauge\nff_y 1\n# EOF\n";
        assert_eq!(
            Form::Plain.of(page.to_owned()),
            "# HELP ff_x_total Things.\n# TYPE ff_x_total counter\nff_x_total{a=\"b\"} 3\n# HELP ff_y Others.\n# TYPE ff_y gauge\nff_y 1\n"
        );
        assert_eq!(Form::OpenMetrics.of(page.to_owned()), page);
    }
}
