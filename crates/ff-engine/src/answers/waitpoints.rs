//! Waitpoints from outside: the inbox of open ones, one of them, those of an execution, and a new token for an approver.

use ff_api::waitpoints::{
    GetWaitpoint, ListExecutionWaitpoints, ListWaitpoints, ReissueToken, ReissuedToken, Waitpoint,
};
use ff_api::{Ask, Listed, Problem, page};

use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Handle<ListWaitpoints> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListWaitpoints>) -> Result<Listed<Waitpoint>, Problem> {
        let limit = page::length(ask.query.limit)?;
        let after = ask.query.cursor.as_deref().map(str::parse).transpose()?;
        let namespace = by.namespace(ask.query.namespace)?;
        let page = self.operations.open_waitpoints(namespace.as_deref(), after, limit).await?;
        // Waitpoints beyond the caller's scope leave only their place: a page may be short while more follows.
        let seen = page.items.into_iter().filter(|item| by.covers(&item.namespace, Some(&item.lane)));
        let items = seen.map(Waitpoint::from).collect();
        Ok(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) })
    }
}

impl Handle<GetWaitpoint> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetWaitpoint>) -> Result<Waitpoint, Problem> {
        let found = self.operations.waitpoint(ask.at).await;
        Ok(found.map_err(|error| Problem::from(error).about(ask.at))?.into())
    }
}

impl Handle<ListExecutionWaitpoints> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListExecutionWaitpoints>) -> Result<Listed<Waitpoint>, Problem> {
        let found = self.operations.waitpoints_of(ask.at).await;
        let waitpoints = found.map_err(|error| Problem::from(error).about(ask.at))?;
        Ok(Listed { items: waitpoints.into_iter().map(Waitpoint::from).collect(), next_cursor: None })
    }
}

impl Handle<ReissueToken> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReissueToken>) -> Result<ReissuedToken, Problem> {
        let issued = self.waitpoints()?.reissue(ask.at, ask.body.approver.as_deref(), by.name()).await;
        let issued = issued.map_err(|error| Problem::from(error).about(ask.at))?;
        Ok(ReissuedToken { waitpoint_id: ask.at, approver: issued.approver, token: issued.token })
    }
}
