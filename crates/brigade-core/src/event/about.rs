//! Finds out what a record is about: its kind, its members and its task.

use std::borrow::Cow;

use brigade_wire::task::Task;

use super::{Event, Topic, TopicKind, UncheckedRecord};

/// The kinds of records, as a person distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// Messages in plain text, and notices.
    Mail,
    /// Changes of tasks, and the messages that assign them.
    Task,
    /// Requests and their answers.
    Approval,
    /// Changes of the roster, and takeovers of sessions.
    Member,
    /// The creation and the deletion of the team.
    Team,
    /// The words and actions of agents.
    Work,
}

impl RecordKind {
    /// Returns the word for the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Task => "task",
            Self::Approval => "approval",
            Self::Member => "member",
            Self::Team => "team",
            Self::Work => "work",
        }
    }
}

impl Event {
    /// Returns the kind of record, as a person distinguishes them.
    pub fn record_kind(&self) -> RecordKind {
        match self {
            Self::Sent { .. } | Self::Seen { .. } => {
                match Topic::of_event(self).map(|topic| topic.kind) {
                    None => RecordKind::Mail,
                    Some(TopicKind::Assignment) => RecordKind::Task,
                    Some(_) => RecordKind::Approval,
                }
            }
            Self::Answered { .. } => RecordKind::Approval,
            Self::Task { .. } | Self::TaskDeleted { .. } => RecordKind::Task,
            Self::TeamCreated { .. } | Self::TeamDeleted {} => RecordKind::Team,
            Self::Member { .. } | Self::MemberLeft { .. } | Self::TakenOver { .. } => {
                RecordKind::Member
            }
            Self::Worked { .. } => RecordKind::Work,
            Self::Read { .. } | Self::Shown { .. } | Self::Salvaged { .. } => RecordKind::Mail,
        }
    }

    /// Returns the number of the task that the event changes or assigns, if any.
    pub fn task_number(&self) -> Option<u64> {
        match self {
            Self::Task { id, .. } | Self::TaskDeleted { id } => Some(*id),
            _ => Topic::of_event(self)
                .filter(|topic| topic.kind == TopicKind::Assignment)
                .and_then(|topic| topic.id.parse().ok()),
        }
    }

    /// Returns whether the event changes or deletes one of these tasks, alone or with the team.
    pub fn is_about_tasks(&self, ids: &[u64]) -> bool {
        match self {
            Self::Task { id, .. } | Self::TaskDeleted { id } => ids.contains(id),
            Self::TeamDeleted {} => true,
            _ => false,
        }
    }
}

impl UncheckedRecord {
    /// Returns the names of the members that the record is about: those that acted, and those that were written to. A name may
    /// occur twice.
    pub fn members(&self) -> Vec<String> {
        let mut members: Vec<String> = self.by.iter().cloned().collect();
        members.extend(self.event.mailbox().map(str::to_owned));
        match &self.event {
            Event::Sent { .. } | Event::Seen { .. } => members.extend(self.event.sender()),
            Event::Worked { name, .. }
            | Event::Member { name, .. }
            | Event::MemberLeft { name }
            | Event::TakenOver { name, .. } => members.push(name.clone()),
            Event::Answered { to, .. } => members.push(to.clone()),
            Event::Task { task, .. } => {
                let owner = Task::read(task.get().as_bytes())
                    .ok()
                    .and_then(|task| task.owner().map(Cow::into_owned));
                members.extend(owner);
            }
            _ => {}
        }
        members
    }

    /// Returns whether the record is about this member.
    pub fn is_about_member(&self, name: &str) -> bool {
        // Most records name the member directly, so that their message or task need not be parsed.
        self.by.as_deref() == Some(name)
            || self.event.mailbox() == Some(name)
            || self.members().iter().any(|member| member == name)
    }
}
