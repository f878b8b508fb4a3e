//! The bounds of contracts, which Rust checks before a call leaves the process.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::contract::{Field, Library, NamedType, Shape};
use super::rust::{camel, ident};
use super::type_expr::TypeExpr;

/// Writes `crates/ff-script/src/generated_rules.rs`.
pub fn write(library: &Library) -> String {
    let mut out = String::from(
        "//! The bounds of every contract; written by `cargo xtask codegen` from lua/, do not edit.\n\n\
         use crate::generated::*;\nuse crate::rules::{Bounded, Problem, Rule};\n\n",
    );
    let used = used(library);
    for ty in library.types.iter().filter(|ty| used.contains(ty.name.as_str())) {
        if let Some(rule) = rule_of(library, ty) {
            writeln!(out, "static {}: Rule = {rule};", constant(&ty.name)).expect("writing to memory cannot fail");
        }
    }
    for ty in library.types.iter().filter(|ty| used.contains(ty.name.as_str())) {
        let Shape::Struct { fields } = &ty.shape else { continue };
        if !is_flat(library, &ty.name) {
            write_struct(&mut out, library, &camel(&ty.name), fields);
        }
    }
    let calls: Vec<(&str, String)> = library
        .functions
        .iter()
        .map(|function| (function.name.as_str(), camel(function.name.trim_start_matches("ff_"))))
        .collect();
    for (function, (_, name)) in library.functions.iter().zip(&calls) {
        write_struct(&mut out, library, name, &function.args);
    }
    out.push_str(
        "\n/// Checks packed arguments of each function, for tests that compare with the library.\n\
         #[cfg(any(test, feature = \"samples\"))]\n\
         pub const CHECKS: &[(&str, crate::rules::PackedCheck)] = &[\n",
    );
    for (function, name) in calls {
        writeln!(out, "    (\"{function}\", crate::rules::check_packed::<{name}>),")
            .expect("writing to memory cannot fail");
    }
    out.push_str("];\n");
    out
}

/// The types that occur in arguments.
fn used(library: &Library) -> BTreeSet<&str> {
    let mut used = BTreeSet::new();
    let mut next: Vec<&str> =
        library.functions.iter().flat_map(|function| &function.args).flat_map(|field| field.ty.names()).collect();
    while let Some(name) = next.pop() {
        if !used.insert(name) {
            continue;
        }
        match library.named(name).map(|named| &named.shape) {
            Some(Shape::List { of, .. }) => next.extend(of.names()),
            Some(Shape::Map { key, value, .. }) => next.extend(key.names().into_iter().chain(value.names())),
            Some(Shape::Struct { fields }) => next.extend(fields.iter().flat_map(|field| field.ty.names())),
            _ => {}
        }
    }
    used
}

fn is_flat(library: &Library, name: &str) -> bool {
    library.types.iter().any(|ty| match &ty.shape {
        Shape::Struct { fields } => fields.iter().any(|field| field.flat && field.ty.names().contains(&name)),
        _ => false,
    })
}

fn constant(name: &str) -> String {
    name.to_ascii_uppercase()
}

/// The rule of a named type; `None` if its Rust type already ensures it.
fn rule_of(library: &Library, ty: &NamedType) -> Option<String> {
    let some = |bound: &Option<i64>| bound.map_or_else(|| "None".to_owned(), |bound| format!("Some({bound})"));
    let quoted = |text: &Option<String>| match text {
        Some(text) => format!("Some({text:?})"),
        None => "None".to_owned(),
    };
    Some(match &ty.shape {
        Shape::Int { min, max, .. } => format!("Rule::Int {{ min: {}, max: {} }}", min.as_ref()?, max.as_ref()?),
        Shape::Text { min, max, pattern, digits_max, refuse, code, .. } => {
            let refuse = match refuse {
                Some((pattern, problem)) => format!("Some(({pattern:?}, {problem:?}))"),
                None => "None".to_owned(),
            };
            format!(
                "Rule::Text {{ min: {}, max: {}, pattern: {}, digits_max: {}, refuse: {refuse}, code: {} }}",
                min.as_ref()?,
                max.as_ref()?,
                quoted(pattern),
                quoted(digits_max),
                quoted(code),
            )
        }
        Shape::Bytes { max } => format!("Rule::Bytes {{ max: {} }}", max.as_ref()?),
        Shape::List { of, max, bytes_max } => {
            format!("Rule::List {{ of: {}, max: {}, bytes_max: {} }}", rule(library, of), some(max), some(bytes_max))
        }
        Shape::Map { key, value, max } => {
            format!("Rule::Map {{ key: {}, value: {}, max: {} }}", rule(library, key), rule(library, value), some(max))
        }
        Shape::Bool | Shape::Uuid { .. } | Shape::Enum { .. } | Shape::Native { .. } | Shape::Struct { .. } => {
            return None;
        }
    })
}

/// A reference to the rule of a type.
fn rule(library: &Library, ty: &TypeExpr) -> String {
    match ty {
        TypeExpr::Optional(inner) => rule(library, inner),
        TypeExpr::List(inner) => {
            format!("&Rule::List {{ of: {}, max: None, bytes_max: None }}", rule(library, inner))
        }
        TypeExpr::Map(key, value) => {
            format!("&Rule::Map {{ key: {}, value: {}, max: None }}", rule(library, key), rule(library, value))
        }
        TypeExpr::Named(name) => {
            let named = library.named(name).expect("contracts are checked before");
            if rule_of(library, named).is_some() { format!("&{}", constant(name)) } else { "&Rule::Own".to_owned() }
        }
    }
}

/// True if a value of the type can be outside its bounds.
fn is_bounded(library: &Library, ty: &TypeExpr) -> bool {
    match ty {
        TypeExpr::Optional(inner) | TypeExpr::List(inner) => is_bounded(library, inner),
        TypeExpr::Map(key, value) => is_bounded(library, key) || is_bounded(library, value),
        TypeExpr::Named(name) => {
            let named = library.named(name).expect("contracts are checked before");
            rule_of(library, named).is_some() || matches!(named.shape, Shape::Struct { .. })
        }
    }
}

/// A struct keeps its rules if each field does. Fields are checked in the library's order.
fn write_struct(out: &mut String, library: &Library, name: &str, fields: &[Field]) {
    writeln!(out, "\nimpl Bounded for {name} {{\n    fn within(&self, _: &Rule) -> Result<(), Problem> {{")
        .expect("writing to memory cannot fail");
    write_checks(out, library, fields);
    out.push_str("        Ok(())\n    }\n}\n");
}

fn write_checks(out: &mut String, library: &Library, fields: &[Field]) {
    for field in fields {
        if field.flat {
            let inner = field.ty.names()[0];
            if let Some(Shape::Struct { fields }) = library.named(inner).map(|named| &named.shape) {
                write_checks(out, library, fields);
            }
        } else if is_bounded(library, &field.ty) {
            writeln!(
                out,
                "        self.{}.within({}).map_err(|problem| problem.within(\"{}\"))?;",
                ident(&field.name),
                rule(library, &field.ty),
                field.name
            )
            .expect("writing to memory cannot fail");
        }
    }
}
