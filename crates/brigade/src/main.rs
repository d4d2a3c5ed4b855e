//! The one binary. The only crate that knows environment variables, terminals and exit codes.

mod approval;
mod cli;
mod commands;
mod context;
mod diff;
mod doctor;
mod env;
mod error;
mod exit;
mod graph;
mod guest;
mod host;
mod installed;
mod log;
mod mcp;
mod native;
mod output;
mod pane;
mod patience;
mod signals;
mod tasks;
mod team_file;
mod tree;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    error::catch_bugs();
    let cli = cli::Cli::parse_from(cli::words(std::env::args_os()));
    let code = match commands::run(cli) {
        Ok(code) => code,
        Err(error) => error.report(),
    };
    ExitCode::from(code)
}
