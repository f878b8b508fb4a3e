//! What an operation of the API is: a method, a path, the roles that may use it, what it takes and what it returns.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::Invalid;
use crate::access::Access;

/// What the body of a request with one payload may have: a payload and what describes it.
pub const PAYLOAD_BODY: usize = 2 * 1024 * 1024;
/// What a body with many executions may have.
pub const BATCH_BODY: usize = 64 * 1024 * 1024;
/// What any other body may have.
pub const SMALL_BODY: usize = 512 * 1024;
/// How long one request may wait for something, in milliseconds.
pub const WAIT_MS_MAX: u64 = 30_000;

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Does something.
    Post,
    /// Defines something.
    Put,
    /// Changes some fields.
    Patch,
    /// Removes something.
    Delete,
}

impl Method {
    /// As a request line has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// One operation of the API. [`operations!`] declares them.
pub trait Operation: 'static {
    /// Its name: a noun and a verb, unique among all operations.
    const NAME: &'static str;
    /// How a request is made.
    const METHOD: Method;
    /// The path, with the names of its parts in braces.
    const PATH: &'static str;
    /// What it asks of the caller.
    const ACCESS: Access;
    /// The codes it fails with, beside those that every operation has.
    const CODES: &'static [&'static str];
    /// The most bytes of a request's body.
    const BODY_BYTES_MAX: usize;
    /// What the path names: nothing, one value, or a tuple.
    type At: Send;
    /// The parameters of the URL.
    type Query: Send;
    /// What the request carries.
    type Body: Send;
    /// What it returns.
    type Answer: Send;

    /// Reads what a path names, each part by its name.
    fn read_at<'a>(part: impl Fn(&str) -> Option<&'a str>) -> Result<Self::At, Invalid>;

    /// The path with its parts filled in.
    #[must_use]
    fn path(at: &Self::At) -> String;

    /// The status of this answer.
    #[must_use]
    fn status(answer: &Self::Answer) -> u16;

    /// The path with its parts filled in, and its parameters behind it.
    #[must_use]
    fn url(at: &Self::At, query: &Self::Query) -> String
    where
        Self::Query: Serialize,
    {
        let query = serde_urlencoded::to_string(query).expect("parameters are names and plain values");
        let mut url = Self::path(at);
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query);
        }
        url
    }
}

/// One request for an operation.
#[derive(Clone, Debug)]
pub struct Ask<O: Operation> {
    /// What the path names.
    pub at: O::At,
    /// The parameters of the URL.
    pub query: O::Query,
    /// What the request carries.
    pub body: O::Body,
}

impl<O: Operation<Query = Nothing, Body = Nothing>> Ask<O> {
    /// A request that only names something.
    pub fn at(at: O::At) -> Self {
        Self { at, query: Nothing {}, body: Nothing {} }
    }
}

impl<O: Operation<Query = Nothing>> Ask<O> {
    /// A request with a body.
    pub fn with(at: O::At, body: O::Body) -> Self {
        Self { at, query: Nothing {}, body }
    }
}

impl<O: Operation<Body = Nothing>> Ask<O> {
    /// A request with parameters.
    pub fn by(at: O::At, query: O::Query) -> Self {
        Self { at, query, body: Nothing {} }
    }
}

/// No parameters, an empty body, or an answer without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// The facts of a declared operation.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// [`Operation::NAME`].
    pub name: &'static str,
    /// [`Operation::METHOD`].
    pub method: Method,
    /// [`Operation::PATH`].
    pub path: &'static str,
    /// [`Operation::ACCESS`].
    pub access: Access,
    /// The first sentence of what it does.
    pub about: &'static str,
}

/// A path with its parts filled in, in their order.
///
/// # Panics
/// When there are more or fewer parts than the path names.
#[must_use]
pub fn filled(path: &str, parts: &[String]) -> String {
    let mut pieces = path.split('{');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    let mut parts = parts.iter();
    for piece in pieces {
        let (name, rest) = piece.split_once('}').expect("a path closes its braces");
        let part = parts.next().unwrap_or_else(|| panic!("{path} lacks its part {name}"));
        escape(part, &mut text);
        text.push_str(rest);
    }
    assert!(parts.next().is_none(), "{path} has fewer parts");
    text
}

/// Appends text as one part of a path, or as a name or a value of a query.
pub fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("memory takes text");
        }
    }
}

/// The codes a fence fails with, and these beside them.
macro_rules! fenced {
    ( $( $code:literal ),* $(,)? ) => {
        &["execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", $( $code ),*]
    };
}

pub(crate) use fenced;

/// The codes a fence fails with.
pub const FENCE: &[&str] = fenced![];

/// What describes an operation in an OpenAPI document.
#[cfg(feature = "openapi")]
pub trait Describe: Operation {
    /// Its description.
    fn description() -> utoipa::openapi::path::Operation;
    /// The shapes its description refers to.
    fn shapes(into: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>);
}

/// Marks an operation as a stream of such items.
#[cfg(feature = "openapi")]
pub fn streaming<T: utoipa::ToSchema>(
    mut described: utoipa::openapi::path::Operation,
) -> utoipa::openapi::path::Operation {
    let item = utoipa::openapi::extensions::Extensions::builder().add("x-ff-item", T::name()).build();
    described.extensions.get_or_insert_default().merge(item);
    described
}

/// Adds a shape and those it refers to.
#[cfg(feature = "openapi")]
pub fn add_shape<T: utoipa::ToSchema>(
    into: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>,
) {
    into.push((T::name().into_owned(), T::schema()));
    T::schemas(into);
}

/// Declares operations. Of each: what it does, its name, method, path and access; then
/// - `at`: the parts its path names,
/// - `takes`: its body, and with `up to` how large it may be,
/// - `reads`: the headers it looks at,
/// - `asks`: the parameters of its URL,
/// - `returns`: its answer by status (the first one by default; `status` chooses among several),
/// - `streams`: the items of a stream,
/// - `fails`: the codes it fails with.
macro_rules! operations {
    ( $(
        $( #[doc = $about:literal] )+
        $name:ident $id:ident: $method:ident $path:literal, $access:expr;
        $( at ($($part:ty),+); )?
        $( takes $body:ty $( , up to $bytes:expr )?; )?
        $( reads ($($params:tt)*); )?
        $( asks $query:ty; )?
        returns $answer:ty: $( (status = $status:literal $($response:tt)*) ),+;
        $( status $choose:expr; )?
        $( streams $item:ty; )?
        $( fails $codes:expr; )?
    )+ ) => {
        /// The operations of this module.
        pub(crate) const OPERATIONS: &[$crate::operation::Declared] = &[ $(
            $crate::operation::Declared {
                name: <$name as $crate::operation::Operation>::NAME,
                method: <$name as $crate::operation::Operation>::METHOD,
                path: <$name as $crate::operation::Operation>::PATH,
                access: <$name as $crate::operation::Operation>::ACCESS,
                about: concat!($( $about ),+),
            },
        )+ ];

        $(
        $( #[doc = $about] )+
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl $crate::operation::Operation for $name {
            const NAME: &'static str = stringify!($id);
            const METHOD: $crate::operation::Method = $crate::operation::operations!(@method $method);
            const PATH: &'static str = $path;
            const ACCESS: $crate::access::Access = $access;
            const CODES: &'static [&'static str] = $crate::operation::operations!(@codes $( $codes )?);
            const BODY_BYTES_MAX: usize = $crate::operation::operations!(@bytes $( $( $bytes )? )?);
            type At = $crate::operation::operations!(@at $( $($part),+ )?);
            type Query = $crate::operation::operations!(@or_nothing $( $query )?);
            type Body = $crate::operation::operations!(@or_nothing $( $body )?);
            type Answer = $answer;

            fn read_at<'a>(part: impl Fn(&str) -> Option<&'a str>) -> Result<Self::At, $crate::Invalid> {
                let _ = &part;
                $crate::operation::operations!(@read part $( $($part),+ )?)
            }

            fn path(at: &Self::At) -> String {
                let _ = at;
                $crate::operation::filled(Self::PATH, &$crate::operation::operations!(@fill at $( $($part),+ )?))
            }

            fn status(answer: &Self::Answer) -> u16 {
                $crate::operation::operations!(@status answer [$( $status )+] $( $choose )?)
            }
        }

        #[cfg(feature = "openapi")]
        mod $id {
            #[allow(unused_imports, reason = "some of it names no type")]
            use super::*;

            $( #[doc = $about] )+
            #[utoipa::path(
                $method,
                path = $path,
                operation_id = stringify!($id),
                params($( $($part,)+ )? $( $($params)*, )? $( $query )?),
                $( request_body = $body, )?
                responses( $( (status = $status $($response)*) ),+ ),
            )]
            #[allow(dead_code, reason = "it is described, not called")]
            pub fn described() {}
        }

        #[cfg(feature = "openapi")]
        impl $crate::operation::Describe for $name {
            fn description() -> utoipa::openapi::path::Operation {
                let described = <$id::__path_described as utoipa::Path>::operation();
                $( let described = $crate::operation::streaming::<$item>(described); )?
                described
            }
            fn shapes(into: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
                <$id::__path_described as utoipa::__dev::SchemaReferences>::schemas(into);
                $( $crate::operation::add_shape::<$item>(into); )?
            }
        }
    )+ };
    (@method get) => { $crate::operation::Method::Get };
    (@method post) => { $crate::operation::Method::Post };
    (@method put) => { $crate::operation::Method::Put };
    (@method patch) => { $crate::operation::Method::Patch };
    (@method delete) => { $crate::operation::Method::Delete };
    (@codes) => { &[] };
    (@codes $codes:expr) => { $codes };
    (@bytes) => { $crate::operation::SMALL_BODY };
    (@bytes $bytes:expr) => { $bytes };
    (@or_nothing) => { $crate::operation::Nothing };
    (@or_nothing $given:ty) => { $given };
    (@at) => { () };
    (@at $one:ty) => { <$one as $crate::parts::Part>::Value };
    (@at $($part:ty),+) => { ( $( <$part as $crate::parts::Part>::Value, )+ ) };
    (@read $get:ident) => { Ok(()) };
    (@read $get:ident $one:ty) => { <$one as $crate::parts::Part>::of(&$get) };
    (@read $get:ident $($part:ty),+) => { Ok(( $( <$part as $crate::parts::Part>::of(&$get)?, )+ )) };
    (@fill $at:ident) => { [] };
    (@fill $at:ident $one:ty) => { [$at.to_string()] };
    (@fill $at:ident $one:ty, $two:ty) => { [$at.0.to_string(), $at.1.to_string()] };
    (@status $answer:ident [$first:literal $($other:literal)*]) => { { let _ = $answer; $first } };
    (@status $answer:ident [$($status:literal)+] $choose:expr) => { { let choose: fn(&Self::Answer) -> u16 = $choose; choose($answer) } };
}

pub(crate) use operations;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_takes_its_parts_in_order_and_escapes_them() {
        let parts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(filled("/v1/lanes", &[]), "/v1/lanes");
        assert_eq!(filled("/v1/a/{id}/b/{n}", &parts(&["x/y", "3"])), "/v1/a/x%2Fy/b/3");
        assert_eq!(filled("/v1/{a}", &parts(&["ä b"])), "/v1/%C3%A4%20b");
    }

    #[test]
    fn parameters_follow_the_path_and_absent_ones_are_left_out() {
        use crate::waitpoints::{InboxQuery, ListWaitpoints};
        assert_eq!(ListWaitpoints::url(&(), &InboxQuery::default()), "/v1/waitpoints");
        let query = InboxQuery { limit: Some(3), cursor: Some("a b".to_owned()), ..InboxQuery::default() };
        assert_eq!(ListWaitpoints::url(&(), &query), "/v1/waitpoints?limit=3&cursor=a+b");
        let id = "0192f3a0-0000-7000-8000-000000000001".parse().unwrap();
        assert_eq!(crate::tasks::YieldTask::url(&id, &Nothing {}), format!("/v1/tasks/{id}/yield"));
    }

    #[test]
    #[should_panic(expected = "lacks its part id")]
    fn a_part_that_is_missing_is_named() {
        let _ = filled("/v1/{id}", &[]);
    }
}
