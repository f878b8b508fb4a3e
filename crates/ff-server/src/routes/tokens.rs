//! Access tokens: made, listed and revoked by an admin. A token is told once, when it is made.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ff_keys::BearerToken;
use ff_script::generated::{self, GrantAccess, Role};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::problem::{Answer, Problem};
use crate::query::{Query, limit_of};
use crate::shape::Listed;
use crate::word::word;

pub fn routes() -> Described {
    Described::new().with(routes!(list, create)).with(routes!(revoke))
}

/// Who may act by a token.
#[derive(Serialize, ToSchema)]
#[schema(as = AccessToken)]
struct TokenShape {
    token_id: Uuid,
    name: String,
    #[schema(value_type = Vec<Role>)]
    roles: Vec<&'static str>,
    namespaces: Option<Vec<String>>,
    lanes: Option<Vec<String>>,
    capabilities: Option<Vec<String>>,
    created_at: i64,
    created_by: String,
    expires_at: Option<i64>,
}

impl From<generated::Access> for TokenShape {
    fn from(access: generated::Access) -> Self {
        Self {
            token_id: access.access_id,
            name: access.name,
            roles: access.roles.into_iter().map(Role::as_str).collect(),
            namespaces: access.namespaces,
            lanes: access.lanes,
            capabilities: access.capabilities,
            created_at: access.created_at,
            created_by: access.created_by,
            expires_at: access.expires_at,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateTokenBody)]
struct CreateBody {
    #[schema(value_type = vocabulary::PrincipalName)]
    name: String,
    #[schema(value_type = Vec<Role>, min_items = 1)]
    roles: Vec<String>,
    #[schema(value_type = Option<Vec<vocabulary::Namespace>>, min_items = 1, max_items = 64)]
    namespaces: Option<Vec<String>>,
    #[schema(value_type = Option<Vec<vocabulary::LaneName>>, min_items = 1, max_items = 64)]
    lanes: Option<Vec<String>>,
    #[schema(value_type = Option<Vec<vocabulary::Capability>>, max_items = 64)]
    capabilities: Option<Vec<String>>,
    #[schema(value_type = Option<vocabulary::TimeMs>)]
    expires_at: Option<i64>,
}

/// A new token; it is not told again.
#[derive(Serialize, ToSchema)]
#[schema(as = CreatedToken)]
struct Created {
    token: String,
    #[serde(flatten)]
    facts: TokenShape,
}

/// Makes a token. An admin's has no scope: whoever makes tokens could make one without it.
#[utoipa::path(
    post,
    path = "/v1/admin/tokens",
    request_body = CreateBody,
    responses((status = 201, description = "The token, told this once.", body = Created)),
    extensions(("x-ff-codes" = json!("idempotency_conflict capability_invalid"))),
)]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<CreateBody>,
) -> Answer<(StatusCode, Json<Created>)> {
    if matches!(body.name.as_str(), "root" | "local" | "nobody") {
        return Err(Problem::invalid("name", format!("{:?} is taken", body.name)));
    }
    let mut roles = Vec::new();
    for (at, role) in body.roles.iter().enumerate() {
        let role = word(&format!("roles[{at}]"), role)?;
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    let narrowed = body.namespaces.is_some() || body.lanes.is_some() || body.capabilities.is_some();
    if narrowed && roles.contains(&Role::Admin) {
        let problem = "admin is of the whole store: leave out namespaces, lanes and capabilities, or name other roles";
        return Err(Problem::invalid("roles", problem));
    }
    let token = BearerToken::mint();
    let grant = GrantAccess {
        access_id: Uuid::now_v7(),
        actor: caller.name().to_owned(),
        capabilities: body.capabilities,
        digest: token.digest(),
        expires_at: body.expires_at,
        lanes: body.lanes,
        name: body.name,
        namespaces: body.namespaces,
        roles,
    };
    let facts = app.operations.grant_access(grant).await?.into();
    Ok((StatusCode::CREATED, Json(Created { token: token.reveal().to_owned(), facts })))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1_000)]
    limit: Option<String>,
    #[param(value_type = Option<Uuid>)]
    cursor: Option<String>,
}

/// One page of tokens, without the tokens.
#[utoipa::path(
    get,
    path = "/v1/admin/tokens",
    params(ListQuery),
    responses((status = 200, body = Listed<TokenShape>)),
)]
async fn list(State(app): State<App>, Query(query): Query<ListQuery>) -> JsonAnswer<Listed<TokenShape>> {
    let limit = limit_of(query.limit.as_deref())?;
    let after = query.cursor.as_deref().map(str::parse::<Uuid>).transpose();
    let after = after.map_err(|_| Problem::invalid("cursor", "is not a cursor of this list"))?;
    let (items, more) = app.operations.list_access(after, limit).await?;
    let next_cursor = items.last().filter(|_| more).map(|access| access.access_id.to_string());
    Ok(Json(Listed { items: items.into_iter().map(TokenShape::from).collect(), next_cursor }))
}

/// Revokes a token: it is refused from now on.
#[utoipa::path(
    delete,
    path = "/v1/admin/tokens/{token}",
    params(("token" = Uuid, Path, description = "The id of the token.")),
    responses((status = 204, description = "It is nobody's any more.")),
    extensions(("x-ff-codes" = json!("access_not_found"))),
)]
async fn revoke(State(app): State<App>, caller: Caller, Path(token): Path<String>) -> Answer<StatusCode> {
    let id: Uuid = token.parse().map_err(|_| Problem::invalid("token_id", "must be a UUID"))?;
    app.operations.revoke_access(id, caller.name()).await.map_err(|error| Problem::from(error).about(id))?;
    app.guard.forget();
    Ok(StatusCode::NO_CONTENT)
}
