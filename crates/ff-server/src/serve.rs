//! Starts the engine behind a port and stops it without dropping an answer.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ff_engine::news::Listener;
use ff_engine::{Engine, EngineOptions, Waitpoints};
use ff_keys::{Keys, Places, Source};
use ff_scheduler::{Dispatcher, DispatcherOptions, StoreAdmission};
use ff_script::Host;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::{App, Rooms};
use crate::door::Door;
use crate::fleet::Fleet;
use crate::line::{Addresses, Line, Phase};
use crate::routes;
use crate::tails::Tails;

const CONNECTIONS_MAX: usize = 4_096;
const CONNECTIONS_PER_ADDRESS_MAX: usize = 512;
/// A connection that says nothing for this long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// The head of a request takes no longer than this, from its first byte.
const HEAD: Duration = Duration::from_secs(5);
/// How long answers in flight may take once the server stops.
const GRACE: Duration = Duration::from_secs(10);

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Everyone who reaches the port may do everything; only on loopback.
    pub no_auth: bool,
    /// What signs waitpoint tokens; made when the first one is needed.
    pub keys: Keys,
}

impl ServerOptions {
    /// Without authentication, with the keys of a data directory.
    pub fn local(listen: SocketAddr, data_dir: &Path) -> Result<Self, NotStarted> {
        let source = Source::find(&Places { embedded: Some(data_dir), ..Places::default() })?;
        Ok(Self { listen, no_auth: true, keys: Keys::open(source)? })
    }

    /// Refuses what must not be served, before a store is opened.
    pub fn check(&self) -> Result<(), NotStarted> {
        if !self.no_auth {
            return Err(NotStarted::AuthNotAvailable);
        }
        if !self.listen.ip().is_loopback() {
            return Err(NotStarted::NotLoopback(self.listen));
        }
        Ok(())
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// There is no authentication yet, so its absence must be asked for.
    #[error("this version serves without authentication only: start it with --no-auth on a loopback address")]
    AuthNotAvailable,
    /// Without authentication the port must not be reachable from elsewhere.
    #[error("cannot listen on {0} without authentication: --no-auth needs a loopback address such as 127.0.0.1:7433")]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] ff_keys::Error),
    /// The store cannot be used.
    #[error("cannot start the engine: {0}")]
    Engine(#[from] ff_script::Error),
}

/// A running server; it goes on until [`Server::stop`].
pub struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    /// Listens, starts an engine over the host, and serves both.
    pub async fn start(host: Arc<dyn Host>, engine: EngineOptions, options: ServerOptions) -> Result<Self, NotStarted> {
        options.check()?;
        let listening = |source| NotStarted::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;

        let engine = Engine::start(host, engine).await?;
        let operations = engine.operations().clone();
        let dispatcher = Dispatcher::start(
            operations.clone(),
            Arc::new(StoreAdmission::new(operations.clone())),
            DispatcherOptions::default(),
        );
        let stop = CancellationToken::new();
        let fleet = Arc::new(Fleet::new(operations.clone(), dispatcher.clone()));
        let app = App(Arc::new(Rooms {
            waitpoints: Waitpoints::new(operations.clone(), options.keys),
            tails: Tails::new(Arc::clone(engine.streams()), stop.clone()),
            engine,
            operations,
            dispatcher,
            fleet: Arc::clone(&fleet),
            stop: stop.clone(),
        }));
        let news = Listener::new(app.operations.client().host().as_ref());
        let keeping = tokio::spawn({
            let stop = stop.clone();
            async move {
                tokio::join!(fleet.keep(stop.clone()), fleet.attend(news, stop));
            }
        });
        let serving = tokio::spawn(serve(listener, app, Door { address }, keeping, stop.clone()));
        Ok(Self { address, stop, serving })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no new connection, ends long polls with what they have, lets answers in flight finish, stops the engine.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.serving.await {
            tracing::warn!(%error, "the server did not end well");
        }
    }
}

async fn serve(listener: TcpListener, app: App, door: Door, keeping: JoinHandle<()>, stop: CancellationToken) {
    let router = routes::router(app.clone(), door);
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let addresses = Addresses::default();
    let graceful = GracefulShutdown::new();
    loop {
        let room = tokio::select! {
            () = stop.cancelled() => break,
            room = Arc::clone(&connections).acquire_owned() => match room {
                Ok(room) => room,
                Err(_) => break,
            },
        };
        let (stream, from) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        // Behind a proxy on this machine everybody comes from loopback: only others are counted.
        let place = addresses.enter(from.ip(), CONNECTIONS_PER_ADDRESS_MAX);
        if place.is_none() && !from.ip().is_loopback() {
            tracing::debug!(address = %from.ip(), "a connection is closed: its address holds {CONNECTIONS_PER_ADDRESS_MAX} already");
            continue;
        }
        // Answers are small and awaited: sending them at once is worth a packet.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let phase = Phase::default();
        let line = Line::new(stream, phase.clone(), HEAD);
        let routed = TowerToHyperService::new(router.clone());
        let service = hyper::service::service_fn(move |request| {
            let (serving, answer) = (phase.serving(), hyper::service::Service::call(&routed, request));
            async move {
                let answer = answer.await;
                drop(serving);
                answer
            }
        });
        // Hyper counts from the end of the last answer, so its limit is that of silence.
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .serve_connection(TokioIo::new(line), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop((room, place));
        });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("answers in flight took longer than {GRACE:?} and were cut off");
    }
    drop(router);
    if let Err(error) = keeping.await {
        tracing::warn!(%error, "the workers' keeper did not end well");
    }
    if let Some(rooms) = Arc::into_inner(app.0) {
        drop(rooms.dispatcher);
        rooms.engine.stop().await;
    }
}
