//! A condition as JSON: `{signal}`, `{any_of}`, `{all_of}` or `{count}`, each with its own fields and no others.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Condition, Matcher, Over};

/// Every field that any condition has. Which of them may stand together is checked afterwards.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default, deserialize_with = "present")]
    signal: Option<Option<String>>,
    #[serde(default)]
    waitpoint: Option<String>,
    #[serde(default, deserialize_with = "present")]
    any_of: Option<Vec<Condition>>,
    #[serde(default, deserialize_with = "present")]
    all_of: Option<Vec<Condition>>,
    #[serde(default, deserialize_with = "present")]
    count: Option<u32>,
    #[serde(default)]
    over: Option<Over>,
    #[serde(default)]
    of: Option<Matcher>,
}

/// Tells a field that is present, even as null, from an absent one.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads a struct from an object only. A derived reader would also accept a list of its fields.
fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D, what: &'static str) -> Result<T, D::Error> {
    struct Object<T>(&'static str, PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(Object(what, PhantomData))
}

impl<'de> Deserialize<'de> for Condition {
    /// Rejects unknown fields and fields of another kind of condition, by name. Without any field it is any signal.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields { signal, waitpoint, any_of, all_of, count, over, of } = object(deserializer, "a condition object")?;

        let kinds = [
            ("signal", signal.is_some() || waitpoint.is_some()),
            ("any_of", any_of.is_some()),
            ("all_of", all_of.is_some()),
            ("count", count.is_some()),
        ];
        let mut given = kinds.iter().filter(|(_, given)| *given).map(|(kind, _)| *kind);
        if let (Some(one), Some(other)) = (given.next(), given.next()) {
            // A waitpoint alone is a signal condition. Beside another kind, the waitpoint is the field out of place.
            let one = if one == "signal" && signal.is_none() { "waitpoint" } else { one };
            return Err(D::Error::custom(format_args!(
                "a condition is one of signal, any_of, all_of, count: {one} and {other} do not go together"
            )));
        }
        if count.is_none() {
            for (field, given) in [("over", over.is_some()), ("of", of.is_some())] {
                if given {
                    return Err(D::Error::custom(format_args!("{field} needs count beside it")));
                }
            }
        }

        Ok(match (any_of, all_of, count) {
            (Some(children), _, _) => Condition::AnyOf(children),
            (_, Some(children), _) => Condition::AllOf(children),
            (_, _, Some(n)) => Condition::Count { n, over: over.ok_or_else(|| D::Error::missing_field("over"))?, of },
            (None, None, None) => Condition::Signal { name: signal.flatten(), waitpoint },
        })
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Condition::Signal { name, waitpoint } => {
                map.serialize_entry("signal", name)?;
                if let Some(key) = waitpoint {
                    map.serialize_entry("waitpoint", key)?;
                }
            }
            Condition::AnyOf(children) => map.serialize_entry("any_of", children)?,
            Condition::AllOf(children) => map.serialize_entry("all_of", children)?,
            Condition::Count { n, over, of } => {
                map.serialize_entry("count", n)?;
                map.serialize_entry("over", over)?;
                if let Some(of) = of {
                    map.serialize_entry("of", of)?;
                }
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Matcher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            #[serde(default)]
            signal: Option<String>,
            #[serde(default)]
            waitpoint: Option<String>,
        }
        let Fields { signal, waitpoint } = object(deserializer, "an object with signal and waitpoint")?;
        Ok(Matcher { name: signal, waitpoint })
    }
}

impl Serialize for Matcher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("signal", &self.name)?;
        if let Some(key) = &self.waitpoint {
            map.serialize_entry("waitpoint", key)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(json: &str) -> Result<Condition, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    fn signal(name: Option<&str>, waitpoint: Option<&str>) -> Condition {
        Condition::Signal { name: name.map(str::to_owned), waitpoint: waitpoint.map(str::to_owned) }
    }

    #[test]
    fn every_kind_is_read_and_written_as_the_api_says() {
        let matcher = |name: Option<&str>, waitpoint: Option<&str>| {
            Some(Matcher { name: name.map(str::to_owned), waitpoint: waitpoint.map(str::to_owned) })
        };
        for (json, condition) in [
            (r#"{"signal":"paid"}"#, signal(Some("paid"), None)),
            (r#"{"signal":null}"#, signal(None, None)),
            (r#"{"signal":"paid","waitpoint":"door"}"#, signal(Some("paid"), Some("door"))),
            (r#"{"signal":null,"waitpoint":"door"}"#, signal(None, Some("door"))),
            (
                r#"{"any_of":[{"signal":"a"},{"all_of":[{"signal":"b"}]}]}"#,
                Condition::AnyOf(vec![signal(Some("a"), None), Condition::AllOf(vec![signal(Some("b"), None)])]),
            ),
            (r#"{"count":3,"over":"signals"}"#, Condition::Count { n: 3, over: Over::Signals, of: None }),
            (
                r#"{"count":2,"over":"waitpoints","of":{"signal":"ok"}}"#,
                Condition::Count { n: 2, over: Over::Waitpoints, of: matcher(Some("ok"), None) },
            ),
            (
                r#"{"count":2,"over":"approvers","of":{"signal":null,"waitpoint":"door"}}"#,
                Condition::Count { n: 2, over: Over::Approvers, of: matcher(None, Some("door")) },
            ),
        ] {
            assert_eq!(read(json).as_ref(), Ok(&condition), "{json}");
            assert_eq!(serde_json::to_string(&condition).unwrap(), json);
        }
    }

    #[test]
    fn an_absent_optional_field_is_a_null_one() {
        for (json, condition) in [
            ("{}", signal(None, None)),
            (r#"{"waitpoint":"door"}"#, signal(None, Some("door"))),
            (r#"{"signal":"a","waitpoint":null,"over":null,"of":null}"#, signal(Some("a"), None)),
            (
                r#"{"count":1,"over":"signals","of":{}}"#,
                Condition::Count { n: 1, over: Over::Signals, of: Some(Matcher::default()) },
            ),
            (r#"{"count":1,"over":"signals","of":null}"#, Condition::Count { n: 1, over: Over::Signals, of: None }),
        ] {
            assert_eq!(read(json).as_ref(), Ok(&condition), "{json}");
        }
    }

    #[test]
    fn what_does_not_belong_is_refused_by_name() {
        for (json, words) in [
            (r#"{"signals":"a"}"#, "unknown field `signals`"),
            (r#"{"any_of":[{"signal":"a","n":1}]}"#, "unknown field `n`"),
            (r#"{"count":1,"over":"signals","of":{"name":"a"}}"#, "unknown field `name`"),
            (r#"{"signal":"a","signal":"b"}"#, "duplicate field `signal`"),
            (r#"{"signal":"a","any_of":[]}"#, "signal and any_of do not go together"),
            (r#"{"any_of":[],"all_of":[]}"#, "any_of and all_of do not go together"),
            (r#"{"all_of":[],"waitpoint":"door"}"#, "waitpoint and all_of do not go together"),
            (r#"{"count":1,"over":"signals","waitpoint":"door"}"#, "waitpoint and count do not go together"),
            (r#"{"signal":"a","over":"signals"}"#, "over needs count"),
            (r#"{"of":{"signal":"a"}}"#, "of needs count"),
            (r#"{"count":1}"#, "missing field `over`"),
            (r#"{"count":1,"over":"people"}"#, "people"),
            (r#"{"count":-1,"over":"signals"}"#, "-1"),
            (r#"{"count":1.5,"over":"signals"}"#, "1.5"),
            (r#"{"count":null,"over":"signals"}"#, "null"),
            (r#"{"any_of":null}"#, "null"),
            (r#"{"signal":7}"#, "7"),
            ("null", "null"),
            ("[]", "expected a condition object"),
            (r#"["a",null]"#, "expected a condition object"),
            (r#"{"count":1,"over":"signals","of":["a"]}"#, "expected an object with signal and waitpoint"),
            (r#""paid""#, "paid"),
        ] {
            let error = read(json).expect_err(json);
            assert!(error.contains(words), "{json}: {error}");
        }
    }

    #[test]
    fn a_very_deep_condition_is_refused_and_does_not_overflow_the_stack() {
        let deep = format!("{}{{}}{}", r#"{"any_of":["#.repeat(10_000), "]}".repeat(10_000));
        assert!(read(&deep).unwrap_err().contains("recursion limit"));
    }

    fn any_condition() -> impl Strategy<Value = Condition> {
        let text = || proptest::option::of("[a-z\"\\\\é]{1,4}");
        let over = prop_oneof![Just(Over::Signals), Just(Over::Waitpoints), Just(Over::Approvers)];
        let matcher = (text(), text()).prop_map(|(name, waitpoint)| Matcher { name, waitpoint });
        let leaf = prop_oneof![
            (text(), text()).prop_map(|(name, waitpoint)| Condition::Signal { name, waitpoint }),
            (1u32..=1000, over, proptest::option::of(matcher)).prop_map(|(n, over, of)| Condition::Count {
                n,
                over,
                of
            }),
        ];
        leaf.prop_recursive(3, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 1..4).prop_map(Condition::AnyOf),
                proptest::collection::vec(inner, 1..4).prop_map(Condition::AllOf),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_condition_reads_back_as_written(condition in any_condition()) {
            let json = serde_json::to_string(&condition).unwrap();
            prop_assert_eq!(read(&json), Ok(condition));
        }
    }
}
