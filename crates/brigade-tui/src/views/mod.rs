//! The views. Each is a file with what it draws and which keys it answers, and a row here.

pub(crate) mod approvals;
pub(crate) mod board;
pub(crate) mod mail;
pub(crate) mod member;
#[cfg(test)]
mod staged;
pub(crate) mod team;
pub(crate) mod timeline;

use ratatui::layout::Rect;

use super::canvas::Canvas;
use super::keys::Command;
use super::screen::{Effect, Screen};

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum View {
    /// Who is there, and does what
    Team,
    /// Who wrote what to whom
    Mail,
    /// What is to be done
    Board,
    /// Who waits for an answer
    Approvals,
    /// Who worked when
    Timeline,
    /// What one member says and does
    Member,
}

impl View {
    pub(crate) const ALL: [Self; 6] =
        [Self::Team, Self::Mail, Self::Board, Self::Approvals, Self::Timeline, Self::Member];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Team => "Team",
            Self::Mail => "Mail",
            Self::Board => "Board",
            Self::Approvals => "Approvals",
            Self::Timeline => "Timeline",
            Self::Member => "Member",
        }
    }

    /// The next one, or the one before.
    pub(crate) fn beside(self, next: bool) -> Self {
        let here = Self::ALL.iter().position(|view| *view == self).unwrap_or_default();
        let step = if next { 1 } else { Self::ALL.len() - 1 };
        Self::ALL.get((here + step) % Self::ALL.len()).copied().unwrap_or(self)
    }
}

/// What the views remember, each for itself.
#[derive(Debug, Default)]
pub(crate) struct States {
    pub(crate) mail: mail::State,
    pub(crate) board: board::State,
    pub(crate) approvals: approvals::State,
    pub(crate) timeline: timeline::State,
    pub(crate) member: member::State,
}

/// Draws the view that is on.
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

/// Has the view that is on do something; `None` if that is not its own to do.
pub(crate) fn act(screen: &mut Screen, command: Command) -> Option<Vec<Effect>> {
    match screen.view {
        View::Team => team::act(screen, command),
        View::Mail => mail::act(screen, command),
        View::Board => board::act(screen, command),
        View::Approvals => approvals::act(screen, command),
        View::Timeline => timeline::act(screen, command),
        View::Member => member::act(screen, command),
    }
}

/// What of the view that is on would be copied: the words that are chosen.
pub(crate) fn chosen_text(screen: &Screen) -> Option<String> {
    match screen.view {
        View::Team => Some(screen.chosen_member()?.name.to_string()),
        View::Timeline => timeline::chosen_text(screen),
        View::Mail => mail::chosen_text(screen),
        View::Board => board::chosen_text(screen),
        View::Approvals => approvals::chosen_text(screen),
        View::Member => member::chosen_text(screen),
    }
}

/// A place in a list, one step on; the list may be empty.
pub(crate) fn step(place: usize, total: usize, page: usize, command: Command) -> Option<usize> {
    let last = total.saturating_sub(1);
    Some(match command {
        Command::Down => (place + 1).min(last),
        Command::Up => place.saturating_sub(1).min(last),
        Command::PageDown => (place + page.max(1)).min(last),
        Command::PageUp => place.saturating_sub(page.max(1)).min(last),
        Command::First => 0,
        Command::Last => last,
        _ => return None,
    })
}
