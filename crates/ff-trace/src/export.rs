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

/// A collector that takes longer gets the batch no more.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The endpoint does not say where to send.
#[derive(Debug, thiserror::Error)]
#[error("cannot send traces to {endpoint:?}: {problem}; name a collector as http://HOST:4318")]
pub struct BadEndpoint {
    endpoint: String,
    problem: String,
}

/// The collector that OpenTelemetry's own variables name, if they do.
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
    /// Sends to a collector; a URL without a path means the usual one, `/v1/traces`. Needs a Tokio runtime around it.
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

    /// The part of a subscriber that hands spans over. It sees the spans of these crates whatever the log shows, and warnings in them.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let tracer = self.provider.tracer("flowfabric");
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(filter_fn(wanted))
    }

    /// Sends what is left.
    pub async fn stop(self) {
        // The provider waits for its thread, which waits for this runtime: not on one of its workers.
        let stopped = tokio::task::spawn_blocking(move || self.provider.shutdown()).await;
        if let Ok(Err(error)) = stopped {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

fn wanted(metadata: &Metadata<'_>) -> bool {
    let ours = metadata.target().starts_with("ff_") || metadata.target().starts_with("flowfabric");
    let level = if metadata.is_span() { Level::INFO } else { Level::WARN };
    // A handler's own spans belong to its attempt.
    *metadata.level() <= level && (ours || metadata.is_span()) && !metadata.target().starts_with("opentelemetry")
}

/// Posts batches on the process's own runtime, with the HTTP client everything else uses.
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
