//! The delivery state of messages, shown as a symbol and text.

use brigade_core::projection::{DeliveryStatus, MessageRef};
use brigade_core::pulse;
use jiff::Timestamp;
use ratatui::style::Style;

use crate::style::Theme;

/// The legend of delivery symbols, shown in the heading of the mail view.
pub(super) const LEGEND: &str = "○ sent  ◐ read  ● shown";

/// How far a message was delivered. For a message to several members, this is the lowest stage of any
/// recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeliveryStage {
    Written,
    Read,
    Shown,
}

impl DeliveryStage {
    pub(super) fn new(fate: DeliveryStatus) -> Self {
        match fate {
            DeliveryStatus::Written => Self::Written,
            DeliveryStatus::Read(_) => Self::Read,
            DeliveryStatus::Shown(_) => Self::Shown,
        }
    }

    fn symbol(self) -> char {
        match self {
            Self::Written => '○',
            Self::Read => '◐',
            Self::Shown => '●',
        }
    }

    fn label(self) -> &'static str {
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
            Self::Shown => theme.success(),
        }
    }
}

/// Returns the delivery stage of an entry, and the stage's description with a symbol.
pub(super) fn describe<'l>(
    messages: impl Iterator<Item = &'l MessageRef>,
    now: Timestamp,
) -> (DeliveryStage, String) {
    let (mut all, mut read, mut shown) = (0, 0, 0);
    let (mut slowest, mut oldest) = (0, i64::MAX);
    let mut least = DeliveryStage::Shown;
    for message in messages {
        let fate = message.status();
        let stage = DeliveryStage::new(fate);
        all += 1;
        read += usize::from(stage >= DeliveryStage::Read);
        shown += usize::from(stage == DeliveryStage::Shown);
        match fate {
            DeliveryStatus::Written => oldest = oldest.min(message.at.0),
            DeliveryStatus::Read(at) | DeliveryStatus::Shown(at) => {
                slowest = slowest.max(at.0 - message.at.0);
            }
        }
        least = least.min(stage);
    }
    let (symbol, label) = (least.symbol(), least.label());
    let text = match least {
        DeliveryStage::Written if read > 0 => format!("{symbol} read by {read} of {all}"),
        DeliveryStage::Read if shown > 0 => format!("{symbol} shown to {shown} of {all}"),
        DeliveryStage::Written => {
            format!("{symbol} {label} {} ago", format_duration(now.as_millisecond() - oldest))
        }
        DeliveryStage::Read | DeliveryStage::Shown => {
            format!("{symbol} {label} after {}", format_duration(slowest))
        }
    };
    (least, text)
}

fn format_duration(milliseconds: i64) -> String {
    if (1..1000).contains(&milliseconds) {
        return format!("0.{} s", milliseconds / 100);
    }
    pulse::format_duration(jiff::SignedDuration::from_millis(milliseconds))
}
