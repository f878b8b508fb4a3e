//! `ff config`: the settings in force.

use std::process::ExitCode;

use clap::{Args, Command, Subcommand};
use serde_json::{Map, Value, json};

use crate::config::{Section, Settings};
use crate::output::{Output, OutputArgs, say};

/// The settings in force: flags override FF_* variables, and these override the file flowfabric.toml.
#[derive(Args)]
pub struct ConfigCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Prints every setting with where it comes from; secrets are not shown.
    #[command(after_help = "Example:
  ff config show
  ff config show --config /etc/flowfabric.toml -o json

A file has two sections, and the keys are the names of the flags:
  [server]
  store = \"embedded:/var/lib/flowfabric\"
  listen = \"127.0.0.1:7433\"
  [client]
  url = \"http://127.0.0.1:7433\"

More servers have profiles; `--profile staging` or FF_PROFILE=staging chooses one in the place of [client] and of FF_URL,
FF_TOKEN and FF_CA_CERT:
  [profiles.staging]
  url = \"https://ff.staging.example.com\"
  token = \"@/home/ann/.config/ff/staging.token\"")]
    Show(OutputArgs),
}

impl ConfigCommand {
    /// Prints the settings.
    pub fn run(self, settings: &Settings, command: &Command) -> anyhow::Result<ExitCode> {
        let Verb::Show(output) = self.verb;
        let of = |section: Section| settings.effective(command, section);
        let sections = [("server", of(Section::Server)?), ("client", of(Section::Client)?)];
        if output.output == Output::Json {
            let mut all = Map::new();
            for (name, section) in sections {
                let shown: Map<String, Value> = section
                    .into_iter()
                    .map(|one| (one.key, json!({ "value": one.value, "source": one.source.to_string() })))
                    .collect();
                all.insert(name.to_owned(), Value::Object(shown));
            }
            say(&Value::Object(all).to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
        match settings.path() {
            Some(path) => match settings.profile() {
                Some(profile) => eprintln!("read {}, profile {profile}", path.display()),
                None => eprintln!("read {}", path.display()),
            },
            None => eprintln!("no file of settings: there is no flowfabric.toml here, nor a --config or FF_CONFIG"),
        }
        for (name, section) in sections {
            say(&format!("[{name}]"))?;
            for one in section {
                let value = one.value.unwrap_or_else(|| "-".to_owned());
                say(format!("{:20} {value:40} {}", one.key, one.source).trim_end())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
