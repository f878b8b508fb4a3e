//! Carries webhooks over HTTP: one bounded request per try, to the address that was judged and to no other.

use std::error::Error as _;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use ff_core::types::TimestampMs;
use ff_core::webhook::WebhookUrl;
use ff_engine::{Carried, Courier, Waitpoints};
use ff_keys::sign_webhook;
use ff_script::generated::Webhook;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, redirect};

use super::address::{Reach, Unreachable, WebhookOptions};
use super::message;

/// From looking up the name to the head of the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Everything else takes no longer than this on top.
const SLACK: Duration = Duration::from_secs(2);
/// The body of an answer is waited for so long.
const ANSWER: Duration = Duration::from_secs(1);
/// So much of an answer is read, to use the connection again; none of it is kept.
const ANSWER_BYTES_MAX: usize = 4_096;
const IDLE: Duration = Duration::from_secs(30);
const IDLE_PER_RECEIVER_MAX: usize = 2;

/// Carries webhooks from this server.
pub struct HttpCourier {
    reach: Arc<Reach>,
    /// Knows the keys, and whether the store knows them.
    keys: Waitpoints,
    /// Made when it is first needed: it reads all authorities the system trusts.
    encrypted: OnceLock<Client>,
    plain: Client,
}

/// The HTTP client cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the client that sends webhooks: {0}")]
pub struct NoClient(reqwest::Error);

impl HttpCourier {
    /// A courier with these keys, to the addresses these options allow.
    pub fn new(options: &WebhookOptions, keys: Waitpoints) -> Result<Self, NoClient> {
        let reach = Arc::new(Reach::new(options));
        Ok(Self { encrypted: OnceLock::new(), plain: client(&reach, false)?, reach, keys })
    }

    fn encrypted(&self) -> Result<&Client, Problem> {
        if let Some(made) = self.encrypted.get() {
            return Ok(made);
        }
        let made = client(&self.reach, true).map_err(|NoClient(error)| Problem::from(error))?;
        Ok(self.encrypted.get_or_init(|| made))
    }

    async fn send(&self, webhook: &Webhook) -> Result<Carried, Problem> {
        let url: WebhookUrl = webhook.url.parse().map_err(|_| Problem::Address)?;
        // A host that is written as an address is never looked up, so it is judged here.
        if let Some(unreachable) = self.reach.refusal(&url) {
            return Err(Problem::Unreachable(unreachable));
        }
        self.keys.note_keys().await.map_err(|error| Problem::Keys(error.to_string()))?;
        let keys = self.keys.keys().webhook_keys(&webhook.namespace);
        let keys = keys.map_err(|error| Problem::Keys(error.to_string()))?;
        let (id, timestamp) = (webhook.delivery_id.to_string(), TimestampMs::now().as_millis().to_string());
        let body = message::body(webhook);
        let signature = sign_webhook(&keys, &id, &timestamp, &body);
        let client = if url.is_https() { self.encrypted()? } else { &self.plain };
        let mut answer = client
            .post(url.as_url().clone())
            .header("content-type", "application/json")
            .header("ff-webhook-id", id)
            .header("ff-webhook-timestamp", timestamp)
            .header("ff-webhook-signature", signature)
            .body(body)
            .send()
            .await?;
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let status = answer.status().as_u16();
        let rest = async {
            let mut read = 0;
            while let Ok(Some(chunk)) = answer.chunk().await
                && read <= ANSWER_BYTES_MAX
            {
                read += chunk.len();
            }
        };
        // What it answered counts, even if the rest of the answer never comes.
        let _ = tokio::time::timeout(ANSWER, rest).await;
        Ok(message::meant(status, retry_after.as_deref(), SystemTime::now()))
    }
}

#[async_trait]
impl Courier for HttpCourier {
    fn refusal(&self, url: &WebhookUrl) -> Option<String> {
        self.reach.refusal(url).map(|unreachable| format!("cannot be reached: {unreachable}"))
    }

    async fn carry(&self, webhook: &Webhook) -> Carried {
        let sent = tokio::time::timeout(TIMEOUT + SLACK, self.send(webhook)).await;
        match sent.unwrap_or(Err(Problem::TimedOut)) {
            Ok(carried) => carried,
            Err(problem) => {
                if let Problem::Keys(text) = &problem {
                    tracing::error!(error = text, "no webhook can be signed");
                }
                Carried::Failed { status: None, error: problem.to_string(), retry_after: None }
            }
        }
    }
}

/// A client that goes where the reach lets it: no proxy, no redirect, no name that was not judged.
fn client(reach: &Arc<Reach>, encrypted: bool) -> Result<Client, NoClient> {
    Client::builder()
        .user_agent(concat!("FlowFabric/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(redirect::Policy::none())
        .https_only(encrypted)
        .tls_built_in_root_certs(encrypted)
        .dns_resolver(Arc::new(Judged { reach: Arc::clone(reach), encrypted }))
        .timeout(TIMEOUT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_RECEIVER_MAX)
        .build()
        .map_err(NoClient)
}

/// Looks names up and judges what they lead to; the connection is made to exactly these addresses.
struct Judged {
    reach: Arc<Reach>,
    encrypted: bool,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, encrypted) = (Arc::clone(&self.reach), self.encrypted);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
            if let Err(unreachable) = reach.judge_all(&addresses, encrypted) {
                tracing::info!(host = name.as_str(), ?addresses, "a webhook is not sent: {unreachable}");
                return Err(Box::new(unreachable) as _);
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// What went wrong on the way. Its text is shown to whoever may read the execution, so it names no address.
enum Problem {
    Address,
    Unreachable(Unreachable),
    Keys(String),
    TimedOut,
    Http(reqwest::Error),
}

impl From<reqwest::Error> for Problem {
    fn from(error: reqwest::Error) -> Self {
        let mut cause = error.source();
        while let Some(deeper) = cause {
            if let Some(unreachable) = deeper.downcast_ref::<Unreachable>() {
                return Self::Unreachable(*unreachable);
            }
            cause = deeper.source();
        }
        if error.is_timeout() { Self::TimedOut } else { Self::Http(error.without_url()) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("the address cannot be read"),
            Self::Unreachable(unreachable) => unreachable.fmt(f),
            Self::Keys(_) => f.write_str("the server has no key to sign with; its log says why"),
            Self::TimedOut => write!(f, "no answer within {} s", TIMEOUT.as_secs()),
            Self::Http(error) => {
                let mut deepest: &dyn std::error::Error = error;
                while let Some(deeper) = deepest.source() {
                    deepest = deeper;
                }
                let what = if error.is_connect() { "cannot connect" } else { "cannot be sent" };
                write!(f, "{what}: {deepest}")
            }
        }
    }
}
