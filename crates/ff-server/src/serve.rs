//! Starts the engine behind a port and stops it without dropping an answer.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ff_engine::dispatch::{Dispatcher, DispatcherOptions, StoreAdmission};
use ff_engine::fleet::{Fleet, FleetTimes};
use ff_engine::{Engine, EngineOptions, Service, Waitpoints};
use ff_keys::{BearerToken, Keys, Places, Source};
use ff_script::Host;
use hyper::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::access::{Credentials, Guard, Peer};
use crate::app::{App, Rooms};
use crate::body::BodyTime;
use crate::door::Door;
use crate::http2;
use crate::line::{Addresses, Line, Patience, Phase};
use crate::metrics::{Metrics, Observed, Process};
use crate::outside::{self, Origin};
use crate::problem::Problem;
use crate::routes;
use crate::tails::Tails;
use crate::times::Times;
use crate::tls::Tls;
use crate::webhooks::{HttpCourier, WebhookOptions};

/// Connections a server holds unless it is told otherwise.
pub const CONNECTIONS_MAX: usize = 4_096;
const CONNECTIONS_PER_ADDRESS_MAX: usize = 512;
/// Connections that are being told that there is no room; more are closed without a word.
const TURNED_AWAY_MAX: usize = 256;
/// How long a client that is turned away may take to read why.
const TURNED_AWAY_TIME: Duration = Duration::from_secs(2);
/// How often the log says that connections are turned away.
const TURNED_AWAY_SAID: Duration = Duration::from_secs(10);

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Who may ask.
    pub auth: Auth,
    /// Encrypts what goes over the line.
    pub tls: Option<Tls>,
    /// A proxy in front of this server encrypts.
    pub behind_tls_proxy: bool,
    /// The names clients call this server by, besides its addresses and localhost.
    pub hosts: Vec<String>,
    /// The origins whose pages may ask this server from a browser; pages of other origins are refused.
    pub cors_origins: Vec<Origin>,
    /// What signs waitpoint tokens and webhooks; made when the first one is needed.
    pub keys: Keys,
    /// Where webhooks may go.
    pub webhooks: WebhookOptions,
    /// How many connections it holds; further clients are answered 503.
    pub connections_max: usize,
    /// How long it waits for what.
    pub times: Times,
}

/// Who may ask a server.
#[derive(Clone, Debug)]
pub enum Auth {
    /// Everyone who reaches the port may do everything; only on loopback.
    Nobody,
    /// Whoever shows this token may do everything, others what their tokens say.
    Root(BearerToken),
}

impl ServerOptions {
    /// Without authentication, with the keys of a data directory.
    pub fn local(listen: SocketAddr, data_dir: &Path) -> Result<Self, NotStarted> {
        let source = Source::find(&Places { embedded: Some(data_dir), ..Places::default() })?;
        let keys = Keys::open(source)?;
        Ok(Self {
            listen,
            auth: Auth::Nobody,
            tls: None,
            behind_tls_proxy: false,
            hosts: Vec::new(),
            cors_origins: Vec::new(),
            keys,
            webhooks: WebhookOptions::default(),
            connections_max: CONNECTIONS_MAX,
            times: Times::default(),
        })
    }

    /// Refuses what must not be served, before a store is opened.
    pub fn check(&self) -> Result<(), NotStarted> {
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        match self.auth {
            Auth::Nobody => Err(NotStarted::NotLoopback(self.listen)),
            Auth::Root(_) if self.tls.is_none() && !self.behind_tls_proxy => Err(NotStarted::NotEncrypted(self.listen)),
            Auth::Root(_) => Ok(()),
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// Without authentication the port must not be reachable from elsewhere.
    #[error(
        "cannot listen on {0} without authentication: leave --no-auth out and add --tls-cert and --tls-key \
         (or --behind-tls-proxy), or listen on a loopback address such as 127.0.0.1:7433"
    )]
    NotLoopback(SocketAddr),
    /// Tokens must not go over a network in the clear.
    #[error(
        "cannot listen on {0} without encryption: add --tls-cert FILE and --tls-key FILE, or --behind-tls-proxy when a \
         proxy in front of this server encrypts, or listen on a loopback address such as 127.0.0.1:7433"
    )]
    NotEncrypted(SocketAddr),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] crate::tls::BadTls),
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
    /// Webhooks cannot be sent.
    #[error(transparent)]
    Webhooks(#[from] crate::webhooks::NoClient),
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

        let process = Process::begin();
        let host: Arc<dyn Host> = Arc::new(Observed::new(host, Arc::clone(&process)));
        let mut engine = Engine::start(host, engine).await?;
        let operations = engine.operations().clone();
        let keys = Waitpoints::new(operations.clone(), options.keys.clone());
        engine.carry_webhooks(Arc::new(HttpCourier::new(&options.webhooks, keys)?));
        let engine = Arc::new(engine);
        let dispatcher = Dispatcher::start(
            operations.clone(),
            Arc::new(StoreAdmission::new(operations.clone())),
            DispatcherOptions::default(),
        );
        let stop = CancellationToken::new();
        let times = FleetTimes { registered: options.times.registered, beat: options.times.beat };
        let fleet = Arc::new(Fleet::new(operations.clone(), dispatcher.clone(), times));
        let credentials = match &options.auth {
            Auth::Nobody => Credentials::NotAsked,
            Auth::Root(token) => Credentials::asked(token),
        };
        let app = App(Arc::new(Rooms {
            service: Service::new(Arc::clone(&engine), dispatcher, Arc::clone(&fleet), stop.clone(), move || {
                Ok(options.keys.clone())
            }),
            tails: Tails::new(Arc::clone(engine.streams()), options.times.keep_alive, stop.clone()),
            guard: Guard::new(credentials),
            metrics: Metrics::new(Arc::clone(&process)),
            times: options.times,
        }));
        let news = app.operations.news();
        let keeping = tokio::spawn({
            let (stop, app) = (stop.clone(), app.clone());
            async move {
                tokio::join!(fleet.keep(stop.clone()), app.attend(news, stop));
            }
        });
        let serving = tokio::spawn(serve(
            Open {
                listener,
                door: Door::new(address, options.hosts, options.cors_origins.clone(), process),
                origins: options.cors_origins,
                tls: options.tls,
                connections_max: options.connections_max,
            },
            app,
            keeping,
            stop.clone(),
        ));
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

/// An open port and what stands behind it.
struct Open {
    listener: TcpListener,
    door: Door,
    origins: Vec<Origin>,
    tls: Option<Tls>,
    connections_max: usize,
}

async fn serve(open: Open, app: App, keeping: JoinHandle<()>, stop: CancellationToken) {
    let Open { listener, door, origins, tls, connections_max } = open;
    let router = outside::around(routes::router(app.clone(), door), &origins);
    let connections = Arc::new(Semaphore::new(connections_max));
    let (turned_away, times) = (TurnedAway::new(&app), app.times);
    let addresses = Addresses::default();
    let graceful = GracefulShutdown::new();
    let mut talks = JoinSet::new();
    loop {
        while talks.try_join_next().is_some() {}
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
            let detail = format!("{} holds {CONNECTIONS_PER_ADDRESS_MAX} connections already", from.ip());
            turned_away.tell(&mut talks, stream, tls.clone(), detail);
            continue;
        }
        let Ok(room) = Arc::clone(&connections).try_acquire_owned() else {
            let detail = format!("this server holds {connections_max} connections already");
            turned_away.tell(&mut talks, stream, tls.clone(), detail);
            continue;
        };
        let open = app.metrics.process.connection();
        // Answers are small and awaited: sending them at once is worth a packet.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let (router, watcher, peer) = (router.clone(), graceful.watcher(), Peer(from.ip()));
        let stop = stop.clone();
        match tls.clone() {
            None => talks.spawn(async move {
                talk(stream, router, peer, watcher, times).await;
                drop((room, place, open));
            }),
            Some(tls) => talks.spawn(async move {
                match tokio::time::timeout(times.head, tls.accept(stream)).await {
                    Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                        http2::talk(stream, router, peer, stop, times).await;
                        // The server's end waits for every watcher.
                        drop(watcher);
                    }
                    Ok(Ok(stream)) => talk(stream, router, peer, watcher, times).await,
                    Ok(Err(error)) => tracing::debug!(%error, "a connection did not come to be encrypted"),
                    Err(_) => tracing::debug!("a connection took too long to be encrypted"),
                }
                drop((room, place, open));
            }),
        };
    }
    drop(listener);
    if tokio::time::timeout(times.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("answers in flight took longer than {:?} and were cut off", times.grace);
    }
    // Whoever is left keeps the store open.
    talks.shutdown().await;
    drop(router);
    if let Err(error) = keeping.await {
        tracing::warn!(%error, "the workers' keeper did not end well");
    }
    if let Some(rooms) = Arc::into_inner(app.0) {
        let Service { engine, .. } = rooms.service;
        if let Some(engine) = Arc::into_inner(engine) {
            engine.stop().await;
        }
    }
}

/// Tells clients there is no room for that there is none.
struct TurnedAway {
    places: Arc<Semaphore>,
    process: Arc<Process>,
    said: std::sync::Mutex<Option<tokio::time::Instant>>,
}

impl TurnedAway {
    fn new(app: &App) -> Self {
        let (places, process) = (Arc::new(Semaphore::new(TURNED_AWAY_MAX)), Arc::clone(&app.metrics.process));
        Self { places, process, said: std::sync::Mutex::default() }
    }

    /// Answers 503 without waiting for the request, and closes the connection.
    fn tell(&self, talks: &mut JoinSet<()>, stream: TcpStream, tls: Option<Tls>, detail: String) {
        self.process.turned_away();
        self.log(&detail);
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return };
        talks.spawn(async move {
            let telling = async {
                match tls {
                    None => tell_no_room(stream, detail).await,
                    Some(tls) => match tls.accept(stream).await? {
                        // A client that speaks HTTP/2 sees the end of the connection.
                        mut stream if stream.get_ref().1.alpn_protocol() == Some(b"h2") => stream.shutdown().await,
                        stream => tell_no_room(stream, detail).await,
                    },
                }
            };
            // A client that does not listen is no reason to stay.
            let _ = tokio::time::timeout(TURNED_AWAY_TIME, telling).await;
            drop(place);
        });
    }

    fn log(&self, detail: &str) {
        let mut said = self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if said.is_none_or(|at| at.elapsed() >= TURNED_AWAY_SAID) {
            *said = Some(tokio::time::Instant::now());
            tracing::warn!("connections are turned away: {detail}");
        }
    }
}

async fn tell_no_room(mut stream: impl AsyncRead + AsyncWrite + Unpin, detail: String) -> std::io::Result<()> {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", detail);
    let body = problem.document("");
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         retry-after: 1\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await?;
    // A connection closed on unread bytes is reset, and the answer may be lost with it.
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(drop)
}

/// Answers the requests of one connection until it ends.
async fn talk(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    router: axum::Router,
    peer: Peer,
    watcher: hyper_util::server::graceful::Watcher,
    times: Times,
) {
    let phase = Phase::default();
    let line = Line::new(stream, phase.clone(), Patience { head: times.head, reader: times.reader });
    let routed = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(BodyTime(times.body));
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
        .header_read_timeout(times.idle)
        .serve_connection(TokioIo::new(line), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
