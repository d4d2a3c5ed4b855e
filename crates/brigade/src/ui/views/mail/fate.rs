//! The delivery state of messages, as a symbol and text.

use brigade_core::picture::{Fate, Letter};
use brigade_core::pulse;
use jiff::Timestamp;
use ratatui::style::Style;

use crate::ui::style::Theme;

/// The legend in the heading.
pub(super) const LEGEND: &str = "○ sent  ◐ read  ● shown";

/// The delivery stage; for a message with several recipients, the least advanced one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Written,
    Read,
    Shown,
}

impl Stage {
    pub(super) fn of(fate: Fate) -> Self {
        match fate {
            Fate::Written => Self::Written,
            Fate::Read(_) => Self::Read,
            Fate::Shown(_) => Self::Shown,
        }
    }

    fn sign(self) -> char {
        match self {
            Self::Written => '○',
            Self::Read => '◐',
            Self::Shown => '●',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Written => "sent",
            Self::Read => "read",
            Self::Shown => "shown",
        }
    }

    pub(super) fn style(self, theme: Theme) -> Style {
        match self {
            Self::Written => theme.busy(),
            Self::Read => Style::new(),
            Self::Shown => theme.good(),
        }
    }
}

/// The stage of an entry, and its description with a symbol.
pub(super) fn words<'l>(
    letters: impl Iterator<Item = &'l Letter>,
    now: Timestamp,
) -> (Stage, String) {
    let (mut all, mut read, mut shown) = (0, 0, 0);
    let (mut slowest, mut oldest) = (0, i64::MAX);
    let mut least = Stage::Shown;
    for letter in letters {
        let fate = letter.fate();
        let stage = Stage::of(fate);
        all += 1;
        read += usize::from(stage >= Stage::Read);
        shown += usize::from(stage == Stage::Shown);
        match fate {
            Fate::Written => oldest = oldest.min(letter.at.0),
            Fate::Read(at) | Fate::Shown(at) => slowest = slowest.max(at.0 - letter.at.0),
        }
        least = least.min(stage);
    }
    let (sign, word) = (least.sign(), least.word());
    let words = match least {
        Stage::Written if read > 0 => format!("{sign} read by {read} of {all}"),
        Stage::Read if shown > 0 => format!("{sign} shown to {shown} of {all}"),
        Stage::Written => format!("{sign} {word} {} ago", took(now.as_millisecond() - oldest)),
        Stage::Read | Stage::Shown => format!("{sign} {word} after {}", took(slowest)),
    };
    (least, words)
}

fn took(milliseconds: i64) -> String {
    if (1..1000).contains(&milliseconds) {
        return format!("0.{} s", milliseconds / 100);
    }
    pulse::words(jiff::SignedDuration::from_millis(milliseconds))
}
