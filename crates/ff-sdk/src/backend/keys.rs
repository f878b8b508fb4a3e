//! Where a process that reaches the store itself looks for the keys that sign waitpoint tokens.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ff_keys::{Keys, Source};

use super::direct::Direct;
use crate::SdkError;
use crate::config::WorkerConfig;

/// Where a process looks for its keys, as far as somebody said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyPlaces {
    /// The keys file.
    pub keys: Option<PathBuf>,
    /// The data directory, where a keys file is made when it is first needed.
    pub data_dir: Option<PathBuf>,
    /// The directory of the embedded store, which is its data directory.
    pub embedded: Option<PathBuf>,
}

impl KeyPlaces {
    /// What a worker's settings say.
    #[must_use]
    pub fn of(config: &WorkerConfig) -> Self {
        Self { keys: config.keys.clone(), data_dir: config.data_dir.clone(), embedded: None }
    }
}

/// Where a process looks for its keys. It does not look before it needs them.
#[derive(Default)]
pub(super) struct Places(Mutex<Option<KeyPlaces>>);

impl Places {
    /// The keys in these places.
    pub(super) fn find(&self) -> Result<Keys, ff_keys::Error> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        let places = ff_keys::Places {
            keys: places.keys.as_deref(),
            data_dir: places.data_dir.as_deref(),
            embedded: places.embedded.as_deref(),
        };
        Source::find(&places).and_then(Keys::open)
    }

    /// Looks in these places; the default changes nothing. Fails when other places were given, or used, before: one
    /// engine signs with one ring.
    fn look_in(&self, places: KeyPlaces, used: bool) -> Result<(), SdkError> {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places == KeyPlaces::default() || given.as_ref() == Some(&places) {
            return Ok(());
        }
        if given.is_some() || used {
            let field = if places.keys.is_some() { "keys" } else { "data_dir" };
            let message = "must be the same for every worker of one engine in a process";
            return Err(SdkError::config("connect", field, message));
        }
        *given = Some(places);
        Ok(())
    }
}

impl Direct {
    /// Looks for the keys that sign waitpoint tokens in these places. Without it, and in what they leave open, the environment
    /// says: `FF_KEYS` or `FF_KEYS_FILE`, else the file `keys` in the data directory.
    pub fn look_for_keys_in(&self, places: KeyPlaces) -> Result<(), SdkError> {
        self.key_places.look_in(places, self.service().has_keys())
    }

    /// Suspensions and waitpoints of the engine, signed with this process's keys.
    pub fn waitpoints(&self) -> Result<&ff_engine::Waitpoints, SdkError> {
        // The text names the file and what to do with it.
        self.service().waitpoints().map_err(|problem| SdkError::config("waitpoints", "keys", problem.detail()))
    }
}
