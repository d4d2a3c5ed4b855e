//! Errors of the host: what failed, why, and hints on what to do next.
//!
//! The front end decides how to show them.

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use brigade_core::authority::Denied;
use brigade_core::board::BoardError;
use brigade_core::export::{ExportError, ImportError};
use brigade_core::handshake::HandshakeError;
use brigade_core::mail::MailError;
use brigade_core::roster::RosterError;
use brigade_core::store::{Refusal, StoreError, WriteObstacle};
use brigade_core::text;
use brigade_wire::name::NameError;
use thiserror::Error;

/// The kind of an error. It decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The operation was refused or failed.
    Failed,
    /// The command line, or a variable that replaces an option, is invalid.
    Usage,
    /// There is nothing to work on.
    Nothing,
    /// Another process holds a lock.
    Locked,
    /// The reader of the output closed it. Not shown as an error.
    BrokenPipe,
}

/// An error with its kind and hints.
#[derive(Debug, Error)]
#[error("{source}")]
pub struct HostError {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// What failed.
    pub source: Box<dyn Error + Send + Sync>,
    /// Suggested next steps.
    pub hints: Vec<String>,
}

/// The errors that this crate itself raises.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message of each variant says what it means")]
pub enum Trouble {
    #[error("there is no team yet")]
    NoTeams,
    #[error("there are several teams: {}", .0.join(", "))]
    SeveralTeams(Vec<String>),
    #[error("Claude Code leads team {team}; name the member you act as")]
    WhoAreYou { team: String },
    #[error("unknown agent {name:?}")]
    NoAgent { name: String },
    #[error("Claude Code ended without leaving the team ({how})")]
    ClaudeEnded { how: String },
    #[error("cannot find the Claude Code program")]
    NoClaude,
    #[error("no member {name} in team {team}")]
    NoMember { name: String, team: String },
    #[error("cannot {doing}")]
    Io { doing: String, source: io::Error },
    #[error("no team is up on this host")]
    NoneUp,
    #[error("not installed: {}", .names.join(", "))]
    NotInstalled { names: Vec<String> },
    #[error("cannot create a worktree: {} {reason}", dir.display())]
    NoCommit { dir: std::path::PathBuf, reason: &'static str },
    #[error("not started: {}", .names.join(", "))]
    DidNotStart { names: Vec<String> },
    #[error("{name} refused to stop: {why}")]
    Refuses { name: String, why: String },
    #[error("git: {said}")]
    Git { said: String },
    #[error("the supervisor did not start")]
    NoSupervisor,
    #[error("team {team} is not up on this host")]
    NotUp { team: String },
    #[error("{name} of team {team} does not run on this host")]
    NotHere { name: String, team: String },
    #[error("{name} already runs on this host with other settings: {difference}")]
    OtherMember { name: String, difference: String },
    #[error("team {team} was not created by brigade, so brigade cannot lead it")]
    NotOurs { team: String },
    #[cfg(not(feature = "nats"))]
    #[error("this brigade was built without NATS support and cannot connect to {servers}")]
    NoEngine { servers: String },
    #[error("{} cannot join a team on NATS: Claude Code works in files of this host", .names.join(", "))]
    NativeInEngine { names: Vec<String> },
    #[error("{name} is the name of the lead of team {team}; no member can have it")]
    LeadsIt { name: String, team: String },
    #[error("{name} of team {team} runs on another host, {host}")]
    Elsewhere { name: String, team: String, host: String },
    #[error("cannot find the brigade program itself")]
    NoProgram,
}

impl HostError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into(), hints: Vec::new() }
    }

    /// An error of the kind [`ErrorKind::Failed`].
    pub fn failed(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Failed, source)
    }

    /// An error of the kind [`ErrorKind::Usage`].
    pub fn usage(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Usage, source)
    }

    /// Whether the connection to the NATS server failed.
    pub fn is_unreachable(&self) -> bool {
        let error = self.source.downcast_ref();
        matches!(error, Some(StoreError::Engine { doing, .. }) if doing.starts_with("connect"))
    }

    /// Adds a hint on what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Renders the error and its hints on one line.
    pub fn to_one_line(&self) -> String {
        let mut text = self.to_string();
        for hint in &self.hints {
            let _infallible = write!(text, "; {hint}");
        }
        text::one_line(&text)
    }
}

/// Converts a system error; `doing` completes the sentence "cannot …".
pub fn failed(doing: impl Into<String>, source: io::Error) -> HostError {
    HostError::failed(Trouble::Io { doing: doing.into(), source })
}

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Locked(WriteObstacle::Held { .. } | WriteObstacle::Busy { .. }) => {
                ErrorKind::Locked
            }
            _ => ErrorKind::Failed,
        };
        let hint = match &error {
            StoreError::Locked(WriteObstacle::Held { .. }) => Some(
                "an abandoned lock is taken over after 10 s, so a running program keeps this one; \
                 try again in a moment"
                    .into(),
            ),
            StoreError::Locked(WriteObstacle::Busy { path }) => Some(format!(
                "find the process with `fuser -v {}`; if it is stopped, continue it with `kill -CONT PID`",
                path.display()
            )),
            StoreError::Locked(WriteObstacle::NotALock { path }) => {
                Some(format!("check the file, then remove it with `rm {}`", path.display()))
            }
            StoreError::Refused { why, .. } => Some(refusal_hint(*why).into()),
            StoreError::TeamExists { team } => Some(format!(
                "use it with `--team {team}`, or delete it with `brigade team delete {team}`"
            )),
            StoreError::Forbidden { .. } => Some(
                "the NATS server checks the credentials, not `--as`; use others with --creds FILE, \
                 or ask the operator of the server"
                    .into(),
            ),
            StoreError::Engine { .. } => Some(
                "unacknowledged writes may or may not have been stored; `brigade doctor` checks the \
                 NATS server"
                    .into(),
            ),
            StoreError::Damaged { .. } => Some(
                "Claude Code may be writing it at this moment; if the error stays, fix the file by hand"
                    .into(),
            ),
            _ => None,
        };
        let error = Self::new(kind, error);
        hint.into_iter().fold(error, Self::hint)
    }
}

fn refusal_hint(why: Refusal) -> &'static str {
    match why {
        Refusal::Symlink => {
            "brigade follows no symbolic link in a team's folders; put the real file there"
        }
        Refusal::ForeignOwner => "run brigade as its owner, or change the owner with `chown`",
        Refusal::TooBig => "a team's file is never that big; move it out of the way",
        _ => "move it out of the way",
    }
}

impl From<MailError> for HostError {
    fn from(error: MailError) -> Self {
        match error {
            MailError::Store(error) => error.into(),
            MailError::NoMember { ref members, .. } => {
                let hint = members_hint(members);
                Self::failed(error).hint(hint)
            }
            MailError::Denied(error) => error.into(),
            MailError::Protocol { .. } => {
                Self::failed(error).hint("to send it as data, put text or a code fence around it")
            }
            MailError::Envelope => Self::failed(error).hint("write the tag differently"),
            MailError::TooLong { .. } => {
                Self::failed(error).hint("put it into a file and send the file's name")
            }
            MailError::Partly { .. } => {
                Self::failed(error).hint("send to the others one by one with `brigade send`")
            }
            MailError::ToSelf { .. } => {
                Self::failed(error).hint("`--as NAME` sets the member you act as")
            }
            _ => Self::failed(error),
        }
    }
}

impl From<Denied> for HostError {
    fn from(error: Denied) -> Self {
        let hints = match &error {
            Denied::NotAMember { who, members, .. } => {
                vec![members_hint(members), format!("to add it: `brigade team join {who}`")]
            }
            Denied::PersonOnly { .. } => {
                vec!["a person answers it with `brigade approvals`".into()]
            }
            _ => vec!["`--as NAME` sets the member you act as".into()],
        };
        hints.into_iter().fold(Self::failed(error), Self::hint)
    }
}

impl From<BoardError> for HostError {
    fn from(error: BoardError) -> Self {
        let hint = match &error {
            BoardError::NoTask(_) => "`brigade task list` shows the tasks".into(),
            BoardError::NoMember { members, .. } => members_hint(members),
            BoardError::Taken { owner, .. } => {
                format!("if {owner} is gone, `brigade task release {owner}` releases its tasks")
            }
            BoardError::Cycle { .. } => "`brigade task graph` shows the dependencies".into(),
            BoardError::NotTold { id, owner, .. } => {
                format!("tell it yourself: `brigade send {owner} \"task {id} is yours\"`")
            }
            _ => String::new(),
        };
        match error {
            BoardError::Store(error) => error.into(),
            BoardError::Denied(error) => error.into(),
            error if hint.is_empty() => Self::failed(error),
            error => Self::failed(error).hint(hint),
        }
    }
}

impl From<RosterError> for HostError {
    fn from(error: RosterError) -> Self {
        let hint = match &error {
            RosterError::Name(NameError::Taken { .. }) => {
                Some("`brigade team show` lists the members".into())
            }
            RosterError::NoMember { members, .. } => Some(members_hint(members)),
            RosterError::LeadStays => Some("`brigade team delete`".into()),
            RosterError::StillActive { .. } => {
                Some("wait until they are idle, or delete it anyway with --force".into())
            }
            RosterError::Native { .. } => Some(
                "Claude Code deletes it when its session ends; --force deletes it while the session runs"
                    .into(),
            ),
            _ => None,
        };
        match error {
            RosterError::Store(error) => error.into(),
            RosterError::Release(error) => error.into(),
            RosterError::Denied(error) => error.into(),
            error => hint.into_iter().fold(Self::failed(error), Self::hint),
        }
    }
}

impl From<HandshakeError> for HostError {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Store(error) => error.into(),
            HandshakeError::Denied(error) => error.into(),
            HandshakeError::Send(error) => error.into(),
            HandshakeError::Answered { ref first, .. } => {
                let first = first.as_ref().map(ToString::to_string);
                first.into_iter().fold(Self::failed(error), Self::hint)
            }
            HandshakeError::Unknown { ref open, .. } if open.is_empty() => {
                Self::new(ErrorKind::Nothing, error).hint("no request is waiting for an answer")
            }
            HandshakeError::Unknown { ref open, .. } => {
                let open: Vec<String> = open.iter().map(ToString::to_string).collect();
                Self::failed(error)
                    .hint(format!("waiting: {}; see `brigade approvals`", open.join(", ")))
            }
            error => Self::failed(error),
        }
    }
}

impl From<ExportError> for HostError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Write(error) => output_failed(error),
            error => Self::failed(error),
        }
    }
}

impl From<ImportError> for HostError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(StoreError::TeamExists { team }) => {
                let exists = StoreError::TeamExists { team };
                Self::new(ErrorKind::Failed, exists)
                    .hint("it was not changed; `--rename NAME` imports under another name")
            }
            ImportError::Store(error) => error.into(),
            ImportError::CutShort => {
                Self::failed(error).hint("export it again with `brigade team export`")
            }
            error => Self::failed(error),
        }
    }
}

/// Converts an error of writing the output. A reader that closed its end is not a failure.
pub fn output_failed(source: io::Error) -> HostError {
    if source.kind() == io::ErrorKind::BrokenPipe {
        return HostError::new(ErrorKind::BrokenPipe, source);
    }
    failed("write the output", source)
}

/// Returns the hint that lists the members of a team.
pub fn members_hint(members: &[String]) -> String {
    format!("members: {}", members.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: impl Into<HostError>, kind: ErrorKind, hint: &str) {
        let error = error.into();
        assert_eq!(error.kind, kind);
        assert!(error.hints.iter().any(|one| one.contains(hint)), "{:?}", error.hints);
    }

    #[test]
    fn a_held_lock_hints_at_trying_again() {
        let held = WriteObstacle::Held { path: "/x/bob.json.lock".into(), held_secs: 12 };
        check(StoreError::from(held.clone()), ErrorKind::Locked, "try again");
        check(MailError::from(StoreError::from(held)), ErrorKind::Locked, "try again");
        let busy = WriteObstacle::Busy { path: "/x/bob.state".into() };
        check(StoreError::from(busy), ErrorKind::Locked, "fuser -v /x/bob.state");
    }

    #[test]
    fn errors_that_waiting_cannot_fix_are_failures() {
        let not_a_lock = WriteObstacle::NotALock { path: "/x/bob.json.lock".into() };
        check(StoreError::from(not_a_lock), ErrorKind::Failed, "rm /x/bob.json.lock");
        let refused =
            StoreError::Refused { path: "/x/bob.json".into(), why: Refusal::ForeignOwner };
        check(refused, ErrorKind::Failed, "chown");
    }

    #[test]
    fn a_refusal_of_the_nats_server_has_another_hint_than_a_timeout() {
        let forbidden = StoreError::Forbidden { doing: "send it".into() };
        check(forbidden, ErrorKind::Failed, "--creds FILE");
        let silent = StoreError::Engine { doing: "send it".into(), source: "no answer".into() };
        check(MailError::from(silent), ErrorKind::Failed, "brigade doctor");
    }
}
