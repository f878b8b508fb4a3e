//! Straight-line Lua that opens and closes stored records, and the Rust types that read the same bytes. Both are
//! generated from the declared fields.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};
use mlua::{Lua, Table, Value};

use super::contract::Library;
use super::lint::COLUMNS_MAX;
use super::lua_result::LuaResult;
use super::rust::{camel, ident, rust_type};
use super::source::Source;
use super::type_expr::TypeExpr;

/// The module that declares the fields, and the generated one.
const DECLARED: &str = "record.fields";
const WRITTEN: &str = "record.packed";

/// A declared field.
struct Field {
    name: String,
    ty: TypeExpr,
    required: bool,
    /// If it is absent, so are all later single fields.
    ends: bool,
}

/// A record: fields with their own positions, then groups that share one each, and values that exist only in memory.
struct Record {
    name: String,
    fields: Vec<Field>,
    groups: Vec<Vec<Field>>,
    beside: Vec<String>,
}

/// Everything generated from the declared fields.
pub struct Packed {
    records: Vec<Record>,
    /// The Lua module.
    pub lua: String,
}

/// A line, wrapped after commas or before `or` if it is too long.
fn wrapped(line: &str) -> String {
    let indent = " ".repeat(line.len() - line.trim_start().len() + 4);
    let (mut out, mut rest) = (String::new(), line.to_owned());
    while rest.len() > COLUMNS_MAX {
        let head = &rest[..COLUMNS_MAX];
        let Some(at) = head.rfind(", ").map(|comma| comma + 1).or_else(|| head.rfind(" or ")) else { break };
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = format!("{indent}{}", rest[at..].trim_start());
    }
    out + &rest + "\n"
}

/// Puts the generated module into the source, in place of the one on disk.
pub fn write(source: &mut Source) -> Result<Packed> {
    let declared = source.modules.iter().find(|module| module.name == DECLARED);
    let declared = declared.with_context(|| format!("there is no module {DECLARED}"))?;
    let records = read(&declared.text)?;
    let mut lua = String::from(HEAD);
    for record in &records {
        open(&mut lua, record);
        close(&mut lua, record);
    }
    lua.push_str("\nreturn packed\n");
    let lua: String = lua.lines().map(wrapped).collect();
    let module = source.modules.iter_mut().find(|module| module.name == WRITTEN);
    module.with_context(|| format!("the manifest does not name {WRITTEN}"))?.text = lua.clone();
    Ok(Packed { records, lua })
}

const HEAD: &str = r##"-- Written by `cargo xtask codegen` from lua/record/fields.lua; do not edit.
local packed = {}

local pack, unpack_limit, byte = cmsgpack.pack, cmsgpack.unpack_limit, string.byte
local pcall, select, error = pcall, select, error

-- The values of an array: as many as it says, and nothing behind them.
local function whole(key, count, fine, _, ...)
  if not fine or count ~= select("#", ...) then error("CORRUPT " .. key .. " array", 0) end
  return key, ...
end

-- The values of a stored array, without a table for it: they begin behind its head. The key comes first.
local function values(key, stored)
  local head, high, low = byte(stored, 1, 3)
  if head == 220 and low then return whole(key, high * 256 + low, pcall(unpack_limit, stored, 1000, 3)) end
  if head and head > 144 and head < 160 then return whole(key, head - 144, pcall(unpack_limit, stored, 1000, 1)) end
  error("CORRUPT " .. key .. " array", 0)
end

packed.values = values

local function missing(key, names, ...)
  for i = 1, #names do
    if (select(i, ...)) == nil then error("CORRUPT " .. key .. " " .. names[i], 0) end
  end
end

-- Packs a record with the values that a newer library put behind the known ones.
local function with_tail(array, known, tail)
  for i = #array + 1, known do array[i] = false end
  for i = 1, #tail do array[known + i] = tail[i] end
  return pack(array)
end
"##;

fn read(text: &str) -> Result<Vec<Record>> {
    let lua = Lua::new();
    let declared: Table = lua.load(text).eval().plain().context("lua/record/fields.lua does not load")?;
    let mut records = Vec::new();
    for pair in declared.pairs::<String, Table>() {
        let (name, list) = pair.plain()?;
        let mut record = Record { name, fields: Vec::new(), groups: Vec::new(), beside: Vec::new() };
        for value in list.sequence_values::<Value>() {
            match value.plain()? {
                Value::String(text) => {
                    ensure!(record.groups.is_empty(), "{}: groups stand behind single fields", record.name);
                    record.fields.push(field(&text.to_str().plain()?)?);
                }
                Value::Table(group) => {
                    let texts = group.sequence_values::<String>().collect::<mlua::Result<Vec<_>>>().plain()?;
                    record.groups.push(texts.iter().map(|text| field(text)).collect::<Result<_>>()?);
                }
                other => bail!("{}: a field is a text or a list of texts, not {}", record.name, other.type_name()),
            }
        }
        if let Some(beside) = list.get::<Option<Vec<String>>>("beside").plain()? {
            record.beside = beside;
        }
        records.push(record);
    }
    records.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(records)
}

fn field(text: &str) -> Result<Field> {
    let (name, ty) = text.split_once(' ').with_context(|| format!("{text:?} is not a name and a type"))?;
    let (required, ends) = (ty.ends_with('!'), ty.ends_with('|'));
    let ty = TypeExpr::parse(ty.trim_end_matches(['!', '|']))?;
    let ty = if required { ty } else { TypeExpr::Optional(Box::new(ty)) };
    Ok(Field { name: name.to_owned(), ty, required, ends })
}

fn open(out: &mut String, record: &Record) {
    let positions = record.fields.len() + record.groups.len();
    let parameters: Vec<String> = (1..=positions).map(|at| format!("a{at}")).collect();
    let parameters = parameters.join(", ");
    writeln!(out, "\nlocal function open_{}(key, {parameters}, ...)", record.name)
        .expect("writing to memory cannot fail");
    let required: Vec<(usize, &str)> = record
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.required)
        .map(|(at, field)| (at + 1, field.name.as_str()))
        .collect();
    if !required.is_empty() {
        let absent: Vec<String> = required.iter().map(|(at, _)| format!("not a{at}")).collect();
        let names: Vec<String> = required.iter().map(|(_, name)| format!("\"{name}\"")).collect();
        let values: Vec<String> = required.iter().map(|(at, _)| format!("a{at} or nil")).collect();
        writeln!(
            out,
            "  if {} then missing(key, {{ {} }}, {}) end",
            absent.join(" or "),
            names.join(", "),
            values.join(", ")
        )
        .expect("writing to memory cannot fail");
    }
    out.push_str("  local rec = {\n");
    for (at, field) in record.fields.iter().enumerate() {
        let absent = if field.required { "" } else { " or nil" };
        writeln!(out, "    {} = a{}{absent},", field.name, at + 1).expect("writing to memory cannot fail");
    }
    for name in &record.beside {
        writeln!(out, "    {name} = nil,").expect("writing to memory cannot fail");
    }
    out.push_str("  }\n");
    for (group, fields) in record.groups.iter().enumerate() {
        let at = record.fields.len() + group + 1;
        writeln!(out, "  if a{at} then\n    local v").expect("writing to memory cannot fail");
        // Only present fields: clearing an absent field would allocate a slot for it.
        for (within, field) in fields.iter().enumerate() {
            writeln!(out, "    v = a{at}[{}] if v then rec.{} = v end", within + 1, field.name)
                .expect("writing to memory cannot fail");
        }
        out.push_str("  end\n");
    }
    writeln!(
        out,
        "  if select(\"#\", ...) > 0 then rec.tail = {{ ... }} end\n  return rec\nend\n\n\
         function packed.open_{0}(key, stored)\n  return open_{0}(values(key, stored))\nend",
        record.name
    )
    .expect("writing to memory cannot fail");
}

fn close(out: &mut String, record: &Record) {
    writeln!(out, "\nfunction packed.close_{}(rec)", record.name).expect("writing to memory cannot fail");
    let value = |field: &Field| {
        if field.required { format!("rec.{}", field.name) } else { format!("rec.{} or false", field.name) }
    };
    let single: Vec<String> = record.fields.iter().map(value).collect();
    let groups: Vec<String> = (1..=record.groups.len()).map(|group| format!("g{group}")).collect();
    for (group, fields) in groups.iter().zip(&record.groups) {
        let any: Vec<String> = fields.iter().map(|field| format!("rec.{}", field.name)).collect();
        let all: Vec<String> = fields.iter().map(|field| format!("rec.{} or false", field.name)).collect();
        writeln!(
            out,
            "  local {group} = false\n  if {}\n  then\n    {group} = {{ {} }}\n  end",
            any.join(" or "),
            all.join(", ")
        )
        .expect("writing to memory cannot fail");
    }
    let positions = single.len() + groups.len();
    writeln!(
        out,
        "  if rec.tail then return with_tail({{ {} }}, {positions}, rec.tail) end",
        [single.clone(), groups.clone()].concat().join(", ")
    )
    .expect("writing to memory cannot fail");
    if !groups.is_empty() {
        writeln!(
            out,
            "  if {} then return pack({{ {} }}) end",
            groups.join(" or "),
            [single.clone(), groups].concat().join(", ")
        )
        .expect("writing to memory cannot fail");
    }
    // The last possible end comes first, because then earlier ones need not be checked.
    let ends: Vec<usize> = record.fields.iter().enumerate().filter(|(_, field)| field.ends).map(|(at, _)| at).collect();
    for (place, at) in ends.iter().enumerate() {
        let later: Vec<String> =
            ends[place..].iter().map(|at| format!("rec.{} == nil", record.fields[*at].name)).collect();
        writeln!(out, "  if {} then return pack({{ {} }}) end", later.join(" and "), single[..*at].join(", "))
            .expect("writing to memory cannot fail");
    }
    writeln!(out, "  return pack({{ {} }})\nend", single.join(", ")).expect("writing to memory cannot fail");
}

impl Packed {
    /// The Rust types that read the same bytes, with the position of each field.
    pub fn rust(&self, library: &Library) -> Result<String> {
        let mut out = String::new();
        for record in &self.records {
            let name = camel(&record.name) + "Record";
            writeln!(out, "\nwire_record! {{\n    /// A stored `{}`.\n    {name} {{", record.name)
                .expect("writing to memory cannot fail");
            for field in &record.fields {
                declare(&mut out, library, field)?;
            }
            for group in &record.groups {
                out.push_str("        [\n");
                for field in group {
                    declare(&mut out, library, field)?;
                }
                out.push_str("        ]\n");
            }
            out.push_str("    }\n}\n");
        }
        Ok(out)
    }
}

fn declare(out: &mut String, library: &Library, field: &Field) -> Result<()> {
    for name in field.ty.names() {
        library.named(name).with_context(|| format!("{}: there is no type {name}", field.name))?;
    }
    writeln!(out, "        {} (\"{}\"): {},", ident(&field.name), field.name, rust_type(library, &field.ty))
        .expect("writing to memory cannot fail");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_between_its_items_and_stays_the_same_code() {
        let items: Vec<String> = (0..60).map(|at| format!("rec.field_{at} or false")).collect();
        for line in [format!("  return pack({{ {} }})", items.join(", ")), format!("  if {}", items.join(" or "))] {
            let broken = wrapped(&line);
            assert!(broken.lines().count() > 1 && broken.lines().all(|line| line.len() <= COLUMNS_MAX), "{broken}");
            assert!(broken.split_whitespace().eq(line.split_whitespace()), "{broken}");
        }
        assert_eq!(wrapped("  return rec"), "  return rec\n");
    }
}
