//! Every key, in one table: what it does, where, and what it is called. The help, the command palette, the
//! line at the bottom and the documentation are made of it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::views::View;

/// What a key, or a line of the palette, asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
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

impl Command {
    /// Whether it is for doing something in the team, which only shows what was in a replay.
    pub(crate) fn is_order(self) -> bool {
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
                | Self::Approve
                | Self::Deny
                | Self::Pane
                | Self::Worktree
        )
    }
}

/// Where a key means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Everywhere,
    In(&'static [View]),
    Replay,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) place: Place,
    /// As [`spelled`] spells them.
    pub(crate) keys: &'static [&'static str],
    pub(crate) command: Command,
    /// What it does, for the help and the palette.
    pub(crate) what: &'static str,
    /// In a word or two, for the line at the bottom; empty if it does not stand there.
    pub(crate) short: &'static str,
}

const fn key(
    place: Place,
    keys: &'static [&'static str],
    command: Command,
    short: &'static str,
    what: &'static str,
) -> Key {
    Key { place, keys, command, what, short }
}

use Command as C;
use Place::{Everywhere, In, Replay};
use View::{Approvals, Board, Mail, Member, Team, Timeline};

/// All keys.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    key(In(&[Approvals]), &["a"], C::Approve, "approve", "approve the request"),
    key(In(&[Approvals]), &["d"], C::Deny, "deny", "deny it, and say why"),
    key(In(&[Board]), &["v"], C::Graph, "columns/graph", "columns, or the graph"),
    key(In(&[Board]), &["a"], C::AddTask, "add", "add a task"),
    key(In(&[Board]), &["o"], C::Assign, "assign", "give it to somebody"),
    key(In(&[Board]), &["c"], C::Claim, "claim", "take it yourself"),
    key(In(&[Board]), &["d"], C::Finish, "done", "mark it done"),
    key(In(&[Mail]), &["f"], C::Filter, "filter", "the mail of one member"),
    key(In(&[Mail]), &["p"], C::Protocol, "protocol", "protocol messages on, off"),
    key(In(&[Timeline]), &["+", "="], C::ZoomIn, "closer", "less time"),
    key(In(&[Timeline]), &["-"], C::ZoomOut, "further", "more time"),
    key(In(&[Timeline]), &["0"], C::ZoomAll, "all", "all the time"),
    key(In(&[Team, Mail, Board, Timeline, Member]), &["s"], C::Send, "send", "write to somebody"),
    key(In(&[Team, Member]), &["n"], C::Spawn, "spawn", "start a new member"),
    key(In(&[Team, Member]), &["x"], C::Stop, "stop", "stop the member"),
    key(In(&[Team, Member, Timeline]), &["w"], C::Pane, "window", "open its own window"),
    key(In(&[Team, Member]), &["e"], C::Worktree, "", "a shell where it works"),
    key(In(&[Team, Mail, Approvals, Member]), &["o"], C::Link, "", "open a link in it"),
    key(Replay, &["space"], C::Pause, "pause", "pause, or go on"),
    key(Replay, &[">", "."], C::Faster, "faster", "twice as fast"),
    key(Replay, &["<", ","], C::Slower, "slower", "half as fast"),
    key(Replay, &["z"], C::Skip, "skip", "on to the next thing"),
    key(Everywhere, &["?", "f1"], C::Help, "help", "the keys of here"),
    key(Everywhere, &[":", "ctrl-p"], C::Palette, "commands", "commands, by name"),
    key(Everywhere, &["q", "ctrl-c"], C::Quit, "quit", "leave; the team goes on"),
    key(Everywhere, &["1"], C::View(Team), "", "team: who does what"),
    key(Everywhere, &["2"], C::View(Mail), "", "mail: who wrote what"),
    key(Everywhere, &["3"], C::View(Board), "", "board: what is to do"),
    key(Everywhere, &["4"], C::View(Approvals), "", "approvals: who waits"),
    key(Everywhere, &["5"], C::View(Timeline), "", "timeline: work over time"),
    key(Everywhere, &["6"], C::View(Member), "", "member: what one does"),
    key(Everywhere, &["tab"], C::NextView, "", "the next view"),
    key(Everywhere, &["shift-tab"], C::PreviousView, "", "the view before"),
    key(Everywhere, &["t"], C::Teams, "", "another team"),
    key(Everywhere, &["b"], C::Broadcast, "", "write to everybody"),
    key(Everywhere, &["y"], C::Copy, "", "copy it"),
    key(Everywhere, &["enter"], C::Open, "open", "open it"),
    key(Everywhere, &["esc"], C::Back, "", "back; no filter"),
    key(Everywhere, &["down", "j"], C::Down, "", "down"),
    key(Everywhere, &["up", "k"], C::Up, "", "up"),
    key(Everywhere, &["right", "l"], C::Right, "", "right, or later"),
    key(Everywhere, &["left", "h"], C::Left, "", "left, or earlier"),
    key(Everywhere, &["pgdn", "ctrl-d"], C::PageDown, "", "a page down"),
    key(Everywhere, &["pgup", "ctrl-u"], C::PageUp, "", "a page up"),
    key(Everywhere, &["home", "g"], C::First, "", "to the beginning"),
    key(Everywhere, &["end", "G"], C::Last, "", "to the end, and follow"),
    key(Everywhere, &["ctrl-l"], C::Redraw, "", "draw everything anew"),
    key(Everywhere, &["ctrl-z"], C::Suspend, "", "back to the shell"),
];

impl Place {
    /// Whether it is this view; what is meant for one view goes before what is meant everywhere.
    pub(crate) fn holds(self, view: View, replays: bool) -> bool {
        match self {
            Everywhere => true,
            In(views) => views.contains(&view),
            Replay => replays,
        }
    }
}

/// The keys that mean something in a view.
pub(crate) fn keys_of(view: View, replays: bool) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.place.holds(view, replays))
}

/// What a key asks for in a view.
pub(crate) fn command(event: &KeyEvent, view: View, replays: bool) -> Option<Command> {
    let pressed = spelled(event)?;
    let meant = keys_of(view, replays).filter(|key| key.keys.contains(&pressed.as_str()));
    // What is meant for one place goes before what is meant everywhere.
    meant.min_by_key(|key| key.place == Everywhere).map(|key| key.command)
}

/// A key as the table spells it.
fn spelled(event: &KeyEvent) -> Option<String> {
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

/// The table as it stands in the documentation.
pub fn documented() -> String {
    let mut text = "| where | keys | what |\n|---|---|---|\n".to_owned();
    for key in KEYS {
        let place = match key.place {
            Everywhere => "everywhere".to_owned(),
            Replay => "replay".to_owned(),
            In(views) => {
                let views: Vec<&str> = views.iter().map(|view| view.title()).collect();
                views.join(", ")
            }
        };
        let keys: Vec<String> = key.keys.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("| {place} | {} | {} |\n", keys.join(" "), key.what));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_key_means_one_thing_in_a_place() {
        for view in View::ALL {
            let mut seen = HashSet::new();
            for key in keys_of(view, true).filter(|key| key.place != Everywhere) {
                for name in key.keys {
                    assert!(seen.insert(*name), "{name} means two things in {}", view.title());
                }
            }
        }
        let mut seen = HashSet::new();
        for key in KEYS.iter().filter(|key| key.place == Everywhere) {
            assert!(key.keys.iter().all(|name| seen.insert(*name)), "{:?}", key.keys);
        }
    }

    #[test]
    fn what_is_meant_here_goes_before_what_is_meant_everywhere() {
        let check = |code, view, command| {
            let key = KeyEvent::new(code, KeyModifiers::NONE);
            assert_eq!(super::command(&key, view, false), command);
        };
        check(KeyCode::Char('a'), Approvals, Some(Command::Approve));
        check(KeyCode::Char('a'), Board, Some(Command::AddTask));
        check(KeyCode::Char('a'), Team, None);
        check(KeyCode::Char('j'), Team, Some(Command::Down));
        check(KeyCode::Char(' '), Team, None);
        check(KeyCode::BackTab, Team, Some(Command::PreviousView));
    }
}
