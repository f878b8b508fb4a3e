//! What this server serves, as OpenAPI: every route carries its description, and the document is made of them.
//!
//! **Invariant:** a route cannot be added without its description. [`Described`] takes both in one declaration, and a test
//! compares them with the table of roles.

mod document;

use std::sync::LazyLock;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use bytes::Bytes;
use ff_api::operation::{Describe, Method};
use ff_engine::{Handle, Service};
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{HttpMethod, Paths};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Components, OpenApi, RefOr};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::answering;
use crate::app::App;
use crate::carried::{self, Carried};
use crate::routes;

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| {
    let (_, described) = routes::described().parts();
    document::written(&document::finished(described)).into()
});

/// The OpenAPI 3.1 document of everything this server serves, as JSON.
#[must_use]
pub fn openapi_json() -> Bytes {
    DOCUMENT.clone()
}

/// Routes and their descriptions.
pub struct Described {
    router: Router<App>,
    document: OpenApi,
}

impl Described {
    /// No routes.
    pub fn new() -> Self {
        let document = OpenApi::builder().paths(Paths::new()).components(Some(Components::new())).build();
        Self { router: Router::new(), document }
    }

    /// With the handlers of one path, as `routes!` collects them.
    ///
    /// # Panics
    /// When two shapes have one name: the document would show one of them in place of the other.
    pub fn with(mut self, (shapes, paths, handlers): UtoipaMethodRouter<App>) -> Self {
        let path = match paths.paths.keys().collect::<Vec<_>>()[..] {
            [path] => path.clone(),
            ref several => panic!("handlers of one path belong together, these are of {several:?}"),
        };
        for (path, item) in paths.paths {
            match self.document.paths.paths.get_mut(&path) {
                Some(known) => known.merge_operations(item),
                None => drop(self.document.paths.paths.insert(path, item)),
            }
        }
        self.keep(shapes);
        Self { router: self.router.route(&path, handlers), document: self.document }
    }

    /// With the handler of an operation.
    pub fn serving<O: Describe, T: 'static>(mut self, handler: impl Handler<T, App>) -> Self {
        let (method, filter) = match O::METHOD {
            Method::Get => (HttpMethod::Get, MethodFilter::GET),
            Method::Post => (HttpMethod::Post, MethodFilter::POST),
            Method::Put => (HttpMethod::Put, MethodFilter::PUT),
            Method::Patch => (HttpMethod::Patch, MethodFilter::PATCH),
            Method::Delete => (HttpMethod::Delete, MethodFilter::DELETE),
        };
        let mut description = O::description();
        let codes = Extensions::builder().add(document::CODES, O::CODES.join(" ")).build();
        description.extensions.get_or_insert_default().merge(codes);
        let mut shapes = Vec::new();
        O::shapes(&mut shapes);
        self.keep(shapes);
        self.document.paths.add_path_operation(O::PATH, vec![method], description);
        Self { router: self.router.route(O::PATH, on(filter, handler)), document: self.document }
    }

    /// With an operation that the service answers.
    pub fn answering<O>(self) -> Self
    where
        O: Describe<Query: DeserializeOwned, Body: DeserializeOwned, Answer: Serialize>,
        Service: Handle<O>,
    {
        self.serving::<O, _>(answering::answer::<O>)
    }

    /// With an operation that the service answers, whose headers or wait are about HTTP.
    pub fn carrying<O>(self) -> Self
    where
        O: Describe + Carried<Query: DeserializeOwned, Body: DeserializeOwned, Answer: Serialize>,
        Service: Handle<O>,
    {
        self.serving::<O, _>(carried::answer::<O>)
    }

    /// With the shape of a stream's items, which no body names.
    pub fn showing<T: ToSchema>(mut self) -> Self {
        let mut shapes = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut shapes);
        self.keep(shapes);
        self
    }

    fn keep(&mut self, shapes: Vec<(String, RefOr<Schema>)>) {
        let known = &mut self.document.components.get_or_insert_default().schemas;
        for (name, shape) in shapes {
            let before = known.insert(name.clone(), shape.clone());
            assert!(before.is_none_or(|before| before == shape), "two shapes are called {name}");
        }
    }

    /// With everything another group serves.
    pub fn and(mut self, other: Self) -> Self {
        let known = &self.document.components.get_or_insert_default().schemas;
        for (name, shape) in other.document.components.iter().flat_map(|components| &components.schemas) {
            assert!(known.get(name).is_none_or(|before| before == shape), "two shapes are called {name}");
        }
        self.document.merge(other.document);
        Self { router: self.router.merge(other.router), document: self.document }
    }

    /// The routes, and what they say about themselves.
    pub fn parts(self) -> (Router<App>, OpenApi) {
        (self.router, self.document)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::access::routes;

    fn document() -> Value {
        serde_json::from_slice(&openapi_json()).expect("the document is JSON")
    }

    /// Method and path of everything described, with its description.
    fn operations(document: &Value) -> Vec<(String, String, &Value)> {
        let paths = document["paths"].as_object().expect("paths").iter();
        paths
            .flat_map(|(path, item)| {
                let operations = item.as_object().expect("operations").iter();
                operations.map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation))
            })
            .collect()
    }

    #[test]
    fn the_document_and_the_table_of_roles_have_the_same_routes() {
        let document = document();
        let described: BTreeSet<(String, String)> =
            operations(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
        let table: BTreeSet<(String, String)> =
            routes().map(|(method, path, _)| (method.to_owned(), path.to_owned())).collect();
        let missing: Vec<_> = table.symmetric_difference(&described).collect();
        assert!(missing.is_empty(), "in one of the two only: {missing:?}");
    }

    #[test]
    fn every_group_of_routes_is_described() {
        let document = document();
        let described: BTreeSet<&str> =
            document["tags"].as_array().expect("tags").iter().filter_map(|tag| tag["name"].as_str()).collect();
        for (method, path, operation) in operations(&document) {
            let tags = operation["tags"].as_array().expect("tags");
            let known = |tag: &Value| tag.as_str().is_some_and(|tag| described.contains(tag));
            assert!(!tags.is_empty() && tags.iter().all(known), "{method} {path}: {tags:?}");
        }
    }

    #[test]
    fn what_is_not_served_is_not_described() {
        let text = String::from_utf8(openapi_json().to_vec()).expect("text");
        for absent in ["/console", "/mcp"] {
            assert!(!text.contains(absent), "{absent}");
        }
    }

    #[test]
    fn every_route_says_what_it_is_and_has_a_name_of_its_own() {
        let document = document();
        let mut names = BTreeSet::new();
        for (method, path, operation) in operations(&document) {
            assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 3), "{method} {path} says nothing");
            let name = operation["operationId"].as_str().expect("a name").to_owned();
            assert!(names.insert(name.clone()), "{method} {path} shares its name {name}");
        }
    }

    #[test]
    fn nothing_in_it_is_null() {
        assert!(!String::from_utf8(openapi_json().to_vec()).expect("text").contains(":null"));
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn walk<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str));
                    fields.values().for_each(|value| walk(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| walk(value, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = BTreeSet::new();
        walk(&document, &mut found);
        assert!(found.len() > 100, "{}", found.len());
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference} leads nowhere");
        }
    }

    #[test]
    fn the_reference_page_is_what_is_served() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
        let kept = std::fs::read(path).unwrap_or_default();
        assert!(
            kept == openapi_json(),
            "docs/reference/openapi.json is stale: run `cargo run -- openapi > docs/reference/openapi.json`"
        );
    }
}
