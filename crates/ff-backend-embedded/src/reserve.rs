//! Disk space kept in reserve: a file of a few mebibytes. It is deleted when the disk is full, so that calls that end
//! or free work still fit.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::directory::open_private;

const RESERVE_FILE: &str = "reserve";
const PROBE_FILE: &str = "probe";
/// A disk with less free space than this is full.
const PROBE_BYTES: u64 = 1 << 20;
/// A full disk is checked again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The reserve of one store. While it is not held, the disk is full, and only calls that end or free work may write.
pub(crate) struct Reserve {
    directory: PathBuf,
    bytes: u64,
    held: bool,
    looked: Option<Instant>,
}

impl Reserve {
    /// Allocates the reserve if there is space.
    pub fn take(directory: &Path, bytes: u64) -> Reserve {
        let mut reserve = Reserve { directory: directory.to_owned(), bytes, held: false, looked: None };
        reserve.regain();
        reserve
    }

    /// True if, as far as known, there is space for every write.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Releases the reserve. Returns false if it was already released.
    pub fn release(&mut self) -> bool {
        if !self.held {
            return false;
        }
        self.held = false;
        self.looked = Some(Instant::now());
        let path = self.directory.join(RESERVE_FILE);
        match fs::remove_file(&path) {
            Ok(()) => {
                tracing::warn!(
                    bytes = self.bytes,
                    "the disk is full: what was kept back is given to what ends or frees work"
                );
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "the reserve cannot be given up");
                false
            }
        }
    }

    /// Allocates the reserve again once the disk has space. Returns whether it is held.
    pub fn regain(&mut self) -> bool {
        if self.held || self.bytes == 0 {
            self.held = true;
            return true;
        }
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_AGAIN) {
            return false;
        }
        self.looked = Some(Instant::now());
        // Space for the reserve alone would leave none for the next write.
        self.held = self.has_room() && allocate(&self.directory.join(RESERVE_FILE), self.bytes).is_ok();
        self.held
    }

    /// True if the disk under the store has a little free space.
    pub fn has_room(&self) -> bool {
        let probe = self.directory.join(PROBE_FILE);
        let allocated = allocate(&probe, PROBE_BYTES);
        let _ = fs::remove_file(&probe);
        !allocated.is_err_and(|error| is_full(&error))
    }
}

/// True for errors that a full disk or an exhausted quota causes.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

/// Creates a file with this many bytes of allocated blocks.
fn allocate(path: &Path, bytes: u64) -> std::io::Result<()> {
    let allocated = open_private(path).and_then(|file| allocate_blocks(file, bytes));
    if allocated.is_err() {
        let _ = fs::remove_file(path);
    }
    allocated
}

fn allocate_blocks(mut file: File, bytes: u64) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        allocated => return Ok(allocated?),
    }
    // The file system cannot preallocate blocks, so zeros are written.
    let chunk = vec![0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        let some = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        file.write_all(&chunk[..some])?;
        left -= some as u64;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_there_until_it_is_given_up_and_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::take(directory.path(), 4 << 20);
        let size = || fs::metadata(directory.path().join(RESERVE_FILE)).map(|file| file.len()).ok();
        assert_eq!((reserve.is_held(), size()), (true, Some(4 << 20)));
        assert!(reserve.release() && !reserve.release());
        assert_eq!((reserve.is_held(), size()), (false, None));
        assert!(!reserve.regain(), "the disk was looked at a moment ago");
        reserve.looked = None;
        assert!(reserve.regain());
        assert_eq!((reserve.is_held(), size()), (true, Some(4 << 20)));
        drop(reserve);
        assert!(Reserve::take(directory.path(), 4 << 20).is_held(), "what the last process kept back is kept");
    }
}
