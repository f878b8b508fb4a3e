//! `ff worker show`: a worker and what it holds.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::executions::{ExecutionSummary, ListExecutions, ListQuery};
use ff_api::workers::{GetWorker, Worker};

use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs};
use crate::sheet::Sheet;
use crate::times::moment;
use crate::view::{View, WatchArgs, types};

/// How many of its executions are shown.
const HELD_MAX: i64 = 100;

/// Shows a worker and the executions it holds. An unknown instance exits 4.
#[derive(Args)]
pub struct Show {
    /// The worker's instance.
    #[arg(value_name = "INSTANCE")]
    instance: String,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    /// Prints the worker; with `-o ids` the executions it holds.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let Answered { value, bytes, .. } = api.ask(&Ask::<GetWorker>::at(self.instance.clone())).await?;
            if output == Output::Json {
                return View::raw(&bytes);
            }
            let worker = Some(self.instance.clone());
            let query = ListQuery { worker, limit: Some(HELD_MAX), ..ListQuery::default() };
            let held = api.ask(&Ask::<ListExecutions>::by((), query)).await?.value.items;
            Ok(match output {
                Output::Ids => View::lines(held.iter().map(|one| one.execution_id.to_string())),
                Output::Table | Output::Json => View::lines(sheet(&value, &held)),
            })
        };
        self.watch.show(&api, output, &types("worker.,execution."), look).await
    }
}

fn sheet(worker: &Worker, held: &[ExecutionSummary]) -> Vec<String> {
    let mut sheet = Sheet::default();
    sheet.fact("instance", &worker.instance);
    sheet.fact("worker", &worker.worker_id);
    sheet.fact("state", worker.state);
    sheet.fact("namespace", &worker.namespace);
    sheet.list("lanes", &worker.lanes);
    match &worker.kinds {
        Some(kinds) => sheet.list("kinds", kinds),
        None => sheet.fact("kinds", "all"),
    }
    sheet.list("capabilities", &worker.capabilities);
    sheet.fact("slots", format!("{}, {} in use", worker.slots, held.len()));
    sheet.fact("registered", moment(worker.registered_at));
    sheet.fact("alive until", moment(worker.expires_at));
    for one in held {
        sheet.fact("holds", format!("{}  {}", one.execution_id, one.kind));
    }
    sheet.lines()
}
