//! Errors of keys and tokens. None of their texts contains a secret, a token or a line of a keys file.

use std::io;
use std::path::PathBuf;

use crate::KeyId;
use crate::claims::CLAIM_BYTES_MAX;

/// The token is not valid. The error does not say why, so that a forger learns nothing from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid token")]
pub struct InvalidToken;

/// A text that is not a key ring. Names the line at fault, never its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadKeys {
    /// The line, counted from 1.
    pub line: usize,
    pub problem: &'static str,
}

/// What can go wrong with the keys.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A claim is too long for a token.
    #[error("cannot sign a token: its {field} may be at most {CLAIM_BYTES_MAX} bytes, not {bytes}")]
    ClaimTooLong {
        /// The name of the claim.
        field: &'static str,
        bytes: usize,
    },

    /// The text at this place is not a key ring.
    #[error("cannot read the keys in {place}: {source}")]
    Malformed {
        /// The file, or `FF_KEYS`.
        place: String,
        source: BadKeys,
    },

    /// Other users can read or change the file.
    #[error(
        "refusing the keys in {path}: others may use the file (mode {mode:04o}); run chmod 600 '{path}'",
        path = path.display()
    )]
    OpenToOthers { path: PathBuf, mode: u32 },

    /// The file does not exist, although it was named, or read by this process before.
    #[error("cannot find the keys file {path}", path = path.display())]
    Missing { path: PathBuf },

    /// A keys file was to be created where one exists.
    #[error("the keys file {path} exists already", path = path.display())]
    Exists { path: PathBuf },

    /// A system call failed.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io {
        /// The attempted action, e.g. `write`.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },

    /// `FF_KEYS` and `FF_KEYS_FILE` are both set.
    #[error("both FF_KEYS and FF_KEYS_FILE are set; set one of them")]
    TwoPlaces,

    /// No setting says where this user's data is.
    #[error("cannot tell where to keep the keys: set FF_DATA_DIR, or HOME")]
    NoDataDir,

    /// The keys were given by value, so this process cannot change them.
    #[error(
        "cannot change the keys in FF_KEYS from here: change the variable, or keep them in a file and set FF_KEYS_FILE"
    )]
    Fixed,

    /// The ring has no key with this id.
    #[error("no key {id} in {place}; there are {}", list(known))]
    UnknownKey {
        /// The requested id.
        id: KeyId,
        /// The keys file, or `FF_KEYS`.
        place: String,
        /// The ids in the ring.
        known: Vec<KeyId>,
    },

    /// Other processes of the same store sign with other keys. They would refuse tokens signed here.
    #[error(
        "cannot sign tokens with the keys in {place} ({}): this store's tokens are signed with {}; \
         copy the keys file of a machine that has one of these to {place}",
        list(here),
        list(known)
    )]
    ForeignRing {
        /// The file this process uses or would create, or `FF_KEYS`.
        place: String,
        /// The ids recorded in the store.
        known: Vec<String>,
        /// The ids of this process.
        here: Vec<KeyId>,
    },
}

fn list<T: AsRef<str>>(ids: &[T]) -> String {
    if ids.is_empty() { "none".to_owned() } else { ids.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ") }
}
