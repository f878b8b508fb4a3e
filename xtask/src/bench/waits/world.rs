//! A store with the same parts as in a server: an engine, a dispatcher, and keys.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use ff_engine::dispatch::{Dispatcher, DispatcherOptions, Profile, StoreAdmission};
use ff_engine::{Engine, NewExecution, Operations, Waitpoints};
use ff_keys::{Keys, Source};
use ff_script::generated::{StreamOptions, Task};
use tempfile::TempDir;
use uuid::Uuid;

use super::super::phases::{KIND, LANE, NAMESPACE};
use super::super::store::{Setting, Store};

pub const LEASE_TTL_MS: i64 = 120_000;

pub struct World {
    pub setting: Setting,
    pub store: Store,
    pub engine: Engine,
    pub dispatcher: Dispatcher,
    pub waitpoints: Waitpoints,
    _keys: TempDir,
}

impl World {
    /// Opens everything with default settings.
    pub async fn open(setting: Setting, folder: &Path) -> Result<World> {
        let store = Store::open(setting, folder).await?;
        let engine = Engine::start(Arc::clone(&store.host), setting.engine_options()).await?;
        let operations = engine.operations().clone();
        let dispatcher = Dispatcher::start(
            operations.clone(),
            Arc::new(StoreAdmission::new(operations.clone())),
            DispatcherOptions::default(),
        );
        let directory = tempfile::Builder::new().prefix("keys-").tempdir_in(folder).context("no directory for keys")?;
        let keys = Keys::open(Source::DataDir(directory.path().join("keys")))?;
        let waitpoints = Waitpoints::new(operations, keys);
        waitpoints.note_keys().await?;
        Ok(World { setting, store, engine, dispatcher, waitpoints, _keys: directory })
    }

    pub fn operations(&self) -> &Operations {
        self.engine.operations()
    }

    pub async fn submit(&self, max_frames: Option<i64>) -> Result<()> {
        let mut new = NewExecution::new(NAMESPACE, LANE, KIND);
        new.fields.stream = max_frames.map(|max| StreamOptions { max_frames: Some(max) });
        self.operations().submit(new).await?;
        Ok(())
    }

    /// One leased task that can write this many frames.
    pub async fn task(&self, max_frames: Option<i64>) -> Result<Task> {
        self.submit(max_frames).await?;
        claim(&self.dispatcher).await
    }

    pub async fn close(self) {
        drop(self.dispatcher);
        self.engine.stop().await;
        self.store.close().await;
    }
}

/// The next task, claimed with a long poll.
pub async fn claim(dispatcher: &Dispatcher) -> Result<Task> {
    claim_many(dispatcher, 1).await?.into_iter().next().context("nothing came to the worker")
}

/// Up to `max` tasks, claimed with a long poll.
pub async fn claim_many(dispatcher: &Dispatcher, max: u16) -> Result<Vec<Task>> {
    let profile = Profile {
        namespace: NAMESPACE.to_owned(),
        lanes: vec![LANE.to_owned()],
        worker_id: "bench".to_owned(),
        instance: "bench-1".to_owned(),
        kinds: None,
        capabilities: Vec::new(),
        lease_ttl_ms: LEASE_TTL_MS,
    };
    Ok(dispatcher.claim(&profile, max, Duration::from_secs(20), Uuid::now_v7()).await?)
}
