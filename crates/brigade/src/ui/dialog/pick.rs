//! A searchable list: commands, teams, members or links.

use brigade_wire::name::TeamName;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::super::keys::{Command, KEYS, Key, Place};
use super::super::screen::{Effect, Screen};
use super::Dialog;
use super::form::pasted;
use crate::ui::views::{View, step};

/// The effect of choosing an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Chosen {
    /// Run a command, after switching to the view it belongs to, if any.
    Command(Command, Option<View>),
    Effect(Effect),
    /// Show the mail of this member only, or all mail.
    Filter(Option<String>),
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) label: String,
    /// Text at the right: a key or a state.
    pub(crate) hint: String,
    pub(crate) chosen: Chosen,
    /// Additional search terms.
    pub(crate) also: String,
}

/// A list dialog with a search field.
#[derive(Debug)]
pub(crate) struct Pick {
    pub(crate) title: String,
    pub(crate) filter: Input,
    pub(crate) choices: Vec<Choice>,
    pub(crate) place: usize,
}

impl Pick {
    pub(crate) fn new(title: impl Into<String>, choices: Vec<Choice>) -> Self {
        Self { title: title.into(), filter: Input::default(), choices, place: 0 }
    }

    /// The entries that contain every typed word.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Choice> {
        let typed = self.filter.value().to_lowercase();
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        self.choices.iter().filter(move |choice| {
            let label = format!("{} {}", choice.label, choice.also).to_lowercase();
            words.iter().all(|word| label.contains(word))
        })
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.filter = pasted(&self.filter, text.chars().filter(|letter| !letter.is_control()));
        self.place = 0;
    }

    pub(super) fn go(&mut self, command: Command) {
        let total = self.shown().count();
        self.place = step(self.place, total, 10, command).unwrap_or(self.place);
    }

    /// Handles a key. `None` keeps the dialog open; `Some(None)` closes it because no entry matched.
    pub(super) fn key(&mut self, key: &KeyEvent) -> Option<Option<Choice>> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Some(self.shown().nth(self.place).cloned()),
            KeyCode::Down => self.go(Command::Down),
            KeyCode::Up => self.go(Command::Up),
            KeyCode::PageDown => self.go(Command::PageDown),
            KeyCode::PageUp => self.go(Command::PageUp),
            KeyCode::Char('n') if control => self.go(Command::Down),
            KeyCode::Char('p') if control => self.go(Command::Up),
            _ => {
                self.filter.handle_event(&Event::Key(*key));
                self.place = 0;
            }
        }
        None
    }
}

/// Carries out the chosen entry.
pub(super) fn take(screen: &mut Screen, choice: Choice) -> Vec<Effect> {
    match choice.chosen {
        Chosen::Command(command, view) => {
            screen.view = view.unwrap_or(screen.view);
            screen.command(command)
        }
        Chosen::Effect(effect) => vec![effect],
        Chosen::Filter(member) => {
            screen.states.mail.filter = member;
            screen.letter = None;
            Vec::new()
        }
    }
}

/// Opens the command palette: commands of the current view first, then those of other views, which switch
/// to that view.
pub(crate) fn palette(screen: &mut Screen) -> Vec<Effect> {
    let idle = [Command::Palette, Command::Up, Command::Down, Command::Left, Command::Right];
    let (here, replays) = (screen.view, screen.replay.is_some());
    let offered = |key: &&Key| {
        let is_idle = idle.contains(&key.command) || (replays && key.command.is_order());
        !is_idle && (key.place != Place::Replay || replays)
    };
    let (near, far): (Vec<&Key>, Vec<&Key>) =
        KEYS.iter().filter(offered).partition(|key| key.place.holds(here, replays));
    let choice = |key: &Key| {
        let elsewhere = match key.place {
            Place::In(views) if !views.contains(&here) => views.first().copied(),
            _ => None,
        };
        let place = elsewhere.map(|view| format!("{}: ", view.title())).unwrap_or_default();
        Choice {
            label: format!("{place}{}", key.what),
            hint: key.keys.join(" "),
            chosen: Chosen::Command(key.command, elsewhere),
            also: format!("{} {:?}", key.short, key.command),
        }
    };
    let choices: Vec<Choice> = near.into_iter().chain(far).map(choice).collect();
    screen.dialog = Some(Dialog::Pick(Pick::new("Commands", choices)));
    Vec::new()
}

/// Opens the list of teams.
pub(crate) fn teams(screen: &mut Screen) -> Vec<Effect> {
    if screen.replay.is_some() {
        screen.say("a replay shows one team", true);
        return Vec::new();
    }
    let choices = team_choices(screen);
    screen.dialog = Some(Dialog::Pick(Pick::new(TEAMS, choices)));
    vec![Effect::LookForTeams]
}

/// Title of the team list.
const TEAMS: &str = "Teams";

fn team_choices(screen: &Screen) -> Vec<Choice> {
    let choice = |team: &TeamName| Choice {
        label: team.to_string(),
        hint: if team.as_str() == screen.team { "current".to_owned() } else { String::new() },
        chosen: Chosen::Effect(Effect::Switch(team.clone())),
        also: String::new(),
    };
    screen.teams.iter().map(choice).collect()
}

/// Updates an open team list after the teams were fetched again.
pub(crate) fn know_teams(screen: &mut Screen) {
    let choices = team_choices(screen);
    if let Some(Dialog::Pick(pick)) = &mut screen.dialog
        && pick.title == TEAMS
    {
        pick.choices = choices;
    }
}
