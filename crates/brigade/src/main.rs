//! The `brigade` binary: the only crate that reads environment variables and deals with terminals and
//! exit codes.

mod allocator;
mod approval;
mod claude_args;
mod cli;
mod commands;
mod complete;
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
mod familiar;
mod graph;
mod help;
mod init;
mod location;
mod login;
mod output;
mod pager;
mod pane;
mod progress;
mod slow_notice;
mod usage_error;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::commands::GuardPlace;
use crate::error::ErrorFormat;

fn main() -> ExitCode {
    allocator::configure_malloc();
    let args: Vec<OsString> = std::env::args_os().collect();
    let is_terminal_guard = args.get(1).is_some_and(|arg| arg == commands::TERMINAL_GUARD);
    if !is_terminal_guard {
        // The caller may have left files open, such as a lock or a secret. Members and agents must not inherit them.
        // `brigade attach` opens one file for the program below the guard: the lock of the session.
        close_fds::set_fds_cloexec(3, &[]);
    }
    let format = ErrorFormat::from_args(&args);
    error::catch_bugs(format);
    let done = match args.get(1) {
        // One guard process runs beside every agent. Skipping the command-line parser keeps the guard small.
        Some(arg) if arg == commands::GUARD => {
            commands::run_guard(args.get(2..).unwrap_or_default(), GuardPlace::OwnSession)
        }
        Some(_) if is_terminal_guard => {
            commands::run_guard(args.get(2..).unwrap_or_default(), GuardPlace::Terminal)
        }
        // A shell asks how to complete a command line, which is not a valid one yet.
        Some(arg) if arg == commands::COMPLETE => {
            commands::run_complete(args.get(2..).unwrap_or_default())
        }
        _ => match help::topic(&args) {
            Some(text) => output::print(&text).map(|()| exit::DONE),
            None => run_command_line(&cli::normalize_args(args.into_iter()), format),
        },
    };
    let code = match done {
        Ok(code) => code,
        Err(error) => error::report(&error, format),
    };
    ExitCode::from(code)
}

/// Prints the help or the version, through a pager if it is too long for the terminal.
fn print_help(help: &clap::Error, args: &[OsString]) -> Result<u8, error::CliError> {
    if !args.iter().any(|arg| arg == "--no-pager") {
        pager::start();
    }
    let text = help::render(args).unwrap_or_else(|| help.render().ansi().to_string());
    let printed = output::print(&text);
    pager::finish().map_err(brigade_host::error::output_failed)?;
    printed.map(|()| exit::DONE)
}

fn run_command_line(args: &[OsString], format: ErrorFormat) -> Result<u8, error::CliError> {
    match cli::Cli::parse_line(args).map_err(usage_error::with_suggestions) {
        Ok(cli) => commands::run(cli),
        // `clap` handles --version while parsing, before it has seen --json.
        Err(stopped)
            if stopped.kind() == ErrorKind::DisplayVersion && format == ErrorFormat::Json =>
        {
            output::print_json(&version::document())?;
            Ok(exit::DONE)
        }
        // Help is not an error and goes to standard output.
        Err(invalid) if format == ErrorFormat::Json && invalid.use_stderr() => {
            Ok(error::report_invalid(&usage_error::plain_text(&invalid, args)))
        }
        Err(help) if !help.use_stderr() => print_help(&help, args),
        Err(invalid) => Ok(usage_error::report(&invalid, args)),
    }
}
