//! Executions that wait for a budget or a quota, as both commands list them.

use clap::Args;
use ff_api::blocked::{BlockedExecution, BlockedPage};

use crate::client::Answered;
use crate::output::Output;
use crate::pages::more;
use crate::table::{Table, id, number, text};
use crate::times::moment;
use crate::view::View;

/// Which part of the list.
#[derive(Args, Clone, Debug)]
pub struct BlockedArgs {
    /// How many at most.
    #[arg(long, default_value_t = 64)]
    pub limit: i64,
    /// Where the list goes on: next_cursor of an earlier answer.
    #[arg(long)]
    pub cursor: Option<String>,
}

/// A page of those that wait.
pub fn view(page: &Answered<BlockedPage>, output: Output) -> anyhow::Result<View> {
    let lines = match output {
        Output::Json => return View::raw(&page.bytes),
        Output::Ids => page.value.items.iter().map(|item| item.execution_id.to_string()).collect(),
        Output::Table => lines(&page.value),
    };
    Ok(View { note: page.value.next_cursor.clone().map(more), ..View::lines(lines) })
}

/// How many wait, and the first of them.
pub fn lines(page: &BlockedPage) -> Vec<String> {
    let mut lines = vec![format!("{} wait", page.count)];
    if page.items.is_empty() {
        return lines;
    }
    let mut table = Table::new(["ID", "LANE", "KIND", "SINCE (UTC)"]).sparing(&["LANE"]);
    for BlockedExecution { execution_id, lane, kind, blocked_since, .. } in &page.items {
        table.row([id(execution_id), text(lane), text(kind), number(blocked_since.map(moment).unwrap_or_default())]);
    }
    lines.extend(table.lines());
    lines
}
