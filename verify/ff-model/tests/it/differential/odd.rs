//! Calls that no typed client makes: a field is missing, added, of another type or out of bounds, or the route is
//! wrong.
//!
//! Values that the hosts' msgpack reads differently, and that no client sends, are left out: the binary family,
//! integers from 2^63, bytes after the map.

use ff_script::wire::{write_bytes, write_map_len};
use ff_script::{Invocation, Route};
use rand::Rng;
use rand::rngs::StdRng;
use rmpv::{Utf8String, Value};

/// Makes something in the call invalid, most of the time.
pub fn spoil(mut invocation: Invocation, rng: &mut StdRng) -> Invocation {
    invocation.count_calls = rng.random();
    if rng.random_ratio(1, 12) {
        invocation.route = [Route::Fleet, Route::Config, Route::Execution(3), Route::Budget(0)][rng.random_range(0..4)];
        return invocation;
    }
    let mut args = rmpv::decode::read_value(&mut invocation.args.as_slice()).expect("a typed call is msgpack");
    for _ in 0..rng.random_range(1..3) {
        let size = count(&args);
        // Never the map itself: hosts reject that before the library runs.
        let at = if size > 1 { rng.random_range(1..size) } else { 0 };
        change(&mut args, at, rng);
    }
    invocation.args.clear();
    write(&args, &mut invocation.args);
    invocation
}

/// Writes invalid UTF-8 as text too: a server's msgpack has no binary family, and no client sends one.
fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => write_bytes(out, text.as_bytes()),
        Value::Map(entries) => {
            write_map_len(out, entries.len());
            for (name, value) in entries {
                write(name, out);
                write(value, out);
            }
        }
        Value::Array(items) => {
            rmp::encode::write_array_len(out, items.len() as u32).expect("writing to memory cannot fail");
            items.iter().for_each(|item| write(item, out));
        }
        plain => rmpv::encode::write_value(out, plain).expect("writing to memory cannot fail"),
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Map(entries) => entries.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}

/// Changes the value at this position of a depth-first walk; at 0, the content of the value.
fn change(value: &mut Value, mut at: usize, rng: &mut StdRng) {
    if at == 0 {
        let replacement = other(rng);
        match value {
            Value::Map(entries) if rng.random() => {
                let odd_name = rng.random_ratio(1, 4);
                let name = if odd_name {
                    other(rng)
                } else {
                    Value::from(["zzz", "execution_id", "aaa"][rng.random_range(0..3)])
                };
                // nil and NaN cannot be keys of a table, and the hosts' messages for them differ.
                if !matches!(name, Value::Nil | Value::F64(_) | Value::F32(_)) {
                    entries.push((name, replacement));
                }
            }
            Value::Array(items) if rng.random() => items.insert(rng.random_range(0..=items.len()), replacement),
            _ => *value = replacement,
        }
        return;
    }
    at -= 1;
    match value {
        Value::Array(items) => {
            for item in items.iter_mut() {
                let size = count(item);
                if at < size {
                    return change(item, at, rng);
                }
                at -= size;
            }
        }
        Value::Map(entries) => {
            let mut gone = None;
            for (number, (_, item)) in entries.iter_mut().enumerate() {
                let size = count(item);
                if at < size {
                    if at == 0 && rng.random_ratio(1, 4) {
                        gone = Some(number);
                        break;
                    }
                    return change(item, at, rng);
                }
                at -= size;
            }
            if let Some(number) = gone {
                entries.remove(number);
            }
        }
        _ => {}
    }
}

/// A value that is probably wrong in its place.
fn other(rng: &mut StdRng) -> Value {
    let text = |text: &str| Value::from(text);
    match rng.random_range(0..24) {
        0 => Value::Nil,
        1 => Value::from(true),
        2 => Value::from(0),
        3 => Value::from(-1),
        4 => Value::from(i64::from(rng.random::<u8>())),
        5 => Value::from((1_i64 << 53) - 1),
        6 => Value::from(1_i64 << 53),
        7 => Value::from(i64::MAX),
        8 => Value::from(i64::MIN),
        9 => Value::from(1.5),
        10 => Value::F64(f64::INFINITY),
        11 => Value::F64(f64::NAN),
        12 => Value::F32(3.0),
        13 => text(""),
        14 => text("a b,c\n\u{1F980}"),
        15 => Value::from("x".repeat([63, 65, 129, 257, 1_025, 4_097, 66_000][rng.random_range(0..7)])),
        16 => text("\u{0}{p:1}"),
        17 => Value::String(Utf8String::from("0A1B2C3D-0000-4000-8000-000000000000")),
        18 => Value::Array(vec![]),
        19 => Value::Map(vec![]),
        20 => Value::Array(vec![Value::from(1), Value::Nil, Value::from("three")]),
        21 => Value::Map(vec![(Value::from(1), Value::from("one")), (Value::from(true), Value::Nil)]),
        22 => (0..rng.random_range(1..20)).fold(Value::from(7), |inner, _| Value::Array(vec![inner])),
        _ => Value::Array((0..rng.random_range(60..70)).map(Value::from).collect()),
    }
}
