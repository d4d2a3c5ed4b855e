//! Colours. Only the terminal's own sixteen colours are used, so that the dashboard works on light and dark
//! backgrounds. Colour never carries information that the text does not.

use brigade_core::projection::{MemberActivity, MemberView};
use ratatui::style::{Color, Modifier, Style};

/// The colour theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) color: bool,
}

impl Theme {
    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// Titles and names.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Secondary information.
    pub(crate) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The selected row or item.
    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Something that waits for the person.
    pub(crate) fn urgent(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// An error or a problem.
    pub(crate) fn error(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Success, or something ready to start.
    pub(crate) fn success(self) -> Style {
        self.colored(Color::Green)
    }

    /// Work in progress.
    pub(crate) fn busy(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// The style of a member's state.
    pub(crate) fn activity(self, activity: MemberActivity) -> Style {
        match activity {
            MemberActivity::Working => self.busy(),
            MemberActivity::Waiting => self.urgent(),
            MemberActivity::Limited => self.error(),
            MemberActivity::Starting => self.success(),
            MemberActivity::Idle | MemberActivity::Unknown | MemberActivity::Gone => self.faint(),
        }
    }

    /// The colour assigned to a member in the roster.
    pub(crate) fn person(self, person: &MemberView) -> Style {
        let color = match person.entry.as_ref().and_then(|entry| entry.color.as_deref()) {
            Some("red") => Color::Red,
            Some("green") => Color::Green,
            Some("yellow" | "orange") => Color::Yellow,
            Some("blue") => Color::Blue,
            Some("purple" | "pink") => Color::Magenta,
            Some("cyan") => Color::Cyan,
            _ => return self.strong(),
        };
        self.colored(color).add_modifier(Modifier::BOLD)
    }
}

/// A member's state as a symbol and a word. The symbol is enough without colour.
pub(crate) fn state_label(activity: MemberActivity) -> (&'static str, &'static str) {
    match activity {
        MemberActivity::Starting => ("◌", "starting"),
        MemberActivity::Working => ("●", "working"),
        MemberActivity::Waiting => ("▲", "waiting for you"),
        MemberActivity::Limited => ("■", "rate-limited"),
        MemberActivity::Idle => ("○", "idle"),
        MemberActivity::Unknown => ("·", "present"),
        MemberActivity::Gone => ("–", "gone"),
    }
}
