//! Makes the document of what the routes say about themselves: adds who may ask, every refusal by status and code, and names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use utoipa::PartialSchema;
use utoipa::openapi::OpenApi;

use crate::access::{Access, access_to};
use crate::problem::{Document, meaning};
use ff_api::problem::meanings;

const ABOUT: &str = "\
JSON in and out unless said. Ids are UUIDs; times are milliseconds since the epoch (`*_at`, `*_until`), durations are milliseconds \
(`*_ms`). An optional field may be absent or null, which is the same; an empty body is `{}`; unknown fields and parameters are refused \
by name. A body is read as JSON whatever its Content-Type says.

A payload is JSON as it was written, or base64 text when its `*_encoding` is `base64`. Lists take `limit` and `cursor` and answer \
`items` and `next_cursor`, which is null at the end. Every answer has an `X-Request-Id`: the one that was sent, or a fresh one.

Every refusal is `application/problem+json` with a stable `code`. An unknown path answers 404 `not_found`, another method 405 \
`method_not_allowed` with `Allow`. What a client can bring about is never a 5xx.";

/// What a route says about its own refusals: codes apart by spaces.
pub const CODES: &str = "x-ff-codes";
/// The shape of one item of a stream.
const ITEM: &str = "x-ff-item";
const REQUEST_ID: &str = "#/components/headers/RequestId";
/// Every code a fence can be refused with.
const FENCE: &str = "execution_not_found execution_not_active stale_lease lease_expired lease_revoked";

/// The groups of routes in reading order.
const TAGS: &[(&str, &str)] = &[
    ("executions", "Submit, find, read and steer executions."),
    ("flows", "Executions with edges between them."),
    ("waitpoints", "What waits for an answer from outside."),
    ("workers", "Who does the work: registration, claims, results. A worker of any language speaks this."),
    ("tasks", "What a worker does with a task it holds, under the fence of its lease."),
    ("lanes", "Where executions queue."),
    ("schedules", "When executions and flows are submitted by the clock."),
    ("budgets", "How much may be used."),
    ("quotas", "How many may start or run."),
    ("events", "Everything that happened, in order."),
    ("webhooks", "Ends that are told to receivers outside."),
    ("server", "What the store holds and what this server can do."),
    ("admin", "Keys, tokens and the store's health."),
    ("health", "One word, without credentials."),
    ("documentation", "This document and its page."),
];

/// A document with each route and each shape on a line of its own: a change of one is a change of one line.
pub fn written(document: &Value) -> String {
    fn write(value: &Value, depth: usize, text: &mut String) {
        let Some(fields) = value.as_object().filter(|fields| depth < 3 && !fields.is_empty()) else {
            text.push_str(&value.to_string());
            return;
        };
        let indent = "  ".repeat(depth + 1);
        for (at, (name, value)) in fields.iter().enumerate() {
            text.push_str(if at == 0 { "{\n" } else { ",\n" });
            text.push_str(&format!("{indent}{}: ", Value::from(name.as_str())));
            write(value, depth + 1, text);
        }
        text.push_str(&format!("\n{}}}", "  ".repeat(depth)));
    }
    let mut text = String::new();
    write(document, 0, &mut text);
    text.push('\n');
    text
}

/// The whole document.
pub fn finished(described: OpenApi) -> Value {
    let mut document = serde_json::to_value(described).expect("a document becomes JSON");
    document["info"] = json!({
        "title": "FlowFabric",
        "version": env!("CARGO_PKG_VERSION"),
        "description": ABOUT,
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    });
    document["tags"] = TAGS.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect();
    let mut shared = Shared::default();
    let shapes = document["components"]["schemas"].clone();
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let operation = operation.as_object_mut().expect("an operation is an object");
            complete(&method.to_uppercase(), path, operation, &shapes, &mut shared);
        }
    }
    let components = &mut document["components"];
    components["schemas"]["Problem"] = serde_json::to_value(Document::schema()).expect("a schema becomes JSON");
    components["responses"] = shared.0.into_values().collect::<Map<_, _>>().into();
    components["headers"] = json!({ "RequestId": {
        "description": "The id of the request: the one that was sent, or a fresh one.",
        "required": true,
        "schema": { "type": "string", "minLength": 1 },
    } });
    components["securitySchemes"] = json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of this server. What it may do is told by its roles, `x-ff-role` names those of a route; admin may do everything.",
        },
        "waitpoint": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Waitpoint <token>`: the token of a waitpoint. It may stand in the body instead.",
        },
    });
    document[CODES] = meanings()
        .map(|(code, status, meaning)| (code.to_owned(), json!({ "status": status, "meaning": meaning })))
        .collect::<Map<_, _>>()
        .into();
    renamed(document)
}

/// The group of a path.
fn tag(path: &str) -> &str {
    match path.strip_prefix("/v1/").map(|path| path.split(['/', ':']).next().unwrap_or_default()) {
        Some("stats" | "capabilities") => "server",
        Some(group) => group,
        None if path == "/openapi.json" || path.starts_with("/docs") => "documentation",
        None => "health",
    }
}

/// Adds what the table of roles and the codes say about a route.
fn complete(method: &str, path: &str, operation: &mut Map<String, Value>, shapes: &Value, shared: &mut Shared) {
    let tag = tag(path);
    let handler = operation["operationId"].as_str().expect("a handler has a name");
    let group = path.strip_prefix("/v1/admin/").and_then(|rest| rest.split('/').next()).unwrap_or(tag);
    let whole =
        handler.contains(group.trim_end_matches('s')) || ff_api::operations().any(|known| known.name == handler);
    let id = if whole { handler.to_owned() } else { format!("{group}_{handler}") };
    operation["operationId"] = id.into();
    say(operation);
    operation.insert("tags".to_owned(), json!([tag]));

    if let Some(item) = operation.get_mut(ITEM) {
        *item = json!({ "$ref": format!("#/components/schemas/{}", item.as_str().expect("a shape has a name")) });
    }

    let access = access_to(method, path);
    operation.insert(
        "security".to_owned(),
        match access {
            None | Some(Access::Roles(_)) => json!([{ "bearer": [] }]),
            Some(Access::WaitpointToken) => json!([{ "waitpoint": [] }, {}]),
            Some(Access::Open) => json!([]),
        },
    );
    if let Some(Access::Roles(roles)) = access {
        let roles: BTreeSet<&str> = roles.iter().map(|role| role.as_str()).chain(["admin"]).collect();
        operation.insert("x-ff-role".to_owned(), json!(roles));
    }
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        // One that is empty is one that is not there.
        if parameter["in"] == "query" && parameter["required"] != true {
            parameter["allowEmptyValue"] = true.into();
        }
        // A parameter that is not there is not null.
        if let Some(kind) = parameter.pointer_mut("/schema/type")
            && let Some(only) = kind.as_array().and_then(|kinds| kinds.iter().find(|kind| *kind != "null")).cloned()
        {
            *kind = only;
        }
    }
    if let Some(body) = operation.get_mut("requestBody") {
        // An empty body is `{}`: it will do where no field is asked for.
        let asked = body["content"]
            .as_object()
            .is_some_and(|content| content.values().all(|media| asks(&media["schema"], shapes)));
        body["required"] = asked.into();
    }

    let own = operation.remove(CODES);
    let own = own.as_ref().and_then(Value::as_str).unwrap_or_default().replace("fence", FENCE);
    let mut by_status: BTreeMap<u16, BTreeSet<&'static str>> = BTreeMap::new();
    for code in own.split_whitespace().chain(common(method, path, access, operation)) {
        let (code, status, _) =
            meaning(code).unwrap_or_else(|| panic!("{method} {path} names the code {code}, which is none"));
        by_status.entry(status.as_u16()).or_default().insert(code);
    }
    let responses = operation["responses"].as_object_mut().expect("a route answers");
    for (status, response) in responses.iter_mut() {
        if response["description"].as_str().is_none_or(str::is_empty) {
            response["description"] = reason(status).into();
        }
        response["headers"]["X-Request-Id"] = json!({ "$ref": REQUEST_ID });
    }
    for (status, codes) in by_status {
        responses.entry(status.to_string()).or_insert_with(|| shared.refusal(status, codes));
    }
}

/// The first sentence of what a handler says is its summary, wherever its lines break.
fn say(operation: &mut Map<String, Value>) {
    let said = |field: &str| operation.get(field).and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
    let text = format!("{} {}", said("summary"), said("description"));
    let (summary, rest) = text.split_once(". ").unwrap_or((&text, ""));
    let (summary, rest) = (summary.trim().trim_end_matches('.').to_owned(), rest.trim().to_owned());
    operation.insert("summary".to_owned(), summary.into());
    match rest.is_empty() {
        true => drop(operation.remove("description")),
        false => drop(operation.insert("description".to_owned(), rest.into())),
    }
}

/// True when a body must say something.
fn asks(schema: &Value, shapes: &Value) -> bool {
    match schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        Some(name) => asks(&shapes[name], shapes),
        None => schema["required"].as_array().is_some_and(|names| !names.is_empty()),
    }
}

/// The refusals every route of its kind has.
fn common(method: &str, path: &str, access: Option<Access>, operation: &Map<String, Value>) -> Vec<&'static str> {
    let mut codes = Vec::new();
    if tag(path) != "health" {
        codes.push("wrong_host");
    }
    let store = match access {
        Some(Access::Open) => false,
        Some(Access::WaitpointToken) => {
            codes.push("too_many_failures");
            true
        }
        None | Some(Access::Roles(_)) => {
            codes.extend(["unauthenticated", "forbidden", "too_many_failures"]);
            true
        }
    };
    let body = operation.contains_key("requestBody");
    if body || operation.contains_key("parameters") {
        codes.push("invalid_argument");
    }
    if body {
        codes.extend(["too_large", "too_slow", "forbidden"]);
    }
    if store {
        codes.extend(["store_unavailable", "try_again", "closed", "internal", "corrupt_record", "store_refused"]);
    }
    if store && method != "GET" {
        codes.push("store_full");
    }
    codes
}

fn reason(status: &str) -> &'static str {
    let status = status.parse().ok().and_then(|status| axum::http::StatusCode::from_u16(status).ok());
    status.and_then(|status| status.canonical_reason()).unwrap_or("An answer")
}

/// Refusals that several routes have in common, by status and codes.
#[derive(Default)]
struct Shared(BTreeMap<(u16, BTreeSet<&'static str>), (String, Value)>);

impl Shared {
    fn refusal(&mut self, status: u16, codes: BTreeSet<&'static str>) -> Value {
        let name = codes.iter().map(|code| camel(code)).collect::<Vec<_>>().join("Or");
        let (name, _) =
            self.0.entry((status, codes)).or_insert_with_key(|(status, codes)| (name, response(*status, codes)));
        json!({ "$ref": format!("#/components/responses/{name}") })
    }
}

fn camel(code: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    code.split('_').map(capital).collect()
}

fn response(status: u16, codes: &BTreeSet<&'static str>) -> Value {
    let lines: Vec<String> = codes
        .iter()
        .filter_map(|code| meaning(code))
        .map(|(code, _, meaning)| format!("`{code}`: {meaning}"))
        .collect();
    let mut headers = json!({ "X-Request-Id": { "$ref": REQUEST_ID } });
    if matches!(status, 429 | 503) {
        headers["Retry-After"] =
            json!({ "schema": { "type": "integer", "minimum": 1 }, "required": true, "description": "Seconds." });
    }
    let schema = json!({ "allOf": [
        { "$ref": "#/components/schemas/Problem" },
        { "type": "object", "properties": { "status": { "const": status }, "code": { "enum": codes } } },
    ] });
    json!({
        "description": lines.join("  \n"),
        "headers": headers,
        "content": { "application/problem+json": { "schema": schema } },
    })
}

/// Shapes under the names of what they show.
fn renamed(document: Value) -> Value {
    let name = |old: &str| {
        let page = old.strip_prefix("Listed_").map(|of| format!("{}Page", of.trim_end_matches("Shape")));
        page.unwrap_or_else(|| old.trim_end_matches("Shape").to_owned())
    };
    fn walk(value: Value, name: &impl Fn(&str) -> String) -> Value {
        match value {
            Value::Object(fields) => fields
                .into_iter()
                .map(|(field, value)| match value.as_str().and_then(|to| to.strip_prefix("#/components/schemas/")) {
                    Some(to) if field == "$ref" => (field, format!("#/components/schemas/{}", name(to)).into()),
                    _ => (field, walk(value, name)),
                })
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items.into_iter().map(|item| walk(item, name)).collect(),
            other => other,
        }
    }
    let mut document = walk(document, &name);
    let shapes = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let mut by_name = Map::new();
    for (old, mut shape) in shapes {
        if let Some(of) = old.strip_prefix("Listed_") {
            // What a page holds has a name of its own.
            shape["properties"]["items"]["items"] = json!({ "$ref": format!("#/components/schemas/{}", name(of)) });
        }
        let before = by_name.insert(name(&old), shape);
        assert!(before.is_none(), "two shapes are called {}", name(&old));
    }
    document["components"]["schemas"] = by_name.into();
    document
}
