//! The bounds of the library as constants, from `lua/lib/limits.lua` and `lua/lib/types.lua`.

use std::fmt::Write as _;

use super::contract::{Library, Shape};

/// Writes `crates/ff-core/src/limits.rs`. Numbers of bytes are `usize`, all others `i64`.
pub fn write(library: &Library) -> String {
    let mut out = String::from(
        "//! Every bound of the library; written by `cargo xtask codegen` from lua/lib/limits.lua, do not edit.\n\n\
         #![allow(missing_docs, reason = \"lua/lib/limits.lua explains those that need it\")]\n\n",
    );
    for (name, value) in &library.limits {
        let ty = if name.contains("bytes_max") { "usize" } else { "i64" };
        writeln!(out, "pub const {}: {ty} = {};", name.to_uppercase(), grouped(*value))
            .expect("writing to memory cannot fail");
    }
    out
}

/// Writes `crates/ff-core/src/bounds.rs`: how long a text and how large a number of each type may be.
pub fn write_bounds(library: &Library) -> String {
    let mut out = String::from(
        "//! The bounds of the texts and numbers that contracts name; written by `cargo xtask codegen` from\n\
         //! lua/lib/types.lua, do not edit. A text is measured in bytes.\n\n\
         #![allow(missing_docs, reason = \"lua/lib/types.lua explains those that need it\")]\n\n\
         use std::ops::RangeInclusive;\n\n",
    );
    for ty in &library.types {
        let (kind, min, max) = match &ty.shape {
            Shape::Int { min: Some(min), max: Some(max), .. } => ("i64", min, max),
            Shape::Text { min: Some(min), max: Some(max), .. } => ("usize", min, max),
            _ => continue,
        };
        let sign = if *min < 0 { "-" } else { "" };
        let (name, min, max) = (ty.name.to_uppercase(), grouped(min.abs()), grouped(*max));
        writeln!(out, "pub const {name}: RangeInclusive<{kind}> = {sign}{min}..={max};").expect("memory");
    }
    out
}

/// `1048576` → `1_048_576`.
fn grouped(value: i64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        assert_eq!([7, 1_000, 1_048_576].map(grouped), ["7", "1_000", "1_048_576"]);
    }
}
