//! Which crate may know which: the layering of ARCHITECTURE.md, checked against every manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Each crate and the crates of this workspace it may depend on. Tests may know everything.
const ALLOWED: &[(&str, &[&str])] = &[
    ("ff-core", &[]),
    ("ff-keys", &["ff-core"]),
    ("ff-script", &["ff-core"]),
    ("ff-api", &["ff-core", "ff-script"]),
    ("ff-backend-embedded", &["ff-core", "ff-script"]),
    ("ff-backend-valkey", &["ff-core", "ff-script"]),
    ("ff-engine", &["ff-core", "ff-keys", "ff-script"]),
    ("ff-scheduler", &["ff-core", "ff-script", "ff-engine"]),
    ("ff-trace", &[]),
];

/// Crates that tie everything together, or only test.
const TOP: &[&str] = &[
    "ff-cli",
    "ff-server",
    "ff-sdk",
    "flowfabric",
    "ff-testkit",
    "ff-contract",
    "ff-conformance",
    "ff-model",
    "ff-crash",
];

fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if inside
            && let Some(name) = line.split(['.', '=', ' ']).next()
            && (name.starts_with("ff-") || name == "flowfabric")
        {
            found.insert(name.to_owned());
        }
    }
    found
}

#[test]
fn no_crate_knows_more_than_it_may() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut checked = 0;
    for entry in std::fs::read_dir(crates).expect("the crates are here") {
        let entry = entry.expect("a directory entry");
        let name = entry.file_name().into_string().expect("crate names are text");
        let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) else { continue };
        let knows = dependencies(&manifest);
        match allowed.get(name.as_str()) {
            Some(may) => {
                checked += 1;
                for other in knows {
                    assert!(may.contains(&other.as_str()), "{name} must not depend on {other}");
                }
            }
            None => assert!(TOP.contains(&name.as_str()), "{name} has no place in the layering yet"),
        }
    }
    assert_eq!(checked, ALLOWED.len());
}

#[test]
fn key_names_exist_in_lua_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["ff-core", "ff-engine", "ff-scheduler"] {
        for (path, text) in sources(&crates.join(name).join("src")) {
            for prefix in ["ff:exec:", "ff:idx:", "ff:lane:", "ff:events:", "ff:outbox:", "ff:worker:"] {
                assert!(!text.contains(prefix), "{path} names a key: {prefix}");
            }
        }
    }
}

fn sources(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("sources are here") {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).expect("a source file")));
        }
    }
    found
}
