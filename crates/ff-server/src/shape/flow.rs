//! What a member of a flow waits for.

use ff_script::generated::{DependencyFacts, InboundPolicy, Upstream};
use serde::Serialize;
use utoipa::ToSchema;

/// What a member waits for, for whoever asks why it does not run.
#[derive(Serialize, ToSchema)]
pub struct DependenciesShape {
    policy: InboundPolicy,
    /// How many edges must be met.
    needed: i64,
    total: i64,
    met: i64,
    dead: i64,
    /// The first upstreams that have not ended.
    open: Vec<Upstream>,
}

impl From<DependencyFacts> for DependenciesShape {
    fn from(facts: DependencyFacts) -> Self {
        Self {
            policy: facts.policy,
            needed: facts.needed,
            total: facts.total,
            met: facts.met,
            dead: facts.dead,
            open: facts.open.into_iter().collect(),
        }
    }
}

impl DependenciesShape {
    /// The same in a few words.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let open: Vec<String> =
            self.open.iter().map(|upstream| format!("{} ({})", upstream.key, upstream.state)).collect();
        vec![("met", format!("{} of {}", self.met, self.needed)), ("open", open.join(", "))]
    }
}
