//! What `ff` says about itself: log lines on stderr, and spans to a collector when one is named.

use std::io::IsTerminal;

use anyhow::Context;
use clap::{Args, ValueEnum};
use ff_trace::Exporter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// What is logged unless someone says otherwise.
const LEVEL: &str = "warn";
/// How much may be logged.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// How a server says what it does.
#[derive(Args, Clone, Debug)]
pub struct TelemetryArgs {
    /// What is logged: error, warn, info, debug or trace; for parts of it, e.g. warn,ff_server=debug.
    #[arg(long, env = "FF_LOG", value_name = "LEVEL", default_value = LEVEL, value_parser = filter)]
    log: String,
    /// How log lines are written.
    #[arg(long, env = "FF_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// The OTLP collector that gets traces over HTTP, e.g. http://127.0.0.1:4318 (default:
    /// OTEL_EXPORTER_OTLP_ENDPOINT).
    #[arg(long, env = "FF_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
}

/// What to log, as it was said. A word alone must be a level: the filter would take it for a part of the program that logs everything.
fn filter(text: &str) -> Result<String, String> {
    let wrong = |part: &str| {
        format!(
            "{part:?} does not say what to log; use error, warn, info, debug, trace or off, or e.g. warn,ff_server=debug"
        )
    };
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
            return Err(wrong(part));
        }
    }
    text.parse::<Targets>().map_err(|_| wrong(text))?;
    Ok(text.to_owned())
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl TelemetryArgs {
    /// What the environment says, for commands without these flags.
    pub fn of_environment() -> anyhow::Result<Self> {
        let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let log_format = match said("FF_LOG_FORMAT") {
            None => LogFormat::Text,
            Some(format) => LogFormat::from_str(&format, true)
                .map_err(|_| anyhow::anyhow!("FF_LOG_FORMAT is {format:?}: it must be text or json"))?,
        };
        let log = said("FF_LOG").unwrap_or_else(|| LEVEL.to_owned());
        let log = filter(&log).map_err(|problem| anyhow::anyhow!("FF_LOG is {log:?}: {problem}"))?;
        Ok(Self { log, log_format, otlp_endpoint: said("FF_OTLP_ENDPOINT") })
    }

    /// How log lines are written.
    pub fn format(&self) -> LogFormat {
        self.log_format
    }
}

/// The log and the traces of this process.
pub struct Telemetry {
    exporter: Option<Exporter>,
}

impl Telemetry {
    /// Starts the log, and with a name to export under the traces too.
    pub fn start(args: &TelemetryArgs, service: Option<&str>) -> anyhow::Result<Self> {
        let filter = || {
            args.log.parse::<Targets>().with_context(|| {
                format!("{:?} does not say what to log: use a level such as info, or warn,ff_server=debug", args.log)
            })
        };
        let endpoint = args.otlp_endpoint.clone().or_else(ff_trace::endpoint_of_environment);
        let exporter = match (endpoint, service) {
            (Some(endpoint), Some(service)) => Some(Exporter::start(&endpoint, service)?),
            _ => None,
        };
        let stderr = fmt::layer().with_writer(std::io::stderr);
        let log = match args.log_format {
            LogFormat::Text => stderr.with_ansi(std::io::stderr().is_terminal()).with_filter(filter()?).boxed(),
            LogFormat::Json => {
                stderr.json().flatten_event(true).with_current_span(false).with_filter(filter()?).boxed()
            }
        };
        tracing_subscriber::registry().with(log).with(exporter.as_ref().map(Exporter::layer)).init();
        Ok(Self { exporter })
    }

    /// Sends the traces that are left.
    pub async fn stop(self) {
        if let Some(exporter) = self.exporter {
            exporter.stop().await;
        }
    }
}

/// Says something to whoever started the process, whatever is logged.
pub fn announce(format: LogFormat, text: &str) {
    match format {
        LogFormat::Text => eprintln!("{text}"),
        LogFormat::Json => {
            let timestamp = jiff::Timestamp::now().to_string();
            eprintln!("{}", serde_json::json!({ "timestamp": timestamp, "level": "INFO", "message": text }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_is_a_level_or_parts_with_levels() {
        for text in ["info", "WARN", "off", "warn,ff_server=debug", "ff_engine::timers=trace, error"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for text in ["blah", "warn,blah", "ff_server", "ff_server=loud", "ff_server=", "7"] {
            assert!(filter(text).expect_err(text).contains("use error, warn, info"), "{text}");
        }
    }
}
