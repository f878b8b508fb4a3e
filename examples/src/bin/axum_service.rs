//! Embedded in an axum service: one process takes orders over HTTP, runs them durably, and returns their state.

use std::time::Duration;

use anyhow::ensure;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use ff_examples::Sandbox;
use flowfabric::runtime::{HandlerResult, Payload, WorkerRuntime};
use flowfabric::types::ExecutionId;
use flowfabric::{FlowFabricAdminClient, NewExecution};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

async fn charge(Payload(order): Payload<Value>) -> HandlerResult {
    Ok(Some(serde_json::to_vec(&json!({ "charged": order["amount"] }))?))
}

async fn place(
    State(admin): State<FlowFabricAdminClient>,
    Json(order): Json<Value>,
) -> Result<(StatusCode, Json<Value>), StatusCode> {
    let mut new = NewExecution::new("default", "orders", "charge");
    new.fields.input = Some(order.to_string().into_bytes().into());
    match admin.submit(new).await {
        Ok(id) => Ok((StatusCode::ACCEPTED, Json(json!({ "id": id })))),
        Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}

async fn show(
    State(admin): State<FlowFabricAdminClient>,
    Path(id): Path<ExecutionId>,
) -> Result<Json<Value>, StatusCode> {
    match admin.result(&id, Duration::from_secs(10)).await {
        Ok(Some(result)) => {
            serde_json::from_slice(&result.result.unwrap_or_default()).map(Json).map_err(|_| StatusCode::BAD_GATEWAY)
        }
        Ok(None) => Err(StatusCode::ACCEPTED),
        Err(_) => Err(StatusCode::NOT_FOUND),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(sandbox.worker("service-1", "orders", &[]).await?)
        .on("charge", charge)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    let app =
        Router::new().route("/orders", post(place)).route("/orders/{id}", get(show)).with_state(sandbox.engine.admin());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/orders", listener.local_addr()?);
    let serving =
        tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned()).into_future());

    let client = reqwest::Client::builder().no_proxy().build()?;
    let order = client.post(&url).header("content-type", "application/json").body(r#"{"amount":7}"#).send().await?;
    ensure!(order.status() == StatusCode::ACCEPTED.as_u16(), "the order returned {}", order.status());
    let placed: Value = serde_json::from_slice(&order.bytes().await?)?;
    let id = placed["id"].as_str().unwrap_or_default();
    let shown = client.get(format!("{url}/{id}")).send().await?.bytes().await?;
    let shown: Value = serde_json::from_slice(&shown)?;
    ensure!(shown == json!({ "charged": 7 }), "got {shown}");

    stop.cancel();
    running.await??;
    serving.await??;
    println!("charged 7");
    Ok(())
}
