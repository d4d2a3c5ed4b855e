//! `brigade completions`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::CliError;
use crate::{exit, output};

/// The scripts that ask `brigade __complete`, which knows the members, tasks and requests of a team.
const BASH: &str = include_str!("completions/brigade.bash");
const FISH: &str = include_str!("completions/brigade.fish");
const ZSH: &str = include_str!("completions/brigade.zsh");

pub(crate) fn run(shell: Shell) -> Result<u8, CliError> {
    let mut script = Vec::new();
    match shell {
        Shell::Bash => script.extend_from_slice(BASH.as_bytes()),
        Shell::Fish => script.extend_from_slice(FISH.as_bytes()),
        Shell::Zsh => script.extend_from_slice(ZSH.as_bytes()),
        // A script that knows only commands and options.
        other => clap_complete::generate(other, &mut Cli::command(), "brigade", &mut script),
    }
    output::print_raw(&script)?;
    Ok(exit::DONE)
}
