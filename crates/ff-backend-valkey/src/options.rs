//! The settings of a host.

use std::time::Duration;

use ff_script::Library;

use crate::durability::Durability;

/// How to reach a store, and what to guarantee.
#[derive(Clone, Debug)]
pub struct Options {
    /// `valkey://[USER:PASSWORD@]HOST[:PORT][/DB]`, `valkeys://` for TLS, `valkey-cluster://H1:P1,H2:P2` for a cluster,
    /// `valkeys-cluster://` for one with TLS. `redis` in place of `valkey` is the same.
    pub url: String,
    /// The library to load.
    pub library: Library,
    /// What a reply guarantees (default: what the server's AOF provides).
    pub durability: Option<Durability>,
    /// How long a call is retried before it fails with `Unavailable`.
    pub deadline: Duration,
    /// How long one attempt may take before its connection counts as lost.
    pub attempt_limit: Duration,
    /// Certificates (PEM) to trust beside the system's, for TLS.
    pub root_certificate: Option<Vec<u8>>,
}

impl Options {
    /// The default limits: 10 s for a call, 3 s for an attempt.
    pub fn new(url: impl Into<String>, library: Library) -> Options {
        Options {
            url: url.into(),
            library,
            durability: None,
            deadline: Duration::from_secs(10),
            attempt_limit: Duration::from_secs(3),
            root_certificate: None,
        }
    }
}
