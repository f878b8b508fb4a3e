//! The measured stores: both hosts with each of their durability settings.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_core::PartitionConfig;
use ff_engine::{EngineOptions, Operations};
use ff_script::generated::{FixPartitions, PartitionDefaults};
use ff_script::{Client, Host, Library, Route};
use ff_testkit::{Aof, TestServer};
use tempfile::TempDir;

use super::counted::Counted;

/// A host and its durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    Embedded(ff_backend_embedded::Durability),
    Valkey(Aof),
}

impl Setting {
    pub const EMBEDDED_FSYNC: Setting = Setting::Embedded(ff_backend_embedded::Durability::Fsync);
    pub const EMBEDDED_RELAXED: Setting = Setting::Embedded(ff_backend_embedded::Durability::Relaxed);
    pub const VALKEY_EVERYSEC: Setting = Setting::Valkey(Aof::EverySecond);
    pub const VALKEY_ALWAYS: Setting = Setting::Valkey(Aof::Always);
    pub const VALKEY_NO_AOF: Setting = Setting::Valkey(Aof::None);

    pub fn name(self) -> &'static str {
        match self {
            Setting::Embedded(ff_backend_embedded::Durability::Fsync) => "embedded fsync",
            Setting::Embedded(ff_backend_embedded::Durability::Relaxed) => "embedded relaxed",
            Setting::Valkey(Aof::EverySecond) => "valkey everysec",
            Setting::Valkey(Aof::Always) => "valkey always",
            Setting::Valkey(Aof::None) => "valkey no aof",
        }
    }

    pub fn engine_options(self) -> EngineOptions {
        EngineOptions::default()
    }

    fn partitions(self) -> PartitionConfig {
        PartitionConfig::standalone()
    }
}

/// An empty store with fixed partition counts. It is removed with this value, and so is its server.
pub struct Store {
    pub setting: Setting,
    pub host: Arc<dyn Host>,
    pub operations: Operations,
    /// Every call goes through this host.
    pub counted: Arc<Counted>,
    embedded: Option<(Arc<Embedded>, TempDir)>,
    server: Option<TestServer>,
}

impl Store {
    /// Opens a store below `folder`, or starts a server for it.
    pub async fn open(setting: Setting, folder: &Path) -> Result<Store> {
        let library = Library::shipped();
        let (host, embedded, server): (Arc<dyn Host>, _, _) = match setting {
            Setting::Embedded(durability) => {
                std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
                let directory = tempfile::Builder::new()
                    .prefix("store-")
                    .tempdir_in(folder)
                    .with_context(|| format!("no directory for a store in {}", folder.display()))?;
                let mut options = ff_backend_embedded::Options::new(directory.path(), library.text);
                options.durability = durability;
                let host = Arc::new(Embedded::open(options)?);
                (host.clone(), Some((host, directory)), None)
            }
            Setting::Valkey(aof) => {
                let server = TestServer::start(ff_testkit::Options { aof, ..Default::default() })?;
                let mut options = ff_backend_valkey::Options::new(server.url(), library);
                if aof == Aof::None {
                    options.durability = Some(ff_backend_valkey::Durability::None);
                }
                (Arc::new(ValkeyHost::connect(options).await?), None, Some(server))
            }
        };
        let counted = Counted::over(host);
        let host: Arc<dyn Host> = counted.clone();
        let partitions = setting.partitions();
        let client = Client::new(Arc::clone(&host), partitions);
        client
            .call(
                Route::Config,
                &FixPartitions::new(PartitionDefaults {
                    executions: i64::from(partitions.executions),
                    budgets: i64::from(partitions.budgets),
                    quotas: i64::from(partitions.quotas),
                    schedules: i64::from(partitions.schedules),
                }),
            )
            .await?;
        Ok(Store { setting, host, operations: Operations::new(client), counted, embedded, server })
    }

    pub fn client(&self) -> &Client {
        self.operations.client()
    }

    /// Number of partitions of executions.
    pub fn partitions(&self) -> u16 {
        self.client().partitions().executions
    }

    /// The embedded host and its directory, if it is embedded.
    pub fn embedded(&self) -> Option<(&Arc<Embedded>, &Path)> {
        self.embedded.as_ref().map(|(host, directory)| (host, directory.path()))
    }

    /// The server, if it has its own.
    pub fn server(&self) -> Option<&TestServer> {
        self.server.as_ref()
    }

    /// The server's process id, if it has its own server.
    pub fn server_pid(&self) -> Option<u32> {
        self.server.as_ref().and_then(TestServer::pid)
    }

    /// Ends the host before its files or its server are removed.
    pub async fn close(self) {
        if let Some((host, _)) = &self.embedded {
            host.close().await;
        }
    }
}
