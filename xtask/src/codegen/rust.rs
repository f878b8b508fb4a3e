//! The Rust types of contracts: a struct of arguments and a reply for each function, and the shared types.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Result, ensure};

use super::contract::{Field, Library, NamedType, Shape};
use super::type_expr::TypeExpr;

/// Words with a type in `ff-core`: its module and its name.
const CORE_WORDS: [(&str, &str, &str); 7] = [
    ("attempt_state", "state", "AttemptState"),
    ("blocking_reason", "state", "BlockingReason"),
    ("jitter", "policy", "Jitter"),
    ("on_hard", "contracts", "OnHard"),
    ("outcome", "state", "Outcome"),
    ("phase", "state", "LifecyclePhase"),
    ("public_state", "state", "PublicState"),
];

/// Structs that the HTTP API accepts and returns unchanged. They also get serde and a schema.
const TAKEN: [&str; 7] = ["fence", "backoff", "retry", "budget_ref", "quota_ref", "stream_options", "inbound"];

/// Structs that the HTTP API only returns, unchanged. Clients ignore unknown fields in them.
const SHOWN: [&str; 21] = [
    "failure",
    "progress",
    "operator_action",
    "flow_stop",
    "upstream",
    "quota_rate",
    "quota_weights",
    "quota_use",
    "quota_key_state",
    "open_waitpoint",
    "past_suspension",
    "approver_state",
    "webhook_status",
    "budget_action",
    "budget_period",
    "ledger_line",
    "budget_scope",
    "lane_definition",
    "step",
    "schedule_pause",
    "backfill",
];

/// The maximum number of a generated constructor's arguments; with more of them, field names are clearer.
const NEW_ARGS_MAX: usize = 7;

/// Writes `crates/ff-script/src/generated.rs`.
pub fn write(library: &Library, commands: &BTreeSet<&str>) -> Result<String> {
    let mut out = String::from(
        "//! Arguments and replies of every library function; written by `cargo xtask codegen` from lua/, do not edit.\n\n\
         use std::collections::BTreeMap;\n\n",
    );
    let ids: Vec<&str> = core_ids(library).into_iter().collect();
    writeln!(out, "use ff_core::types::{};", braced(&ids)).expect("writing to memory cannot fail");
    out.push_str(
        "use uuid::Uuid;\n\npub use crate::stored::{Event, EventValue, Summary, Task};\nuse crate::wire::Bytes;\n",
    );
    out.push_str("use crate::wire::declare::{\n    wire_call, wire_core_words, wire_record, wire_reply, wire_split_struct, wire_struct, wire_words,\n};\n\n");
    let core: Vec<&str> = library.types.iter().filter_map(|ty| core_word(&ty.name)).collect();
    for module in ["contracts", "policy", "state"] {
        let of_module = CORE_WORDS.iter().filter(|(_, of, _)| *of == module).map(|(_, _, name)| *name);
        let mut names: Vec<&str> = of_module.filter(|name| core.contains(name)).collect();
        names.sort_unstable();
        if !names.is_empty() {
            writeln!(out, "pub use ff_core::{module}::{};", braced(&names)).expect("writing to memory cannot fail");
        }
    }

    let mut specimens = Vec::new();
    let mut names = BTreeSet::new();
    let mut unique = |name: &str| -> Result<()> {
        ensure!(names.insert(name.to_owned()), "two contracts give the Rust name {name}");
        Ok(())
    };
    let flat: BTreeSet<&str> = library
        .types
        .iter()
        .filter_map(|ty| if let Shape::Struct { fields } = &ty.shape { Some(fields) } else { None })
        .flat_map(|fields| fields.iter().filter(|field| field.flat).flat_map(|field| field.ty.names()))
        .collect();
    for ty in &library.types {
        if flat.contains(ty.name.as_str()) {
            continue;
        }
        if matches!(ty.shape, Shape::Enum { .. } | Shape::Struct { .. }) {
            let name = core_word(&ty.name).map_or_else(|| camel(&ty.name), str::to_owned);
            unique(&name)?;
            out.push('\n');
            write_type(&mut out, library, ty, &name);
            specimens.push(name);
        }
    }
    for function in &library.functions {
        let name = camel(function.name.trim_start_matches("ff_"));
        let reply = format!("{name}Reply");
        unique(&name)?;
        unique(&reply)?;
        writeln!(out, "\nwire_struct! {{\n    /// {}\n    ///\n    /// Calls `{}`.", function.doc, function.name)
            .expect("writing to memory cannot fail");
        for code in &function.errs {
            writeln!(out, "    /// Fails with `{code}`.").expect("writing to memory cannot fail");
        }
        write_fields(&mut out, library, &name, &function.args);
        writeln!(out, "wire_reply! {{\n    /// The reply of [`{name}`].\n    {reply} {{")
            .expect("writing to memory cannot fail");
        for (variant, fields) in &function.reply {
            write!(out, "        {} (\"{variant}\")", camel(variant)).expect("writing to memory cannot fail");
            if !fields.is_empty() {
                out.push_str(" {\n");
                for field in fields {
                    let ty = rust_type(library, &field.ty);
                    writeln!(out, "            {} (\"{}\"): {ty},", ident(&field.name), field.name)
                        .expect("writing to memory cannot fail");
                }
                out.push_str("        }");
            }
            out.push_str(",\n");
        }
        out.push_str("    }\n}\n");
        let weight = function.weight.as_ref().map(|field| format!(", weight: {}", ident(field))).unwrap_or_default();
        let (function_name, read_only) = (&function.name, function.read_only());
        writeln!(out, "wire_call!({name} -> {reply}, \"{function_name}\", read_only: {read_only}{weight});")
            .expect("writing to memory cannot fail");
        write_new(&mut out, library, &name, &function.args.iter().collect::<Vec<_>>());
        specimens.extend([name, reply]);
    }

    out.push_str("\n/// The function names of the library, in its order.\npub const FUNCTIONS: &[&str] = &[\n");
    for function in &library.functions {
        writeln!(out, "    \"{}\",", function.name).expect("writing to memory cannot fail");
    }
    out.push_str("];\n");
    for (name, flag, doc) in [
        ("READING", "no-writes", "The functions that only read, sorted."),
        ("ENDING", "allow-oom", "The functions that end, free or take up work, sorted: a full store runs them too."),
    ] {
        let flagged: BTreeSet<&str> = library
            .functions
            .iter()
            .filter(|function| function.flags.iter().any(|own| own == flag))
            .map(|function| function.name.as_str())
            .collect();
        writeln!(out, "\n/// {doc}\npub const {name}: &[&str] = &[").expect("writing to memory cannot fail");
        for function in flagged {
            writeln!(out, "    \"{function}\",").expect("writing to memory cannot fail");
        }
        out.push_str("];\n");
    }
    out.push_str("\n/// The store commands the library uses; what an ACL has to allow beside FCALL.\npub const COMMANDS: &[&str] = &[\n");
    for command in commands {
        writeln!(out, "    \"{command}\",").expect("writing to memory cannot fail");
    }
    out.push_str(
        "];\n\n/// Every type of this file, for round-trip tests.\n#[cfg(any(test, feature = \"samples\"))]\n\
         pub const SPECIMENS: &[crate::sample::Specimen] = &[\n",
    );
    for name in specimens {
        writeln!(out, "    crate::sample::Specimen::of::<{name}>(\"{name}\"),").expect("writing to memory cannot fail");
    }
    out.push_str("];\n");
    Ok(out)
}

fn core_ids(library: &Library) -> BTreeSet<&str> {
    library
        .types
        .iter()
        .filter_map(|ty| match &ty.shape {
            Shape::Uuid { rust } | Shape::Int { rust, .. } | Shape::Text { rust, .. } => rust.as_deref(),
            _ => None,
        })
        .collect()
}

fn core_word(name: &str) -> Option<&'static str> {
    CORE_WORDS.iter().find(|(word, _, _)| *word == name).map(|(_, _, rust)| *rust)
}

fn write_type(out: &mut String, library: &Library, ty: &NamedType, name: &str) {
    let doc = ty.doc.clone().unwrap_or_else(|| format!("The contract type `{}`.", ty.name));
    match &ty.shape {
        Shape::Enum { values } => {
            let form = if core_word(&ty.name).is_some() { "wire_core_words" } else { "wire_words" };
            writeln!(out, "{form}! {{\n    /// {doc}\n    {name} {{").expect("writing to memory cannot fail");
            for value in values {
                writeln!(out, "        {} = \"{value}\",", camel(value)).expect("writing to memory cannot fail");
            }
            out.push_str("    }\n}\n");
        }
        Shape::Struct { fields } if fields.iter().any(|field| field.flat) => {
            write_split(out, library, name, &doc, fields);
        }
        Shape::Struct { fields } => {
            writeln!(out, "wire_struct! {{\n    /// {doc}").expect("writing to memory cannot fail");
            if TAKEN.contains(&ty.name.as_str()) || SHOWN.contains(&ty.name.as_str()) {
                write_api_fields(out, library, name, fields, TAKEN.contains(&ty.name.as_str()));
            } else {
                write_fields(out, library, name, fields);
            }
            let fields: Vec<&Field> = fields.iter().collect();
            write_new(out, library, name, &fields);
        }
        _ => {}
    }
}

fn write_fields(out: &mut String, library: &Library, name: &str, fields: &[Field]) {
    writeln!(out, "    {name} {{").expect("writing to memory cannot fail");
    for field in fields {
        write_field(out, library, field);
    }
    out.push_str("    }\n}\n");
}

/// The fields of a struct that the HTTP API accepts and returns.
fn write_api_fields(out: &mut String, library: &Library, name: &str, fields: &[Field], taken: bool) {
    let copied = if fields.iter().all(|field| is_copied(library, &field.ty)) { "Copy, " } else { "" };
    writeln!(out, "    #[derive({copied}serde::Serialize, serde::Deserialize)]")
        .expect("writing to memory cannot fail");
    if taken {
        out.push_str("    #[serde(deny_unknown_fields)]\n");
    }
    out.push_str("    #[cfg_attr(feature = \"openapi\", derive(utoipa::ToSchema))]\n");
    writeln!(out, "    {name} {{").expect("writing to memory cannot fail");
    for field in fields {
        if taken && field.ty.is_optional() {
            let once =
                if is_map(library, &field.ty) { ", default, deserialize_with = \"ff_core::json::once\"" } else { "" };
            writeln!(out, "        #[serde(skip_serializing_if = \"Option::is_none\"{once})]")
                .expect("writing to memory cannot fail");
        }
        if let Some(bounds) = schema_bounds(library, &field.ty) {
            writeln!(out, "        #[cfg_attr(feature = \"openapi\", schema({bounds}))]")
                .expect("writing to memory cannot fail");
        }
        write_field(out, library, field);
    }
    out.push_str("    }\n}\n");
}

/// True for types with small, plain values.
fn is_copied(library: &Library, ty: &TypeExpr) -> bool {
    match ty {
        TypeExpr::Optional(inner) => is_copied(library, inner),
        TypeExpr::List(_) | TypeExpr::Map(..) => false,
        TypeExpr::Named(name) => library.named(name).is_some_and(|named| {
            matches!(named.shape, Shape::Bool | Shape::Int { .. } | Shape::Uuid { .. } | Shape::Enum { .. })
        }),
    }
}

/// True for a map, optional or not.
fn is_map(library: &Library, ty: &TypeExpr) -> bool {
    match ty {
        TypeExpr::Optional(inner) => is_map(library, inner),
        TypeExpr::List(_) => false,
        TypeExpr::Map(..) => true,
        TypeExpr::Named(name) => library.named(name).is_some_and(|named| matches!(named.shape, Shape::Map { .. })),
    }
}

/// The bounds of a field for an OpenAPI document.
fn schema_bounds(library: &Library, ty: &TypeExpr) -> Option<String> {
    let inner = if let TypeExpr::Optional(inner) = ty { inner } else { ty };
    let TypeExpr::Named(name) = inner else { return None };
    let bounds: Vec<String> = match &library.named(name)?.shape {
        Shape::Int { min, max, rust: None } => {
            let bound = |word: &str, at: &Option<i64>| at.map(|at| format!("{word} = {at}_i64"));
            [bound("minimum", min), bound("maximum", max)].into_iter().flatten().collect()
        }
        Shape::Text { min, max, rust: None, .. } => {
            let bound = |word: &str, at: &Option<i64>| at.map(|at| format!("{word} = {at}"));
            [bound("min_length", min), bound("max_length", max)].into_iter().flatten().collect()
        }
        Shape::List { max, .. } => max.map(|max| format!("max_items = {max}")).into_iter().collect(),
        _ => Vec::new(),
    };
    (!bounds.is_empty()).then(|| bounds.join(", "))
}

fn write_field(out: &mut String, library: &Library, field: &Field) {
    let ty = rust_type(library, &field.ty);
    writeln!(out, "        /// {}", field_doc(library, &field.ty)).expect("writing to memory cannot fail");
    writeln!(out, "        {} (\"{}\"): {ty},", ident(&field.name), field.name).expect("writing to memory cannot fail");
}

/// A struct with some fields in a separate map, which is left out if all of them are absent.
fn write_split(out: &mut String, library: &Library, name: &str, doc: &str, fields: &[Field]) {
    writeln!(out, "wire_split_struct! {{\n    /// {doc}\n    {name} {{").expect("writing to memory cannot fail");
    let (apart, near): (Vec<&Field>, Vec<&Field>) = fields.iter().partition(|field| field.flat);
    let mut all = near.clone();
    for field in near {
        write_field(out, library, field);
    }
    for field in apart {
        let inner = field.ty.names()[0];
        let Some(Shape::Struct { fields }) = library.named(inner).map(|named| &named.shape) else {
            unreachable!("contracts are checked before")
        };
        writeln!(out, "    }} apart (\"{}\") {{", field.name).expect("writing to memory cannot fail");
        for field in fields {
            write_field(out, library, field);
        }
        all.extend(fields);
    }
    out.push_str("    }\n}\n");
    write_new(out, library, name, &all);
}

/// A constructor with the required fields only.
fn write_new(out: &mut String, library: &Library, name: &str, fields: &[&Field]) {
    let (optional, required): (Vec<&Field>, Vec<&Field>) =
        fields.iter().copied().partition(|field| field.ty.is_optional());
    if optional.is_empty() || required.len() > NEW_ARGS_MAX {
        return;
    }
    if required.is_empty() {
        let inits: Vec<String> = optional.iter().map(|field| format!("{}: None", ident(&field.name))).collect();
        writeln!(
            out,
            "impl Default for {name} {{\n    /// All fields absent.\n    fn default() -> Self {{\n        Self {{ {} }}\n    }}\n}}",
            inits.join(", ")
        )
        .expect("writing to memory cannot fail");
        return;
    }
    let args: Vec<String> =
        required.iter().map(|field| format!("{}: {}", ident(&field.name), rust_type(library, &field.ty))).collect();
    let mut inits: Vec<String> = required.iter().map(|field| ident(&field.name)).collect();
    inits.extend(optional.iter().map(|field| format!("{}: None", ident(&field.name))));
    writeln!(
        out,
        "impl {name} {{\n    /// The required fields only; optional ones are absent.\n    #[must_use]\n    pub fn new({}) -> Self {{\n        Self {{ {} }}\n    }}\n}}",
        args.join(", "),
        inits.join(", ")
    )
    .expect("writing to memory cannot fail");
}

/// The contract type and its bounds.
fn field_doc(library: &Library, ty: &TypeExpr) -> String {
    let mut doc = format!("`{ty}`");
    if let [name] = ty.names().as_slice()
        && let Some(named) = library.named(name)
    {
        let bounds = super::reference::bounds(named);
        if !bounds.is_empty() {
            write!(doc, ": {bounds}").expect("writing to memory cannot fail");
        }
        if let (Some(text), false) = (&named.doc, matches!(named.shape, Shape::Struct { .. })) {
            write!(doc, ". {text}").expect("writing to memory cannot fail");
        }
    }
    doc
}

/// The Rust type of a contract type.
pub fn rust_type(library: &Library, ty: &TypeExpr) -> String {
    match ty {
        TypeExpr::Optional(inner) => format!("Option<{}>", rust_type(library, inner)),
        TypeExpr::List(inner) => format!("Vec<{}>", rust_type(library, inner)),
        TypeExpr::Map(key, value) => format!("BTreeMap<{}, {}>", rust_type(library, key), rust_type(library, value)),
        TypeExpr::Named(name) => {
            let named = library.named(name).expect("contracts are checked before");
            match &named.shape {
                Shape::Bool => "bool".to_owned(),
                Shape::Int { rust, .. } => rust.clone().unwrap_or_else(|| "i64".to_owned()),
                Shape::Text { rust, .. } => rust.clone().unwrap_or_else(|| "String".to_owned()),
                Shape::Bytes { .. } => "Bytes".to_owned(),
                Shape::Uuid { rust } => rust.clone().unwrap_or_else(|| "Uuid".to_owned()),
                Shape::Native { rust } => rust.clone(),
                Shape::Enum { .. } | Shape::Struct { .. } => core_word(name).map_or_else(|| camel(name), str::to_owned),
                Shape::List { of, .. } => format!("Vec<{}>", rust_type(library, of)),
                Shape::Map { key, value, .. } => {
                    format!("BTreeMap<{}, {}>", rust_type(library, key), rust_type(library, value))
                }
            }
        }
    }
}

/// The end of a `use`: one name as it is, several in braces.
fn braced(names: &[&str]) -> String {
    if let [name] = names { (*name).to_owned() } else { format!("{{{}}}", names.join(", ")) }
}

/// `claim_grant` → `ClaimGrant`.
pub fn camel(name: &str) -> String {
    name.split(['_', '-', '.'])
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
        })
        .collect()
}

/// A field name; a Rust keyword becomes a raw identifier.
pub fn ident(name: &str) -> String {
    const KEYWORDS: [&str; 10] = ["type", "yield", "match", "loop", "ref", "use", "move", "in", "where", "for"];
    if KEYWORDS.contains(&name) { format!("r#{name}") } else { name.to_owned() }
}
