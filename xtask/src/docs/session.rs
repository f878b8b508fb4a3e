//! Runs one page as its reader would: commands in one shell, servers and workers in other terminals.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ff_testkit::{Aof, TestServer};
use tempfile::TempDir;

use super::compare;
use super::page::{Block, Page, Step};

/// The maximum duration of a page.
const LIMIT: Duration = Duration::from_secs(120);
/// How long processes may take to end after they were told to.
const LEAVE: Duration = Duration::from_secs(15);
/// The ports of the servers of pages.
const FIRST_PORT: u32 = 21_000;
const PORTS: u32 = 10_000;
/// The maximum number of output lines that a problem shows.
const SHOWN_MAX: usize = 40;
/// The addresses of a reader's server and Valkey.
const SERVER: &str = "127.0.0.1:7433";
const SECOND_SERVER: &str = "127.0.0.1:7434";
const VALKEY: &str = "127.0.0.1:6379";
/// The directory of a reader's state.
const STATE: &str = "~/.local/state";
/// What a reader types in place of `ff` in the source tree.
const FROM_SOURCE: &str = "cargo run --release -- ";

/// The text before the blocks of a page. Each block's output goes to a file, and background commands are ended by their
/// pid.
const PRELUDE: &str = r#"set -eEuo pipefail
trap 'printf %s "$BASH_COMMAND" > "$FF_PAGE/failed"' ERR
trap 'for pid in "${__pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done; wait' EXIT
__pids=()
__background() { # its number, the address it answers at or nothing
  bash -c "$(cat "$FF_PAGE/block-$1")" < /dev/null &
  __pids+=($!)
  echo $! >> "$FF_PAGE/pids"
  if [ -n "$2" ]; then
    local tries=0
    until curl -fso /dev/null --max-time 1 "http://$2/readyz" || curl -kfso /dev/null --max-time 1 "https://$2/readyz"; do
      kill -0 $!
      [ $((tries += 1)) -lt 600 ]
      sleep 0.05
    done
  fi
}
__stop() { # ends what runs in the background, the latest first
  local i
  for ((i = ${#__pids[@]} - 1; i >= 0; i--)); do
    kill -TERM "${__pids[i]}" 2>/dev/null || true
    wait "${__pids[i]}"
  done
  __pids=()
}
"#;

/// What every page needs.
pub struct Stage {
    /// The root of the workspace.
    pub root: PathBuf,
    /// The directories of `ff`, and of the Python with the client's packages.
    pub binaries: Vec<PathBuf>,
}

/// One page being run.
struct Session<'a> {
    stage: &'a Stage,
    page: &'a Page,
    /// The directory of the reader's shell.
    directory: TempDir,
    /// Scripts and output.
    aside: TempDir,
    /// The reader's texts, and their replacements here.
    stand_ins: Vec<(&'static str, String)>,
    servers: [String; 2],
    _valkey: Option<TestServer>,
}

impl Stage {
    /// Runs a page. Returns the problems; none if everything is as the page shows.
    pub fn run(&self, page: &Page) -> Result<Vec<String>> {
        let mut session = Session::start(self, page)?;
        session.write_script()?;
        let ended = session.play()?;
        session.judge(ended)
    }
}

/// An unused address below 32768, so that no client gets its port before the page's server takes it.
fn free_address() -> Result<String> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    for _ in 0..PORTS {
        // A parallel run starts at another offset.
        let offset = std::process::id().wrapping_mul(97).wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let address = format!("127.0.0.1:{}", FIRST_PORT + offset);
        if std::net::TcpListener::bind(&address).is_ok() {
            return Ok(address);
        }
    }
    bail!("no free port from {FIRST_PORT} on")
}

impl<'a> Session<'a> {
    fn start(stage: &'a Stage, page: &'a Page) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("ff-page-").tempdir().context("no directory for a page")?;
        let aside = tempfile::Builder::new().prefix("ff-aside-").tempdir().context("no directory for a page")?;
        let servers = [free_address()?, free_address()?];
        let needs_valkey = page.texts().any(|text| text.contains(VALKEY));
        let valkey = needs_valkey
            .then(|| TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }))
            .transpose()?;
        let state = aside.path().join("state");
        let mut stand_ins = vec![
            (SERVER, servers[0].clone()),
            (SECOND_SERVER, servers[1].clone()),
            (STATE, state.display().to_string()),
        ];
        stand_ins.extend(valkey.as_ref().map(|valkey| (VALKEY, valkey.address())));
        Ok(Self { stage, page, directory, aside, stand_ins, servers, _valkey: valkey })
    }

    /// A text of the page with this machine's addresses.
    fn here(&self, text: &str) -> String {
        let text = text.replace(FROM_SOURCE, "ff ");
        self.stand_ins.iter().fold(text, |text, (theirs, ours)| text.replace(theirs, ours))
    }

    /// The output with the reader's addresses.
    fn theirs(&self, text: &str) -> String {
        self.stand_ins.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(ours, theirs))
    }

    fn place(&self, name: &str) -> PathBuf {
        self.aside.path().join(name)
    }

    fn write_script(&self) -> Result<()> {
        let mut script = PRELUDE.to_owned();
        for (number, step) in self.page.steps.iter().enumerate() {
            let mut go = |line: std::fmt::Arguments<'_>| script.write_fmt(line).expect("writing to memory cannot fail");
            go(format_args!("exec > \"$FF_PAGE/out-{number}\" 2>&1\n"));
            match step {
                Step::Run(block) => go(format_args!("{}\n", self.here(&block.text))),
                Step::Background(block) => {
                    let text = self.here(&block.text);
                    let server = ["ff server", "ff dev"].into_iter().any(|starts| text.contains(starts));
                    let address = self.servers.iter().rev().find(|address| text.contains(*address));
                    let address = if server { address.unwrap_or(&self.servers[0]).as_str() } else { "" };
                    fs::write(self.place(&format!("block-{number}")), text)?;
                    go(format_args!("__background {number} '{address}'\n"));
                }
                Step::File { name, block } => {
                    ensure!(
                        Path::new(name).file_name().is_some_and(|file| file == name.as_str()),
                        "line {}: {name} is not the name of a file",
                        block.line
                    );
                    fs::write(self.place(&format!("block-{number}")), self.here(&block.text))?;
                    go(format_args!("cp \"$FF_PAGE/block-{number}\" {name}\n"));
                }
                Step::Fragment(block) => {
                    fs::write(self.place(&format!("block-{number}")), &block.text)?;
                    let check = "import ast, sys; compile(open(sys.argv[1]).read(), 'page', 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)";
                    go(format_args!("python3 -c \"{check}\" \"$FF_PAGE/block-{number}\"\n"));
                }
                Step::Stop => go(format_args!("__stop\n")),
            }
        }
        script.push_str("exec > \"$FF_PAGE/out-last\" 2>&1\n__stop\n");
        fs::write(self.place("script"), script).context("cannot write the script of a page")
    }

    /// Runs the script. Returns true if it succeeded.
    fn play(&mut self) -> Result<bool> {
        let path = std::env::join_paths(
            (self.stage.binaries.iter().cloned())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        )?;
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FF_")) {
            command.env_remove(name);
        }
        let mut shell = command
            .arg(self.place("script"))
            .current_dir(self.directory.path())
            .env("PATH", path)
            .env("FF_PAGE", self.aside.path())
            .env("FF_URL", format!("http://{}", self.servers[0]))
            .env("FF_LISTEN", &self.servers[0])
            .env("XDG_STATE_HOME", self.place("state"))
            .env("PYTHONPATH", self.stage.root.join("sdk/python/src"))
            .env("PYTHONUNBUFFERED", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("NO_COLOR", "1")
            // The log depends on the machine; an older Valkey causes a warning, for example.
            .env("FF_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot run bash")?;
        let ended = waited(&mut shell, LIMIT)?;
        if ended != Some(true) {
            // Ends what a failed or hanging page has left behind, and so everything that waits for it.
            self.end_background();
        }
        if ended.is_none() {
            fs::write(self.place("failed"), format!("nothing: it was ended after {LIMIT:?}"))?;
            if waited(&mut shell, LEAVE)?.is_none() {
                shell.kill().context("cannot end bash")?;
                shell.wait().context("cannot wait for bash")?;
            }
        }
        Ok(ended == Some(true))
    }

    fn end_background(&self) {
        for pid in fs::read_to_string(self.place("pids")).unwrap_or_default().lines() {
            // It may have ended already.
            let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
        }
    }

    /// Compares the output with the page.
    fn judge(&self, ended_well: bool) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let name = self.page.path.display();
        for (number, step) in self.page.steps.iter().enumerate() {
            let (block, whole) = match step {
                Step::Run(block) | Step::File { block, .. } | Step::Fragment(block) => (block, true),
                Step::Background(block) => (block, false),
                Step::Stop => continue,
            };
            if !self.place(&format!("out-{number}")).exists() {
                continue;
            }
            let last = !self.place(&format!("out-{}", number + 1)).exists() && !self.place("out-last").exists();
            let printed = self.printed(number);
            if last && !ended_well {
                let failed = fs::read_to_string(self.place("failed")).unwrap_or_default();
                problems.push(format!("{name}:{}: this failed: {failed}\n{}", block.line, indented(&printed)));
            } else if let Err(difference) = differs(block, &printed, whole) {
                let lines = indented(&printed);
                problems.push(format!(
                    "{name}:{}: not what the page shows\n  {difference}\nall of it:\n{lines}",
                    block.line
                ));
            }
        }
        if !ended_well {
            if problems.is_empty() {
                problems.push(format!("{name}: what runs in the background did not end well"));
            }
            for (number, step) in self.page.steps.iter().enumerate() {
                if let Step::Background(block) = step {
                    problems.push(format!(
                        "{name}:{}: what it printed\n{}",
                        block.line,
                        indented(&self.printed(number))
                    ));
                }
            }
        }
        Ok(problems)
    }

    /// The output of a block, as its reader would see it.
    fn printed(&self, number: usize) -> String {
        self.theirs(&fs::read_to_string(self.place(&format!("out-{number}"))).unwrap_or_default())
    }
}

/// The first difference between the expected and the printed output of a block.
fn differs(block: &Block, printed: &str, whole: bool) -> Result<(), String> {
    match &block.output {
        Some(shown) if whole => compare::same(shown, printed)?,
        // A server prints other lines too.
        Some(shown) => compare::in_order(shown.lines().filter(|line| !line.trim().is_empty()), printed)?,
        None => {}
    }
    compare::in_order(block.remarks(), printed)
}

/// The end of a text, indented.
fn indented(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let end = lines.len().saturating_sub(SHOWN_MAX);
    lines[end..].iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// Waits for a process. Returns whether it succeeded; `None` if it takes too long.
fn waited(process: &mut Child, limit: Duration) -> Result<Option<bool>> {
    let began = Instant::now();
    while began.elapsed() < limit {
        if let Some(status) = process.try_wait().context("cannot wait for bash")? {
            return Ok(Some(status.success()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(None)
}
