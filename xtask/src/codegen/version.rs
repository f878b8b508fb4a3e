//! The library's number, which is raised when the bundle differs from the committed one.
//!
//! A store replaces only a library with a lower number, and refuses the same number with another hash. So a changed
//! bundle with an old number would never reach a running store.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, Result};

/// The content of `lua/VERSION`: `<number> <hash>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub number: u32,
    pub hash: String,
}

impl Version {
    /// Parses the text of `lua/VERSION`.
    fn parse(text: &str) -> Result<Version> {
        let mut words = text.split_whitespace();
        let number = words.next().and_then(|number| number.parse().ok());
        let number = number.with_context(|| format!("lua/VERSION must start with a number, got {text:?}"))?;
        Ok(Version { number, hash: words.next().unwrap_or_default().to_owned() })
    }

    /// The version in the working tree; 1 if there is no file.
    pub fn working(root: &Path) -> Result<Version> {
        match fs::read_to_string(root.join("lua/VERSION")) {
            Ok(text) => Version::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Version { number: 1, hash: String::new() }),
            Err(error) => Err(error).context("cannot read lua/VERSION"),
        }
    }

    /// The version of the last commit; `None` outside a repository.
    pub fn committed(root: &Path) -> Option<Version> {
        let output = Command::new("git").arg("-C").arg(root).args(["show", "HEAD:lua/VERSION"]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| Version::parse(&text).ok()).flatten()
    }
}

/// The number of a new bundle; `hash_at` returns the bundle's hash under a number.
pub fn number(working: &Version, committed: Option<&Version>, hash_at: impl Fn(u32) -> String) -> u32 {
    match committed {
        None => working.number,
        Some(committed) if hash_at(committed.number) == committed.hash => committed.number,
        Some(committed) => working.number.max(committed.number + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u32, hash: &str) -> Version {
        Version { number, hash: hash.to_owned() }
    }

    #[test]
    fn the_number_rises_once_when_the_bundle_differs_from_the_committed_one() {
        let hash_at = |number: u32| format!("h{number}");
        let table = [
            (version(4, "h4"), None, 4),
            (version(4, "h4"), Some(version(4, "h4")), 4),
            (version(4, "h4"), Some(version(4, "old")), 5),
            (version(5, "x"), Some(version(4, "old")), 5),
            (version(9, "x"), Some(version(4, "old")), 9),
            (version(5, "x"), Some(version(4, "h4")), 4),
            (version(2, "x"), Some(version(4, "old")), 5),
        ];
        for (working, committed, expected) in table {
            assert_eq!(number(&working, committed.as_ref(), hash_at), expected, "{working:?} {committed:?}");
        }
    }

    #[test]
    fn a_version_is_a_number_and_a_hash() {
        assert_eq!(Version::parse("12 abc\n").unwrap(), version(12, "abc"));
        assert!(Version::parse("abc").is_err());
    }
}
