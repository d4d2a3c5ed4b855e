//! Draws the parts around the view: title line, tabs, and the bottom line with key hints or a notice.

use brigade_core::projection::{MemberActivity, MemberView};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::Screen;
use super::{dialog, views};
use crate::canvas::{Canvas, ClickTarget, FrameInfo};
use crate::keys::{KeyBinding, KeyCommand, KeyScope, bindings_for};
use crate::time::local;
use crate::view::View;
use brigade_core::text::{self, cut, one_line};

/// Draws the whole screen and returns its click targets and scroll limits.
pub(crate) fn draw(screen: &Screen, buffer: &mut Buffer) -> FrameInfo {
    let area = buffer.area;
    let mut canvas = Canvas::new(buffer, screen.theme);
    let rows =
        [Constraint::Length(1), Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)];
    let [title, tabs, body, bottom] = Layout::vertical(rows).areas(area);
    self::title(screen, &mut canvas, title);
    self::tabs(screen, &mut canvas, tabs);
    views::draw(screen, &mut canvas, body);
    self::bottom(screen, &mut canvas, bottom);
    dialog::draw(screen, &mut canvas, area);
    canvas.frame
}

/// Draws the title line: the team and a summary of its state on the left, the time on the right.
fn title(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let members = screen.projection.members();
    let is = |person: &&&MemberView, doing| person.activity() == doing && !screen.is_dead(person);
    let count = |doing| members.iter().filter(|person| is(person, doing)).count();
    let (working, limited) = (count(MemberActivity::Working), count(MemberActivity::Limited));
    let dead = members.iter().filter(|person| screen.is_dead(person)).count();
    let (mut done, mut all) = (0, 0);
    for card in screen.projection.tasks() {
        all += 1;
        done += usize::from(card.done.is_some());
    }
    // In a replay `screen.team` is the file name, so show the team name recorded in the journal.
    let title = screen.replay.and_then(|_| screen.projection.title()).unwrap_or(&screen.team);
    let mut spans = vec![Span::styled(one_line(title), theme.strong())];
    let mut part = |text: String, style| spans.extend([Span::raw("  "), Span::styled(text, style)]);
    let is_lead = |person: &&&MemberView| screen.projection.is_lead(person.index);
    let besides_lead = members.iter().filter(|person| !is_lead(person)).count();
    part(text::count(besides_lead, "member"), theme.faint());
    if working > 0 {
        part(format!("{working} working"), theme.busy());
    }
    if all > 0 {
        part(format!("{done}/{all} done"), theme.success());
    }
    if !screen.approvals.is_empty() {
        let word = if screen.viewer_answers() { "for you" } else { "for the lead" };
        part(format!("▲ {} {word}", screen.approvals.len()), theme.urgent());
    }
    if limited > 0 {
        part(format!("■ {limited} rate-limited"), theme.error());
    }
    if dead > 0 {
        part(format!("✕ {dead} down"), theme.error());
    }
    if !screen.projection.exists() && screen.caught_up {
        part("team deleted".into(), theme.error());
    }
    canvas.line(area, Line::from(spans));
    let time = local(screen.now).strftime("%H:%M:%S").to_string();
    let right = match screen.replay {
        _ if !screen.caught_up => format!("loading … {}", screen.projection.records()),
        None => time,
        Some(replay) if replay.over => format!("replay over  {time}"),
        Some(replay) if replay.paused => format!("replay paused  {time}"),
        Some(replay) => format!("replay ×{}  {time}", replay.speed),
    };
    let width = u16::try_from(right.width()).unwrap_or(area.width).min(area.width);
    let area = Rect { x: area.right() - width, width, ..area };
    canvas.line(area, Line::styled(right, theme.faint()));
}

/// Draws a tab for each view, with the view's key. The tab for approvals also shows the number of open requests.
fn tabs(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    let mut x = area.x;
    for (index, view) in View::ALL.into_iter().enumerate() {
        let mut label = format!(" {} {}", index + 1, view.title());
        if view == View::Approvals && !screen.approvals.is_empty() {
            label.push_str(&format!(" ▲{}", screen.approvals.len()));
        }
        label.push(' ');
        let style = if view == screen.view {
            theme.selected()
        } else if view == View::Approvals && !screen.approvals.is_empty() {
            theme.urgent()
        } else {
            theme.faint()
        };
        let width = u16::try_from(label.width()).unwrap_or(0);
        let tab = Rect { x, width, ..area }.intersection(area);
        canvas.line(tab, Line::styled(label, style));
        canvas.add_click_target(tab, ClickTarget::View(view));
        x = x.saturating_add(width);
    }
}

/// Draws the bottom line: the current notice, or the most useful keys of this view.
fn bottom(screen: &Screen, canvas: &mut Canvas<'_>, area: Rect) {
    let theme = canvas.theme;
    if let Some(notice) = &screen.notice {
        let style = if notice.is_error { theme.error() } else { theme.success() };
        let text = cut(&one_line(&notice.text), usize::from(area.width));
        canvas.line(area, Line::styled(text, style));
        return;
    }
    if views::member::is_searching(screen) {
        let key = |(key, label): (&'static str, &str)| {
            [Span::styled(key, theme.strong()), Span::styled(format!(" {label}  "), theme.faint())]
        };
        let keys: Vec<Span<'_>> = views::member::SEARCH_KEYS.into_iter().flat_map(key).collect();
        canvas.line(area, Line::from(keys));
        return;
    }
    let is_of_view = |key: &&&KeyBinding| key.scope != KeyScope::Everywhere;
    let is_replay = screen.replay.is_some();
    let keys = bindings_for(screen.view, is_replay)
        .filter(|key| !(is_replay && key.command.acts_on_team()));
    // Hide the replay keys when the replay is finished.
    let over = screen.replay.is_some_and(|replay| replay.over);
    let keys = keys.filter(|key| !(over && key.scope == KeyScope::Replay));
    let keys: Vec<&KeyBinding> = keys.collect();
    let bindings = keys.iter().filter(is_of_view).chain(keys.iter().filter(|key| !is_of_view(key)));
    let bindings: Vec<&&KeyBinding> = bindings.filter(|key| !key.label.is_empty()).collect();
    let name = |key: &KeyBinding| key.keys.first().copied().unwrap_or_default();
    let width = |key: &KeyBinding| name(key).width() + key.label.width() + 3;
    // Help and quit are always shown, even on a narrow screen.
    let is_required = |key: &KeyBinding| matches!(key.command, KeyCommand::Help | KeyCommand::Quit);
    let required: usize =
        bindings.iter().filter(|key| is_required(key)).map(|key| width(key)).sum();
    let mut room = usize::from(area.width).saturating_sub(required);
    let mut spans = Vec::new();
    for key in bindings {
        match room.checked_sub(width(key)) {
            _ if is_required(key) => {}
            None => continue,
            Some(left) => room = left,
        }
        spans.push(Span::styled(name(key), theme.strong()));
        spans.push(Span::styled(format!(" {}  ", key.label), theme.faint()));
    }
    canvas.line(area, Line::from(spans));
}
