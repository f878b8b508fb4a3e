//! One trace from the submitter through the server to the worker's attempt, as a collector gets it.

use std::sync::{Arc, Mutex};

use ff_sdk::backend::Transport;
use ff_sdk::runtime::{HandlerResult, WorkerRuntime};
use ff_trace::{Exporter, TraceParent};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::world::{SOON, World, claim};

/// A span as it arrived.
#[derive(Clone, Debug)]
struct Arrived {
    name: String,
    trace: String,
    span: String,
    parent: String,
    service: String,
    failed: bool,
}

/// A collector on loopback.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Arrived>>>);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Collector {
    async fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let collector = Self::default();
        tokio::spawn({
            let collector = collector.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(collector.clone().serve(stream));
                }
            }
        });
        (collector, url)
    }

    /// Takes batches until the connection ends.
    async fn serve(self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut line, mut length) = (String::new(), 0);
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            assert!(line.starts_with("POST /v1/traces "), "{line}");
            loop {
                line.clear();
                stream.read_line(&mut line).await?;
                if line.trim().is_empty() {
                    break;
                }
                if let Some((name, value)) =
                    line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                {
                    length = value.trim().parse().unwrap_or_else(|error| panic!("{name}: {error}"));
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await?;
            self.take(&body);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
                .await?;
        }
    }

    fn take(&self, body: &[u8]) {
        let request = ExportTraceServiceRequest::decode(body).expect("OTLP");
        for spans in request.resource_spans {
            let attributes = spans.resource.map(|resource| resource.attributes).unwrap_or_default();
            let service = attributes.iter().find(|attribute| attribute.key == "service.name");
            let service = service.map(|service| format!("{:?}", service.value)).unwrap_or_default();
            for span in spans.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                self.0.lock().unwrap().push(Arrived {
                    name: span.name,
                    trace: hex(&span.trace_id),
                    span: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    service: service.clone(),
                    failed: span.status.is_some_and(|status| status.code == 2),
                });
            }
        }
    }

    /// The spans of a trace.
    fn of(&self, trace: &str) -> Vec<Arrived> {
        self.0.lock().unwrap().iter().filter(|span| span.trace == trace).cloned().collect()
    }
}

#[track_caller]
fn one<'a>(spans: &'a [Arrived], name: &str) -> &'a Arrived {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

async fn looks_closer() -> HandlerResult {
    async { tracing::info!("inside") }.instrument(tracing::info_span!("look")).await;
    Ok(None)
}

async fn gives_up() -> HandlerResult {
    Err(ff_sdk::middleware::TaskError::new("no", "bad").fatal().into())
}

for_each_transport! {
    async fn a_submitters_trace_goes_on_in_the_attempt(world: &World) {
        let (collector, url) = Collector::start().await;
        let exporter = Exporter::start(&url, "shop").unwrap();
        tracing_subscriber::registry().with(exporter.layer()).init();

        let ordering = tracing::info_span!("place order");
        let (id, failing, parent) = async {
            let mut fails = world.new_execution("fails");
            fails.fields.retry = Some(ff_script::generated::Retry { max_attempts: Some(1), ..Default::default() });
            let failing = world.admin.submit(fails).await.expect("submitted");
            (world.submit("looks", b"1").await, failing, ff_trace::current().expect("a trace"))
        }
        .instrument(ordering.clone())
        .await;
        drop(ordering);
        let trace = parent.trace_id();
        assert_eq!(world.operations.describe(id).await.unwrap().trace_parent, Some(parent.to_string()));

        let stop = CancellationToken::new();
        let runtime = WorkerRuntime::new(world.worker("w-1").await).on("looks", looks_closer).on("fails", gives_up);
        let running = tokio::spawn(runtime.without_signals().shutdown_on(stop.clone()).run());
        world.result(&id).await;
        world.result(&failing).await;
        stop.cancel();
        tokio::time::timeout(SOON, running).await.expect("it stops").unwrap().unwrap();

        // By hand: the task says its trace, and its span belongs to it.
        let by_hand = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut new = world.new_execution("by-hand");
        new.fields.trace_parent = Some(by_hand.to_owned());
        world.admin.submit(new).await.expect("submitted");
        let worker = world.worker("w-2").await;
        let task = claim(&worker).await;
        assert_eq!(task.trace_parent(), Some(by_hand));
        let current = async { ff_trace::current() }.instrument(task.span()).await.expect("a trace");
        assert_eq!(current.trace_id(), by_hand.parse::<TraceParent>().unwrap().trace_id());
        task.complete(None).await.unwrap();
        worker.disconnect().await.unwrap();
        exporter.stop().await;

        let spans = collector.of(&trace);
        let order = one(&spans, "place order");
        assert!(order.parent.is_empty() && order.service.contains("shop"), "{order:?}");
        let attempt = one(&spans, "attempt looks");
        assert_eq!((&attempt.parent, attempt.failed), (&order.span, false));
        assert_eq!(one(&spans, "look").parent, attempt.span, "a handler's span lies in its attempt");
        assert!(one(&spans, "attempt fails").failed);
        if world.transport == Transport::Http {
            let requests: Vec<_> = spans.iter().filter(|span| span.name == "POST /v1/executions").collect();
            assert_eq!(requests.len(), 2, "{spans:#?}");
            for request in requests {
                assert_eq!(request.parent, order.span);
                assert!(spans.iter().any(|span| span.name == "ff_submit_execution" && span.parent == request.span));
            }
            let done = spans.iter().find(|span| span.name.contains("/v1/tasks/{id}/complete") || span.name.contains("/results"));
            assert_eq!(done.map(|done| &done.parent), Some(&attempt.span), "{spans:#?}");
        }
    }
}
