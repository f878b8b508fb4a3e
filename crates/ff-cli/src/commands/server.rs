//! `ff server`: the engine and its HTTP API over a store.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use ff_core::PartitionConfig;
use ff_keys::{Keys, Made, Places, Source};
use ff_server::{Auth, CONNECTIONS_MAX, Origin, Server, ServerOptions, Times, Tls, WebhookOptions};
use ipnet::IpNet;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::listen::listen_address;
use crate::store::{Durability, StoreAddress, open, state_directory};
use crate::telemetry::{LogFormat, TelemetryArgs, announce};

/// Serves the HTTP API.
#[derive(Args)]
pub struct ServerCommand {
    /// The store: embedded:DIR, valkey://HOST:PORT or valkey-cluster://H1:P1,H2:P2 (default: embedded, in the state directory).
    #[arg(long, env = "FF_STORE")]
    store: Option<StoreAddress>,
    /// Where to listen.
    #[arg(long, env = "FF_LISTEN", default_value = "127.0.0.1:7433", value_parser = listen_address, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// What a response guarantees (default: fsync on the embedded store, and what its append-only file gives on Valkey).
    #[arg(long, env = "FF_DURABILITY", value_enum)]
    durability: Option<Durability>,
    /// Everyone who reaches the port may do everything; only on a loopback address.
    #[arg(long, env = "FF_NO_AUTH")]
    no_auth: bool,
    /// The certificate, with its chain, as PEM; needed to listen on a network.
    #[arg(long, env = "FF_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key as PEM.
    #[arg(long, env = "FF_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of this server encrypts what goes over the network.
    #[arg(long, env = "FF_BEHIND_TLS_PROXY")]
    behind_tls_proxy: bool,
    /// A name clients call this server by, besides its addresses and localhost; may be repeated.
    #[arg(long = "host", env = "FF_HOSTS", value_name = "NAME", value_delimiter = ',')]
    hosts: Vec<String>,
    /// An origin whose pages may ask this server from a browser, such as https://app.example.com; may be repeated.
    #[arg(long = "cors-origin", env = "FF_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    cors_origins: Vec<Origin>,
    /// The file with the keys that sign waitpoint tokens; by default `keys` in the data directory (or FF_KEYS_FILE, or
    /// the keys themselves in FF_KEYS).
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// A network webhooks may be sent to although it is not public, over http:// too; may be repeated.
    #[arg(long = "webhook-allow", env = "FF_WEBHOOK_ALLOW", value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    webhook_allow: Vec<IpNet>,
    /// How many connections are held at once; further clients are answered 503.
    #[arg(long, env = "FF_CONNECTIONS_MAX", value_name = "COUNT", default_value_t = CONNECTIONS_MAX)]
    connections_max: usize,
    /// How many partitions a new store gets, a power of two. Default: 4, on a cluster 32. A store keeps the count of its first start.
    #[arg(long, env = "FF_PARTITIONS", value_name = "COUNT", value_parser = partitions)]
    partitions: Option<PartitionConfig>,
    /// The state directory: the store when none is named, and the keys when the store is not on this machine.
    #[arg(long, env = "FF_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

impl ServerCommand {
    /// How it says what it does.
    pub fn telemetry(&self) -> &TelemetryArgs {
        &self.telemetry
    }

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
        let directory = ff_keys::data_dir(&places)?;
        let (auth, root) = if self.no_auth {
            (Auth::Nobody, None)
        } else {
            let (token, made) = ff_keys::root_token(&directory)?;
            (Auth::Root(token.clone()), Some((token, made)))
        };
        let (listen, format) = (self.listen, self.telemetry.format());
        let say = |text: String| announce(format, &text);
        let starting = async {
            let tls = match (&self.tls_cert, &self.tls_key) {
                (Some(cert), Some(key)) => Some(Tls::load(cert, key)?),
                _ => None,
            };
            let scheme = if tls.is_some() { "https" } else { "http" };
            if let Some(tls) = tls.clone() {
                let asked = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
                tokio::spawn(read_certificates(tls, asked));
            }
            let options = ServerOptions {
                listen,
                auth,
                tls,
                behind_tls_proxy: self.behind_tls_proxy,
                hosts: self.hosts,
                cors_origins: self.cors_origins,
                keys: Keys::open(Source::find(&places)?)?,
                webhooks: WebhookOptions { allow: self.webhook_allow },
                connections_max: self.connections_max,
                times: Times::default(),
            };
            options.check()?;
            let (host, mut engine) = open(&address, self.durability).await?;
            engine.partitions = self.partitions;
            let facts = host.facts();
            let server = Server::start(Arc::clone(&host), engine, options).await?;
            let auth = if root.is_none() { ", without authentication" } else { "" };
            say(format!(
                "FlowFabric on the {} store ({}), loss window: {}",
                facts.kind, facts.durability, facts.loss_window
            ));
            say(format!("listening on {scheme}://{}{auth}", server.address()));
            anyhow::Ok(server)
        };
        let started = starting.await;
        // The token is shown by the start that makes it, whether or not that comes to serve.
        match &root {
            // JSON is collected and kept: secrets do not go there.
            Some((token, Made::Now)) if format == LogFormat::Text => say(format!(
                "the root token, now in {} and not shown again: {}",
                directory.join("root-token").display(),
                token.reveal()
            )),
            Some(_) if started.is_ok() => {
                say(format!("the root token is in {}", directory.join("root-token").display()));
            }
            _ => {}
        }
        let server = started?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot listen for Ctrl-C")?,
            _ = terminate.recv() => {}
        }
        say("stopping: answers in flight are finished first".to_owned());
        server.stop().await;
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads the certificate again whenever SIGHUP asks for it.
async fn read_certificates(tls: Tls, mut asked: Signal) {
    while asked.recv().await.is_some() {
        match tls.read_again() {
            Ok(()) => tracing::info!("the certificate was read again"),
            Err(error) => tracing::warn!(%error, "the certificate in use stays"),
        }
    }
}

fn partitions(text: &str) -> Result<PartitionConfig, String> {
    let count = text.parse().map_err(|_| format!("{text:?} is no count of partitions"))?;
    PartitionConfig::of(count).map_err(|error| error.to_string())
}

/// `10.0.0.0/8`, or one address.
fn network(text: &str) -> Result<IpNet, String> {
    let one = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| one()).map_err(|_| format!("{text} is not a network such as 10.0.0.0/8"))
}
