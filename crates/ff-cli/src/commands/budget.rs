//! `ff budget`: how much may be used, what is used and held, and who waits for it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use ff_api::Ask;
use ff_api::budgets::{
    ApproveBudget, Budget, BudgetsQuery, ChangeBudget, ChangeBudgetBody, CorrectBody, CorrectBudget, CreateBudget,
    CreateBudgetBody, DeleteBudget, GetBudget, LimitBody, LimitPatchBody, ListBlockedOnBudget, ListBudgets, NamedScope,
    ResetBudget, ScopeBody,
};
use ff_api::events::EventsQuery;
use ff_api::page::PageQuery;
use ff_api::reset::{CalendarReset, CalendarUnit, IntervalReset, Reset};
use ff_api::usage::{
    Amounts, ReleaseBudget, ReleaseReservationBody, ReportUsageResult, ReserveBody, ReserveBudget, Reserved,
    SettleBody, SettleBudget, SpendBudget, UsageBody,
};
use ff_core::types::BudgetId;
use ff_script::generated::{BudgetScope, OnHard, OnSoft, ScopeType};
use uuid::Uuid;

use super::blocked::{self, BlockedArgs};
use crate::client::{Answered, Api, ServerArgs};
use crate::ids::id;
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::pages::{PageArgs, Paged};
use crate::problem::WrongUsage;
use crate::table::{self, Table, number, text};
use crate::times::{duration, length, moment};
use crate::values::{amount, words};
use crate::view::{View, WatchArgs};

/// How many of those that wait `show` names.
const BLOCKED_SHOWN: i64 = 10;

/// Budgets.
#[derive(Args)]
pub struct BudgetCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Makes a budget and shows it; with `-o ids` it prints the id alone.
    #[command(after_help = "Example:
  ff budget create --hard tokens=100000 --soft tokens=80000 --reset-calendar day --zone Europe/Berlin
  ff submit --kind call --budget 0192f3a1-…:tokens=500")]
    Create(Create),
    /// Shows a budget: what is used, held and left, what operators did, who waits for it. An unknown id exits 4.
    Show(Show),
    /// Lists budgets, newest first.
    List(List),
    /// Changes limits and actions; what is not named stays. A higher limit lets waiting work go on.
    #[command(
        visible_alias = "raise",
        after_help = "Example:
  ff budget set 0192f3a1-… --hard tokens=200000 --no-soft tokens"
    )]
    Set(Set),
    /// Lets work start past the soft limits until the period ends.
    Approve(One),
    /// Starts a new period now: nothing is used in it.
    Reset(One),
    /// Changes what is used in a dimension; kept with its reason.
    #[command(after_help = "Example:
  ff budget correct 0192f3a1-… --dimension tokens --delta=-500 --reason 'counted twice'")]
    Correct(Correct),
    /// Deletes a budget that has no children and against which nothing is held: nothing that names it starts any more.
    Delete(Delete),
    /// Lists the executions that wait for a budget, the next to go on first.
    Blocked(Blocked),
    /// Reports what was used outside of any execution. A report that would pass a hard limit is not accepted and exits 6.
    #[command(after_help = "Example:
  ff budget usage 0192f3a1-… --amount tokens=120 --dedup-key invoice-7")]
    Usage(Usage),
    /// Holds amounts for a time and shows the reservation's id. Exits 6 when a hard limit is in the way.
    Reserve(Reserve),
    /// Turns a reservation into what was really used. Exits 6 when a hard limit is in the way.
    Settle(Settle),
    /// Gives a reservation back unused.
    Release(Release),
}

/// The exit code when a hard limit is in the way.
const BREACHED: u8 = 6;

#[derive(Args)]
struct Where {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
struct Limits {
    /// A hard limit, as dimension=n; may be repeated.
    #[arg(long, value_parser = amount, value_name = "DIMENSION=N")]
    hard: Vec<(String, i64)>,
    /// A soft limit, as dimension=n; may be repeated.
    #[arg(long, value_parser = amount, value_name = "DIMENSION=N")]
    soft: Vec<(String, i64)>,
    /// What happens at a soft limit.
    #[arg(long, value_parser = words(OnSoft::ALL))]
    on_soft: Option<OnSoft>,
    /// What happens at a hard limit.
    #[arg(long, value_parser = words(OnHard::ALL))]
    on_hard: Option<OnHard>,
}

#[derive(Args)]
struct Create {
    /// The budget's id, a UUID (default: a new one).
    #[arg(long, value_name = "ID")]
    budget_id: Option<BudgetId>,
    /// The namespace of the executions that may name it.
    #[arg(long)]
    namespace: Option<String>,
    /// The budget it stands under: what is used here is used there as well.
    #[arg(long, value_name = "ID")]
    parent: Option<BudgetId>,
    /// What it applies to: namespace, lane:NAME, flow:ID, tenant:NAME or custom.
    #[arg(long, value_name = "TYPE[:ID]", value_parser = scope_body)]
    scope: Option<ScopeBody>,
    /// A dimension without a limit; may be repeated.
    #[arg(long, value_name = "NAME")]
    dimension: Vec<String>,
    #[command(flatten)]
    limits: Limits,
    /// A period lasts this long, e.g. 1h.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "reset_calendar")]
    reset_interval: Option<i64>,
    /// A period ends with the day or the month.
    #[arg(long, value_parser = ["day", "month"])]
    reset_calendar: Option<String>,
    /// The time zone of the calendar by its IANA name (default: UTC).
    #[arg(long, requires = "reset_calendar")]
    zone: Option<String>,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Show {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
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
    /// Only those of a type of scope.
    #[arg(long, value_parser = words(ScopeType::ALL))]
    scope: Option<ScopeType>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Set {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    #[command(flatten)]
    limits: Limits,
    /// Takes the hard limit of a dimension away; may be repeated.
    #[arg(long, value_name = "DIMENSION")]
    no_hard: Vec<String>,
    /// Takes the soft limit of a dimension away; may be repeated.
    #[arg(long, value_name = "DIMENSION")]
    no_soft: Vec<String>,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct One {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Correct {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    /// What was counted wrong.
    #[arg(long)]
    dimension: String,
    /// By how much; below 0 gives back.
    #[arg(long, allow_negative_numbers = true)]
    delta: i64,
    /// Why.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Delete {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Args)]
struct Blocked {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    #[command(flatten)]
    page: BlockedArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Usage {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    /// What was used, as dimension=n; may be repeated.
    #[arg(long, required = true, value_parser = amount, value_name = "DIMENSION=N")]
    amount: Vec<(String, i64)>,
    /// The same key counts once.
    #[arg(long)]
    dedup_key: Option<String>,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Reserve {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    /// What to hold, as dimension=n; may be repeated.
    #[arg(long, required = true, value_parser = amount, value_name = "DIMENSION=N")]
    amount: Vec<(String, i64)>,
    /// For how long (default: 1m).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<i64>,
    /// The same key is the same reservation.
    #[arg(long)]
    dedup_key: Option<String>,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Settle {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    /// The reservation.
    #[arg(long, value_name = "ID")]
    reservation_id: Uuid,
    /// What was really used, as dimension=n; may be repeated.
    #[arg(long, required = true, value_parser = amount, value_name = "DIMENSION=N")]
    amount: Vec<(String, i64)>,
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
struct Release {
    /// The budget.
    #[arg(value_name = "BUDGET")]
    budget: String,
    /// The reservation.
    #[arg(long, value_name = "ID")]
    reservation_id: Uuid,
    #[command(flatten)]
    server: ServerArgs,
}

/// Amounts by dimension, each named once.
fn amounts(flag: &str, given: Vec<(String, i64)>) -> anyhow::Result<Amounts> {
    let mut read = Amounts::new();
    for (name, n) in given {
        if read.insert(name.clone(), n).is_some() {
            bail!(WrongUsage(format!("--{flag} names {name} twice")));
        }
    }
    Ok(read)
}

/// `TYPE[:ID]` as the API takes a scope.
fn scope_body(text: &str) -> Result<ScopeBody, String> {
    let (kind, id) = text.split_once(':').map_or((text, None), |(kind, id)| (kind, Some(id.to_owned())));
    let r#type = kind.parse().map_err(|_| {
        let words: Vec<&str> = ScopeType::ALL.iter().map(|word| word.as_str()).collect();
        format!("{kind:?} is no type of scope; there are {}", words.join(", "))
    })?;
    Ok(match id {
        None => ScopeBody::Bare(r#type),
        id => ScopeBody::Named(NamedScope { r#type, id }),
    })
}

/// The id of a budget on the command line.
fn budget_id(text: &str) -> anyhow::Result<BudgetId> {
    id("a budget", text)
}

impl Create {
    fn body(self) -> anyhow::Result<(Where, CreateBudgetBody)> {
        let mut dimensions: BTreeMap<String, LimitBody> = BTreeMap::new();
        for (name, n) in amounts("hard", self.limits.hard)? {
            dimensions.entry(name).or_default().hard = Some(n);
        }
        for (name, n) in amounts("soft", self.limits.soft)? {
            dimensions.entry(name).or_default().soft = Some(n);
        }
        for name in self.dimension {
            if dimensions.insert(name.clone(), LimitBody::default()).is_some() {
                bail!(WrongUsage(format!("--dimension {name} has a limit: name it with --hard or --soft alone")));
            }
        }
        if dimensions.is_empty() {
            bail!(WrongUsage(
                "say what it measures: --hard DIMENSION=N, --soft DIMENSION=N or --dimension NAME".to_owned()
            ));
        }
        let calendar = |unit: &str| if unit == "day" { CalendarUnit::Day } else { CalendarUnit::Month };
        let reset = match (self.reset_interval, self.reset_calendar) {
            (Some(interval_ms), _) => Some(Reset::Interval(IntervalReset { interval_ms })),
            (None, Some(unit)) => Some(Reset::Calendar(CalendarReset { calendar: calendar(&unit), zone: self.zone })),
            (None, None) => None,
        };
        let body = CreateBudgetBody {
            budget_id: self.budget_id,
            namespace: self.namespace,
            parent: self.parent,
            scope: self.scope,
            dimensions,
            reset,
            on_soft: self.limits.on_soft,
            on_hard: self.limits.on_hard,
        };
        Ok((self.at, body))
    }
}

impl Set {
    fn body(&self) -> anyhow::Result<ChangeBudgetBody> {
        let mut dimensions: BTreeMap<String, LimitPatchBody> = BTreeMap::new();
        for (name, n) in amounts("hard", self.limits.hard.clone())? {
            dimensions.entry(name).or_default().hard = Some(Some(n));
        }
        for (name, n) in amounts("soft", self.limits.soft.clone())? {
            dimensions.entry(name).or_default().soft = Some(Some(n));
        }
        for name in &self.no_hard {
            dimensions.entry(name.clone()).or_default().hard = Some(None);
        }
        for name in &self.no_soft {
            dimensions.entry(name.clone()).or_default().soft = Some(None);
        }
        let body = ChangeBudgetBody { dimensions, on_soft: self.limits.on_soft, on_hard: self.limits.on_hard };
        if body == ChangeBudgetBody::default() {
            bail!(WrongUsage(
                "say what to change: --hard, --soft, --no-hard, --no-soft, --on-hard or --on-soft".to_owned()
            ));
        }
        Ok(body)
    }
}

impl BudgetCommand {
    /// Prints the budget, or what the verb asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (at, budget) = match self.verb {
            Verb::Create(create) => {
                let (at, body) = create.body()?;
                let Answered { value, bytes, status } =
                    Api::new(&at.server)?.ask(&Ask::<CreateBudget>::with((), body)).await?;
                (at, Answered { value: value.thing, bytes, status })
            }
            Verb::Show(show) => return show.run().await,
            Verb::List(list) => return list.run().await,
            Verb::Set(set) => {
                let ask = Ask::<ChangeBudget>::with(budget_id(&set.budget)?, set.body()?);
                let changed = Api::new(&set.at.server)?.ask(&ask).await?;
                (set.at, changed)
            }
            Verb::Approve(One { budget, at }) => {
                let approved = Api::new(&at.server)?.ask(&Ask::<ApproveBudget>::at(budget_id(&budget)?)).await?;
                (at, approved)
            }
            Verb::Reset(One { budget, at }) => {
                let reset = Api::new(&at.server)?.ask(&Ask::<ResetBudget>::at(budget_id(&budget)?)).await?;
                (at, reset)
            }
            Verb::Correct(Correct { budget, dimension, delta, reason, at }) => {
                let ask = Ask::<CorrectBudget>::with(budget_id(&budget)?, CorrectBody { dimension, delta, reason });
                let corrected = Api::new(&at.server)?.ask(&ask).await?;
                (at, corrected)
            }
            Verb::Delete(Delete { budget, server }) => {
                Api::new(&server)?.ask(&Ask::<DeleteBudget>::at(budget_id(&budget)?)).await?;
                eprintln!("deleted");
                return Ok(ExitCode::SUCCESS);
            }
            Verb::Blocked(blocked) => return blocked.run().await,
            Verb::Usage(usage) => return usage.run().await,
            Verb::Reserve(reserve) => return reserve.run().await,
            Verb::Settle(settle) => return settle.run().await,
            Verb::Release(Release { budget, reservation_id, server }) => {
                let ask = Ask::<ReleaseBudget>::with(budget_id(&budget)?, ReleaseReservationBody { reservation_id });
                Api::new(&server)?.ask(&ask).await?;
                eprintln!("released");
                return Ok(ExitCode::SUCCESS);
            }
        };
        match at.output.output {
            Output::Json => say_raw(&budget.bytes)?,
            Output::Ids => say(&budget.value.budget_id.to_string())?,
            Output::Table => View::lines(lines(std::slice::from_ref(&budget.value))).print()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.at.server)?;
        let list = Paged::new(self.page, EventsQuery::default(), |limit, cursor| {
            let (namespace, scope) = (self.namespace.clone(), self.scope);
            Ask::<ListBudgets>::by((), BudgetsQuery { namespace, scope, limit: Some(limit), cursor })
        });
        let named = |budget: &Budget| budget.budget_id.to_string();
        list.show(&api, self.watch, self.at.output.output, named, |budgets| View::lines(lines(budgets))).await
    }
}

impl Usage {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let body = UsageBody { dimensions: amounts("amount", self.amount)?, dedup_key: self.dedup_key };
        let ask = Ask::<SpendBudget>::with(budget_id(&self.budget)?, body);
        reported(&Api::new(&self.at.server)?.ask(&ask).await?, self.at.output.output)
    }
}

impl Settle {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let body = SettleBody { reservation_id: self.reservation_id, dimensions: amounts("amount", self.amount)? };
        let ask = Ask::<SettleBudget>::with(budget_id(&self.budget)?, body);
        reported(&Api::new(&self.at.server)?.ask(&ask).await?, self.at.output.output)
    }
}

impl Reserve {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let dimensions = amounts("amount", self.amount)?;
        let body = ReserveBody { dimensions, ttl_ms: self.ttl, dedup_key: self.dedup_key, ..ReserveBody::default() };
        let ask = Ask::<ReserveBudget>::with(budget_id(&self.budget)?, body);
        let Answered { value, bytes, .. } = Api::new(&self.at.server)?.ask(&ask).await?;
        match (self.at.output.output, &value) {
            (Output::Json, _) => say_raw(&bytes)?,
            (Output::Ids, Reserved::Ok { reservation_id, .. }) => say(&reservation_id.to_string())?,
            (Output::Ids, Reserved::HardBreach { .. }) => {}
            (Output::Table, Reserved::Ok { reservation_id, expires_at }) => {
                let until = expires_at.map(|at| format!("  until {}", moment(at))).unwrap_or_default();
                say(&format!("ok  {reservation_id}{until}"))?;
            }
            (Output::Table, Reserved::HardBreach { dimension, used, limit, .. }) => {
                say(&breach("hard_breach", dimension, *used, *limit))?;
            }
        }
        Ok(match value {
            Reserved::Ok { .. } => ExitCode::SUCCESS,
            Reserved::HardBreach { .. } => ExitCode::from(BREACHED),
        })
    }
}

/// A limit that was reached.
fn breach(what: &str, dimension: &str, used: u64, limit: u64) -> String {
    format!("{what}: {used} of {limit} {dimension} used")
}

/// Prints what became of a report; a hard limit in the way is no success.
fn reported(answered: &Answered<ReportUsageResult>, output: Output) -> anyhow::Result<ExitCode> {
    match (output, &answered.value) {
        (Output::Json, _) => say_raw(&answered.bytes)?,
        (Output::Ids, _) => {}
        (Output::Table, ReportUsageResult::Ok) => say("ok")?,
        (Output::Table, ReportUsageResult::AlreadyApplied) => say("already_applied")?,
        (Output::Table, ReportUsageResult::SoftBreach { dimension, used, limit, .. }) => {
            say(&breach("soft_breach", dimension, *used, *limit))?;
        }
        (Output::Table, ReportUsageResult::HardBreach { dimension, used, limit, .. }) => {
            say(&breach("hard_breach", dimension, *used, *limit))?;
        }
    }
    let breached = matches!(answered.value, ReportUsageResult::HardBreach { .. });
    Ok(if breached { ExitCode::from(BREACHED) } else { ExitCode::SUCCESS })
}

impl Show {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output, id) = (Api::new(&self.at.server)?, self.at.output.output, budget_id(&self.budget)?);
        let look = async || {
            let Answered { value: budget, bytes, .. } = api.ask(&Ask::<GetBudget>::at(id)).await?;
            match output {
                Output::Json => View::raw(&bytes),
                Output::Ids => Ok(View::lines([budget.budget_id.to_string()])),
                Output::Table => {
                    let query = PageQuery { limit: Some(BLOCKED_SHOWN), cursor: None };
                    let blocked = api.ask(&Ask::<ListBlockedOnBudget>::by(id, query)).await?.value;
                    let mut lines = lines(std::slice::from_ref(&budget));
                    lines.extend(history(&budget));
                    lines.extend(blocked::lines(&blocked));
                    Ok(View::lines(lines))
                }
            }
        };
        self.watch.show(&api, output, &EventsQuery::default(), look).await
    }
}

impl Blocked {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output, id) = (Api::new(&self.at.server)?, self.at.output.output, budget_id(&self.budget)?);
        let query = PageQuery { limit: Some(self.page.limit), cursor: self.page.cursor };
        let look = async || {
            let page = api.ask(&Ask::<ListBlockedOnBudget>::by(id, query.clone())).await?;
            blocked::view(&page, output)
        };
        self.watch.show(&api, output, &EventsQuery::default(), look).await
    }
}

/// A number, or a dash where there is none.
fn or_dash(n: Option<i64>) -> table::Field {
    number(n.map_or_else(|| "-".to_owned(), |n| n.to_string()))
}

fn scope(scope: &BudgetScope) -> String {
    match &scope.id {
        Some(id) => format!("{}:{id}", scope.r#type),
        None => scope.r#type.to_string(),
    }
}

/// When a period ends, in words.
fn reset(budget: &Budget) -> String {
    let every = match &budget.reset {
        Reset::Interval(IntervalReset { interval_ms }) => format!("every {}", length(*interval_ms)),
        Reset::Calendar(CalendarReset { calendar, zone }) => {
            let unit = match calendar {
                CalendarUnit::Day => "day",
                CalendarUnit::Month => "month",
            };
            format!("every {unit} in {}", zone.as_deref().unwrap_or("UTC"))
        }
        _ => return "no reset".to_owned(),
    };
    let next = budget.next_reset_at.map(|at| format!(", next reset {}", moment(at)));
    format!("{every}{}", next.unwrap_or_default())
}

/// A row for each dimension, and then what holds for all of them.
fn lines(budgets: &[Budget]) -> Vec<String> {
    let mut table = Table::new(["BUDGET", "SCOPE", "DIMENSION", "USED", "HELD", "HARD", "SOFT", "LEFT"])
        .sparing(&["SCOPE", "SOFT", "HELD"]);
    let mut facts = Vec::new();
    for budget in budgets {
        for (name, d) in &budget.dimensions {
            table.row([
                table::id(budget.budget_id),
                text(scope(&budget.scope)),
                text(name),
                number(d.used),
                number(d.held),
                or_dash(d.hard),
                or_dash(d.soft),
                or_dash(d.remaining),
            ]);
        }
        let mut said = vec![
            format!("namespace {}", budget.namespace),
            format!("on_soft {}", budget.on_soft),
            format!("on_hard {}", budget.on_hard),
        ];
        said.extend(budget.approved.then(|| "approved".to_owned()));
        said.push(reset(budget));
        facts.push((budget.dimensions.len(), format!("  {}", said.join(", "))));
    }
    let mut rows = table.lines().into_iter();
    let mut lines: Vec<String> = rows.by_ref().take(1).collect();
    for (count, said) in facts {
        lines.extend(rows.by_ref().take(count));
        lines.push(said);
    }
    lines
}

/// The periods that ended and what operators did, the latest last.
fn history(budget: &Budget) -> Vec<String> {
    let mut lines = Vec::new();
    for period in &budget.past {
        let used: Vec<String> = period.used.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let used = if used.is_empty() { "nothing".to_owned() } else { used.join(", ") };
        lines.push(format!("  {} to {}: used {used}", moment(period.since), moment(period.ended_at)));
    }
    for action in &budget.actions {
        let mut line = format!("  {}  {} by {}", moment(action.at), action.action, action.actor);
        if let Some(delta) = action.delta {
            line.push_str(&format!(": {delta:+} {}", action.dimension.as_deref().unwrap_or_default()));
        }
        if let Some(reason) = &action.reason {
            line.push_str(&format!(" ({reason})"));
        }
        lines.push(line);
    }
    lines
}
