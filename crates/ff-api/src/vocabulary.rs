//! The words of the API with their bounds: what a lane, a kind or a time may be. Bounds on texts are of their UTF-8 bytes.
//!
//! The types here have no values. They only stand in the descriptions of fields, where the library's own checks are stricter
//! than the Rust type that carries the value.

use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// 2^53 - 1: the largest number that every JSON reader keeps exactly.
const EXACT_MAX: isize = 9_007_199_254_740_991;

macro_rules! texts {
    ( $( #[doc = $doc:literal] $name:ident: $min:literal..=$max:literal $( as $pattern:literal )?; )+ ) => { $(
        #[doc = $doc]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new()
                    .schema_type(Type::String)
                    .description(Some($doc.trim()))
                    .min_length(($min > 0).then_some($min))
                    .max_length(Some($max));
                $( let text = text.pattern(Some($pattern)); )?
                text.into()
            }
        }

        impl ToSchema for $name {}
    )+ };
}

texts! {
    /// A namespace.
    Namespace: 1..=64 as "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// A lane.
    LaneName: 1..=64 as "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// A schedule.
    ScheduleName: 1..=64 as "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// A cron expression.
    CronText: 1..=256;
    /// The name of a worker's program.
    WorkerId: 1..=64 as "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// The name of one running worker.
    Instance: 1..=64 as "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// The name of whoever acts with a token.
    PrincipalName: 1..=64 as "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// What an execution or a flow is: printable ASCII.
    Kind: 1..=128 as "^[ -~]+$";
    /// Why, in words.
    Reason: 0..=4096;
    /// The category of a failure, which retry policies go by.
    Category: 1..=128;
    /// Something a worker can do: no comma, no white space.
    Capability: 1..=4096 as "^[^\\s\\x00-\\x1f\\x7f,]+$";
    /// The same key with the same body is the same request.
    IdempotencyKey: 1..=256;
    /// Executions of one key share their turn in a fair lane.
    FairnessKey: 1..=256;
    /// A W3C trace context.
    TraceParent: 1..=256;
    /// A step of a handler, by which a later run finds it again.
    StepName: 1..=256 as "^[^\\x00-\\x1f\\x7f]+$";
    /// What a worker makes of a step's input, to find out whether it changed.
    StepDigest: 1..=128 as "^[A-Za-z0-9+/=_-]+$";
    /// A URL.
    Url: 1..=2048;
    /// A dimension of a budget.
    Dimension: 1..=64;
    /// What a quota counts apart: a tenant, a provider's account.
    QuotaKey: 1..=256;
    /// A report or a reservation with the same key counts once.
    DedupKey: 1..=256;
    /// The name of a waitpoint in its suspension.
    WaitpointKey: 1..=128;
    /// Who may answer.
    Approver: 1..=128;
    /// The name of a signal.
    SignalName: 1..=128;
    /// Where something came from.
    Source: 0..=256;
    /// What belongs together.
    CorrelationId: 1..=256;
    /// The type of a frame.
    FrameType: 1..=64;
    /// A name in a flow, or for a parent.
    MemberKey: 1..=128;
    /// The name under which a member gets an upstream's result.
    PassAs: 1..=128;
    /// How far it is, in words.
    ProgressMessage: 0..=1024;
    /// What a budget's scope names.
    ScopeId: 1..=256;
    /// The key of a tag.
    TagKey: 1..=128;
    /// The value of a tag.
    TagValue: 0..=1024;
    /// A time zone by its IANA name.
    Zone: 1..=64 as "^[A-Za-z0-9_/+-]+$";
}

macro_rules! numbers {
    ( $( #[doc = $doc:literal] $name:ident: $min:tt..=$max:tt; )+ ) => { $(
        #[doc = $doc]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                    .description(Some($doc.trim()))
                    .minimum(Some($min))
                    .maximum(Some($max))
                    .into()
            }
        }

        impl ToSchema for $name {}
    )+ };
}

numbers! {
    /// A time: milliseconds since the epoch.
    TimeMs: 0..=EXACT_MAX;
    /// The distance of the times of a schedule, at least a second.
    EveryMs: 1_000..=315_360_000_000_isize;
    /// How many firings are left.
    Remaining: 1..=EXACT_MAX;
    /// A duration in milliseconds, at most ten years.
    DurationMs: 0..=315_360_000_000_isize;
    /// How long a long poll waits, in milliseconds.
    WaitMs: 0..=30_000;
    /// How long a lease holds without a renewal, in milliseconds.
    LeaseTtlMs: 1_000..=3_600_000;
    /// How long a grant waits for its worker, in milliseconds.
    GrantTtlMs: 100..=60_000;
    /// Higher comes first.
    Priority: 0..=9_000;
    /// How often.
    Times: 0..=10_000;
    /// A share among others.
    Weight: 1..=1_000_000;
    /// An amount of a dimension.
    Amount: 1..=EXACT_MAX;
    /// A limit; 0 lets nothing pass.
    LimitAmount: 0..=EXACT_MAX;
    /// A count.
    Count: 0..=EXACT_MAX;
    /// The window of a quota in milliseconds, at most 31 days.
    WindowMs: 1..=2_678_400_000_isize;
}

macro_rules! maps {
    ( $( #[doc = $doc:literal] $name:ident: $min:literal..=$max:literal of $key:ty => $value:ty; )+ ) => { $(
        #[doc = $doc]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let map = by_name::<$key, $value>().description(Some($doc.trim())).max_properties(Some($max));
                let map = if $min > 0 { map.min_properties(Some($min)) } else { map };
                map.into()
            }
        }

        impl ToSchema for $name {
            fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                schemas.push((<$value>::name().into_owned(), <$value>::schema()));
                <$value>::schemas(schemas);
            }
        }
    )+ };
}

maps! {
    /// Key and value pairs to find executions by.
    Tags: 0..=64 of TagKey => TagValue;
    /// Amounts by dimension.
    Amounts: 1..=32 of Dimension => Amount;
    /// Amounts by dimension; without any, something must be left in every dimension.
    Estimate: 0..=32 of Dimension => Amount;
    /// Limits by dimension.
    Limits: 1..=32 of Dimension => crate::budgets::LimitBody;
    /// New limits by dimension.
    LimitPatches: 0..=32 of Dimension => crate::budgets::LimitPatchBody;
    /// Shares of a fair lane's turns by fairness key.
    FairnessWeights: 0..=256 of FairnessKey => Weight;
}

fn by_name<K: PartialSchema, T: ToSchema>() -> ObjectBuilder {
    let RefOr::T(name) = K::schema() else { unreachable!("a word is no reference") };
    let of = Ref::from_schema_name(T::name());
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(name))
        .additional_properties(Some(AdditionalProperties::RefOr(of.into())))
}

/// Bytes in JSON: any JSON value with encoding `json`, base64 text with encoding `base64`.
pub enum Payload {}

impl PartialSchema for Payload {
    fn schema() -> RefOr<Schema> {
        let text = "Any JSON value, kept as it was written; with the encoding `base64`, base64 text.";
        ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::AnyValue).description(Some(text)).into()
    }
}

impl ToSchema for Payload {}

/// A condition on signals: one signal, any or all of several conditions, or a count.
pub enum Condition {}

impl Condition {
    fn object(fields: &[(&str, RefOr<Schema>)], required: &[&str]) -> RefOr<Schema> {
        let object = fields.iter().fold(ObjectBuilder::new().schema_type(Type::Object), |object, (name, schema)| {
            object.property(*name, schema.clone())
        });
        let object = required.iter().fold(object, |object, name| object.required(*name));
        object.additional_properties(Some(AdditionalProperties::FreeForm(false))).into()
    }

    fn optional<T: PartialSchema>() -> RefOr<Schema> {
        let null = ObjectBuilder::new().schema_type(Type::Null);
        OneOfBuilder::new().item(null).item(T::schema()).into()
    }
}

impl PartialSchema for Condition {
    fn schema() -> RefOr<Schema> {
        let (signal, waitpoint) = (Self::optional::<SignalName>(), Self::optional::<WaitpointKey>());
        let several = || -> RefOr<Schema> {
            ArrayBuilder::new().items(Ref::from_schema_name("Condition")).min_items(Some(1)).max_items(Some(64)).into()
        };
        let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(1_000));
        let over = ff_core::openapi::words(["signals", "waitpoints", "approvers"]);
        let of = Self::object(&[("signal", signal.clone()), ("waitpoint", waitpoint.clone())], &[]);
        let of = OneOfBuilder::new().item(ObjectBuilder::new().schema_type(Type::Null)).item(of);
        OneOfBuilder::new()
            .description(Some("One signal, any or all of several conditions, or a count; nested at most four deep."))
            .item(Self::object(&[("signal", signal), ("waitpoint", waitpoint)], &[]))
            .item(Self::object(&[("any_of", several())], &["any_of"]))
            .item(Self::object(&[("all_of", several())], &["all_of"]))
            .item(Self::object(&[("count", count.into()), ("over", over), ("of", of.into())], &["count", "over"]))
            .into()
    }
}

impl ToSchema for Condition {}

/// One of the server-sent events of a stream, as a reader takes it apart.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub struct ServerSentEvent {
    /// What kind of item it is.
    event: Option<String>,
    /// Where a reader goes on.
    id: Option<String>,
    /// The item as JSON.
    data: String,
}

/// A UUID without a type of its own.
pub enum AnyId {}

impl PartialSchema for AnyId {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))).into()
    }
}
