//! The named parts of paths and the headers of requests, as an OpenAPI document describes them.

use ff_core::types::{BudgetId, ExecutionId, FlowId, QuotaPolicyId, WaitpointId};
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::{IntoParams, PartialSchema};

use crate::vocabulary;

/// Declares parts of paths.
macro_rules! parts {
    ( $( #[doc = $about:literal] $part:ident: $name:literal as $schema:ty; )+ ) => { $(
        #[doc = $about]
        pub enum $part {}

        impl IntoParams for $part {
            fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                let parameter = ParameterBuilder::new()
                    .name($name)
                    .parameter_in(ParameterIn::Path)
                    .required(Required::True)
                    .description(Some($about.trim()))
                    .schema(Some(<$schema>::schema()));
                vec![parameter.build()]
            }
        }
    )+ };
}

parts! {
    /// The execution.
    Id: "id" as ExecutionId;
    /// The attempt by its index, counted from 0.
    Number: "n" as u32;
    /// The waitpoint.
    Waitpoint: "waitpoint" as WaitpointId;
    /// The quota.
    Quota: "quota" as QuotaPolicyId;
    /// The budget.
    Budget: "name" as BudgetId;
    /// The flow.
    Flow: "flow" as FlowId;
    /// The lane.
    Lane: "name" as vocabulary::LaneName;
    /// The worker's instance.
    Instance: "name" as vocabulary::Instance;
}

/// The key of a request, in a header.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes a header")]
pub struct IdempotencyKey {
    /// The same as `idempotency_key` in the body.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 256)]
    idempotency_key: Option<String>,
}

/// The trace a submission belongs to, in a header.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes a header")]
pub struct TraceParent {
    /// The W3C trace context; a `trace_parent` in the body counts instead. One that cannot be read is passed over.
    traceparent: Option<String>,
}

/// Where a reader of a stream stands, in a header.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes a header")]
pub struct LastEventId {
    /// The id of the last event a reader has seen; it goes before `after`.
    #[param(rename = "Last-Event-ID")]
    last_event_id: Option<String>,
}
