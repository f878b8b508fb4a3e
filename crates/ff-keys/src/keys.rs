//! The keys of a process: a ring that follows its file.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_core::types::{TimestampMs, WaitpointToken};
use zeroize::Zeroizing;

use crate::file::{self, Locked, Stamp};
use crate::ring::Verdict;
use crate::{Claims, Error, InvalidToken, KeyFacts, KeyId, KeyRing, Source, WebhookKey};

/// How long a change of the file by another process may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The keys of this process, shared by its clones.
///
/// The file is checked before every signature, and when a token names an unknown key. Otherwise it is checked at most
/// once a second. So other processes see a rotation or revocation within a second.
///
/// Calls sometimes read or write a small file and otherwise only compute, so they are safe in any thread.
#[derive(Clone)]
pub struct Keys(Arc<Shared>);

struct Shared {
    source: Source,
    state: Mutex<State>,
}

/// The ring as last read. Every assignment replaces it whole, so a panic elsewhere does not corrupt it.
struct State {
    /// `None` until the first key is needed.
    ring: Option<Arc<KeyRing>>,
    /// The version of the file that the ring was read from. `None` if the file may have changed since with the same
    /// stamp.
    seen: Option<Stamp>,
    looked_at: Option<Instant>,
}

impl Keys {
    /// Opens the keys at this place. A named file must exist. The file in the data directory is created when it is
    /// first needed.
    pub fn open(source: Source) -> Result<Self, Error> {
        let ring = match &source {
            Source::Value(text) => Some(Arc::new(read_value(text)?)),
            Source::File(_) | Source::DataDir(_) => None,
        };
        let keys = Self(Arc::new(Shared { source, state: Mutex::new(State { ring, seen: None, looked_at: None }) }));
        if let Some(path) = keys.path() {
            keys.0.look(&mut keys.0.lock(), path, Instant::now())?;
        }
        Ok(keys)
    }

    /// Creates a keys file with one new key, for this user only, and its directory. Fails if the file exists.
    pub fn create(path: &Path) -> Result<Self, Error> {
        make_parent(path)?;
        let locked = Locked::wait(path)?;
        if locked.load()?.is_some() {
            return Err(Error::Exists { path: path.to_owned() });
        }
        locked.store(&KeyRing::generate().to_text())?;
        drop(locked);
        Self::open(Source::File(path.to_owned()))
    }

    /// Where the keys come from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.0.source
    }

    fn path(&self) -> Option<&Path> {
        self.0.source.path()
    }

    /// Signs the claims. Creates the keys file of the data directory if there is none.
    ///
    /// Fails if the file has disappeared or become unreadable. Otherwise it might issue tokens that no other process
    /// accepts.
    pub fn mint(&self, claims: &Claims) -> Result<WaitpointToken, Error> {
        self.ensure()?.mint(claims)
    }

    /// The keys that sign the webhooks of a namespace, newest first. Creates the keys file of the data directory if
    /// there is none.
    ///
    /// Fails if the file has disappeared or become unreadable, like [`Keys::mint`].
    pub fn webhook_keys(&self, namespace: &str) -> Result<Vec<WebhookKey>, Error> {
        Ok(self.ensure()?.webhook_keys(namespace))
    }

    /// Ensures that there is a signing key. Creates the keys file of the data directory if there is none.
    pub fn make(&self) -> Result<(), Error> {
        self.ensure().map(|_| ())
    }

    /// The ring in the file now; the file is created if necessary.
    fn ensure(&self) -> Result<Arc<KeyRing>, Error> {
        if let Some(path) = self.path() {
            let mut state = self.0.lock();
            self.0.look(&mut state, path, Instant::now())?;
            if let Some(ring) = &state.ring {
                return Ok(Arc::clone(ring));
            }
            drop(state);
            make_parent(path)?;
            let locked = Locked::wait(path)?;
            // The previous holder of the lock may have created it.
            if locked.load()?.is_none() {
                locked.store(&KeyRing::generate().to_text())?;
            }
            self.0.look(&mut self.0.lock(), path, Instant::now())?;
        }
        self.0.lock().ring.clone().ok_or_else(|| self.0.missing())
    }

    /// Returns the claims of a token that was signed with one of the keys.
    ///
    /// Every other text fails with the same error. Expired, used or replaced tokens are not detected here. While the
    /// file is unreadable, the keys read last are used.
    pub fn verify(&self, token: &str) -> Result<Claims, InvalidToken> {
        self.verify_at(token, Instant::now())
    }

    fn verify_at(&self, token: &str, now: Instant) -> Result<Claims, InvalidToken> {
        let judge =
            |ring: Option<Arc<KeyRing>>| ring.map_or(Verdict::UnknownKey, |ring| ring.judge(token, TimestampMs::now()));
        match judge(self.ring(now)) {
            Verdict::Genuine(claims) => return Ok(claims),
            Verdict::Invalid => return Err(InvalidToken),
            Verdict::UnknownKey => {}
        }
        // Another process may have created the key a moment ago.
        let Some(path) = self.path() else { return Err(InvalidToken) };
        let ring = {
            let mut state = self.0.lock();
            // If the file is unreadable, the ring stays as it was and the token stays unknown.
            let _ = self.0.look(&mut state, path, now);
            state.ring.clone()
        };
        match judge(ring) {
            Verdict::Genuine(claims) => Ok(claims),
            Verdict::UnknownKey | Verdict::Invalid => Err(InvalidToken),
        }
    }

    /// The ring; the file is checked again if the last check is too old.
    fn ring(&self, now: Instant) -> Option<Arc<KeyRing>> {
        let mut state = self.0.lock();
        let due = state.looked_at.is_none_or(|looked_at| now.saturating_duration_since(looked_at) >= LOOK_EVERY);
        if let Some(path) = self.path().filter(|_| due) {
            // If the file is unreadable, the ring stays as it was. Signing reports the error.
            let _ = self.0.look(&mut state, path, now);
        }
        state.ring.clone()
    }

    /// The ids of the keys whose tokens are accepted, the signing one first. Empty before the first key is needed.
    #[must_use]
    pub fn key_ids(&self) -> Vec<KeyId> {
        self.ring(Instant::now()).map(|ring| ring.key_ids()).unwrap_or_default()
    }

    /// The public facts of every key, the signing one first.
    #[must_use]
    pub fn facts(&self) -> Vec<KeyFacts> {
        self.ring(Instant::now()).map(|ring| ring.facts()).unwrap_or_default()
    }

    /// Fails with [`Error::ForeignRing`] if the store knows keys but none of these.
    ///
    /// Call this before the first signature for a store, and before [`Keys::make`]. Then a process that lacks the right
    /// file does not create another one.
    pub fn check_known<T: AsRef<str>>(&self, known: &[T]) -> Result<(), Error> {
        if let Some(path) = self.path() {
            self.0.look(&mut self.0.lock(), path, Instant::now())?;
        }
        let here = self.key_ids();
        if known.is_empty() || known.iter().any(|id| here.iter().any(|key| key.as_str() == id.as_ref())) {
            return Ok(());
        }
        let known = known.iter().map(|id| id.as_ref().to_owned()).collect();
        Err(Error::ForeignRing { place: self.0.source.to_string(), known, here })
    }

    /// Rotates: signs with a new key from now on, and accepts tokens of the old one during the grace period. Returns
    /// the new id.
    ///
    /// Concurrent additions and revocations by other processes are kept. Fails for keys given by value.
    pub fn rotate(&self, grace: Duration) -> Result<KeyId, Error> {
        self.change(|ring| Ok(ring.rotate(grace)))
    }

    /// Revokes a key: its tokens fail from now on, in other processes within a second. Returns the id of the signing
    /// key, which is new if the signing key was revoked. Fails for keys given by value and for an unknown key.
    pub fn revoke(&self, id: &KeyId) -> Result<KeyId, Error> {
        self.change(|ring| {
            if ring.revoke(id) {
                return Ok(ring.signing.id.clone());
            }
            let known = ring.facts().into_iter().map(|facts| facts.id).collect();
            Err(Error::UnknownKey { id: id.clone(), place: self.0.source.to_string(), known })
        })
    }

    /// Changes the ring in the file, starting from the file's current content.
    fn change<T>(&self, change: impl FnOnce(&mut KeyRing) -> Result<T, Error>) -> Result<T, Error> {
        let path = self.path().ok_or(Error::Fixed)?;
        self.ensure()?;
        let locked = Locked::wait(path)?;
        let mut ring = locked.load()?.ok_or_else(|| self.0.missing())?;
        let changed = change(&mut ring)?;
        locked.store(&ring.to_text())?;
        self.0.look(&mut self.0.lock(), path, Instant::now())?;
        Ok(changed)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self) -> Error {
        Error::Missing { path: self.source.path().map(Path::to_owned).unwrap_or_default() }
    }

    /// Reads the file if it may have changed. A missing file is accepted only where one will be created.
    fn look(&self, state: &mut State, path: &Path, now: Instant) -> Result<(), Error> {
        state.looked_at = Some(now);
        if let (Some(seen), Some(_)) = (&state.seen, &state.ring)
            && Stamp::of(path)?.as_ref() == Some(seen)
        {
            return Ok(());
        }
        match file::load(path)? {
            Some((ring, stamp)) => {
                state.ring = Some(Arc::new(ring));
                state.seen = stamp.settled();
                Ok(())
            }
            None if state.ring.is_none() && matches!(self.source, Source::DataDir(_)) => Ok(()),
            None => Err(self.missing()),
        }
    }
}

fn make_parent(path: &Path) -> Result<(), Error> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => file::make_directory(parent),
        None => Ok(()),
    }
}

/// In `FF_KEYS`, semicolons may separate the lines, because some variables can hold only one line.
fn read_value(text: &str) -> Result<KeyRing, Error> {
    let lines = Zeroizing::new(text.replace(';', "\n"));
    KeyRing::from_text(&lines).map_err(|source| Error::Malformed { place: "FF_KEYS".to_owned(), source })
}

impl fmt::Debug for Keys {
    /// Prints the place only; the keys are read when they are needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({:?})", self.0.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_core::types::{ExecutionId, WaitpointId};
    use std::fs;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn claims() -> Claims {
        Claims {
            namespace: "default".to_owned(),
            execution_id: ExecutionId::mint(),
            waitpoint_id: WaitpointId::mint(),
            approver: None,
            expires_at: None,
            uses: None,
            nonce: crate::fresh_nonce(),
        }
    }

    fn in_data_dir(directory: &Path) -> Keys {
        Keys::open(Source::DataDir(directory.join("data").join("keys"))).unwrap()
    }

    #[test]
    fn the_file_is_made_when_it_is_first_needed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data").join("keys");
        let keys = in_data_dir(directory.path());
        assert!(keys.key_ids().is_empty());
        assert_eq!(keys.verify("wp1.a.b.c"), Err(InvalidToken));
        assert!(!directory.path().join("data").exists());

        let token = keys.mint(&claims()).unwrap();
        assert!(keys.verify(token.as_str()).is_ok());
        assert!(path.exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        // Another process that looks in the same place has the same keys.
        assert!(in_data_dir(directory.path()).verify(token.as_str()).is_ok());
    }

    #[test]
    fn a_named_file_must_be_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let error = Keys::open(Source::File(path.clone())).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot find the keys file {}", path.display()));
        assert!(!path.exists());
        let keys = Keys::create(&path).unwrap();
        assert_eq!(keys.key_ids(), Keys::open(Source::File(path.clone())).unwrap().key_ids());
        assert!(matches!(Keys::create(&path), Err(Error::Exists { .. })));
    }

    #[test]
    fn a_rotation_is_seen_by_another_process() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (in_data_dir(directory.path()), in_data_dir(directory.path()));
        let old = one.mint(&claims()).unwrap();
        assert!(other.verify(old.as_str()).is_ok());

        let id = one.rotate(HOUR).unwrap();
        let new = one.mint(&claims()).unwrap();
        assert!(new.as_str().contains(id.as_str()));
        assert!(other.verify(new.as_str()).is_ok(), "an unknown key makes it look at once");
        assert!(other.verify(old.as_str()).is_ok());
        assert_eq!(other.key_ids(), one.key_ids());
        assert!(other.mint(&claims()).unwrap().as_str().contains(id.as_str()), "it signs with the new key");

        one.rotate(Duration::ZERO).unwrap();
        assert!(one.verify(new.as_str()).is_err());
    }

    #[test]
    fn a_revocation_is_seen_by_another_process_within_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (in_data_dir(directory.path()), in_data_dir(directory.path()));
        let token = one.mint(&claims()).unwrap();
        let now = Instant::now();
        assert!(other.verify_at(token.as_str(), now).is_ok());

        let id = one.key_ids().remove(0);
        let signing = one.revoke(&id).unwrap();
        assert_ne!(signing, id);
        assert!(one.verify(token.as_str()).is_err(), "at once where it was revoked");
        assert!(other.verify_at(token.as_str(), now + LOOK_EVERY).is_err());
        assert_eq!(other.key_ids(), std::slice::from_ref(&signing));

        let error = one.revoke(&id).unwrap_err().to_string();
        assert!(error.starts_with(&format!("no key {id} in ")) && error.ends_with(signing.as_str()), "{error}");
    }

    #[test]
    fn an_unchanged_file_is_not_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let keys = in_data_dir(directory.path());
        keys.make().unwrap();
        let path = keys.path().unwrap().to_owned();
        let mut state = keys.0.lock();
        state.seen = Stamp::of(&path).unwrap();
        let ring = state.ring.clone().unwrap();
        keys.0.look(&mut state, &path, Instant::now()).unwrap();
        assert!(Arc::ptr_eq(&ring, state.ring.as_ref().unwrap()));
        drop(state);
        in_data_dir(directory.path()).rotate(HOUR).unwrap();
        let mut state = keys.0.lock();
        keys.0.look(&mut state, &path, Instant::now()).unwrap();
        assert!(!Arc::ptr_eq(&ring, state.ring.as_ref().unwrap()));
    }

    #[test]
    fn keys_by_value_work_but_cannot_be_changed() {
        let ring = KeyRing::generate();
        for separator in ["\n", ";"] {
            let value = Zeroizing::new(ring.to_text().trim_end().replace('\n', separator));
            let keys = Keys::open(Source::Value(value)).unwrap();
            let token = keys.mint(&claims()).unwrap();
            assert!(ring.verify(token.as_str()).is_ok());
            assert!(keys.verify(token.as_str()).is_ok());
            assert!(keys.verify(KeyRing::generate().mint(&claims()).unwrap().as_str()).is_err());
            for error in [keys.rotate(HOUR).unwrap_err(), keys.revoke(&ring.signing.id).unwrap_err()] {
                assert!(error.to_string().contains("set FF_KEYS_FILE"), "{error}");
            }
        }
        let error = Keys::open(Source::Value(Zeroizing::new("flowfabric keys 1;CANARY".to_owned()))).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the keys in FF_KEYS: line 2: must start with sign or accept");
    }

    #[test]
    fn a_file_that_breaks_stops_signing_and_not_checking() {
        let directory = tempfile::tempdir().unwrap();
        let keys = in_data_dir(directory.path());
        let token = keys.mint(&claims()).unwrap();
        let later = Instant::now() + 2 * LOOK_EVERY;

        let path = keys.path().unwrap();
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, "CANARY").unwrap();
        assert!(keys.verify_at(token.as_str(), later).is_ok());
        assert!(matches!(keys.mint(&claims()), Err(Error::Malformed { .. })));
        assert!(matches!(keys.rotate(HOUR), Err(Error::Malformed { .. })), "what is there is not overwritten");

        fs::remove_file(path).unwrap();
        assert!(keys.verify_at(token.as_str(), later + LOOK_EVERY).is_ok());
        assert!(matches!(keys.mint(&claims()), Err(Error::Missing { .. })), "keys in use are not replaced by others");
        assert!(!path.exists());

        fs::write(path, text).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(matches!(keys.mint(&claims()), Err(Error::OpenToOthers { mode: 0o644, .. })));
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        assert!(keys.verify(keys.mint(&claims()).unwrap().as_str()).is_ok());
    }

    #[test]
    fn a_store_that_knows_only_other_keys_is_not_signed_for() {
        let directory = tempfile::tempdir().unwrap();
        let keys = in_data_dir(directory.path());
        keys.check_known::<&str>(&[]).unwrap();
        let place = keys.path().unwrap().display().to_string();
        let error = keys.check_known(&["aaaa", "bbbb"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot sign tokens with the keys in {place} (none): this store's tokens are signed with aaaa, bbbb; \
                 copy the keys file of a machine that has one of these to {place}"
            )
        );
        assert!(!keys.path().unwrap().exists(), "no other ring is made");

        keys.make().unwrap();
        let id = keys.key_ids().remove(0);
        keys.check_known(&["aaaa", id.as_str()]).unwrap();
        let error = keys.check_known(&["aaaa"]).unwrap_err();
        assert!(matches!(&error, Error::ForeignRing { here, .. } if *here == [id.clone()]), "{error}");
    }

    #[test]
    fn processes_that_start_together_share_one_ring() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().unwrap();
            let tokens: Vec<(Keys, WaitpointToken)> = std::thread::scope(|scope| {
                let starts: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            let keys = in_data_dir(directory.path());
                            let token = keys.mint(&claims()).unwrap();
                            (keys, token)
                        })
                    })
                    .collect();
                starts.into_iter().map(|start| start.join().unwrap()).collect()
            });
            for (_, token) in &tokens {
                for (keys, _) in &tokens {
                    assert!(keys.verify(token.as_str()).is_ok());
                    assert_eq!(keys.key_ids().len(), 1);
                }
            }
        }
    }

    #[test]
    fn rotations_at_the_same_time_lose_no_key() {
        let directory = tempfile::tempdir().unwrap();
        let first = in_data_dir(directory.path());
        first.make().unwrap();
        let tokens: Vec<WaitpointToken> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let keys = in_data_dir(directory.path());
                        let rotate = || {
                            let token = keys.mint(&claims()).unwrap();
                            keys.rotate(HOUR).unwrap();
                            token
                        };
                        (0..8).map(|_| rotate()).collect::<Vec<_>>()
                    })
                })
                .collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        for token in &tokens {
            assert!(first.verify(token.as_str()).is_ok());
        }
        assert_eq!(in_data_dir(directory.path()).key_ids().len(), 1 + 4 * 8);
    }

    #[test]
    fn clones_share_what_they_read() {
        let directory = tempfile::tempdir().unwrap();
        let keys = in_data_dir(directory.path());
        let clone = keys.clone();
        keys.make().unwrap();
        assert_eq!(clone.key_ids(), keys.key_ids());
        assert_eq!(clone.facts().len(), 1);
    }
}
