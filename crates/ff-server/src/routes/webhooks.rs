//! `GET /v1/webhooks/key`: what a receiver checks webhooks with.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::access::Caller;
use crate::app::App;
use crate::problem::{Answer, Problem};
use crate::query::Query;

pub fn routes() -> Router<App> {
    Router::new().route("/v1/webhooks/key", get(key))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyQuery {
    namespace: Option<String>,
}

/// The keys of a namespace: every webhook is signed with each of them.
#[derive(Serialize)]
struct KeysShape {
    namespace: String,
    /// The newest first; one is enough for a receiver.
    keys: Vec<KeyShape>,
}

#[derive(Serialize)]
struct KeyShape {
    key_id: String,
    /// A secret: who has it can also make webhooks.
    key: String,
    /// Until when it signs beside a newer one.
    signs_until: Option<i64>,
}

async fn key(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<KeyQuery>,
) -> Answer<([(HeaderName, &'static str); 1], Json<KeysShape>)> {
    let namespace = query.namespace.filter(|text| !text.is_empty()).unwrap_or_else(|| "default".to_owned());
    let fits = namespace.len() <= 64 && namespace.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !fits {
        return Err(Problem::invalid("namespace", "must be 1 to 64 of A-Z a-z 0-9 . _ -"));
    }
    caller.check(&namespace, None)?;
    app.waitpoints.note_keys().await?;
    let keys = app.waitpoints.keys().webhook_keys(&namespace)?;
    let keys = keys.iter().map(|key| KeyShape {
        key_id: key.id().as_str().to_owned(),
        key: key.expose().to_owned(),
        signs_until: key.until().map(|until| until.as_millis()),
    });
    let keys = KeysShape { keys: keys.collect(), namespace };
    Ok(([(CACHE_CONTROL, "no-store")], Json(keys)))
}
