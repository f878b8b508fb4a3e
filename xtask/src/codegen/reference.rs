//! The reference page of all functions and types.

use std::fmt::Write as _;

use super::contract::{Field, Library, NamedType, Shape};

/// Writes `docs/reference/functions.md`.
pub fn write(library: &Library) -> String {
    let mut out = String::from(
        "<!-- Written by `cargo xtask codegen` from lua/; do not edit. -->\n\
         # Library functions\n\n\
         Every state transition is one of these functions. A call is `FCALL <function> 1 <route> <msgpack map>`; the map holds the\n\
         arguments by name. The answer is a msgpack map: `{ok = {is = <outcome>, …}}` or `{err = <code>, detail = {…}}`.\n\
         `T?` may be absent, `[T]` is a list, `{K:V}` a map. A missing, unknown or mistyped field is refused with `invalid_argument`\n\
         and its name.\n\n\
         | function | |\n| --- | --- |\n",
    );
    for function in &library.functions {
        writeln!(out, "| [`{0}`](#{0}) | {1} |", function.name, cell(&function.doc))
            .expect("writing to memory cannot fail");
    }
    for function in &library.functions {
        writeln!(out, "\n## {}\n\n{}\n", function.name, function.doc).expect("writing to memory cannot fail");
        if !function.flags.is_empty() {
            writeln!(out, "Flags: {}.\n", codes(&function.flags)).expect("writing to memory cannot fail");
        }
        if function.args.is_empty() {
            out.push_str("No arguments.\n");
        } else {
            out.push_str("| argument | type | |\n| --- | --- | --- |\n");
            for field in &function.args {
                row(&mut out, library, field);
            }
        }
        out.push_str("\nReplies:\n");
        for (variant, fields) in &function.reply {
            let fields: Vec<String> = fields.iter().map(|field| format!("`{}: {}`", field.name, field.ty)).collect();
            let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
            writeln!(out, "- `{variant}`{fields}").expect("writing to memory cannot fail");
        }
        if !function.errs.is_empty() {
            writeln!(out, "\nFails with: {}.", codes(&function.errs)).expect("writing to memory cannot fail");
        }
    }

    out.push_str("\n# Types\n\n| type | |\n| --- | --- |\n");
    for ty in library.types.iter().filter(|ty| !matches!(ty.shape, Shape::Struct { .. })) {
        writeln!(out, "| `{}` | {} |", ty.name, cell(&described(ty))).expect("writing to memory cannot fail");
    }
    for ty in &library.types {
        let Shape::Struct { fields } = &ty.shape else {
            continue;
        };
        writeln!(out, "\n## {}\n", ty.name).expect("writing to memory cannot fail");
        if let Some(doc) = &ty.doc {
            writeln!(out, "{doc}\n").expect("writing to memory cannot fail");
        }
        out.push_str("| field | type | |\n| --- | --- | --- |\n");
        for field in fields {
            row(&mut out, library, field);
        }
    }

    out.push_str("\n# Error codes\n\n| code | class | |\n| --- | --- | --- |\n");
    for error in &library.errors {
        writeln!(out, "| `{}` | {} | {} |", error.code, error.class, cell(&error.doc))
            .expect("writing to memory cannot fail");
    }
    out
}

fn row(out: &mut String, library: &Library, field: &Field) {
    let about = match field.ty.names().as_slice() {
        [name] => library.named(name).map(described).unwrap_or_default(),
        _ => String::new(),
    };
    writeln!(out, "| `{}` | `{}` | {} |", field.name, field.ty, cell(&about)).expect("writing to memory cannot fail");
}

fn described(ty: &NamedType) -> String {
    let bounds = bounds(ty);
    match (&ty.doc, bounds.is_empty()) {
        (Some(doc), true) => doc.clone(),
        (Some(doc), false) => format!("{bounds}. {doc}"),
        (None, _) => bounds,
    }
}

/// The bounds of a type, as text.
pub fn bounds(ty: &NamedType) -> String {
    let items = |max: &Option<i64>| max.map(|max| format!(", at most {max}")).unwrap_or_default();
    match &ty.shape {
        Shape::Bool => "true or false".to_owned(),
        Shape::Int { min: Some(min), max: Some(max), .. } => format!("{min} to {max}"),
        Shape::Int { .. } => "an integer".to_owned(),
        Shape::Text { min, max, pattern, .. } => {
            let length = match (min, max) {
                (Some(min), Some(max)) => format!("{min} to {max} bytes"),
                (_, Some(max)) => format!("at most {max} bytes"),
                _ => "text".to_owned(),
            };
            pattern.as_ref().map_or(length.clone(), |pattern| format!("{length} of `{pattern}`"))
        }
        Shape::Bytes { max } => max.map_or_else(|| "bytes".to_owned(), |max| format!("at most {max} bytes")),
        Shape::Uuid { .. } => "a UUID in lower case".to_owned(),
        Shape::Enum { values } => values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "),
        Shape::List { of, max, .. } => format!("list of `{of}`{}", items(max)),
        Shape::Map { key, value, max } => format!("map from `{key}` to `{value}`{}", items(max)),
        Shape::Native { .. } => "packed".to_owned(),
        Shape::Struct { .. } => String::new(),
    }
}

fn codes(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Text inside a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
