//! `ff quota`: how much may start, run and weigh under a key.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use ff_api::Ask;
use ff_api::events::EventsQuery;
use ff_api::quotas::{
    ChangeQuota, ChangeQuotaBody, CreateQuota, CreateQuotaBody, DeleteQuota, GetQuota, ListBlockedOnQuota, ListQuotas,
    Quota, QuotaBlockedQuery, QuotaQuery, QuotaRateBody, QuotasQuery, ThrottleBody, ThrottleQuota,
};
use ff_core::types::QuotaPolicyId;
use ff_script::generated::{QuotaKeyState, QuotaWeights, RateMode};

use super::blocked::{self, BlockedArgs};
use crate::client::{Answered, Api, ServerArgs};
use crate::ids::id;
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::pages::{PageArgs, Paged};
use crate::problem::WrongUsage;
use crate::table::{self, Table, number, text};
use crate::times::{duration, length, moment, now_ms, time};
use crate::values::words;
use crate::view::{View, WatchArgs};

/// Quotas.
#[derive(Args)]
pub struct QuotaCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Makes a quota and shows it; with `-o ids` it prints the id alone.
    #[command(after_help = "Example:
  ff quota create --concurrency 4 --rate-limit 100 --rate-window 1m
  ff submit --kind call --quota 0192f3a1-…:openai")]
    Create(Create),
    /// Shows a quota and the keys in use, or one key. An unknown id exits 4.
    #[command(after_help = "Example:
  ff quota show 0192f3a1-… --key openai")]
    Show(Show),
    /// Lists quotas, newest first.
    List(List),
    /// Changes a quota; what is not named stays. Running work is never stopped by a lower limit.
    #[command(after_help = "Example:
  ff quota set 0192f3a1-… --concurrency 8 --no-rate")]
    Set(Set),
    /// Starts nothing under a key for a while.
    #[command(after_help = "Example:
  ff quota throttle 0192f3a1-… --key openai --for 30s
  ff quota throttle 0192f3a1-… --key openai --clear")]
    Throttle(Throttle),
    /// Lists the executions that wait under a key, the next to be called first.
    Blocked(Blocked),
    /// Deletes a quota: nothing that names it starts any more.
    Delete(Delete),
}

#[derive(Args)]
struct Where {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
struct Parts {
    /// How many may start in a window.
    #[arg(long, requires = "rate_window")]
    rate_limit: Option<i64>,
    /// How long the window is, e.g. 1m.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "rate_limit")]
    rate_window: Option<i64>,
    /// Anywhere in the window, or evenly spaced (default: sliding).
    #[arg(long, requires = "rate_limit", value_parser = words(RateMode::ALL))]
    rate_mode: Option<RateMode>,
    /// How many may run at once.
    #[arg(long)]
    concurrency: Option<i64>,
    /// How much weight may start in a window.
    #[arg(long, requires = "weighted_window")]
    weighted_limit: Option<i64>,
    /// How long that window is, e.g. 1m.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "weighted_limit")]
    weighted_window: Option<i64>,
    /// Whether a suspended execution keeps its slot.
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    hold_while_suspended: Option<bool>,
}

#[derive(Args)]
struct Create {
    /// The quota's id, a UUID (default: a new one).
    #[arg(long, value_name = "ID")]
    quota_id: Option<QuotaPolicyId>,
    /// The namespace of the executions that may name it.
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Show {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    /// One key of it.
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct List {
    /// Only those of a namespace.
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Set {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    #[command(flatten)]
    parts: Parts,
    /// Takes the rate away.
    #[arg(long, conflicts_with = "rate_limit")]
    no_rate: bool,
    /// Takes the concurrency away.
    #[arg(long, conflicts_with = "concurrency")]
    no_concurrency: bool,
    /// Takes the weighted part away.
    #[arg(long, conflicts_with = "weighted_limit")]
    no_weighted: bool,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Throttle {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    /// The key nothing starts under.
    #[arg(long)]
    key: String,
    /// For how long from now, e.g. 30s.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, conflicts_with_all = ["until", "clear"])]
    how_long: Option<i64>,
    /// Until this time, e.g. 2026-11-20T09:00.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "clear")]
    until: Option<i64>,
    /// Ends the throttle.
    #[arg(long)]
    clear: bool,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Blocked {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    /// The key they wait under.
    #[arg(long)]
    key: String,
    #[command(flatten)]
    page: BlockedArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Delete {
    /// The quota.
    #[arg(value_name = "QUOTA")]
    quota: String,
    #[command(flatten)]
    server: ServerArgs,
}

impl Parts {
    fn rate(&self) -> Option<QuotaRateBody> {
        Some(QuotaRateBody { limit: self.rate_limit?, window_ms: self.rate_window?, mode: self.rate_mode })
    }

    fn weighted(&self) -> Option<QuotaWeights> {
        Some(QuotaWeights { limit: self.weighted_limit?, window_ms: self.weighted_window? })
    }
}

impl Set {
    /// What is not named stays; `None` within takes a part away.
    fn body(&self) -> ChangeQuotaBody {
        ChangeQuotaBody {
            rate: self.parts.rate().map(Some).or(self.no_rate.then_some(None)),
            concurrency: self.parts.concurrency.map(Some).or(self.no_concurrency.then_some(None)),
            weighted: self.parts.weighted().map(Some).or(self.no_weighted.then_some(None)),
            hold_while_suspended: self.parts.hold_while_suspended,
        }
    }
}

/// The id of a quota on the command line.
fn quota_id(text: &str) -> anyhow::Result<QuotaPolicyId> {
    id("a quota", text)
}

impl QuotaCommand {
    /// Prints the quota, or what the verb asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (at, quota) = match self.verb {
            Verb::Create(Create { quota_id, namespace, parts, at }) => {
                let body = CreateQuotaBody {
                    quota_id,
                    namespace,
                    rate: parts.rate(),
                    concurrency: parts.concurrency,
                    weighted: parts.weighted(),
                    hold_while_suspended: parts.hold_while_suspended,
                };
                let Answered { value, bytes, status } =
                    Api::new(&at.server)?.ask(&Ask::<CreateQuota>::with((), body)).await?;
                (at, Answered { value: value.thing, bytes, status })
            }
            Verb::Show(show) => return show.run().await,
            Verb::List(list) => return list.run().await,
            Verb::Set(set) => {
                let ask = Ask::<ChangeQuota>::with(quota_id(&set.quota)?, set.body());
                let changed = Api::new(&set.at.server)?.ask(&ask).await?;
                (set.at, changed)
            }
            Verb::Throttle(throttle) => return throttle.run().await,
            Verb::Blocked(blocked) => return blocked.run().await,
            Verb::Delete(Delete { quota, server }) => {
                Api::new(&server)?.ask(&Ask::<DeleteQuota>::at(quota_id(&quota)?)).await?;
                eprintln!("deleted");
                return Ok(ExitCode::SUCCESS);
            }
        };
        view(&quota, at.output.output)?.print()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// One quota with its keys.
fn view(quota: &Answered<Quota>, output: Output) -> anyhow::Result<View> {
    match output {
        Output::Json => View::raw(&quota.bytes),
        Output::Ids => Ok(View::lines([quota.value.quota_id.to_string()])),
        Output::Table => {
            let keys = quota.value.keys.iter().flatten().map(key);
            Ok(View::lines(lines(std::slice::from_ref(&quota.value)).into_iter().chain(keys)))
        }
    }
}

impl Show {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output) = (Api::new(&self.at.server)?, self.at.output.output);
        let (id, query) = (quota_id(&self.quota)?, QuotaQuery { key: self.key });
        let look = async || view(&api.ask(&Ask::<GetQuota>::by(id, query.clone())).await?, output);
        self.watch.show(&api, output, &EventsQuery::default(), look).await
    }
}

impl List {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.at.server)?;
        let list = Paged::new(self.page, EventsQuery::default(), |limit, cursor| {
            Ask::<ListQuotas>::by((), QuotasQuery { namespace: self.namespace.clone(), limit: Some(limit), cursor })
        });
        let named = |quota: &Quota| quota.quota_id.to_string();
        list.show(&api, self.watch, self.at.output.output, named, |quotas| View::lines(lines(quotas))).await
    }
}

impl Blocked {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output, id) = (Api::new(&self.at.server)?, self.at.output.output, quota_id(&self.quota)?);
        let query = QuotaBlockedQuery { key: self.key, limit: Some(self.page.limit), cursor: self.page.cursor };
        let look = async || {
            let page = api.ask(&Ask::<ListBlockedOnQuota>::by(id, query.clone())).await?;
            blocked::view(&page, output)
        };
        self.watch.show(&api, output, &EventsQuery::default(), look).await
    }
}

impl Throttle {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let until = match (self.until, self.how_long, self.clear) {
            (Some(until), _, _) => until,
            (None, Some(how_long), _) => now_ms().saturating_add(how_long),
            (None, None, true) => 0,
            (None, None, false) => bail!(WrongUsage("say until when: --for, --until or --clear".to_owned())),
        };
        let ask = Ask::<ThrottleQuota>::with(quota_id(&self.quota)?, ThrottleBody { key: self.key, until });
        let Answered { value, bytes, .. } = Api::new(&self.at.server)?.ask(&ask).await?;
        match (self.at.output.output, value.throttled_until) {
            (Output::Json, _) => say_raw(&bytes)?,
            (Output::Ids, _) => say(&value.quota_id.to_string())?,
            (Output::Table, None) => say("not throttled")?,
            (Output::Table, Some(until)) => {
                say(&format!("nothing starts under {} until {}", value.key, moment(until)))?
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// So many in a window.
fn windowed(limit: i64, window_ms: i64) -> String {
    format!("{limit} in {}", length(window_ms))
}

fn or_dash(part: Option<String>) -> String {
    part.unwrap_or_else(|| "-".to_owned())
}

fn lines(quotas: &[Quota]) -> Vec<String> {
    let mut table = Table::new(["QUOTA", "NAMESPACE", "RATE", "CONCURRENCY", "WEIGHT", "KEYS"]).sparing(&[
        "NAMESPACE",
        "KEYS",
        "WEIGHT",
    ]);
    for quota in quotas {
        let rate = quota.rate.map(|rate| format!("{} {}", windowed(rate.limit, rate.window_ms), rate.mode));
        table.row([
            table::id(quota.quota_id),
            text(&quota.namespace),
            text(or_dash(rate)),
            number(or_dash(quota.concurrency.map(|n| n.to_string()))),
            text(or_dash(quota.weighted.map(|part| windowed(part.limit, part.window_ms)))),
            number(quota.keys_in_use),
        ]);
    }
    table.lines()
}

/// How far a key is used.
fn key(key: &QuotaKeyState) -> String {
    let used = key.parts.iter().map(|part| {
        let next = part.next_at.map(|at| format!(" until {}", moment(at))).unwrap_or_default();
        format!("{} {}/{}{next}", part.part, part.used, part.limit)
    });
    let throttled = key.throttled_until.map(|at| format!(", throttled until {}", moment(at))).unwrap_or_default();
    let used = used.collect::<Vec<_>>().join(", ");
    format!("  {}: {used}, {} hold it, {} wait{throttled}", key.key, key.held, key.waiting)
}
