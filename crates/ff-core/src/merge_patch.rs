//! JSON merge patch (RFC 7396) over JSON text: values that a patch does not name keep their text.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep arrays and objects may be nested.
pub const JSON_DEPTH_MAX: usize = 64;

/// A document or patch that cannot be folded, with the place of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {part}: {problem} at line {line} column {column}")]
pub struct InvalidJson {
    /// Which input it is.
    pub part: Part,
    pub problem: JsonProblem,
    /// The line, counted from 1.
    pub line: usize,
    /// Number of bytes read in the line before the error was found.
    pub column: usize,
}

/// The two inputs of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The document to patch.
    Document,
    /// The patch to fold in.
    Patch,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Document => "document",
            Part::Patch => "patch",
        })
    }
}

/// What is wrong with a document or a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonProblem {
    /// It is not JSON. The text says what was expected and never quotes the input.
    #[error("{0}")]
    NotJson(String),
    /// Arrays and objects are nested too deeply.
    #[error("more than {JSON_DEPTH_MAX} levels deep")]
    TooDeep,
}

/// Folds a merge patch into a document.
///
/// Objects are merged, `null` removes, everything else replaces. Numbers keep their digits, whatever their size. The
/// document's keys keep their order and new keys are appended. If a key appears twice in one object, the last value
/// counts. The result has no white space between its parts, and is at most as deep as the deeper input.
///
/// A stream that has no document yet starts from `null`.
///
/// ```
/// use ff_core::merge_patch::fold;
///
/// let folded = fold(br#"{"id": 12345678901234567890, "tags": []}"#, br#"{"done": true, "tags": null}"#).unwrap();
/// assert_eq!(folded, br#"{"id":12345678901234567890,"done":true}"#);
/// ```
pub fn fold(document: &[u8], patch: &[u8]) -> Result<Vec<u8>, InvalidJson> {
    let document = compact(document, Part::Document)?;
    let patch = compact(patch, Part::Patch)?;
    let mut out = Vec::with_capacity(document.len() + patch.len());
    merge(Some(&document), &patch, &mut out);
    Ok(out)
}

/// Writes `document` patched with `patch`. Both are compact JSON within the depth limit, so recursion is bounded.
fn merge(document: Option<&str>, patch: &str, out: &mut Vec<u8>) {
    let Some(patch) = Object::read(patch) else {
        return out.extend_from_slice(patch.as_bytes());
    };
    let document = document.and_then(Object::read).unwrap_or_default();

    out.push(b'{');
    let opening = out.len();
    let mut member = |key: &str, value: &dyn Fn(&mut Vec<u8>)| {
        if out.len() > opening {
            out.push(b',');
        }
        out.extend_from_slice(key.as_bytes());
        out.push(b':');
        value(out);
    };
    for old in &document.members {
        match patch.get(&old.key) {
            None => member(old.key_text, &|out| out.extend_from_slice(old.value.as_bytes())),
            Some("null") => {}
            Some(change) => member(old.key_text, &|out| merge(Some(old.value), change, out)),
        }
    }
    for new in patch.members.iter().filter(|new| new.value != "null" && document.get(&new.key).is_none()) {
        member(new.key_text, &|out| merge(None, new.value, out));
    }
    out.push(b'}');
}

/// One object with its values as text.
#[derive(Default)]
struct Object<'a> {
    members: Vec<Member<'a>>,
    places: HashMap<String, usize>,
}

struct Member<'a> {
    /// The key as written, including quotes and escapes.
    key_text: &'a str,
    /// The decoded key; two keys are the same if these are equal.
    key: String,
    value: &'a str,
}

impl<'a> Object<'a> {
    /// Reads valid JSON as an object; `None` if it is something else.
    fn read(text: &'a str) -> Option<Self> {
        text.starts_with('{').then(|| serde_json::from_str(text).expect("it was read as JSON before"))
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.places.get(key).map(|&place| self.members[place].value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut object = Object::default();
                while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                    let (key_text, value) = (key.get(), value.get());
                    let key: String = serde_json::from_str(key_text).map_err(serde::de::Error::custom)?;
                    match object.places.get(&key) {
                        Some(&place) => object.members[place].value = value,
                        None => {
                            object.places.insert(key.clone(), object.members.len());
                            object.members.push(Member { key_text, key, value });
                        }
                    }
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The text without white space between its parts. Fails if it is not JSON, has invalid strings or is too deep.
fn compact(text: &[u8], part: Part) -> Result<String, InvalidJson> {
    let text = serde_json::from_slice::<&RawValue>(text).map_err(|error| not_json(part, &error))?.get();

    let bytes = text.as_bytes();
    let fault = |at: usize, problem| {
        let line_start = bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count();
        InvalidJson { part, problem, line, column: at - line_start + 1 }
    };
    let mut out = String::with_capacity(text.len());
    let mut depth = 0;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        match bytes[start] {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b'{' | b'[' => {
                depth += 1;
                if depth > JSON_DEPTH_MAX {
                    return Err(fault(start, JsonProblem::TooDeep));
                }
            }
            b'}' | b']' => depth -= 1,
            b'"' => {
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                // Half a surrogate pair passes the grammar, but cannot be decoded to text.
                let string = &text[start..at];
                if string.contains("\\u") && serde_json::from_str::<String>(string).is_err() {
                    return Err(fault(start, JsonProblem::NotJson("half a surrogate pair in a string".to_owned())));
                }
            }
            _ => {}
        }
        out.push_str(&text[start..at]);
    }
    Ok(out)
}

fn not_json(part: Part, error: &serde_json::Error) -> InvalidJson {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let problem = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text).to_owned();
    InvalidJson { part, problem: JsonProblem::NotJson(problem), line, column }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn folded(document: &str, patch: &str) -> String {
        String::from_utf8(fold(document.as_bytes(), patch.as_bytes()).unwrap()).unwrap()
    }

    fn refused(document: &[u8], patch: &[u8]) -> String {
        fold(document, patch).unwrap_err().to_string()
    }

    #[test]
    fn the_cases_of_rfc_7396_hold() {
        for (document, patch, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            // The example of section 3.
            (
                r#"{"title":"Goodbye!","author":{"givenName":"John","familyName":"Doe"},"tags":["example","sample"],"content":"This will be unchanged"}"#,
                r#"{"title":"Hello!","phoneNumber":"+01-123-456-7890","author":{"familyName":null},"tags":["example"]}"#,
                r#"{"title":"Hello!","author":{"givenName":"John"},"tags":["example"],"content":"This will be unchanged","phoneNumber":"+01-123-456-7890"}"#,
            ),
        ] {
            assert_eq!(folded(document, patch), result, "{document} with {patch}");
        }
    }

    #[test]
    fn numbers_keep_their_text() {
        for number in ["9007199254740993", "-123456789012345678901234567890", "1e400", "-0", "1.10", "0.1e-9", "1E+2"] {
            assert_eq!(folded(&format!(r#"{{"n":{number}}}"#), "{}"), format!(r#"{{"n":{number}}}"#));
            assert_eq!(folded("{}", &format!(r#"{{"n":{number}}}"#)), format!(r#"{{"n":{number}}}"#));
            assert_eq!(
                folded("{}", &format!(r#"{{"n":{{"m":[{number}]}}}}"#)),
                format!(r#"{{"n":{{"m":[{number}]}}}}"#)
            );
            assert_eq!(folded("null", number), number);
        }
    }

    #[test]
    fn empty_and_null_things_stay_what_they_are() {
        for (document, patch, result) in [
            (r#"{"a":[],"b":{},"c":""}"#, "{}", r#"{"a":[],"b":{},"c":""}"#),
            ("null", r#"{"a":[],"b":{},"c":""}"#, r#"{"a":[],"b":{},"c":""}"#),
            (r#"{"a":{}}"#, r#"{"a":[]}"#, r#"{"a":[]}"#),
            (r#"{"a":1}"#, r#"{"a":{}}"#, r#"{"a":{}}"#),
            ("{}", r#"{"a":[null,{"b":null}]}"#, r#"{"a":[null,{"b":null}]}"#),
            (r#"{"a":{"b":null}}"#, r#"{"c":1}"#, r#"{"a":{"b":null},"c":1}"#),
            ("null", "{}", "{}"),
        ] {
            assert_eq!(folded(document, patch), result, "{document} with {patch}");
        }
    }

    #[test]
    fn keys_keep_their_order_and_the_last_of_two_counts() {
        for (document, patch, result) in [
            (r#"{"z":1,"a":2,"m":3}"#, r#"{"y":4,"a":5,"b":6}"#, r#"{"z":1,"a":5,"m":3,"y":4,"b":6}"#),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"c":4}"#, r#"{"a":3,"b":2,"c":4}"#),
            (r#"{"a":1}"#, r#"{"a":{"x":1},"a":null}"#, "{}"),
            (r#"{"a":1}"#, r#"{"a":null,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":{"x":1},"a":{"y":2}}"#, r#"{"a":{"z":3}}"#, r#"{"a":{"y":2,"z":3}}"#),
            // An escape does not make another key. The document's spelling stays.
            (r#"{"\u0061":1}"#, r#"{"a":2}"#, r#"{"\u0061":2}"#),
            (r#"{"é\n":1}"#, r#"{"\u00e9\n":null}"#, "{}"),
        ] {
            assert_eq!(folded(document, patch), result, "{document} with {patch}");
        }
    }

    #[test]
    fn white_space_goes_but_not_in_strings() {
        assert_eq!(
            folded(" { \"a b\" :\n[ 1 ,\t\"x  \\\" y\" ] } ", "\r\n{ \"c\" : { \"d\" : \" \" } }\n"),
            r#"{"a b":[1,"x  \" y"],"c":{"d":" "}}"#
        );
    }

    #[test]
    fn what_is_not_json_is_refused_with_where() {
        for (text, message) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{\n \"a\": x}", "expected value at line 2 column 7"),
            (r#"{"a":1,}"#, "key must be a string at line 1 column 8"),
            (r#"{"a":1} x"#, "trailing characters at line 1 column 9"),
            ("[01]", "invalid number at line 1 column 3"),
            ("NaN", "expected value at line 1 column 1"),
            ("\"\u{1}\"", "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 1"),
            ("[1,\n\"\\ud800\"]", "half a surrogate pair in a string at line 2 column 1"),
            ("{\"\\udc00x\":1}", "half a surrogate pair in a string at line 1 column 2"),
        ] {
            assert_eq!(refused(text.as_bytes(), b"{}"), format!("invalid document: {message}"));
            assert_eq!(refused(b"{}", text.as_bytes()), format!("invalid patch: {message}"));
        }
        assert!(refused(b"\"\xff\"", b"{}").starts_with("invalid document: invalid unicode code point at line 1"));
        assert_eq!(folded("\"\\ud83d\\ude00\"", "{}"), "{}");
        assert_eq!(folded("{}", "\"\\ud83d\\ude00\""), "\"\\ud83d\\ude00\"");
    }

    #[test]
    fn too_deep_is_refused_and_does_not_overflow_the_stack() {
        let objects = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(folded(&objects(64), &objects(64)), objects(64));
        assert_eq!(folded("{}", &arrays(64)), arrays(64));
        assert_eq!(
            refused(b"{}", objects(65).as_bytes()),
            "invalid patch: more than 64 levels deep at line 1 column 321"
        );
        for depth in [65, 1_000_000] {
            for text in [objects(depth), arrays(depth), "[".repeat(depth)] {
                fold(text.as_bytes(), b"{}").unwrap_err();
                fold(b"{}", text.as_bytes()).unwrap_err();
            }
        }
        // Wide is not deep.
        let wide = format!("[{}]", vec!["[]"; 1_000].join(","));
        assert_eq!(folded(&wide, &wide), wide);
    }

    /// The algorithm of RFC 7396, section 2, over values.
    fn reference(target: Value, patch: &Value) -> Value {
        let Value::Object(changes) = patch else { return patch.clone() };
        let mut target = match target {
            Value::Object(members) => members,
            _ => serde_json::Map::new(),
        };
        for (key, change) in changes {
            if change.is_null() {
                target.remove(key);
            } else {
                let old = target.remove(key).unwrap_or(Value::Null);
                target.insert(key.clone(), reference(old, change));
            }
        }
        Value::Object(target)
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c \"\\\\\u{e9}\u{1f600}\n]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[a-d]|\u{e9}\"", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn folding_text_is_folding_values(document in any_json(), patch in any_json(), pretty: bool) {
            let text = |value: &Value| {
                if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) }.unwrap()
            };
            let result = fold(&text(&document), &text(&patch)).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&result).unwrap(), reference(document, &patch));
        }

        #[test]
        fn the_same_patch_twice_is_the_patch_once(document in any_json(), patch in any_json()) {
            let patch = serde_json::to_vec(&patch).unwrap();
            let once = fold(&serde_json::to_vec(&document).unwrap(), &patch).unwrap();
            prop_assert_eq!(fold(&once, &patch).unwrap(), once);
        }

        #[test]
        fn any_bytes_are_folded_or_refused(document: Vec<u8>, patch in "[\\[\\]{}\":,0-9eua\\\\ ]{0,24}") {
            let _ = fold(&document, patch.as_bytes());
            let _ = fold(patch.as_bytes(), b"{\"a\":{\"b\":1}}");
        }
    }
}
