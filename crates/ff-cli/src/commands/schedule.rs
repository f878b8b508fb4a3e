//! `ff schedule`: what is submitted by itself, and when.

use std::fmt;
use std::io::Read;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use ff_api::events::EventsQuery;
use ff_api::executions::SubmitBody;
use ff_api::lanes::NamespaceQuery;
use ff_api::schedules::{
    BackfillBody, BackfillSchedule, DeleteSchedule, Firing, GetSchedule, ListFirings, ListSchedules, NextOfSchedule,
    NextQuery, PauseSchedule, PauseScheduleBody, PutSchedule, ResumeSchedule, Schedule, ScheduleAction, ScheduleBody,
    ScheduleTime, SchedulesQuery, StopBackfill, TriggerBody, TriggerSchedule,
};
use ff_api::{Ask, Nothing};
use ff_script::generated::Overlap;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::pages::{PageArgs, Paged};
use crate::problem::WrongUsage;
use crate::table::{Table, number, text};
use crate::times::{duration, length, moment, time};
use crate::values::{pair, words};
use crate::view::{View, WatchArgs};

/// Schedules.
#[derive(Args)]
pub struct ScheduleCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Creates a schedule, or replaces its definition. Pause, counts and firings stay.
    #[command(after_help = "Example:
  ff schedule put nightly --cron '0 3 * * *' --time-zone Europe/Berlin --kind report
  ff schedule put heartbeat --every 30s --kind ping --overlap allow
  ff schedule put close --at 2026-12-31T22:00 --action @close.json")]
    Put(Box<Put>),
    /// Lists schedules, newest first.
    List(List),
    /// Shows a schedule with its last firings. An unknown name exits 4.
    Show(Show),
    /// Shows the next times, and why one of them will not fire.
    Next(Next),
    /// Stops a schedule from firing by itself.
    Pause(Pause),
    /// Lets a paused schedule fire again, from the next time on.
    Resume(One),
    /// Fires now, even while the schedule is paused, and prints what it submitted.
    Trigger(Trigger),
    /// Fires the times of a period that has passed, in order, or stops doing so.
    #[command(after_help = "Example:
  ff schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z --overlap queue_all
  ff schedule show nightly --watch
  ff schedule backfill nightly --stop")]
    Backfill(Backfill),
    /// Deletes a schedule. What it submitted goes on.
    Delete(One),
}

#[derive(Args)]
struct Named {
    /// The schedule.
    #[arg(value_name = "NAME")]
    name: String,
    /// Its namespace (default: default).
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
struct Put {
    #[command(flatten)]
    named: Named,
    /// When it fires: a cron expression of five fields, or of six with seconds first. May be repeated.
    #[arg(long)]
    cron: Vec<String>,
    /// How often it fires, e.g. 30s. May be repeated.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    every: Vec<i64>,
    /// One of the times of --every (default: the beginning of 1970).
    #[arg(long, value_name = "TIME", value_parser = time, requires = "every")]
    anchor_at: Option<i64>,
    /// Fires once, at this time, e.g. 2026-11-20T09:00. May be repeated.
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Vec<i64>,
    /// The time zone of the cron expressions, e.g. Europe/Berlin (default: UTC).
    #[arg(long)]
    time_zone: Option<String>,
    /// Nothing fires before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    starts_at: Option<i64>,
    /// Nothing fires after this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    ends_at: Option<i64>,
    /// Each time comes up to this much later.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    jitter: Option<i64>,
    /// What happens while the last run has not ended (default: skip).
    #[arg(long, value_parser = words(Overlap::ALL))]
    overlap: Option<Overlap>,
    /// Times that were missed for longer are not made up for (default: 1m).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    catch_up: Option<i64>,
    /// Ends after so many firings.
    #[arg(long)]
    remaining: Option<i64>,
    /// Only if the schedule has this version; 0 means that there is none yet.
    #[arg(long)]
    version: Option<i64>,
    /// What it submits, as JSON of the API: an object with `execution` or `flow`. @file reads a file, - reads stdin.
    #[arg(long, conflicts_with_all = ["kind", "lane", "input", "tags", "priority"], required_unless_present = "kind")]
    action: Option<String>,
    /// The kind of the execution that it submits.
    #[arg(long)]
    kind: Option<String>,
    /// Its lane.
    #[arg(long)]
    lane: Option<String>,
    /// Its input: a JSON value, @file, or - for stdin.
    #[arg(long)]
    input: Option<String>,
    /// A tag of it; may be repeated.
    #[arg(long = "tag", value_parser = pair, value_name = "KEY=VALUE")]
    tags: Vec<(String, String)>,
    /// Its priority, 0 to 9000.
    #[arg(long)]
    priority: Option<i64>,
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
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
struct Show {
    #[command(flatten)]
    named: Named,
    /// How many of its last firings; up to 100.
    #[arg(long, default_value_t = 10)]
    firings: usize,
    #[command(flatten)]
    watch: WatchArgs,
}

#[derive(Args)]
struct Next {
    #[command(flatten)]
    named: Named,
    /// How many times; up to 100.
    #[arg(long, default_value_t = 10)]
    count: i64,
}

#[derive(Args)]
struct Pause {
    #[command(flatten)]
    named: Named,
    /// Why, for people.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Args)]
struct One {
    #[command(flatten)]
    named: Named,
}

#[derive(Args)]
struct Trigger {
    #[command(flatten)]
    named: Named,
    /// The same request fires once (default: a new one).
    #[arg(long)]
    request_id: Option<Uuid>,
}

#[derive(Args)]
struct Backfill {
    #[command(flatten)]
    named: Named,
    /// The first time.
    #[arg(long, value_name = "TIME", value_parser = time, required_unless_present = "stop", conflicts_with = "stop")]
    from: Option<i64>,
    /// The last time; not in the future.
    #[arg(long, value_name = "TIME", value_parser = time, required_unless_present = "stop", conflicts_with = "stop")]
    to: Option<i64>,
    /// What happens while the run before has not ended (default: the schedule's policy).
    #[arg(long, value_parser = words(Overlap::ALL), conflicts_with = "stop")]
    overlap: Option<Overlap>,
    /// Stops the backfill that is under way.
    #[arg(long)]
    stop: bool,
}

/// JSON from an argument, a file or stdin.
fn json_of(said: &str) -> anyhow::Result<Box<RawValue>> {
    let text = match said.strip_prefix('@') {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| WrongUsage(format!("cannot read JSON from {path}")))?
        }
        None if said == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read JSON from stdin")?;
            text
        }
        None => said.to_owned(),
    };
    RawValue::from_string(text.trim().to_owned()).map_err(|error| WrongUsage(format!("it is not JSON: {error}")).into())
}

impl Put {
    fn body(self) -> anyhow::Result<ScheduleBody> {
        let mut times: Vec<ScheduleTime> = self.cron.into_iter().map(ScheduleTime::cron).collect();
        let anchor_at = self.anchor_at;
        times.extend(self.every.into_iter().map(|ms| ScheduleTime { anchor_at, ..ScheduleTime::every(ms) }));
        times.extend(self.at.into_iter().map(ScheduleTime::at));
        let action = match (self.action, self.kind) {
            (Some(action), _) => serde_json::from_str(json_of(&action)?.get())
                .map_err(|error| WrongUsage(format!("the action cannot be used: {error}")))?,
            (None, kind) => {
                let execution = SubmitBody {
                    kind: kind.unwrap_or_default(),
                    lane: self.lane,
                    input: self.input.as_deref().map(json_of).transpose()?,
                    tags: (!self.tags.is_empty()).then(|| self.tags.into_iter().collect()),
                    priority: self.priority,
                    ..SubmitBody::default()
                };
                ScheduleAction { execution: Some(Box::new(execution)), flow: None }
            }
        };
        Ok(ScheduleBody {
            times,
            time_zone: self.time_zone,
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            jitter_ms: self.jitter,
            overlap: self.overlap,
            catch_up_ms: self.catch_up,
            remaining: self.remaining,
            action,
            version: self.version,
        })
    }
}

impl Named {
    fn query(&self) -> NamespaceQuery {
        NamespaceQuery { namespace: self.namespace.clone() }
    }

    fn api(&self) -> anyhow::Result<Api> {
        Api::new(&self.server)
    }

    /// Prints one schedule as it is now.
    fn print(&self, answered: &Answered<Schedule>) -> anyhow::Result<ExitCode> {
        view(&answered.value, &answered.bytes, self.output.output)?.print()?;
        Ok(ExitCode::SUCCESS)
    }
}

impl ScheduleCommand {
    /// Prints the schedule, or what the verb asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::Put(put) => put.run().await,
            Verb::List(list) => list.run().await,
            Verb::Show(show) => show.run().await,
            Verb::Next(next) => next.run().await,
            Verb::Pause(Pause { named, reason }) => {
                let body = PauseScheduleBody { reason };
                let ask = Ask::<PauseSchedule> { at: named.name.clone(), query: named.query(), body };
                named.print(&named.api()?.ask(&ask).await?)
            }
            Verb::Resume(One { named }) => {
                let ask = Ask::<ResumeSchedule>::by(named.name.clone(), named.query());
                named.print(&named.api()?.ask(&ask).await?)
            }
            Verb::Trigger(trigger) => trigger.run().await,
            Verb::Backfill(backfill) => backfill.run().await,
            Verb::Delete(One { named }) => {
                let ask = Ask::<DeleteSchedule>::by(named.name.clone(), named.query());
                let Answered { value: Nothing {}, .. } = named.api()?.ask(&ask).await?;
                eprintln!("deleted");
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

impl Put {
    async fn run(mut self) -> anyhow::Result<ExitCode> {
        let (name, query, api) = (self.named.name.clone(), self.named.query(), self.named.api()?);
        let output = self.named.output.output;
        self.named.namespace.take();
        let ask = Ask::<PutSchedule> { at: name, query, body: self.body()? };
        let Answered { value, bytes, .. } = api.ask(&ask).await?;
        view(&value.thing, &bytes, output)?.print()?;
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let list = Paged::new(self.page, EventsQuery::default(), |limit, cursor| {
            let namespace = self.namespace.clone();
            Ask::<ListSchedules>::by((), SchedulesQuery { namespace, limit: Some(limit), cursor })
        });
        let named = |schedule: &Schedule| schedule.name.clone();
        list.show(&api, self.watch, self.output.output, named, |schedules| View::lines(lines(schedules))).await
    }
}

impl Show {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output, named) = (self.named.api()?, self.named.output.output, &self.named);
        let most = self.firings;
        let look = async || {
            let ask = Ask::<GetSchedule>::by(named.name.clone(), named.query());
            let Answered { value, bytes, .. } = api.ask(&ask).await?;
            if output != Output::Table {
                return view(&value, &bytes, output);
            }
            let ask = Ask::<ListFirings>::by(named.name.clone(), named.query());
            let firings = api.ask(&ask).await?.value.items;
            Ok(View::lines(told(&value, firings.into_iter().take(most))))
        };
        self.watch.show(&api, output, &EventsQuery::default(), look).await
    }
}

impl Next {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let named = &self.named;
        let query = NextQuery { namespace: named.namespace.clone(), count: Some(self.count) };
        let ask = Ask::<NextOfSchedule>::by(named.name.clone(), query);
        let Answered { value, bytes, .. } = named.api()?.ask(&ask).await?;
        match named.output.output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => value.items.iter().try_for_each(|next| say(&next.nominal_at.to_string()))?,
            Output::Table => {
                let mut table = Table::new(["TIME (UTC)", "FIRES", "WHY NOT"]);
                for next in value.items {
                    let fires = if next.will_fire { "yes" } else { "no" };
                    table.row([text(moment(next.nominal_at)), text(fires), text(next.why.unwrap_or_default())]);
                }
                table.lines().iter().try_for_each(|line| say(line))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Trigger {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (named, body) = (&self.named, TriggerBody { request_id: self.request_id });
        let ask = Ask::<TriggerSchedule> { at: named.name.clone(), query: named.query(), body };
        let Answered { value, bytes, .. } = named.api()?.ask(&ask).await?;
        match named.output.output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids | Output::Table => {
                let id = value.execution_id.map(|id| id.to_string()).or(value.flow_id.map(|id| id.to_string()));
                say(&id.unwrap_or_default())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Backfill {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (named, api) = (&self.named, self.named.api()?);
        let (Some(from), Some(to)) = (self.from, self.to) else {
            let ask = Ask::<StopBackfill>::by(named.name.clone(), named.query());
            return named.print(&api.ask(&ask).await?);
        };
        let body = BackfillBody { from, to, overlap: self.overlap };
        let ask = Ask::<BackfillSchedule> { at: named.name.clone(), query: named.query(), body };
        named.print(&api.ask(&ask).await?)
    }
}

/// One schedule in a line.
fn view(schedule: &Schedule, bytes: &[u8], output: Output) -> anyhow::Result<View> {
    match output {
        Output::Json => View::raw(bytes),
        Output::Ids => Ok(View::lines([schedule.name.clone()])),
        Output::Table => Ok(View::lines(lines(std::slice::from_ref(schedule)))),
    }
}

fn lines(schedules: &[Schedule]) -> Vec<String> {
    let mut table = Table::new(["SCHEDULE", "WHEN", "NEXT (UTC)", "FIRED", "SKIPPED", "MISSED", "STATE"]);
    for schedule in schedules {
        table.row([
            text(&schedule.name),
            text(times(schedule)),
            text(schedule.next_at.map(moment).unwrap_or_default()),
            number(schedule.counts.fired),
            number(schedule.counts.skipped),
            number(schedule.counts.missed),
            text(state(schedule)),
        ]);
    }
    table.lines()
}

/// When a schedule fires, in words.
fn times(schedule: &Schedule) -> String {
    let one = |time: &ScheduleTime| match (&time.cron, time.every_ms, time.at) {
        (Some(cron), ..) if schedule.time_zone != "UTC" => format!("{cron} {}", schedule.time_zone),
        (Some(cron), ..) => cron.clone(),
        (_, Some(every_ms), _) => format!("every {}", length(every_ms)),
        (_, _, at) => at.map(moment).unwrap_or_default(),
    };
    schedule.times.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What a schedule does now, in words.
fn state(schedule: &Schedule) -> String {
    if let Some(backfill) = schedule.backfill.as_ref().filter(|backfill| backfill.ended_at.is_none()) {
        return format!("backfills {} of {}", backfill.fired + backfill.skipped, backfill.total);
    }
    match (&schedule.paused, schedule.ended, &schedule.refused) {
        (Some(_), ..) => "paused".to_owned(),
        (None, true, _) => "ended".to_owned(),
        (None, false, Some(code)) => format!("refused: {code}"),
        (None, false, None) if schedule.waiting > 0 => format!("{} wait", schedule.waiting),
        (None, false, None) if schedule.running > 0 => format!("{} running", schedule.running),
        (None, false, None) => "ready".to_owned(),
    }
}

/// One schedule with its last firings.
fn told(schedule: &Schedule, firings: impl Iterator<Item = Firing>) -> Vec<String> {
    let mut lines = vec![
        format!("{}/{}  {}  version {}", schedule.namespace, schedule.name, state(schedule), schedule.version),
        format!("when      {}", times(schedule)),
        format!("next      {}", schedule.next_at.map_or_else(|| "-".to_owned(), moment)),
        format!("overlap   {}, catches up within {}", schedule.overlap, length(schedule.catch_up_ms)),
        format!(
            "so far    {} fired, {} skipped, {} missed",
            schedule.counts.fired, schedule.counts.skipped, schedule.counts.missed
        ),
    ];
    lines.extend(schedule.remaining.map(|remaining| format!("left      {remaining} firings")));
    if let Some(paused) = &schedule.paused {
        let reason = paused.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        lines.push(format!("paused    by {} at {}{reason}", paused.actor, moment(paused.at)));
    }
    if let Some(backfill) = &schedule.backfill {
        let done = backfill.fired + backfill.skipped;
        let ended = match (backfill.ended_at, backfill.stopped) {
            (Some(at), true) => format!(", stopped at {}", moment(at)),
            (Some(at), false) => format!(", done at {}", moment(at)),
            (None, _) => String::new(),
        };
        lines.push(format!("backfill  {done} of {}, {} skipped{ended}", backfill.total, backfill.skipped));
    }
    let mut table = Table::new(["TIME (UTC)", "CAUSE", "STATE", "", "SUBMITTED"]);
    let mut any = false;
    for firing in firings {
        any = true;
        table.row([
            text(moment(firing.nominal_at)),
            text(firing.cause.to_string()),
            text(firing.state.to_string()),
            text(fate(&firing)),
            text(Ran(&firing).to_string()),
        ]);
    }
    if any {
        lines.push(String::new());
        lines.extend(table.lines());
    }
    lines
}

/// Why or how a firing ended.
fn fate(firing: &Firing) -> String {
    let told = firing.why.as_ref().or(firing.outcome.as_ref()).cloned().unwrap_or_default();
    match firing.count {
        Some(count) if count > 1 => format!("{told}, {count} times"),
        _ => told,
    }
}

/// What a firing submitted.
struct Ran<'a>(&'a Firing);

impl fmt::Display for Ran<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.execution_id, self.0.flow_id) {
            (Some(id), _) => write!(f, "{id}"),
            (None, Some(id)) => write!(f, "flow {id}"),
            (None, None) => Ok(()),
        }
    }
}
