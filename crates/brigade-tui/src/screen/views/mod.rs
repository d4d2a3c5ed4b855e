//! The views. Each module draws one view and handles its keys.

pub(crate) mod approvals;
pub(crate) mod board;
pub(crate) mod mail;
pub(crate) mod member;
pub(crate) mod member_status;
mod team;
mod timeline;

use ratatui::layout::Rect;

use crate::canvas::Canvas;
use crate::keys::KeyCommand;
use crate::screen::Screen;
use crate::view::View;

/// The state of each view.
#[derive(Debug, Default)]
pub(crate) struct ViewStates {
    pub(crate) mail: mail::MailState,
    pub(crate) board: board::BoardState,
    pub(crate) approvals: approvals::ApprovalsState,
    pub(crate) timeline: timeline::TimelineState,
    pub(crate) member: member::MemberViewState,
}

/// Draws the current view.
pub(crate) fn draw(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    match screen.view {
        View::Team => team::draw(screen, canvas, area),
        View::Mail => mail::draw(screen, canvas, area),
        View::Board => board::draw(screen, canvas, area),
        View::Approvals => approvals::draw(screen, canvas, area),
        View::Timeline => timeline::draw(screen, canvas, area),
        View::Member => member::draw(screen, canvas, area),
    }
}

/// Lets the current view handle a command; returns `None` if the view does not handle it.
pub(crate) fn handle(screen: &mut Screen, command: KeyCommand) -> Option<()> {
    match screen.view {
        View::Team => team::handle(screen, command),
        View::Mail => mail::handle(screen, command),
        View::Board => board::handle(screen, command),
        View::Approvals => approvals::handle(screen, command),
        View::Timeline => timeline::handle(screen, command),
        View::Member => member::handle(screen, command),
    }
}

/// Returns the text that is selected in the current view, for copying.
pub(crate) fn selected_text(screen: &Screen) -> Option<String> {
    match screen.view {
        View::Team => Some(screen.selected_member()?.name.to_string()),
        View::Timeline => timeline::selected_text(screen),
        View::Mail => mail::selected_text(screen),
        View::Board => board::selected_text(screen),
        View::Approvals => approvals::selected_text(screen),
        View::Member => member::selected_text(screen),
    }
}

/// Returns the new index in a list after a movement command; `None` for other commands. The list may be
/// empty.
pub(crate) fn step(index: usize, total: usize, page: usize, command: KeyCommand) -> Option<usize> {
    let last = total.saturating_sub(1);
    Some(match command {
        KeyCommand::Down => (index + 1).min(last),
        KeyCommand::Up => index.saturating_sub(1).min(last),
        KeyCommand::PageDown => (index + page.max(1)).min(last),
        KeyCommand::PageUp => index.saturating_sub(page.max(1)).min(last),
        KeyCommand::First => 0,
        KeyCommand::Last => last,
        _ => return None,
    })
}
