//! `ff reference`: every command with its flags, as the page docs/reference/cli.md.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Arg, Command};

use crate::commands::exit_codes::EXIT_CODES;
use crate::output::print;

/// Flags that stand in the page once, not with each command.
const EVERYWHERE: [&str; 6] = ["url", "token", "ca_cert", "output", "config", "profile"];

/// Prints the page.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    print(&page(command))?;
    Ok(ExitCode::SUCCESS)
}

/// The page about a command and all below it.
pub fn page(mut command: Command) -> String {
    command.build();
    let mut page = String::from(
        "<!-- Written by `cargo xtask codegen --commands` from the declarations of the commands; do not edit. -->\n\n# ff\n\n",
    );
    let said = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "{said}\n\n| command | |\n| --- | --- |");
    for verb in shown(&command) {
        let name = verb.get_name();
        let _ = writeln!(page, "| [`ff {name}`](#ff-{name}) | {} |", first_sentence(verb));
    }
    let all: Vec<&Arg> = shared(&command);
    page.push_str("\n## Flags of every client command\n\n");
    page.push_str("Flags override `FF_*` variables, and these override the file `flowfabric.toml`; `ff config show` prints what is in force. A duration has units: `500ms`, `30s`, `5m`, `1h30m`, `7d`. A time is `2026-11-20T09:00` in this machine's time zone, `2026-11-20T08:00Z`, or milliseconds since 1970.\n\n");
    arguments(&mut page, &all);
    let _ = writeln!(page, "\n## Exit codes\n\n```text\n{}```", EXIT_CODES.trim_start_matches("Exit codes:\n"));
    for verb in shown(&command) {
        describe(&mut page, verb, "ff", 2);
    }
    page
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
}

/// The flags that stand once: those of the client commands, of which `ff list` is one, and those of `ff` itself.
fn shared(command: &Command) -> Vec<&Arg> {
    let list = command.find_subcommand("list").into_iter().flat_map(Command::get_arguments);
    let mut all: Vec<&Arg> = list.chain(command.get_arguments()).filter(|arg| stands_once(arg)).collect();
    all.dedup_by_key(|arg| arg.get_id().clone());
    all
}

fn stands_once(arg: &Arg) -> bool {
    EVERYWHERE.contains(&arg.get_id().as_str())
}

fn first_sentence(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    about.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// One command, then those below it.
fn describe(page: &mut String, command: &Command, above: &str, depth: usize) {
    let name = format!("{above} {}", command.get_name());
    let _ = writeln!(page, "\n{} {name}\n", "#".repeat(depth.min(4)));
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "{}", about.trim());
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    if !aliases.is_empty() {
        let _ = writeln!(page, "\nAlso `{above} {}`.", aliases.join("`, `"));
    }
    let below: Vec<&Command> = shown(command).collect();
    if below.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let _ = writeln!(page, "\n```text\n{usage}\n```");
    }
    let own =
        |arg: &&Arg| !arg.is_hide_set() && !stands_once(arg) && !matches!(arg.get_id().as_str(), "help" | "version");
    let own: Vec<&Arg> = command.get_arguments().filter(own).collect();
    if !own.is_empty() {
        page.push('\n');
        arguments(page, &own);
    }
    if let Some(more) = command.get_after_help() {
        let more = more.to_string();
        match more.split_once("Example:\n") {
            Some((before, example)) => {
                if !before.trim().is_empty() {
                    let _ = writeln!(page, "\n{}", before.trim());
                }
                let example: Vec<&str> = example.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
                let _ = writeln!(page, "\n```text\n{}\n```", example.join("\n"));
            }
            None => {
                let _ = writeln!(page, "\n{}", more.trim());
            }
        }
    }
    for verb in below {
        describe(page, verb, &name, depth + 1);
    }
}

/// A table of arguments.
fn arguments(page: &mut String, arguments: &[&Arg]) {
    page.push_str("| argument | | variable | default |\n| --- | --- | --- | --- |\n");
    for arg in arguments {
        let values: Vec<String> = arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
        let takes = arg.get_action().takes_values();
        let value = if takes { values.join(" ") } else { String::new() };
        let name = match (arg.get_long(), arg.get_short()) {
            (Some(long), short) => {
                let short = short.map(|short| format!("-{short}, ")).unwrap_or_default();
                format!("{short}--{long} {value}")
            }
            (None, _) => value,
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let possible: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let possible = if takes && possible.len() > 1 && !possible.contains(&"true".to_owned()) {
            format!(" (`{}`)", possible.join("`, `"))
        } else {
            String::new()
        };
        let variable = arg.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
        let default: Vec<String> =
            arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        let default = if takes { default.join(", ") } else { String::new() };
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(
            page,
            "| `{}` | {} | {variable} | {default} |",
            cell(name.trim()),
            cell(format!("{}{possible}", help.trim()).trim())
        );
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_reference_page_is_up_to_date() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            text == page(crate::Cli::command()),
            "stale, run `cargo xtask codegen --commands`: docs/reference/cli.md"
        );
    }
}
