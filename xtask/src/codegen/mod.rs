//! Generates everything that follows from the contracts in `lua/`, so that each fact is declared once. Also generates
//! the reference of `ff` from its flags.

mod bundle;
mod commands;
mod contract;
mod error_codes;
mod limits;
mod lint;
mod lua_result;
mod packed;
mod reference;
mod rules;
mod rust;
mod source;
mod tokens;
mod type_expr;
mod version;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use source::Source;
use version::Version;

/// The options of codegen.
#[derive(clap::Args)]
pub struct Options {
    /// Write nothing; fail if a generated file is stale.
    #[arg(long)]
    check: bool,
    /// Write the reference of `ff` instead, from the declarations of its commands; this builds `ff`.
    #[arg(long)]
    commands: bool,
}

/// The reference of `ff`.
const COMMANDS: &str = "docs/reference/cli.md";

/// A generated file.
struct Output {
    /// Its path relative to the root.
    path: &'static str,
    text: String,
}

/// The results of a run.
struct Generated {
    outputs: Vec<Output>,
    /// Complaints of the lint about the library. If there are any, the run fails after writing.
    complaints: Vec<String>,
}

/// Generates and writes, or checks.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    // `ff` is compiled from the generated files, so it may not build now. Nothing else depends on it.
    let generated = if options.commands {
        Generated { outputs: vec![Output { path: COMMANDS, text: commands_reference(root)? }], complaints: Vec::new() }
    } else {
        generate(root)?
    };
    let stale = stale(root, &generated.outputs);
    if options.check {
        if !stale.is_empty() {
            bail!("stale, run `cargo xtask codegen`: {}", stale.join(", "));
        }
    } else {
        for output in generated.outputs.iter().filter(|output| stale.contains(&output.path)) {
            let path = root.join(output.path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
            }
            fs::write(&path, &output.text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote {}", output.path);
        }
    }
    if generated.complaints.is_empty() {
        Ok(())
    } else {
        bail!("the library uses what it must not:\n  {}", generated.complaints.join("\n  "))
    }
}

fn generate(root: &Path) -> Result<Generated> {
    let mut source = Source::read(&root.join("lua"))?;
    let packed = packed::write(&mut source)?;
    let complaints = lint::complaints(&source);
    let library = contract::load(&source)?;
    let working = Version::working(root)?;
    let number =
        version::number(&working, Version::committed(root).as_ref(), |number| bundle::write(&source, number).hash);
    let bundle = bundle::write(&source, number);
    bundle::try_load(&bundle.text)?;
    let outputs = vec![
        Output { path: "lua/record/packed.lua", text: packed.lua.clone() },
        Output { path: "lua/VERSION", text: format!("{number} {}\n", bundle.hash) },
        Output { path: "crates/ff-script/src/library.lua", text: bundle.text },
        Output {
            path: "crates/ff-script/src/generated.rs",
            text: rust::write(&library, &commands::used(&source))? + &packed.rust(&library)?,
        },
        Output { path: "crates/ff-script/src/generated_rules.rs", text: rules::write(&library) },
        Output { path: "crates/ff-core/src/error_code.rs", text: error_codes::write(&library) },
        Output { path: "crates/ff-core/src/limits.rs", text: limits::write(&library) },
        Output { path: "crates/ff-core/src/bounds.rs", text: limits::write_bounds(&library) },
        Output { path: "docs/reference/functions.md", text: reference::write(&library) },
    ];
    Ok(Generated { outputs, complaints })
}

/// The reference that `ff` prints about its own commands.
fn commands_reference(root: &Path) -> Result<String> {
    let said = crate::cargo::cargo(root).args(["run", "--quiet", "--package", "ff-cli", "--", "reference"]).output();
    let said = said.context("cannot run cargo")?;
    if !said.status.success() {
        bail!("ff does not say what it can do:\n{}", String::from_utf8_lossy(&said.stderr));
    }
    String::from_utf8(said.stdout).context("ff does not speak UTF-8")
}

/// The files that are stale.
fn stale(root: &Path, outputs: &[Output]) -> Vec<&'static str> {
    outputs
        .iter()
        .filter(|output| fs::read_to_string(root.join(output.path)).ok().as_deref() != Some(&output.text))
        .map(|output| output.path)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_up_to_date() {
        let root = crate::root();
        let generated = generate(&root).unwrap();
        let stale = stale(&root, &generated.outputs);
        assert!(stale.is_empty(), "stale, run `cargo xtask codegen`: {}", stale.join(", "));
    }

    #[test]
    fn the_library_uses_only_what_both_hosts_have() {
        let source = Source::read(&crate::root().join("lua")).unwrap();
        let complaints = lint::complaints(&source);
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}
