//! Stored records as bytes, for tests that damage them.

use ff_script::generated::EXECUTION_FIELDS;
use rmpv::Value;

/// The stored execution with one of its fields replaced, and what the field was.
pub fn replaced(record: &[u8], field: &str, value: Value) -> (Vec<u8>, Value) {
    let (_, at, within) =
        EXECUTION_FIELDS.iter().find(|(name, ..)| *name == field).expect("the execution has this field");
    let mut array = rmpv::decode::read_value(&mut &*record).expect("a stored execution is msgpack");
    let Value::Array(positions) = &mut array else { panic!("a stored execution is an array") };
    let place = match (&mut positions[*at], within) {
        (Value::Array(group), Some(within)) => &mut group[*within],
        (place, _) => place,
    };
    let was = std::mem::replace(place, value);
    let mut bytes = Vec::new();
    write(&mut bytes, &array);
    (bytes, was)
}

/// Bytes stay in the str family, the only one a store's interpreter reads.
fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Array(items) => {
            ff_script::wire::write_array_len(out, items.len());
            items.iter().for_each(|item| write(out, item));
        }
        Value::String(text) => ff_script::wire::write_bytes(out, text.as_bytes()),
        other => rmpv::encode::write_value(out, other).expect("memory"),
    }
}
