//! The store's directory: private to its user, and held by one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use ff_script::HostError;

/// Proof that this process holds the directory; the kernel lets go of it when the process ends, however it ends.
pub(crate) struct DirectoryLock {
    _file: File,
}

/// Creates the directory when it is absent and takes its lock.
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
            // The holder writes its pid right after it takes the lock; until then the name is missing, not wrong.
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

/// A process this one is just starting holds a copy of every open file until it has become another program, so a lock that was
/// given up a moment ago can seem taken. Longer than this, it is.
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
    // An existing directory is tightened: payloads and keys are nobody else's business.
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

/// Opens a file for reading and writing, creating it for its owner only.
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
