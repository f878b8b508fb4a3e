//! What the machine is, and what its processes used, from `/proc`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Linux counts CPU time in hundredths of a second for every program.
const TICKS_PER_SECOND: f64 = 100.0;

/// The facts a reader needs to compare.
#[derive(Clone, Debug)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub kernel: String,
    pub file_system: String,
    pub server: String,
}

impl Machine {
    pub fn look(folder: &Path) -> Machine {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let unknown = || "unknown".to_owned();
        Machine {
            cpu: model.map_or_else(unknown, |(_, name)| name.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |text| text.trim().to_owned()),
            file_system: file_system(folder).unwrap_or_else(unknown),
            server: ff_testkit::ServerBinary::valkey()
                .and_then(|binary| Ok(format!("{} {}", binary.flavour, binary.version()?)))
                .unwrap_or_else(|_| unknown()),
        }
    }
}

fn file_system(folder: &Path) -> Option<String> {
    let output = Command::new("stat").args(["-f", "-c", "%T"]).arg(folder).output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// The CPU seconds a process has used so far.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th field after it.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).with_context(|| format!("{path} holds {text:?}"))?;
    Ok((user + system) / TICKS_PER_SECOND)
}

/// The memory a process holds, in MiB.
pub fn resident_mib(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.with_context(|| format!("{path} has no VmRSS"))? / 1024.0)
}
