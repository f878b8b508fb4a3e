//! `ff`: starts, watches and checks a FlowFabric store.

mod commands;
mod store;

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
    /// Verifies the invariants of a store; with --repair puts right what has one right answer.
    Fsck(commands::fsck::FsckCommand),
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("FF_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let done = match Cli::parse().command {
        Command::Dev(dev) => dev.run().await,
        Command::Fsck(fsck) => fsck.run().await,
    };
    done.unwrap_or_else(|error| {
        eprintln!("ff: {error:#}");
        std::process::ExitCode::FAILURE
    })
}
