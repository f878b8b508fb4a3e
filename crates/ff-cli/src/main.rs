//! `ff`: starts, watches and checks a FlowFabric store, and talks to a server.

mod away;
mod client;
mod commands;
mod config;
mod follow;
mod ids;
mod listen;
mod output;
mod pages;
mod problem;
mod progress;
mod quiet;
mod sheet;
mod spelling;
mod states;
mod store;
mod table;
mod telemetry;
mod terminal;
mod times;
mod transfer;
mod values;
mod view;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use config::Settings;
use problem::{WRONG_USAGE, explained};
use telemetry::{Telemetry, TelemetryArgs};

/// A durable execution engine for long-running, interruptible work.
#[derive(Parser)]
#[command(
    name = "ff",
    version,
    after_help = "`ff dev` shows it at work. Exit codes: `ff exit-codes`. Settings: flags, then FF_* variables, then flowfabric.toml; `ff config show`."
)]
struct Cli {
    /// The file of settings (default: flowfabric.toml in this directory, if there is one).
    #[arg(long, env = "FF_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// The server to talk to, by the name of a [profiles.NAME] section in the file of settings.
    #[arg(long, env = "FF_PROFILE", value_name = "NAME", global = true)]
    profile: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(commands::dev::Dev),
    /// A worker process of `ff dev`.
    #[command(hide = true)]
    DevWorker(commands::dev::worker::DevWorker),
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
    /// Submits executions that start with copies of another one's finished steps.
    Fork(commands::fork::Fork),
    /// Runs a command once per execution, inside a program of `ff worker exec`.
    Step(commands::step::Step),
    /// Keeps executions from starting.
    Hold(commands::hold::Hold),
    /// Lets held executions start.
    Release(commands::release::Release),
    /// Submits, watches, releases and cancels flows.
    Flow(commands::flow::FlowCommand),
    /// Lists open waitpoints: executions that wait for an answer.
    Approvals(commands::approvals::Approvals),
    /// Answers a waitpoint.
    Signal(commands::signal::Signal),
    /// Lets suspended executions go on without their signals.
    Resume(commands::resume::Resume),
    /// Follows what an execution writes until it ends.
    Tail(commands::tail::Tail),
    /// Prints events; --follow goes on with new ones.
    Events(commands::events::Events),
    /// Lists, shows, defines, pauses and resumes lanes.
    Lane(commands::lane::LaneCommand),
    /// Lists, shows and drains workers, and runs any program as one.
    Worker(commands::worker::WorkerCommand),
    /// Makes, lists and revokes access tokens; makes new waitpoint tokens.
    Token(commands::token::TokenCommand),
    /// Lists, rotates and revokes the keys that sign waitpoint tokens.
    Key(commands::key::KeyCommand),
    /// Prints the keys that receivers verify webhooks with.
    Webhook(commands::webhook::WebhookCommand),
    /// Makes, shows, raises, corrects and deletes budgets; reports to them and reserves from them.
    Budget(commands::budget::BudgetCommand),
    /// Makes, shows, changes, throttles and deletes quotas.
    Quota(commands::quota::QuotaCommand),
    /// Makes, shows, pauses, fires and deletes schedules.
    Schedule(commands::schedule::ScheduleCommand),
    /// Verifies the invariants of a store; --repair fixes each finding that has only one correct fix.
    Fsck(commands::fsck::FsckCommand),
    /// Shows lanes, workers and rates live.
    Top(commands::top::Top),
    Doctor(commands::doctor::Doctor),
    Bench(commands::bench::Bench),
    /// The worker process of `ff bench`.
    #[command(hide = true)]
    BenchWorker(commands::bench::worker::BenchWorker),
    Export(commands::export::Export),
    Import(commands::import::Import),
    /// Shows the settings in force and where each comes from.
    Config(commands::config::ConfigCommand),
    /// Prints the OpenAPI document of what the server serves.
    Openapi,
    /// Prints the completions of commands and flags for a shell.
    Completions(commands::completions::Completions),
    /// Explains the exit codes.
    #[command(long_about = commands::exit_codes::EXIT_CODES)]
    ExitCodes,
    /// Prints the page about all commands.
    #[command(hide = true)]
    Reference,
}

impl Command {
    /// Starts the log, and the traces of those that serve or work.
    fn telemetry(&self) -> anyhow::Result<Telemetry> {
        match self {
            Command::Server(server) => Telemetry::start(server.telemetry(), Some("flowfabric")),
            Command::Dev(_) => Telemetry::start(&TelemetryArgs::of_environment()?, Some("flowfabric")),
            Command::Worker(_) | Command::DevWorker(_) | Command::BenchWorker(_) => {
                Telemetry::start(&TelemetryArgs::of_environment()?, Some("flowfabric-worker"))
            }
            _ => Telemetry::start(&TelemetryArgs::of_environment()?, None),
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<OsString> = spelling::modern(std::env::args_os());
    let settings = match Settings::read(&args, &Cli::command()) {
        Ok(settings) => settings,
        Err(error) => {
            // Help is given whatever the file says.
            if let Err(asked) = Cli::command().try_get_matches_from(&args)
                && matches!(asked.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
            {
                asked.exit();
            }
            eprintln!("ff: {}", explained(&error));
            return ExitCode::from(WRONG_USAGE);
        }
    };
    let command = settings.apply(Cli::command());
    let cli = Cli::from_arg_matches(&command.clone().get_matches_from(args)).unwrap_or_else(|error| error.exit());
    let telemetry = match cli.command.telemetry() {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("ff: {}", explained(&error));
            return ExitCode::from(WRONG_USAGE);
        }
    };
    let done = match cli.command {
        Command::Dev(dev) => dev.run().await,
        Command::DevWorker(worker) => worker.run().await,
        Command::Server(server) => server.run().await,
        Command::Submit(submit) => submit.run().await,
        Command::List(list) => list.run().await,
        Command::Show(show) => show.run().await,
        Command::Explain(explain) => explain.run().await,
        Command::History(history) => history.run().await,
        Command::Result(result) => result.run().await,
        Command::Cancel(cancel) => cancel.run().await,
        Command::Replay(replay) => replay.run().await,
        Command::Fork(fork) => fork.run().await,
        Command::Step(step) => step.run().await,
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
        Command::Webhook(webhook) => webhook.run().await,
        Command::Budget(budget) => budget.run().await,
        Command::Quota(quota) => quota.run().await,
        Command::Schedule(schedule) => schedule.run().await,
        Command::Fsck(fsck) => fsck.run().await,
        Command::Top(top) => top.run().await,
        Command::Doctor(doctor) => doctor.run().await,
        Command::Bench(bench) => bench.run().await,
        Command::BenchWorker(worker) => worker.run().await,
        Command::Export(export) => export.run().await,
        Command::Import(import) => import.run().await,
        Command::Config(config) => config.run(&settings, &command),
        Command::Completions(completions) => completions.run(Cli::command()),
        Command::Openapi => commands::openapi::run(),
        Command::ExitCodes => commands::exit_codes::run(),
        Command::Reference => commands::reference::run(Cli::command()),
    };
    telemetry.stop().await;
    done.unwrap_or_else(|error| {
        eprintln!("ff: {}", explained(&error));
        problem::exit_code(&error)
    })
}
