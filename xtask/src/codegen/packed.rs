//! Straight-line Lua that opens and closes packed records, written from their declared fields.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use mlua::{Lua, Table, Value};

use super::lua_result::LuaResult;
use super::source::Source;

/// The module that declares the fields, and the one that is written from it.
const DECLARED: &str = "record.fields";
const WRITTEN: &str = "record.packed";

/// What stands at one position.
enum Position {
    Field(String),
    Group(Vec<String>),
}

/// What is written from the declared fields.
pub struct Packed {
    /// The Lua module.
    pub lua: String,
    /// Where each field stands, for Rust.
    pub rust: String,
}

/// Puts the written module into the source, in place of the one on disk.
pub fn write(source: &mut Source) -> Result<Packed> {
    let declared = source.modules.iter().find(|module| module.name == DECLARED);
    let declared = declared.with_context(|| format!("there is no module {DECLARED}"))?;
    let records = read(&declared.text)?;
    let mut text = String::from(
        "-- Written by `cargo xtask codegen` from lua/record/fields.lua; do not edit.\nlocal packed = {}\n\n\
         -- Positions a newer library knows are kept as they are.\n\
         local function tail(a, known)\n  local list = {}\n  for i = known + 1, #a do list[i - known] = a[i] end\n  return list\nend\n",
    );
    for (name, positions) in &records {
        open(&mut text, name, positions);
        close(&mut text, name, positions);
    }
    text.push_str("\nreturn packed\n");
    let module = source.modules.iter_mut().find(|module| module.name == WRITTEN);
    module.with_context(|| format!("the manifest does not name {WRITTEN}"))?.text = text.clone();
    Ok(Packed { lua: text, rust: places(&records) })
}

fn places(records: &[(String, Vec<Position>)]) -> String {
    let mut out = String::new();
    for (name, positions) in records {
        let constant = format!("{}_FIELDS", name.to_uppercase());
        writeln!(
            out,
            "\n/// Where the fields of a stored {name} stand: the position, and the place in the group that shares it.\n\
             pub const {constant}: &[(&str, usize, Option<usize>)] = &["
        )
        .expect("memory");
        for (at, position) in positions.iter().enumerate() {
            match position {
                Position::Field(field) => writeln!(out, "    (\"{field}\", {at}, None),").expect("memory"),
                Position::Group(fields) => {
                    for (within, field) in fields.iter().enumerate() {
                        writeln!(out, "    (\"{field}\", {at}, Some({within})),").expect("memory");
                    }
                }
            }
        }
        out.push_str("];\n");
    }
    out
}

fn read(text: &str) -> Result<Vec<(String, Vec<Position>)>> {
    let lua = Lua::new();
    let declared: Table = lua.load(text).eval().plain().context("lua/record/fields.lua does not load")?;
    let mut records = Vec::new();
    for pair in declared.pairs::<String, Table>() {
        let (name, list) = pair.plain()?;
        let mut positions = Vec::new();
        for value in list.sequence_values::<Value>() {
            positions.push(match value.plain()? {
                Value::String(field) => Position::Field(field.to_str().plain()?.to_owned()),
                Value::Table(group) => {
                    Position::Group(group.sequence_values::<String>().collect::<mlua::Result<_>>().plain()?)
                }
                other => bail!("{name}: a field is a name or a list of names, not {}", other.type_name()),
            });
        }
        records.push((name, positions));
    }
    records.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(records)
}

fn open(out: &mut String, name: &str, positions: &[Position]) {
    write!(out, "\nfunction packed.open_{name}(a)\n  local rec = {{\n").expect("memory");
    let mut of_spec = Vec::new();
    for (at, position) in positions.iter().enumerate() {
        let Position::Field(field) = position else { continue };
        match field.strip_prefix("spec.") {
            Some(field) => of_spec.push(format!("{field} = a[{}] or nil", at + 1)),
            None => writeln!(out, "    {field} = a[{}] or nil,", at + 1).expect("memory"),
        }
    }
    if !of_spec.is_empty() {
        writeln!(out, "    spec = {{ {} }},", of_spec.join(", ")).expect("memory");
    }
    out.push_str("  }\n  local g\n");
    for (at, position) in positions.iter().enumerate() {
        let Position::Group(fields) = position else { continue };
        writeln!(out, "  g = a[{}]\n  if g then", at + 1).expect("memory");
        for (within, field) in fields.iter().enumerate() {
            writeln!(out, "    rec.{field} = g[{}] or nil", within + 1).expect("memory");
        }
        out.push_str("  end\n");
    }
    writeln!(out, "  if a[{0} + 1] ~= nil then rec.tail = tail(a, {0}) end\n  return rec\nend", positions.len())
        .expect("memory");
}

fn close(out: &mut String, name: &str, positions: &[Position]) {
    write!(out, "\nfunction packed.close_{name}(rec)\n").expect("memory");
    let uses_spec = positions.iter().any(|position| match position {
        Position::Field(field) => field.starts_with("spec."),
        Position::Group(fields) => fields.iter().any(|field| field.starts_with("spec.")),
    });
    if uses_spec {
        out.push_str("  local spec = rec.spec\n");
    }
    let of = |field: &str| if field.starts_with("spec.") { field.to_owned() } else { format!("rec.{field}") };
    let mut groups = 0;
    let mut values = Vec::new();
    for position in positions {
        match position {
            Position::Field(field) => values.push(format!("{} or false", of(field))),
            Position::Group(fields) => {
                groups += 1;
                let any: Vec<String> = fields.iter().map(|field| of(field)).collect();
                let all: Vec<String> = fields.iter().map(|field| format!("{} or false", of(field))).collect();
                writeln!(
                    out,
                    "  local g{groups} = ({}) and true or false\n  if g{groups} then g{groups} = {{ {} }} end",
                    any.join(" or "),
                    all.join(", ")
                )
                .expect("memory");
                values.push(format!("g{groups}"));
            }
        }
    }
    writeln!(out, "  local a = {{\n    {},\n  }}", values.join(",\n    ")).expect("memory");
    out.push_str("  if rec.tail then\n    for i, value in ipairs(rec.tail) do a[");
    writeln!(out, "{} + i] = value end\n  end\n  return a\nend", positions.len()).expect("memory");
}
