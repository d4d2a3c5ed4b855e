//! Errors of `brigade-core`, with hints for people and for agents.

use brigade_core::authority::Denied;
use brigade_core::board::{BatchError, BoardError};
use brigade_core::export::{ExportError, ImportError};
use brigade_core::handshake::HandshakeError;
use brigade_core::mail::MailError;
use brigade_core::roster::RosterError;
use brigade_core::store::{Refusal, StoreError, WriteObstacle};
use brigade_wire::name::NameError;

use crate::error::{ErrorKind, HostError, no_member_hint, output_failed};

impl HostError {
    /// Adds a hint for people and a hint for agents. An empty text adds no hint.
    fn with_hints(self, (person, agent): (String, String)) -> Self {
        let error = if person.is_empty() { self } else { self.hint(person) };
        error.agent_hint(agent)
    }
}

fn hints(person: impl Into<String>, agent: impl Into<String>) -> (String, String) {
    (person.into(), agent.into())
}

/// Returns how a member gets onto the roster. With the credentials of members, only the lead's host can do it.
pub(crate) fn join_hint(team: &str, name: &str) -> String {
    format!("the lead adds it with `brigade --team {team} team join {name}`")
}

fn member_hints(name: &str, members: &[String]) -> (String, String) {
    hints(no_member_hint(name, members), format!("members are {}", members.join(", ")))
}

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Locked(WriteObstacle::Held { .. } | WriteObstacle::Busy { .. }) => {
                ErrorKind::Locked
            }
            _ => ErrorKind::Failed,
        };
        let hints = match &error {
            StoreError::Locked(obstacle) => {
                let person = match obstacle {
                    WriteObstacle::Held { .. } => {
                        "brigade takes over an abandoned lock after 10 s, so a running program still holds \
                         this lock; try again in a moment"
                            .into()
                    }
                    WriteObstacle::Busy { path } => format!(
                        "find the process with `fuser -v {}`; if it is stopped, continue it with \
                         `kill -CONT PID`",
                        path.display()
                    ),
                    WriteObstacle::NotALock { path } => {
                        format!("check the file, then remove it with `rm {}`", path.display())
                    }
                    _ => String::new(),
                };
                hints(person, "another program is using it; try again in a moment")
            }
            StoreError::NoTeam { .. } => hints("", "the team was deleted or does not exist yet"),
            StoreError::Refused { why, .. } => hints(refusal_hint(*why), ""),
            StoreError::TeamExists { team } => hints(
                format!(
                    "use it with `--team {team}`, or delete it with `brigade team delete {team}`"
                ),
                "choose another name",
            ),
            StoreError::MailboxFull(_) => hints(
                "the message was not sent; send it again when the recipient has read its mail",
                "do not send again until the recipient has read your messages",
            ),
            StoreError::Forbidden { .. } => hints(
                "the NATS server checks the credentials, not `--as`; use others with --creds FILE, \
                 or ask the operator of the server",
                "",
            ),
            StoreError::Engine { .. } => hints(
                "unacknowledged writes may or may not have been stored; `brigade doctor` checks the \
                 NATS server",
                "",
            ),
            StoreError::Damaged { .. } => hints(
                "Claude Code may be writing it at this moment; if the error stays, fix the file by \
                 hand",
                "",
            ),
            _ => hints("", ""),
        };
        #[cfg(feature = "nats")]
        if let Some(failure) = brigade_nats::connect_error::ConnectFailure::find(&error) {
            let hints = crate::connect_hints::hints(failure);
            return Self { hints, ..Self::new(kind, error) };
        }
        Self::new(kind, error).with_hints(hints)
    }
}

fn refusal_hint(why: Refusal) -> &'static str {
    match why {
        Refusal::Symlink => {
            "brigade does not follow symbolic links in a team's folders; replace the link with the real file"
        }
        Refusal::ForeignOwner => "run brigade as its owner, or change the owner with `chown`",
        Refusal::TooBig => "a team's file is never that big; move it out of the way",
        _ => "move it out of the way",
    }
}

impl From<Denied> for HostError {
    fn from(error: Denied) -> Self {
        const ACT_AS: &str = "`--as NAME` sets the member you act as";
        let hints = match &error {
            Denied::NotAMember { who, team, members } => {
                let (person, agent) = member_hints(who.as_str(), members);
                let hint = join_hint(team, who.as_str());
                let agent = format!("{agent}; {hint}");
                return Self::failed(error).hint(person).hint(hint).agent_hint(agent);
            }
            Denied::LeadOnly { .. } => hints(ACT_AS, "ask the lead with send_message"),
            Denied::PersonOnly { .. } => hints(
                "a person answers it with `brigade approvals`",
                "leave the request open; a person answers it with `brigade approvals`",
            ),
            Denied::CommandByAgent { .. } => hints(
                "run `brigade spawn` in a terminal that no agent uses",
                "ask a person to start it",
            ),
            _ => hints(ACT_AS, ""),
        };
        Self::failed(error).with_hints(hints)
    }
}

impl From<MailError> for HostError {
    fn from(error: MailError) -> Self {
        let kind = match error {
            MailError::Partly { .. } => ErrorKind::Partly,
            _ => ErrorKind::Failed,
        };
        let hints = match error {
            MailError::Store(error) => return error.into(),
            MailError::Denied(error) => return error.into(),
            MailError::NoMember { ref to, ref members, .. } => member_hints(to, members),
            MailError::Protocol { .. } => hints(
                "to send it as data, put text or a code fence around it",
                "use the tool for it (request_shutdown, answer_shutdown, answer_plan, …), or put \
                 text around the JSON",
            ),
            MailError::Envelope => {
                hints("write the tag differently", "spell the tag in another way")
            }
            MailError::TooLong { .. } => hints(
                "put the text into a file and send the file's name",
                "write a file and send its path",
            ),
            MailError::Partly { .. } => hints(
                "send the message to the others one by one with `brigade send`",
                "send the message to the others again",
            ),
            MailError::ToSelf { .. } => hints("`--as NAME` sets the member you act as", ""),
            MailError::KeyAhead(_) => hints(
                "the clock was set back; nothing was sent. Correct the clock, or restart the member: \
                 `brigade stop NAME`, then `brigade up`",
                "nothing was sent; the clock of this host was set back",
            ),
            _ => hints("", ""),
        };
        Self::new(kind, error).with_hints(hints)
    }
}

impl From<BoardError> for HostError {
    fn from(error: BoardError) -> Self {
        let kind = match error {
            BoardError::NotAssigned { .. }
            | BoardError::NotTold { .. }
            | BoardError::OwnerNotTold { .. } => ErrorKind::Partly,
            _ => ErrorKind::Failed,
        };
        let hints = match error {
            BoardError::Store(error) => return error.into(),
            BoardError::Denied(error) => return error.into(),
            BoardError::NoTask(_) => {
                hints("`brigade task list` shows the tasks", "task_list shows the existing tasks")
            }
            BoardError::NoMember { ref name, ref members } => member_hints(name, members),
            BoardError::Taken { ref owner, .. } => hints(
                format!("if {owner} is gone, `brigade task release {owner}` releases its tasks"),
                "choose another task with task_list, or write to the owner",
            ),
            BoardError::Blocked { .. } | BoardError::Done(_) => {
                hints("", "choose another task with task_list")
            }
            BoardError::NotDone(_) | BoardError::NoOwner(_) => {
                hints("`brigade task list` shows the tasks", "")
            }
            BoardError::OwnerNotTold { ref owner, id, change, .. } => hints(
                format!("tell {owner} yourself: `brigade send {owner} \"task {id} is {change}\"`"),
                "notify the owner with send_message",
            ),
            BoardError::Cycle { .. } | BoardError::NotBlockedBy { .. } => {
                hints("`brigade task graph` shows the dependencies", "")
            }
            BoardError::TooLong { .. } => hints("", "write a file and pass its path"),
            BoardError::Full(_) => hints(
                "delete finished tasks with `brigade task delete ID`, or let the lead add the task",
                "delete your finished tasks with task_update, or ask the lead with send_message",
            ),
            BoardError::NotTold { id, ref owner, .. } => hints(
                format!("tell {owner} yourself: `brigade send {owner} \"task {id} is yours\"`"),
                "notify the owner with send_message",
            ),
            BoardError::NotAssigned { id, ref owner, .. } => hints(
                format!("do not add it again; assign it: `brigade task assign {id} {owner}`"),
                "do not create it again; assign it with task_update",
            ),
            _ => hints("", ""),
        };
        Self::new(kind, error).with_hints(hints)
    }
}

impl From<BatchError> for HostError {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::NotAdded(source) => Self::from(source),
            error @ BatchError::Incomplete { .. } => Self::new(ErrorKind::Partly, error)
                .with_hints(hints(
                    "run the command again: it skips tasks that are on the board",
                    "",
                )),
            error => Self::new(ErrorKind::Failed, error),
        }
    }
}

impl From<RosterError> for HostError {
    fn from(error: RosterError) -> Self {
        let hints = match error {
            RosterError::Store(error) => return error.into(),
            RosterError::Release(error) => return error.into(),
            RosterError::Denied(error) => return error.into(),
            RosterError::Name(NameError::Taken { .. }) => {
                hints("`brigade team show` lists the members", "")
            }
            RosterError::NoMember { ref name, ref members, .. } => {
                hints(no_member_hint(name.as_str(), members), "")
            }
            RosterError::Full { .. } => hints(
                "remove a member with `brigade team leave NAME` first",
                "ask the lead to remove a member first",
            ),
            RosterError::UnreadableRevival { .. } => hints(
                "the list is in the folder `revival` of the team, in brigade's own folder; fix it, or move it away to \
                 restore the team without these messages (`brigade log` still shows them)",
                "",
            ),
            RosterError::LeadStays => hints("`brigade team delete` deletes the whole team", ""),
            RosterError::StillActive { .. } => hints(
                "wait until the members are idle, or delete the team anyway with --force",
                "ask the members to stop with request_shutdown first",
            ),
            RosterError::Native { .. } => hints(
                "Claude Code deletes the team when its session ends; --force deletes the team while \
                 the session runs",
                "",
            ),
            _ => hints("", ""),
        };
        Self::failed(error).with_hints(hints)
    }
}

impl From<HandshakeError> for HostError {
    fn from(error: HandshakeError) -> Self {
        let mut kind = ErrorKind::Failed;
        let hints = match error {
            HandshakeError::Store(error) => return error.into(),
            HandshakeError::Denied(error) => return error.into(),
            HandshakeError::Send(error) => return error.into(),
            HandshakeError::Answered { first: Some(ref first), .. } => {
                hints(first.to_string(), first.to_string())
            }
            HandshakeError::TooManyOpen { .. } => hints(
                "`brigade approvals` shows the requests that wait",
                "wait for the answers to your earlier requests before you ask again",
            ),
            HandshakeError::NotAsShown { .. } => {
                hints("`brigade approvals` shows the requests that wait", "read the request again")
            }
            HandshakeError::NoRequest { ref open, .. } if open.is_empty() => {
                hints("", "no request is open")
            }
            HandshakeError::NoRequest { ref open, .. } => {
                hints("", format!("open requests: {}", open.join(", ")))
            }
            HandshakeError::Unknown { ref open, .. } if open.is_empty() => {
                kind = ErrorKind::Nothing;
                hints("no request is waiting for an answer", "")
            }
            HandshakeError::Unknown { ref open, .. } => {
                let open: Vec<String> = open.iter().map(ToString::to_string).collect();
                hints(format!("waiting: {}; see `brigade approvals`", open.join(", ")), "")
            }
            _ => hints("", ""),
        };
        Self::new(kind, error).with_hints(hints)
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
                Self::new(ErrorKind::Failed, exists).hint(
                    "the existing team was not changed; `--rename NAME` imports under another name",
                )
            }
            ImportError::Store(error) => error.into(),
            ImportError::CutShort => {
                Self::failed(error).hint("export the team again with `brigade team export`")
            }
            error => Self::failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use brigade_core::board::BoardFull;

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
    fn a_full_board_hints_at_deleting_tasks() {
        let full: BoardError = BoardFull::Tasks { tasks: 2, limit: 2, who: "a member" }.into();
        check(full, ErrorKind::Failed, "brigade task delete ID");
    }

    #[test]
    fn a_refusal_of_the_nats_server_has_another_hint_than_a_timeout() {
        let forbidden = StoreError::Forbidden {
            doing: "send it".into(),
            holder: "the credentials of alice".into(),
            missing: "no right".into(),
        };
        check(forbidden, ErrorKind::Failed, "--creds FILE");
        let silent = StoreError::Engine { doing: "send it".into(), source: "no answer".into() };
        check(MailError::from(silent), ErrorKind::Failed, "brigade doctor");
    }
}
