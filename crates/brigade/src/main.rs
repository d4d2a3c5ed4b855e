//! The `brigade` binary: the only crate that reads environment variables and deals with terminals and
//! exit codes.

mod allocator;
mod approval;
mod claude_args;
mod cli;
mod commands;
mod confirm;
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
mod init;
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
    allocator::configure_malloc();
    // The caller may have left files open, such as a lock or a secret. Members and agents must not inherit them.
    close_fds::set_fds_cloexec(3, &[]);
    error::catch_bugs();
    let mut args = std::env::args_os().skip(1);
    let done = match args.next() {
        // One guard process runs beside every agent. Skipping the command-line parser keeps the guard small.
        Some(arg) if arg == commands::GUARD => commands::run_guard(&args.collect::<Vec<_>>()),
        _ => run_command_line(&cli::normalize_args(std::env::args_os())),
    };
    let code = match done {
        Ok(code) => code,
        Err(error) => error::report(&error),
    };
    ExitCode::from(code)
}

fn run_command_line(args: &[OsString]) -> Result<u8, error::CliError> {
    match cli::Cli::try_parse_from(args) {
        Ok(cli) => commands::run(cli),
        // `clap` handles --version while parsing, before it has seen --json.
        Err(stopped)
            if stopped.kind() == ErrorKind::DisplayVersion
                && args.iter().any(|arg| arg == "--json") =>
        {
            output::print_json(&version::document())?;
            Ok(exit::DONE)
        }
        Err(invalid) => invalid.exit(),
    }
}
