//! Access tokens: made, listed and revoked by an admin. A token is told once, when it is made.

use std::fmt;

use ff_script::generated::{Access, Role};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::RULE;
use crate::operation::{Nothing, operations};
use crate::page::Listed;
use crate::parts;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// What the bearer of a token may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccessToken {
    /// Names the token; it is no secret.
    pub token_id: Uuid,
    /// The actor of what is done with it.
    pub name: String,
    /// What its bearer may do.
    pub roles: Vec<Role>,
    /// The namespaces it is for; all when absent.
    pub namespaces: Option<Vec<String>>,
    /// The lanes it is for; all when absent.
    pub lanes: Option<Vec<String>>,
    /// The capabilities its workers may have; all when absent.
    pub capabilities: Option<Vec<String>>,
    /// When it was made.
    pub created_at: i64,
    /// The actor that made it.
    pub created_by: String,
    /// When it ends by itself.
    pub expires_at: Option<i64>,
}

impl From<Access> for AccessToken {
    fn from(access: Access) -> Self {
        Self {
            token_id: access.access_id,
            name: access.name,
            roles: access.roles,
            namespaces: access.namespaces,
            lanes: access.lanes,
            capabilities: access.capabilities,
            created_at: access.created_at,
            created_by: access.created_by,
            expires_at: access.expires_at,
        }
    }
}

/// A token to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateTokenBody {
    /// The actor of what is done with it.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::PrincipalName))]
    pub name: String,
    /// What its bearer may do.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub roles: Vec<Role>,
    /// The namespaces it is for; all when absent.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::Namespace>>, min_items = 1, max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// The lanes it is for; all when absent.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::LaneName>>, min_items = 1, max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Vec<String>>,
    /// The capabilities its workers may have; all when absent.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::Capability>>, max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// When it ends by itself.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

/// A new token; it is not told again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedToken {
    /// A secret: the token itself.
    pub token: String,
    /// What its bearer may do.
    #[serde(flatten)]
    pub facts: AccessToken,
}

impl fmt::Debug for CreatedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedToken").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// Which tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct TokensQuery {
    /// How many; the default is 100.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<Uuid>,
}

operations! {
    /// One page of tokens, without the tokens.
    ListTokens token_list: get "/v1/admin/tokens", RULE;
    asks TokensQuery;
    returns Listed<AccessToken>: (status = 200, body = Listed<AccessToken>);

    /// Makes a token. An admin's has no scope: its bearer could make another one without it.
    CreateToken token_create: post "/v1/admin/tokens", RULE;
    takes CreateTokenBody;
    returns CreatedToken: (status = 201, description = "The token, told this once.", body = CreatedToken);
    fails &["idempotency_conflict", "capability_invalid"];

    /// Revokes a token: it is refused from now on.
    RevokeToken token_revoke: delete "/v1/admin/tokens/{token}", RULE;
    at (parts::Token);
    returns Nothing: (status = 204, description = "It is nobody's any more.");
    fails &["access_not_found"];
}
