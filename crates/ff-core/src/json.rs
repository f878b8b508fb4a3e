//! Reading JSON more strictly than serde does by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// A map with unique names. Plain serde would keep the last of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Once<T>(pub BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Once<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Once<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of dimensions")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once<T>, A::Error> {
                let mut read = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value()?;
                    if read.contains_key(&name) {
                        // The server's body reader recognises this message and names the field.
                        return Err(A::Error::custom(format!("duplicate field `{name}`")));
                    }
                    read.insert(name, value);
                }
                Ok(Once(read))
            }
        }
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

/// Reads an optional map with unique names.
pub fn once<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, T>>, D::Error> {
    Ok(Option::<Once<T>>::deserialize(deserializer)?.map(|Once(map)| map))
}

/// Reads a map with unique names.
pub fn once_each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    Once::deserialize(deserializer).map(|Once(map)| map)
}

/// Reads a map of objects with unique names.
pub fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let Once(map) = Once::<Object<T>>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(name, Object(value))| (name, value)).collect())
}

/// Reads a present field, even if it is null. An absent field is `None`.
pub fn named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Reads a struct from an object. Plain serde would also accept a list of its fields.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Reader(PhantomData))
    }
}
