//! The named parts of paths, and the headers of requests as an OpenAPI document describes them.

use std::fmt::Display;

use ff_core::types::{BudgetId, ExecutionId, FlowId, QuotaPolicyId, WaitpointId, is_name};
use uuid::Uuid;

use crate::Invalid;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// A named part of a path.
pub trait Part {
    /// What it stands for.
    type Value: Display + Send;
    /// Its name between braces.
    const NAME: &'static str;

    /// Reads its text.
    fn read(text: &str) -> Result<Self::Value, Invalid>;

    /// Reads it among the parts of a path.
    fn of<'a>(part: impl Fn(&str) -> Option<&'a str>) -> Result<Self::Value, Invalid> {
        Self::read(part(Self::NAME).ok_or_else(|| Invalid::new("path", "cannot be read"))?)
    }
}

/// Declares parts of paths.
macro_rules! parts {
    ( $( #[doc = $about:literal] $part:ident: $name:literal is $value:ty as $schema:ty, $read:expr; )+ ) => { $(
        #[doc = $about]
        #[derive(Clone, Copy, Debug)]
        pub enum $part {}

        impl Part for $part {
            type Value = $value;
            const NAME: &'static str = $name;

            fn read(text: &str) -> Result<Self::Value, Invalid> {
                let read: fn(&str) -> Result<Self::Value, Invalid> = $read;
                read(text)
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::IntoParams for $part {
            fn into_params(
                _: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
            ) -> Vec<utoipa::openapi::path::Parameter> {
                let parameter = utoipa::openapi::path::ParameterBuilder::new()
                    .name($name)
                    .parameter_in(utoipa::openapi::path::ParameterIn::Path)
                    .required(utoipa::openapi::Required::True)
                    .description(Some($about.trim()))
                    .schema(Some(<$schema as utoipa::PartialSchema>::schema()));
                vec![parameter.build()]
            }
        }
    )+ };
}

parts! {
    /// The execution.
    Id: "id" is ExecutionId as ExecutionId, |text| uuid("execution_id", text);
    /// The attempt by its index, counted from 0.
    Number: "n" is u32 as u32, |text| text.parse().map_err(|_| Invalid::new("n", "must be a number"));
    /// The waitpoint.
    Waitpoint: "waitpoint" is WaitpointId as WaitpointId, |text| uuid("waitpoint_id", text);
    /// The quota.
    Quota: "quota" is QuotaPolicyId as QuotaPolicyId, |text| uuid("quota_id", text);
    /// The budget.
    Budget: "name" is BudgetId as BudgetId, |text| uuid("budget_id", text);
    /// The flow.
    Flow: "flow" is FlowId as FlowId, |text| uuid("flow_id", text);
    /// The lane.
    Lane: "name" is String as vocabulary::LaneName, named;
    /// The schedule.
    Schedule: "name" is String as vocabulary::ScheduleName, named;
    /// The worker's instance.
    Instance: "name" is String as vocabulary::Instance, named;
    /// The name of the key.
    Key: "key" is String as String, |text| Ok(text.to_owned());
    /// The step.
    StepName: "step" is String as vocabulary::StepName, |text| crate::steps::check_name("name", text).map(|()| text.to_owned());
    /// The id of the token.
    Token: "token" is Uuid as vocabulary::AnyId, |text| uuid("token_id", text);
}

fn uuid<T: std::str::FromStr>(field: &str, text: &str) -> Result<T, Invalid> {
    text.parse().map_err(|_| Invalid::new(field, "must be a UUID"))
}

fn named(text: &str) -> Result<String, Invalid> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(Invalid::new("name", "must be 1 to 64 of A-Z a-z 0-9 . _ - and not dots only"))
    }
}

/// The key of a request, in a header.
#[cfg(feature = "openapi")]
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes a header")]
pub struct IdempotencyKey {
    /// The same as `idempotency_key` in the body.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 256)]
    idempotency_key: Option<String>,
}

/// The trace a submission belongs to, in a header.
#[cfg(feature = "openapi")]
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes a header")]
pub struct TraceParent {
    /// The W3C trace context; a `trace_parent` in the body counts instead. One that cannot be read is passed over.
    traceparent: Option<String>,
}

/// Where a reader of a stream stands, in a header.
#[cfg(feature = "openapi")]
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes a header")]
pub struct LastEventId {
    /// The id of the last event a reader has seen; it goes before `after`.
    #[param(rename = "Last-Event-ID")]
    last_event_id: Option<String>,
}
