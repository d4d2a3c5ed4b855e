//! The names of the views, for tabs, key bindings and the `--view` option.

/// A view of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum View {
    /// Members and what each one does
    Team,
    /// All messages and whether they were read
    Mail,
    /// The task board
    Board,
    /// Plans and permission requests waiting for an answer
    Approvals,
    /// When each member worked
    Timeline,
    /// Activity of one member
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

    /// Returns the view after this one, or the view before it if `next` is false.
    pub(crate) fn adjacent(self, next: bool) -> Self {
        let index = Self::ALL.iter().position(|view| *view == self).unwrap_or_default();
        let step = if next { 1 } else { Self::ALL.len() - 1 };
        Self::ALL.get((index + step) % Self::ALL.len()).copied().unwrap_or(self)
    }
}
