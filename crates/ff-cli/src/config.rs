//! Settings of a file: what flags and `FF_*` variables do not say, `flowfabric.toml` does.
//!
//! **Invariant:** a setting is declared once, as a flag. The keys of the file are the long names of the flags, with underscores: those
//! of `ff server` in `[server]`, those every client command shares in `[client]`. What the file says becomes the flag's default, so the
//! command line and the environment go before it by themselves, and a new flag is a new setting.
//!
//! **Invariant:** the token of one server is never presented to another one. A profile (`[profiles.NAME]`) stands in the place of
//! `[client]` and of the variables, with everything it says and leaves out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command};

use crate::problem::WrongUsage;
use crate::store::{StoreAddress, state_directory};

/// The file that is read when none is named.
const FILE: &str = "flowfabric.toml";
/// Client flags a file may set.
const CLIENT: [&str; 3] = ["url", "token", "ca_cert"];
/// Commands beside `ff server` that work on its store and take the same flags for it.
const BESIDE: [&str; 2] = ["fsck", "doctor"];

/// Where a value came from, for a command that is given no flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An environment variable.
    Variable(String),
    /// A file.
    File(PathBuf),
    /// Nobody said.
    Default,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Variable(name) => write!(f, "environment {name}"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Default => f.write_str("default"),
        }
    }
}

/// A file of settings that was read and checked.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    path: Option<PathBuf>,
    server: BTreeMap<String, Vec<String>>,
    client: BTreeMap<String, Vec<String>>,
    profiles: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The profile that stands in the place of `[client]`.
    profile: Option<String>,
}

/// The value of a flag that is looked at before the command line is read, or of its variable.
fn early(args: &[OsString], flag: &str, variable: &str) -> anyhow::Result<Option<OsString>> {
    let mut args = args.iter().skip(1).take_while(|arg| *arg != "--");
    while let Some(arg) = args.next() {
        let Some(rest) = arg.to_str().and_then(|arg| arg.strip_prefix(flag)) else { continue };
        if rest.is_empty() {
            return Ok(Some(args.next().with_context(|| format!("{flag} needs a value"))?.clone()));
        }
        if let Some(value) = rest.strip_prefix('=') {
            return Ok(Some(value.into()));
        }
    }
    Ok(std::env::var_os(variable).filter(|value| !value.is_empty()))
}

/// The file `--config` or FF_CONFIG names, else the one in the working directory when there is one.
fn chosen(args: &[OsString]) -> anyhow::Result<Option<PathBuf>> {
    let named = early(args, "--config", "FF_CONFIG")?.map(PathBuf::from);
    Ok(named.or_else(|| Path::new(FILE).exists().then(|| FILE.into())))
}

impl Settings {
    /// Reads the file these arguments choose and checks it against the flags there are.
    pub fn read(args: &[OsString], command: &Command) -> anyhow::Result<Self> {
        let profile = early(args, "--profile", "FF_PROFILE")?.map(|name| name.to_string_lossy().into_owned());
        let Some(path) = chosen(args)? else {
            if let Some(name) = profile {
                bail!(
                    "there is no profile {name}: no {FILE} is in this directory; name a file with --config or FF_CONFIG"
                );
            }
            return Ok(Self::default());
        };
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let settings =
            Self::parse(&text, path.clone(), command).with_context(|| format!("{} is not right", path.display()))?;
        profile.map_or(Ok(settings.clone()), |name| settings.under(name))
    }

    /// The same settings with a profile in the place of `[client]`.
    fn under(self, name: String) -> anyhow::Result<Self> {
        let Some(client) = self.profiles.get(&name).cloned() else {
            let names: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let path = self.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
            bail!("there is no profile {name} in {path}; it has {names}");
        };
        Ok(Self { client, profile: Some(name), ..self })
    }

    fn parse(text: &str, path: PathBuf, command: &Command) -> anyhow::Result<Self> {
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| anyhow::anyhow!("{}", error.to_string().trim()))?;
        let mut settings = Self { path: Some(path), ..Self::default() };
        for (section, content) in table {
            let toml::Value::Table(content) = content else {
                bail!("{section} is not a section; settings stand in [server], [client] or [profiles.NAME]");
            };
            if section == "profiles" {
                for (name, content) in content {
                    let toml::Value::Table(content) = content else {
                        bail!(
                            "profiles.{name} is not a section; a profile is [profiles.{name}] with {}",
                            CLIENT.join(", ")
                        );
                    };
                    let place = format!("profiles.{name}");
                    let mut profile = BTreeMap::new();
                    for (key, value) in content {
                        if !CLIENT.contains(&key.as_str()) {
                            bail!("{key} is not a setting of [{place}]; it has {}", CLIENT.join(", "));
                        }
                        profile.insert(key.clone(), checked(command, "list", &place, &key, &value)?);
                    }
                    settings.profiles.insert(name, profile);
                }
                continue;
            }
            for (key, value) in content {
                match section.as_str() {
                    "server" => {
                        settings.server.insert(key.clone(), checked(command, "server", &section, &key, &value)?)
                    }
                    "client" if CLIENT.contains(&key.as_str()) => {
                        settings.client.insert(key.clone(), checked(command, "list", &section, &key, &value)?)
                    }
                    "client" => bail!("{key} is not a setting of [client]; it has {}", CLIENT.join(", ")),
                    _ => bail!("[{section}] is not a section; there are [server], [client] and [profiles.NAME]"),
                };
            }
        }
        Ok(settings)
    }

    /// The command with these settings as its defaults.
    pub fn apply(&self, mut command: Command) -> Command {
        for (key, values) in &self.server {
            for name in ["server"].into_iter().chain(BESIDE) {
                if command.find_subcommand(name).is_some_and(|verb| has(verb, key)) {
                    command = command.mut_subcommand(name, |verb| with_default(verb, key, values));
                }
            }
        }
        if self.client.is_empty() && self.profile.is_none() { command } else { self.apply_client(command) }
    }

    /// Every command, at any depth, that takes a client flag.
    fn apply_client(&self, mut command: Command) -> Command {
        for key in CLIENT {
            if !has(&command, key) || !is_client(&command, key) {
                continue;
            }
            if let Some(values) = self.client.get(key) {
                command = with_default(command, key, values);
            }
            if self.profile.is_some() {
                command = without_variable(command, key);
            }
        }
        let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |verb| self.apply_client(verb)))
    }

    /// The values of a section's flags that are in force, with where each came from, in the order of `--help`.
    pub fn effective(&self, command: &Command, section: Section) -> anyhow::Result<Vec<Effective>> {
        let (verb, said) = match section {
            Section::Server => ("server", &self.server),
            Section::Client => ("list", &self.client),
        };
        let verb = command.find_subcommand(verb).context("the command is there")?;
        let mut all = Vec::new();
        for arg in verb.get_arguments() {
            let Some(key) = arg.get_long().map(|long| long.replace('-', "_")) else { continue };
            if matches!(key.as_str(), "help" | "config" | "profile")
                || (section == Section::Client && !CLIENT.contains(&key.as_str()))
            {
                continue;
            }
            let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
            let from_env =
                variable.as_deref().and_then(|name| std::env::var(name).ok()).filter(|value| !value.is_empty());
            let default: Vec<String> =
                arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
            let (value, source) = match (from_env, said.get(&key), &self.path) {
                (Some(value), _, _) => {
                    let name = variable.unwrap_or_default();
                    accepted(verb, arg, &name, std::slice::from_ref(&value))?;
                    (Some(value), Source::Variable(name))
                }
                (None, Some(values), Some(path)) => (Some(values.join(", ")), Source::File(path.clone())),
                _ => (Some(default.join(", ")).filter(|value| !value.is_empty()), Source::Default),
            };
            let secret = arg.is_hide_env_values_set();
            let value = value.map(|value| if secret { "(redacted)".to_owned() } else { without_password(&value) });
            let value = value.or_else(|| (!arg.get_action().takes_values()).then(|| "false".to_owned()));
            all.push(Effective { key, value, source });
        }
        if section == Section::Server {
            fill_in(&mut all)?;
        }
        Ok(all)
    }

    /// The profile that was chosen.
    pub fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// The file that was read.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

/// Which flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Those of `ff server`.
    Server,
    /// Those of every client command.
    Client,
}

/// A setting in force.
#[derive(Debug, PartialEq, Eq)]
pub struct Effective {
    /// Its key in the file.
    pub key: String,
    /// Its value; nothing when nobody said and there is no default.
    pub value: Option<String>,
    /// Where the value came from.
    pub source: Source,
}

/// What a server chooses where nobody says: the state directory, the store in it, and what that store promises.
fn fill_in(all: &mut [Effective]) -> anyhow::Result<()> {
    let said = |all: &[Effective], key: &str| all.iter().find(|one| one.key == key).and_then(|one| one.value.clone());
    let mut fill = |key: &str, chosen: String| {
        if let Some(one) = all.iter_mut().find(|one| one.key == key) {
            one.value.get_or_insert(chosen);
        }
        said(all, key).unwrap_or_default()
    };
    let directory = PathBuf::from(fill("data_dir", state_directory()?.display().to_string()));
    let store = fill("store", StoreAddress::Embedded(directory.join("server")).to_string());
    let promise = if store.starts_with("embedded:") { "fsync" } else { "what the append-only file of the store gives" };
    fill("durability", promise.to_owned());
    Ok(())
}

/// A store's address without the password in it.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let Some((user, host)) = rest.rsplit_once('@') else { return text.to_owned() };
    let name = user.split_once(':').map_or("", |(name, _)| name);
    format!("{scheme}://{name}:(redacted)@{host}")
}

fn flag(key: &str) -> String {
    key.replace('_', "-")
}

fn has(verb: &Command, key: &str) -> bool {
    verb.get_arguments().any(|arg| arg.get_long() == Some(&flag(key)))
}

/// The flag is the shared one: another `--token` of some verb is a different thing.
fn is_client(verb: &Command, key: &str) -> bool {
    let variable = format!("FF_{}", key.to_uppercase());
    let long = flag(key);
    verb.get_arguments()
        .any(|arg| arg.get_long() == Some(&long) && arg.get_env().is_some_and(|name| *name == *variable))
}

fn with_default(verb: Command, key: &str, values: &[String]) -> Command {
    let long = flag(key);
    let id = verb.get_arguments().find(|arg| arg.get_long() == Some(&long)).map(|arg| arg.get_id().clone());
    match id {
        Some(id) => verb.mut_arg(id, |arg| {
            // A default is shown by --help, and this one may be a secret.
            let shown = arg.get_action().takes_values();
            arg.required(false).hide_default_value(shown).default_values(values.to_vec())
        }),
        None => verb,
    }
}

/// The command with a flag that no variable sets.
fn without_variable(verb: Command, key: &str) -> Command {
    let long = flag(key);
    let id = verb.get_arguments().find(|arg| arg.get_long() == Some(&long)).map(|arg| arg.get_id().clone());
    match id {
        Some(id) => verb.mut_arg(id, |arg| arg.env(Resettable::Reset)),
        None => verb,
    }
}

/// A value of the file as the flag takes it.
fn checked(
    command: &Command,
    verb: &str,
    section: &str,
    key: &str,
    value: &toml::Value,
) -> anyhow::Result<Vec<String>> {
    let verb = command.find_subcommand(verb).context("the command is there")?;
    let long = flag(key);
    let Some(arg) = verb.get_arguments().find(|arg| arg.get_long() == Some(&long)).filter(|_| !key.contains('-'))
    else {
        let known: Vec<String> = verb
            .get_arguments()
            .filter_map(|arg| arg.get_long())
            .filter(|long| !matches!(*long, "help" | "config" | "profile"))
            .map(|long| long.replace('-', "_"))
            .collect();
        bail!("{key} is not a setting of [{section}]; it has {}", known.join(", "));
    };
    let values: Vec<String> = match value {
        toml::Value::Array(values) => values.iter().map(plain).collect::<Option<_>>(),
        one => plain(one).map(|one| vec![one]),
    }
    .with_context(|| format!("{section}.{key} must be a text, a number, true or false, or a list of these"))?;
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return match values.as_slice() {
            [one] if one == "true" || one == "false" => Ok(values),
            _ => bail!("{section}.{key} must be true or false, got {}", values.join(", ")),
        };
    }
    accepted(verb, arg, &format!("{section}.{key}"), &values)?;
    Ok(values)
}

/// Asks the flag itself whether it takes these values, whatever the environment says; `name` is where they stand.
fn accepted(verb: &Command, arg: &Arg, name: &str, values: &[String]) -> anyhow::Result<()> {
    let Some(long) = arg.get_long() else { return Ok(()) };
    let argument = values.iter().map(|value| match arg.get_action().takes_values() {
        true => format!("--{long}={value}"),
        false => format!("--{long}"),
    });
    let alone = verb.clone().ignore_errors(false).mut_args(|arg| arg.env(Resettable::Reset));
    match alone.try_get_matches_from(std::iter::once("ff".to_owned()).chain(argument)) {
        Err(error)
            if matches!(
                error.kind(),
                clap::error::ErrorKind::InvalidValue | clap::error::ErrorKind::ValueValidation
            ) =>
        {
            let text = error.to_string();
            let mut lines = text.lines().map(str::trim);
            let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let allowed = lines.next().filter(|line| line.starts_with('[')).map(|line| format!(" {line}"));
            bail!(WrongUsage(format!("{name}: {first}{}", allowed.unwrap_or_default())))
        }
        Err(error) if error.kind() == clap::error::ErrorKind::ArgumentConflict => {
            bail!(WrongUsage(format!("{name} takes one value")))
        }
        _ => Ok(()),
    }
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::Cli;

    fn read(text: &str) -> anyhow::Result<Settings> {
        Settings::parse(text, "x.toml".into(), &Cli::command())
    }

    fn parsed(text: &str, args: &[&str]) -> clap::ArgMatches {
        let command = read(text).expect("it is right").apply(Cli::command());
        let matches = command.try_get_matches_from(args).expect("it parses");
        Cli::from_arg_matches(&matches).expect("it is a command");
        matches
    }

    #[test]
    fn what_the_file_says_is_the_default_of_the_flag() {
        let text = "[server]\nlisten = \"127.0.0.1:9\"\nno_auth = true\n[client]\nurl = \"http://127.0.0.1:8\"\n";
        let matches = parsed(text, &["ff", "server"]);
        let server = matches.subcommand_matches("server").expect("server");
        assert_eq!(server.get_one::<std::net::SocketAddr>("listen"), Some(&"127.0.0.1:9".parse().expect("an address")));
        assert!(server.get_flag("no_auth"));
        let matches = parsed(text, &["ff", "server", "--listen", "127.0.0.1:7"]);
        let server = matches.subcommand_matches("server").expect("server");
        assert_eq!(server.get_one::<std::net::SocketAddr>("listen").map(|at| at.port()), Some(7), "a flag goes before");
        for args in [vec!["ff", "list"], vec!["ff", "flow", "list"], vec!["ff", "worker", "drain", "x"]] {
            let mut matches = &parsed(text, &args);
            while let Some((_, verb)) = matches.subcommand() {
                matches = verb;
            }
            assert_eq!(matches.get_one::<String>("url").map(String::as_str), Some("http://127.0.0.1:8"), "{args:?}");
        }
    }

    #[test]
    fn a_profile_takes_the_place_of_the_client_section_whole() {
        let text = "[client]\nurl = \"http://127.0.0.1:8\"\ntoken = \"ours\"\n[profiles.far]\nurl = \"http://far:9\"\n";
        let settings = read(text).expect("it is right").under("far".to_owned()).expect("a profile");
        let matches = settings.apply(Cli::command()).try_get_matches_from(["ff", "flow", "list"]).expect("it parses");
        let list = matches.subcommand_matches("flow").and_then(|flow| flow.subcommand_matches("list")).expect("list");
        assert_eq!(list.get_one::<String>("url").map(String::as_str), Some("http://far:9"));
        assert_eq!(list.get_one::<String>("token"), None, "the token of another server is not presented");
        let unknown = read(text).expect("it is right").under("near".to_owned()).expect_err("there is none");
        assert_eq!(unknown.to_string(), "there is no profile near in x.toml; it has far");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            ("[server]\nlisten_on = 1", "listen_on is not a setting of [server]"),
            ("[server]\nno-auth = true", "no-auth is not a setting"),
            ("[client]\nlisten = \"x\"", "listen is not a setting of [client]; it has url, token, ca_cert"),
            (
                "[server]\ndurability = \"wrong\"",
                "server.durability: invalid value 'wrong' for '--durability <DURABILITY>' [possible values: fsync, replicated, relaxed, none]",
            ),
            ("[sever]\nlisten = \"x\"", "[sever] is not a section"),
            ("[profiles.a]\nlisten = \"x\"", "listen is not a setting of [profiles.a]; it has url, token, ca_cert"),
            ("[profiles]\na = \"x\"", "profiles.a is not a section"),
            ("listen = \"x\"", "listen is not a section"),
            ("[server]\nlisten = \"here\"", "server.listen: invalid value 'here'"),
            ("[server]\nlisten = [[1]]", "server.listen must be a text"),
            ("[server]\nno_auth = \"maybe\"", "server.no_auth must be true or false"),
            ("[server", "unclosed table"),
        ] {
            let error = format!("{:#}", read(text).expect_err(text));
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_is_in_force_says_where_it_came_from_and_hides_secrets() {
        let settings =
            read("[server]\nstore = \"valkey://ops:hunter2@db:6379\"\n[client]\ntoken = \"s3cret\"\n").expect("right");
        let command = settings.apply(Cli::command());
        let of = |section: Section, key: &str| {
            let all = settings.effective(&command, section).expect("settings");
            all.into_iter().find(|one| one.key == key).unwrap_or_else(|| panic!("{key}"))
        };
        let store = of(Section::Server, "store");
        assert_eq!(store.value.as_deref(), Some("valkey://ops:(redacted)@db:6379"));
        assert_eq!(store.source, Source::File("x.toml".into()));
        assert_eq!(of(Section::Client, "token").value.as_deref(), Some("(redacted)"));
        assert_eq!(of(Section::Client, "url").source, Source::Default);
        assert_eq!(of(Section::Server, "no_auth").value.as_deref(), Some("false"));
        assert!(of(Section::Server, "durability").value.is_some_and(|promise| promise.contains("append-only file")));
        let settings = read("[server]\ndata_dir = \"/srv/ff\"\n[client]\nca_cert = \"ca.pem\"\n").expect("right");
        let command = settings.apply(Cli::command());
        let all = settings.effective(&command, Section::Server).expect("settings");
        let value = |key: &str| all.iter().find(|one| one.key == key).and_then(|one| one.value.clone());
        assert_eq!(value("store").as_deref(), Some("embedded:/srv/ff/server"), "where the server would make it");
        assert_eq!(value("durability").as_deref(), Some("fsync"));
        let matches = command.try_get_matches_from(["ff", "list"]).expect("it parses");
        let ca_cert = matches.subcommand_matches("list").and_then(|list| list.get_one::<PathBuf>("ca_cert"));
        assert_eq!(ca_cert, Some(&PathBuf::from("ca.pem")));
    }
}
