//! Installs Valkey and Redis from Debian's archives, without starting a service.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::binary::{Flavour, ServerBinary};

/// What checks of the docs and the API run beside the servers: a package, and what works once it is there.
const TOOLS: &[(&str, &[&str])] = &[
    ("curl", &["curl", "--version"]),
    ("jq", &["jq", "--version"]),
    ("openssl", &["openssl", "version"]),
    ("python3", &["python3", "--version"]),
    ("python3-venv", &["python3", "-c", "import ensurepip, venv"]),
];

const BACKPORTS: &str = "/etc/apt/sources.list.d/flowfabric-backports.sources";
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs what is missing of Valkey and Redis and returns both; says on stderr what it does.
///
/// Valkey comes from the main archive when it has one, else from backports, whose source file is added.
/// A server that cannot be installed is reported, and the call fails only when neither is there.
pub fn install() -> Result<Vec<ServerBinary>> {
    let mut found = Vec::new();
    for flavour in [Flavour::Valkey, Flavour::Redis] {
        if let Ok(binary) = ServerBinary::find(flavour) {
            eprintln!("{flavour}: {} ({})", binary.path.display(), binary.version()?);
            found.push(binary);
            continue;
        }
        match install_one(flavour) {
            Ok(binary) => {
                eprintln!("{flavour}: installed {} ({})", binary.path.display(), binary.version()?);
                found.push(binary);
            }
            Err(error) => eprintln!("{flavour}: not installed: {error:#}"),
        }
    }
    if found.is_empty() {
        bail!("neither valkey-server nor redis-server could be installed");
    }
    Ok(found)
}

/// Installs what is missing of the small programs that docs and checks use; says on stderr what it does.
///
/// What cannot be installed is reported: the checks that need it say so too.
pub fn install_tools() {
    let works = |command: &[&str]| {
        let mut asked = Command::new(command[0]);
        asked.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    };
    let missing: Vec<&str> = TOOLS.iter().filter(|(_, command)| !works(command)).map(|(package, _)| *package).collect();
    if missing.is_empty() {
        return;
    }
    let install = [&["install", "-y", "-q", "--no-install-recommends"], missing.as_slice()].concat();
    if let Err(error) = apt(&["update", "-q"]).and_then(|()| apt(&install)) {
        eprintln!("not installed: {}: {error:#}", missing.join(", "));
    }
}

fn install_one(flavour: Flavour) -> Result<ServerBinary> {
    let package = flavour.program();
    apt(&["update", "-q"])?;
    if !has_candidate(package)? && flavour == Flavour::Valkey {
        add_backports()?;
    }
    let _quiet = NoServices::begin()?;
    let mut arguments = vec!["install", "-y", "-q", "--no-install-recommends"];
    let suite;
    if flavour == Flavour::Valkey && Path::new(BACKPORTS).exists() {
        suite = format!("{}-backports", codename()?);
        arguments.extend(["-t", &suite]);
    }
    arguments.push(package);
    apt(&arguments)?;
    ServerBinary::find(flavour)
}

fn has_candidate(package: &str) -> Result<bool> {
    let output = Command::new("apt-cache")
        .args(["policy", package])
        .env("LC_ALL", "C")
        .output()
        .context("cannot run apt-cache; on this system install the servers by hand")?;
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

fn add_backports() -> Result<()> {
    let suite = format!("{}-backports", codename()?);
    if !Path::new(BACKPORTS).exists() {
        eprintln!("adding the suite {suite} in {BACKPORTS}");
        let text = format!(
            "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: {suite}\nComponents: main\n\
             Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        );
        write_as_root(BACKPORTS, &text)?;
    }
    apt(&["update", "-q"])
}

fn apt(arguments: &[&str]) -> Result<()> {
    eprintln!("apt-get {}", arguments.join(" "));
    let status = as_root("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot run apt-get; on this system install the servers by hand")?;
    if !status.success() {
        bail!("apt-get {} ended with {status}", arguments.join(" "));
    }
    Ok(())
}

/// The program itself for root, through sudo for anyone else.
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

/// Forbids Debian's packages to start a service while it lives.
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
