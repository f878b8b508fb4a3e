//! Tests the docs: runs every command of README.md and docs/ as a reader would, against a fresh `ff`, and follows every
//! link.
//!
//! The `sh` blocks of a page run one after the other in one shell, in an empty directory. The output of a block is
//! compared with the `text` or `json` block after it, and with its comments like `# → 3`. Ids and times may differ, and
//! `…` is any text.
//!
//! | block | what happens |
//! | --- | --- |
//! | `sh` | its commands are run; one that fails fails the page |
//! | `sh background` | one command, left running until the page ends or says `<!-- stop -->`; SIGTERM must end it well |
//! | `console` | a transcript: commands behind `$`, output below them; servers and workers are left running |
//! | `sh norun` | not run; its first line says why |
//! | `python NAME`, `json NAME`, `toml NAME`, `bash NAME`, `text NAME` | saved as this file |
//! | `python` | must compile |
//! | `rust` | the page must be among the doctests of the crate `flowfabric` |

mod compare;
mod links;
mod page;
mod session;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::built_ff;
use crate::python::Python;
use page::Page;
use session::Stage;

/// Pages outside docs/ whose links are followed; a reader begins with the first.
const PAGES: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "sdk/python/README.md"];
/// Programs that pages use and that may be missing.
const TOOLS: [&str; 6] = ["bash", "curl", "jq", "openssl", "python3", "valkey-cli"];
/// Number of pages that run at once.
const AT_ONCE: usize = 2;

/// The pages to run.
#[derive(Default, clap::Args)]
pub struct Options {
    /// Run only pages whose paths contain one of these.
    pages: Vec<String>,
}

/// Follows all links and runs the selected pages. Returns a short summary.
pub fn run(root: &Path, options: &Options) -> Result<String> {
    let all = pages(root)?;
    let mut problems = links::broken(root, &all)?;
    problems.extend(links::lost(root, &all)?);
    let mut read = Vec::new();
    for path in all.iter().filter(|path| path.starts_with("docs") || path.as_path() == Path::new(PAGES[0])) {
        read.push(Page::read(root, path.clone())?);
    }
    problems.extend(not_compiled(root, &read)?);
    let asked = |page: &&Page| {
        let path = page.path.display().to_string();
        page.runs() && (options.pages.is_empty() || options.pages.iter().any(|part| path.contains(part.as_str())))
    };
    let mut chosen: Vec<&Page> = read.iter().filter(asked).collect();
    // The longest first, so that no long page runs alone at the end.
    chosen.sort_by_key(|page| std::cmp::Reverse(page.texts().map(str::len).sum::<usize>()));
    ensure!(!chosen.is_empty(), "no page with commands is called like {}", options.pages.join(", "));
    let binaries = tempfile::Builder::new().prefix("ff-bin-").tempdir().context("no directory for ff")?;
    std::os::unix::fs::symlink(built_ff(root)?, binaries.path().join("ff")).context("cannot link to ff")?;
    let mut binaries_of_pages = vec![binaries.path().to_owned()];
    if let Some(python) = Python::find().filter(|_| chosen.iter().any(|page| needs(page, "python3"))) {
        binaries_of_pages.push(python.environment(root)?);
    }
    let stage = Stage { root: root.to_owned(), binaries: binaries_of_pages };
    let (ran, skipped, failed) = play(&stage, &chosen);
    problems.extend(failed);
    for problem in &problems {
        eprintln!("{problem}\n");
    }
    if !problems.is_empty() {
        bail!("{} problems", problems.len());
    }
    let skipped = if skipped.is_empty() { String::new() } else { format!(", skipped: {}", skipped.join("; ")) };
    Ok(format!("{ran} pages run, links of {} followed{skipped}", all.len()))
}

/// Every page, relative to the root, starting with the one where a reader begins.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = PAGES.iter().map(PathBuf::from).collect();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(root.join(&folder)).with_context(|| format!("cannot read {}", folder.display()))?
        {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "md") {
                found.push(path);
            }
        }
    }
    found[PAGES.len()..].sort();
    Ok(found)
}

/// Pages with Rust that no doctest compiles.
fn not_compiled(root: &Path, pages: &[Page]) -> Result<Vec<String>> {
    const DOCTESTS: &str = "crates/flowfabric/src/lib.rs";
    let doctests = std::fs::read_to_string(root.join(DOCTESTS)).with_context(|| format!("cannot read {DOCTESTS}"))?;
    let missing = |page: &&Page| !doctests.contains(&format!("include_str!(\"../../../{}\")", page.path.display()));
    let missing = pages.iter().filter(|page| page.has_rust).filter(missing);
    Ok(missing
        .map(|page| format!("{}: {DOCTESTS} does not include it, so its Rust is not compiled", page.path.display()))
        .collect())
}

/// Runs pages in parallel. Returns how many ran, which did not and why, and the problems.
fn play(stage: &Stage, pages: &[&Page]) -> (usize, Vec<String>, Vec<String>) {
    let missing: Vec<&str> = TOOLS.into_iter().filter(|tool| !installed(tool)).collect();
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (skipped, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let note =
        |list: &Mutex<Vec<String>>, what: Vec<String>| list.lock().expect("no holder of the lock panics").extend(what);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = page.path.display();
                    let lacks: BTreeSet<&str> = missing.iter().copied().filter(|tool| needs(page, tool)).collect();
                    if !lacks.is_empty() {
                        let lacks: Vec<&str> = lacks.into_iter().collect();
                        note(&skipped, vec![format!("{name}, for want of {}", lacks.join(", "))]);
                        continue;
                    }
                    let began = Instant::now();
                    let found = stage.run(page).unwrap_or_else(|error| vec![format!("{name}: {error:#}")]);
                    let verdict = if found.is_empty() { "ok" } else { "FAILED" };
                    eprintln!("{verdict:6} {name} ({:.1} s)", began.elapsed().as_secs_f64());
                    ran.fetch_add(1, Ordering::Relaxed);
                    note(&failed, found);
                }
            });
        }
    });
    let list = |list: Mutex<Vec<String>>| list.into_inner().expect("no holder of the lock panics");
    (ran.into_inner(), list(skipped), list(failed))
}

/// The runner itself needs the first two.
fn needs(page: &Page, tool: &str) -> bool {
    matches!(tool, "bash" | "curl") || page.texts().any(|text| text.contains(tool)) || {
        tool == "python3" && page.steps.iter().any(|step| matches!(step, page::Step::Fragment(_)))
    }
}

fn installed(tool: &str) -> bool {
    let argument = if tool == "openssl" { "version" } else { "--version" };
    let asked =
        Command::new(tool).arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_can_be_read_and_every_link_followed() {
        let root = crate::root();
        let all = pages(&root).unwrap();
        let mut problems = links::broken(&root, &all).unwrap();
        problems.extend(links::lost(&root, &all).unwrap());
        for path in &all[PAGES.len()..] {
            Page::read(&root, path.clone()).unwrap();
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
