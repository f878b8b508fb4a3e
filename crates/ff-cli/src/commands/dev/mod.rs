//! `ff dev`: a server on the embedded store, with work that never ends and workers that do.

mod crew;
mod director;
mod screen;
pub mod worker;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use ff_api::Ask;
use ff_api::events::{EventsQuery, ReadEvents};
use ff_api::server::GetStats;
use ff_engine::EngineOptions;
use ff_script::Host;
use ff_server::{NotStarted, Server, ServerOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::client::Api;
use crate::listen::listen_address;
use crate::store::{StoreAddress, open, state_directory};
use crew::Crew;
use screen::{Screen, Totals};

/// The lane of the demo.
const LANE: &str = "demo";
const WORKERS: usize = 3;
/// Where the server listens unless that is taken.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7433);
/// How often the totals are drawn.
const TOTALS_EVERY: Duration = Duration::from_secs(1);

/// Runs a server with sample work and workers, to try FlowFabric.
///
/// The work is quick, slow and failing executions, flows, calls under a quota and a budget, and an approval now and then. One of the
/// workers is killed from time to time. The next start goes on where this one ends.
#[derive(Args)]
pub struct Dev {
    /// The store (default: an embedded one in the state directory).
    #[arg(long, env = "FF_STORE")]
    store: Option<StoreAddress>,
    /// Where to listen (default: 127.0.0.1:7433, or any free port when that is taken).
    #[arg(long, env = "FF_LISTEN", value_parser = listen_address, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Stop after this many seconds instead of at Ctrl-C.
    #[arg(long)]
    seconds: Option<u64>,
    /// Kill a worker every this many seconds; 0 kills none.
    #[arg(long, default_value_t = 10)]
    kill_every: u64,
}

impl Dev {
    /// Starts everything, shows it, and leaves the state for the next start.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let data = state_directory()?.join("dev");
        let address = self.store.clone().unwrap_or_else(|| StoreAddress::Embedded(data.clone()));
        let (host, options) = open(&address, None).await?;
        let keys = match &address {
            StoreAddress::Embedded(directory) => directory,
            StoreAddress::Valkey(_) => &data,
        };
        let facts = host.facts();
        let server = self.serve(host, options, keys).await?;
        let url = format!("http://{}", server.address());
        let api = Arc::new(Api::anonymous(&url, None)?);

        let screen = Screen::new();
        let (kind, durability, loss) = (facts.kind, facts.durability, facts.loss_window);
        screen.line(&format!("FlowFabric on the {kind} store ({durability}), loss window: {loss}"));
        match &address {
            StoreAddress::Embedded(directory) => screen.line(&format!("state in {}", directory.display())),
            StoreAddress::Valkey(url) => screen.line(&format!("state in {url}")),
        }
        let before = totals(&api).await?;
        if before.executions > 0 {
            let Totals { waiting, active, ended, .. } = before;
            screen.line(&format!("continuing: {waiting} waiting, {active} running, {ended} ended from before"));
        }
        for (what, link) in [
            ("API", url.clone()),
            ("API docs", format!("{url}/docs")),
            ("live view", "ff top".to_owned()),
            ("look around", "ff list, ff flow list, ff approvals, ff events --follow".to_owned()),
        ] {
            screen.line(&format!("{what:12} {link}"));
        }
        if server.address() != LISTEN {
            screen.line(&format!("{:12} export FF_URL={url}", "first"));
        }
        screen.line("Ctrl-C stops; the next start continues where this one ends\n");

        let stop = CancellationToken::new();
        let events = api.lines(&Ask::<ReadEvents>::by((), EventsQuery::default())).await?;
        let crew = Arc::new(Crew::hire(Arc::clone(&api), &url, WORKERS, &screen)?);
        let mut playing = tokio::task::JoinSet::new();
        playing.spawn(director::direct(Arc::clone(&api), stop.clone()));
        if self.kill_every > 0 {
            let every = Duration::from_secs(self.kill_every);
            playing.spawn(Crew::kill_now_and_then(Arc::clone(&crew), every, stop.clone()));
        }
        playing.spawn(screen.clone().follow(events, stop.clone()));
        playing.spawn(show_totals(Arc::clone(&api), screen.clone(), stop.clone()));

        let limit = self.seconds.map_or(Duration::MAX, Duration::from_secs);
        let ended = tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot listen for Ctrl-C"),
            _ = terminate.recv() => Ok(()),
            () = tokio::time::sleep(limit) => Ok(()),
            Some(ended) = playing.join_next() => ended.context("a task of the demo ended badly").and_then(|ended| ended),
        };
        screen.line("stopping: workers hand back what they hold");
        stop.cancel();
        while let Some(ended) = playing.join_next().await {
            ended.context("a task of the demo ended badly")??;
        }
        crew.leave().await;
        let after = totals(&api).await;
        server.stop().await;
        ended?;
        let after = after?;
        screen.line(&format!("stopped: {} waiting, {} ended; start again to continue", after.waiting, after.ended));
        Ok(ExitCode::SUCCESS)
    }

    /// Serves on the address that was asked for, else on the usual one, else on any.
    async fn serve(
        &self,
        host: Arc<dyn Host>,
        engine: EngineOptions,
        keys: &std::path::Path,
    ) -> anyhow::Result<Server> {
        let options = ServerOptions::local(self.listen.unwrap_or(LISTEN), keys)?;
        match Server::start(Arc::clone(&host), engine.clone(), options.clone()).await {
            Err(NotStarted::Listen { .. }) if self.listen.is_none() => {
                let any = SocketAddr::new(LISTEN.ip(), 0);
                Ok(Server::start(host, engine, ServerOptions { listen: any, ..options }).await?)
            }
            started => Ok(started?),
        }
    }
}

async fn totals(api: &Api) -> anyhow::Result<Totals> {
    Ok(Totals::of(&api.ask(&Ask::<GetStats>::at(())).await?.value))
}

async fn show_totals(api: Arc<Api>, screen: Screen, stop: CancellationToken) -> anyhow::Result<()> {
    let mut tick = tokio::time::interval(TOTALS_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            _ = tick.tick() => screen.status(&totals(&api).await?),
        }
    }
}
