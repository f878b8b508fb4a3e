//! Reads JSON strictly, with the name of the field that is wrong.

use serde::de::DeserializeOwned;

use crate::Invalid;

/// How deep JSON may nest.
const DEPTH_MAX: usize = 64;

/// Reads a JSON object; nothing at all is an empty one.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Invalid> {
    let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    // A list would be taken for the object's fields in their order.
    match bytes.trim_ascii_start().first() {
        Some(b'[') => Err(Invalid::new("body", "must be an object")),
        _ => read_any(bytes),
    }
}

/// Reads any JSON.
pub fn read_any<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Invalid> {
    check_depth(bytes)?;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        refused(&path, error.inner())
    })?;
    json.end().map_err(|error| refused(".", &error))?;
    Ok(read)
}

fn check_depth(bytes: &[u8]) -> Result<(), Invalid> {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match (in_text, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(Invalid::new("body", format!("nests deeper than {DEPTH_MAX}")));
        }
    }
    Ok(())
}

/// The problem a reader's error means; `path` is where it was, `.` at the top.
fn refused(path: &str, error: &serde_json::Error) -> Invalid {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let top = path.is_empty() || path == "." || path == "?";
    if error.is_syntax() || error.is_eof() {
        return Invalid::new(if top { "body" } else { path }, format!("is not JSON: {text}"));
    }
    let within = |name: &str| match path.rsplit_once('.') {
        _ if top || path == name => name.to_owned(),
        Some((_, last)) if last == name => path.to_owned(),
        Some((parent, "?")) => format!("{parent}.{name}"),
        _ => format!("{path}.{name}"),
    };
    for (start, problem) in [
        ("unknown field `", "is not a field of this request"),
        ("missing field `", "is missing"),
        ("duplicate field `", "is given twice"),
    ] {
        if let Some((name, _)) = text.strip_prefix(start).and_then(|rest| rest.split_once('`')) {
            return Invalid::new(within(name), problem);
        }
    }
    Invalid::new(if top { "body" } else { path }, unrepeated(text))
}

/// What a reader expected instead of what it got. What it got is not repeated: it may be a payload, or a token in the wrong
/// field.
pub fn unrepeated(text: &str) -> String {
    match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("cannot be read: expected {expected}"),
        None if text.contains(['"', '`']) => "cannot be read".to_owned(),
        None => format!("cannot be read: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its type matters")]
        n: i64,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only their types matter")]
    struct Outer {
        kind: String,
        inner: Option<Inner>,
        list: Option<Vec<Inner>>,
        tags: Option<BTreeMap<String, String>>,
        input: Option<Box<RawValue>>,
    }

    fn field_of(json: &str) -> String {
        read::<Outer>(json.as_bytes()).expect_err(json).field
    }

    #[test]
    fn a_wrong_field_is_named_wherever_it_is() {
        for (json, field) in [
            (r#"{}"#, "kind"),
            (r#""#, "kind"),
            (r#"{"kind":"k","colour":1}"#, "colour"),
            (r#"{"kind":7}"#, "kind"),
            (r#"{"kind":"k","inner":{"n":"x"}}"#, "inner.n"),
            (r#"{"kind":"k","inner":{"n":1,"m":2}}"#, "inner.m"),
            (r#"{"kind":"k","inner":{}}"#, "inner.n"),
            (r#"{"kind":"k","list":[{"n":1},{"n":1.5}]}"#, "list[1].n"),
            (r#"{"kind":"k","tags":{"a":1}}"#, "tags.a"),
            (r#"{"kind":"k","kind":"k"}"#, "kind"),
            (r#"[1]"#, "body"),
            (r#"{"kind":"k"} x"#, "body"),
        ] {
            assert_eq!(field_of(json), field, "{json}");
        }
    }

    #[test]
    fn a_payload_keeps_its_text() {
        let json = r#"{"kind":"k","input":{"z":12345678901234567890123,"a":[1.0,1e2]}}"#;
        let outer: Outer = read(json.as_bytes()).unwrap();
        assert_eq!(outer.input.unwrap().get(), r#"{"z":12345678901234567890123,"a":[1.0,1e2]}"#);
        let absent: Outer = read(br#"{"kind":"k","input":null}"#).unwrap();
        assert!(absent.input.is_none());
    }

    #[test]
    fn nesting_is_bounded_and_brackets_in_texts_do_not_count() {
        let deep = format!(r#"{{"kind":"k","input":{}{}}}"#, "[".repeat(64), "]".repeat(64));
        assert_eq!(field_of(&deep), "body");
        let text = format!(r#"{{"kind":"k","input":"\"{}"}}"#, "[".repeat(500));
        assert!(read::<Outer>(text.as_bytes()).is_ok());
    }
}
