//! What can go wrong with keys and tokens. No text here ever holds a secret, a token or a line of a keys file.

use std::io;
use std::path::PathBuf;

use crate::KeyId;
use crate::claims::CLAIM_BYTES_MAX;

/// The token is not one of ours. Why is not said: whoever forges tokens learns nothing from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid token")]
pub struct InvalidToken;

/// A text that is no key ring: the line at fault, never its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadKeys {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// What can go wrong with the keys.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A claim does not fit into a token.
    #[error("cannot sign a token: its {field} may be at most {CLAIM_BYTES_MAX} bytes, not {bytes}")]
    ClaimTooLong {
        /// Which claim.
        field: &'static str,
        /// Its length.
        bytes: usize,
    },

    /// The text at this place is no key ring.
    #[error("cannot read the keys in {place}: {source}")]
    Malformed {
        /// The file, or `FF_KEYS`.
        place: String,
        /// The line at fault.
        source: BadKeys,
    },

    /// The file could be read or changed by other users.
    #[error(
        "refusing the keys in {path}: others may use the file (mode {mode:04o}); run chmod 600 '{path}'",
        path = path.display()
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },

    /// A file that was named, or that this process has read before, is not there.
    #[error("cannot find the keys file {path}", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },

    /// There are keys where new ones were to be made.
    #[error("the keys file {path} exists already", path = path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// The system refused.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io {
        /// What was tried, e.g. `write`.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// Two places are named at once.
    #[error("both FF_KEYS and FF_KEYS_FILE are set; set one of them")]
    TwoPlaces,

    /// Nothing says where this user's data is.
    #[error("cannot tell where to keep the keys: set FF_DATA_DIR, or HOME")]
    NoDataDir,

    /// The keys were given by value and cannot be changed from here.
    #[error(
        "cannot change the keys in FF_KEYS from here: change the variable, or keep them in a file and set FF_KEYS_FILE"
    )]
    Fixed,

    /// The ring has no key of this name.
    #[error("no key {id} in {place}; there are {}", list(known))]
    UnknownKey {
        /// The name that was asked for.
        id: KeyId,
        /// The file.
        place: String,
        /// The keys there are.
        known: Vec<KeyId>,
    },

    /// Other processes of the same store sign with other keys: tokens signed here would be refused there.
    #[error(
        "cannot sign tokens with the keys in {place} ({}): this store's tokens are signed with {}; \
         copy the keys file of a machine that has one of these to {place}",
        list(here),
        list(known)
    )]
    ForeignRing {
        /// The file this process has or would make, or `FF_KEYS`.
        place: String,
        /// The keys noted in the store.
        known: Vec<String>,
        /// The keys of this process.
        here: Vec<KeyId>,
    },
}

fn list<T: AsRef<str>>(ids: &[T]) -> String {
    if ids.is_empty() { "none".to_owned() } else { ids.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ") }
}
