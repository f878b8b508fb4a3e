//! A provider's rate limit: a worker that gets a 429 throttles the whole fleet until the time the provider named.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::ensure;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use ff_examples::Sandbox;
use flowfabric::runtime::{Ctx, Data, HandlerResult, WorkerRuntime};
use flowfabric::types::QuotaPolicyId;
use flowfabric::{Backoff, BackoffType, Jitter, NewExecution, QuotaSpec, Retry};
use tokio_util::sync::CancellationToken;

const CALLS: usize = 8;
const CALLS_PER_ROUND: u32 = 3;

/// Accepts three calls, then requires a second of quiet.
#[derive(Default)]
struct Provider {
    answered: u32,
    refused: u32,
    quiet_until: Option<Instant>,
    /// Number of calls during the quiet time.
    pushed: u32,
}

async fn answer(State(provider): State<Arc<Mutex<Provider>>>) -> (StatusCode, HeaderMap) {
    let mut provider = provider.lock().expect("no holder of the lock panics");
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", "1".parse().expect("a header"));
    if provider.quiet_until.is_some_and(|until| Instant::now() < until) {
        provider.pushed += 1;
        return (StatusCode::TOO_MANY_REQUESTS, headers);
    }
    if provider.answered == CALLS_PER_ROUND {
        (provider.answered, provider.refused) = (0, provider.refused + 1);
        provider.quiet_until = Some(Instant::now() + Duration::from_millis(950));
        return (StatusCode::TOO_MANY_REQUESTS, headers);
    }
    provider.answered += 1;
    (StatusCode::OK, HeaderMap::new())
}

struct Client {
    http: reqwest::Client,
    url: String,
    quota: QuotaPolicyId,
}

async fn ask(ctx: Ctx, Data(client): Data<Client>) -> HandlerResult {
    let answer = client.http.get(&client.url).send().await?;
    if answer.status() == StatusCode::TOO_MANY_REQUESTS {
        let after = answer.headers().get("retry-after").and_then(|after| after.to_str().ok()?.parse().ok());
        let wait = Duration::from_secs(after.unwrap_or(30));
        // Throttled before this call gives its slot back, so no other call starts in between.
        ctx.throttle_for(&client.quota, "provider", wait).await?;
        return Err(format!("the provider asks for {wait:?} of quiet").into());
    }
    Ok(None)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let provider = Arc::new(Mutex::new(Provider::default()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let app = Router::new().route("/", get(answer)).with_state(Arc::clone(&provider));
    let stop = CancellationToken::new();
    let serving =
        tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned()).into_future());

    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let quota = admin.create_quota(QuotaSpec::new("default").concurrency(1)).await?.quota_id;
    let mut fleet = Vec::new();
    for instance in ["caller-1", "caller-2"] {
        let http = reqwest::Client::builder().no_proxy().build()?;
        let runtime = WorkerRuntime::new(sandbox.worker(instance, "calls", &[]).await?)
            .data(Client { http, url: url.clone(), quota })
            .on("ask", ask)
            .shutdown_on(stop.clone());
        fleet.push(tokio::spawn(runtime.run()));
    }

    // A refused attempt is retried at once; the quota decides when it starts.
    let again = Backoff { delay_ms: Some(1), ..Backoff::new(BackoffType::Fixed) };
    let retry = Retry { max_attempts: Some(10), backoff: Some(again), jitter: Some(Jitter::None), ..Retry::default() };
    let mut ids = Vec::new();
    for _ in 0..CALLS {
        let mut new = NewExecution::new("default", "calls", "ask").quota(&quota, "provider");
        new.fields.retry = Some(retry.clone());
        ids.push(admin.submit(new).await?);
    }
    for id in &ids {
        sandbox.result(id).await?;
    }
    let (refused, pushed) = {
        let provider = provider.lock().expect("no holder of the lock panics");
        (provider.refused, provider.pushed)
    };
    ensure!(refused == 2, "{CALLS} calls at {CALLS_PER_ROUND} a round meet the limit twice, not {refused} times");
    ensure!(pushed == 0, "{pushed} calls came while the provider needed quiet");
    println!("{CALLS} calls were answered; after each of {refused} refusals two workers kept quiet as long as asked");
    stop.cancel();
    for running in fleet {
        running.await??;
    }
    serving.await??;
    Ok(())
}
