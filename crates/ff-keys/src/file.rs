//! The keys file. It is read only if it is private, replaced as a whole, and changed by one process at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use zeroize::Zeroizing;

use crate::{Error, KeyId, KeyRing};

/// Larger than any ring.
const BYTES_MAX: u64 = 1 << 20;

/// A file younger than this may change again with the same stamp.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// Identifies one version of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    bytes: u64,
    changed: SystemTime,
}

impl Stamp {
    /// The stamp of the current file; `None` if there is no file.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>, Error> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::new(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("look at", path, error)),
        }
    }

    #[cfg(unix)]
    fn new(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        // The change time also moves when the permissions do.
        let since = Duration::new(metadata.ctime().max(0).unsigned_abs(), metadata.ctime_nsec().unsigned_abs() as u32);
        Self { file: (metadata.dev(), metadata.ino()), bytes: metadata.len(), changed: SystemTime::UNIX_EPOCH + since }
    }

    #[cfg(not(unix))]
    fn new(metadata: &fs::Metadata) -> Self {
        let changed = metadata.modified().unwrap_or_else(|_| SystemTime::now());
        Self { file: (0, 0), bytes: metadata.len(), changed }
    }

    /// The stamp, if the same stamp guarantees the same content.
    pub(crate) fn settled(self) -> Option<Self> {
        let age = SystemTime::now().duration_since(self.changed).ok()?;
        (age >= SETTLED_AFTER).then_some(self)
    }
}

/// Reads the ring from the file; `None` if there is no file.
pub(crate) fn load(path: &Path) -> Result<Option<(KeyRing, Stamp)>, Error> {
    let Some((text, stamp)) = read(path)? else { return Ok(None) };
    let ring = KeyRing::from_text(&text).map_err(|error| malformed(path, error))?;
    Ok(Some((ring, stamp)))
}

/// The text of a private file; `None` if there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<(Zeroizing<String>, Stamp)>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", path, error)),
    };
    let metadata = file.metadata().map_err(|error| failed("look at", path, error))?;
    refuse_if_open_to_others(path, &metadata)?;

    // Read in one piece: a buffer that grows leaves copies of secrets in memory.
    let room = usize::try_from(metadata.len().min(BYTES_MAX)).expect("a megabyte fits");
    let mut bytes = Zeroizing::new(Vec::with_capacity(room + 64));
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(|error| failed("read", path, error))?;

    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        malformed(path, crate::BadKeys { line, problem: "is not text" })
    })?;
    Ok(Some((Zeroizing::new(text.to_owned()), Stamp::new(&metadata))))
}

#[cfg(unix)]
fn refuse_if_open_to_others(path: &Path, metadata: &fs::Metadata) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Error::OpenToOthers { path: path.to_owned(), mode });
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_if_open_to_others(_path: &Path, _metadata: &fs::Metadata) -> Result<(), Error> {
    Ok(())
}

/// The right to change a keys file, held until dropped. The lock file is never removed; otherwise two processes could
/// hold the lock.
pub(crate) struct Locked {
    path: PathBuf,
    _lock: File,
}

impl Locked {
    /// Waits until no other process changes the file. Links are followed, so that two names of a file share one lock.
    pub(crate) fn wait(path: &Path) -> Result<Self, Error> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut lock_path = path.clone().into_os_string();
        lock_path.push(".lock");
        let lock_path = PathBuf::from(lock_path);
        let lock = private(OpenOptions::new().write(true).create(true).truncate(false))
            .open(&lock_path)
            .map_err(|error| failed("open", &lock_path, error))?;
        lock.lock().map_err(|error| failed("lock", &lock_path, error))?;
        Ok(Self { path, _lock: lock })
    }

    /// Reads the ring from the file; `None` if there is no file.
    pub(crate) fn load(&self) -> Result<Option<KeyRing>, Error> {
        Ok(load(&self.path)?.map(|(ring, _)| ring))
    }

    /// Replaces the content of the file. Readers see the old text or the new one, even after a crash.
    pub(crate) fn store(&self, text: &str) -> Result<(), Error> {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let draft = directory.join(format!(".{name}.{}", KeyId::random()));

        let written = write_draft(&draft, text)
            .and_then(|()| fs::rename(&draft, &self.path).map_err(|error| failed("replace", &self.path, error)));
        if written.is_err() {
            // The draft was not renamed, so it is of no use.
            let _ = fs::remove_file(&draft);
        }
        written?;
        sync_directory(directory)
    }
}

fn write_draft(draft: &Path, text: &str) -> Result<(), Error> {
    let mut file = private(OpenOptions::new().write(true).create_new(true))
        .open(draft)
        .map_err(|error| failed("create", draft, error))?;
    file.write_all(text.as_bytes()).map_err(|error| failed("write", draft, error))?;
    file.sync_all().map_err(|error| failed("write", draft, error))
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> Result<(), Error> {
    File::open(directory).and_then(|handle| handle.sync_all()).map_err(|error| failed("write", directory, error))
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> Result<(), Error> {
    Ok(())
}

/// Creates files for this user only.
#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Creates the directory for this user only. An existing one stays unchanged.
pub(crate) fn make_directory(directory: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|error| failed("make", directory, error))
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { doing, path: path.to_owned(), source }
}

fn malformed(path: &Path, source: crate::BadKeys) -> Error {
    Error::Malformed { place: path.display().to_string(), source }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn the_file_is_private_and_comes_back_as_stored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let ring = KeyRing::generate();
        let locked = Locked::wait(&path).unwrap();
        assert!(locked.load().unwrap().is_none());
        locked.store(&ring.to_text()).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&directory.path().join("keys.lock")), 0o600);
        assert_eq!(*load(&path).unwrap().unwrap().0.to_text(), *ring.to_text());
        let mut names: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["keys", "keys.lock"], "no draft stays behind");
    }

    #[test]
    fn a_file_others_may_use_is_refused_with_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        Locked::wait(&path).unwrap().store(&KeyRing::generate().to_text()).unwrap();
        for open in [0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            let message = load(&path).unwrap_err().to_string();
            assert!(message.contains(&format!("{open:04o}")), "{message}");
            assert!(message.ends_with(&format!("run chmod 600 '{}'", path.display())), "{message}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(load(&path).unwrap().is_some());
    }

    #[test]
    fn a_bad_file_is_refused_by_line_and_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        for (content, line) in
            [(&b"flowfabric keys 1\nCANARY"[..], 2), (b"CANARY", 1), (b"flowfabric keys 1\n\nCAN\xffARY", 3)]
        {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = load(&path).unwrap_err();
            assert!(error.to_string().contains(&format!("line {line}: ")), "{error}");
            assert!(!format!("{error} {error:?}").contains("CAN"), "{error:?}");
        }
    }

    #[test]
    fn a_link_is_followed_and_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        Locked::wait(&target).unwrap().store(&KeyRing::generate().to_text()).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let ring = KeyRing::generate();
        Locked::wait(&link).unwrap().store(&ring.to_text()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(*load(&target).unwrap().unwrap().0.to_text(), *ring.to_text());
    }

    #[test]
    fn a_file_that_just_changed_is_not_trusted_to_look_different_next_time() {
        let stamp = |age| Stamp { file: (1, 1), bytes: 1, changed: SystemTime::now() - age };
        assert!(stamp(Duration::from_millis(10)).settled().is_none());
        assert!(stamp(Duration::from_secs(2)).settled().is_some());
        let ahead = Stamp { changed: SystemTime::now() + Duration::from_secs(60), ..stamp(Duration::ZERO) };
        assert!(ahead.settled().is_none());
    }

    #[test]
    fn a_new_directory_is_private_and_an_old_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let new = directory.path().join("a/b");
        make_directory(&new).unwrap();
        assert_eq!(mode(&new), 0o700);
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        make_directory(&new).unwrap();
        assert_eq!(mode(&new), 0o755);
    }
}
