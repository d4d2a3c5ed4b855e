//! The one binary. The only crate that knows environment variables, terminals and exit codes.

mod cli;
mod commands;
mod context;
mod env;
mod error;
mod exit;
mod graph;
mod log;
mod mcp;
mod output;
mod patience;
mod tasks;
mod words;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    error::catch_bugs();
    let cli = cli::Cli::parse();
    let code = match commands::run(cli) {
        Ok(code) => code,
        Err(error) => error.report(),
    };
    ExitCode::from(code)
}
