//! The contracts that the library declares: the arguments of each function, and every way to get them wrong.

use std::collections::BTreeMap;

use ff_script::Library;
use mlua::{Function, Lua, Table};
use rmpv::Value;

/// A function of the library.
pub struct Contract {
    pub name: &'static str,
    pub read_only: bool,
    /// Arguments and their types, in the order of their names.
    pub args: Vec<(String, String)>,
}

enum Shape {
    Bool,
    Int { min: i64, max: i64 },
    Text { min: usize, max: usize, picky: bool, code: &'static str },
    Bytes { max: usize },
    Uuid,
    Enum { first: String },
    List { of: String, max: Option<usize>, bytes_max: Option<usize> },
    Map { key: String, value: String, max: Option<usize> },
    Struct { fields: Vec<Named> },
}

/// A field of a struct. A flat one stands for the fields of its own struct.
#[derive(Clone)]
struct Named {
    name: String,
    spec: String,
    flat: bool,
}

/// The functions and the types of the library.
pub struct Contracts {
    pub functions: Vec<Contract>,
    types: BTreeMap<String, Shape>,
}

/// A wrong value in place of a right one, and the expected refusal.
pub struct Mistake {
    pub what: String,
    pub value: Value,
    /// The field in the refusal, relative to the value: `.retry.backoff`, `[0]`.
    pub path: String,
    pub code: &'static str,
}

const INVALID: &str = "invalid_argument";

impl Contracts {
    /// Reads the contracts through Lua, as the library itself does.
    pub fn read() -> Contracts {
        let lua = Lua::new();
        lua.load("cmsgpack = {}; redis = { register_function = function() end }").exec().expect("stubs");
        // The bundle hides its modules; one extra line exposes them.
        let bundle = Library::shipped().text.replacen("#!", "--", 1) + "\nreturn require";
        let require: Function = lua.load(bundle).set_name("library").eval().expect("the bundle");
        let manifest: Vec<String> = require.call("manifest").expect("the manifest");
        for module in &manifest {
            require.call::<mlua::Value>(module.as_str()).unwrap_or_else(|error| panic!("{module}: {error}"));
        }
        let define: Table = require.call("lib.define").expect("lib.define");
        let list: Vec<Table> =
            define.get::<Function>("contracts").and_then(|contracts| contracts.call(())).expect("the contracts");
        let types: Table = require.call("lib.types").expect("lib.types");
        Contracts { functions: list.iter().map(contract).collect(), types: shapes(&types) }
    }

    /// Only the required arguments.
    pub fn required(&self, contract: &Contract) -> BTreeMap<String, Value> {
        contract
            .args
            .iter()
            .filter(|(_, spec)| !spec.ends_with('?'))
            .map(|(name, spec)| (name.clone(), self.valid(spec)))
            .collect()
    }

    fn shape(&self, spec: &str) -> Shape {
        let spec = spec.trim_end_matches('?');
        if let Some(of) = spec.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return Shape::List { of: of.to_owned(), max: None, bytes_max: None };
        }
        match self.types.get(spec).unwrap_or_else(|| panic!("no type {spec}")) {
            Shape::Bool => Shape::Bool,
            Shape::Int { min, max } => Shape::Int { min: *min, max: *max },
            Shape::Text { min, max, picky, code } => Shape::Text { min: *min, max: *max, picky: *picky, code },
            Shape::Bytes { max } => Shape::Bytes { max: *max },
            Shape::Uuid => Shape::Uuid,
            Shape::Enum { first } => Shape::Enum { first: first.clone() },
            Shape::List { of, max, bytes_max } => Shape::List { of: of.clone(), max: *max, bytes_max: *bytes_max },
            Shape::Map { key, value, max } => Shape::Map { key: key.clone(), value: value.clone(), max: *max },
            Shape::Struct { fields } => Shape::Struct { fields: fields.clone() },
        }
    }

    /// A value the type accepts.
    pub fn valid(&self, spec: &str) -> Value {
        match self.shape(spec) {
            Shape::Bool => Value::from(false),
            Shape::Int { min, max } => Value::from(min.max(1).min(max)),
            Shape::Text { .. } if spec.starts_with("stream_id") => Value::from("1-0"),
            Shape::Text { min, .. } => Value::from("a".repeat(min.max(1))),
            Shape::Bytes { .. } => Value::from("bytes"),
            Shape::Uuid => Value::from("01890000-0000-7000-8000-000000000000"),
            Shape::Enum { first } => Value::from(first),
            Shape::List { of, .. } => Value::Array(vec![self.valid(&of)]),
            Shape::Map { key, value, .. } => Value::Map(vec![(self.valid(&key), self.valid(&value))]),
            Shape::Struct { fields } => {
                let required = fields.iter().filter(|field| !field.spec.ends_with('?'));
                Value::Map(required.map(|field| (Value::from(field.name.as_str()), self.valid(&field.spec))).collect())
            }
        }
    }

    /// Every kind of wrong value for the type: mistyped, out of bounds, too long, too many, missing, unknown.
    pub fn mistakes(&self, spec: &str) -> Vec<Mistake> {
        let here =
            |what: &str, value: Value| Mistake { what: what.to_owned(), value, path: String::new(), code: INVALID };
        match self.shape(spec) {
            Shape::Bool => vec![here("a number", Value::from(1)), here("text", Value::from("true"))],
            Shape::Int { min, max } => vec![
                here("text", Value::from("1")),
                here("a fraction", Value::F64(1.5)),
                here("true", Value::from(true)),
                here("not a number", Value::F64(f64::NAN)),
                here("too small", Value::from(min - 1)),
                here("too large", Value::from(max + 1)),
            ],
            Shape::Text { min, max, picky, code } => {
                let mut list =
                    vec![here("a number", Value::from(7)), here("a list", Value::Array(vec![Value::from("a")]))];
                list.push(Mistake { code, ..here("too long", Value::from("a".repeat(max + 1))) });
                if min > 0 {
                    list.push(Mistake { code, ..here("too short", Value::from("a".repeat(min - 1))) });
                }
                if picky {
                    list.push(Mistake {
                        code,
                        ..here("a character that is not allowed", Value::from("\n".repeat(min.max(1))))
                    });
                }
                list
            }
            Shape::Bytes { max } => {
                vec![here("a number", Value::from(7)), here("too long", Value::from("x".repeat(max + 1)))]
            }
            Shape::Uuid => [
                "",
                "a",
                "01890000-0000-7000-8000-00000000000g",
                "01890000-0000-7000-8000-00000000000A",
                "01890000000070008000000000000000",
            ]
            .into_iter()
            .map(|text| here("no UUID", Value::from(text)))
            .chain([here("a number", Value::from(7))])
            .collect(),
            Shape::Enum { .. } => vec![
                here("an unknown word", Value::from("zzz")),
                here("a number", Value::from(0)),
                here("empty", Value::from("")),
            ],
            Shape::List { of, max, bytes_max } => self.list_mistakes(&of, max, bytes_max),
            Shape::Map { key, value, max } => self.map_mistakes(&key, &value, max),
            Shape::Struct { fields } => self.struct_mistakes(&fields),
        }
    }

    fn list_mistakes(&self, of: &str, max: Option<usize>, bytes_max: Option<usize>) -> Vec<Mistake> {
        let here =
            |what: &str, value: Value| Mistake { what: what.to_owned(), value, path: String::new(), code: INVALID };
        let mut list =
            vec![here("text", Value::from("a")), here("a map", Value::Map(vec![(Value::from("a"), self.valid(of))]))];
        if let Some(max) = max {
            list.push(here("too many", Value::Array(vec![self.valid(of); max + 1])));
        }
        if let Some(bytes) = bytes_max {
            list.push(here("too many bytes in all", Value::Array(vec![Value::from("a".repeat(bytes / 2 + 1)); 2])));
        }
        list.extend(self.mistakes(of).into_iter().map(|mistake| Mistake {
            what: format!("an item that is {}", mistake.what),
            value: Value::Array(vec![self.valid(of), mistake.value]),
            path: format!("[1]{}", mistake.path),
            code: mistake.code,
        }));
        list
    }

    fn map_mistakes(&self, key: &str, value: &str, max: Option<usize>) -> Vec<Mistake> {
        let here =
            |what: &str, value: Value| Mistake { what: what.to_owned(), value, path: String::new(), code: INVALID };
        let mut list = vec![here("text", Value::from("a"))];
        if let Some(max) = max {
            let entries = (0..=max).map(|number| (Value::from(format!("k{number}")), self.valid(value))).collect();
            list.push(here("too many", Value::Map(entries)));
        }
        let name = self.valid(key);
        let shown = name.as_str().expect("keys are text").to_owned();
        list.extend(self.mistakes(value).into_iter().map(|mistake| Mistake {
            what: format!("a value that is {}", mistake.what),
            value: Value::Map(vec![(name.clone(), mistake.value)]),
            path: format!(".{shown}{}", mistake.path),
            code: mistake.code,
        }));
        for mistake in self.mistakes(key) {
            let (path, usable) = match &mistake.value {
                Value::String(text) => (format!(".{}", text.as_str().expect("text")), true),
                Value::Integer(_) => (".?".to_owned(), true),
                _ => (String::new(), false),
            };
            if usable {
                let entry = vec![(mistake.value, self.valid(value))];
                list.push(Mistake {
                    what: format!("a key that is {}", mistake.what),
                    value: Value::Map(entry),
                    path,
                    code: mistake.code,
                });
            }
        }
        list
    }

    fn struct_mistakes(&self, fields: &[Named]) -> Vec<Mistake> {
        let required: Vec<(Value, Value)> = fields
            .iter()
            .filter(|field| !field.spec.ends_with('?'))
            .map(|field| (Value::from(field.name.as_str()), self.valid(&field.spec)))
            .collect();
        let without = |name: &str| -> Vec<(Value, Value)> {
            required.iter().filter(|(key, _)| key.as_str() != Some(name)).cloned().collect()
        };
        let mut list =
            vec![Mistake { what: "text".to_owned(), value: Value::from("a"), path: String::new(), code: INVALID }];
        let mut unknown = required.clone();
        unknown.push((Value::from("zzz"), Value::from(1)));
        list.push(Mistake {
            what: "an unknown field".to_owned(),
            value: Value::Map(unknown),
            path: ".zzz".to_owned(),
            code: INVALID,
        });
        for Named { name, spec, flat } in fields {
            // To the caller, the fields of a flat struct are fields of this one.
            let shown = if *flat { String::new() } else { format!(".{name}") };
            if !spec.ends_with('?') {
                list.push(Mistake {
                    what: format!("{name} missing"),
                    value: Value::Map(without(name)),
                    path: format!(".{name}"),
                    code: INVALID,
                });
            }
            list.extend(self.mistakes(spec).into_iter().map(|mistake| {
                let mut entries = without(name);
                entries.push((Value::from(name.as_str()), mistake.value));
                Mistake {
                    what: format!("{name}: {}", mistake.what),
                    value: Value::Map(entries),
                    path: format!("{shown}{}", mistake.path),
                    code: mistake.code,
                }
            }));
        }
        list
    }
}

fn contract(table: &Table) -> Contract {
    let name: String = table.get("name").expect("a name");
    let args: Table = table.get("args").expect("args");
    let mut args: Vec<(String, String)> = args.pairs().map(|pair| pair.expect("a field")).collect();
    args.sort();
    let flags: Vec<String> = table.get::<Option<Vec<String>>>("flags").expect("flags").unwrap_or_default();
    Contract { name: Box::leak(name.into_boxed_str()), read_only: flags.iter().any(|flag| flag == "no-writes"), args }
}

fn shapes(types: &Table) -> BTreeMap<String, Shape> {
    let each = |family: &str| -> Vec<Table> { types.get(family).expect("a family of types") };
    let text = |table: &Table, field: &str| -> String { table.get(field).expect("a text") };
    let number = |table: &Table, field: &str| -> Option<usize> {
        table.get::<Option<f64>>(field).expect("a number").map(|n| n as usize)
    };
    let mut shapes = BTreeMap::new();
    for table in each("scalar") {
        let bound = |field: &str| table.get::<Option<f64>>(field).expect("a number").unwrap_or_default();
        let shape = match text(&table, "base").as_str() {
            "bool" => Shape::Bool,
            "int" => Shape::Int { min: bound("min") as i64, max: bound("max") as i64 },
            "text" => Shape::Text {
                min: bound("min") as usize,
                max: bound("max") as usize,
                picky: ["pattern", "refuse"].iter().any(|field| table.contains_key(*field).expect("a field")),
                code: table
                    .get::<Option<String>>("code")
                    .expect("a code")
                    .map_or(INVALID, |code| Box::leak(code.into_boxed_str())),
            },
            "bytes" => Shape::Bytes { max: bound("max") as usize },
            "uuid" => Shape::Uuid,
            "enum" => Shape::Enum { first: table.get::<Vec<String>>("values").expect("values").remove(0) },
            // Only in replies.
            "native" => continue,
            other => panic!("unknown base {other}"),
        };
        shapes.insert(text(&table, "name"), shape);
    }
    for table in each("list") {
        shapes.insert(
            text(&table, "name"),
            Shape::List { of: text(&table, "of"), max: number(&table, "max"), bytes_max: number(&table, "bytes_max") },
        );
    }
    for table in each("map") {
        shapes.insert(
            text(&table, "name"),
            Shape::Map { key: text(&table, "key"), value: text(&table, "value"), max: number(&table, "max") },
        );
    }
    for table in each("struct") {
        let fields: Vec<Table> = table.get("fields").expect("fields");
        let named = |field: &Table| Named {
            name: field.get(1).expect("a name"),
            spec: field.get(2).expect("a type"),
            flat: field.get("flat").unwrap_or_default(),
        };
        shapes.insert(text(&table, "name"), Shape::Struct { fields: fields.iter().map(named).collect() });
    }
    shapes
}
