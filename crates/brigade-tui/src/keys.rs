//! The table of all key bindings: key, view, command and description. The help, the command palette, the
//! bottom line and the documentation are generated from this table.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::view::View;

/// An action bound to a key or listed in the command palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyCommand {
    Quit,
    Help,
    Palette,
    Teams,
    View(View),
    NextView,
    PreviousView,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Left,
    Right,
    Open,
    Back,
    Filter,
    Protocol,
    Graph,
    ZoomIn,
    ZoomOut,
    ZoomAll,
    Send,
    Broadcast,
    AddTask,
    Assign,
    Claim,
    Finish,
    Spawn,
    Stop,
    Interrupt,
    PauseMember,
    Search,
    Approve,
    Deny,
    Pane,
    Worktree,
    Link,
    Copy,
    Pause,
    Faster,
    Slower,
    Skip,
    Redraw,
    Suspend,
}

impl KeyCommand {
    /// Returns whether the command changes the team. A replay cannot run such commands.
    pub(crate) fn acts_on_team(self) -> bool {
        matches!(
            self,
            Self::Send
                | Self::Broadcast
                | Self::AddTask
                | Self::Assign
                | Self::Claim
                | Self::Finish
                | Self::Spawn
                | Self::Stop
                | Self::Interrupt
                | Self::PauseMember
                | Self::Approve
                | Self::Deny
                | Self::Pane
                | Self::Worktree
        )
    }
}

/// Where a key binding applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyScope {
    Everywhere,
    In(&'static [View]),
    Replay,
}

/// One key binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyBinding {
    pub(crate) scope: KeyScope,
    /// Key names in the form that [`key_name`] returns.
    pub(crate) keys: &'static [&'static str],
    pub(crate) command: KeyCommand,
    /// Description for the help and the command palette, at most 24 characters.
    pub(crate) description: &'static str,
    /// Label for the bottom line; empty if the binding is not shown there.
    pub(crate) label: &'static str,
}

const fn key(
    scope: KeyScope,
    keys: &'static [&'static str],
    command: KeyCommand,
    label: &'static str,
    description: &'static str,
) -> KeyBinding {
    KeyBinding { scope, keys, command, description, label }
}

use KeyCommand as C;
use KeyScope::{Everywhere, In, Replay};
use View::{Approvals, Board, Mail, Member, Team, Timeline};

/// All key bindings.
#[rustfmt::skip]
pub(crate) const KEYS: &[KeyBinding] = &[
    key(In(&[Approvals]), &["a"], C::Approve, "approve", "approve the request"),
    key(In(&[Approvals]), &["d"], C::Deny, "deny", "deny with a reason"),
    key(In(&[Board]), &["v"], C::Graph, "columns/graph", "toggle columns/graph"),
    key(In(&[Board]), &["a"], C::AddTask, "add", "add a task"),
    key(In(&[Board]), &["o"], C::Assign, "assign", "assign to a member"),
    key(In(&[Board]), &["c"], C::Claim, "claim", "claim for yourself"),
    key(In(&[Board]), &["d"], C::Finish, "done", "mark as done"),
    key(In(&[Mail]), &["f"], C::Filter, "filter", "show one member's mail"),
    key(In(&[Mail]), &["p"], C::Protocol, "protocol", "show/hide protocol mail"),
    key(In(&[Timeline]), &["+", "="], C::ZoomIn, "zoom in", "zoom in"),
    key(In(&[Timeline]), &["-"], C::ZoomOut, "zoom out", "zoom out"),
    key(In(&[Timeline]), &["0"], C::ZoomAll, "all", "show the whole timeline"),
    key(In(&[Member]), &["/"], C::Search, "search", "search the activity"),
    key(In(&[Member]), &["i"], C::Interrupt, "interrupt", "interrupt the turn"),
    key(In(&[Member]), &["p"], C::PauseMember, "pause", "pause/unpause the member"),
    key(In(&[Team, Mail, Board, Timeline, Member]), &["s"], C::Send, "send", "send a message"),
    key(In(&[Team, Member]), &["n"], C::Spawn, "spawn", "start a new member"),
    key(In(&[Team, Member]), &["x"], C::Stop, "stop", "stop the member"),
    key(In(&[Team, Member, Timeline]), &["w"], C::Pane, "window", "open the member's window"),
    key(In(&[Team, Member]), &["e"], C::Worktree, "", "open a shell in its dir"),
    key(In(&[Team, Mail, Approvals, Member]), &["o"], C::Link, "", "open a link in the text"),
    key(Replay, &["space"], C::Pause, "pause", "pause or resume"),
    key(Replay, &[">", "."], C::Faster, "faster", "double the speed"),
    key(Replay, &["<", ","], C::Slower, "slower", "halve the speed"),
    key(Replay, &["z"], C::Skip, "skip", "skip to the next event"),
    key(Everywhere, &["?", "f1"], C::Help, "help", "show key bindings"),
    key(Everywhere, &[":", "ctrl-p"], C::Palette, "commands", "find a command by name"),
    key(Everywhere, &["q", "ctrl-c"], C::Quit, "quit", "quit; team keeps running"),
    key(Everywhere, &["1"], C::View(Team), "", "team: members and state"),
    key(Everywhere, &["2"], C::View(Mail), "", "mail: all messages"),
    key(Everywhere, &["3"], C::View(Board), "", "board: tasks"),
    key(Everywhere, &["4"], C::View(Approvals), "", "approvals: open requests"),
    key(Everywhere, &["5"], C::View(Timeline), "", "timeline: work over time"),
    key(Everywhere, &["6"], C::View(Member), "", "member: activity log"),
    key(Everywhere, &["tab"], C::NextView, "", "next view"),
    key(Everywhere, &["shift-tab"], C::PreviousView, "", "previous view"),
    key(Everywhere, &["t"], C::Teams, "", "switch to another team"),
    key(Everywhere, &["b"], C::Broadcast, "", "message all members"),
    key(Everywhere, &["y"], C::Copy, "", "copy the selection"),
    key(Everywhere, &["enter"], C::Open, "open", "open the selection"),
    key(Everywhere, &["esc"], C::Back, "", "back; clear the filter"),
    key(Everywhere, &["down", "j"], C::Down, "", "down"),
    key(Everywhere, &["up", "k"], C::Up, "", "up"),
    key(Everywhere, &["right", "l"], C::Right, "", "right or later"),
    key(Everywhere, &["left", "h"], C::Left, "", "left or earlier"),
    key(Everywhere, &["pgdn", "ctrl-d"], C::PageDown, "", "page down"),
    key(Everywhere, &["pgup", "ctrl-u"], C::PageUp, "", "page up"),
    key(Everywhere, &["home", "g"], C::First, "", "go to the start"),
    key(Everywhere, &["end", "G"], C::Last, "", "go to the end and follow"),
    key(Everywhere, &["ctrl-l"], C::Redraw, "", "redraw the screen"),
    key(Everywhere, &["ctrl-z"], C::Suspend, "", "suspend to the shell"),
];

impl KeyScope {
    /// Returns whether the binding applies in this view.
    pub(crate) fn applies_to(self, view: View, is_replay: bool) -> bool {
        match self {
            Everywhere => true,
            In(views) => views.contains(&view),
            Replay => is_replay,
        }
    }
}

/// Returns the bindings that apply in a view.
pub(crate) fn bindings_for(
    view: View,
    is_replay: bool,
) -> impl Iterator<Item = &'static KeyBinding> {
    KEYS.iter().filter(move |key| key.scope.applies_to(view, is_replay))
}

/// Returns the command bound to a key in a view.
pub(crate) fn command(event: &KeyEvent, view: View, is_replay: bool) -> Option<KeyCommand> {
    let pressed = key_name(event)?;
    let bindings = bindings_for(view, is_replay).filter(|key| key.keys.contains(&pressed.as_str()));
    // A binding of this view takes precedence over a global one.
    bindings.min_by_key(|key| key.scope == Everywhere).map(|key| key.command)
}

/// Returns the name of a key as written in the table of key bindings.
fn key_name(event: &KeyEvent) -> Option<String> {
    let name = match event.code {
        KeyCode::Char(' ') => "space".to_owned(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::Enter => "enter".into(),
        KeyCode::Esc => "esc".into(),
        KeyCode::Tab => "tab".into(),
        KeyCode::BackTab => "shift-tab".into(),
        KeyCode::Up => "up".into(),
        KeyCode::Down => "down".into(),
        KeyCode::Left => "left".into(),
        KeyCode::Right => "right".into(),
        KeyCode::Home => "home".into(),
        KeyCode::End => "end".into(),
        KeyCode::PageUp => "pgup".into(),
        KeyCode::PageDown => "pgdn".into(),
        KeyCode::F(number) => format!("f{number}"),
        _ => return None,
    };
    if event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(if event.modifiers.contains(KeyModifiers::CONTROL) {
        format!("ctrl-{name}")
    } else {
        name
    })
}

/// Returns the table of key bindings as Markdown, for the documentation.
pub fn key_table() -> String {
    let mut text = "| where | keys | action |\n|---|---|---|\n".to_owned();
    for key in KEYS {
        let scope = match key.scope {
            Everywhere => "all views".to_owned(),
            Replay => "replay".to_owned(),
            In(views) => {
                let views: Vec<&str> = views.iter().map(|view| view.title()).collect();
                views.join(", ")
            }
        };
        let keys: Vec<String> = key.keys.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("| {scope} | {} | {} |\n", keys.join(" "), key.description));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_is_bound_twice_in_a_view() {
        for view in View::ALL {
            let mut seen = HashSet::new();
            for key in bindings_for(view, true).filter(|key| key.scope != Everywhere) {
                for name in key.keys {
                    assert!(seen.insert(*name), "{name} is bound twice in {}", view.title());
                }
            }
        }
        let mut seen = HashSet::new();
        for key in KEYS.iter().filter(|key| key.scope == Everywhere) {
            assert!(key.keys.iter().all(|name| seen.insert(*name)), "{:?}", key.keys);
        }
    }

    #[test]
    fn view_bindings_take_precedence_over_global_ones() {
        let check = |code, view, command| {
            let key = KeyEvent::new(code, KeyModifiers::NONE);
            assert_eq!(super::command(&key, view, false), command);
        };
        check(KeyCode::Char('a'), Approvals, Some(KeyCommand::Approve));
        check(KeyCode::Char('a'), Board, Some(KeyCommand::AddTask));
        check(KeyCode::Char('a'), Team, None);
        check(KeyCode::Char('j'), Team, Some(KeyCommand::Down));
        check(KeyCode::Char(' '), Team, None);
        check(KeyCode::BackTab, Team, Some(KeyCommand::PreviousView));
    }
}
