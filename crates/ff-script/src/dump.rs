//! The whole content of a store as plain values, for comparing hosts in tests.

use std::collections::BTreeMap;

use rmpv::Value;

/// Every key of a store with its content.
pub type Dump = BTreeMap<String, DumpValue>;

/// The content of one key.
#[derive(Debug, Clone, PartialEq)]
pub enum DumpValue {
    /// Fields and values.
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    /// Members and scores.
    Zset(BTreeMap<Vec<u8>, f64>),
    /// Plain bytes.
    String(Vec<u8>),
    /// Entries in order: id, then fields and values in the order they were added.
    Stream(Vec<StreamEntry>),
}

/// An entry of a stream: its id, then fields and values.
pub type StreamEntry = (String, Vec<(Vec<u8>, Vec<u8>)>);

/// The dump, with the maps inside packed values sorted by name. Their order is not part of the format.
#[must_use]
pub fn ordered(dump: Dump) -> Dump {
    dump.into_iter()
        .map(|(key, value)| {
            let value = match value {
                DumpValue::String(bytes) => DumpValue::String(ordered_bytes(&bytes)),
                DumpValue::Hash(fields) => {
                    DumpValue::Hash(fields.into_iter().map(|(name, value)| (name, ordered_bytes(&value))).collect())
                }
                DumpValue::Stream(entries) => {
                    let fields = |fields: Vec<(Vec<u8>, Vec<u8>)>| {
                        fields.into_iter().map(|(name, value)| (name, ordered_bytes(&value))).collect()
                    };
                    DumpValue::Stream(entries.into_iter().map(|(id, pairs)| (id, fields(pairs))).collect())
                }
                DumpValue::Zset(members) => DumpValue::Zset(members),
            };
            (key, value)
        })
        .collect()
}

/// Packed lists and maps with sorted maps; other bytes unchanged.
#[must_use]
pub fn ordered_bytes(bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut out) = (bytes, Vec::with_capacity(bytes.len()));
    while !rest.is_empty() {
        match rmpv::decode::read_value_with_max_depth(&mut rest, 64) {
            Ok(value @ (Value::Array(_) | Value::Map(_))) => write_ordered(&mut out, &value),
            _ => return bytes.to_vec(),
        }
    }
    out
}

fn write_ordered(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Array(items) => {
            crate::wire::write_array_len(out, items.len());
            items.iter().for_each(|item| write_ordered(out, item));
        }
        Value::Map(entries) => {
            let mut entries: Vec<&(Value, Value)> = entries.iter().collect();
            entries.sort_by_key(|(name, _)| name.to_string());
            crate::wire::write_map_len(out, entries.len());
            for (name, value) in entries {
                write_ordered(out, name);
                write_ordered(out, value);
            }
        }
        Value::String(text) => crate::wire::write_bytes(out, &ordered_bytes(text.as_bytes())),
        other => rmpv::encode::write_value(out, other).expect("writing to memory cannot fail"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_come_in_order_wherever_they_stand() {
        let map = |names: [&[u8]; 2]| [&[0x82, 0xa1], names[0], &[1, 0xa1], names[1], &[1]].concat();
        let inside = |names| {
            let mut bytes = vec![0x92];
            bytes.extend(map(names));
            crate::wire::write_bytes(&mut bytes, &map(names));
            bytes
        };
        assert_eq!(ordered_bytes(&inside([b"b", b"a"])), inside([b"a", b"b"]));
        for plain in [&b"text"[..], &[0x81], &[0x93, 1], b"{\"a\":1}"] {
            assert_eq!(ordered_bytes(plain), plain);
        }
    }
}
