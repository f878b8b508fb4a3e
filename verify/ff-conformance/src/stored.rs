//! Stored records as bytes, for tests that damage them.

use rmpv::Value;

/// The positions of a record's fields.
pub type Fields = &'static [(&'static str, usize, Option<usize>)];

/// The stored record with one field replaced, and the old value of the field.
pub fn replaced(fields: Fields, record: &[u8], field: &str, value: Value) -> (Vec<u8>, Value) {
    let (_, at, within) = fields.iter().find(|(name, ..)| *name == field).expect("the record has this field");
    let mut array = rmpv::decode::read_value(&mut &*record).expect("a stored record is msgpack");
    let Value::Array(positions) = &mut array else { panic!("a stored record is an array") };
    while positions.len() <= *at {
        positions.push(Value::Boolean(false));
    }
    let place = match (&mut positions[*at], within) {
        (Value::Array(group), Some(within)) => &mut group[*within],
        (place, _) => place,
    };
    let was = std::mem::replace(place, value);
    let mut bytes = Vec::new();
    write(&mut bytes, &array);
    (bytes, was)
}

/// Bytes are written in the str family, the only one that a store's interpreter reads.
fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Array(items) => {
            ff_script::wire::write_array_len(out, items.len());
            items.iter().for_each(|item| write(out, item));
        }
        Value::String(text) => ff_script::wire::write_bytes(out, text.as_bytes()),
        other => rmpv::encode::write_value(out, other).expect("writing to memory cannot fail"),
    }
}
