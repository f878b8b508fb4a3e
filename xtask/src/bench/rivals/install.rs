//! The rivals' packages. Drivers are copied to `target/rivals`, and npm installs their packages there.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Copies every driver, and installs the packages of these folders.
pub fn install(root: &Path, folders: &[&str]) -> Result<()> {
    let (from, to) = (root.join("benches/rivals"), root.join("target/rivals"));
    for folder in [&["common"], folders].concat() {
        let (from, to) = (from.join(folder), to.join(folder));
        fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
        for entry in fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
            let path = entry?.path();
            if let Some(name) = path.file_name().filter(|_| path.is_file()) {
                fs::copy(&path, to.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
            }
        }
    }
    for folder in folders {
        eprintln!("installing the packages of {folder} from npm");
        let status = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--loglevel", "error"])
            .current_dir(to.join(folder))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        ensure!(status.context("cannot run npm")?.success(), "npm could not install the packages of {folder}");
    }
    Ok(())
}

/// The version of an installed package.
pub fn version(root: &Path, folder: &str, package: &str) -> Result<String> {
    let path = root.join("target/rivals").join(folder).join("node_modules").join(package).join("package.json");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let package: serde_json::Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(package["version"].as_str().context("a package without a version")?.to_owned())
}
