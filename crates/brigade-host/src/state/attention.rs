//! The list of things that wait for the person, each with the command that settles it.

use brigade_core::approvals::{Approval, ApprovalSubject};
use brigade_core::pulse::Liveness;
use brigade_core::text;
use schemars::JsonSchema;
use serde::Serialize;

use super::{MemberState, TeamState};
use crate::spec::MemberPlace;

/// Something that waits for the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttentionItem {
    /// The reason for the wait, in one line.
    pub text: String,
    /// The command that settles it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Describes a request as the state of the member that waits for the answer.
pub fn request_words(approval: &Approval) -> String {
    match &approval.subject {
        ApprovalSubject::Permission { action, .. } => format!("wants to {}", action.summary()),
        ApprovalSubject::Plan { .. } => "wants its plan approved".to_owned(),
    }
}

/// Returns what waits for the person, the most urgent first: requests, the supervisor, members that do not work, and mail.
pub(super) fn list(state: &TeamState, requests: &[Approval]) -> Vec<AttentionItem> {
    let team = &state.team;
    let command = |command: String| Some(format!("brigade {command} --team {team}"));
    let mut items = Vec::new();
    for request in requests {
        let text = format!("{} {}", request.from, request_words(request));
        let command = command(format!("approve {}", request.number));
        items.push(AttentionItem { text, command });
    }
    let lacks_supervisor = state.lacks_supervisor();
    if lacks_supervisor {
        let text = "the supervisor is not running, so members are not restarted".to_owned();
        items.push(AttentionItem { text, command: Some("brigade resume".to_owned()) });
    }
    for member in state.members.iter().filter(|member| needs_help(member)) {
        let text = format!("{}: {}", member.name, member.words);
        let can_restart = matches!(member.place, Some(MemberPlace::Headless | MemberPlace::Tmux))
            && !state.is_ended
            && !lacks_supervisor;
        let restart = || command(format!("restart {}", member.name));
        items.push(AttentionItem { text, command: restart().filter(|_| can_restart) });
    }
    if let Some(messages @ 1..) = state.unread.filter(|_| !state.is_claude_led) {
        let text = text::count(messages, "unread message");
        items.push(AttentionItem { text, command: command("inbox --unread".to_owned()) });
    }
    items
}

fn needs_help(member: &MemberState) -> bool {
    let is_stuck = member.judged.liveness == Liveness::Starting
        && member.words.starts_with("cannot be started");
    matches!(member.judged.liveness, Liveness::Dead | Liveness::Hung) || is_stuck
}
