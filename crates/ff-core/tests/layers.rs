//! Which crate may depend on which: the layering of ARCHITECTURE.md, checked against every manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each package with the packages of this workspace it may depend on. Tests may depend on all.
const ALLOWED: &[(&str, &[&str])] = &[
    // The product, from the ground up.
    ("ff-core", &[]),
    ("ff-keys", &["ff-core"]),
    ("ff-script", &["ff-core"]),
    ("ff-api", &["ff-core", "ff-script"]),
    ("ff-backend-embedded", &["ff-core", "ff-script"]),
    ("ff-backend-valkey", &["ff-core", "ff-script"]),
    ("ff-engine", &["ff-api", "ff-core", "ff-keys", "ff-script"]),
    ("ff-trace", &[]),
    ("ff-sdk", &["ff-api", "ff-core", "ff-keys", "ff-script", "ff-engine", "ff-trace", EMBEDDED, VALKEY]),
    ("flowfabric", &["ff-api", "ff-core", "ff-script", "ff-engine", "ff-sdk"]),
    ("ff-server", &["ff-api", "ff-core", "ff-keys", "ff-script", "ff-engine", "ff-trace"]),
    (
        "ff-cli",
        &[
            "ff-api",
            "ff-core",
            "ff-keys",
            "ff-script",
            "ff-engine",
            "ff-trace",
            "ff-sdk",
            "ff-server",
            EMBEDDED,
            VALKEY,
        ],
    ),
    // Verification: below the engine through the library's calls, above it as users do.
    ("ff-testkit", &["ff-core", "ff-script"]),
    ("ff-conformance", &["ff-core", "ff-script", "ff-testkit", EMBEDDED, VALKEY]),
    ("ff-model", &["ff-core", "ff-script", EMBEDDED]),
    ("sim", &["ff-core", "ff-script", EMBEDDED]),
    ("ff-crash", &["ff-core", "ff-script", "ff-engine", "ff-testkit", EMBEDDED, VALKEY]),
    ("ff-contract", &["ff-core", "ff-sdk"]),
    // Examples, build and benchmarks.
    ("examples", &["flowfabric"]),
    ("xtask", &["ff-core", "ff-keys", "ff-script", "ff-engine", "ff-sdk", "ff-server", "ff-testkit", EMBEDDED, VALKEY]),
];

const EMBEDDED: &str = "ff-backend-embedded";
const VALKEY: &str = "ff-backend-valkey";

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

/// The folders of all packages, by the name of the folder.
fn packages() -> BTreeMap<String, PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeMap::from(["examples", "xtask"].map(|name| (name.to_owned(), root.join(name))));
    for folder in ["crates", "verify"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the packages are here") {
            let entry = entry.expect("a directory entry");
            if entry.path().join("Cargo.toml").exists() {
                found.insert(entry.file_name().into_string().expect("names are text"), entry.path());
            }
        }
    }
    found
}

#[test]
fn no_package_knows_more_than_it_may() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let packages = packages();
    for (name, folder) in &packages {
        let may = allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name} has no place in the layering yet"));
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        for other in dependencies(&manifest) {
            assert!(may.contains(&other.as_str()), "{name} must not depend on {other}");
        }
    }
    assert_eq!(packages.len(), ALLOWED.len(), "the layering names a package that is not there");
}

/// The packages of the product that reach the library through the engine.
const ABOVE_THE_ENGINE: [&str; 5] = ["ff-api", "ff-sdk", "ff-server", "ff-cli", "flowfabric"];

#[test]
fn only_the_engine_makes_calls_of_the_library() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let generated = std::fs::read_to_string(crates.join("ff-script/src/generated.rs")).expect("generated calls");
    let calls: BTreeSet<&str> =
        generated.split("wire_call!(").skip(1).filter_map(|rest| rest.split([' ', ',']).next()).collect();
    assert!(calls.len() > 100, "the calls are found by how they are declared");
    for name in ABOVE_THE_ENGINE {
        for (path, text) in sources(&crates.join(name).join("src")) {
            for used in text.split("generated::").skip(1) {
                let list = match used.strip_prefix('{') {
                    Some(list) => list.split('}').next().unwrap_or_default(),
                    None => used.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default(),
                };
                for word in list.split(|c: char| !c.is_alphanumeric()) {
                    assert!(!calls.contains(word), "{path} makes a call of the library: {word}");
                }
            }
            let text: String = text.split_whitespace().collect();
            for client in ["operations.client()", "operations().client()"] {
                assert!(!text.contains(client), "{path} reaches below the engine: {client}");
            }
        }
    }
}

#[test]
fn key_names_exist_in_lua_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["ff-core", "ff-engine"] {
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
