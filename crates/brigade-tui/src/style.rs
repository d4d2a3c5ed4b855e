//! Colours. Only the terminal's own sixteen colours are used, so that the dashboard works on light and dark
//! backgrounds. No information is shown by colour alone.

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

    /// Returns the style of titles and names.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Returns the style of secondary information.
    pub(crate) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Returns the style of the selected row or item.
    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Returns the style of things that wait for the person.
    pub(crate) fn urgent(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of errors and problems.
    pub(crate) fn error(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of successes and of tasks that are ready to start.
    pub(crate) fn success(self) -> Style {
        self.colored(Color::Green)
    }

    /// Returns the style of removed lines.
    pub(crate) fn removed(self) -> Style {
        self.colored(Color::Red)
    }

    /// Returns the style of work in progress.
    pub(crate) fn busy(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// Returns the style of a member's state.
    pub(crate) fn activity(self, activity: MemberActivity) -> Style {
        match activity {
            MemberActivity::Working => self.busy(),
            MemberActivity::Waiting => self.urgent(),
            MemberActivity::Limited => self.error(),
            MemberActivity::Starting => self.success(),
            MemberActivity::Idle | MemberActivity::Unknown | MemberActivity::Gone => self.faint(),
        }
    }

    /// Returns the colour assigned to a member in the roster.
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

/// Returns a member's state as a symbol and a word. The symbols can be told apart without colour.
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
