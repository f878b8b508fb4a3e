//! The servers and the browser found on this machine.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fmt};

use anyhow::{Context, Result, bail};

/// The server product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flavour {
    /// Valkey, the main target.
    Valkey,
    /// Redis, kept compatible.
    Redis,
}

impl Flavour {
    /// The name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Flavour::Valkey => "valkey-server",
            Flavour::Redis => "redis-server",
        }
    }

    /// The environment variable with the path of the program; without it, `PATH` is searched.
    pub fn variable(self) -> &'static str {
        match self {
            Flavour::Valkey => "FF_VALKEY_SERVER",
            Flavour::Redis => "FF_REDIS_SERVER",
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

/// A server program that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerBinary {
    pub flavour: Flavour,
    pub path: PathBuf,
}

impl ServerBinary {
    /// Valkey, from `FF_VALKEY_SERVER` or `PATH`.
    pub fn valkey() -> Result<ServerBinary> {
        ServerBinary::find(Flavour::Valkey)
    }

    /// Redis, from `FF_REDIS_SERVER` or `PATH`.
    pub fn redis() -> Result<ServerBinary> {
        ServerBinary::find(Flavour::Redis)
    }

    /// The program of this flavour, from its environment variable or `PATH`.
    pub fn find(flavour: Flavour) -> Result<ServerBinary> {
        if let Some(path) = env::var_os(flavour.variable()) {
            let path = PathBuf::from(path);
            if !path.is_file() {
                bail!("{} names {}, which is not a file", flavour.variable(), path.display());
            }
            return Ok(ServerBinary { flavour, path });
        }
        on_path(flavour.program())
            .map(|path| ServerBinary { flavour, path })
            .with_context(|| format!("no {flavour} on PATH; set {} or run `cargo xtask test`", flavour.variable()))
    }

    /// The version it prints, e.g. `8.0.1`.
    pub fn version(&self) -> Result<String> {
        let output = Command::new(&self.path)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {} --version", self.path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.split_whitespace()
            .find_map(|word| word.strip_prefix("v="))
            .map(str::to_owned)
            .with_context(|| format!("{} --version printed {text:?}", self.path.display()))
    }
}

/// The environment variable with the path of the browser; without it, `PATH` is searched.
pub const CHROMIUM_VARIABLE: &str = "FF_CHROMIUM";

/// The browser, from `FF_CHROMIUM` or `PATH`.
pub fn chromium() -> Option<PathBuf> {
    let named = env::var_os(CHROMIUM_VARIABLE).map(PathBuf::from);
    named.or_else(|| ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(on_path))
}

/// A program on `PATH`, or in the usual directories.
fn on_path(program: &str) -> Option<PathBuf> {
    let directories = env::var_os("PATH").unwrap_or_default();
    let always = ["/usr/bin", "/usr/local/bin", "/usr/sbin"].map(PathBuf::from);
    env::split_paths(&directories).chain(always).map(|directory| directory.join(program)).find(|path| path.is_file())
}
