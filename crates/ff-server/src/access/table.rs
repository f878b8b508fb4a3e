//! Every route and who may ask it. A route that is not in this table is refused to everybody.

use ff_api::access::{KNOWN, PUT_IN};
use ff_script::generated::Role;

use Role::Metrics;

pub use ff_api::access::Access;

/// Method, path and access of the routes that no declaration has yet.
const ROUTES: &[(&str, &str, Access)] = &[
    ("GET", "/livez", Access::Open),
    ("GET", "/readyz", Access::Open),
    ("GET", "/healthz", Access::Open),
    ("GET", "/metrics", Access::Roles(&[Metrics])),
    // What is served, and its page. The page is empty until it is given a token.
    ("GET", "/openapi.json", KNOWN),
    ("GET", "/docs", Access::Open),
    ("GET", "/docs/page.css", Access::Open),
    ("GET", "/docs/page.js", Access::Open),
    // Executions.
    ("POST", "/v1/executions:batch", PUT_IN),
];

/// Method, path and access of every route.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str, Access)> {
    let declared = ff_api::operations().map(|operation| (operation.method.as_str(), operation.path, operation.access));
    ROUTES.iter().copied().chain(declared)
}

/// What a route asks for; none when the table does not know it.
pub fn access_to(method: &str, path: &str) -> Option<Access> {
    // A HEAD is a GET without its body.
    let method = if method == "HEAD" { "GET" } else { method };
    routes().find(|(known, at, _)| *known == method && *at == path).map(|(_, _, access)| access)
}

/// The methods a path takes.
pub fn methods_of(path: &str) -> Vec<&'static str> {
    let known = routes().filter(|(_, at, _)| *at == path).map(|(method, _, _)| method);
    known.flat_map(|method| if method == "GET" { vec!["GET", "HEAD"] } else { vec![method] }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_route_is_there_twice() {
        let known: BTreeSet<(&str, &str)> = routes().map(|(method, path, _)| (method, path)).collect();
        assert_eq!(known.len(), routes().count());
    }

    #[test]
    fn every_route_that_is_served_is_in_the_table_and_no_other() {
        let table: BTreeSet<(String, String)> =
            routes().map(|(method, path, _)| (method.to_owned(), path.to_owned())).collect();
        let served = crate::routes::served_routes();
        let only = |one: &BTreeSet<(String, String)>, other: &BTreeSet<(String, String)>| {
            one.difference(other).cloned().collect::<Vec<_>>()
        };
        assert_eq!((only(&served, &table), only(&table, &served)), (Vec::new(), Vec::new()), "(unlisted, not served)");
    }

    #[test]
    fn only_what_tells_nothing_is_open() {
        let open = |(_, path, access): (_, &'static str, Access)| (access == Access::Open).then_some(path);
        let open: Vec<&str> = routes().filter_map(open).collect();
        assert_eq!(open, ["/livez", "/readyz", "/healthz", "/docs", "/docs/page.css", "/docs/page.js"]);
    }
}
