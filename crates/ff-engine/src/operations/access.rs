//! Access tokens: who may act by which token, and where. The store knows digests only.

use ff_core::error_code::ErrorCode;
use ff_script::generated::{
    Access, FindAccess, FindAccessReply, GrantAccess, GrantAccessReply, ListAccess, ListAccessReply, RevokeAccess,
    RevokeAccessReply,
};
use ff_script::{Error, Route};
use uuid::Uuid;

use super::{Operations, refused_with};

impl Operations {
    /// Lets the bearer of a token act.
    pub async fn grant_access(&self, grant: GrantAccess) -> Result<Access, Error> {
        let GrantAccessReply::Granted { access } = self.client.call(Route::Fleet, &grant).await?;
        Ok(access)
    }

    /// What the bearer of the token with this digest may do; none when it is nobody's.
    pub async fn find_access(&self, digest: &str) -> Result<Option<Access>, Error> {
        match self.client.call(Route::Fleet, &FindAccess { digest: digest.to_owned() }).await {
            Ok(FindAccessReply::Found { access }) => Ok(Some(access)),
            Err(error) if refused_with(&error) == Some(ErrorCode::AccessNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Who may act by a token, and whether there are more.
    pub async fn list_access(&self, after: Option<Uuid>, limit: i64) -> Result<(Vec<Access>, bool), Error> {
        let ListAccessReply::Page { items, more } =
            self.client.call(Route::Fleet, &ListAccess { after, limit }).await?;
        Ok((items, more))
    }

    /// The token's bearer may do nothing any more.
    pub async fn revoke_access(&self, access_id: Uuid, actor: &str) -> Result<Access, Error> {
        let call = RevokeAccess { access_id, actor: actor.to_owned() };
        let RevokeAccessReply::Revoked { access } = self.client.call(Route::Fleet, &call).await?;
        Ok(access)
    }
}
