//! Error messages of the command line: what failed, why, and what to do next.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;

use brigade_core::text::plain;
pub(crate) use brigade_host::error::{
    ErrorKind as Kind, HostError as CliError, Trouble, failed, no_member_hint,
};
use serde::Serialize;
use thiserror::Error;

use crate::output::{self, ERROR, HINT};
use crate::{env, exit};

/// An error that the command line detects. The libraries have their own errors.
#[derive(Debug, Error)]
pub(crate) enum CliTrouble {
    #[error("`--watch` needs a terminal, and cannot print JSON; run the command without it")]
    WatchNeedsTerminal,
    #[error("cannot offer the tools of team {team}: the member name is missing")]
    NoMemberName { team: String },
    #[error("there is no terminal to open the agent's program in")]
    NoTerminal,
    #[error("{address} is not an address of this computer alone, and the server has no https")]
    NotLoopback { address: std::net::IpAddr },
    #[error("no team was named")]
    WhichTeam,
    #[error("the argument {what} is missing or invalid")]
    NativeArgument { what: &'static str },
    #[error("the agent type {agent:?} is a command, and a model may not choose the command to run")]
    CommandByModel { agent: String },
    #[error("the terminal window of this member was closed")]
    WindowGone,
    #[error("this process was asked to end, but its member was not stopped")]
    Terminated,
    #[error("team {team} has no other member")]
    NobodyElse { team: String },
    #[error("only {of} can mark the messages of {of} as read; you are {me}")]
    NotYours { of: String, me: String },
    #[error("{variable} is not valid")]
    Variable { variable: &'static str, source: Box<dyn Error + Send + Sync> },
    #[error("there is no home directory: {} is not set", env::HOME)]
    NoHome,
    #[error("the text on standard input is not UTF-8")]
    NotText,
    #[error("the history of the teams is on the NATS servers, not in files of this host")]
    HistoryOnServer,
    #[error("all history is kept: no limit is set")]
    NoHistoryLimit,
    #[error("nothing to change")]
    NoChange,
    #[error("there is no template {name:?}")]
    NoTemplate { name: String },
    #[error("unknown agent {name:?}")]
    NoAgent { name: String },
    #[error("the editor {editor:?} failed; nothing was changed")]
    EditorFailed { editor: String },
    #[error("{file} is not UTF-8 text")]
    NotUtf8 { file: String },
    #[error("{file} has {mistakes}")]
    TaskFile { file: String, mistakes: String },
    #[error("cannot ask for confirmation: standard input is not a terminal")]
    NobodyToAsk,
    #[error("--always makes a rule out of one request; name one")]
    OneRequestForRule,
    #[error("--watch needs a terminal")]
    WatchWithoutTerminal,
    #[error("the input has ended; nothing was written")]
    InputEnded,
    #[error("the file is not trusted; nothing was started")]
    NotTrusted,
    #[error("{path} was not trusted")]
    WasNotTrusted { path: String },
    #[error("the service is not installed")]
    NoService,
    #[error("wrote {path}, but the service is not enabled: {why}")]
    ServiceNotEnabled { path: String, why: String },
    #[error("there is nothing to undo")]
    NothingToUndo,
    #[error("the team has no tasks; --until-done has nothing to wait for")]
    NoTasks,
    #[error("{file} describes team {team}, not {named}")]
    OtherTeamInFile { file: String, team: String, named: String },
    #[error("{} not done in time", unfinished(*left, "was", "were"))]
    NotDone { left: usize },
    #[error("{} not done, and no member is left to do the work", unfinished(*left, "is", "are"))]
    NobodyLeft { left: usize },
    #[error("{}", no_difference(name, paths))]
    NoDifference { name: String, paths: Vec<String> },
    #[error("there is no folder {}", dir.display())]
    NoFolder { dir: std::path::PathBuf },
    #[cfg(feature = "nats")]
    #[error("there is no file {}", path.display())]
    NoFile { path: std::path::PathBuf },
    #[error("cannot show the manual page: {why}")]
    ManualNotShown { why: String },
    #[error("{} already exists", path.display())]
    FileExists { path: std::path::PathBuf },
    #[cfg(feature = "nats")]
    #[error("the address of the NATS server is missing")]
    NoNatsServer,
    #[cfg(feature = "nats")]
    #[error("the folder of the organisation is missing; it records whose credentials name a shard")]
    NoOrgFolder,
    #[cfg(feature = "nats")]
    #[error("no shard was added to this organisation yet")]
    NoAddedShard,
    #[error("the address of the NATS server to link with is missing")]
    NothingToLink,
}

/// Says that a member has changed nothing, or nothing below these paths.
fn no_difference(name: &str, paths: &[String]) -> String {
    match paths {
        [] => format!("{name} has not changed anything"),
        paths => format!(
            "{name} has no change at {} (exact paths, relative to its worktree)",
            paths.join(", ")
        ),
    }
}

/// How to print errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// As text for people.
    Text,
    /// As a JSON object on one line, for programs.
    Json,
}

impl ErrorFormat {
    /// Returns the format that the command line asks for. Errors in the command line itself use it, too, so this does
    /// not depend on the parser.
    pub(crate) fn from_args(args: &[OsString]) -> Self {
        let options = args.iter().take_while(|arg| *arg != "--");
        if { options }.any(|arg| arg == "--json") { Self::Json } else { Self::Text }
    }
}

/// The JSON form of an error.
#[derive(Serialize)]
struct ErrorDocument<'e> {
    error: ErrorFields<'e>,
}

#[derive(Serialize)]
struct ErrorFields<'e> {
    /// The failure and its causes.
    message: &'e str,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'e str>,
    /// The exit code.
    code: u8,
}

/// Prints an error and returns its exit code.
pub(crate) fn report(error: &CliError, format: ErrorFormat) -> u8 {
    let code = match error.kind {
        Kind::BrokenPipe => return exit::DONE,
        Kind::Failed => exit::FAILED,
        Kind::Usage => exit::USAGE,
        Kind::Partly => exit::PARTLY,
        Kind::Nothing => exit::NOTHING,
        Kind::Locked => exit::LOCKED,
    };
    match format {
        ErrorFormat::Text => output::eprint_line(&text(error)),
        ErrorFormat::Json => {
            let mut message = error.to_string();
            let mut cause = error.source.source();
            while let Some(error) = cause {
                let _infallible = write!(message, ": {error}");
                cause = error.source();
            }
            print_json(&message, &error.hints.join("\n"), code);
        }
    }
    code
}

/// Prints an error in the command line as JSON, and returns its exit code.
pub(crate) fn report_invalid(text: &str) -> u8 {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    print_json(message.trim(), rest.trim(), exit::USAGE);
    exit::USAGE
}

fn print_json(message: &str, hint: &str, code: u8) {
    let hint = (!hint.is_empty()).then_some(hint);
    let document = ErrorDocument { error: ErrorFields { message, hint, code } };
    // Serializing strings cannot fail.
    output::eprint_line(&serde_json::to_string(&document).unwrap_or_default());
}

fn text(error: &CliError) -> String {
    let mut text = format!("{ERROR}error:{ERROR:#} {}", plain(&error.to_string()));
    let mut cause = error.source.source();
    while let Some(error) = cause {
        let _infallible = write!(text, "\n  caused by: {}", plain(&error.to_string()));
        cause = error.source();
    }
    for hint in &error.hints {
        let _infallible = write!(text, "\n{HINT}hint:{HINT:#} {}", plain(hint));
    }
    text
}

/// Installs a panic hook that reports the panic as a bug, asks the user to report it, and exits with code 70.
pub(crate) fn catch_bugs(format: ErrorFormat) {
    std::panic::set_hook(Box::new(move |panic| {
        let message = format!("this is a bug in brigade: {panic}");
        let hint = "please report it with the command you ran; acknowledged messages are safe";
        match format {
            ErrorFormat::Json => print_json(&message, hint, exit::BUG),
            ErrorFormat::Text => {
                output::eprint_line(&format!("{ERROR}error:{ERROR:#} {message}"));
                output::eprint_line(&format!("hint: {hint}"));
            }
        }
        std::process::exit(i32::from(exit::BUG));
    }));
}

/// Returns for example "1 task was" or "2 tasks were".
fn unfinished(left: usize, singular: &str, plural: &str) -> String {
    let verb = if left == 1 { singular } else { plural };
    format!("{} {verb}", brigade_core::text::count(left, "task"))
}

#[cfg(test)]
mod tests {
    use std::io;

    use brigade_core::store::StoreError;

    use super::*;

    #[test]
    fn causes_stand_below_and_control_characters_are_spelled_out() {
        let source = io::Error::other("no \u{1b}[31mspace");
        let error = StoreError::Io { doing: "write", path: "/x".into(), source };
        let text = anstream::adapter::strip_str(&text(&CliError::from(error))).to_string();
        assert_eq!(text, "error: cannot write /x\n  caused by: no \\u{1b}[31mspace");
    }
}
