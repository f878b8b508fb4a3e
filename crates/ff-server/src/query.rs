//! Reads the query of a URL into a struct; unknown names are refused like unknown fields, and an empty value is none.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use ff_core::types::is_name;
use serde::de::DeserializeOwned;

use crate::body::unrepeated;
use crate::problem::{Answer, Problem};

/// The parameters of a URL.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answer<Self> {
        read(parts.uri.query().unwrap_or("")).map(Self)
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Answer<T> {
    let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        serde_urlencoded::from_str(text).map_err(|error| Problem::invalid("query", unrepeated(&error.to_string())))?;
    pairs.retain(|(_, value)| !value.is_empty());
    for (name, value) in &pairs {
        if matches!(name.as_ref(), "namespace" | "lane") && !is_name(value) {
            return Err(Problem::invalid(name.as_ref(), "must be 1 to 64 of A-Z a-z 0-9 . _ - and not dots only"));
        }
    }
    let text = serde_urlencoded::to_string(&pairs).map_err(|error| Problem::invalid("query", error.to_string()))?;
    let parameters = serde_urlencoded::Deserializer::new(form_urlencoded::parse(text.as_bytes()));
    serde_path_to_error::deserialize(parameters).map_err(|error| {
        let (path, text) = (error.path().to_string(), error.inner().to_string());
        let named = |start: &str| text.strip_prefix(start)?.split_once('`').map(|(name, _)| name);
        if let Some(name) = named("missing field `") {
            return Problem::invalid(name, "is missing");
        }
        match named("unknown field `") {
            Some(name) => Problem::invalid(name, "is not a parameter of this path"),
            None if path == "." => Problem::invalid("query", unrepeated(&text)),
            None => {
                let value = pairs.iter().find(|(name, _)| *name == path).map_or("", |(_, value)| value.as_ref());
                Problem::invalid(path, wrong(value, &text))
            }
        }
    })
}

/// What is wrong with a parameter, by what its reader says.
fn wrong(value: &str, text: &str) -> String {
    if text.contains("invalid digit found") || text.contains("too large to fit") || text.contains("too small to fit") {
        return format!("must be an integer, got {value:?}");
    }
    if text.contains("not `true` or `false`") {
        return "must be true or false".to_owned();
    }
    if text.starts_with("UUID parsing failed") {
        return "must be a UUID".to_owned();
    }
    match text.strip_prefix("unknown ").and_then(|rest| rest.split_once(", expected ")) {
        Some((_, words)) => {
            let words = words.trim_start_matches("one of ").replace('`', "").replace(" or ", ", ");
            format!("is {value:?}: it must be one of {words}")
        }
        None => unrepeated(text),
    }
}

#[cfg(test)]
mod tests {
    use ff_script::generated::FrameMode;
    use serde::Deserialize;
    use uuid::Uuid;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Open,
        Closed,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Parameters {
        limit: Option<i64>,
        follow: Option<bool>,
        id: Option<Uuid>,
        state: Option<Word>,
        #[expect(dead_code, reason = "only its type matters")]
        mode: Option<FrameMode>,
    }

    #[test]
    fn a_parameter_is_read_as_what_it_is_and_an_empty_one_is_none() {
        let read: Parameters = read("limit=3&follow=true&id=&state=open").unwrap();
        assert_eq!((read.limit, read.follow, read.id), (Some(3), Some(true), None));
        assert!(matches!(read.state, Some(Word::Open)));
        assert!(matches!(super::read("state=closed").unwrap(), Parameters { state: Some(Word::Closed), .. }));
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for (query, field, problem) in [
            ("limit=a", "limit", r#"must be an integer, got "a""#),
            ("limit=99999999999999999999", "limit", r#"must be an integer, got "99999999999999999999""#),
            ("follow=yes", "follow", "must be true or false"),
            ("id=7", "id", "must be a UUID"),
            ("state=ajar", "state", r#"is "ajar": it must be one of open, closed"#),
            ("mode=ajar", "mode", r#"is "ajar": it must be one of durable, summary, live"#),
            ("colour=red", "colour", "is not a parameter of this path"),
            ("limit=1&limit=2", "query", "cannot be read"),
        ] {
            let error = read::<Parameters>(query).expect_err(query);
            let document: serde_json::Value = serde_json::from_slice(&error.document("r")).unwrap();
            assert_eq!(document["fields"][field], problem, "{query}");
        }
    }
}
