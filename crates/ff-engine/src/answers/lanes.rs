//! Lanes: listed, shown with their counts, defined, and set to one of their states.

use ff_api::lanes::{
    DefineLane, DisableLane, DrainLane, GetLane, Lane, LaneCounts, ListLanes, NamespaceQuery, PauseLane, ResumeLane,
};
use ff_api::{Ask, Listed, Problem, page};
use ff_script::generated::{self, LaneEntry, LaneState};

use super::filtered_page;
use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Handle<ListLanes> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListLanes>) -> Result<Listed<Lane>, Problem> {
        let query = ask.query;
        let (limit, offset) = (page::length(query.limit)?, page::offset(query.cursor.as_deref())?);
        let wanted = |entry: &LaneEntry| {
            query.namespace.as_ref().is_none_or(|namespace| *namespace == entry.namespace)
                && by.covers(&entry.namespace, Some(&entry.lane))
        };
        let read = |offset, limit| self.operations.lanes_from(offset, limit);
        let (entries, next_cursor) = filtered_page(offset, limit, wanted, read).await?;
        Ok(Listed { items: entries.into_iter().map(Lane::from).collect(), next_cursor })
    }
}

impl Handle<GetLane> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<GetLane>) -> Result<Lane, Problem> {
        let (lane, namespace) = (ask.at, ask.query.or_default());
        by.check(&namespace, Some(&lane))?;
        let entry = self.operations.lane(&namespace, &lane).await;
        let entry = entry.map_err(|error| Problem::from(error).about(&lane))?;
        let mut counts = LaneCounts::default();
        self.operations.lane_counts(&namespace, &lane).await?.iter().for_each(|here| counts.add(here));
        Ok(Lane { counts: Some(counts), ..entry.into() })
    }
}

impl Handle<DefineLane> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<DefineLane>) -> Result<Lane, Problem> {
        let Ask { at: lane, query, body } = ask;
        let namespace = query.or_default();
        by.check(&namespace, Some(&lane))?;
        let change = generated::DefineLane {
            state: body.state,
            fairness: body.fairness,
            fairness_weights: body.fairness_weights,
            priority_weight: body.priority_weight,
            max_depth: body.max_depth,
            clear_max_depth: body.clear_max_depth,
            max_active: body.max_active.flatten(),
            clear_max_active: (body.max_active == Some(None)).then_some(true),
            weight: body.weight,
            retry: body.retry,
            attempt_timeout_ms: body.attempt_timeout_ms,
            retention_ms: body.retention_ms,
            lease_ttl_ms: body.lease_ttl_ms,
            ..generated::DefineLane::new(by.name().to_owned(), lane, namespace)
        };
        Ok(self.operations.define_lane(change).await?.into())
    }
}

/// Declares the operations that set a lane's state.
macro_rules! setting {
    ( $( $operation:ident: $state:ident; )+ ) => { $(
        impl Handle<$operation> for Service {
            async fn handle(&self, by: &Principal, ask: Ask<$operation>) -> Result<Lane, Problem> {
                self.set_lane_state(by, ask.at, ask.query, LaneState::$state).await
            }
        }
    )+ };
}

setting! {
    PauseLane: Paused;
    ResumeLane: Active;
    DrainLane: Draining;
    DisableLane: Disabled;
}

impl Service {
    /// Sets the state of a lane that exists: a mistyped name must not create one.
    async fn set_lane_state(
        &self,
        by: &Principal,
        lane: String,
        query: NamespaceQuery,
        state: LaneState,
    ) -> Result<Lane, Problem> {
        let namespace = query.or_default();
        by.check(&namespace, Some(&lane))?;
        let known = self.operations.lane(&namespace, &lane).await;
        known.map_err(|error| Problem::from(error).about(&lane))?;
        Ok(self.operations.set_lane_state(&namespace, &lane, state, by.name()).await?.into())
    }
}
