//! Finds the principal behind a bearer token: the root token's, or one the store knows by its digest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_core::types::TimestampMs;
use ff_engine::Operations;
use ff_keys::BearerToken;
use ff_script::{Error, HostError};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use subtle::ConstantTimeEq;

use super::{Caller, Principal};

/// A token is looked up again after this time, in case the announcement of its revocation was lost.
const REMEMBERED: Duration = Duration::from_secs(4);
const REMEMBERED_MS: i64 = 4_000;
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
        known: Arc<Known>,
    },
}

/// Principals by the digest of their token, for a while, and the lookups under way.
#[derive(Default)]
pub struct Known(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    found: HashMap<String, (Instant, Arc<Principal>)>,
    /// Callers that ask for one token at the same time share one store call.
    asked: HashMap<String, Lookup>,
    /// Raised by every revocation: a lookup that began before it is not remembered.
    generation: u64,
}

type Lookup = Shared<BoxFuture<'static, Result<Option<Arc<Principal>>, Error>>>;

impl Known {
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self) {
        let mut known = self.lock();
        known.found.clear();
        known.asked.clear();
        known.generation += 1;
    }

    /// The principal of a token, at most `age` old.
    async fn find(self: &Arc<Self>, operations: &Operations, digest: &str, age: Duration) -> Found {
        let lookup = {
            let mut known = self.lock();
            if let Some((at, who)) = known.found.get(digest)
                && at.elapsed() < age
            {
                return Ok(Some(Arc::clone(who)));
            }
            let generation = known.generation;
            let asked = known.asked.entry(digest.to_owned());
            asked.or_insert_with(|| self.ask(operations.clone(), digest.to_owned(), generation)).clone()
        };
        lookup.await
    }

    /// Runs to its end even when every caller leaves, so that no entry of `asked` is left behind.
    fn ask(self: &Arc<Self>, operations: Operations, digest: String, generation: u64) -> Lookup {
        let known = Arc::clone(self);
        let asking = tokio::spawn(async move {
            let answer = operations.find_access(&digest).await;
            let mut known = known.lock();
            if known.generation == generation {
                known.asked.remove(&digest);
            }
            let Some(access) = answer? else { return Ok(None) };
            let lives_on = access.expires_at.is_none_or(|at| at > TimestampMs::now().as_millis() + REMEMBERED_MS);
            let who = Arc::new(Principal::from(access));
            // A token that expires soon is looked up every time, so that it does not outlive itself here.
            if known.generation == generation && lives_on {
                if known.found.len() >= REMEMBERED_MAX {
                    known.found.clear();
                }
                known.found.insert(digest, (Instant::now(), Arc::clone(&who)));
            }
            Ok(Some(who))
        });
        asking.map(|joined| joined.unwrap_or(Err(Error::Host(HostError::Closed)))).boxed().shared()
    }
}

/// The principal of a token; `None` when the token is unknown, revoked or expired.
pub type Found = Result<Option<Arc<Principal>>, Error>;

impl Credentials {
    /// Everyone shows a token; this one is the root's.
    pub fn asked(root: &BearerToken) -> Self {
        Self::Asked { root: root.digest(), known: Arc::default() }
    }

    /// Forgets what was found in the store: something was revoked.
    pub fn forget(&self) {
        if let Self::Asked { known, .. } = self {
            known.clear();
        }
    }

    /// Who bears this token; `None` when it is missing, unknown, revoked or expired.
    pub async fn find(&self, operations: &Operations, token: Option<&BearerToken>) -> Result<Option<Caller>, Error> {
        let Self::Asked { root, known } = self else { return Ok(Some(Caller::for_good(Principal::local()))) };
        let Some(token) = token else { return Ok(None) };
        let digest = token.digest();
        if bool::from(digest.as_bytes().ct_eq(root.as_bytes())) {
            return Ok(Some(Caller::for_good(Principal::root())));
        }
        let found = known.find(operations, &digest, REMEMBERED).await?;
        Ok(found.map(|who| Caller::by_token(who, digest)))
    }

    /// The principal that a digest stands for, looked up no longer than `age` ago.
    pub async fn find_again(&self, operations: &Operations, digest: &str, age: Duration) -> Found {
        match self {
            Self::NotAsked => Ok(Some(Arc::new(Principal::local()))),
            Self::Asked { known, .. } => known.find(operations, digest, age).await,
        }
    }
}
