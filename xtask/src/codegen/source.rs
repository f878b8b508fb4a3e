//! The library's files, in the order of its manifest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::lua_result::LuaResult;

/// All modules of the library.
pub struct Source {
    /// The manifest first, then all modules in its order.
    pub modules: Vec<Module>,
}

/// One file.
pub struct Module {
    /// The name for `require`, e.g. `lib.keys`.
    pub name: String,
    /// The text without trailing white space on its lines.
    pub text: String,
}

impl Module {
    /// The file's path, relative to the root.
    pub fn path(&self) -> String {
        format!("lua/{}.lua", self.name.replace('.', "/"))
    }
}

impl Source {
    /// Reads `lua/`. Fails on a file that is not in the manifest, and on a name without a file.
    pub fn read(folder: &Path) -> Result<Source> {
        let manifest = read_module(folder, "manifest")?;
        let names: Vec<String> = mlua::Lua::new()
            .load(&manifest.text)
            .set_name("@lua/manifest.lua")
            .eval()
            .plain()
            .context("lua/manifest.lua must return a list of module names")?;
        let mut modules = vec![manifest];
        let mut known = BTreeSet::from(["manifest".to_owned()]);
        for name in names {
            if !known.insert(name.clone()) {
                bail!("lua/manifest.lua names {name} twice");
            }
            modules.push(read_module(folder, &name)?);
        }
        let forgotten: Vec<String> =
            module_names(folder, "")?.into_iter().filter(|name| !known.contains(name)).collect();
        if !forgotten.is_empty() {
            bail!("lua/manifest.lua does not name {}", forgotten.join(", "));
        }
        Ok(Source { modules })
    }
}

fn read_module(folder: &Path, name: &str) -> Result<Module> {
    let path: PathBuf = folder.join(format!("{}.lua", name.replace('.', "/")));
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read module {name} at {}", path.display()))?;
    let text = text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned();
    Ok(Module { name: name.to_owned(), text })
}

/// Every module below a folder, in no particular order.
fn module_names(folder: &Path, prefix: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let file = entry.file_name().into_string().map_err(|name| anyhow::anyhow!("odd file name {name:?}"))?;
        if entry.file_type()?.is_dir() {
            names.extend(module_names(&entry.path(), &format!("{prefix}{file}."))?);
        } else if let Some(stem) = file.strip_suffix(".lua") {
            names.push(format!("{prefix}{stem}"));
        }
    }
    names.sort();
    Ok(names)
}
