//! Opens stores in the way the tests need.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use ff_backend_embedded::{Durability, Embedded};
use ff_backend_valkey::ValkeyHost;
use ff_engine::{Engine, EngineOptions};
use ff_script::{Host, Library};

/// An embedded store with the shipped library, which flushes before every reply.
pub fn embedded(directory: &Path) -> Result<Arc<Embedded>> {
    let mut options = ff_backend_embedded::Options::new(directory, Library::shipped().text);
    options.durability = Durability::Fsync;
    Ok(Arc::new(Embedded::open(options)?))
}

/// A Valkey store with the shipped library.
pub async fn valkey(url: &str, durability: Option<ff_backend_valkey::Durability>) -> Result<Arc<ValkeyHost>> {
    let mut options = ff_backend_valkey::Options::new(url, Library::shipped());
    options.durability = durability;
    Ok(Arc::new(ValkeyHost::connect(options).await?))
}

/// The engine options of these tests: few partitions on every host.
fn options(background: bool) -> EngineOptions {
    EngineOptions { background, ..EngineOptions::default() }
}

/// An engine that keeps the store moving.
pub async fn engine(host: Arc<dyn Host>) -> Result<Engine> {
    Ok(Engine::start(host, options(true)).await?)
}

/// An engine for operations only.
pub async fn tool(host: Arc<dyn Host>) -> Result<Engine> {
    Ok(Engine::start(host, options(false)).await?)
}
