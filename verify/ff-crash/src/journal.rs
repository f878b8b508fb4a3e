//! The acknowledgements a process got, one per line, in a file that survives the process.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use ff_core::types::ExecutionId;

/// One acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A submission was accepted.
    Submitted(ExecutionId),
    /// A worker got a lease.
    Claimed {
        id: ExecutionId,
        attempt: i64,
        /// The epoch of the fence.
        epoch: i64,
    },
    /// A completion was accepted; the result names the epoch.
    Completed {
        id: ExecutionId,
        /// The epoch of the completing lease.
        epoch: i64,
    },
    /// A cancel was accepted.
    Cancelled(ExecutionId),
    /// A write of a lease was refused, with the code.
    Refused {
        id: ExecutionId,
        /// The epoch of the lease.
        epoch: i64,
        code: String,
    },
    /// A description of something that must not happen to any caller.
    Broken(String),
    /// A note that a test waits for.
    Note(String),
}

impl Entry {
    fn line(&self) -> String {
        match self {
            Entry::Submitted(id) => format!("submitted {id}"),
            Entry::Claimed { id, attempt, epoch } => format!("claimed {id} {attempt} {epoch}"),
            Entry::Completed { id, epoch } => format!("completed {id} {epoch}"),
            Entry::Cancelled(id) => format!("cancelled {id}"),
            Entry::Refused { id, epoch, code } => format!("refused {id} {epoch} {code}"),
            Entry::Broken(text) => format!("broken {}", text.replace('\n', " ")),
            Entry::Note(text) => format!("note {text}"),
        }
    }

    fn parse(line: &str) -> Result<Entry> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split(' ');
        let mut next = || words.next().with_context(|| format!("a journal line is cut short: {line:?}"));
        Ok(match word {
            "submitted" => Entry::Submitted(next()?.parse()?),
            "claimed" => Entry::Claimed { id: next()?.parse()?, attempt: next()?.parse()?, epoch: next()?.parse()? },
            "completed" => Entry::Completed { id: next()?.parse()?, epoch: next()?.parse()? },
            "cancelled" => Entry::Cancelled(next()?.parse()?),
            "refused" => Entry::Refused { id: next()?.parse()?, epoch: next()?.parse()?, code: next()?.to_owned() },
            "broken" => Entry::Broken(rest.to_owned()),
            "note" => Entry::Note(rest.to_owned()),
            _ => bail!("not a journal line: {line:?}"),
        })
    }
}

/// A journal to which this process appends.
#[derive(Clone)]
pub struct Journal {
    file: Arc<Mutex<File>>,
}

impl Journal {
    /// Opens the journal at this path and appends to it.
    pub fn append(path: &Path) -> Result<Journal> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot open the journal {}", path.display()))?;
        Ok(Journal { file: Arc::new(Mutex::new(file)) })
    }

    /// Writes one entry. A killed process keeps every entry for which this call has returned.
    pub fn write(&self, entry: &Entry) {
        let line = entry.line() + "\n";
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).expect("the journal takes a line");
    }
}

/// Reads a journal as it grows.
pub struct Reader {
    path: PathBuf,
    read: usize,
}

impl Reader {
    /// Reads from the beginning.
    #[must_use]
    pub fn new(path: &Path) -> Reader {
        Reader { path: path.to_owned(), read: 0 }
    }

    /// The entries written since the last call. An incomplete line is left for later.
    pub fn fresh(&mut self) -> Result<Vec<Entry>> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context("the journal cannot be read"),
        };
        let fresh = &bytes[self.read..];
        let Some(end) = fresh.iter().rposition(|byte| *byte == b'\n') else { return Ok(Vec::new()) };
        self.read += end + 1;
        std::str::from_utf8(&fresh[..end])?.lines().map(Entry::parse).collect()
    }

    /// Discards the incomplete last line of a killed writer, which was no acknowledgement. The next writer starts on a
    /// new line.
    pub fn forget_torn_line(&mut self) -> Result<()> {
        if self.path.exists() {
            let file = OpenOptions::new().write(true).open(&self.path)?;
            file.set_len(self.read as u64)?;
        }
        Ok(())
    }
}
