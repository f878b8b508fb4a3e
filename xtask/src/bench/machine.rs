//! Facts about the machine, and the resources of its processes, from `/proc`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

/// Linux counts CPU time in hundredths of a second for every program.
const TICKS_PER_SECOND: f64 = 100.0;

/// The facts that a reader needs for comparisons.
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

/// How busy other programs keep the machine, from a certain moment on.
///
/// A rate means little if others use a changing share of the cores.
pub struct Others {
    began: Instant,
    busy: f64,
    ours: f64,
}

impl Others {
    pub fn watch() -> Result<Others> {
        Ok(Others { began: Instant::now(), busy: busy_seconds()?, ours: our_seconds()? })
    }

    /// The share of all cores' time used by other programs.
    pub fn share(&self) -> Result<f64> {
        let busy = busy_seconds()? - self.busy;
        let ours = our_seconds()? - self.ours;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(((busy - ours) / (self.began.elapsed().as_secs_f64() * cores as f64)).max(0.0))
    }
}

/// The busy time of all cores, including stolen time.
fn busy_seconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let ticks: Vec<f64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is part of user time.
    anyhow::ensure!(ticks.len() >= 8, "/proc/stat counts {} kinds of time", ticks.len());
    Ok((ticks[..8].iter().sum::<f64>() - ticks[3] - ticks[4]) / TICKS_PER_SECOND)
}

/// The CPU time of this process and of the servers it has ended.
fn our_seconds() -> Result<f64> {
    seconds(std::process::id(), &[USER, SYSTEM, CHILDREN_USER, CHILDREN_SYSTEM])
}

/// The CPU seconds a process has used so far.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    seconds(pid, &[USER, SYSTEM])
}

/// The niceness of this process (default: 0).
pub fn niceness() -> Result<f64> {
    Ok(stat(std::process::id(), &[NICE])?[0])
}

// Fields of /proc/PID/stat after the program's name.
const USER: usize = 11;
const SYSTEM: usize = 12;
const CHILDREN_USER: usize = 13;
const CHILDREN_SYSTEM: usize = 14;
const NICE: usize = 16;

fn seconds(pid: u32, fields: &[usize]) -> Result<f64> {
    Ok(stat(pid, fields)?.iter().sum::<f64>() / TICKS_PER_SECOND)
}

fn stat(pid: u32, wanted: &[usize]) -> Result<Vec<f64>> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name is in parentheses and may contain spaces.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    wanted
        .iter()
        .map(|&index| fields.get(index).and_then(|field| field.parse().ok()))
        .collect::<Option<_>>()
        .with_context(|| format!("{path} holds {text:?}"))
}

/// The memory of a process in MiB.
pub fn resident_mib(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.with_context(|| format!("{path} has no VmRSS"))? / 1024.0)
}
