//! The library as one text that a store can load.
//!
//! While a store loads it, there are no Lua builtins, a chunk has at most 200 locals, and a function 60 upvalues.
//! Modules are therefore functions in one table, and run on the first call.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use mlua::{Lua, Table};
use sha2::{Digest, Sha256};

use super::lua_result::LuaResult;
use super::source::Source;

/// The bundle, and the digest of its text without the digest itself.
pub struct Bundle {
    pub text: String,
    pub hash: String,
}

/// Writes the bundle with this number.
pub fn write(source: &Source, number: u32) -> Bundle {
    let bare = text(source, number, "");
    let hash = hex::encode(Sha256::digest(&bare));
    Bundle { text: text(source, number, &hash), hash }
}

fn text(source: &Source, number: u32, hash: &str) -> String {
    let mut out = String::from("#!lua name=flowfabric\n");
    out.push_str("-- Written by `cargo xtask codegen` from lua/; do not edit.\n");
    writeln!(out, "local LIBRARY = {{ number = {number}, hash = \"{hash}\" }}").expect("writing to memory cannot fail");
    out.push_str("local source = {} -- module name -> function that returns the module\n");
    for module in &source.modules {
        write!(out, "\nsource[\"{}\"] = function(require, LIBRARY)\n{}\nend\n", module.name, module.text)
            .expect("writing to memory cannot fail");
    }
    out.push_str(
        r#"
local loaded = {}
local function require(name)
  local m = loaded[name]
  if m == nil then
    m = source[name](require, LIBRARY)
    if m == nil then m = true end
    loaded[name] = m
  end
  return m
end
local function run(kind) return function(_, args) return require("lib.define").run(kind, args) end end
local function library() return require("lib.define").library() end

redis.register_function{ function_name = "ff_library", callback = library, flags = { "no-writes" } }
redis.register_function{ function_name = "ff_read", callback = run("read"), flags = { "no-writes" } }
redis.register_function{ function_name = "ff_run", callback = run("run") }
redis.register_function{ function_name = "ff_end", callback = run("end"), flags = { "allow-oom" } }
"#,
    );
    out
}

/// Loads the bundle as a store does, with only `redis.register_function`, and checks that it registers its four
/// functions.
pub fn try_load(text: &str) -> Result<()> {
    let lua = Lua::new();
    let registered = lua.create_table().plain()?;
    let seen = registered.clone();
    let redis = lua.create_table().plain()?;
    let register =
        lua.create_function(move |_, entry: Table| seen.set(entry.get::<String>("function_name")?, true)).plain()?;
    redis.set("register_function", register).plain()?;
    let environment = lua.create_table().plain()?;
    environment.set("redis", redis).plain()?;
    let chunk = text.split_once('\n').map_or(text, |(_, rest)| rest);
    lua.load(chunk)
        .set_name("=library")
        .set_environment(environment)
        .exec()
        .plain()
        .context("the bundle does not load")?;
    let names: BTreeMap<String, bool> = registered.pairs().collect::<mlua::Result<_>>().plain()?;
    // Valkey 8.0 frees more than 64 of them in another thread while the interpreter is in use, and crashed.
    let expected = ["ff_end", "ff_library", "ff_read", "ff_run"];
    ensure!(names.keys().eq(expected.iter()), "the bundle registers {:?}", names.keys());
    Ok(())
}
