//! The contracts, types and error codes of the library, which are read by running its modules.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use mlua::{Function, Lua, Table, Value};

use super::lua_result::LuaResult;
use super::source::Source;
use super::type_expr::TypeExpr;

/// Everything the library declares.
pub struct Library {
    /// In manifest order.
    pub functions: Vec<FunctionContract>,
    /// In declaration order.
    pub types: Vec<NamedType>,
    /// In declaration order.
    pub errors: Vec<ErrorDeclaration>,
    /// Every bound, by name.
    pub limits: BTreeMap<String, i64>,
}

/// One function.
pub struct FunctionContract {
    pub name: String,
    pub doc: String,
    pub flags: Vec<String>,
    /// By name.
    pub args: Vec<Field>,
    /// Variants and their fields, each by name.
    pub reply: Vec<(String, Vec<Field>)>,
    pub errs: Vec<String>,
    /// The argument with the call's weight in a list; without one the weight is 1.
    pub weight: Option<String>,
}

impl FunctionContract {
    pub fn read_only(&self) -> bool {
        self.flags.iter().any(|flag| flag == "no-writes")
    }
}

/// A field of arguments, a reply or a struct.
pub struct Field {
    pub name: String,
    pub ty: TypeExpr,
    /// Whether its struct's fields stand beside the others in Rust.
    pub flat: bool,
}

/// A type with a name.
pub struct NamedType {
    pub name: String,
    pub doc: Option<String>,
    pub shape: Shape,
}

/// The structure of a named type.
pub enum Shape {
    Bool,
    Int {
        min: Option<i64>,
        max: Option<i64>,
        rust: Option<String>,
    },
    Text {
        min: Option<i64>,
        max: Option<i64>,
        pattern: Option<String>,
        /// The largest number that a run of digits in it may be.
        digits_max: Option<String>,
        /// A forbidden pattern, and the message for it.
        refuse: Option<(String, String)>,
        /// The code of a refusal, if it is not `invalid_argument`.
        code: Option<String>,
        rust: Option<String>,
    },
    Bytes {
        max: Option<i64>,
    },
    Uuid {
        rust: Option<String>,
    },
    Enum {
        values: Vec<String>,
    },
    /// Packed by the library and read by hand-written Rust.
    Native {
        rust: String,
    },
    List {
        of: TypeExpr,
        max: Option<i64>,
        bytes_max: Option<i64>,
    },
    Map {
        key: TypeExpr,
        value: TypeExpr,
        max: Option<i64>,
    },
    Struct {
        fields: Vec<Field>,
    },
}

pub struct ErrorDeclaration {
    pub code: String,
    pub class: String,
    pub doc: String,
}

impl Library {
    /// The type with this name.
    pub fn named(&self, name: &str) -> Option<&NamedType> {
        self.types.iter().find(|ty| ty.name == name)
    }
}

/// The classes of errors, which must equal those of `ff_core::error::Class`.
const CLASSES: [&str; 6] = ["Retryable", "Conflict", "Terminal", "Invalid", "NotFound", "Corrupt"];

/// Runs every module without a store, and collects the declarations.
pub fn load(source: &Source) -> Result<Library> {
    let lua = Lua::new();
    let require = prepare(&lua, source)?;
    let module = |name: &str| -> Result<Table> {
        require.call(name).plain().with_context(|| format!("cannot load module {name}"))
    };
    let types = read_types(&module("lib.types")?)?;
    let errors = read_errors(&module("lib.errors")?)?;
    let define = module("lib.define")?;
    for entry in &source.modules {
        require.call::<Value>(entry.name.as_str()).plain().with_context(|| format!("cannot load {}", entry.path()))?;
    }
    let contracts: Vec<Table> = define.get::<Function>("contracts").and_then(|list| list.call(())).plain()?;
    let functions = contracts.iter().map(read_function).collect::<Result<Vec<_>>>()?;
    let limits = module("lib.limits")?.pairs().collect::<mlua::Result<_>>().plain().context("lib.limits")?;
    let library = Library { functions, types, errors, limits };
    check(&library)?;
    Ok(library)
}

/// The bundle's `require`. Loading a module must not touch a store.
fn prepare(lua: &Lua, source: &Source) -> Result<Function> {
    let sources = lua.create_table().plain()?;
    for module in &source.modules {
        let text = format!("return function(require, LIBRARY) {}\nend", module.text);
        let function: Function = lua
            .load(text)
            .set_name(format!("@{}", module.path()))
            .eval()
            .plain()
            .with_context(|| format!("{} is not Lua 5.1", module.path()))?;
        sources.set(module.name.as_str(), function).plain()?;
    }
    lua.globals().set("redis", lua.create_table().plain()?).plain()?;
    lua.globals().set("cmsgpack", lua.create_table().plain()?).plain()?;
    lua.load(
        r#"
            local source = ...
            local loaded, library = {}, { number = 0, hash = "" }
            local function require(name)
              local m = loaded[name]
              if m == nil then
                if source[name] == nil then error("no module " .. name, 2) end
                m = source[name](require, library)
                if m == nil then m = true end
                loaded[name] = m
              end
              return m
            end
            return require
            "#,
    )
    .call(sources)
    .plain()
}

fn read_types(table: &Table) -> Result<Vec<NamedType>> {
    let mut types = Vec::new();
    for (group, entry) in groups(table)? {
        let name: String = entry.get("name").plain().context("a type lacks its name")?;
        let shape = read_shape(&group, &entry).with_context(|| format!("type {name}"))?;
        types.push(NamedType { name, doc: entry.get("doc").plain()?, shape });
    }
    Ok(types)
}

fn groups(table: &Table) -> Result<Vec<(String, Table)>> {
    let mut all = Vec::new();
    for group in ["scalar", "list", "map", "struct"] {
        for entry in table.get::<Vec<Table>>(group).plain().with_context(|| format!("lib.types lacks {group}"))? {
            all.push((group.to_owned(), entry));
        }
    }
    Ok(all)
}

fn read_shape(group: &str, entry: &Table) -> Result<Shape> {
    let bound = |name: &str| -> Result<Option<i64>> { entry.get(name).plain() };
    let ty = |name: &str| -> Result<TypeExpr> { TypeExpr::parse(&entry.get::<String>(name).plain()?) };
    Ok(match group {
        "list" => Shape::List { of: ty("of")?, max: bound("max")?, bytes_max: bound("bytes_max")? },
        "map" => Shape::Map { key: ty("key")?, value: ty("value")?, max: bound("max")? },
        "struct" => {
            let mut fields = Vec::new();
            for pair in entry.get::<Vec<Table>>("fields").plain()? {
                ensure!(pair.raw_len() == 2, "a field is {{ name, type }}");
                let (name, ty): (String, String) = (pair.get(1).plain()?, pair.get(2).plain()?);
                let flat = pair.get::<Option<bool>>("flat").plain()? == Some(true);
                fields.push(Field { name, ty: TypeExpr::parse(&ty)?, flat });
            }
            Shape::Struct { fields }
        }
        _ => match entry.get::<String>("base").plain()?.as_str() {
            "bool" => Shape::Bool,
            "int" => Shape::Int { min: bound("min")?, max: bound("max")?, rust: entry.get("rust").plain()? },
            "text" => Shape::Text {
                min: bound("min")?,
                max: bound("max")?,
                pattern: entry.get("pattern").plain()?,
                digits_max: entry.get("digits_max").plain()?,
                refuse: read_refused(entry)?,
                code: entry.get("code").plain()?,
                rust: entry.get("rust").plain()?,
            },
            "bytes" => Shape::Bytes { max: bound("max")? },
            "uuid" => Shape::Uuid { rust: entry.get("rust").plain()? },
            "enum" => Shape::Enum { values: entry.get("values").plain()? },
            "native" => Shape::Native { rust: entry.get("rust").plain()? },
            other => bail!("unknown base {other:?}"),
        },
    })
}

/// The forbidden pattern of a text.
fn read_refused(entry: &Table) -> Result<Option<(String, String)>> {
    let Some(refuse) = entry.get::<Option<Table>>("refuse").plain()? else { return Ok(None) };
    let problem: Option<String> = refuse.get("problem").plain()?;
    let problem = problem.unwrap_or_else(|| "holds a character that is not allowed".to_owned());
    Ok(Some((refuse.get("pattern").plain()?, problem)))
}

fn read_errors(table: &Table) -> Result<Vec<ErrorDeclaration>> {
    let mut errors = Vec::new();
    for entry in table.sequence_values::<Table>() {
        let entry = entry.plain()?;
        let code: String = entry.get("code").plain().context("an error lacks its code")?;
        let declaration = ErrorDeclaration {
            class: entry.get("class").plain().with_context(|| format!("error {code} lacks its class"))?,
            doc: entry.get("doc").plain().with_context(|| format!("error {code} lacks its doc"))?,
            code,
        };
        ensure!(
            CLASSES.contains(&declaration.class.as_str()),
            "error {} has the unknown class {:?}",
            declaration.code,
            declaration.class
        );
        errors.push(declaration);
    }
    Ok(errors)
}

fn read_function(table: &Table) -> Result<FunctionContract> {
    let name: String = table.get("name").plain().context("a function lacks its name")?;
    let read = || -> Result<FunctionContract> {
        let mut reply = Vec::new();
        for (variant, fields) in
            table.get::<BTreeMap<String, BTreeMap<String, String>>>("reply").plain().context("reply")?
        {
            reply.push((variant, read_fields(fields)?));
        }
        Ok(FunctionContract {
            name: name.clone(),
            doc: table.get("doc").plain().context("doc")?,
            flags: table.get::<Option<Vec<String>>>("flags").plain().context("flags")?.unwrap_or_default(),
            args: read_fields(table.get("args").plain().context("args")?)?,
            reply,
            errs: table.get::<Option<Vec<String>>>("errs").plain().context("errs")?.unwrap_or_default(),
            weight: table.get("weight").plain().context("weight")?,
        })
    };
    read().with_context(|| format!("contract of {name}"))
}

fn read_fields(fields: BTreeMap<String, String>) -> Result<Vec<Field>> {
    fields
        .into_iter()
        .map(|(name, ty)| {
            Ok(Field { ty: TypeExpr::parse(&ty).with_context(|| format!("field {name}"))?, name, flat: false })
        })
        .collect()
}

/// Checks that every name is declared exactly once.
fn check(library: &Library) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in library.types.iter().map(|ty| &ty.name).chain(library.functions.iter().map(|f| &f.name)) {
        ensure!(seen.insert(name), "{name} is declared twice");
    }
    let codes: BTreeSet<&str> = library.errors.iter().map(|error| error.code.as_str()).collect();
    ensure!(codes.len() == library.errors.len(), "an error code is declared twice");
    let known = |place: &str, ty: &TypeExpr| -> Result<()> {
        match ty.names().into_iter().find(|name| library.named(name).is_none()) {
            Some(name) => bail!("{place} has the unknown type {name}"),
            None => Ok(()),
        }
    };
    for ty in &library.types {
        match &ty.shape {
            Shape::List { of, .. } => known(&ty.name, of)?,
            Shape::Map { key, value, .. } => {
                known(&ty.name, key)?;
                known(&ty.name, value)?;
            }
            Shape::Struct { fields } => {
                for field in fields {
                    known(&format!("{}.{}", ty.name, field.name), &field.ty)?;
                }
            }
            _ => {}
        }
    }
    for function in &library.functions {
        ensure!(function.name.starts_with("ff_"), "{} must start with ff_", function.name);
        ensure!(!function.reply.is_empty(), "{} lacks a reply", function.name);
        for field in function.args.iter().chain(function.reply.iter().flat_map(|(_, fields)| fields)) {
            known(&format!("{}.{}", function.name, field.name), &field.ty)?;
            ensure!(!field.name.starts_with('_'), "{}: {} is an envelope field", function.name, field.name);
        }
        for (variant, fields) in &function.reply {
            let clash = fields.iter().any(|field| field.name == "is");
            ensure!(!clash, "{}: reply {variant} has a field named is", function.name);
        }
        if let Some(weight) = &function.weight {
            let known = function.args.iter().any(|field| field.name == *weight && !field.ty.is_optional());
            ensure!(known, "{}: its weight {weight} is no argument it must have", function.name);
        }
        for code in &function.errs {
            ensure!(codes.contains(code.as_str()), "{} has the unknown error {code}", function.name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::source::Module;
    use super::*;

    const DEFINE: &str = r"
        local list = {}
        return { fn = function(contract) list[#list + 1] = contract end, contracts = function() return list end }
    ";
    const TYPES: &str = r#"
        return {
          scalar = { { name = "uuid", base = "uuid" }, { name = "word", base = "enum", values = { "a", "b" } } },
          list = { { name = "words", of = "word", max = 3 } },
          map = {},
          struct = { { name = "pair", fields = { { "left", "word" }, { "right", "words?" } } } },
        }
    "#;
    const ERRORS: &str = r#"return { { code = "gone", class = "NotFound", doc = "It is gone." } }"#;

    fn library(function: &str) -> Result<Library> {
        let module = |name: &str, text: &str| Module { name: name.to_owned(), text: text.to_owned() };
        let function = format!("local define = require \"lib.define\"\ndefine.fn {{ {function} }}");
        load(&Source {
            modules: vec![
                module("manifest", r#"return { "lib.define", "lib.limits", "lib.types", "lib.errors", "a.b" }"#),
                module("lib.define", DEFINE),
                module("lib.limits", "return { name_max = 7 }"),
                module("lib.types", TYPES),
                module("lib.errors", ERRORS),
                module("a.b", &function),
            ],
        })
    }

    #[test]
    fn a_contract_is_read_with_its_fields_by_name() {
        let library = library(
            r#"name = "ff_x", doc = "Does x.", flags = { "no-writes" }, args = { pair = "pair", id = "uuid?" },
               reply = { done = { words = "[word]" }, none = {} }, errs = { "gone" }"#,
        )
        .unwrap();
        let [function] = library.functions.as_slice() else { panic!("one function") };
        assert!(function.read_only());
        let args: Vec<String> = function.args.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
        assert_eq!(args, ["id: uuid?", "pair: pair"]);
        let variants: Vec<&str> = function.reply.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(variants, ["done", "none"]);
    }

    #[test]
    fn a_contract_that_means_nothing_is_refused_by_name() {
        for (function, complaint) in [
            (
                r#"name = "ff_x", doc = "x", args = { a = "moon" }, reply = { done = {} }"#,
                "ff_x.a has the unknown type moon",
            ),
            (
                r#"name = "ff_x", doc = "x", args = {}, reply = { done = {} }, errs = { "lost" }"#,
                "ff_x has the unknown error lost",
            ),
            (r#"name = "ff_x", doc = "x", args = {}, reply = {}"#, "ff_x lacks a reply"),
            (r#"name = "x", doc = "x", args = {}, reply = { done = {} }"#, "x must start with ff_"),
            (
                r#"name = "ff_x", doc = "x", args = { _now = "uuid" }, reply = { done = {} }"#,
                "ff_x: _now is an envelope field",
            ),
            (
                r#"name = "ff_x", doc = "x", args = {}, reply = { done = { is = "uuid" } }"#,
                "ff_x: reply done has a field named is",
            ),
            (r#"name = "ff_x", doc = "x", args = { a = "[word" }, reply = { done = {} }"#, "contract of ff_x"),
        ] {
            let error = library(function).err().expect(function);
            assert_eq!(error.to_string(), complaint);
        }
    }
}
