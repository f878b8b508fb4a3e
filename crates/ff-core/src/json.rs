//! Reading JSON more strictly than serde does by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// A map in which every name stands once; JSON alone would let the last one win.
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
                        // The server's reader of bodies knows these words, and names the field.
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

/// Reads an optional map in which every name stands once.
pub fn once<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, T>>, D::Error> {
    Ok(Option::<Once<T>>::deserialize(deserializer)?.map(|Once(map)| map))
}

/// Reads a map in which every name stands once.
pub fn once_each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    Once::deserialize(deserializer).map(|Once(map)| map)
}

/// Reads a map of objects in which every name stands once.
pub fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let Once(map) = Once::<Object<T>>::deserialize(deserializer)?;
    Ok(map.into_iter().map(|(name, Object(value))| (name, value)).collect())
}

/// Reads a field that is there, also when it is null: an absent one stays `None`.
pub fn named<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A struct as an object. Serde alone would also take a list of its fields.
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
