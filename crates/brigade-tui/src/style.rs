//! Colours. Only those sixteen that a terminal's owner has chosen, so that light backgrounds are as good as
//! dark ones; and nothing that is not also said without colour.

use brigade_core::projection::Doing;
use ratatui::style::{Color, Modifier, Style};

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) color: bool,
}

impl Theme {
    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// What one looks for first.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What one needs least.
    pub(crate) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What is chosen.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What waits for a person.
    pub(crate) fn urgent(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// What went wrong.
    pub(crate) fn wrong(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What is well, or could be begun.
    pub(crate) fn good(self) -> Style {
        self.colored(Color::Green)
    }

    /// What is under way.
    pub(crate) fn busy(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// What a member does.
    pub(crate) fn doing(self, doing: Doing) -> Style {
        match doing {
            Doing::Working => self.busy(),
            Doing::Waiting => self.urgent(),
            Doing::Limited => self.wrong(),
            Doing::Starting => self.good(),
            Doing::Idle | Doing::Unknown | Doing::Gone => self.faint(),
        }
    }

    /// A member's own colour, by its name on the wire.
    pub(crate) fn member(self, color: Option<&str>) -> Style {
        let color = match color {
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

/// What somebody does, as a sign that needs no colour, and in a word.
pub(crate) fn doing(doing: Doing) -> (&'static str, &'static str) {
    match doing {
        Doing::Starting => ("◌", "starting"),
        Doing::Working => ("●", "working"),
        Doing::Waiting => ("▲", "waiting for you"),
        Doing::Limited => ("■", "rate-limited"),
        Doing::Idle => ("○", "idle"),
        Doing::Unknown => ("·", "there"),
        Doing::Gone => ("–", "gone"),
    }
}
