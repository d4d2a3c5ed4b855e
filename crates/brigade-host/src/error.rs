//! Errors of the host: what failed, why, and hints on what to do next.
//!
//! A front end decides how they are shown.

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use brigade_core::authority::Denied;
use brigade_core::board::BoardError;
use brigade_core::export::{ExportError, ImportError};
use brigade_core::handshake::HandshakeError;
use brigade_core::mail::MailError;
use brigade_core::roster::RosterError;
use brigade_core::store::{Obstacle, Refusal, StoreError};
use brigade_core::text;
use brigade_wire::name::NameError;
use thiserror::Error;

/// What kind of end it comes to; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Refused or failed.
    Failed,
    /// The command line, or a variable that stands for a part of it, makes no sense.
    Usage,
    /// There is nothing to do it with.
    Nothing,
    /// Somebody holds a lock.
    Locked,
    /// Whoever read our output has gone. Not an error to anybody.
    BrokenPipe,
}

/// Why a command did not do what it was asked.
#[derive(Debug, Error)]
#[error("{source}")]
pub struct HostError {
    /// Which kind of failure it is.
    pub kind: ErrorKind,
    /// What failed.
    pub source: Box<dyn Error + Send + Sync>,
    /// What to do next.
    pub hints: Vec<String>,
}

/// Why the host refused, or failed at, something.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message of each variant says what it means")]
pub enum Trouble {
    #[error("there is no team yet")]
    NoTeams,
    #[error("there are several teams: {}", .0.join(", "))]
    SeveralTeams(Vec<String>),
    #[error("who are you? team {team} was not created by brigade")]
    WhoAreYou { team: String },
    #[error("there is no driver for the agent {name:?}")]
    NoAgent { name: String },
    #[error("Claude Code ended without having left the team ({how})")]
    ClaudeEnded { how: String },
    #[error("Claude Code's own program is not to be found")]
    NoClaude,
    #[error("no member {name} in team {team}")]
    NoMember { name: String, team: String },
    #[error("cannot {doing}")]
    Io { doing: String, source: io::Error },
    #[error("no team is up on this host")]
    NoneUp,
    #[error("not installed: {}", .names.join(", "))]
    NotInstalled { names: Vec<String> },
    #[error("no worktree can be made: {} {lack}", dir.display())]
    NoCommit { dir: std::path::PathBuf, lack: &'static str },
    #[error("not started: {}", .names.join(", "))]
    DidNotStart { names: Vec<String> },
    #[error("{name} stays: {why}")]
    Refuses { name: String, why: String },
    #[error("git: {said}")]
    Git { said: String },
    #[error("the supervising process did not start")]
    NoSupervisor,
    #[error("team {team} is not up on this host")]
    NotUp { team: String },
    #[error("{name} of team {team} does not run on this host")]
    NotHere { name: String, team: String },
    #[error("{name} is on this host already, and is another: {difference}")]
    OtherMember { name: String, difference: String },
    #[error("team {team} was not made by brigade, which cannot lead it")]
    NotOurs { team: String },
    #[cfg(not(feature = "nats"))]
    #[error("this brigade was built without the engine, and cannot get to {servers}")]
    NoEngine { servers: String },
    #[error("{} cannot live in the engine: Claude Code works in files of this host", .names.join(", "))]
    NativeInEngine { names: Vec<String> },
    #[error("{name} is the lead of team {team}, and no other member can be")]
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

    /// A refusal or a failure.
    pub fn failed(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Failed, source)
    }

    /// A request that makes no sense.
    pub fn usage(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Usage, source)
    }

    /// Whether the engine did not answer at all.
    pub fn is_unreachable(&self) -> bool {
        let engine = self.source.downcast_ref();
        matches!(engine, Some(StoreError::Engine { doing, .. }) if doing.starts_with("connect"))
    }

    /// Adds a hint on what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The error and what to do about it, where there is room for one line.
    pub fn in_one_line(&self) -> String {
        let mut text = self.to_string();
        for hint in &self.hints {
            let _infallible = write!(text, "; {hint}");
        }
        text::one_line(&text)
    }
}

/// An operation of the operating system failed.
pub fn failed(doing: impl Into<String>, source: io::Error) -> HostError {
    HostError::failed(Trouble::Io { doing: doing.into(), source })
}

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Locked(Obstacle::Held { .. } | Obstacle::Busy { .. }) => ErrorKind::Locked,
            _ => ErrorKind::Failed,
        };
        let hint = match &error {
            StoreError::Locked(Obstacle::Held { .. }) => Some(
                "an abandoned lock is taken over after 10 s, so a running program keeps this one; \
                 try again in a moment"
                    .into(),
            ),
            StoreError::Locked(Obstacle::Busy { path }) => Some(format!(
                "see who it is with `fuser -v {}`; a stopped process goes on with `kill -CONT PID`",
                path.display()
            )),
            StoreError::Locked(Obstacle::NotALock { path }) => {
                Some(format!("look at it, then `rm {}`", path.display()))
            }
            StoreError::Refused { why, .. } => Some(refusal_hint(*why).into()),
            StoreError::TeamExists { team } => Some(format!(
                "use it with `--team {team}`, or delete it with `brigade team delete {team}`"
            )),
            StoreError::Forbidden { .. } => Some(
                "the engine goes by the credentials, whoever `--as` says you are; use others with \
                 --creds FILE, or ask whoever runs it"
                    .into(),
            ),
            StoreError::Engine { .. } => Some(
                "nothing is known of it that was not acknowledged; `brigade doctor` looks at the \
                 engine"
                    .into(),
            ),
            StoreError::Damaged { .. } => Some(
                "Claude Code may be writing it just now; if it stays so, mend the file by hand"
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
        Refusal::ForeignOwner => "run brigade as its owner, or give it to you with `chown`",
        Refusal::TooBig => "a team's file is never that big; move it out of the way",
        _ => "move it out of the way",
    }
}

impl From<MailError> for HostError {
    fn from(error: MailError) -> Self {
        match error {
            MailError::Store(error) => error.into(),
            MailError::NoMember { ref members, .. } => {
                let hint = members_are(members);
                Self::failed(error).hint(hint)
            }
            MailError::Denied(error) => error.into(),
            MailError::Protocol { .. } => {
                Self::failed(error).hint("to send it as data, put words or a code fence around it")
            }
            MailError::Envelope => Self::failed(error).hint("spell the tag in another way"),
            MailError::TooLong { .. } => {
                Self::failed(error).hint("put it into a file and send the file's name")
            }
            MailError::Partly { .. } => {
                Self::failed(error).hint("send to the others one by one with `brigade send`")
            }
            MailError::ToSelf { .. } => Self::failed(error).hint("`--as NAME` says who you are"),
            _ => Self::failed(error),
        }
    }
}

impl From<Denied> for HostError {
    fn from(error: Denied) -> Self {
        let hints = match &error {
            Denied::NotAMember { who, members, .. } => {
                vec![members_are(members), format!("to add it: `brigade team join {who}`")]
            }
            Denied::PersonOnly { .. } => {
                vec!["it is left to whoever works with `brigade approvals`".into()]
            }
            _ => vec!["`--as NAME` says who you are".into()],
        };
        hints.into_iter().fold(Self::failed(error), Self::hint)
    }
}

impl From<BoardError> for HostError {
    fn from(error: BoardError) -> Self {
        let hint = match &error {
            BoardError::NoTask(_) => "`brigade task list` shows the tasks there are".into(),
            BoardError::NoMember { members, .. } => members_are(members),
            BoardError::Taken { owner, .. } => {
                format!("if {owner} is gone, `brigade task release {owner}` gives its tasks back")
            }
            BoardError::Cycle { .. } => "`brigade task graph` shows who waits for whom".into(),
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
            RosterError::NoMember { members, .. } => Some(members_are(members)),
            RosterError::LeadStays => Some("`brigade team delete`".into()),
            RosterError::StillActive { .. } => {
                Some("wait until they are idle, or delete it all the same with --force".into())
            }
            RosterError::Native { .. } => Some(
                "Claude Code deletes it when its session ends; --force deletes it under its feet"
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
                Self::new(ErrorKind::Nothing, error).hint("nothing waits for an answer")
            }
            HandshakeError::Unknown { ref open, .. } => {
                let open: Vec<String> = open.iter().map(ToString::to_string).collect();
                Self::failed(error)
                    .hint(format!("waiting are {}; see `brigade approvals`", open.join(", ")))
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
                    .hint("it stays as it is; `--rename NAME` makes the other under another name")
            }
            ImportError::Store(error) => error.into(),
            ImportError::CutShort => {
                Self::failed(error).hint("write it once more with `brigade team export`")
            }
            error => Self::failed(error),
        }
    }
}

/// The output of a command could not be written. A reader that closed it is not a failure.
pub fn output_failed(source: io::Error) -> HostError {
    if source.kind() == io::ErrorKind::BrokenPipe {
        return HostError::new(ErrorKind::BrokenPipe, source);
    }
    failed("write the output", source)
}

/// The hint that lists the members of a team.
pub fn members_are(members: &[String]) -> String {
    format!("members are {}", members.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: impl Into<HostError>, kind: ErrorKind, hint: &str) {
        let error = error.into();
        assert_eq!(error.kind, kind);
        assert!(error.hints.iter().any(|its| its.contains(hint)), "{:?}", error.hints);
    }

    #[test]
    fn a_held_lock_asks_to_try_again() {
        let held = Obstacle::Held { path: "/x/bob.json.lock".into(), held_secs: 12 };
        check(StoreError::from(held.clone()), ErrorKind::Locked, "try again");
        check(MailError::from(StoreError::from(held)), ErrorKind::Locked, "try again");
        let busy = Obstacle::Busy { path: "/x/bob.state".into() };
        check(StoreError::from(busy), ErrorKind::Locked, "fuser -v /x/bob.state");
    }

    #[test]
    fn what_no_waiting_mends_is_a_failure() {
        let not_a_lock = Obstacle::NotALock { path: "/x/bob.json.lock".into() };
        check(StoreError::from(not_a_lock), ErrorKind::Failed, "rm /x/bob.json.lock");
        let refused =
            StoreError::Refused { path: "/x/bob.json".into(), why: Refusal::ForeignOwner };
        check(refused, ErrorKind::Failed, "chown");
    }

    #[test]
    fn what_an_engine_says_no_to_is_told_apart_from_its_silence() {
        let forbidden = StoreError::Forbidden { doing: "send it".into() };
        check(forbidden, ErrorKind::Failed, "--creds FILE");
        let silent = StoreError::Engine { doing: "send it".into(), source: "no answer".into() };
        check(MailError::from(silent), ErrorKind::Failed, "brigade doctor");
    }
}
