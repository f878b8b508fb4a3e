//! The words of the API with their bounds: what a lane, a kind or a time may be. Bounds on texts are of their UTF-8 bytes.
//!
//! The types here have no values. They only stand in the descriptions of fields, where the library's own checks are stricter
//! than the Rust type that carries the value.

use crate::operation::WAIT_MS_MAX;
use ff_core::bounds;
use ff_core::limits::{DIMENSIONS_MAX, TAGS_MAX, TIME_MS_MAX, WEIGHTS_MAX};
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

macro_rules! texts {
    ( $( #[doc = $doc:literal] $name:ident: $bounds:expr $( , $pattern:literal )?; )+ ) => { $(
        #[doc = $doc]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let (min, max): (usize, usize) = ($bounds).into_inner();
                let text = ObjectBuilder::new()
                    .schema_type(Type::String)
                    .description(Some($doc.trim()))
                    .min_length((min > 0).then_some(min))
                    .max_length(Some(max));
                $( let text = text.pattern(Some($pattern)); )?
                text.into()
            }
        }

        impl ToSchema for $name {}
    )+ };
}

texts! {
    /// A namespace.
    Namespace: bounds::NAMESPACE, "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// A lane.
    LaneName: bounds::LANE, "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// A schedule.
    ScheduleName: bounds::SCHEDULE_NAME, "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// A cron expression.
    CronText: 1..=256;
    /// The name of a worker's program.
    WorkerId: bounds::WORKER_ID, "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// The name of one running worker.
    Instance: bounds::INSTANCE, "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// The name of whoever acts with a token.
    PrincipalName: bounds::ACCESS_NAME, "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$";
    /// What an execution or a flow is: printable ASCII.
    Kind: bounds::KIND, "^[ -~]+$";
    /// Why, in words.
    Reason: bounds::REASON;
    /// The category of a failure, which retry policies go by.
    Category: bounds::CATEGORY;
    /// Something a worker can do: no comma, no white space.
    Capability: bounds::CAPABILITY, "^[^\\s\\x00-\\x1f\\x7f,]+$";
    /// The same key with the same body is the same request.
    IdempotencyKey: bounds::IDEMPOTENCY_KEY;
    /// Executions of one key share their turn in a fair lane.
    FairnessKey: bounds::FAIRNESS_KEY;
    /// A W3C trace context.
    TraceParent: bounds::TRACE_PARENT;
    /// A step of a handler, by which a later run finds it again.
    StepName: bounds::STEP_NAME, "^[^\\x00-\\x1f\\x7f]+$";
    /// What a worker makes of a step's input, to find out whether it changed.
    StepDigest: bounds::STEP_DIGEST, "^[A-Za-z0-9+/=_-]+$";
    /// A URL.
    Url: bounds::URL;
    /// A dimension of a budget.
    Dimension: bounds::DIMENSION;
    /// What a quota counts apart: a tenant, a provider's account.
    QuotaKey: bounds::QUOTA_KEY;
    /// A report or a reservation with the same key counts once.
    DedupKey: bounds::DEDUP_KEY;
    /// The name of a waitpoint in its suspension.
    WaitpointKey: bounds::WAITPOINT_KEY;
    /// Who may answer.
    Approver: bounds::APPROVER;
    /// The name of a signal.
    SignalName: bounds::SIGNAL_NAME;
    /// Where something came from.
    Source: bounds::SOURCE;
    /// What belongs together.
    CorrelationId: bounds::CORRELATION_ID;
    /// The type of a frame.
    FrameType: bounds::FRAME_TYPE;
    /// A name in a flow, or for a parent.
    MemberKey: bounds::MEMBER_KEY;
    /// The name under which a member gets an upstream's result.
    PassAs: bounds::PASS_AS;
    /// How far it is, in words.
    ProgressMessage: bounds::PROGRESS_MESSAGE;
    /// What a budget's scope names.
    ScopeId: bounds::SCOPE_ID;
    /// The key of a tag.
    TagKey: bounds::TAG_KEY;
    /// The value of a tag.
    TagValue: bounds::TAG_VALUE;
    /// A time zone by its IANA name.
    Zone: bounds::ZONE, "^[A-Za-z0-9_/+-]+$";
}

macro_rules! numbers {
    ( $( #[doc = $doc:literal] $name:ident: $bounds:expr; )+ ) => { $(
        #[doc = $doc]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let (min, max): (i64, i64) = ($bounds).into_inner();
                let exact = |bound| isize::try_from(bound).expect("bounds are whole numbers of 64 bits");
                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                    .description(Some($doc.trim()))
                    .minimum(Some(exact(min)))
                    .maximum(Some(exact(max)))
                    .into()
            }
        }

        impl ToSchema for $name {}
    )+ };
}

numbers! {
    /// A time: milliseconds since the epoch.
    TimeMs: bounds::TIME_MS;
    /// The distance of the times of a schedule, at least a second.
    EveryMs: bounds::EVERY_MS;
    /// How many firings are left.
    Remaining: 1..=TIME_MS_MAX;
    /// A duration in milliseconds, at most ten years.
    DurationMs: bounds::DURATION_MS;
    /// How long a long poll waits, in milliseconds.
    WaitMs: 0..=i64::try_from(WAIT_MS_MAX).expect("it is short");
    /// How long a lease holds without a renewal, in milliseconds.
    LeaseTtlMs: bounds::LEASE_TTL_MS;
    /// How long a grant waits for its worker, in milliseconds.
    GrantTtlMs: bounds::GRANT_TTL_MS;
    /// Higher comes first.
    Priority: bounds::PRIORITY;
    /// How often.
    Times: bounds::TIMES_LIMIT;
    /// A share among others.
    Weight: bounds::WEIGHT;
    /// An amount of a dimension.
    Amount: bounds::AMOUNT;
    /// A limit; 0 lets nothing pass.
    LimitAmount: bounds::LIMIT_AMOUNT;
    /// A count.
    Count: bounds::COUNT;
    /// The window of a quota in milliseconds, at most 31 days.
    WindowMs: bounds::WINDOW_MS;
}

macro_rules! maps {
    ( $( #[doc = $doc:literal] $name:ident: $min:literal..=$max:expr, of $key:ty => $value:ty; )+ ) => { $(
        #[doc = $doc]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let map = by_name::<$key, $value>().description(Some($doc.trim()));
                let map = map.max_properties(usize::try_from($max).ok());
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
    Tags: 0..=TAGS_MAX, of TagKey => TagValue;
    /// Amounts by dimension.
    Amounts: 1..=DIMENSIONS_MAX, of Dimension => Amount;
    /// Amounts by dimension; without any, something must be left in every dimension.
    Estimate: 0..=DIMENSIONS_MAX, of Dimension => Amount;
    /// Limits by dimension.
    Limits: 1..=DIMENSIONS_MAX, of Dimension => crate::budgets::LimitBody;
    /// New limits by dimension.
    LimitPatches: 0..=DIMENSIONS_MAX, of Dimension => crate::budgets::LimitPatchBody;
    /// Shares of a fair lane's turns by fairness key.
    FairnessWeights: 0..=WEIGHTS_MAX, of FairnessKey => Weight;
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
