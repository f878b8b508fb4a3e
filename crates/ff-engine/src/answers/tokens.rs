//! Access tokens: made, listed and revoked by an admin.

use ff_api::operation::Nothing;
use ff_api::tokens::{AccessToken, CreateToken, CreatedToken, ListTokens, RevokeToken};
use ff_api::{Ask, Listed, Problem, page};
use ff_keys::BearerToken;
use ff_script::generated::{GrantAccess, Role};
use uuid::Uuid;

use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Handle<CreateToken> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CreateToken>) -> Result<CreatedToken, Problem> {
        let body = ask.body;
        if matches!(body.name.as_str(), "root" | "local" | "nobody") {
            return Err(Problem::invalid("name", format!("{:?} is taken", body.name)));
        }
        let mut roles = Vec::new();
        for role in body.roles {
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        let narrowed = body.namespaces.is_some() || body.lanes.is_some() || body.capabilities.is_some();
        if narrowed && roles.contains(&Role::Admin) {
            let problem =
                "admin is of the whole store: leave out namespaces, lanes and capabilities, or name other roles";
            return Err(Problem::invalid("roles", problem));
        }
        let token = BearerToken::mint();
        let grant = GrantAccess {
            access_id: Uuid::now_v7(),
            actor: by.name().to_owned(),
            capabilities: body.capabilities,
            digest: token.digest(),
            expires_at: body.expires_at,
            lanes: body.lanes,
            name: body.name,
            namespaces: body.namespaces,
            roles,
        };
        let facts = self.operations.grant_access(grant).await?.into();
        Ok(CreatedToken { token: token.reveal().to_owned(), facts })
    }
}

impl Handle<ListTokens> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListTokens>) -> Result<Listed<AccessToken>, Problem> {
        let limit = i64::try_from(page::length(ask.query.limit)?).expect("a page is short");
        let (items, more) = self.operations.list_access(ask.query.cursor, limit).await?;
        let next_cursor = items.last().filter(|_| more).map(|access| access.access_id.to_string());
        Ok(Listed { items: items.into_iter().map(AccessToken::from).collect(), next_cursor })
    }
}

impl Handle<RevokeToken> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<RevokeToken>) -> Result<Nothing, Problem> {
        let revoked = self.operations.revoke_access(ask.at, by.name()).await;
        revoked.map_err(|error| Problem::from(error).about(ask.at))?;
        Ok(Nothing {})
    }
}
