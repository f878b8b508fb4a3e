//! Finds the principal behind a bearer token: the root token's, or one the store knows by its digest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ff_engine::Operations;
use ff_keys::BearerToken;
use ff_script::Error;
use subtle::ConstantTimeEq;

use super::Principal;

/// A token is looked up again after this time, should the news of its revocation have been lost.
const REMEMBERED: Duration = Duration::from_secs(10);
const REMEMBERED_MAX: usize = 10_000;

/// How requests are authenticated.
pub enum Credentials {
    /// Everyone who reaches the port may do everything.
    NotAsked,
    /// Every request shows a token.
    Asked {
        /// The digest of the root token.
        root: String,
        /// Tokens found in the store, by their digests.
        known: Known,
    },
}

/// Principals by the digest of their token, for a while.
#[derive(Default)]
pub struct Known(Mutex<HashMap<String, (Instant, Arc<Principal>)>>);

impl Known {
    fn get(&self, digest: &str, now: Instant) -> Option<Arc<Principal>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).filter(|(at, _)| now.duration_since(*at) < REMEMBERED).map(|(_, who)| Arc::clone(who))
    }

    fn put(&self, digest: String, who: Arc<Principal>, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(digest, (now, who));
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Credentials {
    /// Everyone shows a token; this one is the root's.
    pub fn asked(root: &BearerToken) -> Self {
        Self::Asked { root: root.digest(), known: Known::default() }
    }

    /// Forgets what was found in the store: something was revoked.
    pub fn forget(&self) {
        if let Self::Asked { known, .. } = self {
            known.clear();
        }
    }

    /// Who bears this token; none when it is nobody's.
    pub async fn find(
        &self,
        operations: &Operations,
        token: Option<&BearerToken>,
    ) -> Result<Option<Arc<Principal>>, Error> {
        let Self::Asked { root, known } = self else { return Ok(Some(Arc::new(Principal::local()))) };
        let Some(token) = token else { return Ok(None) };
        let digest = token.digest();
        if bool::from(digest.as_bytes().ct_eq(root.as_bytes())) {
            return Ok(Some(Arc::new(Principal::root())));
        }
        let now = Instant::now();
        if let Some(who) = known.get(&digest, now) {
            return Ok(Some(who));
        }
        let Some(access) = operations.find_access(&digest).await? else { return Ok(None) };
        // One that expires soon is asked for every time, so that it does not outlive itself here.
        let expires_soon = access.expires_at.is_some();
        let who = Arc::new(Principal::from(access));
        if !expires_soon {
            known.put(digest, Arc::clone(&who), now);
        }
        Ok(Some(who))
    }
}
