//! `ff server`: the engine and its HTTP API over a store.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use ff_keys::{Keys, Places, Source};
use ff_server::{Server, ServerOptions};
use tokio::signal::unix::{SignalKind, signal};

use crate::store::{Durability, StoreAddress, open, state_directory};

/// Serves the HTTP API.
#[derive(Args)]
pub struct ServerCommand {
    /// The store: embedded:DIR, valkey://HOST:PORT or valkey-cluster://H1:P1,H2:P2; the state directory unless said.
    #[arg(long, env = "FF_STORE")]
    store: Option<StoreAddress>,
    /// Where to listen.
    #[arg(long, env = "FF_LISTEN", default_value = "127.0.0.1:7433")]
    listen: SocketAddr,
    /// What an answer promises; embedded: fsync unless said, Valkey: what its append-only file gives.
    #[arg(long, env = "FF_DURABILITY", value_enum)]
    durability: Option<Durability>,
    /// Everyone who reaches the port may do everything; only on a loopback address.
    #[arg(long)]
    no_auth: bool,
    /// The file with the keys that sign waitpoint tokens; `keys` in the data directory unless said (or FF_KEYS_FILE, or
    /// the keys themselves in FF_KEYS).
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// The state directory: the store when none is named, and the keys when the store is not on this machine.
    #[arg(long, env = "FF_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl ServerCommand {
    /// Serves until SIGTERM or Ctrl-C, then lets answers in flight finish.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let address = match self.store {
            Some(address) => address,
            None => {
                let directory = self.data_dir.clone().map_or_else(state_directory, Ok)?;
                StoreAddress::Embedded(directory.join("server"))
            }
        };
        let places = Places {
            keys: self.keys.as_deref(),
            data_dir: self.data_dir.as_deref(),
            embedded: match &address {
                StoreAddress::Embedded(directory) => Some(directory),
                StoreAddress::Valkey(_) => None,
            },
        };
        let keys = Keys::open(Source::find(&places)?)?;
        let options = ServerOptions { listen: self.listen, no_auth: self.no_auth, keys };
        options.check()?;
        let (host, engine) = open(&address, self.durability).await?;
        let facts = host.facts();
        let server = Server::start(Arc::clone(&host), engine, options).await?;
        eprintln!("FlowFabric on the {} store ({}), loss window: {}", facts.kind, facts.durability, facts.loss_window);
        eprintln!("listening on http://{}, without authentication", server.address());
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot listen for Ctrl-C")?,
            _ = terminate.recv() => {}
        }
        eprintln!("stopping: answers in flight are finished first");
        server.stop().await;
        Ok(ExitCode::SUCCESS)
    }
}
