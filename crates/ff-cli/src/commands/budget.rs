//! `ff budget`: how much may be used, what is used and held, and who waits for it.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::client::{
    Api, Output, OutputArgs, Reply, ServerArgs, WrongUsage, amount, say, say_raw, segment, text, time,
};
use crate::view::{View, WatchArgs};

/// How many of those that wait `show` names.
const BLOCKED_SHOWN: &str = "10";

/// Budgets.
#[derive(Args)]
pub struct BudgetCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Makes a budget and prints its id.
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
    /// Holds amounts for a time and prints the reservation's id. Exits 6 when a hard limit is in the way.
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
    #[arg(long, value_parser = ["notify", "require_approval"])]
    on_soft: Option<String>,
    /// What happens at a hard limit.
    #[arg(long, value_parser = ["suspend", "block", "cancel", "fail"])]
    on_hard: Option<String>,
}

#[derive(Args)]
struct Create {
    /// The budget's id; minted unless said.
    #[arg(long)]
    budget_id: Option<String>,
    /// The namespace of the executions that may name it.
    #[arg(long)]
    namespace: Option<String>,
    /// The budget it stands under: what is used here is used there as well.
    #[arg(long)]
    parent: Option<String>,
    /// What it applies to: namespace, lane:NAME, flow:ID, tenant:NAME or custom.
    #[arg(long, value_name = "TYPE[:ID]")]
    scope: Option<String>,
    /// A dimension without a limit; may be repeated.
    #[arg(long, value_name = "NAME")]
    dimension: Vec<String>,
    #[command(flatten)]
    limits: Limits,
    /// A period ends after so many milliseconds.
    #[arg(long, conflicts_with = "reset_calendar")]
    reset_interval_ms: Option<i64>,
    /// A period ends with the day or the month.
    #[arg(long, value_parser = ["day", "month"])]
    reset_calendar: Option<String>,
    /// The zone of the calendar by its IANA name; UTC unless said.
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
    #[arg(long, value_parser = ["namespace", "tenant", "flow", "lane", "custom"])]
    scope: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 64)]
    limit: u32,
    /// Where the list goes on: next_cursor of an earlier answer.
    #[arg(long)]
    cursor: Option<String>,
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
    /// How many at most.
    #[arg(long, default_value_t = 64)]
    limit: u32,
    /// Where the list goes on: next_cursor of an earlier answer.
    #[arg(long)]
    cursor: Option<String>,
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
    /// For how long.
    #[arg(long)]
    ttl_ms: Option<i64>,
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
    #[arg(long)]
    reservation_id: String,
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
    #[arg(long)]
    reservation_id: String,
    #[command(flatten)]
    server: ServerArgs,
}

fn path(budget: &str) -> String {
    format!("/v1/budgets/{}", segment(budget))
}

/// Amounts by dimension, each named once.
fn amounts(flag: &str, given: Vec<(String, i64)>) -> anyhow::Result<Map<String, Value>> {
    let mut read = Map::new();
    for (name, n) in given {
        if read.insert(name.clone(), json!(n)).is_some() {
            bail!(WrongUsage(format!("--{flag} names {name} twice")));
        }
    }
    Ok(read)
}

impl Limits {
    /// The fields of a body; `none` names limits that are taken away, and dimensions that have none.
    fn body(self, bare: Vec<String>, none: [(&str, Vec<String>); 2]) -> anyhow::Result<Map<String, Value>> {
        let mut dimensions: Map<String, Value> = bare.into_iter().map(|name| (name, json!({}))).collect();
        let mut put = |name: String, which: &str, value: Value| {
            let limits = dimensions.entry(name).or_insert_with(|| json!({}));
            limits[which] = value;
        };
        for (which, given) in [("hard", self.hard), ("soft", self.soft)] {
            for (name, n) in amounts(which, given)? {
                put(name, which, n);
            }
        }
        for (which, names) in none {
            for name in names {
                put(name, which, Value::Null);
            }
        }
        let mut body = Map::new();
        if !dimensions.is_empty() {
            body.insert("dimensions".into(), Value::Object(dimensions));
        }
        body.extend(self.on_soft.map(|word| ("on_soft".to_owned(), json!(word))));
        body.extend(self.on_hard.map(|word| ("on_hard".to_owned(), json!(word))));
        Ok(body)
    }
}

impl Create {
    fn body(self) -> anyhow::Result<(Where, Map<String, Value>)> {
        for name in &self.dimension {
            if self.limits.hard.iter().chain(&self.limits.soft).any(|(other, _)| other == name) {
                bail!(WrongUsage(format!("--dimension {name} has a limit: name it with --hard or --soft alone")));
            }
        }
        let mut body = self.limits.body(self.dimension, [("hard", Vec::new()), ("soft", Vec::new())])?;
        if !body.contains_key("dimensions") {
            bail!(WrongUsage(
                "say what it measures: --hard DIMENSION=N, --soft DIMENSION=N or --dimension NAME".to_owned()
            ));
        }
        for (name, value) in [("budget_id", self.budget_id), ("namespace", self.namespace), ("parent", self.parent)] {
            body.extend(value.map(|value| (name.to_owned(), json!(value))));
        }
        if let Some(scope) = self.scope {
            let scope = match scope.split_once(':') {
                Some((kind, id)) => json!({ "type": kind, "id": id }),
                None => json!(scope),
            };
            body.insert("scope".into(), scope);
        }
        if let Some(interval_ms) = self.reset_interval_ms {
            body.insert("reset".into(), json!({ "interval_ms": interval_ms }));
        } else if let Some(calendar) = self.reset_calendar {
            body.insert("reset".into(), json!({ "calendar": calendar, "zone": self.zone }));
        }
        Ok((self.at, body))
    }
}

impl BudgetCommand {
    /// Prints the budget, or what the verb asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (at, reply) = match self.verb {
            Verb::Create(create) => {
                let (at, body) = create.body()?;
                let reply = Api::new(&at.server)?.post("/v1/budgets", Value::Object(body).to_string()).await?;
                (at, reply)
            }
            Verb::Show(show) => return show.run().await,
            Verb::List(list) => return list.run().await,
            Verb::Set(Set { budget, limits, no_hard, no_soft, at }) => {
                let body = limits.body(Vec::new(), [("hard", no_hard), ("soft", no_soft)])?;
                if body.is_empty() {
                    bail!(WrongUsage(
                        "say what to change: --hard, --soft, --no-hard, --no-soft, --on-hard or --on-soft".to_owned()
                    ));
                }
                let reply = Api::new(&at.server)?.patch(&path(&budget), Value::Object(body).to_string()).await?;
                (at, reply)
            }
            Verb::Approve(one) => one.act("approve", json!({})).await?,
            Verb::Reset(one) => one.act("reset", json!({})).await?,
            Verb::Correct(Correct { budget, dimension, delta, reason, at }) => {
                let body = json!({ "dimension": dimension, "delta": delta, "reason": reason });
                One { budget, at }.act("correct", body).await?
            }
            Verb::Delete(Delete { budget, server }) => {
                Api::new(&server)?.delete(&path(&budget)).await?.accepted()?;
                eprintln!("deleted");
                return Ok(ExitCode::SUCCESS);
            }
            Verb::Blocked(blocked) => return blocked.run().await,
            Verb::Usage(Usage { budget, amount, dedup_key, at }) => {
                let body = json!({ "dimensions": amounts("amount", amount)?, "dedup_key": dedup_key });
                return One { budget, at }.answered("usage", body).await;
            }
            Verb::Reserve(Reserve { budget, amount, ttl_ms, dedup_key, at }) => {
                let dimensions = amounts("amount", amount)?;
                let body = json!({ "dimensions": dimensions, "ttl_ms": ttl_ms, "dedup_key": dedup_key });
                return One { budget, at }.answered("reserve", body).await;
            }
            Verb::Settle(Settle { budget, reservation_id, amount, at }) => {
                let body = json!({ "dimensions": amounts("amount", amount)?, "reservation_id": reservation_id });
                return One { budget, at }.answered("settle", body).await;
            }
            Verb::Release(Release { budget, reservation_id, server }) => {
                let body = json!({ "reservation_id": reservation_id }).to_string();
                Api::new(&server)?.post(&format!("{}/release", path(&budget)), body).await?.accepted()?;
                eprintln!("released");
                return Ok(ExitCode::SUCCESS);
            }
        };
        view(&reply.accepted()?, at.output.output)?.print()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// One budget, or a page of them.
fn view(reply: &Reply, output: Output) -> anyhow::Result<View> {
    if output == Output::Json {
        return View::raw(&reply.bytes);
    }
    let answer = reply.json()?;
    let budgets = answer["items"].as_array().cloned().unwrap_or_else(|| vec![answer.clone()]);
    let lines = match output {
        Output::Ids => budgets.iter().map(|budget| text(&budget["budget_id"])).collect(),
        Output::Table | Output::Json => table(&budgets),
    };
    Ok(View { note: more(&answer), ..View::lines(lines) })
}

/// Says that a list goes on.
pub fn more(answer: &Value) -> Option<String> {
    answer["next_cursor"].as_str().map(|cursor| format!("more with --cursor {cursor}"))
}

impl List {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output) = (Api::new(&self.at.server)?, self.at.output.output);
        let mut query = vec![("limit", self.limit.to_string())];
        query.extend(self.namespace.map(|name| ("namespace", name)));
        query.extend(self.scope.map(|scope| ("scope", scope)));
        query.extend(self.cursor.map(|cursor| ("cursor", cursor)));
        let look = async || view(&api.get("/v1/budgets", &query).await?.accepted()?, output);
        self.watch.show(&api, output, &[], look).await
    }
}

impl One {
    async fn act(self, verb: &str, body: Value) -> anyhow::Result<(Where, Reply)> {
        let reply =
            Api::new(&self.at.server)?.post(&format!("{}/{verb}", path(&self.budget)), body.to_string()).await?;
        Ok((self.at, reply))
    }

    /// Prints what the budget answered; a hard limit in the way is no success.
    async fn answered(self, verb: &str, body: Value) -> anyhow::Result<ExitCode> {
        let (at, reply) = self.act(verb, body).await?;
        let reply = reply.accepted()?;
        let answer = reply.json()?;
        let held = answer["reservation_id"].as_str();
        match at.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => held.map_or(Ok(()), say)?,
            Output::Table => {
                let (outcome, dimension) = (text(&answer["outcome"]), text(&answer["dimension"]));
                let limit = if dimension.is_empty() {
                    dimension
                } else {
                    format!(": {} of {} {dimension} used", text(&answer["used"]), text(&answer["limit"]))
                };
                let held = held.map(|id| format!("  {id}")).unwrap_or_default();
                say(&format!("{outcome}{limit}{held}"))?;
            }
        }
        Ok(if answer["outcome"] == "hard_breach" { ExitCode::from(BREACHED) } else { ExitCode::SUCCESS })
    }
}

impl Show {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output, at) = (Api::new(&self.at.server)?, self.at.output.output, path(&self.budget));
        let look = async || {
            let reply = api.get(&at, &[]).await?.accepted()?;
            if output != Output::Table {
                return view(&reply, output);
            }
            let budget = reply.json()?;
            let query = [("limit", BLOCKED_SHOWN.to_owned())];
            let blocked = api.get(&format!("{at}/blocked"), &query).await?.accepted()?.json()?;
            let mut lines = table(std::slice::from_ref(&budget));
            lines.extend(history(&budget));
            lines.push(format!("{} wait", text(&blocked["count"])));
            lines.extend(waiting(&blocked["items"], "  "));
            Ok(View::lines(lines))
        };
        self.watch.show(&api, output, &[], look).await
    }
}

impl Blocked {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output, at) =
            (Api::new(&self.at.server)?, self.at.output.output, format!("{}/blocked", path(&self.budget)));
        let mut query = vec![("limit", self.limit.to_string())];
        query.extend(self.cursor.map(|cursor| ("cursor", cursor)));
        let look = async || waiting_view(&api.get(&at, &query).await?.accepted()?, output);
        self.watch.show(&api, output, &[], look).await
    }
}

/// A page of those that wait.
pub fn waiting_view(reply: &Reply, output: Output) -> anyhow::Result<View> {
    if output == Output::Json {
        return View::raw(&reply.bytes);
    }
    let answer = reply.json()?;
    let lines = if output == Output::Ids {
        answer["items"].as_array().into_iter().flatten().map(|item| text(&item["execution_id"])).collect()
    } else {
        let count = format!("{} wait", text(&answer["count"]));
        std::iter::once(count).chain(waiting(&answer["items"], "")).collect::<Vec<_>>()
    };
    Ok(View { note: more(&answer), ..View::lines(lines) })
}

/// One line for each execution that waits.
fn waiting(items: &Value, indent: &str) -> Vec<String> {
    let line = |item: &Value| {
        format!(
            "{indent}{}  {:16}  {:16}  since {}",
            text(&item["execution_id"]),
            text(&item["lane"]),
            text(&item["kind"]),
            time(&item["blocked_since"])
        )
    };
    items.as_array().into_iter().flatten().map(line).collect()
}

/// A number, or a dash where there is none.
fn or_dash(value: &Value) -> String {
    if value.is_null() { "-".to_owned() } else { text(value) }
}

fn scope(scope: &Value) -> String {
    match scope["id"].as_str() {
        Some(id) => format!("{}:{id}", text(&scope["type"])),
        None => text(&scope["type"]),
    }
}

/// One line for each dimension.
fn table(budgets: &[Value]) -> Vec<String> {
    let line = |columns: [&str; 8]| {
        let [budget, scope, dimension, used, held, hard, soft, left] = columns;
        format!("{budget:36}  {scope:20}  {dimension:16}  {used:>12}  {held:>12}  {hard:>12}  {soft:>12}  {left:>12}")
    };
    let mut lines = vec![line(["BUDGET", "SCOPE", "DIMENSION", "USED", "HELD", "HARD", "SOFT", "LEFT"])];
    for budget in budgets {
        let (id, scope) = (text(&budget["budget_id"]), scope(&budget["scope"]));
        for (name, d) in budget["dimensions"].as_object().into_iter().flatten() {
            let shown = ["used", "held", "hard", "soft", "remaining"].map(|field| or_dash(&d[field]));
            let [used, held, hard, soft, left] = &shown;
            lines.push(line([&id, &scope, name, used, held, hard, soft, left]));
        }
        let mut facts = vec![
            format!("namespace {}", text(&budget["namespace"])),
            format!("on_soft {}", text(&budget["on_soft"])),
            format!("on_hard {}", text(&budget["on_hard"])),
        ];
        if budget["approved"] == true {
            facts.push("approved".to_owned());
        }
        let next = time(&budget["next_reset_at"]);
        facts.push(if next.is_empty() { "no reset".to_owned() } else { format!("next reset {next}") });
        lines.push(format!("  {}", facts.join(", ")));
    }
    lines
}

/// The periods that ended and what operators did, the latest last.
fn history(budget: &Value) -> Vec<String> {
    let period = |period: &Value| {
        let used = period["used"].as_object().into_iter().flatten();
        let used: Vec<String> = used.map(|(name, n)| format!("{n} {name}")).collect();
        let used = if used.is_empty() { "nothing".to_owned() } else { used.join(", ") };
        format!("  {} to {}: used {used}", time(&period["since"]), time(&period["ended_at"]))
    };
    let line = |action: &Value| {
        let mut line = format!("  {}  {} by {}", time(&action["at"]), text(&action["action"]), text(&action["actor"]));
        if let Some(delta) = action["delta"].as_i64() {
            line.push_str(&format!(": {delta:+} {}", text(&action["dimension"])));
        }
        if let Some(reason) = action["reason"].as_str() {
            line.push_str(&format!(" ({reason})"));
        }
        line
    };
    let past = budget["past"].as_array().into_iter().flatten().map(period);
    past.chain(budget["actions"].as_array().into_iter().flatten().map(line)).collect()
}
