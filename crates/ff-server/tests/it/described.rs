//! Holds every answer the tests get against the document: its status, its content type, its code and its shape; and what was
//! taken against the shape of the request.

use std::sync::LazyLock;

use serde_json::Value;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_slice(&ff_server::openapi_json()).expect("the document is JSON"));

/// One exchange.
pub struct Exchange<'a> {
    pub method: &'a str,
    /// With its query.
    pub path: &'a str,
    pub sent: &'a [u8],
    pub status: u16,
    pub content_type: &'a str,
    pub got: &'a [u8],
}

/// Panics when the document does not say what happened.
#[track_caller]
pub fn check(exchange: &Exchange<'_>) {
    let Exchange { method, path, sent, status, content_type, got } = exchange;
    let at =
        |problem: String| format!("{method} {path} answered {status}: {problem}\n{}", String::from_utf8_lossy(got));
    let Some(operation) = operation(method, path) else {
        assert!(matches!(status, 400 | 401 | 403 | 404 | 405 | 421), "{}", at("it is not described".to_owned()));
        return;
    };
    let described = &operation["responses"][status.to_string()];
    assert!(!described.is_null(), "{}", at("the status is not described".to_owned()));
    let described = resolved(described);
    let Some(content) = described["content"].as_object() else {
        assert!(got.is_empty(), "{}", at("no body is described".to_owned()));
        return;
    };
    let media = content_type.split(';').next().unwrap_or_default();
    let Some(media_type) = content.get(media) else { panic!("{}", at(format!("{media:?} is not described"))) };
    if media.ends_with("json") && !media.ends_with("ndjson") {
        let value: Value = serde_json::from_slice(got).unwrap_or_else(|error| panic!("{}", at(error.to_string())));
        fits(&value, &media_type["schema"], "answer").unwrap_or_else(|problem| panic!("{}", at(problem)));
    } else if let Some(item) = operation.get("x-ff-item") {
        for line in items(media, &String::from_utf8_lossy(got)) {
            let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}", at(error.to_string())));
            fits(&value, item, "item").unwrap_or_else(|problem| panic!("{}", at(problem)));
        }
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if (200..300).contains(status) && !body.is_null() && !sent.trim_ascii().is_empty() {
        // What is no JSON is lines of it, which have no shape as a whole.
        if let Ok(value) = serde_json::from_slice::<Value>(sent) {
            let problem = fits(&value, body, "body").err();
            assert!(problem.is_none(), "{}", at(format!("it took what it does not describe: {problem:?}")));
        }
    }
}

/// The items of a stream; one that was cut off in the middle is left out.
fn items(media: &str, text: &str) -> Vec<String> {
    match media {
        "text/event-stream" => text
            .split("\n\n")
            .filter(|event| !event.contains("event: error"))
            .filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")))
            .map(str::to_owned)
            .collect(),
        _ => text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n') && line.len() > 1)
            .map(str::to_owned)
            .collect(),
    }
}

/// The description of a request; none when it is to nothing that is served.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let names: Vec<&str> = template.split('/').collect();
        names.len() == parts.len()
            && names.iter().zip(&parts).all(|(name, part)| name == part || (name.starts_with('{') && !part.is_empty()))
    };
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    let found = paths.iter().filter(|(template, _)| fits(template));
    // A name goes before a parameter.
    let (_, item) = found.min_by_key(|(template, _)| template.matches('{').count())?;
    let method = if method == "HEAD" { "get" } else { &method.to_lowercase() };
    item.get(method)
}

fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => resolved(DOCUMENT.pointer(&reference[1..]).expect("a reference leads somewhere")),
        None => value,
    }
}

/// Whether a value has a shape, or where it does not. Patterns and formats are left to others.
fn fits(value: &Value, schema: &'static Value, at: &str) -> Result<(), String> {
    let schema = resolved(schema);
    let fail = |problem: &str| Err(format!("{at} {problem}: {value} is not {schema}"));
    if let Some(all) = schema["allOf"].as_array() {
        all.iter().try_for_each(|one| fits(value, one, at))?;
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let wrong: Vec<String> = choices.iter().filter_map(|one| fits(value, one, at).err()).collect();
        match choices.len() - wrong.len() {
            1 => {}
            0 => return Err(wrong.join("\n or ")),
            _ => return fail("is several of its choices"),
        }
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return fail("is none of its words");
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return fail("is another");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &&str| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the document has the type {other}"),
    };
    if !types.is_empty() && !types.iter().any(is) {
        return fail("has another type");
    }
    let outside = |size: f64, min: &str, max: &str| {
        schema[min].as_f64().is_some_and(|min| size < min) || schema[max].as_f64().is_some_and(|max| size > max)
    };
    let out_of_bounds = match value {
        Value::Number(number) => outside(number.as_f64().unwrap_or_default(), "minimum", "maximum"),
        Value::String(text) => outside(text.chars().count() as f64, "minLength", "maxLength"),
        Value::Array(items) => outside(items.len() as f64, "minItems", "maxItems"),
        Value::Object(fields) => outside(fields.len() as f64, "minProperties", "maxProperties"),
        Value::Null | Value::Bool(_) => false,
    };
    if out_of_bounds {
        return fail("is out of bounds");
    }
    if let Value::Array(items) = value
        && let Some(of) = schema.get("items")
    {
        for (index, item) in items.iter().enumerate() {
            fits(item, of, &format!("{at}[{index}]"))?;
        }
    }
    if let Value::Object(fields) = value {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            if !fields.contains_key(name) {
                return fail(&format!("lacks {name}"));
            }
        }
        for (name, value) in fields {
            match (schema["properties"].get(name), schema.get("additionalProperties")) {
                (Some(of), _) => fits(value, of, &format!("{at}.{name}"))?,
                (None, Some(Value::Bool(false))) => return fail(&format!("has no field {name}")),
                (None, Some(of)) if of.is_object() => fits(value, of, &format!("{at}.{name}"))?,
                (None, _) => {}
            }
        }
    }
    Ok(())
}
