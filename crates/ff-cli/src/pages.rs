//! Lists of the server, read page by page: a page may be short, or empty, while more follows.

use std::marker::PhantomData;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use ff_api::{Ask, Listed, Operation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{Answered, Api, Output, print, text};
use crate::view::{View, WatchArgs};

/// The longest page the server gives.
const PAGE_MAX: u64 = 1_000;
/// How many are shown unless someone says otherwise.
const SHOWN: u64 = 100;

/// Which part of a list.
#[derive(Args, Clone, Debug)]
pub struct PageArgs {
    /// How many at most; 100 unless said, and all of them with `-o ids`.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Where an earlier list stopped.
    #[arg(long)]
    cursor: Option<String>,
}

/// A list of the server: the operation that reads a page of it, and how its entries are named.
pub struct Paged<O: Operation, F> {
    /// The request for a page of at most so many entries, from a cursor on.
    pub ask: F,
    pub page: PageArgs,
    /// The events that announce a change.
    pub about: Vec<(&'static str, String)>,
    operation: PhantomData<fn() -> O>,
}

impl<O, T, F> Paged<O, F>
where
    O: Operation<Query: Serialize, Body: Serialize, Answer = Listed<T>>,
    T: DeserializeOwned + Send,
    F: Fn(i64, Option<String>) -> Ask<O>,
{
    /// A list whose changes these events announce.
    pub fn new(page: PageArgs, about: Vec<(&'static str, String)>, ask: F) -> Self {
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
                Output::Json => {
                    View::of(format!("{}\n", serde_json::to_string(&Page { items: shown, next_cursor: next.clone() })?))
                }
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
    async fn read(&self, api: &Api) -> anyhow::Result<(Vec<T>, Vec<Box<RawValue>>, Option<String>)> {
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

fn more(cursor: String) -> String {
    format!("more with --cursor {cursor}")
}

/// A list of the server, and how it is shown.
pub struct Listing<'a> {
    pub path: &'static str,
    /// The filters.
    pub query: Vec<(&'static str, String)>,
    pub page: PageArgs,
    /// The field that names an entry.
    pub id: &'static str,
    /// The events that announce a change.
    pub about: &'a [(&'a str, String)],
}

#[derive(Deserialize, Serialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

impl Page {
    fn values(&self) -> anyhow::Result<Vec<Value>> {
        Ok(self.items.iter().map(|item| serde_json::from_str(item.get())).collect::<Result<_, _>>()?)
    }

    fn note(&self) -> Option<String> {
        self.next_cursor.as_ref().map(|cursor| format!("more with --cursor {cursor}"))
    }
}

impl Listing<'_> {
    /// Prints the list, once or on every change; ids are printed as their pages come.
    pub async fn show(
        self,
        api: &Api,
        watch: WatchArgs,
        output: Output,
        table: impl Fn(&[Value]) -> View,
    ) -> anyhow::Result<ExitCode> {
        if output == Output::Ids && !watch.is_on() {
            return self.print_ids(api).await;
        }
        let look = async || {
            let page = self.read(api).await?;
            let mut view = match output {
                Output::Json => View::of(format!("{}\n", serde_json::to_string(&page)?)),
                Output::Ids => View::lines(page.values()?.iter().map(|item| text(&item[self.id]))),
                Output::Table => table(&page.values()?),
            };
            view.note = page.note().filter(|_| output != Output::Json);
            Ok(view)
        };
        watch.show(api, output, self.about, look).await
    }

    async fn print_ids(&self, api: &Api) -> anyhow::Result<ExitCode> {
        let (mut left, mut cursor) = (self.page.limit.unwrap_or(u64::MAX), self.page.cursor.clone());
        loop {
            let page = self.ask(api, left, cursor).await?;
            left = left.saturating_sub(page.items.len() as u64);
            let ids: String = page.values()?.iter().map(|item| format!("{}\n", text(&item[self.id]))).collect();
            print(&ids)?;
            if left == 0 || page.next_cursor.is_none() {
                if let Some(note) = page.note() {
                    eprintln!("{note}");
                }
                return Ok(ExitCode::SUCCESS);
            }
            cursor = page.next_cursor;
        }
    }

    /// As many as asked for, as one page.
    async fn read(&self, api: &Api) -> anyhow::Result<Page> {
        let limit = self.page.limit.unwrap_or(SHOWN);
        let mut all = Page { items: Vec::new(), next_cursor: self.page.cursor.clone() };
        loop {
            let left = limit - all.items.len() as u64;
            let page = self.ask(api, left, all.next_cursor.take()).await?;
            all.items.extend(page.items);
            all.next_cursor = page.next_cursor;
            if all.next_cursor.is_none() || all.items.len() as u64 >= limit {
                return Ok(all);
            }
        }
    }

    async fn ask(&self, api: &Api, left: u64, cursor: Option<String>) -> anyhow::Result<Page> {
        let mut query = self.query.clone();
        query.push(("limit", left.min(PAGE_MAX).to_string()));
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        let reply = api.get(self.path, &query).await?.accepted()?;
        serde_json::from_slice(&reply.bytes).context("the server's answer is not a list")
    }
}
