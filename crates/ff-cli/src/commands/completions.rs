//! `ff completions`: what a shell needs to complete commands and flags.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

/// Prints the completions of a shell.
#[derive(Args)]
#[command(after_help = "Example:
  ff completions bash > ~/.local/share/bash-completion/completions/ff
  ff completions zsh > \"${fpath[1]}/_ff\"
  ff completions fish > ~/.config/fish/completions/ff.fish")]
pub struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints them.
    pub fn run(self, mut command: clap::Command) -> anyhow::Result<ExitCode> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command, "ff", &mut text);
        crate::output::print(std::str::from_utf8(&text)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
