//! `brigade completions`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::CliError;
use crate::{exit, output};

pub(crate) fn run(shell: Shell) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "brigade", &mut script);
    output::print_raw(&script)?;
    Ok(exit::DONE)
}
