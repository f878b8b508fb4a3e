//! The Lua state: the library's functions, and exactly the globals that Valkey provides.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use ff_script::list::Class;
use mlua::{ChunkMode, Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};
use sha1::{Digest, Sha1};

use crate::raw;
use crate::store::Session;

/// Globals of Lua 5.1 that the library may use. All others are absent, and reading an absent global raises.
const GLOBALS: &[&str] = &[
    "assert",
    "error",
    "getmetatable",
    "ipairs",
    "math",
    "next",
    "pairs",
    "pcall",
    "rawequal",
    "rawget",
    "rawset",
    "select",
    "setmetatable",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "unpack",
];

/// Members of the standard tables that would break determinism or the sandbox.
const REMOVED: &[(&str, &[&str])] = &[("math", &["random", "randomseed"]), ("string", &["dump"])];

/// The number of instructions between checks of the instruction count.
const HOOK_EVERY: u32 = 100_000;

/// Ways to make writes to globals raise. A proxy sees every write, but makes every read slower. A guard costs nothing,
/// but sees new names only. Test mode uses proxies, so that a library that passes its tests needs only the guards.
const FREEZE: &str = r#"
local setmetatable, tostring, error = setmetatable, tostring, error
local function readonly() error("Attempt to modify a readonly table", 2) end
local function missing(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end
return {
  module_guard = function(inner)
    return setmetatable(inner, { __newindex = readonly, __metatable = false })
  end,
  module_proxy = function(inner)
    return setmetatable({}, { __index = inner, __newindex = readonly, __metatable = false })
  end,
  globals = function(inner)
    return setmetatable(inner, { __index = missing, __newindex = readonly, __metatable = false })
  end,
  gate = function(inner)
    local gate = { __index = inner, __newindex = readonly, __metatable = false }
    return setmetatable({}, gate), gate
  end,
}
"#;

/// A call ran more instructions than allowed.
struct Exhausted(u64);

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} instructions in one call", self.0)
    }
}

/// The loaded library.
pub(crate) struct Library {
    lua: Lua,
    functions: HashMap<String, Function>,
    instructions: Rc<Cell<u64>>,
    instructions_max: Rc<Cell<u64>>,
    per_operation: u64,
}

impl Library {
    /// Loads the library's text. An error is a defect in the text.
    pub fn load(text: &str, instructions_max: u64, strict: bool) -> Result<Library, String> {
        match catch_unwind(|| Self::build(text, instructions_max, strict)) {
            Ok(built) => built.map_err(|error| error.to_string()),
            Err(panic) => match panic.downcast::<Exhausted>() {
                Ok(exhausted) => Err(exhausted.to_string()),
                Err(panic) => resume_unwind(panic),
            },
        }
    }

    fn build(text: &str, instructions_max: u64, strict: bool) -> mlua::Result<Library> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::JIT;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        // Interpreter only: compiled code does not count instructions, so an endless loop could not be stopped.
        lua.load("jit.off()").exec()?;
        let freeze: Table = lua.load(FREEZE).eval()?;
        let freeze_module: Function = freeze.get(if strict { "module_proxy" } else { "module_guard" })?;

        let globals = lua.create_table()?;
        for (table, names) in REMOVED {
            let table: Table = lua.globals().get(*table)?;
            for name in *names {
                table.set(*name, Value::Nil)?;
            }
        }
        for name in GLOBALS {
            let value: Value = lua.globals().get(*name)?;
            let value = match value {
                Value::Table(table) => Value::Table(freeze_module.call(table)?),
                other => other,
            };
            globals.set(*name, value)?;
        }
        let natives = raw::natives(&lua)?;
        let redis = lua.create_table()?;
        redis.set("call", natives.call)?;
        redis.set("pcall", natives.pcall)?;
        redis.set("commit", natives.commit)?;
        redis.set("begin", natives.begin)?;
        redis.set("settle", natives.settle)?;
        redis.set("sha1hex", lua.create_function(|_, text: mlua::String| Ok(sha1_hex(&text.as_bytes())))?)?;
        globals.set("redis", freeze_module.call::<Table>(redis)?)?;
        let cmsgpack = lua.create_table()?;
        cmsgpack.set("pack", natives.pack)?;
        cmsgpack.set("unpack", natives.unpack)?;
        cmsgpack.set("unpack_limit", natives.unpack_limit)?;
        globals.set("cmsgpack", freeze_module.call::<Table>(cmsgpack)?)?;

        let loading = lua.create_table()?;
        let registered = lua.create_table()?;
        let redis_while_loading = lua.create_table()?;
        redis_while_loading.set("register_function", register_function(&lua, &registered)?)?;
        loading.set("redis", freeze_module.call::<Table>(redis_while_loading)?)?;

        let freeze_globals: Function = freeze.get("globals")?;
        let globals: Table = freeze_globals.call(globals)?;
        let loading: Table = freeze_globals.call(loading)?;
        let (environment, gate): (Table, Table) = freeze.get::<Function>("gate")?.call(loading)?;
        let instructions = Rc::new(Cell::new(0));
        let per_list = Rc::new(Cell::new(instructions_max));
        let (counter, limit) = (Rc::clone(&instructions), Rc::clone(&per_list));
        lua.set_hook(HookTriggers::new().every_nth_instruction(HOOK_EVERY), move |_, _| {
            counter.set(counter.get() + u64::from(HOOK_EVERY));
            if counter.get() > limit.get() {
                // mlua passes a panic through every `pcall` of the library; a `pcall` would catch an error.
                resume_unwind(Box::new(Exhausted(limit.get())));
            }
            Ok(VmState::Continue)
        })?;

        // As in Valkey, only `redis` exists while the text is loaded. The other globals appear when a function is
        // called.
        let chunk = lua.load(without_shebang(text)).set_name("@user_function").set_mode(ChunkMode::Text);
        chunk.set_environment(environment.clone()).exec()?;
        if !strict {
            for pair in globals.pairs::<Value, Value>() {
                let (name, value) = pair?;
                environment.raw_set(name, value)?;
            }
        }
        gate.set("__index", globals)?;

        let functions = registered.pairs::<String, Function>().collect::<mlua::Result<HashMap<_, _>>>()?;
        // The library keeps little memory. Collecting half as often costs a few megabytes and saves a third of the
        // collector's time.
        lua.gc_set_pause(400);
        lua.gc_collect()?;
        Ok(Library { lua, functions, instructions, instructions_max: per_list, per_operation: instructions_max })
    }

    /// The number of functions the library registered.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Runs a list on the session: first its head, then its operations. Returns a reply for each operation. An error
    /// means that the list itself raised, and then none of it counts.
    pub fn run(&self, session: &mut Session<'_>, class: Class, list: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        let operations = list.len() - 1;
        let function = class.function();
        let callback = self.functions.get(function).ok_or_else(|| format!("the library has no function {function}"))?;
        self.instructions.set(0);
        self.instructions_max.set(self.per_operation.saturating_mul(operations as u64));
        let run = || -> mlua::Result<Vec<Vec<u8>>> {
            let keys = self.lua.create_table()?;
            let args = self.lua.create_table_with_capacity(list.len(), 0)?;
            for (at, argument) in list.iter().enumerate() {
                args.raw_set(at + 1, self.lua.create_string(argument)?)?;
            }
            let answers: Table = raw::enter(session, || callback.call((keys, args)))?;
            answers.sequence_values::<mlua::String>().map(|answer| Ok(answer?.as_bytes().to_vec())).collect()
        };
        let answers = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(answers)) => answers,
            Ok(Err(mlua::Error::RuntimeError(text))) => return Err(text),
            Ok(Err(other)) => return Err(other.to_string()),
            Err(panic) => match panic.downcast::<Exhausted>() {
                Ok(exhausted) => return Err(exhausted.to_string()),
                Err(panic) => resume_unwind(panic),
            },
        };
        if answers.len() == operations {
            Ok(answers)
        } else {
            Err(format!("{} replies to {operations} operations", answers.len()))
        }
    }
}

/// `redis.register_function{function_name=, callback=, flags=}` or `redis.register_function(name, callback)`.
fn register_function(lua: &Lua, registered: &Table) -> mlua::Result<Function> {
    let registered = registered.clone();
    lua.create_function(move |_, (first, second): (Value, Option<Function>)| {
        let (name, callback) = match (first, second) {
            (Value::Table(options), None) => {
                (options.get::<String>("function_name")?, options.get::<Function>("callback")?)
            }
            (Value::String(name), Some(callback)) => (name.to_str()?.to_owned(), callback),
            _ => return Err(mlua::Error::runtime("wrong arguments to redis.register_function")),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(mlua::Error::runtime(format!(
                "function name {name:?} has characters other than letters, digits and _"
            )));
        }
        if registered.contains_key(name.as_str())? {
            return Err(mlua::Error::runtime(format!("function {name} is registered twice")));
        }
        registered.set(name, callback)
    })
}

/// The text without its `#!lua name=...` line. The line stays empty, so that line numbers stay correct.
fn without_shebang(text: &str) -> &str {
    if text.starts_with("#!") { text.find('\n').map_or("", |end| &text[end..]) } else { text }
}

fn sha1_hex(bytes: &[u8]) -> String {
    Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
