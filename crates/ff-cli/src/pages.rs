//! Lists of the server, read page by page: a page may be short, or empty, while more follows.

use std::marker::PhantomData;
use std::process::ExitCode;

use clap::Args;
use ff_api::events::EventsQuery;
use ff_api::{Ask, Listed, Operation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::{Answered, Api};
use crate::output::{Output, print};
use crate::view::{View, WatchArgs};

/// The longest page the server gives.
const PAGE_MAX: u64 = 1_000;
/// How many are shown by default.
const SHOWN: u64 = 100;

/// Which part of a list.
#[derive(Args, Clone, Debug)]
pub struct PageArgs {
    /// How many at most (default: 100, and all of them with `-o ids`).
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Where an earlier list stopped.
    #[arg(long)]
    cursor: Option<String>,
}

impl PageArgs {
    /// The whole list, however long it is.
    pub fn everything() -> Self {
        Self { limit: Some(u64::MAX), cursor: None }
    }

    /// How many are shown.
    pub fn shown(&self) -> usize {
        usize::try_from(self.limit.unwrap_or(SHOWN)).unwrap_or(usize::MAX)
    }

    /// True when the list goes on where an earlier one stopped.
    pub fn has_cursor(&self) -> bool {
        self.cursor.is_some()
    }
}

/// A list of the server: the operation that reads a page of it, and how its entries are named.
pub struct Paged<O: Operation, F> {
    /// The request for a page of at most so many entries, from a cursor on.
    pub ask: F,
    pub page: PageArgs,
    /// The events that announce a change.
    pub about: EventsQuery,
    operation: PhantomData<fn() -> O>,
}

impl<O, T, F> Paged<O, F>
where
    O: Operation<Query: Serialize, Body: Serialize, Answer = Listed<T>>,
    T: DeserializeOwned + Send,
    F: Fn(i64, Option<String>) -> Ask<O>,
{
    /// A list whose changes these events announce.
    pub fn new(page: PageArgs, about: EventsQuery, ask: F) -> Self {
        Self { ask, page, about, operation: PhantomData }
    }

    /// Prints the list, once or on every change; ids are printed as their pages come.
    pub async fn show(
        self,
        api: &Api,
        watch: WatchArgs,
        output: Output,
        id: impl Fn(&T) -> String,
        table: impl Fn(&[T]) -> View,
    ) -> anyhow::Result<ExitCode> {
        if output == Output::Ids && !watch.is_on() {
            return self.print_ids(api, id).await;
        }
        let look = async || {
            let (items, shown, next) = self.read(api).await?;
            let mut view = match output {
                Output::Json => as_json(shown, next.clone())?,
                Output::Ids => View::lines(items.iter().map(&id)),
                Output::Table => table(&items),
            };
            view.note = next.map(more).filter(|_| output != Output::Json);
            Ok(view)
        };
        watch.show(api, output, &self.about, look).await
    }

    async fn print_ids(&self, api: &Api, id: impl Fn(&T) -> String) -> anyhow::Result<ExitCode> {
        let (mut left, mut cursor) = (self.page.limit.unwrap_or(u64::MAX), self.page.cursor.clone());
        loop {
            let page = self.one(api, left, cursor).await?.value;
            left = left.saturating_sub(page.items.len() as u64);
            print(&page.items.iter().map(|item| format!("{}\n", id(item))).collect::<String>())?;
            if left == 0 || page.next_cursor.is_none() {
                if let Some(cursor) = page.next_cursor {
                    eprintln!("{}", more(cursor));
                }
                return Ok(ExitCode::SUCCESS);
            }
            cursor = page.next_cursor;
        }
    }

    /// As many as asked for: what they mean, as they came, and where the next page begins.
    pub async fn read(&self, api: &Api) -> anyhow::Result<(Vec<T>, Vec<Box<RawValue>>, Option<String>)> {
        let limit = self.page.limit.unwrap_or(SHOWN);
        let (mut items, mut shown, mut next) = (Vec::new(), Vec::new(), self.page.cursor.clone());
        loop {
            let page = self.one(api, limit - items.len() as u64, next).await?;
            let raw: Page = serde_json::from_slice(&page.bytes)?;
            items.extend(page.value.items);
            shown.extend(raw.items);
            next = page.value.next_cursor;
            if next.is_none() || items.len() as u64 >= limit {
                return Ok((items, shown, next));
            }
        }
    }

    async fn one(&self, api: &Api, left: u64, cursor: Option<String>) -> anyhow::Result<Answered<Listed<T>>> {
        let limit = i64::try_from(left.min(PAGE_MAX)).unwrap_or(1);
        api.ask(&(self.ask)(limit, cursor)).await
    }
}

/// Says that a list goes on.
pub fn more(cursor: String) -> String {
    format!("more with --cursor {cursor}")
}

/// Entries as they came, as one page.
pub fn as_json(items: Vec<Box<RawValue>>, next_cursor: Option<String>) -> anyhow::Result<View> {
    Ok(View::of(format!("{}\n", serde_json::to_string(&Page { items, next_cursor })?)))
}

#[derive(Deserialize, Serialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}
