//! `ff list`: executions, newest first.

use std::cmp::Reverse;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use ff_api::Ask;
use ff_api::executions::{ExecutionFilter, ExecutionSummary, ListExecutions, ListQuery};

use super::filters::FilterArgs;
use crate::client::{Api, ServerArgs};
use crate::output::{Output, OutputArgs};
use crate::pages::{PageArgs, Paged, as_json};
use crate::problem::WrongUsage;
use crate::table::{Table, id, number, state, text};
use crate::times::{length, moment, now_ms};
use crate::view::{View, WatchArgs, types};

/// Lists executions, newest first. AGE is the time from the submission to the end, or until now.
#[derive(Args)]
#[command(after_help = "Example:
  ff list --lane mail --state failed,expired --since 1h
  ff list --kind import --watch
  ff list --lane mail --state failed -o ids | ff replay -")]
pub struct List {
    #[command(flatten)]
    filters: FilterArgs,
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
        let filters = self.filters.each();
        if filters.len() > 1 && (self.watch.is_on() || self.page.has_cursor()) {
            bail!(WrongUsage("--watch and --cursor take one --state".to_owned()));
        }
        let lists = filters.into_iter().map(|filter| self.list(filter));
        let output = self.output.output;
        let named = |item: &ExecutionSummary| item.execution_id.to_string();
        // Ids go into other commands: all of them, state by state.
        if lists.len() == 1 || output == Output::Ids {
            for list in lists {
                let shown = |items: &[ExecutionSummary]| {
                    // A view that goes on changes when the work does, not with every second that something runs.
                    View::lines(table(items, now_ms())).about(format!("{items:?}"))
                };
                list.show(&api, self.watch, output, named, shown).await?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let (mut all, mut more) = (Vec::new(), false);
        for list in lists {
            let (items, raw, next) = list.read(&api).await?;
            all.extend(items.into_iter().zip(raw));
            more |= next.is_some();
        }
        all.sort_by_key(|(item, _)| Reverse((item.created_at, item.execution_id)));
        more |= all.len() > self.page.shown();
        all.truncate(self.page.shown());
        let (items, raw): (Vec<ExecutionSummary>, Vec<_>) = all.into_iter().unzip();
        let mut view = match output {
            Output::Json => as_json(raw, None)?,
            Output::Ids | Output::Table => View::lines(table(&items, now_ms())),
        };
        view.note = more.then(|| "there are more; list one --state to page through them, or raise --limit".to_owned());
        view.print()?;
        Ok(ExitCode::SUCCESS)
    }

    /// The list of the executions that match.
    fn list(
        &self,
        filter: ExecutionFilter,
    ) -> Paged<ListExecutions, impl Fn(i64, Option<String>) -> Ask<ListExecutions> + use<>> {
        Paged::new(self.page.clone(), types("execution."), move |limit, cursor| {
            Ask::<ListExecutions>::by((), ListQuery { limit: Some(limit), cursor, ..ListQuery::from(filter.clone()) })
        })
    }
}

/// What goes first on a narrow terminal.
const SPARE: &[&str] = &["CREATED (UTC)", "ATTEMPT", "WORKER", "LANE", "FAILURE", "AGE"];

fn table(items: &[ExecutionSummary], now: i64) -> Vec<String> {
    let mut table = Table::new(["ID", "STATE", "KIND", "LANE", "CREATED (UTC)", "AGE", "ATTEMPT", "WORKER", "FAILURE"])
        .sparing(SPARE);
    for item in items {
        // From its submission to its end, or until now.
        let age = item.ended_at.map_or(now, |at| at.0) - item.created_at.0;
        table.row([
            id(item.execution_id),
            state(item.state),
            text(&item.kind),
            text(item.lane.as_str()),
            number(moment(item.created_at.0)),
            number(age_of(age)),
            number(item.attempt_index.map_or_else(|| "-".to_owned(), |index| index.to_string())),
            text(item.worker_instance.as_deref().unwrap_or_default()),
            text(
                item.failure
                    .as_ref()
                    .map(|failure| format!("{}: {}", failure.category, failure.reason))
                    .unwrap_or_default(),
            ),
        ]);
    }
    table.lines()
}

/// A duration to the second, and to the millisecond where it is short.
pub fn age_of(ms: i64) -> String {
    let ms = ms.max(0);
    length(if ms < 10_000 { ms } else { ms / 1_000 * 1_000 })
}
