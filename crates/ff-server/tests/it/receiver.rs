//! A receiver of webhooks on a free port, which answers as it is told and remembers what came.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use ff_keys::{WebhookHeaders, verify_webhook};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How long a test waits for something to come.
const SOON: Duration = Duration::from_secs(120);

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Heard {
    pub method: Method,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub bytes: Vec<u8>,
}

impl Heard {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("a webhook is JSON")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_else(|| panic!("no {name} in {:?}", self.headers))
    }

    pub fn id(&self) -> &str {
        self.header("ff-webhook-id")
    }

    /// Checks it as a receiver does.
    #[track_caller]
    pub fn verify(&self, key: &str) {
        let headers = WebhookHeaders {
            id: self.id(),
            timestamp: self.header("ff-webhook-timestamp"),
            signature: self.header("ff-webhook-signature"),
        };
        let now = ff_core::types::TimestampMs::now().as_millis();
        assert_eq!(verify_webhook(key, &headers, &self.bytes, now), Ok(()));
        assert_eq!(self.json()["id"], self.id());
    }
}

/// What it answers.
#[derive(Clone, Debug)]
pub enum Says {
    Status(u16),
    /// A status with a header.
    With(u16, &'static str, String),
    /// Nothing, ever.
    Nothing,
    /// A status and more body than anybody wants.
    Flood(u16),
    /// A status and a body that never comes.
    Stuck(u16),
}

#[derive(Default)]
struct Shared {
    heard: Mutex<Vec<Heard>>,
    /// What is said first; then the last of them again and again.
    says: Mutex<VecDeque<Says>>,
    came: Notify,
}

/// A running receiver.
pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Receiver {
    pub async fn saying(says: &[Says]) -> Self {
        Self::at("127.0.0.1:0", says).await
    }

    /// On this address, which must be free.
    pub async fn at(address: &str, says: &[Says]) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free address");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared { says: Mutex::new(says.iter().cloned().collect()), ..Shared::default() });
        let router = Router::new().fallback(hear).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum_serve(listener, router).await;
        });
        Self { address, shared, serving }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().expect("a lock").clone()
    }

    /// Waits until this many requests came, and answers them.
    pub async fn wait_for(&self, count: usize) -> Vec<Heard> {
        let enough = async {
            loop {
                let came = self.shared.came.notified();
                let heard = self.heard();
                if heard.len() >= count {
                    return heard;
                }
                came.await;
            }
        };
        tokio::time::timeout(SOON, enough)
            .await
            .unwrap_or_else(|_| panic!("{} of {count} webhooks within {SOON:?}", self.heard().len()))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Serves until it is aborted.
async fn axum_serve(listener: TcpListener, router: Router) {
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let service = TowerToHyperService::new(router.clone());
        connections.spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn hear(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |value: &axum::http::HeaderValue| value.to_str().expect("text").to_owned();
    let headers = headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let heard = Heard { method, path: uri.to_string(), headers, bytes: body.to_vec() };
    shared.heard.lock().expect("a lock").push(heard);
    shared.came.notify_waiters();
    let says = {
        let mut says = shared.says.lock().expect("a lock");
        if says.len() > 1 { says.pop_front() } else { says.front().cloned() }
    };
    let status = |code| StatusCode::from_u16(code).expect("a status");
    match says.expect("something to say") {
        Says::Status(code) => status(code).into_response(),
        Says::With(code, name, value) => (status(code), [(name, value)]).into_response(),
        Says::Nothing => std::future::pending().await,
        Says::Stuck(code) => {
            let never = futures::stream::pending::<Result<Bytes, std::io::Error>>();
            (status(code), axum::body::Body::from_stream(never)).into_response()
        }
        Says::Flood(code) => {
            let flood = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 16_384])));
            (status(code), axum::body::Body::from_stream(flood)).into_response()
        }
    }
}
