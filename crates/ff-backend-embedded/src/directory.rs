//! The store's directory: private to its user, and used by one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use ff_script::HostError;

/// Proof that this process holds the directory. The kernel releases the lock when the process ends, however it ends.
pub(crate) struct DirectoryLock {
    _file: File,
}

/// Creates the directory if it is absent, and takes its lock.
pub(crate) fn take(directory: &Path) -> Result<DirectoryLock, HostError> {
    let unavailable = |what: &str, error: std::io::Error| HostError::Unavailable {
        detail: format!("cannot {what} {}: {error}", directory.display()),
    };
    create_private(directory).map_err(|e| unavailable("create", e))?;
    let mut file = open_private(&directory.join("lock")).map_err(|e| unavailable("lock", e))?;
    match try_lock_patiently(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The holder writes its pid right after it takes the lock. Until then the pid is missing, not wrong.
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim();
            return Err(HostError::Refused {
                detail: format!(
                    "directory {} is in use by process {}",
                    directory.display(),
                    if holder.is_empty() { "(starting)" } else { holder }
                ),
            });
        }
        Err(TryLockError::Error(error)) => return Err(unavailable("lock", error)),
    }
    let write_pid = |file: &mut File| -> std::io::Result<()> {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())
    };
    write_pid(&mut file).map_err(|e| unavailable("lock", e))?;
    Ok(DirectoryLock { _file: file })
}

/// How long a taken lock is retried. A process being spawned holds copies of all open files until its `exec`. So a lock
/// that was just released can look taken for a moment.
const PATIENCE: Duration = Duration::from_millis(300);

fn try_lock_patiently(file: &File) -> Result<(), TryLockError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            result => return result,
        }
    }
}

#[cfg(unix)]
fn create_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // The permissions of an existing directory are tightened, because it holds payloads and keys.
    let metadata = fs::metadata(directory)?;
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn create_private(directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)
}

/// Opens a file for reading and writing. A new file is private to its owner.
pub(crate) fn open_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}
