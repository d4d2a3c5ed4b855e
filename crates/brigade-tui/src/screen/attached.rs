//! The screen of `brigade attach`: the live transcript of one member, its open request, and a line to write to it.

mod draw;
mod input;
pub(crate) mod keys;
mod request;
#[cfg(test)]
mod tests;

use brigade_core::approvals::Approval;
use brigade_core::projection::MemberView;
use brigade_host::state::StateSummary;
use brigade_wire::name::MemberName;
use tui_input::Input;

pub(crate) use self::draw::draw;
pub(crate) use self::input::{handle_key, handle_mouse, paste};
use super::Screen;
use super::views::member::{ActivityPosition, ItemDetail, TranscriptSearch};

/// The state of the screen of one member.
#[derive(Debug)]
pub(crate) struct AttachedState {
    pub(crate) member: MemberName,
    /// Why the person cannot write to the member; `None` if the person can.
    pub(crate) view_only: Option<String>,
    /// The state of the member, as last fetched.
    pub(crate) summary: Option<StateSummary>,
    /// The scroll position; `None` if the screen follows the latest activity.
    at: Option<ActivityPosition>,
    is_unfolded: bool,
    composer: Input,
    search: Option<TranscriptSearch>,
    /// The id of the open request, whether it fills the screen, and its scroll position.
    request: Option<String>,
    is_reading: bool,
    request_scroll: usize,
    /// The request whose answer is on its way.
    answering: Option<String>,
    is_help_open: bool,
    /// Whether the person was warned that unsent text will be lost.
    was_warned: bool,
}

impl AttachedState {
    pub(crate) fn new(member: MemberName, view_only: Option<String>) -> Self {
        Self {
            member,
            view_only,
            summary: None,
            at: None,
            is_unfolded: false,
            composer: Input::default(),
            search: None,
            request: None,
            is_reading: false,
            request_scroll: 0,
            answering: None,
            is_help_open: false,
            was_warned: false,
        }
    }

    fn detail(&self) -> ItemDetail {
        if self.is_unfolded { ItemDetail::Unfolded } else { ItemDetail::Folded }
    }

    /// Puts the text of a message that was not sent back into the line, before the text that was typed meanwhile.
    pub(crate) fn put_back(&mut self, text: &str) {
        let typed = self.composer.value();
        let text = if typed.is_empty() { text.to_owned() } else { format!("{text}\n{typed}") };
        self.composer = Input::new(text);
    }

    /// Remembers which request is open. Another request begins at its first line.
    pub(crate) fn set_request(&mut self, request: Option<String>) {
        if self.request != request {
            (self.is_reading, self.request_scroll) = (false, 0);
            self.request = request;
        }
    }

    /// Removes the mark that an answer is on its way.
    pub(crate) fn end_answer(&mut self) {
        self.answering = None;
    }
}

impl Screen {
    /// Returns the attached member as the history shows it. `None` until the history has its name.
    fn attached_member(&self) -> Option<&MemberView> {
        self.projection.member_named(self.attached.as_ref()?.member.as_str())
    }

    /// Returns the oldest open request of the attached member.
    pub(crate) fn attached_request(&self) -> Option<&Approval> {
        let member = &self.attached.as_ref()?.member;
        self.approvals.iter().find(|approval| approval.from == *member)
    }
}
