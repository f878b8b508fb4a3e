//! `GET /v1/webhooks/key`: what a receiver checks webhooks with.

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::App;
use crate::openapi::{Described, vocabulary};
use crate::problem::Answer;
use crate::query::Query;

pub fn routes() -> Described {
    Described::new().with(routes!(key))
}

/// Whose webhooks.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct KeyQuery {
    #[param(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
}

/// The keys of a namespace: every webhook is signed with each of them.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookKeys)]
struct KeysShape {
    namespace: String,
    /// The newest first; one is enough for a receiver.
    keys: Vec<KeyShape>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookKey)]
struct KeyShape {
    key_id: String,
    /// A secret: who has it can also make webhooks.
    key: String,
    /// Until when it signs beside a newer one.
    signs_until: Option<i64>,
}

/// What a receiver checks webhooks with.
#[utoipa::path(
    get,
    path = "/v1/webhooks/key",
    params(KeyQuery),
    responses((status = 200, body = KeysShape)),
    extensions(("x-ff-codes" = json!("keys_unavailable"))),
)]
async fn key(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<KeyQuery>,
) -> Answer<([(HeaderName, &'static str); 1], Json<KeysShape>)> {
    let namespace = query.namespace.unwrap_or_else(|| "default".to_owned());
    caller.check(&namespace, None)?;
    app.waitpoints()?.note_keys().await?;
    let keys = app.waitpoints()?.keys().webhook_keys(&namespace)?;
    let keys = keys.iter().map(|key| KeyShape {
        key_id: key.id().as_str().to_owned(),
        key: key.expose().to_owned(),
        signs_until: key.until().map(|until| until.as_millis()),
    });
    let keys = KeysShape { keys: keys.collect(), namespace };
    Ok(([(CACHE_CONTROL, "no-store")], Json(keys)))
}
