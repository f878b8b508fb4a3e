//! The keys that sign waitpoint tokens: their names and times, never the keys.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use ff_keys::{KeyFacts, KeyId};
use ff_script::generated::RecordedAction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::body::Body;
use crate::openapi::Described;
use crate::problem::{Answer, Problem};
use crate::shape::Listed;

/// How long tokens of the old key are accepted unless said.
const GRACE_MS: u64 = 24 * 60 * 60 * 1000;
/// The longest grace: ten years.
const GRACE_MAX_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

pub fn routes() -> Described {
    Described::new().with(routes!(list)).with(routes!(rotate)).with(routes!(revoke))
}

/// A key by its name.
#[derive(Serialize, ToSchema)]
#[schema(as = SigningKey)]
struct KeyShape {
    key_id: String,
    made_at: i64,
    /// Signs new tokens; the others are only accepted.
    signs: bool,
    accepted_until: Option<i64>,
}

impl From<KeyFacts> for KeyShape {
    fn from(facts: KeyFacts) -> Self {
        Self {
            key_id: facts.id.as_str().to_owned(),
            made_at: facts.made_at.as_millis(),
            signs: facts.until.is_none(),
            accepted_until: facts.until.map(|until| until.as_millis()),
        }
    }
}

fn listed(app: &App) -> Answer<Listed<KeyShape>> {
    let keys = app.waitpoints()?.keys().facts();
    Ok(Listed { items: keys.into_iter().map(KeyShape::from).collect(), next_cursor: None })
}

/// The signing key first; none before the first token is needed.
#[utoipa::path(
    get,
    path = "/v1/admin/keys",
    responses((status = 200, body = Listed<KeyShape>)),
)]
async fn list(State(app): State<App>) -> JsonAnswer<Listed<KeyShape>> {
    Ok(Json(listed(&app)?))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RotateBody {
    #[schema(minimum = 0, maximum = 315_360_000_000_i64)]
    grace_ms: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = KeysChanged)]
struct Changed {
    /// The key that signs now.
    key_id: String,
    keys: Vec<KeyShape>,
}

/// Signs with a new key from now on; tokens of the old one are accepted until the grace is over.
#[utoipa::path(
    post,
    path = "/v1/admin/keys/rotate",
    request_body = RotateBody,
    responses((status = 200, body = Changed)),
    extensions(("x-ff-codes" = json!("keys_fixed keys_unavailable"))),
)]
async fn rotate(State(app): State<App>, caller: Caller, Body(body): Body<RotateBody>) -> JsonAnswer<Changed> {
    let grace_ms = body.grace_ms.unwrap_or(GRACE_MS);
    if grace_ms > GRACE_MAX_MS {
        return Err(Problem::invalid("grace_ms", format!("must be in 0..={GRACE_MAX_MS}, got {grace_ms}")));
    }
    // Keys of a store others sign for are not replaced by keys nobody else has.
    app.waitpoints()?.note_keys().await?;
    let keys = app.waitpoints()?.keys().clone();
    let change = move || keys.rotate(Duration::from_millis(grace_ms)).map(|signs| (signs.clone(), signs));
    changed(&app, &caller, RecordedAction::KeysRotated, change).await
}

/// Accepts no token of this key any more; if it signs, a new one is made.
#[utoipa::path(
    post,
    path = "/v1/admin/keys/{key}/revoke",
    params(("key" = String, Path, description = "The name of the key.")),
    responses((status = 200, body = Changed)),
    extensions(("x-ff-codes" = json!("key_not_found keys_fixed keys_unavailable"))),
)]
async fn revoke(State(app): State<App>, caller: Caller, Path(key): Path<String>) -> JsonAnswer<Changed> {
    let id: KeyId =
        key.parse().map_err(|error: ff_keys::InvalidKeyId| Problem::invalid("key_id", error.to_string()))?;
    app.waitpoints()?.note_keys().await?;
    let keys = app.waitpoints()?.keys().clone();
    let change = move || keys.revoke(&id).map(|signs| (signs, id));
    changed(&app, &caller, RecordedAction::KeyRevoked, change).await
}

/// Changes the file, which may wait for another process, and tells the store the names, and who did it. The change answers the
/// key that signs now, and the one it is about.
async fn changed(
    app: &App,
    caller: &Caller,
    action: RecordedAction,
    change: impl FnOnce() -> Result<(KeyId, KeyId), ff_keys::Error> + Send + 'static,
) -> JsonAnswer<Changed> {
    let done: Answer<(KeyId, KeyId)> = match tokio::task::spawn_blocking(change).await {
        Ok(changed) => changed.map_err(Problem::from),
        Err(error) => {
            tracing::error!(%error, "changing the keys did not end well");
            Err(Problem::of_status(axum::http::StatusCode::INTERNAL_SERVER_ERROR))
        }
    };
    let (signs, about) = done?;
    app.operations.record_action(action, caller.name(), Some(about.as_str().to_owned())).await?;
    app.waitpoints()?.note_keys().await?;
    tracing::info!(key_id = signs.as_str(), actor = caller.name(), "the signing keys changed");
    Ok(Json(Changed { key_id: signs.as_str().to_owned(), keys: listed(app)?.items }))
}
