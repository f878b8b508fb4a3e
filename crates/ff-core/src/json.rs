//! Reading JSON more strictly than serde does by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

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
