//! A member's state and current problem, in the form that every view uses.

use brigade_core::projection::{MemberActivity, MemberView};
use ratatui::style::Style;

use crate::screen::Screen;
use crate::style;
use brigade_core::text::one_line;

/// Returns a member's state as a symbol, a word and a style.
pub(crate) fn state(screen: &Screen, person: &MemberView) -> (&'static str, &'static str, Style) {
    if screen.is_dead(person) {
        return ("✕", "down", screen.theme.error());
    }
    let doing = person.activity();
    let (sign, word) = style::state_label(doing);
    // A lead that is a human reports no activity.
    let leads = doing == MemberActivity::Unknown && screen.projection.is_lead(person.index);
    (sign, if leads { "lead" } else { word }, screen.theme.activity(doing))
}

/// Returns a member's current problem: a dead process, an agent that retries, or a reported error.
pub(crate) fn problem(screen: &Screen, person: &MemberView) -> Option<String> {
    let health = screen.health.get(&*person.name);
    let dead = health.filter(|_| screen.is_dead(person));
    let evidence = dead.map(|health| one_line(&health.judged.evidence));
    let retries = health.and_then(|health| health.retries.as_deref());
    let retries = || retries.map(|why| format!("agent is retrying: {}", one_line(why)));
    evidence.or_else(retries).or_else(|| person.trouble.as_deref().map(one_line))
}
