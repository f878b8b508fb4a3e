//! Project chores: `cargo xtask <chore>`.

mod codegen;

use std::path::{Path, PathBuf};

use clap::Parser;

/// Project chores.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Write what is generated from the contracts in lua/: bundle, Rust types, error codes, reference page.
    Codegen(codegen::Options),
}

fn main() -> anyhow::Result<()> {
    match Chore::parse() {
        Chore::Codegen(options) => codegen::run(&root(), &options),
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}
