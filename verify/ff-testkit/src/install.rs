//! Finds the external programs that tests run, or installs them from Debian's archives without starting a service.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::binary::{Flavour, ServerBinary};

/// A program that tests need.
pub struct Need {
    /// The Debian package it comes from.
    package: &'static str,
    /// Returns its version if it is installed.
    found: fn() -> Option<String>,
    /// Whether it may be only in backports.
    in_backports: bool,
}

/// The programs of the quick tier.
pub const QUICK: &[Need] = &[
    Need { package: "valkey-server", found: || server(Flavour::Valkey), in_backports: true },
    // The docs use its command line.
    Need { package: "valkey-tools", found: || asked(&["valkey-cli", "--version"]), in_backports: true },
    Need { package: "chromium", found: chromium, in_backports: false },
    Need { package: "curl", found: || asked(&["curl", "--version"]), in_backports: false },
    Need { package: "jq", found: || asked(&["jq", "--version"]), in_backports: false },
    Need { package: "openssl", found: || asked(&["openssl", "version"]), in_backports: false },
    Need { package: "python3", found: || asked(&["python3", "--version"]), in_backports: false },
    Need {
        package: "python3-venv",
        found: || asked(&["python3", "-c", "import ensurepip, venv"]),
        in_backports: false,
    },
    Need { package: "util-linux", found: || asked(&["unshare", "--version"]), in_backports: false },
    Need { package: "bsdutils", found: || asked(&["script", "--version"]), in_backports: false },
];

/// Only the store and its client, which is all that a measurement needs.
pub fn store() -> impl Iterator<Item = &'static Need> {
    QUICK.iter().filter(|need| need.package.starts_with("valkey"))
}

/// Further programs of the other tiers.
pub const WIDE: &[Need] = &[Need { package: "redis-server", found: || server(Flavour::Redis), in_backports: false }];

const BACKPORTS: &str = "/etc/apt/sources.list.d/flowfabric-backports.sources";
const POLICY: &str = "/usr/sbin/policy-rc.d";

fn server(flavour: Flavour) -> Option<String> {
    ServerBinary::find(flavour).and_then(|binary| binary.version()).ok()
}

fn chromium() -> Option<String> {
    let program = crate::binary::chromium()?;
    asked(&[&program.display().to_string(), "--version"])
}

/// The last word in the first line of a command's output; `None` if the command fails.
fn asked(command: &[&str]) -> Option<String> {
    let output = Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    Some(version.unwrap_or_default().to_owned())
}

/// Installs missing programs. Returns each with its version, or the reason why it is missing. Reports its actions on
/// stderr.
pub fn install<'a>(needs: impl IntoIterator<Item = &'a Need>) -> Vec<(&'static str, Result<String>)> {
    let needs: Vec<&Need> = needs.into_iter().collect();
    let missing: Vec<&&Need> = needs.iter().filter(|need| (need.found)().is_none()).collect();
    let installed = if missing.is_empty() { Ok(()) } else { install_all(&missing) };
    let verdict = |need: &&Need| match ((need.found)(), &installed) {
        (Some(version), _) => Ok(version),
        (None, Err(error)) => Err(anyhow::anyhow!("{error:#}")),
        (None, Ok(())) => Err(anyhow::anyhow!("the package {} does not contain it", need.package)),
    };
    needs.iter().map(|need| (need.package, verdict(need))).collect()
}

fn install_all(missing: &[&&Need]) -> Result<()> {
    apt(&["update", "-q"])?;
    if missing.iter().any(|need| need.in_backports && !has_candidate(need.package).unwrap_or(false)) {
        add_backports()?;
    }
    let _quiet = NoServices::begin()?;
    for need in missing {
        let mut arguments = vec!["install", "-y", "-q", "--no-install-recommends"];
        let suite;
        if need.in_backports && Path::new(BACKPORTS).exists() {
            suite = format!("{}-backports", codename()?);
            arguments.extend(["-t", &suite]);
        }
        arguments.push(need.package);
        apt(&arguments)?;
    }
    Ok(())
}

fn has_candidate(package: &str) -> Result<bool> {
    let output = Command::new("apt-cache")
        .args(["policy", package])
        .env("LC_ALL", "C")
        .output()
        .context("cannot run apt-cache; on this system install the programs by hand")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().any(|line| line.trim().starts_with("Candidate:") && !line.contains("(none)")))
}

fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .context("/etc/os-release has no VERSION_CODENAME")
}

/// Adds the backports suite, from the same address as this machine's release.
fn add_backports() -> Result<()> {
    let codename = codename()?;
    if !Path::new(BACKPORTS).exists() {
        let (address, signed_by) = source_of(&codename, &package_sources())
            .with_context(|| format!("no package source of this machine has the suite {codename}"))?;
        eprintln!("adding the suite {codename}-backports of {address} in {BACKPORTS}");
        let signed_by = signed_by.map(|key| format!("Signed-By: {key}\n")).unwrap_or_default();
        let text = format!("Types: deb\nURIs: {address}\nSuites: {codename}-backports\nComponents: main\n{signed_by}");
        write_as_root(BACKPORTS, &text)?;
    }
    apt(&["update", "-q"])
}

/// The content of all files with package sources.
fn package_sources() -> Vec<(PathBuf, String)> {
    let listed = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = listed.collect();
    files.sort();
    files.insert(0, PathBuf::from("/etc/apt/sources.list"));
    files.into_iter().filter_map(|file| Some((file.clone(), fs::read_to_string(file).ok()?))).collect()
}

/// The address and the signing key of a suite, from package sources in either format.
fn source_of(suite: &str, sources: &[(PathBuf, String)]) -> Option<(String, Option<String>)> {
    sources.iter().find_map(|(file, text)| match file.extension().and_then(|extension| extension.to_str()) {
        Some("sources") => text.split("\n\n").find_map(|stanza| in_stanza(suite, stanza)),
        Some("list") => text.lines().find_map(|line| in_line(suite, line)),
        _ => None,
    })
}

/// `URIs: …`, `Suites: …` and `Signed-By: …` on lines of their own.
fn in_stanza(suite: &str, stanza: &str) -> Option<(String, Option<String>)> {
    let field = |name: &str| {
        let lines = stanza.lines().filter(|line| !line.trim_start().starts_with('#'));
        lines.filter_map(|line| line.split_once(':')).find(|(field, _)| field.eq_ignore_ascii_case(name))
    };
    let suites = field("Suites")?.1;
    let address = field("URIs")?.1.split_whitespace().next()?.to_owned();
    let signed_by = field("Signed-By").map(|(_, key)| key.trim().to_owned()).filter(|key| key.starts_with('/'));
    suites.split_whitespace().any(|known| known == suite).then_some((address, signed_by))
}

/// `deb [options] address suite components…`.
fn in_line(suite: &str, line: &str) -> Option<(String, Option<String>)> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let address = words.next()?.to_owned();
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by=")).map(str::to_owned);
    (words.next() == Some(suite)).then_some((address, signed_by))
}

fn apt(arguments: &[&str]) -> Result<()> {
    eprintln!("apt-get {}", arguments.join(" "));
    let status = as_root("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot run apt-get; on this system install the programs by hand")?;
    if !status.success() {
        bail!("apt-get {} ended with {status}", arguments.join(" "));
    }
    Ok(())
}

/// Runs the program directly as root, otherwise through sudo.
fn as_root(program: &str) -> Command {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if root {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", "--preserve-env=DEBIAN_FRONTEND", program]);
    command
}

fn write_as_root(path: &str, text: &str) -> Result<()> {
    let mut child = as_root("tee")
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot write {path}"))?;
    let mut input = child.stdin.take().context("tee has no standard input")?;
    std::io::Write::write_all(&mut input, text.as_bytes()).with_context(|| format!("cannot write {path}"))?;
    drop(input);
    let status = child.wait()?;
    if !status.success() {
        bail!("writing {path} ended with {status}");
    }
    Ok(())
}

/// While it lives, Debian's packages cannot start a service.
struct NoServices {
    ours: bool,
}

impl NoServices {
    fn begin() -> Result<NoServices> {
        if Path::new(POLICY).exists() {
            return Ok(NoServices { ours: false });
        }
        write_as_root(POLICY, "#!/bin/sh\nexit 101\n")?;
        as_root("chmod").args(["755", POLICY]).status()?;
        Ok(NoServices { ours: true })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.ours {
            let _ = as_root("rm").arg(POLICY).status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backports_come_from_where_the_release_comes_from() {
        let stanza = "# a comment\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: trixie trixie-updates\n\
                      Components: main\nSigned-By: /usr/share/keyrings/own.gpg\n";
        let security = "Types: deb\nURIs: http://mirror.example/security\nSuites: trixie-security\nComponents: main\n";
        let (mirror, key) = ("http://mirror.example/debian".to_owned(), Some("/usr/share/keyrings/own.gpg".to_owned()));
        for (name, text, expected) in [
            ("debian.sources", format!("{security}\n{stanza}"), Some((mirror.clone(), key.clone()))),
            ("a.list", "deb http://mirror.example/debian trixie main".to_owned(), Some((mirror.clone(), None))),
            (
                "b.list",
                "deb [arch=amd64 signed-by=/usr/share/keyrings/own.gpg] http://mirror.example/debian trixie main"
                    .to_owned(),
                Some((mirror, key)),
            ),
            ("c.list", "# deb http://mirror.example/debian trixie main\ndeb-src http://x trixie main".to_owned(), None),
            ("d.sources", security.to_owned(), None),
        ] {
            assert_eq!(source_of("trixie", &[(PathBuf::from(name), text)]), expected, "{name}");
        }
    }
}
