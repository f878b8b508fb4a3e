//! What an operation of the API is: a method, a path, the roles that may use it, what it takes and what it returns.

use std::fmt::{Display, Write as _};

use serde::Serialize;

use crate::access::Access;

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
pub trait Operation {
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
    /// The parameters of the URL; `()` when it takes none.
    type Query;
    /// What the request carries; `()` when it has no body.
    type Body;
    /// What it returns; `()` when the answer has no body.
    type Answer;

    /// The path with its parts filled in, in their order.
    ///
    /// # Panics
    /// When there are more or fewer parts than the path names.
    #[must_use]
    fn path(parts: &[&(dyn Display + Sync)]) -> String {
        filled(Self::PATH, parts)
    }

    /// The path with its parts filled in, and its parameters behind it.
    ///
    /// # Panics
    /// When there are more or fewer parts than the path names.
    #[must_use]
    fn url(parts: &[&(dyn Display + Sync)], query: &Self::Query) -> String
    where
        Self::Query: Serialize,
    {
        let query = serde_urlencoded::to_string(query).expect("parameters are names and plain values");
        let mut url = Self::path(parts);
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query);
        }
        url
    }
}

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

fn filled(path: &str, parts: &[&(dyn Display + Sync)]) -> String {
    let mut pieces = path.split('{');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    let mut parts = parts.iter();
    for piece in pieces {
        let (name, rest) = piece.split_once('}').expect("a path closes its braces");
        let part = parts.next().unwrap_or_else(|| panic!("{path} lacks its part {name}"));
        escape(&part.to_string(), &mut text);
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

/// Declares operations. Of each: what it does, its name, method, path and access; then what it takes, what stands in its path and
/// headers, the parameters of its URL, what it returns by status, the items of a stream, and the codes it fails with.
macro_rules! operations {
    ( $(
        $( #[doc = $about:literal] )+
        $name:ident $id:ident: $method:ident $path:literal, $access:expr;
        $( takes $body:ty; )?
        $( reads ($($params:tt)*); )?
        $( asks $query:ty; )?
        returns $answer:ty: $( $response:tt ),+;
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
            type Query = $crate::operation::operations!(@body $( $query )?);
            type Body = $crate::operation::operations!(@body $( $body )?);
            type Answer = $answer;
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
                params($( $($params)*, )? $( $query )?),
                $( request_body = $body, )?
                responses( $( $response ),+ ),
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
    (@body) => { () };
    (@body $body:ty) => { $body };
}

pub(crate) use operations;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_takes_its_parts_in_order_and_escapes_them() {
        assert_eq!(filled("/v1/lanes", &[]), "/v1/lanes");
        assert_eq!(filled("/v1/a/{id}/b/{n}", &[&"x/y", &3]), "/v1/a/x%2Fy/b/3");
        assert_eq!(filled("/v1/{a}", &[&"ä b"]), "/v1/%C3%A4%20b");
    }

    #[test]
    fn parameters_follow_the_path_and_absent_ones_are_left_out() {
        #[derive(Serialize)]
        struct Page {
            limit: Option<i64>,
            cursor: Option<String>,
        }
        enum List {}
        impl Operation for List {
            const NAME: &'static str = "list";
            const METHOD: Method = Method::Get;
            const PATH: &'static str = "/v1/lanes/{name}/list";
            const ACCESS: Access = crate::access::LOOK;
            const CODES: &'static [&'static str] = &[];
            type Query = Page;
            type Body = ();
            type Answer = ();
        }
        assert_eq!(List::url(&[&"a"], &Page { limit: None, cursor: None }), "/v1/lanes/a/list");
        let query = Page { limit: Some(3), cursor: Some("a b".to_owned()) };
        assert_eq!(List::url(&[&"a"], &query), "/v1/lanes/a/list?limit=3&cursor=a+b");
        assert_eq!(crate::tasks::YieldTask::url(&[&"x"], &()), "/v1/tasks/x/yield");
    }

    #[test]
    #[should_panic(expected = "lacks its part id")]
    fn a_part_that_is_missing_is_named() {
        filled("/v1/{id}", &[]);
    }
}
