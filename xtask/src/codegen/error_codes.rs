//! `ErrorCode`, from `lua/lib/errors.lua`.

use std::fmt::Write as _;

use super::contract::Library;
use super::rust::camel;

/// Writes `crates/ff-core/src/error_code.rs`.
pub fn write(library: &Library) -> String {
    let mut out = String::from(
        "//! The code of every refusal; written by `cargo xtask codegen` from lua/lib/errors.lua, do not edit.\n\n\
         use crate::error::Class;\nuse crate::text_enum::text_enum;\n\n\
         text_enum! {\n    /// The stable code of a refusal.\n    ErrorCode as \"error code\" {\n",
    );
    for error in &library.errors {
        writeln!(out, "        /// {}\n        {} = \"{}\",", error.doc, camel(&error.code), error.code)
            .expect("writing to memory cannot fail");
    }
    out.push_str(
        "    }\n}\n\nimpl ErrorCode {\n    /// What a caller can do about it.\n    #[must_use]\n    \
         pub const fn class(self) -> Class {\n        match self {\n",
    );
    for error in &library.errors {
        writeln!(out, "            ErrorCode::{} => Class::{},", camel(&error.code), error.class)
            .expect("writing to memory cannot fail");
    }
    out.push_str(
        "        }\n    }\n\n    /// What it means, in one sentence.\n    #[must_use]\n    \
         pub const fn doc(self) -> &'static str {\n        match self {\n",
    );
    for error in &library.errors {
        writeln!(out, "            ErrorCode::{} => {:?},", camel(&error.code), error.doc)
            .expect("writing to memory cannot fail");
    }
    out.push_str("        }\n    }\n}\n");
    out
}
