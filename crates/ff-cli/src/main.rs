//! `ff`: starts, watches and checks a FlowFabric store, and talks to a server.

mod client;
mod commands;
mod progress;
mod store;
mod terminal;
mod tree;
mod view;

use clap::{Parser, Subcommand};

/// A durable execution engine for long-running, interruptible work.
#[derive(Parser)]
#[command(name = "ff", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the engine on the embedded store with sample work and workers, one of which is killed now and then.
    Dev(commands::dev::Dev),
    /// Serves the HTTP API over a store.
    Server(commands::server::ServerCommand),
    /// Submits one execution.
    Submit(Box<commands::submit::Submit>),
    /// Lists executions, newest first.
    List(commands::list::List),
    /// Shows everything about executions.
    Show(commands::show::Show),
    /// Explains why executions are not running, and what would unblock them.
    Explain(commands::explain::Explain),
    /// Shows what happened to executions, in the order of time.
    History(commands::history::History),
    /// Prints results, waiting for them when asked to.
    Result(commands::result::ResultCommand),
    /// Cancels executions.
    Cancel(commands::cancel::Cancel),
    /// Runs ended executions again.
    Replay(commands::replay::Replay),
    /// Keeps executions from starting.
    Hold(commands::hold::Hold),
    /// Lets held executions start.
    Release(commands::release::Release),
    /// Submits, watches, releases and cancels flows.
    Flow(commands::flow::FlowCommand),
    /// Lists open waitpoints: what waits for an answer.
    Approvals(commands::approvals::Approvals),
    /// Answers a waitpoint.
    Signal(commands::signal::Signal),
    /// Lets suspended executions go on without their signals.
    Resume(commands::resume::Resume),
    /// Follows what an execution writes until it ends.
    Tail(commands::tail::Tail),
    /// Prints what happened, and with --follow what happens.
    Events(commands::events::Events),
    /// Lists, shows, defines, pauses and resumes lanes.
    Lane(commands::lane::LaneCommand),
    /// Lists, shows and drains workers, and runs any program as one.
    Worker(commands::worker::WorkerCommand),
    /// Issues waitpoint tokens again.
    Token(commands::token::TokenCommand),
    /// Lists, rotates and revokes the keys that sign waitpoint tokens.
    Key(commands::key::KeyCommand),
    /// Makes, shows, changes, throttles and deletes quotas.
    Quota(commands::quota::QuotaCommand),
    /// Verifies the invariants of a store; with --repair puts right what has one right answer.
    Fsck(commands::fsck::FsckCommand),
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("FF_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let done = match Cli::parse().command {
        Command::Dev(dev) => dev.run().await,
        Command::Server(server) => server.run().await,
        Command::Submit(submit) => submit.run().await,
        Command::List(list) => list.run().await,
        Command::Show(show) => show.run().await,
        Command::Explain(explain) => explain.run().await,
        Command::History(history) => history.run().await,
        Command::Result(result) => result.run().await,
        Command::Cancel(cancel) => cancel.run().await,
        Command::Replay(replay) => replay.run().await,
        Command::Hold(hold) => hold.run().await,
        Command::Release(release) => release.run().await,
        Command::Flow(flow) => flow.run().await,
        Command::Approvals(approvals) => approvals.run().await,
        Command::Signal(signal) => signal.run().await,
        Command::Resume(resume) => resume.run().await,
        Command::Tail(tail) => tail.run().await,
        Command::Events(events) => events.run().await,
        Command::Lane(lane) => lane.run().await,
        Command::Worker(worker) => worker.run().await,
        Command::Token(token) => token.run().await,
        Command::Key(key) => key.run().await,
        Command::Quota(quota) => quota.run().await,
        Command::Fsck(fsck) => fsck.run().await,
    };
    done.unwrap_or_else(|error| {
        eprintln!("ff: {error:#}");
        client::exit_code(&error)
    })
}
