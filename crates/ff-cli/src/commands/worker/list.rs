//! `ff worker list`: live workers.

use std::process::ExitCode;

use clap::Args;
use ff_api::workers::{ListWorkers, Worker};
use ff_api::{Ask, PageQuery};

use crate::client::{Api, ServerArgs};
use crate::output::OutputArgs;
use crate::pages::{PageArgs, Paged};
use crate::table::{Table, number, text};
use crate::times::{now_ms, span};
use crate::view::{View, WatchArgs, types};

/// Lists live workers.
#[derive(Args)]
#[command(after_help = "Example:
  ff worker list
  ff worker list -o ids | ff worker drain -")]
pub struct List {
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl List {
    /// Prints them, and how to get more.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let list = Paged::new(self.page, types("worker."), |limit, cursor| {
            Ask::<ListWorkers>::by((), PageQuery { limit: Some(limit), cursor })
        });
        let named = |worker: &Worker| worker.instance.clone();
        let shown = |workers: &[Worker]| View::lines(table(workers, now_ms())).about(standing(workers));
        list.show(&api, self.watch, self.output.output, named, shown).await
    }
}

/// How many kinds of a worker the table shows.
const KINDS_SHOWN: usize = 3;

/// The workers without the times of their heartbeats.
fn standing(workers: &[Worker]) -> String {
    workers.iter().map(|worker| format!("{:?}", Worker { expires_at: 0, ..worker.clone() })).collect()
}

/// The lanes of a worker, in one word.
pub fn lanes(worker: &Worker) -> String {
    let lanes = worker.lanes.join(",");
    if worker.namespace == "default" { lanes } else { format!("{}/{lanes}", worker.namespace) }
}

/// The kinds of a worker, in one word. Some workers take hundreds, so it names the first ones.
fn kinds(worker: &Worker) -> String {
    match &worker.kinds {
        None => "all".to_owned(),
        Some(kinds) if kinds.len() > KINDS_SHOWN => {
            format!("{} +{}", kinds[..KINDS_SHOWN].join(","), kinds.len() - KINDS_SHOWN)
        }
        Some(kinds) => kinds.join(","),
    }
}

fn table(workers: &[Worker], now: i64) -> Vec<String> {
    let mut table = Table::new(["INSTANCE", "WORKER", "STATE", "SLOTS", "SINCE", "LANES", "KINDS", "CAPABILITIES"]);
    for worker in workers {
        let capabilities = worker.capabilities.join(",");
        table.row([
            text(&worker.instance),
            text(&worker.worker_id),
            text(worker.state.as_str()),
            number(worker.slots),
            number(span(Some(now - worker.registered_at))),
            text(lanes(worker)),
            text(kinds(worker)),
            text(if capabilities.is_empty() { "-" } else { &capabilities }),
        ]);
    }
    table.lines()
}
