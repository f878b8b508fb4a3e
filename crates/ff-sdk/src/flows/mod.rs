//! Flows and children: what members of a flow pass each other, and what an execution starts and waits for.
//!
//! A flow is submitted whole as a [`FlowSpec`]; the claim of a member carries what its upstreams passed. Any running execution may
//! spawn children and wait for them without holding a worker: the same attempt goes on, with their outcomes, when all have ended.

mod children;
mod passed;
mod spawn;
mod spec;

pub use children::WaitChildrenOutcome;
pub(crate) use children::Waited;
pub use passed::{Place, Upstream};
pub use spawn::ChildSpec;
pub(crate) use spawn::Spawns;
pub use spec::{FlowSpec, MemberSpec};

pub use ff_engine::operations::{FlowCursor, FlowFilter};
pub use ff_script::generated::{CancelPolicy, EdgeOn, InboundPolicy, OnMemberFailure, OnSatisfied, ParentClose};
