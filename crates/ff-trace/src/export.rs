//! Sends finished spans to a collector: OTLP over HTTP, in batches, in the background.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// How long a collector may take to accept a batch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The endpoint is not a valid URL.
#[derive(Debug, thiserror::Error)]
#[error("cannot send traces to {endpoint:?}: {problem}; name a collector as http://HOST:4318")]
pub struct BadEndpoint {
    endpoint: String,
    problem: String,
}

/// The collector that OpenTelemetry's own variables name, if any.
#[must_use]
pub fn endpoint_of_environment() -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

/// Exports the spans of this process until [`Exporter::stop`].
#[derive(Clone, Debug)]
pub struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Starts to export to a collector. A URL without a path gets the usual one, `/v1/traces`. Must be called in a
    /// Tokio runtime.
    pub fn start(endpoint: &str, service: &str) -> Result<Self, BadEndpoint> {
        let bad = |problem: String| BadEndpoint { endpoint: endpoint.to_owned(), problem };
        let mut url = reqwest::Url::parse(endpoint).map_err(|error| bad(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("it is no http URL".to_owned()));
        }
        if matches!(url.path(), "" | "/") {
            url.set_path("/v1/traces");
        }
        let http = reqwest::Client::builder().timeout(TIMEOUT).build().map_err(|error| bad(error.to_string()))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Line { http, runtime: Handle::current() })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url.as_str())
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|error| bad(error.to_string()))?;
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_attribute(KeyValue::new("service.name", service.to_owned()));
        }
        let provider =
            SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter).build();
        Ok(Self { provider })
    }

    /// The layer for a subscriber. It sees the spans of these crates, and warnings in them, whatever the log shows.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let tracer = self.provider.tracer("flowfabric");
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(filter_fn(wanted))
    }

    /// Sends the remaining spans.
    pub async fn stop(self) {
        // The provider waits for its thread, which waits for this runtime. So it must not block one of the runtime's
        // workers.
        let stopped = tokio::task::spawn_blocking(move || self.provider.shutdown()).await;
        if let Ok(Err(error)) = stopped {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

fn wanted(metadata: &Metadata<'_>) -> bool {
    let ours = metadata.target().starts_with("ff_") || metadata.target().starts_with("flowfabric");
    let level = if metadata.is_span() { Level::INFO } else { Level::WARN };
    // The spans that a handler opens belong to its attempt.
    *metadata.level() <= level && (ours || metadata.is_span()) && !metadata.target().starts_with("opentelemetry")
}

/// Posts batches on the process's own runtime, with the same HTTP client as everything else.
#[derive(Clone, Debug)]
struct Line {
    http: reqwest::Client,
    runtime: Handle,
}

#[async_trait::async_trait]
impl HttpClient for Line {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let http = self.http.clone();
        let sent = self.runtime.spawn(async move {
            let (head, body) = request.into_parts();
            let url = head.uri.to_string();
            let answer = http.request(head.method, url).headers(head.headers).body(body).send().await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        });
        let (status, body) = sent.await??;
        Ok(Response::builder().status(status).body(body)?)
    }
}
