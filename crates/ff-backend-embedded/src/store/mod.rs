//! The store: the part of Valkey's data types that the library uses, over LMDB trees.
//!
//! Trees: `keys` holds one record per store key (strings and small hashes in full, the rest as an 8-byte id and counters);
//! `members` and `order` hold sorted sets, `entries` streams, `fields` large hashes, all prefixed by that id.
//!
//! **Invariant:** everything under an id is removed in the call that removes its key. Ids are never reused.

pub(crate) mod commands;
pub(crate) mod dump;
mod fields;
mod hash;
mod keyspace;
mod layout;
pub(crate) mod number;
mod overlay;
pub(crate) mod reply;
mod session;
mod stream;
mod tree;
mod verify;
mod zset;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ff_script::HostError;
use heed::{CompactionOption, Env, MdbError, WithoutTls};

use crate::directory::{self, DirectoryLock};
use crate::options::{Durability, Options};
use crate::raw;
use crate::reserve::is_full;
use layout::Corruption;
use tree::Tree;
use verify::Damage;

pub(crate) use session::{Call, Published, Remark, Session, Txn};

/// The open trees. The lock is dropped last, so the next owner never finds an open environment.
pub(crate) struct Store {
    env: Env<WithoutTls>,
    keys: Tree,
    members: Tree,
    order: Tree,
    entries: Tree,
    fields: Tree,
    meta: Tree,
    lock: Arc<DirectoryLock>,
}

const DATA_FILE: &str = "data.mdb";
/// Marks the directory as a store, so that a lost or emptied data file is not taken for a new store.
const MARKER_FILE: &str = "format";
const FORMAT: &[u8] = b"flowfabric 1";

impl Store {
    pub fn open(options: &Options) -> Result<Store, HostError> {
        let lock = directory::take(&options.directory)?;
        Self::open_locked(options, Arc::new(lock)).map_err(StoreError::into_host)
    }

    /// Opens the store of a directory that this process holds.
    pub fn open_locked(options: &Options, lock: Arc<DirectoryLock>) -> Result<Store, StoreError> {
        let directory = &options.directory;
        check_data_file(directory, options.verify_up_to)?;
        let env = raw::open_environment(directory, options.map_size, options.durability == Durability::Relaxed)?;
        let store = Self::open_trees(&env, lock)?;
        let marker = directory.join(MARKER_FILE);
        if !marker.exists() {
            let say =
                |error: std::io::Error| StoreError::Unavailable(format!("cannot write {}: {error}", marker.display()));
            let mut file = directory::open_private(&marker).map_err(say)?;
            file.write_all(FORMAT).and_then(|()| file.sync_all()).map_err(say)?;
        }
        Ok(store)
    }

    fn open_trees(env: &Env<WithoutTls>, lock: Arc<DirectoryLock>) -> Result<Store, StoreError> {
        let mut txn = env.write_txn()?;
        let mut tree = |name| Tree::open(env, &mut txn, name);
        let store = Store {
            env: env.clone(),
            keys: tree("keys")?,
            members: tree("members")?,
            order: tree("order")?,
            entries: tree("entries")?,
            fields: tree("fields")?,
            meta: tree("meta")?,
            lock,
        };
        match store.meta.get(&txn, b"format")? {
            None => store.meta.put(&mut txn, b"format", FORMAT)?,
            Some(format) if format == FORMAT => {}
            Some(format) => {
                return Err(StoreError::Corrupt(format!(
                    "the store has format {:?}, this build reads {:?}",
                    String::from_utf8_lossy(format),
                    String::from_utf8_lossy(FORMAT)
                )));
            }
        }
        txn.commit()?;
        Ok(store)
    }

    pub fn lock(&self) -> Arc<DirectoryLock> {
        Arc::clone(&self.lock)
    }

    pub fn env(&self) -> &Env<WithoutTls> {
        &self.env
    }

    /// Flushes everything committed so far.
    pub fn sync(&self) -> Result<(), StoreError> {
        Ok(self.env.force_sync()?)
    }

    /// Checks every page of the committed state while calls go on.
    pub fn verify(&self) -> Result<(), StoreError> {
        let file = self.env.try_clone_inner_file()?;
        loop {
            // The read transaction keeps the pages of its snapshot from being reused. Only the header can be
            // overwritten during the check.
            let txn = self.env.read_txn()?;
            if let Some(result) = verify::check_snapshot(&file, txn.id() as u64) {
                return Ok(result?);
            }
        }
    }

    /// Copies the committed state into a new directory while calls continue.
    pub fn backup(&self, target: &Path) -> Result<PathBuf, StoreError> {
        let say =
            |error: std::io::Error| StoreError::Unavailable(format!("cannot back up to {}: {error}", target.display()));
        std::fs::create_dir_all(target).map_err(say)?;
        let path = target.join(DATA_FILE);
        if path.exists() {
            return Err(StoreError::Unavailable(format!(
                "cannot back up to {}: it already holds a store",
                target.display()
            )));
        }
        let mut file: File = directory::open_private(&path).map_err(say)?;
        self.env.copy_to_file(&mut file, CompactionOption::Enabled)?;
        file.sync_all().map_err(say)?;
        Ok(path)
    }
}

/// Fails if the data file is damaged. Large files are not checked page by page.
fn check_data_file(directory: &Path, verify_up_to: u64) -> Result<(), StoreError> {
    let path = directory.join(DATA_FILE);
    let say = |error: std::io::Error| StoreError::Unavailable(format!("cannot read {}: {error}", path.display()));
    let file = match File::open(&path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(say(error)),
    };
    let len = match &file {
        None => 0,
        Some(file) => file.metadata().map_err(say)?.len(),
    };
    match file {
        Some(file) if len > 0 => {
            if len <= verify_up_to || verify::is_short(&file)? {
                verify::check(&file)?;
            }
            Ok(())
        }
        _ if directory.join(MARKER_FILE).exists() => Err(StoreError::Corrupt(format!(
            "{} is missing or empty, and the directory has held a store",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// The store itself failed: the transaction is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreError {
    /// The disk is full.
    Full(String),
    /// The map of the file, or one transaction, is full, although the disk is not.
    MapFull(String),
    /// A disk error. The caller finds out whether the disk is full, because a full disk causes many kinds of errors.
    Io(String),
    Unavailable(String),
    Corrupt(String),
    /// LMDB could not write the header of a snapshot, and fails every call until the environment is opened again.
    Poisoned(String),
    /// A test injected this failure.
    Injected(crate::faults::Fault),
}

impl StoreError {
    pub fn into_host(self) -> HostError {
        use crate::faults::Fault;
        match self {
            StoreError::Full(detail) | StoreError::MapFull(detail) => HostError::Full { detail },
            StoreError::Io(detail) | StoreError::Unavailable(detail) | StoreError::Poisoned(detail) => {
                HostError::Unavailable { detail }
            }
            StoreError::Corrupt(detail) => HostError::Corrupt { detail },
            StoreError::Injected(Fault::Full) => {
                HostError::Full { detail: "no space left on device (injected)".to_owned() }
            }
            StoreError::Injected(Fault::Eio) => {
                HostError::Unavailable { detail: "input/output error (injected)".to_owned() }
            }
            StoreError::Injected(Fault::Crash) => HostError::Closed,
        }
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.clone().into_host().fmt(f)
    }
}

impl From<Corruption> for StoreError {
    fn from(corruption: Corruption) -> Self {
        StoreError::Corrupt(corruption.0.to_owned())
    }
}

impl From<Damage> for StoreError {
    fn from(damage: Damage) -> Self {
        StoreError::Corrupt(damage.0)
    }
}

impl From<heed::Error> for StoreError {
    fn from(error: heed::Error) -> Self {
        let detail = error.to_string();
        match error {
            heed::Error::Mdb(MdbError::MapFull) => StoreError::MapFull(
                "the store has reached its map size; open it with a larger one or remove data".to_owned(),
            ),
            heed::Error::Mdb(MdbError::Panic) => StoreError::Poisoned(detail),
            heed::Error::Mdb(MdbError::TxnFull) => StoreError::MapFull(detail),
            heed::Error::Mdb(
                MdbError::Corrupted
                | MdbError::PageNotFound
                | MdbError::Invalid
                | MdbError::VersionMismatch
                | MdbError::Incompatible,
            )
            | heed::Error::Decoding(_) => StoreError::Corrupt(detail),
            heed::Error::Io(error) if is_full(&error) => StoreError::Full(detail),
            heed::Error::Io(_) => StoreError::Io(detail),
            _ => StoreError::Unavailable(detail),
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command is refused as Valkey would refuse it; the text starts with a code. The transaction continues.
    Refused(String),
    /// The store failed: the transaction is lost.
    Store(StoreError),
}

impl<E: Into<StoreError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Store(error.into())
    }
}

pub(crate) fn refused<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Refused(text.into()))
}

pub(crate) fn wrong_type<T>() -> Result<T, Failure> {
    refused("WRONGTYPE Operation against a key holding the wrong kind of value")
}
