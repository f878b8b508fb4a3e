//! What a worker is, whom it serves, and how it reaches the engine.

use std::path::PathBuf;

use ff_core::types::{LaneId, Namespace, WorkerId, WorkerInstanceId};

use crate::SdkError;

#[cfg(feature = "embedded")]
use crate::embedded::EmbeddedEngine;

/// How a worker reaches the engine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BackendConfig {
    /// Valkey or Redis, directly.
    #[cfg(feature = "valkey")]
    Valkey {
        /// `valkey://HOST:PORT`, `valkeys://…` or `valkey-cluster://H1:P1,H2:P2`.
        url: String,
    },
    /// An engine in this process.
    #[cfg(feature = "embedded")]
    Embedded(EmbeddedEngine),
    /// `ff server`.
    #[cfg(feature = "http")]
    Http {
        /// Where it listens, e.g. `http://127.0.0.1:7433`.
        url: String,
        /// The bearer token, unless the server runs without credentials.
        token: Option<Secret>,
        /// The certificate that signed the server's, as PEM, when the system does not know it; needs the feature `tls`.
        ca_cert: Option<PathBuf>,
    },
    /// The caller brings it: [`crate::FlowFabricWorker::connect_with`].
    Given,
}

/// A credential; it never prints itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The credential with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// A worker's settings; checked when it connects.
///
/// ```
/// use ff_sdk::WorkerConfig;
/// let mut config = WorkerConfig::new("127.0.0.1", 6379, "mailer", "mailer-1", "default", "mail");
/// config.capabilities = vec!["smtp".to_owned()];
/// config.max_concurrent_tasks = 8;
/// assert_eq!(config.lease_ttl_ms, 30_000);
/// ```
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// How the engine is reached.
    pub backend: BackendConfig,
    /// Names the kind of worker; many processes may share it.
    pub worker_id: WorkerId,
    /// Names this process; no two live processes share it.
    pub worker_instance_id: WorkerInstanceId,
    /// The namespace of its lanes.
    pub namespace: Namespace,
    /// The lanes it serves.
    pub lanes: Vec<LaneId>,
    /// What it can do: work that requires anything else is not given to it.
    pub capabilities: Vec<String>,
    /// The kinds it takes; `None` is every kind. A runtime takes the kinds it has handlers for, unless this names some.
    pub kinds: Option<Vec<String>>,
    /// How long a lease lasts without renewal, 1_000 to 3_600_000.
    pub lease_ttl_ms: u64,
    /// How often ready work is looked for in case an announcement was lost. Claims are woken by announcements.
    pub claim_poll_interval_ms: u64,
    /// How many tasks it holds at once. A runtime takes 1 for the default and holds 64 instead, unless
    /// [`WorkerConfig::with_max_concurrent_tasks`] said 1.
    pub max_concurrent_tasks: usize,
    /// The file with the keys that sign waitpoint tokens, for a worker that talks to Valkey itself or runs the engine. Unless it is
    /// said, `FF_KEYS` or `FF_KEYS_FILE` says, else it is `keys` in the data directory. Over HTTP the server signs.
    pub keys: Option<PathBuf>,
    /// The data directory, where a keys file is made when none is there; `FF_DATA_DIR`, else the user's, unless it is said.
    pub data_dir: Option<PathBuf>,
    /// A runtime keeps to [`WorkerConfig::max_concurrent_tasks`] even when it is 1.
    pub concurrency_is_set: bool,
}

/// The default of [`WorkerConfig::lease_ttl_ms`].
pub const LEASE_TTL_MS: u64 = 30_000;
const LEASE_TTL_MS_MIN: u64 = ff_core::limits::LEASE_TTL_MS_MIN.unsigned_abs();
const LEASE_TTL_MS_MAX: u64 = ff_core::limits::LEASE_TTL_MS_MAX.unsigned_abs();
const CAPABILITIES_MAX: usize = ff_core::limits::CAPABILITIES_MAX as usize;
const CAPABILITIES_BYTES_MAX: usize = ff_core::limits::CAPABILITY_BYTES_MAX;
const KINDS_MAX: usize = ff_core::limits::KINDS_MAX as usize;
const KIND_BYTES_MAX: usize = ff_core::limits::KIND_BYTES_MAX;
const SLOTS_MAX: usize = 4_096;
const LANES_MAX: usize = ff_core::limits::LANES_PER_WORKER_MAX as usize;

fn is_kind(text: &str) -> bool {
    (1..=KIND_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

impl WorkerConfig {
    /// A worker that talks to the Valkey server at `host` and `port` itself.
    #[cfg(feature = "valkey")]
    #[must_use]
    pub fn new(
        host: impl Into<String>,
        port: u16,
        worker_id: impl Into<String>,
        worker_instance_id: impl Into<String>,
        namespace: impl Into<String>,
        lane: impl Into<String>,
    ) -> Self {
        let host = host.into();
        // An IPv6 address needs its brackets in a URL.
        let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
        let backend = BackendConfig::Valkey { url: format!("valkey://{host}:{port}") };
        Self::with_backend(backend, worker_id, worker_instance_id, namespace, lane)
    }

    /// A worker inside the process that runs the engine.
    #[cfg(feature = "embedded")]
    #[must_use]
    pub fn embedded(
        engine: impl Into<EmbeddedEngine>,
        worker_id: impl Into<String>,
        worker_instance_id: impl Into<String>,
        namespace: impl Into<String>,
        lane: impl Into<String>,
    ) -> Self {
        Self::with_backend(BackendConfig::Embedded(engine.into()), worker_id, worker_instance_id, namespace, lane)
    }

    /// A worker that talks to `ff server`; see [`WorkerConfig::with_token`] for its credential.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(
        url: impl Into<String>,
        worker_id: impl Into<String>,
        worker_instance_id: impl Into<String>,
        namespace: impl Into<String>,
        lane: impl Into<String>,
    ) -> Self {
        let backend = BackendConfig::Http { url: url.into(), token: None, ca_cert: None };
        Self::with_backend(backend, worker_id, worker_instance_id, namespace, lane)
    }

    /// A worker with any backend; the other settings have their defaults.
    #[must_use]
    pub fn with_backend(
        backend: BackendConfig,
        worker_id: impl Into<String>,
        worker_instance_id: impl Into<String>,
        namespace: impl Into<String>,
        lane: impl Into<String>,
    ) -> Self {
        Self {
            backend,
            worker_id: WorkerId::new(worker_id),
            worker_instance_id: WorkerInstanceId::new(worker_instance_id),
            namespace: Namespace::new(namespace),
            lanes: vec![LaneId::new(lane)],
            capabilities: Vec::new(),
            kinds: None,
            lease_ttl_ms: LEASE_TTL_MS,
            claim_poll_interval_ms: 1_000,
            max_concurrent_tasks: 1,
            keys: None,
            data_dir: None,
            concurrency_is_set: false,
        }
    }

    /// The same worker, holding this many tasks at once, in a runtime too.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let one_by_one = WorkerConfig::new("127.0.0.1", 6379, "mailer", "mailer-1", "default", "mail").with_max_concurrent_tasks(1);
    /// assert!(one_by_one.concurrency_is_set);
    /// ```
    #[must_use]
    pub fn with_max_concurrent_tasks(mut self, tasks: usize) -> Self {
        self.max_concurrent_tasks = tasks;
        self.concurrency_is_set = true;
        self
    }

    /// The same worker with a bearer token for the server.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_token(mut self, secret: impl Into<String>) -> Self {
        if let BackendConfig::Http { token, .. } = &mut self.backend {
            *token = Some(Secret::new(secret));
        }
        self
    }

    /// The same worker, which trusts the server whose certificate this one (as PEM) signed; needs the feature `tls`.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_ca_cert(mut self, file: impl Into<PathBuf>) -> Self {
        if let BackendConfig::Http { ca_cert, .. } = &mut self.backend {
            *ca_cert = Some(file.into());
        }
        self
    }

    /// Refuses what the engine would refuse later, by the name of the setting.
    pub(crate) fn check(&self) -> Result<(), SdkError> {
        let refuse = |field: &str, message: String| Err(SdkError::config("connect", field, message));
        let names = [
            ("worker_id", WorkerId::try_new(self.worker_id.as_str()).map(|_| ())),
            ("worker_instance_id", WorkerInstanceId::try_new(self.worker_instance_id.as_str()).map(|_| ())),
            ("namespace", Namespace::try_new(self.namespace.as_str()).map(|_| ())),
        ];
        for (field, checked) in names {
            if let Err(error) = checked {
                return refuse(field, format!("is refused: {error}"));
            }
        }
        if self.lanes.is_empty() {
            return refuse("lanes", "must name at least one lane".to_owned());
        }
        if self.lanes.len() > LANES_MAX {
            return refuse("lanes", format!("must name at most {LANES_MAX} lanes, got {}", self.lanes.len()));
        }
        for lane in &self.lanes {
            if let Err(error) = LaneId::try_new(lane.as_str()) {
                return refuse("lanes", format!("is refused: {error}"));
            }
        }
        if !(LEASE_TTL_MS_MIN..=LEASE_TTL_MS_MAX).contains(&self.lease_ttl_ms) {
            let range = format!("must be {LEASE_TTL_MS_MIN} to {LEASE_TTL_MS_MAX}, got {}", self.lease_ttl_ms);
            return refuse("lease_ttl_ms", range);
        }
        if !(1..=SLOTS_MAX).contains(&self.max_concurrent_tasks) {
            let range = format!("must be 1 to {SLOTS_MAX}, got {}", self.max_concurrent_tasks);
            return refuse("max_concurrent_tasks", range);
        }
        self.check_capabilities()?;
        self.check_kinds()
    }

    fn check_kinds(&self) -> Result<(), SdkError> {
        let Some(kinds) = &self.kinds else { return Ok(()) };
        let refuse = |message: String| Err(SdkError::config("connect", "kinds", message));
        if kinds.is_empty() {
            return refuse("must name at least one kind; None is every kind".to_owned());
        }
        if kinds.len() > KINDS_MAX {
            return refuse(format!("must be at most {KINDS_MAX} kinds, got {}", kinds.len()));
        }
        match kinds.iter().find(|kind| !is_kind(kind)) {
            Some(kind) => {
                refuse(format!("{kind:?} is no kind: a kind is 1 to {KIND_BYTES_MAX} printable ASCII characters"))
            }
            None => Ok(()),
        }
    }

    fn check_capabilities(&self) -> Result<(), SdkError> {
        let refuse = |message: String| Err(SdkError::config("connect", "capabilities", message));
        if self.capabilities.len() > CAPABILITIES_MAX {
            return refuse(format!("must be at most {CAPABILITIES_MAX} tokens, got {}", self.capabilities.len()));
        }
        let bytes: usize = self.capabilities.iter().map(String::len).sum();
        if bytes > CAPABILITIES_BYTES_MAX {
            return refuse(format!("must be at most {CAPABILITIES_BYTES_MAX} bytes in all, got {bytes}"));
        }
        for token in &self.capabilities {
            if token.is_empty() {
                return refuse("must not hold an empty token".to_owned());
            }
            let wrong = |c: char| c == ',' || c.is_whitespace() || c.is_control();
            if let Some(found) = token.chars().find(|c| wrong(*c)) {
                return refuse(format!("must not hold {found:?}, as in {token:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> WorkerConfig {
        WorkerConfig::with_backend(BackendConfig::Given, "w", "w-1", "default", "mail")
    }

    fn field_at_fault(config: &WorkerConfig) -> Option<String> {
        match config.check() {
            Ok(()) => None,
            Err(SdkError::Config { context, field, .. }) => {
                assert_eq!(context, "connect");
                field
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_the_engine_would_refuse_is_refused_by_the_name_of_the_setting() {
        type Change = fn(&mut WorkerConfig);
        let table: &[(&str, Change)] = &[
            ("lanes", |c| c.lanes.clear()),
            ("lanes", |c| c.lanes = vec![LaneId::new("a b")]),
            ("lease_ttl_ms", |c| c.lease_ttl_ms = 999),
            ("lease_ttl_ms", |c| c.lease_ttl_ms = 3_600_001),
            ("max_concurrent_tasks", |c| c.max_concurrent_tasks = 0),
            ("worker_id", |c| c.worker_id = WorkerId::new("")),
            ("worker_instance_id", |c| c.worker_instance_id = WorkerInstanceId::new("a/b")),
            ("namespace", |c| c.namespace = Namespace::new("a b")),
            ("kinds", |c| c.kinds = Some(Vec::new())),
            ("kinds", |c| c.kinds = Some(vec!["größe".to_owned()])),
            ("kinds", |c| c.kinds = Some((0..1_001).map(|n| n.to_string()).collect())),
            ("capabilities", |c| c.capabilities = vec![String::new()]),
            ("capabilities", |c| c.capabilities = vec!["a,b".to_owned()]),
            ("capabilities", |c| c.capabilities = vec!["a b".to_owned()]),
            ("capabilities", |c| c.capabilities = vec!["a\u{a0}b".to_owned()]),
            ("capabilities", |c| c.capabilities = vec!["a\u{7f}".to_owned()]),
            ("capabilities", |c| c.capabilities = (0..65).map(|n| format!("c{n}")).collect()),
            ("capabilities", |c| c.capabilities = (0..64).map(|n| format!("{n:065}")).collect()),
        ];
        for (index, (field, change)) in table.iter().enumerate() {
            let mut config = config();
            change(&mut config);
            assert_eq!(field_at_fault(&config).as_deref(), Some(*field), "row {index}");
        }
    }

    #[test]
    fn letters_above_ascii_and_the_limits_themselves_are_fine() {
        let mut config = config();
        config.capabilities = vec!["größe".to_owned(), "能力".to_owned()];
        config.lease_ttl_ms = 1_000;
        assert_eq!(field_at_fault(&config), None);
        config.capabilities = (0..64).map(|n| format!("{n:064}")).collect();
        assert_eq!(field_at_fault(&config), None);
    }

    #[test]
    fn a_secret_never_prints_itself() {
        assert!(!format!("{:?}", Secret::new("hunter2")).contains("hunter2"));
    }
}
