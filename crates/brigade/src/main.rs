//! The one binary. The only crate that knows environment variables, terminals and exit codes.

mod allocator;
mod approval;
mod claude_args;
mod cli;
mod commands;
mod context;
mod diff;
#[cfg(test)]
#[cfg(feature = "nats")]
mod docs_sync;
mod doctor;
mod env;
mod error;
mod exit;
mod graph;
mod guest;
mod location;
mod output;
mod pane;
mod progress;
mod slow_notice;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

fn main() -> ExitCode {
    allocator::give_back();
    error::catch_bugs();
    let mut words = std::env::args_os().skip(1);
    let done = match words.next() {
        // One stands beside every agent for as long as it runs: it does without what reads command lines.
        Some(word) if word == commands::GUARD => commands::run_guard(&words.collect::<Vec<_>>()),
        _ => obey(&cli::words(std::env::args_os())),
    };
    let code = match done {
        Ok(code) => code,
        Err(error) => error::report(&error),
    };
    ExitCode::from(code)
}

fn obey(words: &[OsString]) -> Result<u8, error::CliError> {
    match cli::Cli::try_parse_from(words) {
        Ok(cli) => commands::run(cli),
        // The version is asked for while the words are still being read, before anybody looks for --json.
        Err(asked)
            if asked.kind() == ErrorKind::DisplayVersion
                && words.iter().any(|word| word == "--json") =>
        {
            output::print_json(&version::told())?;
            Ok(exit::DONE)
        }
        Err(wrong) => wrong.exit(),
    }
}
